//! Sockets: accept, begin (`startup.rs`), talk (`connection.rs`), drain. Each connection is one task.

use crate::auth::{Entrance, Road};
use crate::cancel::Numbers;
use crate::connection::Connection;
use crate::reply;
use crate::startup::{self, greet};
use crate::status::{Failure, Trouble};
use crate::wire::Wire;
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
const CONNECTIONS: &str = "bowshot_mysql_connections";

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
    numbers: Arc<Numbers>,
    drain: CancellationToken,
}

/// Serves MySQL's protocol on `listener` until `shutdown` is ready; then takes no new connection, lets statements that
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
    metrics::describe_gauge!(CONNECTIONS, "Open connections of the MySQL front end.");
    let limits = server.limits().clone();
    let places = ConnectionLimiter::new(limits.max_connections, limits.max_connections_per_address);
    let turned_away = ConnectionLimiter::new(TURNED_AWAY, TURNED_AWAY);
    let port = Arc::new(Port {
        server,
        tls: choices.tls.map(TlsAcceptor::from),
        cleartext: choices.cleartext,
        numbers: Arc::default(),
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
                        tasks.spawn(turn_away(stream, place));
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
    let number = port.numbers.give();
    let local = stream.local_addr().map_or(0, |local| local.port());
    let mut guest = match greet(Wire::new(stream), &number, port.tls.as_ref()).await {
        Ok(guest) => guest?,
        Err((wire, trouble)) => {
            farewell(wire, trouble).await;
            return None;
        }
    };
    let entrance = Entrance { port: local, is_encrypted: port.tls.is_some() };
    let road = Road { address, cleartext: port.cleartext, entrance };
    match startup::begin(&mut guest, &port.server, road).await {
        Ok(session) => Some(Connection::new(guest, Arc::clone(&port.server), session, (number, road))),
        Err(trouble) => {
            farewell(guest.wire, trouble).await;
            None
        }
    }
}

/// Tells a client why its connection ends.
pub(crate) async fn farewell(mut wire: Wire, trouble: Trouble) {
    if let Trouble::Fatal(failure) | Trouble::Failed(failure) = trouble {
        wire.put(|out| reply::error(out, &failure));
    }
    wire.end().await;
}

/// One over the limit hears it in the place of the greeting.
async fn turn_away(stream: TcpStream, _place: Permit) {
    let failure = Failure::new(1040, "08004", "too many connections")
        .with_hint("close connections, or raise `limits.max_connections`");
    if timeout(TURN_AWAY_TIME, farewell(Wire::new(stream), failure.fatal())).await.is_err() {
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
