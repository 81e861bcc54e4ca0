//! What the engine asks of a cluster: [`Distribution`]. It says where a plan runs; the engine knows nothing else of nodes.
//! An engine of one node ([`OneNode`]) runs every plan itself.

use crate::endpoints::{ResultEndpoints, Spread};
use crate::error::travelling;
use async_trait::async_trait;
use bowshot_api::{BatchStream, Error, ErrorKind, Principal, QueryId, Reason};
use datafusion::error::DataFusionError;
use datafusion::execution::{SessionState, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;

/// Places plans on the nodes of a cluster.
#[async_trait]
pub trait Distribution: fmt::Debug + Send + Sync {
    /// Whether there are several nodes.
    fn is_active(&self) -> bool;

    /// Where a plan of a session runs, and which nodes hand out its rows if they may. Nothing of it runs yet.
    async fn place(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        state: &SessionState,
        spread: Option<&Spread>,
    ) -> Placed;

    /// Whether a plan failed because a node was lost, which gets no work from then on.
    async fn lost(&self, plan: &Placed, error: &Error) -> bool;

    /// The rows of an endpoint of any node, for the principal of a client that has shown a voucher for it.
    ///
    /// # Errors
    /// `NotFound` for vouchers that are none, and for those of others; what the endpoint has failed with; `Unavailable` when its
    /// node is lost.
    async fn redeem(
        &self,
        principal: &Principal,
        asked: (QueryId, usize),
        voucher: &[u8],
    ) -> Result<BatchStream, Error>;
}

/// Where a plan runs.
#[derive(Debug)]
pub enum Placed {
    /// On this node; with the reason, if it could have been on several.
    Here(Option<String>),
    /// On several nodes.
    OnNodes(PlanOnNodes),
}

/// A plan on several nodes, whose rows come together here in one stream.
#[derive(Debug)]
pub struct PlanOnNodes {
    /// The plan, which has one partition.
    pub plan: Arc<dyn ExecutionPlan>,
    /// What it runs with.
    pub context: Arc<TaskContext>,
    /// The addresses of the nodes.
    pub nodes: Vec<String>,
    /// Its stages and their tasks, for people.
    pub shown: String,
    /// The endpoints that hand out its rows; the plan itself gives none then.
    pub endpoints: Option<Arc<dyn ResultEndpoints>>,
}

/// What is ahead of an error of ours that comes from another node, which would come as a mere text.
const TOLD: &str = "\u{1}bowshot error ";

/// An error as it goes to another node: one of ours with all that it says.
pub fn told(error: DataFusionError) -> DataFusionError {
    let Some(ours) = travelling(&error) else { return error };
    let parts = json!({
        "kind": ErrorKind::ALL.iter().position(|kind| *kind == ours.kind()),
        "reason": ours.reason().and_then(|reason| Reason::ALL.iter().position(|known| *known == reason)),
        "message": ours.message(),
        "hint": ours.hint(),
    });
    DataFusionError::Execution(format!("{TOLD}{parts}"))
}

/// An error that another node may have told.
pub(crate) fn heard(error: Error) -> Error {
    let Some((_, parts)) = error.message().split_once(TOLD) else { return error };
    let Some(Ok(parts)) = serde_json::Deserializer::from_str(parts).into_iter::<Value>().next() else {
        return error;
    };
    let place = |name: &str| parts[name].as_u64().and_then(|place| usize::try_from(place).ok());
    let text = |name: &str| parts[name].as_str().map(str::to_owned);
    let kind = place("kind").and_then(|place| ErrorKind::ALL.get(place)).copied();
    let (Some(kind), Some(message)) = (kind, text("message")) else { return error };
    let mut ours = Error::new(kind, message);
    if let Some(reason) = place("reason").and_then(|place| Reason::ALL.get(place)) {
        ours = ours.with_reason(*reason);
    }
    if let Some(hint) = text("hint") {
        ours = ours.with_hint(hint);
    }
    ours.with_source(error)
}

/// What is told of a voucher that is none: nothing about what there is.
pub fn not_here(query: QueryId) -> Error {
    Error::not_found(format!("query {query} not found"))
        .with_reason(Reason::UndefinedQuery)
        .with_hint("redeem tickets as they are, with the credentials of the query, at a node of the cluster; or run it again")
}

/// An error as text, which [`from_text`] reads on another node.
pub fn to_text(error: &Error) -> String {
    told(DataFusionError::External(Box::new(error.duplicate()))).to_string()
}

/// An error that [`to_text`] wrote, or the text itself as one.
pub fn from_text(text: &str) -> Error {
    heard(Error::new(ErrorKind::Unavailable, text.to_owned()))
}

/// There is one node.
#[derive(Debug)]
pub struct OneNode;

#[async_trait]
impl Distribution for OneNode {
    fn is_active(&self) -> bool {
        false
    }

    async fn place(
        &self,
        _plan: &Arc<dyn ExecutionPlan>,
        _state: &SessionState,
        _spread: Option<&Spread>,
    ) -> Placed {
        Placed::Here(None)
    }

    async fn lost(&self, _plan: &Placed, _error: &Error) -> bool {
        false
    }

    async fn redeem(
        &self,
        _principal: &Principal,
        (query, _index): (QueryId, usize),
        _voucher: &[u8],
    ) -> Result<BatchStream, Error> {
        Err(not_here(query))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::classify;

    #[test]
    fn an_error_of_ours_comes_as_it_went() {
        let ours = Error::new(ErrorKind::LimitReached, "a {b} \"c\"")
            .with_hint("less")
            .with_reason(Reason::DivisionByZero);
        let away = told(DataFusionError::External(Box::new(ours)).context("in a part"));
        let text = away.to_string();
        let back = heard(classify(DataFusionError::Execution(format!("task 3 failed: {text}; sorry"))));
        assert_eq!((back.kind(), back.message()), (ErrorKind::LimitReached, "a {b} \"c\""));
        assert_eq!((back.hint(), back.reason()), (Some("less"), Some(Reason::DivisionByZero)));
        let other = DataFusionError::Plan("no such thing".to_owned());
        assert_eq!(told(other).to_string(), DataFusionError::Plan("no such thing".to_owned()).to_string());
    }
}
