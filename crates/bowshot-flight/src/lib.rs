//! The Arrow Flight SQL front end. It only translates gRPC calls into calls of the server API.
//!
//! ```text
//! socket ─► listen.rs ─► call_layer.rs ─┬─ DoGet ─► stream.rs ─► bowshot-ipc ─► socket
//!                                       ├─ DoExchange ─► exchange.rs ─► upload.rs, stream.rs
//!                                       └─ others ─► service.rs (the generated trait) ─► statement.rs, poll.rs, put.rs,
//!                                                    actions.rs ─► prepared.rs, transaction.rs, ingest.rs, metadata.rs
//! ```
//!
//! - Authentication and sessions: `auth.rs`, `cookie.rs`, `caller.rs`, `connection.rs`.
//! - Opaque bytes for clients: `ticket.rs`, `handles.rs`. Uploads: `upload.rs` over `request_body.rs`.
//! - Messages that the generated code lacks: `proto.rs`. Choices that the protocol leaves open: `profile.rs`.
//! - Browsers, over the HTTP front end's connections: `grpc_web.rs`. Shared memory for local clients: `same_host.rs`.
//! - Errors: `status.rs`, `error_details.rs`. Metrics: `metrics.rs`, `response_body.rs`.
//!
//! Statements take effect in GetFlightInfo; DoGet only attaches. A session is found by cookie, else by the token of a
//! handshake, else by connection. An unknown cookie is `NOT_FOUND`, except in the calls with which clients connect
//! (handshake, SetSessionOptions, GetSqlInfo): those open a new session.

mod actions;
mod auth;
mod call_layer;
mod caller;
pub mod client;
mod connection;
mod connection_limiter;
mod cookie;
mod error_details;
mod exchange;
mod grpc_web;
mod handles;
mod handshake;
mod ingest;
mod listen;
mod lost_sessions;
mod message_size;
mod messages;
mod metadata;
mod metrics;
mod models;
mod parameters;
mod poll;
mod prefixed_io;
mod prepared;
mod profile;
mod proto;
mod put;
mod request_body;
mod response_body;
#[cfg(target_os = "linux")]
mod same_host;
mod service;
mod session_options;
mod sql_info;
mod statement;
mod status;
mod stream;
mod table_keys;
mod tensor_exchange;
mod ticket;
mod transaction;
mod type_info;
mod upload;

#[cfg(test)]
mod tests;

pub use grpc_web::{Web, WebConnection};
pub use listen::{Choices, Error, serve, serve_with};
pub use profile::{AppMetadata, Ids, Locations, Profile, UnnamedAction};
#[cfg(target_os = "linux")]
pub use same_host::{SameHost, SharedLimits};
