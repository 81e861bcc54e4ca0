//! Tasks of other nodes' plans: the session in which one runs, and the service that accepts them.

use crate::channels::{Channels, WorkerChannels};
use crate::endpoint_service::EndpointService;
use crate::endpoint_sink::Store;
use crate::error_propagation::{TaskJob, wrap_task};
use crate::membership::{Cluster, TaskGuard, WorkStream};
use crate::task_codec::TaskCodec;
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowshot_engine::WeakEngine;
use bowshot_engine::plan_codec::PlanCodec;
use datafusion::common::{Result, exec_err, internal_datafusion_err, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::execution::SessionState;
use datafusion_distributed::{
    DistributedConfig, DistributedExt, ExecuteTaskRequest, ProducerHead, TaskKey, Worker, WorkerQueryContext,
    WorkerSessionBuilder,
};
use futures::Stream;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;
use uuid::Uuid;

const OPTIONS: HeaderName = HeaderName::from_static("x-bowshot-session-options");

/// Options of a session as a header.
pub(crate) fn header(options: &[(String, String)]) -> Result<HeaderMap> {
    let json = serde_json::to_vec(options)
        .map_err(|error| internal_datafusion_err!("cannot encode session options: {error}"))?;
    let value = HeaderValue::try_from(STANDARD.encode(json))
        .map_err(|error| internal_datafusion_err!("cannot encode session options: {error}"))?;
    Ok(HeaderMap::from_iter([(OPTIONS, value)]))
}

fn options(headers: &HeaderMap) -> Result<Vec<(String, String)>> {
    let Some(value) = headers.get(OPTIONS) else {
        return internal_err!("a task came without the options of its session");
    };
    let json = STANDARD
        .decode(value.as_bytes())
        .map_err(|error| internal_datafusion_err!("cannot decode session options: {error}"))?;
    serde_json::from_slice(&json)
        .map_err(|error| internal_datafusion_err!("cannot decode session options: {error}"))
}

/// Copies the options of datafusion-distributed.
pub(crate) fn copy_distributed_options(given: &ConfigOptions, own: &mut ConfigOptions) {
    if let Some(distributed) = given.extensions.get::<DistributedConfig>() {
        own.extensions.insert(distributed.clone());
    }
}

/// How often finished tasks are released.
const RELEASE_INTERVAL: Duration = Duration::from_millis(500);

/// A task that runs, or has finished and is not released yet. The node does not leave before.
#[derive(Debug)]
struct RunningTask {
    _of_cluster: TaskGuard,
    _one: Arc<()>,
}

/// Releases finished tasks and their memory, as long as the runtime lives.
///
/// The worker's table of tasks drops removed entries at its next use, which may be never. A request for a task that does not
/// exist is such a use.
pub(crate) async fn release_finished(worker: Worker, running: Weak<()>) {
    loop {
        tokio::time::sleep(RELEASE_INTERVAL).await;
        // One reference belongs to the builder of sessions.
        if running.strong_count() > 1 {
            let nothing = ExecuteTaskRequest {
                task_key: TaskKey { query_id: Uuid::nil(), stage_id: 0, task_number: 0 },
                target_partition_start: 0,
                target_partition_end: 0,
                producer_head: ProducerHead::None,
            };
            // The call would wait for the task.
            let _ = tokio::time::timeout(Duration::from_millis(1), worker.execute_task(nothing)).await;
        }
    }
}

/// Builds the sessions of tasks.
pub(crate) struct WorkerSessions {
    engine: WeakEngine,
    portable: PlanCodec,
    channels: Arc<Channels>,
    cluster: Cluster,
    running: Arc<()>,
}

impl WorkerSessions {
    /// A reference for each task, and one more.
    pub(crate) fn running(&self) -> Weak<()> {
        Arc::downgrade(&self.running)
    }

    pub(crate) fn new(
        engine: WeakEngine,
        portable: PlanCodec,
        channels: Arc<Channels>,
        cluster: Cluster,
    ) -> Self {
        Self { engine, portable, channels, cluster, running: Arc::default() }
    }
}

#[async_trait]
impl WorkerSessionBuilder for WorkerSessions {
    async fn build_session_state(&self, ctx: WorkerQueryContext) -> Result<SessionState> {
        let Some(engine) = self.engine.upgrade() else { return exec_err!("the node is shutting down") };
        let options = options(&ctx.headers)?;
        let mut builder = ctx.builder;
        let running = RunningTask { _of_cluster: self.cluster.begin_task(), _one: Arc::clone(&self.running) };
        let config = builder.config().get_or_insert_default();
        config.set_extension(Arc::new(running));
        config.set_extension(Arc::new(TaskJob::new(&engine)));
        config.set_extension(Arc::new(Store::of(&engine)));
        let part = builder
            .with_distributed_user_codec(TaskCodec(self.portable.clone()))
            .with_distributed_channel_resolver(WorkerChannels(Arc::clone(&self.channels)))
            .with_distributed_worker_plan_rewrite_handler(wrap_task);
        engine.state_of_part(part, &options, copy_distributed_options)
    }
}

/// Serves tasks until the cluster ends its connections.
pub(crate) async fn serve(
    worker: Worker,
    endpoints: EndpointService,
    incoming: impl Stream<Item = io::Result<WorkStream>> + Send + 'static,
) {
    let served = tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(crate::channels::ANSWER_TIMEOUT))
        .http2_keepalive_timeout(Some(crate::channels::ANSWER_TIMEOUT))
        .add_service(worker.into_worker_server())
        .add_service(endpoints.into_server())
        .serve_with_incoming(incoming);
    if let Err(error) = served.await {
        tracing::error!(%error, "tasks of other nodes are not served any more");
    }
}
