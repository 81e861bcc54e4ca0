//! Several nodes, one server: plans of sessions over the nodes of a cluster.
//!
//! ```text
//!  session's plan ── placement ─▶ stages and their tasks (datafusion-distributed)
//!                                   │ channels: each task's plan as bytes (parcel), over the cluster's own connections
//!                                   ▼
//!                                 parts: on each node, a session as that of the query, and the scan over its own files
//!                                   │ rows as Arrow, between the nodes and to the one that asked
//!                                   ▼
//!                                 one stream, in the session that asked; or the rows stay where they were made ([`sink`]),
//!                                 and their client comes for them ([`endpoints`], [`service`], [`vouchers`])
//! ```
//!
//! What a stage is, where plans are cut and how rows are exchanged is datafusion-distributed's. Here it is decided whether a plan
//! may leave its node at all ([`placement`]), how it travels ([`parcel`]), and what it finds where it arrives ([`parts`]).
//! Who the nodes are, `bowshot-membership` knows.

mod broken_wire;
mod channels;
mod endpoints;
mod guarded;
mod node_url;
mod parcel;
mod parts;
mod pieces;
mod placement;
mod service;
mod sink;
mod stages;
mod telling;
mod vouchers;

use bowshot_engine::Engine;
use bowshot_engine::portable::Portable;
use bowshot_files::plan_codec::PortableFiles;
use bowshot_formats::decoded_columns::ColumnCache;
use bowshot_membership::Cluster;
use channels::Channels;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion_distributed::{DistributedCodec, Worker};
use parts::PartSessions;
use placement::Nodes;
use service::EndpointService;
pub use stages::QueryStages;
use std::sync::Arc;

/// How plans are placed.
#[derive(Debug, Clone)]
pub struct Placement {
    /// Bytes of files for each processor of a node from which on a scan is worth another node.
    pub bytes_per_thread: usize,
    /// Files of other nodes' scans that are open at once.
    pub max_open_files: usize,
}

impl Default for Placement {
    fn default() -> Self {
        Self { bytes_per_thread: 16 << 20, max_open_files: 1024 }
    }
}

/// Makes a server one of the nodes of a cluster: it works on parts of plans of others, and places its own, whose stages it notes.
///
/// # Errors
/// When the files of other nodes' scans cannot be made known to the engine; does not happen.
pub fn join(
    cluster: &Cluster,
    engine: &Engine,
    (environment, columns): (&Arc<RuntimeEnv>, &Arc<ColumnCache>),
    (placement, stages): (Placement, &QueryStages),
) -> bowshot_api::Result<()> {
    let files = PortableFiles::new(environment, columns, placement.max_open_files)
        .map_err(|error| bowshot_api::Error::internal(error.to_string()))?;
    let portable = Portable::new(files, Arc::new(DistributedCodec));
    let channels = Channels::new(cluster.clone());
    let sessions =
        PartSessions::new(engine.downgrade(), portable.clone(), Arc::clone(&channels), cluster.clone());
    let kept = sessions.kept();
    let worker = Worker::from_session_builder(sessions)
        .with_runtime_env(Arc::clone(environment))
        .with_version(cluster.myself().build);
    if let Some(incoming) = cluster.work() {
        let endpoints = EndpointService(engine.downgrade());
        // What a part computes, it computes where its rows are asked for: on the threads of queries.
        engine.runtime().handle().spawn(parts::serve(worker.clone(), endpoints, incoming));
    }
    engine.runtime().handle().spawn(parts::let_go(worker.clone(), kept));
    engine.runtime().handle().spawn(guarded::keep(cluster.clone(), engine.downgrade()));
    let nodes = Nodes::new(
        engine.downgrade(),
        (cluster.clone(), channels),
        (worker, portable),
        (placement, stages.clone()),
    );
    engine.distribute_by(Arc::new(nodes));
    Ok(())
}
