//! The HTTP front end: SQL in one round trip, upload and download of tables, health, readiness and metrics. It only
//! translates HTTP into calls of the server API.
//!
//! ```text
//! socket ─► connection.rs, handshake.rs (TLS) ─► routes.rs ─┬─► health.rs, metrics_endpoint.rs, console.rs   no credentials
//!                                                           └─► caller.rs ─┬─► sql.rs               with credentials
//!                                                                          ├─► tables.rs, ingest/
//!                                                                          ├─► mcp/
//!                                                                          ├─► grpc_web.rs ─► another front end
//!                                                                          └─► session_scope.rs, queries.rs, stored_results.rs
//! ```
//!
//! - Authentication and transport security: `caller.rs`; origins of web pages: `cors.rs`.
//! - Requests: `sql_request.rs`, `parameters.rs`; response formats: `media_type.rs`.
//! - Sessions: `session_scope.rs`, `session_lock.rs`; cleanup after clients that left: `cleanup.rs`.
//! - Tools for agents: `mcp/`. Results: `response.rs`, `output/`. Uploads: `ingest/`. Errors: `status.rs`. `openapi.json` describes every route.
//!
//! `/health`, `/ready` and `/metrics` need no credentials: they show no names of tables, users or queries, and no
//! rows.
//!
//! Never: a whole result or upload in memory, a password prompt over cleartext, a web page that uses the server
//! without its user's knowledge, a client that holds a connection forever.

mod caller;
mod cleanup;
mod connection;
mod console;
mod cors;
mod error;
mod grpc_web;
mod handshake;
mod health;
mod ingest;
mod json_integers;
mod mcp;
mod media_type;
mod metrics_endpoint;
mod openapi;
mod output;
mod parameters;
mod process;
mod queries;
mod request_body;
mod request_span;
mod response;
mod routes;
mod session_lock;
mod session_scope;
mod sql;
mod sql_request;
mod status;
mod stored_results;
mod table_name;
mod tables;

#[cfg(test)]
mod tests;

pub use connection::serve;
pub use error::Error;
pub use grpc_web::{GrpcWeb, GrpcWebConnection};

use bowshot_api::Server;
use cleanup::CleanupQueue;
use session_lock::SessionLocks;
use std::fmt;
use std::sync::Arc;

/// Path of the Model Context Protocol.
pub(crate) const MCP_PATH: &str = "/mcp";

/// Renders the metrics of this process in Prometheus text format.
pub type RenderMetrics = Arc<dyn Fn() -> String + Send + Sync>;

/// Configuration of the front end.
#[derive(Clone)]
pub struct Choices {
    pub render_metrics: RenderMetrics,
    /// TLS configuration; with it, remote clients must use TLS.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Whether remote clients may send credentials without TLS.
    pub cleartext: bool,
    /// Whether statements require a client certificate.
    pub certificates: bool,
    /// Origins of web pages that may use the server, such as `https://example.org`.
    pub origins: Vec<String>,
    /// Whether agents may use the Model Context Protocol.
    pub mcp: bool,
    /// The front end that answers gRPC-Web, which browsers can only send to this port.
    pub grpc_web: Option<Arc<dyn GrpcWeb>>,
}

impl fmt::Debug for Choices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Choices")
            .field("tls", &self.tls.is_some())
            .field("cleartext", &self.cleartext)
            .field("origins", &self.origins)
            .finish_non_exhaustive()
    }
}

/// State of request handlers.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    server: Arc<dyn Server>,
    choices: Arc<Choices>,
    cleanup: CleanupQueue,
    locks: SessionLocks,
}
