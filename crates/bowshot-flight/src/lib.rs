//! The Arrow Flight SQL front end: translates gRPC calls into calls on the door, and nothing more.
//!
//! ```text
//! socket ─► listen.rs ─► gate.rs ─┬─ DoGet ─► stream.rs ─► bowshot-ipc ─► socket
//!                                 ├─ DoExchange ─► exchange.rs ─► upload.rs, stream.rs
//!                                 └─ others ─► service.rs (the generated trait) ─► statement.rs, poll.rs, put.rs,
//!                                              actions.rs ─► prepared.rs, transaction.rs, ingest.rs, metadata.rs
//! ```
//!
//! - Who calls, and in which session: `auth.rs`, `cookie.rs`, `caller.rs`, `connection.rs`.
//! - What goes out and comes back as opaque bytes: `ticket.rs`, `handle.rs`. What comes in as a stream: `upload.rs`,
//!   over a `request_body.rs` that tells an end from a break. What the generated messages lack: `proto.rs`.
//! - What the protocol leaves open, and how it is decided here: `profile.rs`.
//! - Calls of browsers, which come over the HTTP front end's connections: `web.rs`, into the same gate.
//! - Rows in shared memory, for clients on this machine: `same_host.rs`, over a Unix socket of its own.
//! - Errors as gRPC statuses: `status.rs`, `details.rs`. What is counted: `metrics.rs`, `body.rs`.
//!
//! Statements with effects take effect in GetFlightInfo; DoGet only attaches to what runs. A session is found by
//! cookie, else by the token of a handshake, else by connection. An unknown cookie is refused with `NOT_FOUND`, except
//! by the calls with which clients connect (handshake, SetSessionOptions, GetSqlInfo): those give a new session.

mod actions;
mod arrival;
mod auth;
mod body;
mod caller;
pub mod client;
mod connection;
mod cookie;
mod details;
mod exchange;
mod gate;
mod handle;
mod ingest;
mod keys;
mod listen;
mod lost_sessions;
mod message_size;
mod messages;
mod metadata;
mod metrics;
mod models;
mod parameters;
mod places;
mod poll;
mod prepared;
mod profile;
mod proto;
mod put;
mod request_body;
mod rewound;
mod rooms;
#[cfg(target_os = "linux")]
mod same_host;
mod service;
mod session_options;
mod sql_info;
mod statement;
mod status;
mod stream;
mod ticket;
mod transaction;
mod type_info;
mod upload;
mod web;

#[cfg(test)]
mod tests;

pub use listen::{Choices, Error, serve, serve_with};
pub use profile::{AppMetadata, Ids, Locations, Profile, UnnamedAction};
#[cfg(target_os = "linux")]
pub use same_host::{SameHost, SharedLimits};
pub use web::{Web, WebConnection};
