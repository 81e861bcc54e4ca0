//! The MySQL front end: translates MySQL's client/server protocol into calls on the door, and nothing more. References in this
//! crate are to the chapter "Client/Server Protocol" of MySQL's Source Code Documentation, and to the MySQL manual.
//!
//! ```text
//! socket ─► listen.rs ─► startup.rs (greeting, TLS, session) ─► auth.rs ─► connection.rs ─┬─► query.rs, assign.rs
//!                                                                                         └─► prepared.rs
//! ```
//!
//! - Bytes in and out, within limits: `wire.rs`, `body.rs`; messages of clients: `handshake.rs`, `command.rs`; those of the
//!   server: `reply.rs`.
//! - What a text is, as far as the protocol has to know: `lex.rs`, `statement.rs`, `set.rs`; what the engine cannot know is put
//!   into it by `rewrite.rs`, with the table of system variables in `variables.rs`; `show_create.rs` writes tables as MySQL does.
//! - Results on their way: `running.rs`; values from Arrow to MySQL: `rows/`; from MySQL to Arrow, for parameters: `read.rs`.
//! - Errors as numbers and SQLSTATEs: `status.rs`; those of the last statement, and notes: `diagnostics.rs`. Ending what runs:
//!   `cancel.rs`.
//!
//! The codec is our own: rows go from Arrow straight into the buffer of the socket, and what is left of a library is little.
//!
//! What must never happen here: memory by a length that a client says, a whole result in memory, a packet that is half
//! written, a password asked for where others can read it, a variable that is made up.

mod assign;
mod auth;
mod binary;
mod body;
mod cancel;
mod capability;
mod command;
mod compression;
mod connection;
mod diagnostics;
mod handshake;
mod lex;
mod listen;
mod load;
mod prepared;
mod query;
mod read;
mod reply;
mod rewrite;
mod rows;
mod running;
mod set;
mod show_create;
mod startup;
mod statement;
mod status;
mod user_variables;
mod variables;
mod wire;

#[cfg(test)]
mod tests;

pub use listen::{Choices, Error, serve};
