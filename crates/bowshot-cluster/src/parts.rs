//! Parts of plans that other nodes have sent: the session in which one runs, and the service that takes them in.

use crate::channels::{Between, Channels};
use crate::parcel::ParcelCodec;
use crate::service::EndpointService;
use crate::sink::Store;
use crate::telling::{OfPart, telling};
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowshot_engine::WeakEngine;
use bowshot_engine::plan_codec::PlanCodec;
use bowshot_membership::{Cluster, Part, WorkStream};
use datafusion::common::{Result, exec_err, internal_datafusion_err, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::execution::SessionState;
use datafusion_distributed::{
    DistributedConfig, DistributedExt, ExecuteTaskRequest, ProducerHead, TaskKey, Worker, WorkerQueryContext,
    WorkerSessionBuilder,
};
use futures::{Stream, StreamExt};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;
use uuid::Uuid;

/// The header in which the options of the session travel.
const OPTIONS: HeaderName = HeaderName::from_static("x-bowshot-session-options");

/// Options of a session as a header.
pub(crate) fn header(options: &[(String, String)]) -> Result<HeaderMap> {
    let json = serde_json::to_vec(options)
        .map_err(|error| internal_datafusion_err!("options cannot be written down: {error}"))?;
    let value = HeaderValue::try_from(STANDARD.encode(json))
        .map_err(|error| internal_datafusion_err!("options cannot be written down: {error}"))?;
    Ok(HeaderMap::from_iter([(OPTIONS, value)]))
}

fn options(headers: &HeaderMap) -> Result<Vec<(String, String)>> {
    let Some(value) = headers.get(OPTIONS) else {
        return internal_err!("a part of a plan came without the options of its session");
    };
    let json = STANDARD
        .decode(value.as_bytes())
        .map_err(|error| internal_datafusion_err!("options cannot be read: {error}"))?;
    serde_json::from_slice(&json).map_err(|error| internal_datafusion_err!("options cannot be read: {error}"))
}

/// Takes over what plans on several nodes are told among the options.
pub(crate) fn keep(given: &ConfigOptions, own: &mut ConfigOptions) {
    if let Some(distributed) = given.extensions.get::<DistributedConfig>() {
        own.extensions.insert(distributed.clone());
    }
}

/// How often parts that are over are looked for.
const LOOKED_EVERY: Duration = Duration::from_millis(500);

/// A part that is kept: running, or over and not let go of yet. The node does not leave before.
#[derive(Debug)]
struct Kept {
    _of_cluster: Part,
    _one: Arc<()>,
}

/// Lets go of parts that are over, with the memory that they hold, as long as there is a runtime to do it.
///
/// The table of tasks drops what was taken out of it when it is used the next time, which may be never. Asking it for a task
/// that there never is is such a use.
pub(crate) async fn let_go(worker: Worker, kept: Weak<()>) {
    loop {
        tokio::time::sleep(LOOKED_EVERY).await;
        // One is that of who makes them.
        if kept.strong_count() > 1 {
            let nothing = ExecuteTaskRequest {
                task_key: TaskKey { query_id: Uuid::nil(), stage_id: 0, task_number: 0 },
                target_partition_start: 0,
                target_partition_end: 0,
                producer_head: ProducerHead::None,
            };
            // It would wait for the task.
            let _ = tokio::time::timeout(Duration::from_millis(1), worker.execute_task(nothing)).await;
        }
    }
}

/// Makes the sessions in which parts run.
pub(crate) struct PartSessions {
    engine: WeakEngine,
    portable: PlanCodec,
    channels: Arc<Channels>,
    cluster: Cluster,
    kept: Arc<()>,
}

impl PartSessions {
    /// As many of these as there are parts, and one.
    pub(crate) fn kept(&self) -> Weak<()> {
        Arc::downgrade(&self.kept)
    }

    pub(crate) fn new(
        engine: WeakEngine,
        portable: PlanCodec,
        channels: Arc<Channels>,
        cluster: Cluster,
    ) -> Self {
        Self { engine, portable, channels, cluster, kept: Arc::default() }
    }
}

#[async_trait]
impl WorkerSessionBuilder for PartSessions {
    async fn build_session_state(&self, ctx: WorkerQueryContext) -> Result<SessionState> {
        let Some(engine) = self.engine.upgrade() else { return exec_err!("the node is shutting down") };
        let options = options(&ctx.headers)?;
        let mut builder = ctx.builder;
        let kept = Kept { _of_cluster: self.cluster.part(), _one: Arc::clone(&self.kept) };
        let config = builder.config().get_or_insert_default();
        config.set_extension(Arc::new(kept));
        config.set_extension(Arc::new(OfPart::new(&engine)));
        config.set_extension(Arc::new(Store::of(&engine)));
        let part = builder
            .with_distributed_user_codec(ParcelCodec(self.portable.clone()))
            .with_distributed_channel_resolver(Between(Arc::clone(&self.channels)))
            .with_distributed_worker_plan_rewrite_handler(telling);
        engine.state_of_part(part, &options, keep)
    }
}

/// Works on parts until the cluster has no more connections.
pub(crate) async fn serve(
    worker: Worker,
    endpoints: EndpointService,
    incoming: impl Stream<Item = io::Result<WorkStream>> + Send + 'static,
) {
    let served = tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(crate::channels::PATIENCE))
        .http2_keepalive_timeout(Some(crate::channels::PATIENCE))
        .add_service(worker.into_worker_server())
        .add_service(endpoints.into_server())
        .serve_with_incoming(incoming.map(|stream| stream.map(Incoming)));
    if let Err(error) = served.await {
        tracing::error!(%error, "parts of other nodes' plans are no longer worked on");
    }
}

/// A connection of another node.
struct Incoming(WorkStream);

impl Connected for Incoming {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Incoming {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Incoming {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
