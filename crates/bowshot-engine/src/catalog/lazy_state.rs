//! The state that DataFusion plans a statement with, made when it is needed.

use crate::catalog::{Visible, models};
use bowshot_policy::Access;
use bowshot_system_catalog::statement_tables::StatementTables;
use bowshot_types::zone;
use datafusion::catalog::MemoryCatalogProviderList;
use datafusion::execution::SessionState;
use datafusion::execution::context::SessionContext;
use datafusion::execution::runtime_env::RuntimeEnv;
use parking_lot::Mutex;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

/// The session's state with the catalogs of one statement. It is made at its first use: it holds a copy of the names of all
/// functions, which takes longer than all that a small change does without it.
#[derive(Debug)]
pub(crate) struct LazyState {
    visible: Visible,
    /// Has the state of the statement before, and gets this one.
    spare: Option<Arc<SpareState>>,
    made: OnceLock<SessionState>,
}

impl LazyState {
    pub(crate) fn new(visible: Visible) -> Self {
        Self { visible, spare: None, made: OnceLock::new() }
    }

    /// One that is made of the state of another statement of the session, and is there for the next one.
    pub(crate) fn with_spare(visible: Visible, spare: &Arc<SpareState>) -> Self {
        Self { visible, spare: Some(Arc::clone(spare)), made: OnceLock::new() }
    }

    /// What the statement may do, for which no state has to be made.
    pub(crate) fn access(&self) -> &Access {
        &self.visible.access
    }

    /// The zone of the session, for which no state has to be made.
    pub(crate) fn zone(&self) -> Arc<str> {
        zone::of(&self.visible.options())
    }

    /// Memory, disk and caches, for which no state has to be made.
    pub(crate) fn runtime_env(&self) -> Arc<RuntimeEnv> {
        self.visible.context.runtime_env()
    }
}

impl Deref for LazyState {
    type Target = SessionState;

    fn deref(&self) -> &SessionState {
        self.made.get_or_init(|| match &self.spare {
            Some(spare) => spare.with(self.visible.clone()),
            None => self.visible.state(),
        })
    }
}

impl Drop for LazyState {
    fn drop(&mut self) {
        if let (Some(spare), Some(state)) = (&self.spare, self.made.take()) {
            spare.keep(state, &self.visible.context);
        }
    }
}

/// States that are kept for the next statements of sessions, over all sessions. One holds the names of all functions, about
/// 140 KiB: idle sessions keep none.
const MAX_SPARE: usize = 128;

/// The states of the last statements of the sessions that were busy last.
#[derive(Debug, Default)]
pub(crate) struct SpareStates {
    next: AtomicU64,
    /// By the number of the session, the most recent at the end.
    kept: Mutex<Vec<(u64, Box<SessionState>)>>,
}

impl SpareStates {
    fn take(&self, session: u64) -> Option<Box<SessionState>> {
        let mut kept = self.kept.lock();
        let place = kept.iter().rposition(|(of, _)| *of == session)?;
        Some(kept.remove(place).1)
    }

    fn keep(&self, session: u64, state: Box<SessionState>) {
        let mut kept = self.kept.lock();
        // Where statements of one session ran side by side, one state is enough.
        let gone = match kept.iter().position(|(of, _)| *of == session) {
            None if kept.len() < MAX_SPARE => None,
            place => Some(kept.remove(place.unwrap_or(0))),
        };
        kept.push((session, state));
        drop(kept);
        drop(gone);
    }
}

/// The state of the last statement of one session, for the next one: all that differs are the catalogs and the time.
#[derive(Debug)]
pub(crate) struct SpareState {
    session: u64,
    all: Arc<SpareStates>,
}

impl SpareState {
    pub(crate) fn new(all: &Arc<SpareStates>) -> Arc<Self> {
        Arc::new(Self { session: all.next.fetch_add(1, Ordering::Relaxed), all: Arc::clone(all) })
    }

    /// A state with the catalogs of a statement.
    pub(crate) fn with(&self, visible: Visible) -> SessionState {
        match self.all.take(self.session) {
            // Whoever changes a setting makes other options of them.
            Some(mut state) if Arc::ptr_eq(state.config_options(), &visible.options()) => {
                models::register(&mut state, &visible);
                visible.choose(&mut state);
                state.register_catalog_list(visible.into_catalogs());
                state.mark_start_execution();
                *state
            }
            _ => visible.state(),
        }
    }

    /// Keeps a state that a statement of a session does not need any more, without the tables that it saw.
    pub(crate) fn keep(&self, mut state: SessionState, session: &SessionContext) {
        if let Some(before) = StatementTables::session_options(state.config_options()) {
            let config = session.state_ref().read().config().clone();
            // Its functions are those of the options that it was made with.
            if !Arc::ptr_eq(before, config.options()) {
                return;
            }
            *state.config_mut() = config;
            state.mark_start_execution();
        }
        static NO_CATALOGS: LazyLock<Arc<MemoryCatalogProviderList>> = LazyLock::new(Arc::default);
        state.register_catalog_list(Arc::clone(&NO_CATALOGS) as _);
        models::forget(&mut state);
        self.all.keep(self.session, Box::new(state));
    }
}

impl Drop for SpareState {
    fn drop(&mut self) {
        drop(self.all.take(self.session));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowshot_policy::snapshot::Pinned;
    use bowshot_tables::TableStore;

    #[test]
    fn few_states_are_kept_and_none_of_sessions_that_are_gone() {
        let all = Arc::new(SpareStates::default());
        let sessions: Vec<_> = (0..MAX_SPARE + 2).map(|_| SpareState::new(&all)).collect();
        let context = SessionContext::new();
        for session in &sessions {
            session.keep(context.state(), &context);
            session.keep(context.state(), &context);
        }
        assert_eq!(all.kept.lock().len(), MAX_SPARE);
        assert!(all.take(sessions[0].session).is_none() && all.take(sessions[2].session).is_some());
        drop(sessions);
        assert!(all.kept.lock().is_empty());
    }

    #[test]
    fn states_of_transactions_serve_their_session_until_a_setting_changes() {
        let all = Arc::new(SpareStates::default());
        let (session, context) = (SpareState::new(&all), SessionContext::new());
        let store = TableStore::in_memory("main", "public", 1 << 20);
        let pinned = Pinned::new(store.snapshot(), store.snapshot());
        let in_transaction = || {
            let mut state = context.state();
            let tables = StatementTables::new(&pinned, Arc::clone(state.config_options()));
            state.config_mut().options_mut().extensions.insert(tables);
            state
        };
        session.keep(in_transaction(), &context);
        let state = all.take(session.session).unwrap();
        assert!(Arc::ptr_eq(state.config_options(), context.state().config_options()));
        assert!(StatementTables::find(state.config_options()).is_none());
        let before = in_transaction();
        context.state_ref().write().config_mut().options_mut().execution.target_partitions = 3;
        session.keep(before, &context);
        assert!(all.take(session.session).is_none());
    }
}
