//! Plans over several nodes. [`membership`] knows the nodes; stages and exchanges of rows are datafusion-distributed's. [`placement`]
//! decides whether a plan leaves its node, [`task_codec`] encodes its tasks, [`worker`] runs them on other nodes. Rows come back to the session
//! that asked, or stay where they were made for their client ([`endpoint_sink`], [`endpoints`], [`endpoint_service`], [`signed_tickets`]).

mod access_rules;
mod channels;
mod connection_error;
mod endpoint_service;
mod endpoint_sink;
mod endpoints;
mod error_propagation;
mod file_splitting;
pub mod membership;
mod node_url;
mod placement;
mod signed_tickets;
mod stages;
mod task_codec;
mod worker;

use crate::membership::Cluster;
use bowshot_engine::Engine;
use bowshot_engine::plan_codec::PlanCodec;
use bowshot_files::plan_codec::PortableFiles;
use bowshot_formats::decoded_columns::ColumnCache;
use channels::Channels;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion_distributed::{DistributedCodec, Worker};
use endpoint_service::EndpointService;
use placement::Nodes;
pub use placement::Placement;
pub use stages::QueryStages;
use std::sync::Arc;
use worker::WorkerSessions;

/// Makes a server a node of a cluster: it runs tasks of other nodes, and places its own plans, whose stages it records.
pub fn join(
    cluster: &Cluster,
    engine: &Engine,
    (environment, columns): (&Arc<RuntimeEnv>, &Arc<ColumnCache>),
    (placement, stages): (Placement, &QueryStages),
) -> bowshot_api::Result<()> {
    let files = PortableFiles::new(environment, columns, placement.max_open_files)
        .map_err(|error| bowshot_api::Error::internal(error.to_string()))?;
    let portable = PlanCodec::new(files, Arc::new(DistributedCodec));
    let channels = Channels::new(cluster.clone());
    let sessions =
        WorkerSessions::new(engine.downgrade(), portable.clone(), Arc::clone(&channels), cluster.clone());
    let running = sessions.running();
    let worker = Worker::from_session_builder(sessions)
        .with_runtime_env(Arc::clone(environment))
        .with_version(cluster.myself().build);
    if let Some(incoming) = cluster.work() {
        let endpoints = EndpointService(engine.downgrade());
        // Tasks run where their rows are polled: on the query runtime.
        engine.runtime().handle().spawn(worker::serve(worker.clone(), endpoints, incoming));
    }
    engine.runtime().handle().spawn(worker::release_finished(worker.clone(), running));
    engine.runtime().handle().spawn(access_rules::follow(cluster.clone(), engine.downgrade()));
    let nodes = Nodes::new(
        engine.downgrade(),
        (cluster.clone(), channels),
        (worker, portable),
        (placement, stages.clone()),
    );
    engine.distribute_by(Arc::new(nodes));
    Ok(())
}
