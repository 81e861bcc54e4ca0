//! A listener with the server behind it.

use crate::server::TestServer;
use bowshot_api::{Limits, Server};
use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// How long anything may take that should happen at once.
pub const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub struct Port {
    /// Where the front end listens.
    pub address: SocketAddr,
    /// The server behind it.
    pub server: Arc<TestServer>,
    stop: CancellationToken,
    served: JoinHandle<()>,
}

impl Port {
    /// Runs a front end: `serve` gets the listener, the server, and what ends it.
    pub async fn open<F, E: Debug>(
        limits: Limits,
        users_only: bool,
        serve: impl FnOnce(TcpListener, Arc<dyn Server>, WaitForCancellationFutureOwned) -> F,
    ) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = TestServer::open(limits, users_only);
        let stop = CancellationToken::new();
        let serving = serve(listener, Arc::clone(&server) as _, stop.clone().cancelled_owned());
        let served = tokio::spawn(async move { serving.await.unwrap() });
        Self { address, server, stop, served }
    }

    /// Ends the front end in order.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits for the end.
    pub async fn stopped(self) {
        self.served.await.unwrap();
    }
}
