//! Sessions with a scratch catalog, which are plain DataFusion: their statements act when they are planned.

use super::EngineSession;
use crate::authorize::{Action, AuthorizedPlan};
use crate::error::classify;
use bowshot_api::{Error, Result};
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use std::borrow::Cow;

impl EngineSession {
    /// Lets a statement on the scratch catalog act, and gives back the plan of its result. Queries pass unchanged.
    pub(crate) async fn take_effect<'a>(
        &self,
        plan: &AuthorizedPlan,
        state: &'a SessionState,
    ) -> Result<(Cow<'a, SessionState>, LogicalPlan)> {
        let logical = plan.planned().plan().clone();
        let prepared = matches!(logical, LogicalPlan::Statement(_));
        match plan.action() {
            Action::Query if !prepared => Ok((Cow::Borrowed(state), logical)),
            Action::Query | Action::Scratch => {
                let frame = self.context.execute_logical_plan(logical).await.map_err(classify)?;
                let (state, plan) = frame.into_parts();
                Ok((Cow::Owned(state), plan))
            }
            Action::Set { .. } | Action::Reset { .. } if self.scratch => {
                let frame = self.context.execute_logical_plan(logical).await.map_err(classify)?;
                let (state, plan) = frame.into_parts();
                Ok((Cow::Owned(state), plan))
            }
            Action::Set { .. } | Action::Reset { .. } => {
                Err(Error::internal("a session option reached the engine as a plan"))
            }
            Action::Write(_)
            | Action::Transaction(_)
            | Action::Cache(_)
            | Action::Database(_)
            | Action::Session(_)
            | Action::Cursor(_) => {
                Err(Error::internal("a statement that changes something was run as a query"))
            }
        }
    }

    /// Whether the session has a scratch catalog, in which `SET` reaches the engine's own options.
    pub fn is_scratch(&self) -> bool {
        self.scratch
    }

    /// Sets one of the engine's options, named as in its configuration (`catalog.default_schema`, …).
    ///
    /// # Errors
    /// `Invalid` when the value does not fit.
    pub fn set_config(&self, key: &str, value: &str) -> Result<()> {
        let state = self.context.state_ref();
        let mut state = state.write();
        state.config_mut().options_mut().set(key, value).map_err(classify)
    }
}
