//! Errors of connections between nodes, separated from errors of the query. They keep their kind on the way through other nodes.

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

/// The library's message when the plan of a task never arrived, because its sender stopped or lost the connection.
const NO_PLAN: &str = "timed-out while waiting for the plan to be set by the coordinator";
const MESSAGE: &str = "a connection between nodes of the cluster was lost";

/// Whether an error means that a connection between nodes was lost, on any node.
pub(crate) fn is_connection_lost(error: &Error) -> bool {
    error.kind() == ErrorKind::Unavailable && error.message() == MESSAGE
}

/// Replaces an error of a connection by our own.
pub(crate) fn classify_connection(error: DataFusionError) -> DataFusionError {
    if !is_connection_error(&error) {
        return error;
    }
    let broken = Error::new(ErrorKind::Unavailable, MESSAGE).with_hint("run the statement again");
    DataFusionError::External(Box::new(broken.with_source(error)))
}

fn is_connection_error(error: &DataFusionError) -> bool {
    let mut current: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = current {
        let inner = match error.downcast_ref::<DataFusionError>() {
            Some(DataFusionError::External(inner)) => is_transport_error(inner.as_ref()),
            Some(DataFusionError::Execution(text)) => text.contains(NO_PLAN),
            _ => false,
        };
        if inner || is_transport_error(error) {
            return true;
        }
        current = error.source();
    }
    false
}

fn is_transport_error(error: &(dyn std::error::Error + 'static)) -> bool {
    if let Some(status) = error.downcast_ref::<tonic::Status>() {
        // Errors of the query itself arrive as errors of DataFusion.
        return matches!(
            status.code(),
            Code::Unavailable | Code::Unknown | Code::Internal | Code::Cancelled | Code::DeadlineExceeded
        );
    }
    error.is::<tonic::transport::Error>()
}

/// A connection that classifies its errors.
pub(crate) struct CheckedChannel(pub(crate) Box<dyn WorkerChannel>);

#[async_trait]
impl WorkerChannel for CheckedChannel {
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
        Ok(answers.map_err(classify_connection)?.map(|answer| answer.map_err(classify_connection)).boxed())
    }

    async fn execute_task(
        &mut self,
        headers: HeaderMap,
        request: ExecuteTaskRequest,
        metrics: ExecutionPlanMetricsSet,
        task_ctx: &Arc<TaskContext>,
    ) -> Result<Vec<BoxStream<'static, Result<RecordBatch>>>> {
        let rows =
            self.0.execute_task(headers, request, metrics, task_ctx).await.map_err(classify_connection)?;
        Ok(rows
            .into_iter()
            .map(|rows| rows.map(|batch| batch.map_err(classify_connection)).boxed())
            .collect())
    }

    async fn get_worker_info(&mut self, request: GetWorkerInfoRequest) -> Result<GetWorkerInfoResponse> {
        self.0.get_worker_info(request).await.map_err(classify_connection)
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
            assert!(is_connection_lost(&classify(classify_connection(error))));
        }
        for error in [
            of(tonic::Status::out_of_range("a message is too large")),
            DataFusionError::Execution("transport error".to_owned()),
        ] {
            assert!(!is_connection_lost(&classify(classify_connection(error))));
        }
    }
}
