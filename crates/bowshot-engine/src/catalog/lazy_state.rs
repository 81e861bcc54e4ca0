//! The state that DataFusion plans a statement with, made when it is needed.

use crate::catalog::{Visible, models};
use bowshot_policy::Access;
use bowshot_system_catalog::statement_tables::StatementTables;
use bowshot_types::zone;
use datafusion::catalog::MemoryCatalogProviderList;
use datafusion::execution::SessionState;
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
    made: OnceLock<SessionState>,
}

impl LazyState {
    pub(crate) fn new(visible: Visible) -> Self {
        Self { visible, made: OnceLock::new() }
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
        self.made.get_or_init(|| self.visible.state())
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

    /// Keeps a state that a statement does not need any more, without the tables that it saw.
    pub(crate) fn keep(&self, mut state: SessionState) {
        if StatementTables::find(state.config_options()).is_some() {
            return;
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
    use datafusion::prelude::SessionContext;

    #[test]
    fn few_states_are_kept_and_none_of_sessions_that_are_gone() {
        let all = Arc::new(SpareStates::default());
        let sessions: Vec<_> = (0..MAX_SPARE + 2).map(|_| SpareState::new(&all)).collect();
        for session in &sessions {
            session.keep(SessionContext::new().state());
            session.keep(SessionContext::new().state());
        }
        assert_eq!(all.kept.lock().len(), MAX_SPARE);
        assert!(all.take(sessions[0].session).is_none() && all.take(sessions[2].session).is_some());
        drop(sessions);
        assert!(all.kept.lock().is_empty());
    }
}
