//! The state that DataFusion plans a statement with, made when it is needed.

use crate::catalog::Visible;
use crate::policy::Access;
use datafusion::catalog::MemoryCatalogProviderList;
use datafusion::execution::SessionState;
use datafusion::execution::runtime_env::RuntimeEnv;
use std::ops::Deref;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

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

/// The state of the last statement of a session, for the next one: all that differs are the catalogs and the time.
#[derive(Debug, Default, Clone)]
pub(crate) struct SpareState(Arc<Mutex<Option<Box<SessionState>>>>);

impl SpareState {
    /// A state with the catalogs of a statement.
    pub(crate) fn with(&self, visible: Visible) -> SessionState {
        let spare = self.lock().take();
        match spare {
            // Whoever changes a setting makes other options of them.
            Some(mut state) if Arc::ptr_eq(state.config_options(), &visible.options()) => {
                state.register_catalog_list(visible.into_catalogs());
                state.mark_start_execution();
                *state
            }
            _ => visible.state(),
        }
    }

    /// Keeps a state that a statement does not need any more, without the tables that it saw.
    pub(crate) fn keep(&self, mut state: SessionState) {
        static NO_CATALOGS: LazyLock<Arc<MemoryCatalogProviderList>> = LazyLock::new(Arc::default);
        state.register_catalog_list(Arc::clone(&NO_CATALOGS) as _);
        *self.lock() = Some(Box::new(state));
    }

    /// A poisoned lock still guards a whole state, or none.
    fn lock(&self) -> MutexGuard<'_, Option<Box<SessionState>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
