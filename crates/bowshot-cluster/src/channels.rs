//! Connections to other nodes, one for each, shared by everything that runs there.

use crate::connection_error::{CheckedChannel, classify_connection};
use crate::membership::Cluster;
use crate::task_codec::EncodedTask;
use async_trait::async_trait;
use bowshot_engine::plan_codec::PlanCodec;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_distributed::grpc::{BoxCloneSyncChannel, create_worker_client};
use datafusion_distributed::{
    ChannelResolver, CoordinatorToWorkerMsg, ExecuteTaskRequest, GetWorkerInfoRequest, GetWorkerInfoResponse,
    MaybeEncoded, SetPlanRequest, WorkerChannel, WorkerToCoordinatorMsg,
};
use futures::stream::BoxStream;
use http::HeaderMap;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tonic::transport::Endpoint;
use tower::service_fn;
use url::Url;

/// How long a node may take to answer before it counts as lost.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// How often an idle connection is pinged.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);

/// The connections of this node.
#[derive(Debug)]
pub(crate) struct Channels {
    cluster: Cluster,
    open: Mutex<HashMap<String, BoxCloneSyncChannel>>,
}

impl Channels {
    pub(crate) fn new(cluster: Cluster) -> Arc<Self> {
        Arc::new(Self { cluster, open: Mutex::default() })
    }

    /// Drops the connection to a node.
    pub(crate) fn forget(&self, address: &str) {
        self.open.lock().remove(address);
    }

    /// The connection to a node, opened at its first use.
    pub(crate) async fn channel(&self, url: &Url) -> Result<BoxCloneSyncChannel> {
        let address = url.authority().to_owned();
        if let Some(channel) = self.open.lock().get(&address) {
            return Ok(channel.clone());
        }
        let (cluster, to) = (self.cluster.clone(), address.clone());
        let connect = service_fn(move |_| {
            let (cluster, to) = (cluster.clone(), to.clone());
            async move { cluster.connect(&to).await.map(TokioIo::new) }
        });
        let channel = Endpoint::from_shared(url.to_string())
            .map_err(unreachable(&address))?
            .connect_timeout(ANSWER_TIMEOUT)
            .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
            .keep_alive_timeout(ANSWER_TIMEOUT)
            .keep_alive_while_idle(true)
            .tcp_nodelay(true)
            .connect_with_connector(connect)
            .await
            .map_err(unreachable(&address))?;
        let channel = BoxCloneSyncChannel::new(channel);
        self.open.lock().insert(address, channel.clone());
        Ok(channel)
    }
}

fn unreachable(address: &str) -> impl FnOnce(tonic::transport::Error) -> DataFusionError {
    let message = format!("the node at {address} cannot be reached");
    move |error| DataFusionError::Context(message, Box::new(DataFusionError::External(Box::new(error))))
}

/// Connections from which tasks of other nodes' plans read rows.
#[derive(Debug, Clone)]
pub(crate) struct WorkerChannels(pub(crate) Arc<Channels>);

#[async_trait]
impl ChannelResolver for WorkerChannels {
    async fn get_worker_client_for_url(&self, url: &Url) -> Result<Box<dyn WorkerChannel>> {
        let channel = self.0.channel(url).await.map_err(classify_connection)?;
        Ok(Box::new(CheckedChannel(create_worker_client(channel))))
    }
}

/// Connections over which tasks of one plan of this node are sent.
#[derive(Debug, Clone)]
pub(crate) struct CoordinatorChannels {
    pub(crate) channels: Arc<Channels>,
    pub(crate) portable: PlanCodec,
    /// With the functions of the receiving node.
    pub(crate) context: Arc<TaskContext>,
}

#[async_trait]
impl ChannelResolver for CoordinatorChannels {
    async fn get_worker_client_for_url(&self, url: &Url) -> Result<Box<dyn WorkerChannel>> {
        let channel = self.channels.channel(url).await.map_err(classify_connection)?;
        let inner: Box<dyn WorkerChannel> = Box::new(CheckedChannel(create_worker_client(channel)));
        let (portable, context) = (self.portable.clone(), Arc::clone(&self.context));
        Ok(Box::new(EncodingChannel { inner, portable, context }))
    }
}

/// Encodes the plans that it sends.
struct EncodingChannel {
    inner: Box<dyn WorkerChannel>,
    portable: PlanCodec,
    context: Arc<TaskContext>,
}

#[async_trait]
impl WorkerChannel for EncodingChannel {
    async fn coordinator_channel(
        &mut self,
        headers: HeaderMap,
        mut set_plan_request: SetPlanRequest,
        c2w_stream: BoxStream<'static, CoordinatorToWorkerMsg>,
        metrics: ExecutionPlanMetricsSet,
        task_ctx: &Arc<TaskContext>,
    ) -> Result<BoxStream<'static, Result<WorkerToCoordinatorMsg>>> {
        if let MaybeEncoded::Decoded(plan) = &set_plan_request.plan {
            let task = EncodedTask::encode(plan, &self.portable, &self.context)?;
            set_plan_request.plan = MaybeEncoded::Decoded(task);
        }
        self.inner.coordinator_channel(headers, set_plan_request, c2w_stream, metrics, task_ctx).await
    }

    async fn execute_task(
        &mut self,
        headers: HeaderMap,
        request: ExecuteTaskRequest,
        metrics: ExecutionPlanMetricsSet,
        task_ctx: &Arc<TaskContext>,
    ) -> Result<Vec<BoxStream<'static, Result<RecordBatch>>>> {
        self.inner.execute_task(headers, request, metrics, task_ctx).await
    }

    async fn get_worker_info(&mut self, request: GetWorkerInfoRequest) -> Result<GetWorkerInfoResponse> {
        self.inner.get_worker_info(request).await
    }
}
