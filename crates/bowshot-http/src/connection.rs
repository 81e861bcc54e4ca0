//! Connections: a bounded number at once, bounded headers, bounded time. All of them end before `serve` returns.

use crate::arrival::{HTTP1, HTTP2, arrive};
use crate::caller::Peer;
use crate::chores::chores;
use crate::routes::router;
use crate::session_lock::SessionLocks;
use crate::{Choices, Context, Error};
use axum::Router;
use axum::http::header::HOST;
use axum::http::{HeaderValue, Request, Version};
use bowshot_api::Places;
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

/// Connections at once that have nothing running for a known caller. Beyond them, the oldest one ends for a new one: answers
/// of that kind take milliseconds, so that one which is still there waits for its client.
const MAX_CONNECTIONS: usize = 512;
/// How long a client may take to send its headers, also between two requests on one connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);
/// How long one connection may live, but for the answer under way; clients open a new one.
const CONNECTION_LIFETIME: Duration = Duration::from_secs(600);
/// How long a connection that should end may take for the answer that is under way.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes that the headers of one request may take.
const MAX_HEADER_BYTES: usize = 32 << 10;
/// Headers of one request.
const MAX_HEADERS: usize = 64;
/// Bytes of the headers of one request of HTTP/2, which counts 32 for each.
const HEADER_LIST_SIZE: u32 = 34 << 10;
/// Requests at once on one connection of HTTP/2.
const CONCURRENT_REQUESTS: u32 = 100;
/// How often a quiet client of HTTP/2 is asked whether it is still there, and how long it may take to say so.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// Pause after a failed accept (no file descriptors, for instance), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `shutdown` is done, then ends the connections: answers under way are finished, at most for seconds.
///
/// # Errors
/// When the listener is not usable at all.
pub async fn serve(
    listener: TcpListener,
    server: Arc<dyn Server>,
    choices: Choices,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    let address = listener.local_addr().map_err(Error::Listener)?;
    tracing::debug!(%address, "HTTP front end is up");
    let (chores, waiting) = chores();
    let limits = server.limits();
    let house = Arc::new(House {
        places: Places::new(limits.max_connections, limits.max_connections_per_address),
        tls: choices.tls.clone().map(acceptor),
        patience: limits.reader_timeout,
    });
    let router =
        router(Context { server, choices: Arc::new(choices), chores, locks: SessionLocks::default() });
    let shutdown = shutdown.boxed().shared();
    let connections = accept_all(&listener, &house, router, shutdown);
    // The connections hold the other ends of what is waited for here.
    tokio::join!(connections, waiting.work());
    Ok(())
}

/// What the connections of one listener share.
struct House {
    places: Arc<Places>,
    tls: Option<TlsAcceptor>,
    /// How long a client may take nothing of an answer.
    patience: Duration,
}

/// A connection, as the one sees it who lets them in.
struct Guest {
    /// Dropped, it ends the connection.
    stay: oneshot::Sender<()>,
    busy: Arc<AtomicUsize>,
}

fn acceptor(config: Arc<rustls::ServerConfig>) -> TlsAcceptor {
    let mut config = Arc::unwrap_or_clone(config);
    config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

async fn accept_all(
    listener: &TcpListener,
    house: &Arc<House>,
    router: Router,
    shutdown: Shared<impl Future<Output = ()> + Send + 'static>,
) {
    let mut guests: VecDeque<Guest> = VecDeque::new();
    let mut connections = JoinSet::new();
    while let Some((stream, address)) = next(listener, shutdown.clone()).await {
        make_room(&mut guests);
        let (stay, leave) = oneshot::channel::<()>();
        let busy = Arc::new(AtomicUsize::new(0));
        guests.push_back(Guest { stay, busy: Arc::clone(&busy) });
        let (house, router, shutdown) = (Arc::clone(house), router.clone(), shutdown.clone());
        connections.spawn(async move {
            tokio::select! {
                () = converse(&house, stream, (address, busy), router, shutdown) => {}
                _ = leave => tracing::debug!("an HTTP connection gave way to a new one"),
            }
        });
        while connections.try_join_next().is_some() {}
    }
    while connections.join_next().await.is_some() {}
}

/// Ends the oldest connection that runs nothing, if there are too many of them.
fn make_room(guests: &mut VecDeque<Guest>) {
    guests.retain(|guest| !guest.stay.is_closed());
    let is_idle = |guest: &Guest| guest.busy.load(Ordering::Acquire) == 0;
    if guests.iter().filter(|guest| is_idle(guest)).count() >= MAX_CONNECTIONS
        && let Some(oldest) = guests.iter().position(is_idle)
    {
        guests.remove(oldest);
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

/// One connection from its first byte to its end. Errors are the client's affair and end only this connection.
async fn converse(
    house: &House,
    stream: TcpStream,
    (address, busy): (IpAddr, Arc<AtomicUsize>),
    router: Router,
    shutdown: Shared<impl Future<Output = ()>>,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let arrived = tokio::select! {
        arrived = arrive(stream, house.tls.as_ref(), house.patience) => arrived,
        () = shutdown.clone() => return,
    };
    let Some((stream, road)) = arrived else { return };
    let places = Arc::clone(&house.places);
    let is_http2 = road.is_http2;
    let peer = Arc::new(Peer::new(address, road, Arc::clone(&busy), places));
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        name_host(&mut request);
        request.extensions_mut().insert(Arc::clone(&peer));
        router.call(request)
    });
    let stream = TokioIo::new(stream);
    if is_http2 {
        let connection = http2_builder().serve_connection(stream, service);
        talk(pin!(connection), |connection| connection.graceful_shutdown(), &busy, shutdown).await;
    } else {
        let connection = http1_builder().serve_connection(stream, service);
        talk(pin!(connection), |connection| connection.graceful_shutdown(), &busy, shutdown).await;
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

/// HTTP/2 names the host beside its headers (RFC 9113, section 8.3.1). From here on it is where HTTP/1.1 has it.
fn name_host(request: &mut Request<Incoming>) {
    if request.version() == Version::HTTP_2
        && let Some(authority) = request.uri().authority()
        && let Ok(host) = HeaderValue::try_from(authority.as_str())
    {
        request.headers_mut().insert(HOST, host);
    }
}

async fn talk<C: Future<Output = hyper::Result<()>>>(
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
                () = patience(busy, shutdown) => return,
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

/// How long a connection that should end may go on: as long as it runs something, unless the server ends, which has let
/// everything run that it wanted to.
async fn patience(busy: &AtomicUsize, shutdown: Shared<impl Future<Output = ()>>) {
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
