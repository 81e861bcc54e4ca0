//! The state that DataFusion plans a statement with, made when it is needed.

use crate::catalog::Visible;
use crate::policy::Access;
use datafusion::execution::SessionState;
use datafusion::execution::runtime_env::RuntimeEnv;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

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
