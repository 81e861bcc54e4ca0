//! Connections: bounded in number, headers and lifetime. All have ended when `serve` returns.

use crate::caller::Peer;
use crate::cleanup::cleanup_queue;
use crate::handshake::{HTTP1, HTTP2, arrive};
use crate::routes::router;
use crate::session_lock::SessionLocks;
use crate::{Choices, Context, Error};
use axum::Router;
use axum::http::header::HOST;
use axum::http::{HeaderValue, Request, Version};
use bowshot_api::ConnectionLimiter;
use bowshot_api::Server;
use futures::FutureExt;
use futures::future::Shared;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::collections::VecDeque;
use std::future::Future;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// Idle connections, without an authenticated request. Beyond the limit the oldest is closed for a new one.
const MAX_CONNECTIONS: usize = 512;
/// Timeout for the headers of a request, also between requests.
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);
/// Lifetime of a connection; a response in progress is finished.
const CONNECTION_LIFETIME: Duration = Duration::from_secs(600);
/// Timeout for a response in progress when the connection is closed.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_HEADER_BYTES: usize = 32 << 10;
const MAX_HEADERS: usize = 64;
/// Header bytes of one HTTP/2 request, which counts 32 for each.
const HEADER_LIST_SIZE: u32 = 34 << 10;
const CONCURRENT_REQUESTS: u32 = 100;
/// Interval and timeout of HTTP/2 pings.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// Pause after a failed accept, so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `shutdown`, then closes the connections; responses in progress may finish within seconds.
pub async fn serve(
    listener: TcpListener,
    server: Arc<dyn Server>,
    choices: Choices,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    let address = listener.local_addr().map_err(Error::Listener)?;
    tracing::debug!(%address, "HTTP front end is up");
    let (cleanup, waiting) = cleanup_queue();
    let limits = server.limits();
    let shared = Arc::new(SharedState {
        limiter: ConnectionLimiter::new(limits.max_connections, limits.max_connections_per_address),
        tls: choices.tls.clone().map(acceptor),
        timeout: limits.reader_timeout,
    });
    let router =
        router(Context { server, choices: Arc::new(choices), cleanup, locks: SessionLocks::default() });
    let shutdown = shutdown.boxed().shared();
    let connections = accept_all(&listener, &shared, router, shutdown);
    // The connections hold the senders of `waiting`.
    tokio::join!(connections, waiting.work());
    Ok(())
}

/// What the connections of one listener share.
struct SharedState {
    limiter: Arc<ConnectionLimiter>,
    tls: Option<TlsAcceptor>,
    timeout: Duration,
}

/// An accepted socket, and the count of its requests in progress.
struct Accepted {
    stream: TcpStream,
    address: IpAddr,
    busy: Arc<AtomicUsize>,
}

/// An open connection, as the accept loop sees it.
struct OpenConnection {
    /// Dropping it closes the connection.
    close_guard: oneshot::Sender<()>,
    busy: Arc<AtomicUsize>,
}

