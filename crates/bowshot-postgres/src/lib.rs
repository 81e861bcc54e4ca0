//! The PostgreSQL front end: translates the frontend/backend protocol, version 3.0, into calls of the server API, and nothing
//! more. References in this crate are to the chapter "Frontend/Backend Protocol" of the PostgreSQL manual.
//!
//! ```text
//! listen.rs ─► handshake.rs (TLS, start-up packet) ─► startup.rs, auth.rs ─► connection.rs ─┬─► query.rs
//!                                                                                           ├─► prepared.rs, portal.rs
//!                                                                                           └─► copy/
//! ```
//!
//! - Framing: `message_framing.rs`; messages of clients: `frontend_messages.rs`; those of the server: `backend_messages.rs`.
//! - Statements are read in `bowshot_sql::postgres`; results: `result_writer.rs`.
//! - Values from Arrow to PostgreSQL: `encode/`; from PostgreSQL to Arrow, for parameters and COPY: `decode/`.
//!
//! The codec is our own: of a library only the messages of clients would be of use, since rows go from Arrow straight into
//! the buffer of the socket.
//!
//! Never: memory allocated by a length that a client says, a whole result in memory, half a message on the socket, a password
//! sent where others can read it.

mod auth;
mod backend_messages;
mod cancel;
mod connection;
mod copy;
mod decode;
mod encode;
mod frontend_messages;
mod handshake;
mod listen;
mod message_framing;
mod parameter_status;
mod portal;
mod prepared;
mod query;
mod result_writer;
mod startup;
mod status;

#[cfg(test)]
mod tests;

pub use listen::serve;
