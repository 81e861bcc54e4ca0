//! Sockets: accept, let arrive (`arrival.rs`), talk (`connection.rs`), drain. Each connection is one task.

use crate::arrival::{ALPN, Arrival, arrive};
use crate::auth::Road;
use crate::backend::{self, Severity};
use crate::cancel::Keys;
use crate::connection::Connection;
use crate::startup;
use crate::status::{Failure, Trouble};
use crate::wire::{Stream, Wire};
use bowshot_api::{ConnectionLimiter, Permit};
use bowshot_api::{ErrorKind, Server};
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;

/// How long a client may take from its first byte to its session, with the check of its password.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(60);
/// How long one over the limit may take to hear it.
const TURN_AWAY_TIME: Duration = Duration::from_secs(5);
/// Clients over the limit that are told so at once; more are cut off without a word.
const TURNED_AWAY: usize = 64;
/// Wait after an accept that failed for lack of memory or file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Open connections of this front end.
const CONNECTIONS: &str = "bowshot_postgres_connections";

/// What stops the listener.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The listening socket is broken.
    #[error("the listening socket does not accept connections any more")]
    Accept(#[source] io::Error),
}

impl From<Error> for bowshot_api::Error {
    fn from(error: Error) -> Self {
        bowshot_api::Error::new(ErrorKind::Unavailable, error.to_string()).with_source(error)
    }
}

/// What whoever starts the front end decides.
#[derive(Debug, Clone, Default)]
pub struct Choices {
    /// How connections are encrypted; with it, sessions that are not encrypted are refused.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Whether passwords may be asked for over connections of other machines that are not encrypted.
    pub cleartext: bool,
}

/// What the connections of one listener share.
struct Port {
    server: Arc<dyn Server>,
    tls: Option<TlsAcceptor>,
    cleartext: bool,
    keys: Arc<Keys>,
    drain: CancellationToken,
}

/// Serves PostgreSQL's protocol on `listener` until `shutdown` is ready; then takes no new connection, lets statements that
/// run come to their end for the drain timeout, and cuts what is left. Dropping the future cuts everything at once.
///
/// # Errors
/// If the listening socket breaks.
pub async fn serve(
    listener: TcpListener,
    server: Arc<dyn Server>,
    choices: Choices,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    metrics::describe_gauge!(CONNECTIONS, "Open connections of the PostgreSQL front end.");
    let limits = server.limits().clone();
    let places = ConnectionLimiter::new(limits.max_connections, limits.max_connections_per_address);
    let turned_away = ConnectionLimiter::new(TURNED_AWAY, TURNED_AWAY);
    let port = Arc::new(Port {
        server,
        tls: choices.tls.map(acceptor),
        cleartext: choices.cleartext,
        keys: Arc::default(),
        drain: CancellationToken::new(),
    });
    let mut tasks = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(ended) = tasks.join_next() => log_end(ended),
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => {
                    let port = Arc::clone(&port);
                    if let Some(place) = places.try_acquire(address.ip()) {
                        tasks.spawn(run(port, stream, place));
                    } else if let Some(place) = turned_away.try_acquire(address.ip()) {
                        tasks.spawn(turn_away(port, stream, place));
                    } else {
                        tracing::warn!("a connection over the limit was cut off");
                    }
                }
                Err(error) if is_passing(&error) => {}
                Err(error) if is_exhaustion(&error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
                Err(error) => return Err(Error::Accept(error)),
            },
        }
    }
    drop(listener);
    port.drain.cancel();
    let all_ended = async { while tasks.join_next().await.is_some() {} };
    if timeout(limits.drain_timeout, all_ended).await.is_err() {
        tracing::warn!(connections = tasks.len(), "the drain timeout has passed; cutting connections");
        tasks.shutdown().await;
    }
    Ok(())
}

