//! Development only: a small server in memory behind the server API, and what tests of front ends need around it: a listener
//! and TLS. Everything panics where a test would.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "used by tests only"
)]

mod port;
mod server;
mod session;
pub mod tls;
pub mod types;

pub use port::{PATIENCE, Port};
pub use server::{Counts, TestServer};
