//! `bowshot serve`: starts the parts in order, and stops them in order. Up: configuration, users, addresses, sources, engine, sessions, sockets, a
//! check of every source, then "ready" and the ports file. Down: readiness and new queries, running queries within the drain timeout, sockets.

mod address;
mod banner;
mod client_authority;
mod cluster;
mod components;
pub(crate) mod data_folder;
mod databases;
pub(crate) mod folders;
mod grpc_web;
mod memory;
#[cfg(target_os = "linux")]
mod same_host;
mod secrets;
mod signal;
mod system_tables;
mod tls;
mod users;

pub(crate) use address::{Addresses, Reach, resolve};
pub(crate) use banner::{Served, empty_folders, table as source_table};
pub(crate) use client_authority::ClientAuthority;
use components::SourceCheck;
pub(crate) use components::{Parts, authenticator};
use grpc_web::FlightGrpcWeb;
pub(crate) use memory::available as available_memory;
pub(crate) use signal::{Hangups, Signals};
pub(crate) use tls::Tls;
use users::FollowUsers;

use crate::config::Config;
use crate::metrics_exporter;
use crate::ports_file::PortsFile;
use anyhow::{Context, Result, bail};
use bowshot_access::Authenticator;
use bowshot_api::Server;
use bowshot_files::exchange::remove_unfinished;
use bowshot_flight::Choices;
use bowshot_http::RenderMetrics;
use bowshot_object_store::scratch::Scratch;
use bowshot_rowwire::ListenOptions;
use bowshot_session::{Bowshot, Drained};
use bowshot_tables::TableStore;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long the start waits for checks of sources; the rest continues in the background.
const LOOK_PATIENCE: Duration = Duration::from_secs(2);

/// How long front ends may take to close idle connections.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(6);

/// Runs a server until a signal ends it.
pub(crate) async fn run(config: &Config) -> Result<()> {
    let mut signals = Signals::listen()?;
    let running = tokio::select! {
        running = start(config) => running?,
        signal = signals.next() => {
            tracing::info!(signal, "stopped before it was ready");
            return Ok(());
        }
    };
    banner::announce(config, &running);
    running.wait(signals).await
}

/// A running server. Dropping it ends everything at once.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) addresses: Addresses,
    pg_cleartext: bool,
    http_origins: Vec<String>,
    http_mcp: bool,
    mysql_cleartext: bool,
    node: Option<cluster::Node>,
    tls: Option<Tls>,
    _authority: Option<ClientAuthority>,
    certificates_required: bool,
    server: Arc<Bowshot>,
    _users: FollowUsers,
    tables: Arc<TableStore>,
    drain_timeout: Duration,
    front_ends: JoinSet<Result<()>>,
    stop: watch::Sender<bool>,
    ports_file: Option<PortsFile>,
    sources: Vec<banner::Served>,
    /// Removed with the server.
    look: Option<SourceCheck>,
    data: data_folder::LockedFolder,
    _spill: Scratch,
}

