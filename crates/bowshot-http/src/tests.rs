//! The front end over a real socket, with a server behind the server API whose state the test decides.

mod client;
mod console;
mod formats;
mod grpc_web;
mod lifecycle;
mod malformed_requests;
mod mutated_bodies;
mod operations;
mod sessions;
mod sql;
mod stored_results;
mod tables;
mod transports;

use crate::{Choices, serve};
use bowshot_api::Limits;
use bowshot_test_server::{PATIENCE, Port};
use client::{Reply, receive, request, send};
use std::ops::Deref;
use std::sync::Arc;

struct Running(Port);

impl Deref for Running {
    type Target = Port;

    fn deref(&self) -> &Port {
        &self.0
    }
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
        let serve = |listener, server, until| serve(listener, server, choices, until);
        Self(Port::open(limits, users_only, serve).await)
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

    async fn stop(self) {
        self.0.stop();
        self.0.stopped().await;
    }
}
