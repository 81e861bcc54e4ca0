//! This server as a node of a cluster: its description for other nodes, and the cluster of its data.

use super::address::{Addresses, Reach, reachable, resolve};
use crate::cluster::mistake;
use crate::config::{Config, Listen};
use anyhow::{Context, Result};
use bowshot_cluster::membership::{Cluster, Error, Settings};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::task::{JoinSet, spawn_blocking};
use uuid::Uuid;

/// Versions that two nodes must share to run plans of one another.
const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), " datafusion-55.2.0 distributed-4.0.0");
/// The file in the data folder with the cluster of the data.
const CLUSTER_FILE: &str = "cluster.id";
/// Until another node is known, this one may still adopt a cluster.
const REMEMBER_AFTER: Duration = Duration::from_secs(10);

/// Takes this server's place in its cluster; `None` for a server that is alone.
///
/// # Errors
/// [`Usage`](crate::usage::Usage) for settings and files that cannot be used, another error for a port that is taken and
/// for nodes that do not take this one.
pub(super) async fn join(
    config: &Config,
    data: Option<&Path>,
    addresses: &Addresses,
) -> Result<Option<Node>> {
    let Some(security) = config.cluster.security()? else { return Ok(None) };
    // Certificates or the secret authenticate nodes; a secret works only within this machine.
    let found = resolve("--cluster", &config.cluster.listen, Reach::Anywhere).await?;
    let Some(listen) = found.and_then(|found| found.first().copied()) else { return Ok(None) };
    let engine = config.engine();
    let advertise = Some(config.cluster.advertise.clone()).filter(|address| !address.is_empty());
    let settings = Settings {
        public: public(config, addresses, advertise.as_deref(), listen),
        advertise,
        join: config.cluster.join(),
        build: BUILD.to_owned(),
        heartbeat: config.cluster.heartbeat,
        suspect_after: config.cluster.suspect_after,
        dead_after: config.cluster.dead_after,
        threads: u32::try_from(engine.threads).unwrap_or(u32::MAX),
        memory: engine.memory_bytes as u64,
        cluster: data.map(remembered).transpose()?.flatten(),
        ..Settings::new(listen, security)
    };
    let cluster = Cluster::start(settings).await.map_err(|error| match error {
        error @ (Error::Listen { .. } | Error::Refused { .. }) => anyhow::Error::from(as_door(&error)),
        error => mistake(error).into(),
    })?;
    let remember = data.map(|folder| remember(cluster.clone(), folder.join(CLUSTER_FILE)));
    Ok(Some(Node { cluster, _remember: JoinSet::from_iter(remember) }))
}

/// This server in its cluster. Dropping it leaves without notice.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) cluster: Cluster,
    _remember: JoinSet<()>,
}

/// An error of the machine or of other nodes, with its hint.
fn as_door(error: &Error) -> bowshot_api::Error {
    let door = bowshot_api::Error::new(bowshot_api::ErrorKind::Unavailable, error.to_string());
    match error.hint() {
        Some(hint) => door.with_hint(hint),
        None => door,
    }
}

/// The client address of this node: the configured one, else the host that other nodes use.
fn public(config: &Config, addresses: &Addresses, advertise: Option<&str>, listen: SocketAddr) -> String {
    if !config.cluster.public.is_empty() || config.flight == Listen::Off {
        return config.cluster.public.clone();
    }
    let (Some(uri), Some(flight)) = (addresses.flight_uri(), addresses.flight) else { return String::new() };
    let is_local = !flight.ip().is_unspecified();
    match advertise.and_then(|address| address.rsplit_once(':')) {
        // A front end with one address is reachable only there.
        _ if is_local => uri,
        Some((host, _)) => uri.replace(&reachable(flight).to_string(), &format!("{host}:{}", flight.port())),
        None => uri.replace(
            &reachable(flight).to_string(),
            &SocketAddr::new(listen.ip(), flight.port()).to_string(),
        ),
    }
}

/// The cluster that the data of a folder belongs to.
fn remembered(folder: &Path) -> Result<Option<Uuid>> {
    let path = folder.join(CLUSTER_FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            let id = Uuid::parse_str(text.trim());
            id.map(Some).with_context(|| format!("`{}` has no cluster identifier", path.display()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read `{}`", path.display())),
    }
}

/// Records the cluster of the data as soon as another node confirms it, or none has for a while.
async fn remember(cluster: Cluster, path: PathBuf) {
    let mut changes = cluster.changes();
    let others = async {
        while cluster.members().len() < 2 {
            if changes.changed().await.is_err() {
                return;
            }
        }
    };
    _ = tokio::time::timeout(REMEMBER_AFTER, others).await;
    let id = cluster.settle();
    let written = spawn_blocking(move || match path.exists() {
        true => Ok(()),
        false => std::fs::write(&path, format!("{id}\n")),
    });
    if let Ok(Err(error)) = written.await {
        tracing::warn!(%error, "cannot store the cluster identifier in the data folder");
    }
}