/// Starts everything that the configuration asks for and returns when it is ready.
///
/// # Errors
/// [`Usage`](crate::usage::Usage) for a configuration that cannot be served, other errors for a machine that does not
/// let it be (taken ports, unwritable folders).
pub(crate) async fn start(config: &Config) -> Result<Running> {
    let authority = ClientAuthority::load(&config.tls).await?;
    let authenticator = authenticator(config)?.with_trust(authority.as_ref().map(ClientAuthority::trust));
    let tls = Tls::load(&config.tls, authority.as_ref()).await?;
    let front_ends = FrontEnds::bind(config, &authenticator).await?;
    // Before what it counts.
    let render_metrics = metrics_exporter::start()?;
    if let Some(library) = &config.onnx_runtime {
        bowshot_engine::load_onnx_runtime(library)?;
    }
    let data = data_folder::take(config.data.as_ref())?;
    let spill = folders::take_spill(config)?;
    folders::check_apart(config, Some(spill.path()))?;
    if let Some(folder) = &config.exchange_folder {
        remove_unfinished(folder);
    }
    let addresses = front_ends.addresses(config, tls.as_ref())?;
    let choices = flight_choices(config, tls.as_ref(), (addresses.flight, spill.path()))?;
    let node = cluster::join(config, data.folder(), &addresses).await?;
    let cluster = node.as_ref().map(|node| node.cluster.clone());
    let addresses = Addresses { cluster: cluster.as_ref().map(|cluster| cluster.listening()), ..addresses };
    let parts = Parts::open(config, data.folder(), Some(spill.path()), cluster).await?;
    let (stop, stopped) = watch::channel(false);
    let server = parts.server(config, authenticator);
    let mut running = Running {
        addresses,
        pg_cleartext: config.pg_cleartext,
        http_origins: config.origins(),
        http_mcp: front_ends.http_mcp,
        mysql_cleartext: config.mysql_cleartext,
        node,
        tls,
        _authority: authority,
        certificates_required: config.tls.client_trust()?.is_some_and(|trust| trust.required),
        drain_timeout: config.limits.drain_timeout,
        _users: FollowUsers::begin(config, &server),
        server,
        tables: parts.tables(),
        front_ends: JoinSet::new(),
        stop,
        ports_file: None,
        sources: Vec::new(),
        look: None,
        data,
        _spill: spill,
    };
    running.start_flight(front_ends.flight, choices, &stopped);
    running.start_http(front_ends.http, &render_metrics, &stopped);
    running.start_pg(front_ends.pg, &stopped);
    running.start_mysql(front_ends.mysql, &stopped);
    // Reading many headers may take long, so the wait is limited.
    let (sources, look) = parts.served_within(LOOK_PATIENCE).await?;
    running.sources = sources;
    running.look = Some(look);
    running.server.set_ready();
    if let Some(path) = &config.ports_file {
        running.ports_file = Some(PortsFile::write(path, &running.addresses)?);
    }
    Ok(running)
}

/// Binds the addresses of the front ends and gives them back: whether a server could start now.
pub(crate) async fn check_ports(config: &Config) -> Result<()> {
    FrontEnds::bind(config, &authenticator(config)?).await.map(drop)
}

/// Sockets of the front ends that are not off.
struct FrontEnds {
    flight: Option<TcpListener>,
    http: Option<TcpListener>,
    /// Whether it serves agents.
    http_mcp: bool,
    pg: Option<TcpListener>,
    mysql: Option<TcpListener>,
}

impl FrontEnds {
    async fn bind(config: &Config, authenticator: &Authenticator) -> Result<Self> {
        let reach = Reach::of(config, authenticator);
        let http = address::bind("--http", &config.http, reach).await?;
        Ok(Self {
            flight: address::bind("--flight", &config.flight, reach).await?,
            http_mcp: address::serves_mcp(config, authenticator, local(http.as_ref())?)?,
            http,
            pg: address::bind("--pg", &config.pg, reach).await?,
            mysql: address::bind("--mysql", &config.mysql, reach).await?,
        })
    }

    fn addresses(&self, config: &Config, tls: Option<&Tls>) -> Result<Addresses> {
        Ok(Addresses {
            flight: local(self.flight.as_ref())?,
            http: local(self.http.as_ref())?,
            pg: local(self.pg.as_ref())?,
            mysql: local(self.mysql.as_ref())?,
            cluster: None,
            encrypted: tls.is_some(),
            http_cleartext: config.http_cleartext,
        })
    }
}

/// Options of Flight SQL at this address, with the socket for clients on this machine, which may be in `scratch`.
fn flight_choices(
    config: &Config,
    tls: Option<&Tls>,
    (address, scratch): (Option<SocketAddr>, &Path),
) -> Result<Choices> {
    Ok(Choices {
        tls: tls.map(Tls::config),
        #[cfg(target_os = "linux")]
        same_host: same_host::open(config, address, scratch)?,
        ..Choices::default()
    })
}

/// Waits for the stop signal; an error means that the server is gone.
async fn until(mut stopped: watch::Receiver<bool>) {
    _ = stopped.wait_for(|stop| *stop).await;
}

fn local(listener: Option<&TcpListener>) -> Result<Option<SocketAddr>> {
    listener.map(TcpListener::local_addr).transpose().context("a listening socket has no address")
}

impl Running {
    fn start_flight(
        &mut self,
        listener: Option<TcpListener>,
        choices: Choices,
        stopped: &watch::Receiver<bool>,
    ) {
        let Some(listener) = listener else { return };
        let server: Arc<dyn Server> = Arc::<Bowshot>::clone(&self.server);
        let until = until(stopped.clone());
        self.front_ends.spawn(async move {
            bowshot_flight::serve_with(listener, server, choices, until)
                .await
                .context("the Flight SQL front end failed")
        });
    }

