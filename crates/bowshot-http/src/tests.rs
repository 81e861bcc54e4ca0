//! The front end over a real socket, with a server behind the server API whose state the test decides.

mod client;
mod console;
mod formats;
mod grpc_web;
mod lifecycle;
mod malformed_requests;
mod mcp;
mod mutated_bodies;
mod operations;
mod sessions;
mod sql;
mod stored_results;
mod tables;
mod test_server;
mod tls;
mod transports;
mod types;

use crate::{Choices, serve};
use bowshot_api::{Limits, Server};
use client::{Reply, receive, request, send};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use test_server::TestServer;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(20);

struct Running {
    address: SocketAddr,
    server: Arc<TestServer>,
    stop: oneshot::Sender<()>,
    served: JoinHandle<std::result::Result<(), crate::Error>>,
}

fn choices() -> Choices {
    let rendered = || "# TYPE bowshot_queries_total counter\nbowshot_queries_total 9".to_owned();
    Choices {
        render_metrics: Arc::new(rendered),
        tls: None,
        cleartext: false,
        certificates: false,
        origins: Vec::new(),
        mcp: true,
        grpc_web: None,
    }
}

impl Running {
    async fn start() -> Self {
        Self::open(Limits::default(), false, choices()).await
    }

    async fn open(limits: Limits, users_only: bool, choices: Choices) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let address = listener.local_addr().expect("address");
        let server = TestServer::open(limits, users_only);
        let (stop, stopped) = oneshot::channel();
        let shared: Arc<dyn Server> = Arc::<TestServer>::clone(&server);
        let served = tokio::spawn(serve(listener, shared, choices, async move {
            _ = stopped.await;
        }));
        Self { address, server, stop, served }
    }

    /// One request on a connection of its own.
    async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        receive(&mut send(self.address, &request(method, path, headers, body)).await).await
    }

    /// A statement as text.
    async fn sql(&self, sql: &str, accept: &str) -> Reply {
        self.ask("POST", "/v1/sql", &[("content-type", "text/plain"), ("accept", accept)], sql.as_bytes())
            .await
    }

    /// An order as JSON.
    async fn order(&self, order: &str) -> Reply {
        self.ask("POST", "/v1/sql", &[("content-type", "application/json")], order.as_bytes()).await
    }

    async fn stop(self) {
        self.stop.send(()).expect("still running");
        self.served.await.expect("no panic").expect("a clean end");
    }
}
