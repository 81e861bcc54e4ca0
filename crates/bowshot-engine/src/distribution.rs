//! What the engine asks of a cluster: [`Distribution`]. It says where a plan runs; the engine knows nothing else of nodes.
//! An engine of one node ([`OneNode`]) runs every plan itself.

use crate::error::travelling;
use async_trait::async_trait;
use bowshot_api::{Error, ErrorKind, Reason};
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

    /// Where a plan of a session runs. Nothing of it runs yet.
    async fn place(&self, plan: &Arc<dyn ExecutionPlan>, state: &SessionState) -> Placed;

    /// Whether a plan failed because a node was lost, which gets no work from then on.
    async fn lost(&self, plan: &Placed, error: &Error) -> bool;
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

/// There is one node.
#[derive(Debug)]
pub struct OneNode;

#[async_trait]
impl Distribution for OneNode {
    fn is_active(&self) -> bool {
        false
    }

    async fn place(&self, _plan: &Arc<dyn ExecutionPlan>, _state: &SessionState) -> Placed {
        Placed::Here(None)
    }

    async fn lost(&self, _plan: &Placed, _error: &Error) -> bool {
        false
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