    fn start_http(
        &mut self,
        listener: Option<TcpListener>,
        render_metrics: &RenderMetrics,
        stopped: &watch::Receiver<bool>,
    ) {
        let Some(listener) = listener else { return };
        let server: Arc<dyn Server> = Arc::<Bowshot>::clone(&self.server);
        let choices = bowshot_http::Choices {
            render_metrics: Arc::clone(render_metrics),
            tls: self.tls.as_ref().map(Tls::config),
            cleartext: self.addresses.http_cleartext,
            certificates: self.certificates_required,
            origins: self.http_origins.clone(),
            mcp: self.http_mcp,
            grpc_web: Some(Arc::new(FlightGrpcWeb::of(&server))),
        };
        let until = until(stopped.clone());
        self.front_ends.spawn(async move {
            bowshot_http::serve(listener, server, choices, until).await.context("the HTTP front end failed")
        });
    }

    fn start_pg(&mut self, listener: Option<TcpListener>, stopped: &watch::Receiver<bool>) {
        let Some(listener) = listener else { return };
        let server: Arc<dyn Server> = Arc::<Bowshot>::clone(&self.server);
        let until = until(stopped.clone());
        let choices = ListenOptions { tls: self.tls.as_ref().map(Tls::config), cleartext: self.pg_cleartext };
        self.front_ends.spawn(async move {
            bowshot_postgres::serve(listener, server, choices, until)
                .await
                .context("the PostgreSQL front end failed")
        });
    }

    fn start_mysql(&mut self, listener: Option<TcpListener>, stopped: &watch::Receiver<bool>) {
        let Some(listener) = listener else { return };
        let server: Arc<dyn Server> = Arc::<Bowshot>::clone(&self.server);
        let until = until(stopped.clone());
        let choices =
            ListenOptions { tls: self.tls.as_ref().map(Tls::config), cleartext: self.mysql_cleartext };
        self.front_ends.spawn(async move {
            bowshot_mysql::serve(listener, server, choices, until).await.context("the MySQL front end failed")
        });
    }

    /// Serves until a signal comes, drains, and ends. A second signal ends at once.
    pub(crate) async fn wait(mut self, mut signals: Signals) -> Result<()> {
        let signal = tokio::select! {
            signal = signals.next() => signal,
            ended = self.front_ends.join_next() => return Err(failure(ended)),
        };
        let timeout_s = self.drain_timeout.as_secs_f64();
        // Before the log line: its reader may connect at once.
        self.server.stop_taking();
        tracing::info!(signal, timeout_s, "draining: no new queries, running ones may finish");
        tokio::select! {
            stopped = self.stop() => stopped,
            signal = signals.next() => bail!("stopped at once by a second {signal}: running queries are cancelled"),
        }
    }

    /// Takes no new queries, waits for running ones up to the drain timeout, then ends the front ends.
    pub(crate) async fn stop(mut self) -> Result<()> {
        // Other nodes are informed first, so that they send no new work while running tasks end.
        let leave = async {
            if let Some(node) = &self.node {
                node.cluster.leave(self.drain_timeout).await;
            }
        };
        let ((), drained) = tokio::join!(leave, self.server.drain());
        self.stop.send_replace(true);
        let all_ended = async { while self.front_ends.join_next().await.is_some() {} };
        if timeout(CLOSING_TIMEOUT, all_ended).await.is_err() {
            tracing::warn!("connections that did not end in time are closed");
        }
        self.front_ends.shutdown().await;
        let tables = Arc::clone(&self.tables);
        if let Err(error) = tokio::task::spawn_blocking(move || tables.settle()).await {
            tracing::warn!(%error, "other programs may not see the newest rows");
        }
        if drained == Drained::CutOff {
            bail!("the drain timeout is over: queries that still ran were cancelled");
        }
        tracing::info!("stopped");
        Ok(())
    }
}

fn failure(ended: Option<Result<Result<()>, tokio::task::JoinError>>) -> anyhow::Error {
    match ended {
        Some(Ok(Err(error))) => error,
        Some(Err(error)) => anyhow::Error::new(error).context("a front end failed"),
        Some(Ok(Ok(()))) | None => anyhow::anyhow!("a front end ended unexpectedly"),
    }
}
