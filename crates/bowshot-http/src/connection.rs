//! Connections: a bounded number at once, bounded headers, bounded time. All of them end before `serve` returns.

use crate::routes::router;
use crate::{Context, Error, RenderMetrics};
use axum::Router;
use bowshot_api::Server;
use futures::FutureExt;
use futures::future::Shared;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinSet;

/// Connections at once. Beyond them, the oldest one ends for a new one: answers take milliseconds, so that one which is
/// still there waits for its client.
const MAX_CONNECTIONS: usize = 512;
/// How long a client may take to send its headers, also between two requests on one connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);
/// How long one connection may live; clients open a new one.
const CONNECTION_LIFETIME: Duration = Duration::from_secs(600);
/// How long a connection that should end may take for the answer that is under way.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes that the headers of one request may take.
const MAX_HEADER_BYTES: usize = 32 << 10;
/// Headers of one request.
const MAX_HEADERS: usize = 64;
/// Pause after a failed accept (no file descriptors, for instance), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `shutdown` is done, then ends the connections: answers under way are finished, at most for seconds.
///
/// # Errors
/// When the listener is not usable at all.
pub async fn serve(
    listener: TcpListener,
    server: Arc<dyn Server>,
    render_metrics: RenderMetrics,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    let address = listener.local_addr().map_err(Error::Listener)?;
    tracing::debug!(%address, "HTTP front end is up");
    let router = router(Context { server, render_metrics });
    let shutdown = shutdown.boxed().shared();
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut oldest = VecDeque::new();
    let mut connections = JoinSet::new();
    while let Some((stream, place)) = next(&listener, &places, &mut oldest, shutdown.clone()).await {
        let (stay, leave) = oneshot::channel::<()>();
        oldest.push_back(stay);
        let conversation = converse(stream, router.clone(), shutdown.clone());
        connections.spawn(async move {
            tokio::select! {
                () = conversation => {}
                _ = leave => tracing::debug!("an HTTP connection gave way to a new one"),
            }
            drop(place);
        });
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
    Ok(())
}

/// The next connection with its place, or `None` when it is time to stop.
async fn next(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
    oldest: &mut VecDeque<oneshot::Sender<()>>,
    shutdown: Shared<impl Future<Output = ()>>,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let accept = async {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    oldest.retain(|connection| !connection.is_closed());
                    if places.available_permits() == 0 {
                        // Dropped: the connection ends, and its place is free.
                        oldest.pop_front();
                    }
                    let place = Arc::clone(places).acquire_owned().await.ok()?;
                    return Some((stream, place));
                }
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
        accepted = accept => accepted,
    }
}

/// One connection from its first byte to its end. Errors are the client's affair and end only this connection.
async fn converse(stream: TcpStream, router: Router, shutdown: Shared<impl Future<Output = ()>>) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(connection);
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = end_of(shutdown) => {
            connection.as_mut().graceful_shutdown();
            match tokio::time::timeout(CLOSING_TIMEOUT, connection).await {
                Ok(outcome) => outcome,
                Err(_) => return,
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
