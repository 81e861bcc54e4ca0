//! Starts the built program as users do, waits until it says that it is ready, reads its metrics, ends it.

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longest wait for the program to be ready.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How often files and metrics are looked at while waiting.
const POLL: Duration = Duration::from_millis(50);
/// Lines of the server's log that a report shows.
const LOG_LINES: usize = 60;

/// A running `bowshot serve`, with its own folder. Ended when dropped.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    folder: TempDir,
    flight: SocketAddr,
    http: SocketAddr,
}

/// The gauges and counters of one scrape, labels left out of the names and summed up.
pub type Metrics = BTreeMap<String, f64>;

impl ServerProcess {
    /// Starts `program serve` on free ports with `tables` (`NAME=PATH`) and a configuration file.
    pub async fn start(program: &Path, tables: &[String], configuration: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let (ports, log) = (folder.path().join("ports.json"), folder.path().join("log"));
        let settings = folder.path().join("bowshot.toml");
        std::fs::write(&settings, configuration)?;
        let mut child = Command::new(program)
            .arg("serve")
            .args(tables)
            .args(["--flight", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", "memory", "--config"])
            .arg(&settings)
            .arg("--ports-file")
            .arg(&ports)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .spawn()
            .with_context(|| format!("cannot start `{}`", program.display()))?;
        match wait_for(&ports, &mut child).await {
            Ok((flight, http)) => Ok(Self { child, folder, flight, http }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error.context(tail(&log)))
            }
        }
    }

    /// Where Flight listens.
    pub fn flight(&self) -> SocketAddr {
        self.flight
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The end of its log.
    pub fn log(&self) -> String {
        tail(&self.folder.path().join("log"))
    }

    /// What `/metrics` says now.
    pub async fn metrics(&self) -> Result<Metrics> {
        let mut stream = TcpStream::connect(self.http).await?;
        let request = format!("GET /metrics HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", self.http);
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let Some((head, body)) = answer.split_once("\r\n\r\n") else { bail!("no answer to /metrics") };
        if !head.starts_with("HTTP/1.1 200") {
            bail!("/metrics answered: {head}");
        }
        Ok(parse(body))
    }

    /// Waits until `accepted` holds for the metrics, at most `limit`.
    pub async fn wait_metrics(
        &self,
        limit: Duration,
        accepted: impl Fn(&Metrics) -> Result<(), String>,
    ) -> Result<Metrics> {
        let end = Instant::now() + limit;
        loop {
            let metrics = self.metrics().await?;
            match accepted(&metrics) {
                Ok(()) => return Ok(metrics),
                Err(text) if Instant::now() > end => bail!("{text}"),
                Err(_) => tokio::time::sleep(POLL).await,
            }
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn wait_for(ports: &PathBuf, child: &mut Child) -> Result<(SocketAddr, SocketAddr)> {
    let end = Instant::now() + START_TIMEOUT;
    while Instant::now() < end {
        if let Some(status) = child.try_wait()? {
            bail!("the server ended with {status}");
        }
        if let Ok(text) = std::fs::read_to_string(ports)
            && let Ok(ports) = serde_json::from_str::<serde_json::Value>(&text)
        {
            return Ok((address(&ports["flight"])?, address(&ports["http"])?));
        }
        tokio::time::sleep(POLL).await;
    }
    bail!("the server was not ready in time")
}

fn address(uri: &serde_json::Value) -> Result<SocketAddr> {
    let uri = uri.as_str().context("the ports file names no address")?;
    let (_, address) = uri.split_once("://").with_context(|| format!("`{uri}` is not an address"))?;
    Ok(address.parse()?)
}

fn parse(body: &str) -> Metrics {
    let mut metrics = Metrics::new();
    for line in body.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, value)) = line.rsplit_once(' ') else { continue };
        let name = name.split('{').next().unwrap_or(name);
        if let Ok(value) = value.parse::<f64>() {
            *metrics.entry(name.to_owned()).or_default() += value;
        }
    }
    metrics
}

fn tail(log: &Path) -> String {
    let text =
        std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    format!("--- end of the server's log ---\n{}", lines[lines.len().saturating_sub(LOG_LINES)..].join("\n"))
}
