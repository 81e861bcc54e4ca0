//! `bowshot demo --nodes N`: further servers over the same data, each a process of its own, in a cluster with the first. They end with it.

use super::tables::Table;
use crate::config::{ClusterSettings, Listen};
use anyhow::{Context, Result, bail};
use arrow::array::RecordBatch;
use bowshot_api::Secret;
use bowshot_flight::client::{Client, Login, Target};
use futures::TryStreamExt;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::time::sleep;
use uuid::Uuid;

const START_TIMEOUT: Duration = Duration::from_secs(60);
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a starting or ending node is checked.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

pub(super) fn first() -> ClusterSettings {
    let secret = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    ClusterSettings {
        listen: Listen::On("127.0.0.1:0".to_owned()),
        secret: Some(Secret::new(secret)),
        ..ClusterSettings::default()
    }
}

/// The other nodes. Dropping this ends them.
#[derive(Debug)]
pub(super) struct Nodes {
    children: Vec<(Child, PathBuf)>,
    folder: TempDir,
}

impl Nodes {
    pub(super) fn start(number: usize, data: &Path, join: &str, cluster: &ClusterSettings) -> Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a folder for the nodes")?;
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let mut nodes = Self { children: Vec::new(), folder };
        for node in 0..number {
            let ports = nodes.folder.path().join(format!("{node}.json"));
            let mut command = Command::new(&program);
            for (name, _) in std::env::vars_os() {
                if name.to_string_lossy().starts_with("BOWSHOT_") {
                    command.env_remove(name);
                }
            }
            if let Some(secret) = &cluster.secret {
                command.env("BOWSHOT_CLUSTER_SECRET", secret.expose());
            }
            command.args(["serve", "--flight", "127.0.0.1:0", "--http", "off", "--data", "memory"]);
            command.args([
                "--cluster",
                "127.0.0.1:0",
                "--join",
                join,
                "--log",
                "warn",
                "--log-format",
                "json",
            ]);
            command.arg("--ports-file").arg(&ports).args(paths(data));
            let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
            nodes.children.push((child.context("cannot start a node")?, ports));
        }
        Ok(nodes)
    }

    /// Waits until all are ready; returns their client addresses.
    pub(super) async fn ready(&mut self) -> Result<Vec<String>> {
        let mut uris = Vec::new();
        for (child, ports) in &mut self.children {
            let deadline = Instant::now() + START_TIMEOUT;
            let text = loop {
                if let Ok(text) = std::fs::read_to_string(&ports) {
                    break text;
                }
                if let Some(status) = child.try_wait().context("cannot check a node")? {
                    bail!("a node ended before it was ready: {status}");
                }
                if Instant::now() > deadline {
                    bail!("a node is not ready after a minute");
                }
                sleep(LOOK_INTERVAL).await;
            };
            let ports: serde_json::Value =
                serde_json::from_str(&text).context("a ports file is not valid JSON")?;
            uris.extend(ports.get("flight").and_then(|uri| uri.as_str()).map(str::to_owned));
        }
        Ok(uris)
    }
}

/// Waits until the server at an address uses a number of nodes, including itself.
pub(super) async fn wait_for_members(uri: &str, wanted: usize) -> Result<()> {
    let client = Client::connect(&Target::new(uri, Login::Anonymous)).await?;
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        let query = client.execute("SELECT node_id FROM system.nodes WHERE takes_work").await?;
        let batches: Vec<RecordBatch> = query.batches().try_collect().await?;
        if batches.iter().map(RecordBatch::num_rows).sum::<usize>() >= wanted {
            return Ok(client.close().await?);
        }
        if Instant::now() > deadline {
            bail!("the nodes have not found one another after a minute");
        }
        sleep(LOOK_INTERVAL).await;
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for (child, _) in &self.children {
            if let Ok(id) = i32::try_from(child.id()) {
                // An ended process needs no signal.
                _ = kill(Pid::from_raw(id), Signal::SIGTERM);
            }
        }
        let deadline = Instant::now() + END_TIMEOUT;
        for (child, _) in &mut self.children {
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(LOOK_INTERVAL);
            }
            _ = child.kill();
            _ = child.wait();
        }
    }
}

/// The tables of the demo as arguments of a server.
pub(super) fn paths(folder: &Path) -> Vec<String> {
    Table::ALL.map(|table| format!("{}={}", table.name(), folder.join(table.name()).display())).to_vec()
}
