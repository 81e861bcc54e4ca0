//! `bowshot demo`: TPC-H data, a server over it, and a few queries through Flight over loopback with their speed. Then the server stays up, with
//! client code to paste.

mod client_code;
mod data;
mod measure;
mod memory;
mod nodes;
mod tables;

use crate::config::{ClusterSettings, Config, Flags, TlsFiles};
use crate::ports_file::PortsFile;
use crate::serve::{self, Running, Signals};
use crate::usage::Usage;
use crate::{logging, open_files};
use anyhow::{Context, Result, bail};
use bowshot_flight::client::{Client, Login, Target};
use clap::Args;
use nodes::Nodes;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes TPC-H data, serves it, runs queries through Flight SQL and shows how fast they came.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Scale factor: 1 is 6 million order lines, about 1 GB in memory and 300 MB on disk
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    scale: f64,
    /// Folder of the data [default: one for each scale under the user's cache directory]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Address of the Arrow Flight SQL front end
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:50051")]
    flight: String,
    /// Address of the HTTP front end, or `off`
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    http: String,
    /// Servers of a cluster on this machine, over the same data; all but the first take free ports
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=16))]
    nodes: u8,
    /// Write addresses and process id as JSON into this file when ready
    #[arg(long, value_name = "FILE")]
    ports_file: Option<String>,
    /// End after the queries instead of leaving the server up
    #[arg(long)]
    exit: bool,
    /// Make the data and end
    #[arg(long, hide = true)]
    only_data: bool,
}

/// Runs the demo to its end, or until a signal comes.
///
/// # Errors
/// [`Usage`] for a scale that makes no sense; other errors when the data cannot be made or a query fails.
pub(crate) async fn run(args: DemoArgs) -> Result<()> {
    if !(args.scale.is_finite() && (0.001..=1_000.0).contains(&args.scale)) {
        bail!(Usage::new(format!("`--scale {}` is not between 0.001 and 1000", args.scale)));
    }
    let folder = args.folder()?;
    if args.only_data {
        return data::make(&folder, args.scale);
    }
    let flags = args.flags(&folder);
    let mut config = Config::load(&flags, std::env::vars_os())?;
    if !data::is_complete(&folder, args.scale) {
        // The data takes its time to make, and the server starts behind it.
        serve::check_ports(&config).await?;
        make_in_child(&args)?;
    }
    // A certificate from the environment is for named servers; the demo connects to itself without one.
    config.tls = TlsFiles::default();
    config.cluster = if args.nodes > 1 { nodes::first() } else { ClusterSettings::default() };
    // The ports file is written when all nodes are ready.
    let ports_file = if args.nodes > 1 { config.ports_file.take() } else { None };
    logging::start(&config)?;
    open_files::raise_limit();
    let signals = Signals::listen()?;
    let running = serve::start(&config).await?;
    let uri =
        running.addresses.flight_uri().context("the demo needs its Flight front end: `--flight` is off")?;
    say(&format!("serving TPC-H at scale {} from {} on {uri}\n", args.scale, folder.display()))?;
    // Ends behind the first node.
    let _nodes = match running.addresses.cluster_address() {
        Some(join) => Some(start_nodes(&args, &folder, (&join, &uri), &config.cluster).await?),
        None => None,
    };
    let _ports = ports_file.map(|path| PortsFile::write(&path, &running.addresses)).transpose()?;
    show_and_stay(running, signals, &args, &uri).await
}

/// Starts the other nodes; returns their client addresses. The first node, at `uri`, gives them work from then on.
async fn start_nodes(
    args: &DemoArgs,
    folder: &Path,
    (join, uri): (&str, &str),
    cluster: &ClusterSettings,
) -> Result<Nodes> {
    let mut nodes = Nodes::start(usize::from(args.nodes) - 1, folder, join, cluster)?;
    let mut text = String::new();
    for (number, uri) in (2..).zip(nodes.ready().await?) {
        text.push_str(&format!("node {number} of the cluster on {uri}\n"));
    }
    nodes::wait_for_members(uri, usize::from(args.nodes)).await?;
    say(&text)?;
    Ok(nodes)
}

/// A signal ends the queries and then the server; so do `--exit` and a query that fails.
async fn show_and_stay(running: Running, mut signals: Signals, args: &DemoArgs, uri: &str) -> Result<()> {
    let shown = tokio::select! {
        shown = show(uri) => shown,
        _ = signals.next() => return running.stop().await,
    };
    if args.exit || shown.is_err() {
        let stopped = running.stop().await;
        return shown.and(stopped);
    }
    let http = running.addresses.http_uri();
    say(&client_code::text(uri, http.as_deref()))?;
    running.wait(signals).await
}

impl DemoArgs {
    fn folder(&self) -> Result<PathBuf> {
        if let Some(folder) = &self.data_dir {
            return Ok(folder.clone());
        }
        let cache =
            dirs::cache_dir().context("this user has no cache directory; name a folder with --data-dir")?;
        Ok(cache.join("bowshot").join("demo").join(format!("sf{}", self.scale)))
    }

    fn flags(&self, folder: &Path) -> Flags {
        let mut values = vec![
            ("flight".to_owned(), self.flight.clone()),
            ("http".to_owned(), self.http.clone()),
            ("data".to_owned(), "memory".to_owned()),
        ];
        values.extend(self.ports_file.clone().map(|path| ("ports_file".to_owned(), path)));
        Flags { file: None, paths: nodes::paths(folder), values }
    }
}

/// Interrupting the demo interrupts the child too: they share the terminal.
fn make_in_child(args: &DemoArgs) -> Result<()> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let mut command = Command::new(program);
    command.args(["demo", "--only-data", "--scale"]).arg(args.scale.to_string());
    if let Some(folder) = &args.data_dir {
        command.arg("--data-dir").arg(folder);
    }
    let status = command.status().context("cannot start the data generator")?;
    match status.code() {
        Some(0) => Ok(()),
        // The child has printed the error.
        Some(2) => bail!(Usage::new("cannot generate the data")),
        _ => bail!("cannot generate the data"),
    }
}

async fn show(uri: &str) -> Result<()> {
    let target = Target::new(uri, Login::Anonymous);
    let client = Client::connect(&target).await?;
    let report = measure::run(&client).await?;
    client.close().await?;
    say(&report)?;
    say(&memory::peak())
}

fn say(text: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{text}").context("cannot write to stdout")
}