fn acceptor(config: Arc<rustls::ServerConfig>) -> TlsAcceptor {
    let mut config = Arc::unwrap_or_clone(config);
    config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

async fn accept_all(
    listener: &TcpListener,
    shared: &Arc<SharedState>,
    router: Router,
    shutdown: Shared<impl Future<Output = ()> + Send + 'static>,
) {
    let mut open: VecDeque<OpenConnection> = VecDeque::new();
    let mut connections = JoinSet::new();
    while let Some((stream, address)) = next(listener, shutdown.clone()).await {
        close_oldest_idle(&mut open);
        let (close_guard, leave) = oneshot::channel::<()>();
        let busy = Arc::new(AtomicUsize::new(0));
        let accepted = Accepted { stream, address, busy: Arc::clone(&busy) };
        open.push_back(OpenConnection { close_guard, busy });
        let (shared, router, shutdown) = (Arc::clone(shared), router.clone(), shutdown.clone());
        connections.spawn(async move {
            tokio::select! {
                () = serve_connection(&shared, accepted, router, shutdown) => {}
                _ = leave => tracing::debug!("an HTTP connection gave way to a new one"),
            }
        });
        while connections.try_join_next().is_some() {}
    }
    while connections.join_next().await.is_some() {}
}

/// Closes the oldest idle connection if there are too many.
fn close_oldest_idle(open: &mut VecDeque<OpenConnection>) {
    open.retain(|connection| !connection.close_guard.is_closed());
    let is_idle = |connection: &OpenConnection| connection.busy.load(Ordering::Acquire) == 0;
    if open.iter().filter(|connection| is_idle(connection)).count() >= MAX_CONNECTIONS
        && let Some(oldest) = open.iter().position(is_idle)
    {
        open.remove(oldest);
    }
}

/// The next connection, or `None` when it is time to stop.
async fn next(
    listener: &TcpListener,
    shutdown: Shared<impl Future<Output = ()>>,
) -> Option<(TcpStream, IpAddr)> {
    let accept = async {
        loop {
            match listener.accept().await {
                Ok((stream, address)) => return (stream, address.ip()),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept an HTTP connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    tokio::select! {
        biased;
        () = shutdown => None,
        accepted = accept => Some(accepted),
    }
}

/// Serves one connection. Its errors end only itself.
async fn serve_connection(
    shared: &SharedState,
    accepted: Accepted,
    router: Router,
    shutdown: Shared<impl Future<Output = ()>>,
) {
    let Accepted { stream, address, busy } = accepted;
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let arrived = tokio::select! {
        arrived = arrive(stream, shared.tls.as_ref(), shared.timeout) => arrived,
        () = shutdown.clone() => return,
    };
    let Some((stream, transport)) = arrived else { return };
    let limiter = Arc::clone(&shared.limiter);
    let is_http2 = transport.is_http2;
    let peer = Arc::new(Peer::new(address, transport, Arc::clone(&busy), limiter));
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        set_host_header(&mut request);
        request.extensions_mut().insert(Arc::clone(&peer));
        router.call(request)
    });
    let stream = TokioIo::new(stream);
    if is_http2 {
        let connection = http2_builder().serve_connection(stream, service);
        drive(pin!(connection), |connection| connection.graceful_shutdown(), &busy, shutdown).await;
    } else {
        let connection = http1_builder().serve_connection(stream, service);
        drive(pin!(connection), |connection| connection.graceful_shutdown(), &busy, shutdown).await;
    }
}

fn http1_builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEADER_BYTES);
    builder
}

fn http2_builder() -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(CONCURRENT_REQUESTS)
        .max_header_list_size(HEADER_LIST_SIZE)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_INTERVAL);
    builder
}

/// Copies HTTP/2's `:authority` (RFC 9113, section 8.3.1) to `Host`.
fn set_host_header(request: &mut Request<Incoming>) {
    if request.version() == Version::HTTP_2
        && let Some(authority) = request.uri().authority()
        && let Ok(host) = HeaderValue::try_from(authority.as_str())
    {
        request.headers_mut().insert(HOST, host);
    }
}

async fn drive<C: Future<Output = hyper::Result<()>>>(
    mut connection: Pin<&mut C>,
    end: impl FnOnce(Pin<&mut C>),
    busy: &AtomicUsize,
    shutdown: Shared<impl Future<Output = ()>>,
) {
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = end_of(shutdown.clone()) => {
            end(connection.as_mut());
            tokio::select! {
                outcome = connection => outcome,
                () = wait_until_idle(busy, shutdown) => return,
            }
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "HTTP connection ended with an error");
    }
}

async fn end_of(shutdown: Shared<impl Future<Output = ()>>) {
    tokio::select! {
        () = shutdown => {}
        () = tokio::time::sleep(CONNECTION_LIFETIME) => {}
    }
}

/// Waits until an ending connection is idle, or the closing timeout at shutdown.
async fn wait_until_idle(busy: &AtomicUsize, shutdown: Shared<impl Future<Output = ()>>) {
    loop {
        tokio::select! {
            () = shutdown.clone() => {
                tokio::time::sleep(CLOSING_TIMEOUT).await;
                return;
            }
            () = tokio::time::sleep(CLOSING_TIMEOUT) => {}
        }
        if busy.load(Ordering::Acquire) == 0 {
            return;
        }
    }
}
