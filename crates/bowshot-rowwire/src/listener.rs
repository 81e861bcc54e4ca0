//! The listener of a front end: accepts connections within their limits, runs each as one task, and ends them at shutdown.

use bowshot_api::{ConnectionLimiter, ErrorKind, Limits, Permit};
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How long a client may take from its first byte to its session, with the check of its password.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the refusal of a connection over the limit may take.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections over the limit that get an error message at the same time; more are closed without one.
const MAX_REFUSALS: usize = 64;
/// Wait after an accept that failed for lack of memory or file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why a listener stops.
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

/// The operator's decisions about a listener.
#[derive(Debug, Clone, Default)]
pub struct ListenOptions {
    /// How connections are encrypted; with it, sessions that are not encrypted are refused.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Whether other machines may send passwords over connections that are not encrypted.
    pub cleartext: bool,
}

/// A protocol on a listener.
pub trait FrontEnd: Send + Sync + 'static {
    /// A client with its session.
    type Connection: Send;

    /// The gauge of open connections, and what it is.
    const CONNECTIONS: (&'static str, &'static str);

    /// The limits of the server.
    fn limits(&self) -> &Limits;

    /// Everything up to the session of a client: handshake, encryption, authentication. `None` where there is no session.
    fn open(
        &self,
        stream: TcpStream,
        address: IpAddr,
    ) -> impl Future<Output = Option<Self::Connection>> + Send;

    /// Answers the client until it, or the server by `drain`, ends the connection.
    fn run(connection: Self::Connection, drain: CancellationToken) -> impl Future<Output = ()> + Send;

    /// Tells a client that there are too many connections.
    fn refuse(&self, stream: TcpStream) -> impl Future<Output = ()> + Send;
}

/// Serves a protocol on `listener` until `shutdown` is ready; then accepts no new connection, lets running statements end
/// within the drain timeout, and cuts what is left. Dropping the future cuts everything at once.
///
/// # Errors
/// If the listening socket breaks.
pub async fn serve<F: FrontEnd>(
    listener: TcpListener,
    front_end: F,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), Error> {
    let (gauge, description) = F::CONNECTIONS;
    metrics::describe_gauge!(gauge, description);
    let front_end = Arc::new(front_end);
    let limits = front_end.limits().clone();
    let limiter = ConnectionLimiter::new(limits.max_connections, limits.max_connections_per_address);
    let refusals = ConnectionLimiter::new(MAX_REFUSALS, MAX_REFUSALS);
    let drain = CancellationToken::new();
    let mut tasks = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(ended) = tasks.join_next() => log_end(ended),
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => {
                    let front_end = Arc::clone(&front_end);
                    if let Some(permit) = limiter.try_acquire(address.ip()) {
                        tasks.spawn(run(front_end, stream, permit, drain.clone()));
                    } else if let Some(permit) = refusals.try_acquire(address.ip()) {
                        tasks.spawn(refuse(front_end, stream, permit));
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
    drain.cancel();
    let all_ended = async { while tasks.join_next().await.is_some() {} };
    if timeout(limits.drain_timeout, all_ended).await.is_err() {
        tracing::warn!(connections = tasks.len(), "the drain timeout has passed; cutting connections");
        tasks.shutdown().await;
    }
    Ok(())
}

/// One connection from its first byte to its last.
async fn run<F: FrontEnd>(front_end: Arc<F>, stream: TcpStream, permit: Permit, drain: CancellationToken) {
    let _open = OpenConnection::new(F::CONNECTIONS.0);
    if let Err(error) = stream.set_nodelay(true) {
        // The client has gone already.
        tracing::debug!(%error, "a connection ended before it began");
        return;
    }
    let opened = tokio::select! {
        opened = timeout(STARTUP_TIMEOUT, front_end.open(stream, permit.address())) => opened,
        () = drain.cancelled() => return,
    };
    match opened {
        Ok(Some(connection)) => Box::pin(F::run(connection, drain)).await,
        Ok(None) => {}
        Err(_) => tracing::debug!("a client took too long to begin"),
    }
}

async fn refuse<F: FrontEnd>(front_end: Arc<F>, stream: TcpStream, _permit: Permit) {
    if timeout(REFUSAL_TIMEOUT, front_end.refuse(stream)).await.is_err() {
        tracing::debug!("a connection that was refused was cut off");
    }
}

/// One connection in the gauge.
struct OpenConnection(&'static str);

impl OpenConnection {
    fn new(gauge: &'static str) -> Self {
        metrics::gauge!(gauge).increment(1.0);
        Self(gauge)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        metrics::gauge!(self.0).decrement(1.0);
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
