//! Whether a session may do what it asks for.

use super::EngineSession;
use crate::authorize::{self, AuthorizedPlan, Judge};
use crate::snapshot::Pinned;
use bowshot_api::{Result, Thing};

impl EngineSession {
    /// The tables with what the session may do with them, and who is asked beside that.
    pub(crate) fn judged<'a>(&'a self, pinned: &'a Pinned) -> Judge<'a> {
        Judge { pinned, access: self.gate.access(pinned), decider: self.shared.decider() }
    }

    /// Asks again whether a plan may run that was authorised for another run of it.
    ///
    /// # Errors
    /// `Denied`; `Unavailable` without a decision.
    pub async fn decide_again(&self, plan: &AuthorizedPlan) -> Result<()> {
        match self.shared.decider() {
            Some(decider) => Box::pin(authorize::decision::ask(decider, plan)).await,
            None => Ok(()),
        }
    }

    /// Asks about what no plan does.
    pub(crate) async fn check_outside(
        &self,
        action: &'static str,
        pinned: &Pinned,
        things: Vec<Thing>,
    ) -> Result<()> {
        match self.shared.decider() {
            Some(decider) => {
                let access = self.gate.access(pinned);
                Box::pin(authorize::decision::ask_about(decider, &access, action, things)).await
            }
            None => Ok(()),
        }
    }

    /// Whether a plan was authorised with the rights that hold now.
    pub fn still_allows(&self, plan: &AuthorizedPlan) -> bool {
        plan.is_by(&self.gate.access(plan.pinned()))
    }
}
