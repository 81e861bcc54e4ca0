//! What the engine asks of a cluster: [`Distribution`]. It says where a plan runs; the engine knows nothing else of nodes.
//! An engine of one node ([`OneNode`]) runs every plan itself.

use async_trait::async_trait;
use bowshot_api::Error;
use datafusion::execution::{SessionState, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
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
    /// Its stages and their tasks, for people.
    pub shown: String,
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
