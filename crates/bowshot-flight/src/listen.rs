//! Listening sockets: accept, handshake (`handshake.rs`), HTTP/2, drain. Each connection is one task with its own
//! [`Connection`]; its sessions are closed when the task ends. Windows are large: 2 GB/s over a round trip of 1 ms
//! have 2 MB in flight.

use crate::Profile;
use crate::call_layer::CallLayer;
use crate::connection::{Connection, Shared};
use crate::connection_limiter::{ConnectionLimiter, Permit};
use crate::handshake::{Handshake, Wire, arrive, certificate};
use crate::metrics;
#[cfg(target_os = "linux")]
use crate::same_host::{LocalPort, SameHost};
use crate::status::refuse;
use bowshot_api::{ErrorKind, Server};
use http::{HeaderValue, Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use socket2::SockRef;
use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;
/// Largest HTTP/2 frame that clients may send.
const FRAME_SIZE: u32 = 1 << 20;
/// Send buffer for local clients, which Linux doubles (socket(7), `net.core.wmem_max`). Data in flight then fits the
/// processor caches: four streams of 128 MB to pyarrow on two cores take 0.24 s instead of 0.28 s, and three quarters
/// of the processor time.
const LOCAL_SEND_BUFFER: usize = 256 << 10;
const SEND_BUFFER: usize = 4 << 20;
const CONCURRENT_CALLS: u32 = 1_000;
/// Header bytes of one request.
const HEADER_LIST_SIZE: u32 = 64 << 10;
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// Clients beyond the limit that get an error at once; others are disconnected.
const TURNED_AWAY: usize = 64;
/// Timeout for that response.
const TURN_AWAY_TIME: Duration = Duration::from_secs(5);
/// Wait after an accept that failed for lack of memory or file descriptors.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

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

/// Serves Flight SQL on `listener` until `shutdown`, then accepts no connections and waits for running calls up to
/// the drain timeout. Dropping the future closes all connections.
pub async fn serve(
    listener: TcpListener,
    server: Arc<dyn Server>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    serve_with(listener, server, Choices::default(), shutdown).await
}

/// Configuration of the front end.
#[derive(Debug, Default)]
pub struct Choices {
    /// Where the protocol leaves a choice.
    pub profile: Profile,
    /// TLS configuration; with it, cleartext is refused. ALPN offers `h2` only (RFC 7540, section 3.3).
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// The Unix socket for local clients.
    #[cfg(target_os = "linux")]
    pub same_host: Option<SameHost>,
}

/// As [`serve`], with a configuration.
pub async fn serve_with(
    listener: TcpListener,
    server: Arc<dyn Server>,
    choices: Choices,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    metrics::register();
    let limits = server.limits().clone();
    #[cfg(target_os = "linux")]
    let local = choices.same_host.map(LocalPort::new);
    let port = Port {
        shared: Arc::new(Shared::new(server, choices.profile)),
        #[cfg(target_os = "linux")]
        announcement: local.as_ref().and_then(LocalPort::announcement),
        #[cfg(not(target_os = "linux"))]
        announcement: None,
        tls: choices.tls.map(acceptor),
        drain: CancellationToken::new(),
        limiter: ConnectionLimiter::new(limits.max_connections, limits.max_connections_per_address),
        turned_away: Arc::new(Semaphore::new(TURNED_AWAY)),
    };
    let mut tasks = JoinSet::new();
    #[cfg(target_os = "linux")]
    if let Some(local) = local {
        let (shared, limiter) = (Arc::clone(&port.shared), Arc::clone(&port.limiter));
        tasks.spawn(local.serve(shared, limiter, port.drain.clone()));
    }
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(ended) = tasks.join_next() => log_end(ended),
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => port.take(stream, address.ip(), &mut tasks),
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
    config.alpn_protocols = vec![b"h2".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

/// State of the connections of a listener.
struct Port {
    shared: Arc<Shared>,
    /// The announcement of the Unix socket.
    announcement: Option<HeaderValue>,
    tls: Option<TlsAcceptor>,
    drain: CancellationToken,
    limiter: Arc<ConnectionLimiter>,
    turned_away: Arc<Semaphore>,
}

impl Port {
    fn take(&self, stream: TcpStream, address: IpAddr, tasks: &mut JoinSet<()>) {
        if let Err(error) = stream.set_nodelay(true) {
            // The client has left.
            tracing::debug!(%error, "a connection ended before it began");
            return;
        }
        let local = is_local(&stream);
        if local && let Err(error) = SockRef::from(&stream).set_send_buffer_size(LOCAL_SEND_BUFFER) {
            tracing::debug!(%error, "a socket keeps the system's send buffer");
        }
        if let Some(pending) = self.limiter.try_acquire(Some(address)) {
            let shared = Arc::clone(&self.shared);
            let announcement = self.announcement.clone().filter(|_| local);
            let (tls, drain) = (self.tls.clone(), self.drain.clone());
            tasks.spawn(async move {
                let Some(permit) = pending.permit().await else { return };
                let connection = Connection::new(shared, address, permit.eviction().clone());
                let connection = Arc::new(connection.announcing(announcement));
                Box::pin(run(arrive(stream, tls), connection, drain, permit)).await;
            });
        } else if let Ok(slot) = Arc::clone(&self.turned_away).try_acquire_owned() {
            let limit = self.shared.server().limits().max_connections;
            let (arrival, drain) = (arrive(stream, self.tls.clone()), self.drain.clone());
            tasks.spawn(async move {
                tokio::select! {
                    () = turn_away(arrival, limit, slot) => {}
                    () = drain.cancelled() => {}
                }
            });
        } else {
            tracing::warn!("a connection over the limit was cut off");
        }
    }
}

/// Whether the client is on this machine.
fn is_local(stream: &TcpStream) -> bool {
    match (stream.peer_addr(), stream.local_addr()) {
        (Ok(theirs), Ok(ours)) => theirs.ip() == ours.ip(),
        _ => false,
    }
}

/// One connection from its first byte to its last.
async fn run(
    arrival: impl Future<Output = Option<Handshake>>,
    connection: Arc<Connection>,
    drain: CancellationToken,
    permit: Permit,
) {
    let _counted = metrics::Counted::new(metrics::connections());
    let arrived = tokio::select! {
        arrived = arrival => arrived,
        () = drain.cancelled() => return,
        () = permit.eviction().evicted() => return,
    };
    let wire = match arrived {
        Some(Handshake::Ready(wire)) => wire,
        Some(Handshake::InTheClear(wire)) => return refuse_all(wire, in_the_clear()).await,
        None => return,
    };
    connection.keep_certificate(certificate(&wire));
    let call_layer = CallLayer::new(Arc::clone(&connection));
    let mut http = pin!(http2_builder().serve_connection(TokioIo::new(wire), call_layer));
    let touch_interval = (connection.server().limits().session_timeout / 4).max(Duration::from_secs(1));
    let mut touch = interval_at(Instant::now() + touch_interval, touch_interval);
    touch.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut draining = false;
    let ended = loop {
        tokio::select! {
            ended = http.as_mut() => break ended,
            () = drain.cancelled(), if !draining => {
                draining = true;
                http.as_mut().graceful_shutdown();
            }
            () = permit.eviction().evicted() => {
                tracing::debug!("a client that has not said who it is gave way to another one");
                break Ok(());
            }
            _ = touch.tick() => connection.touch(),
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
    connection.end().await;
}

fn http2_builder() -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(FRAME_SIZE)
        .max_send_buf_size(SEND_BUFFER)
        .max_concurrent_streams(CONCURRENT_CALLS)
        .max_header_list_size(HEADER_LIST_SIZE)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_INTERVAL);
    builder
}

/// Tells a client over the limit so.
async fn turn_away(
    arrival: impl Future<Output = Option<Handshake>>,
    limit: usize,
    _slot: OwnedSemaphorePermit,
) {
    let Ok(Some(Handshake::Ready(wire) | Handshake::InTheClear(wire))) =
        timeout(TURN_AWAY_TIME, arrival).await
    else {
        return;
    };
    let error = bowshot_api::Error::new(
        ErrorKind::LimitReached,
        format!("too many connections: the limit is {limit}"),
    )
    .with_hint("close connections, or raise `limits.max_connections`");
    refuse_all(wire, error).await;
}

fn in_the_clear() -> bowshot_api::Error {
    bowshot_api::Error::new(
        ErrorKind::Unauthenticated,
        "this server speaks TLS only, and this connection is not encrypted",
    )
    .with_hint("connect to `grpc+tls://…`; with JDBC, leave `useEncryption=false` away")
}

/// Answers every call with the reason, for a short time.
async fn refuse_all(wire: Wire, error: bowshot_api::Error) {
    let status = refuse(error);
    let answer = service_fn(move |_request: Request<Incoming>| {
        let status = status.clone();
        async move { Ok::<Response<tonic::body::Body>, Infallible>(status.into_http()) }
    });
    let http = http2_builder().serve_connection(TokioIo::new(wire), answer);
    if timeout(TURN_AWAY_TIME, http).await.is_err() {
        tracing::debug!("a connection that was refused was cut off");
    }
}

fn log_end(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection's task ended badly");
    }
}

/// Whether an error concerns only one connection.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}

/// ENOMEM, ENFILE, EMFILE, ENOBUFS: passes when connections close.
pub(crate) fn is_exhaustion(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(12 | 23 | 24 | 105))
}
