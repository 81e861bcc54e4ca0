//! Results whose rows stay on the nodes that made them until their clients come for them: what session, engine and cluster
//! say to one another about it.
//!
//! ```text
//! node that was asked                                   node that makes rows
//! session ── Spread ─▶ Distribution::place              plan ── rows ─▶ LocalEndpoint ◀── EndpointStore::find ── its client
//!         ◀─ ResultEndpoints (where, ready, state) ────▶ (in the session)
//! ```
//!
//! An endpoint is all rows of a result that one node makes. The node that was asked knows where they are, whether somebody reads
//! them, and when nobody will any more; it alone ends them. Where it is lost, they end by themselves.

use async_trait::async_trait;
use bowshot_api::{BatchStream, Layout, Location, Origin, Principal, QueryId, Result};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use futures::future::BoxFuture;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// An endpoint of a result, on whatever node it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EndpointId {
    /// The rows of one run of a plan: another one if the plan is placed again.
    pub run: Uuid,
    /// Which of its endpoints.
    pub index: u32,
}

/// What a node must know to hand rows of a result out.
#[derive(Debug, Clone)]
pub struct Handout {
    /// The query that the rows are of, as its client and the node that was asked know it.
    pub query: QueryId,
    /// Who may have them.
    pub principal: Principal,
    /// How they look on the wire.
    pub layout: Layout,
    /// Schema of the result in that layout.
    pub schema: SchemaRef,
}

/// A result that may be handed out by several nodes.
#[derive(Debug, Clone)]
pub struct Spread {
    /// What the nodes must know.
    pub handout: Handout,
    /// Endpoints that its client wants at most.
    pub most: usize,
}

/// What an endpoint's rows and its reader do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EndpointState {
    /// Rows that were made so far.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Whether it has, or has had, a reader.
    pub claimed: bool,
    /// Whether it has one now.
    pub is_read: bool,
    /// Whether rows lie ready for that reader.
    pub rows_ready: bool,
    /// How long the reader has not taken any.
    pub idle: Duration,
    /// Whether the work waits for the reader, or has ended.
    pub waits: bool,
}

/// What starting a plan gives that nodes may hand out: streams of this node, or one without rows and the endpoints.
pub type Opened = (Vec<BatchStream>, Option<Arc<dyn ResultEndpoints>>);

/// Starts such a plan.
pub struct Opening(pub(crate) BoxFuture<'static, Result<Opened>>);

bowshot_api::debug_fields!(Opening {});

/// The endpoints of one result, as the node sees them that was asked.
#[async_trait]
pub trait ResultEndpoints: Debug + Send + Sync {
    /// Where they are, in their order.
    fn locations(&self) -> Vec<Location>;

    /// Waits until all of them are there, and one has rows or has ended.
    ///
    /// # Errors
    /// What it has failed with; `Unavailable` when a node does not answer.
    async fn ready(&self) -> Result<()>;

    /// What they do.
    ///
    /// # Errors
    /// `Unavailable` when a node does not answer, `NotFound` when it has forgotten.
    async fn states(&self) -> Result<Vec<EndpointState>>;

    /// Ends those that have not ended; their readers are told why. Nodes that do not answer are left alone.
    async fn fail(&self, error: &bowshot_api::Error);
}

/// The endpoints on this node, whoever was asked.
pub trait EndpointStore: Debug + Send + Sync {
    /// The place for the rows of an endpoint, which so many streams fill; the same one for each of them. `origin` is what the
    /// rows may be views of.
    ///
    /// # Errors
    /// `LimitReached` with too many of them.
    fn open(
        &self,
        id: EndpointId,
        handout: &Handout,
        streams: usize,
        origin: Option<Arc<dyn Origin>>,
    ) -> Result<Arc<dyn LocalEndpoint>>;

    /// An endpoint that was opened. For a while those are found too that have ended.
    fn find(&self, id: EndpointId) -> Option<Arc<dyn LocalEndpoint>>;
}

/// The rows of an endpoint on this node.
#[async_trait]
pub trait LocalEndpoint: Debug + Send + Sync {
    /// Adds rows; waits, or puts them on disk, when there are many. `false` if nobody wants more.
    ///
    /// # Errors
    /// What ends the whole result, such as a full disk.
    async fn put(&self, batch: RecordBatch) -> Result<bool>;

    /// One of the streams that fill it has ended.
    fn stream_ended(&self);

    /// Waits until its reader has had all of it, or has left, or it has failed.
    ///
    /// # Errors
    /// What it has failed with.
    async fn finished(&self) -> Result<()>;

    /// Waits until there is something to read, or it has ended.
    ///
    /// # Errors
    /// What it has failed with.
    async fn ready(&self) -> Result<()>;

    /// What its rows and its reader do.
    fn state(&self) -> EndpointState;

    /// Ends it with an error, unless it has ended.
    fn fail(&self, error: bowshot_api::Error);

    /// Its reader: of the principal whose result it is, and once.
    ///
    /// # Errors
    /// `NotFound` for others, and when it has been read; what it has failed with.
    fn attach(self: Arc<Self>, principal: &Principal) -> Result<BatchStream>;
}
