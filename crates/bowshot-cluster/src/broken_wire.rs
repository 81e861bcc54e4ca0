//! Errors of the connections between nodes, told from those of the work. They arise on any node of a plan, and arrive as what they
//! are: a connection may be there again by the time that somebody looks.

use async_trait::async_trait;
use bowshot_api::{Error, ErrorKind};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_distributed::{
    CoordinatorToWorkerMsg, ExecuteTaskRequest, GetWorkerInfoRequest, GetWorkerInfoResponse, SetPlanRequest,
    WorkerChannel, WorkerToCoordinatorMsg,
};
use futures::StreamExt;
use futures::stream::BoxStream;
use http::HeaderMap;
use std::sync::Arc;
use tonic::Code;

/// What the library says, in an error of its work, where the plan of a task has not come: whoever was to send it was stopped or cut off.
const NO_PLAN: &str = "timed-out while waiting for the plan to be set by the coordinator";
const MESSAGE: &str = "a connection between nodes of the cluster has broken";

/// Whether an error says that a connection between nodes has broken, on whatever node.
pub(crate) fn is_broken_wire(error: &Error) -> bool {
    error.kind() == ErrorKind::Unavailable && error.message() == MESSAGE
}

/// The error, or what stands for one of a connection.
pub(crate) fn told(error: DataFusionError) -> DataFusionError {
    if !is_of_a_connection(&error) {
        return error;
    }
    let broken = Error::new(ErrorKind::Unavailable, MESSAGE).with_hint("run the statement again");
    DataFusionError::External(Box::new(broken.with_source(error)))
}

fn is_of_a_connection(error: &DataFusionError) -> bool {
    let mut current: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = current {
        let inner = match error.downcast_ref::<DataFusionError>() {
            Some(DataFusionError::External(inner)) => is_one(inner.as_ref()),
            Some(DataFusionError::Execution(text)) => text.contains(NO_PLAN),
            _ => false,
        };
        if inner || is_one(error) {
            return true;
        }
        current = error.source();
    }
    false
}

fn is_one(error: &(dyn std::error::Error + 'static)) -> bool {
    if let Some(status) = error.downcast_ref::<tonic::Status>() {
        // What a node answers of the work comes as an error of DataFusion.
        return matches!(
            status.code(),
            Code::Unavailable | Code::Unknown | Code::Internal | Code::Cancelled | Code::DeadlineExceeded
        );
    }
    error.is::<tonic::transport::Error>()
}

/// A connection whose errors are told.
pub(crate) struct ToldChannel(pub(crate) Box<dyn WorkerChannel>);

#[async_trait]
impl WorkerChannel for ToldChannel {
    async fn coordinator_channel(
        &mut self,
        headers: HeaderMap,
        set_plan_request: SetPlanRequest,
        c2w_stream: BoxStream<'static, CoordinatorToWorkerMsg>,
        metrics: ExecutionPlanMetricsSet,
        task_ctx: &Arc<TaskContext>,
    ) -> Result<BoxStream<'static, Result<WorkerToCoordinatorMsg>>> {
        let answers =
            self.0.coordinator_channel(headers, set_plan_request, c2w_stream, metrics, task_ctx).await;
        Ok(answers.map_err(told)?.map(|answer| answer.map_err(told)).boxed())
    }

    async fn execute_task(
        &mut self,
        headers: HeaderMap,
        request: ExecuteTaskRequest,
        metrics: ExecutionPlanMetricsSet,
        task_ctx: &Arc<TaskContext>,
    ) -> Result<Vec<BoxStream<'static, Result<RecordBatch>>>> {
        let rows = self.0.execute_task(headers, request, metrics, task_ctx).await.map_err(told)?;
        Ok(rows.into_iter().map(|rows| rows.map(|batch| batch.map_err(told)).boxed()).collect())
    }

    async fn get_worker_info(&mut self, request: GetWorkerInfoRequest) -> Result<GetWorkerInfoResponse> {
        self.0.get_worker_info(request).await.map_err(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowshot_engine::internals::classify;

    #[test]
    fn connections_are_told_from_work() {
        let of = |status: tonic::Status| DataFusionError::External(Box::new(status));
        for error in [
            of(tonic::Status::unavailable("reset")),
            of(tonic::Status::unknown("h2")).context("task 3"),
            DataFusionError::Shared(Arc::new(of(tonic::Status::internal("stream")))),
            DataFusionError::Execution(format!(
                "Worker::execute_task {NO_PLAN}. (timed out waiting for value)"
            ))
            .context("task 1"),
        ] {
            assert!(is_broken_wire(&classify(told(error))));
        }
        for error in [
            of(tonic::Status::out_of_range("a message is too large")),
            DataFusionError::Execution("transport error".to_owned()),
        ] {
            assert!(!is_broken_wire(&classify(told(error))));
        }
    }
}