fn acceptor(config: Arc<rustls::ServerConfig>) -> TlsAcceptor {
    let mut config = Arc::unwrap_or_clone(config);
    config.alpn_protocols = vec![ALPN.to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

/// One connection from its first byte to its last.
async fn run(port: Arc<Port>, stream: TcpStream, place: Permit) {
    let _counted = Counted::new();
    if let Err(error) = stream.set_nodelay(true) {
        // The client has gone already.
        tracing::debug!(%error, "a connection ended before it began");
        return;
    }
    let begun = tokio::select! {
        begun = timeout(STARTUP_TIMEOUT, begin(&port, stream, place.address())) => begun,
        () = port.drain.cancelled() => return,
    };
    match begun {
        Ok(Some(connection)) => Box::pin(connection.run(port.drain.clone())).await,
        Ok(None) => {}
        Err(_) => tracing::debug!("a client took too long to begin"),
    }
}

/// A session for a client that wants one.
async fn begin(port: &Port, stream: TcpStream, address: IpAddr) -> Option<Connection> {
    let (stream, startup) = match arrive(stream, port.tls.as_ref()).await {
        Ok(Arrival::Session(stream, startup)) => (stream, startup),
        Ok(Arrival::Cancel { process, secret }) => {
            port.keys.cancel(process, secret);
            return None;
        }
        Ok(Arrival::Nothing) => return None,
        Err((stream, trouble)) => {
            farewell(Wire::new(stream), trouble).await;
            return None;
        }
    };
    let is_encrypted = matches!(stream, Either::Right(_));
    let mut wire = Wire::new(stream);
    if port.tls.is_some() && !is_encrypted {
        farewell(wire, in_the_clear()).await;
        return None;
    }
    let is_private = is_encrypted || port.cleartext || address.to_canonical().is_loopback();
    let key = port.keys.issue();
    let road = Road { address, is_private };
    match startup::begin(&mut wire, &port.server, &startup, (road, &key)).await {
        Ok(begun) => Some(Connection::new(wire, Arc::clone(&port.server), begun, key)),
        Err(trouble) => {
            farewell(wire, trouble).await;
            None
        }
    }
}

fn in_the_clear() -> Trouble {
    Failure::new("28000", "this server speaks TLS only, and this connection is not encrypted")
        .with_hint("connect with `sslmode=require` or `sslmode=verify-full`")
        .fatal()
}

/// Tells a client why its connection ends.
pub(crate) async fn farewell(mut wire: Wire, trouble: Trouble) {
    if let Trouble::Fatal(failure) | Trouble::Failed(failure) = trouble {
        backend::report(wire.out(), Severity::Fatal, &failure);
    }
    wire.end().await;
}

async fn turn_away(port: Arc<Port>, stream: TcpStream, _place: Permit) {
    let told = async {
        let stream: Stream = match arrive(stream, port.tls.as_ref()).await {
            Ok(Arrival::Session(stream, _)) | Err((stream, _)) => stream,
            Ok(Arrival::Cancel { process, secret }) => return port.keys.cancel(process, secret),
            Ok(Arrival::Nothing) => return,
        };
        let failure = Failure::new("53300", "sorry, too many clients already")
            .with_hint("close connections, or raise `limits.max_connections`");
        farewell(Wire::new(stream), failure.fatal()).await;
    };
    if timeout(TURN_AWAY_TIME, told).await.is_err() {
        tracing::debug!("a connection that was refused was cut off");
    }
}

/// One connection in the gauge.
struct Counted;

impl Counted {
    fn new() -> Self {
        metrics::gauge!(CONNECTIONS).increment(1.0);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        metrics::gauge!(CONNECTIONS).decrement(1.0);
    }
}

fn log_end(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection's task ended badly");
    }
}

/// Errors of one connection that broke before it was accepted.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}

/// ENOMEM, ENFILE, EMFILE, ENOBUFS: passes when connections close.
fn is_exhaustion(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(12 | 23 | 24 | 105))
}
