//! Whether a session may do what it asks for.

use super::EngineSession;
use super::engine::Shared;
use crate::authorize::{self, AuthorizedPlan, Authorizer};
use bowshot_api::{Resource, Result};
use bowshot_policy::snapshot::Pinned;
use bowshot_policy::{Basis, SessionAccess};
use std::sync::Arc;

/// The rights that a query was run with whose rows are kept, to be asked about each time that they are handed out.
pub struct KeptRights {
    gate: Arc<SessionAccess>,
    shared: Arc<Shared>,
    basis: Basis,
    /// What a service decides on that is asked beside the rules.
    plan: Option<AuthorizedPlan>,
}

impl KeptRights {
    /// The same for the rows of this plan.
    #[must_use]
    pub fn of(self, plan: &AuthorizedPlan) -> Self {
        let plan = self.shared.decider().map(|_| plan.clone());
        Self { plan, ..self }
    }

    /// # Errors
    /// `Denied` when rights have been taken away since; `Unavailable` without a decision.
    pub async fn check(&self) -> Result<()> {
        self.gate.check_kept(&self.basis)?;
        match (self.shared.decider(), &self.plan) {
            (Some(decider), Some(plan)) => Box::pin(authorize::decision::ask(decider, plan)).await,
            _ => Ok(()),
        }
    }
}

bowshot_api::debug_fields!(KeptRights {});

impl EngineSession {
    /// The rights as they are before a statement is planned whose rows will be kept.
    pub fn kept_rights(&self) -> KeptRights {
        KeptRights {
            gate: Arc::clone(&self.gate),
            shared: Arc::clone(&self.shared),
            basis: self.gate.basis(),
            plan: None,
        }
    }

    /// The tables with what the session may do with them, and who is asked beside that.
    pub(crate) fn authorizer<'a>(&'a self, pinned: &'a Pinned) -> Authorizer<'a> {
        Authorizer { pinned, access: self.gate.access(pinned), decider: self.shared.decider() }
    }

    /// Whether a service decides on statements beside the rules.
    pub fn has_decider(&self) -> bool {
        self.shared.decider().is_some()
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
        resources: Vec<Resource>,
    ) -> Result<()> {
        match self.shared.decider() {
            Some(decider) => {
                let access = self.gate.access(pinned);
                Box::pin(authorize::decision::ask_about(decider, &access, action, resources)).await
            }
            None => Ok(()),
        }
    }

    /// Whether a plan was authorised with the rights that hold now.
    pub fn still_allows(&self, plan: &AuthorizedPlan) -> bool {
        plan.is_by(&self.gate.access(plan.pinned()))
    }
}
