//! The MySQL front end: translates MySQL's client/server protocol into calls of the server API, and nothing more. References in
//! this crate are to the chapter "Client/Server Protocol" of MySQL's Source Code Documentation, and to the MySQL manual.
//!
//! ```text
//! listen.rs ─► startup.rs (handshake.rs, TLS, session), auth.rs ─► connection.rs ─┬─► query.rs
//!                                                                                 ├─► prepared.rs
//!                                                                                 └─► load/
//! ```
//!
//! - Framing: `packet_framing.rs`, `compression.rs`, `payload.rs`; packets of clients: `handshake.rs`, `command.rs`; those of the server:
//!   `server_packets.rs`.
//! - Statements are read in `bowshot_sql::mysql`; variables: `assignments.rs`, `rewrite.rs`, `variables.rs`, `user_variables.rs`.
//! - Results: `result_writer.rs`; values from Arrow to MySQL: `encode/`; from MySQL to Arrow, for parameters: `decode.rs`.
//!
//! The codec is our own: rows go from Arrow straight into the buffer of the socket, and a library would do little of the rest.
//!
//! Never: memory allocated by a length that a client says, a whole result in memory, half a packet on the socket, a password
//! sent where others can read it, a made-up value of a variable.

mod assignments;
mod auth;
mod cancel;
mod capability;
mod command;
mod compression;
mod connection;
mod decode;
mod diagnostics;
mod encode;
mod handshake;
mod listen;
mod load;
mod packet_framing;
mod payload;
mod prepared;
mod query;
mod result_writer;
mod rewrite;
mod server_packets;
mod show_create;
mod startup;
mod status;
mod user_variables;
mod variables;

#[cfg(test)]
mod tests;

pub use listen::serve;
