//! The HTTP front end: is the server alive, is it ready, what does it hold. For load balancers, Prometheus and people
//! with a browser.
//!
//! Everything it answers is operational and read-only: no name of a table, user or query, no row. That is why it needs no
//! credentials; whoever must not see even these counts must not reach the address (`--http`).
//!
//! Data comes from [`bowshot_api::Server`] and from the function that renders the process's metrics; it goes out as
//! text or as JSON. What must never happen here: a request that waits for a query, or a client that holds a connection
//! for as long as it likes.

mod connection;
mod error;
mod health;
mod metrics;
mod process;
mod routes;
mod status;

#[cfg(test)]
mod tests;

pub use connection::serve;
pub use error::Error;
pub use status::status;

use bowshot_api::Server;
use std::fmt;
use std::sync::Arc;

/// Renders the metrics of this process in Prometheus text format.
pub type RenderMetrics = Arc<dyn Fn() -> String + Send + Sync>;

/// What every request handler needs.
#[derive(Clone)]
pub(crate) struct Context {
    server: Arc<dyn Server>,
    render_metrics: RenderMetrics,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("server", &self.server).finish_non_exhaustive()
    }
}
