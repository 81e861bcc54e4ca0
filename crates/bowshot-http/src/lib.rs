//! The HTTP front end: SQL in one round trip, tables to and from files, and whether the server is alive, ready and what it
//! holds. It translates HTTP into calls on the door, and nothing more.
//!
//! ```text
//! socket ─► connection.rs, arrival.rs (TLS) ─► routes.rs ─┬─► health.rs, metrics.rs, console.rs   for everybody
//!                                                        └─► caller.rs ─┬─► sql.rs          for those who may
//!                                                                       ├─► tables.rs, ingest/
//!                                                                       ├─► grpc_web.rs ─► another front end
//!                                                                       └─► rooms.rs, queries.rs, kept.rs
//! ```
//!
//! - Who is calling, and over which road: `caller.rs`, `auth.rs`; which web pages may: `origins.rs`.
//! - What a request asks for: `order.rs`, `parameters.rs`; in which form it wants its answer: `form.rs`.
//! - Sessions, of one request or with a token: `rooms.rs`, `session_lock.rs`. What has to be done when a client is gone: `chores.rs`.
//! - Results on their way out, a piece at a time: `answer.rs`, `output/`. Rows on their way in: `ingest/`.
//! - Errors: `status.rs`. Every route is described in `openapi.json`.
//!
//! What `/health`, `/ready` and `/metrics` tell is operational and read-only: no name of a table, user or query, no row. That is
//! why they need no credentials; everything below `/v1` but its description does. The console is a page without content of its own (`console.rs`).
//!
//! What must never happen here: a whole result or upload in memory, a password asked for where others can read it, a web page
//! that uses the server behind the back of its user, a client that holds a connection for as long as it likes.

mod answer;
mod arrival;
mod caller;
mod chores;
mod connection;
mod console;
mod error;
mod form;
mod grpc_web;
mod health;
mod ingest;
mod kept;
mod metrics;
mod names;
mod openapi;
mod order;
mod origins;
mod output;
mod parameters;
mod process;
mod queries;
mod rooms;
mod routes;
mod session_lock;
mod sql;
mod status;
mod tables;
mod traced;
mod upload;
mod whole;

#[cfg(test)]
mod tests;

pub use connection::serve;
pub use error::Error;
pub use grpc_web::{GrpcWeb, GrpcWebConnection};

use bowshot_api::Server;
use chores::Chores;
use session_lock::SessionLocks;
use std::fmt;
use std::sync::Arc;

/// Renders the metrics of this process in Prometheus text format.
pub type RenderMetrics = Arc<dyn Fn() -> String + Send + Sync>;

/// What whoever starts the front end decides.
#[derive(Clone)]
pub struct Choices {
    /// Renders the metrics of the process.
    pub render_metrics: RenderMetrics,
    /// How connections are encrypted that begin with TLS; with it, other machines get SQL over such connections only.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Whether credentials may come over connections of other machines that are not encrypted.
    pub cleartext: bool,
    /// Whether statements are taken only from clients that have shown a certificate.
    pub certificates: bool,
    /// The origins whose web pages may use the server, as browsers write them: `https://example.org`.
    pub origins: Vec<String>,
    /// Who answers calls of gRPC-Web, which come over this port since browsers speak nothing else.
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

/// What every request handler needs.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    server: Arc<dyn Server>,
    choices: Arc<Choices>,
    chores: Chores,
    locks: SessionLocks,
}
