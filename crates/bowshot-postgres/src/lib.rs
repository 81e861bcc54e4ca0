//! The PostgreSQL front end: translates the frontend/backend protocol, version 3.0, into calls on the door, and nothing
//! more. References in this crate are to the chapter "Frontend/Backend Protocol" of the PostgreSQL manual.
//!
//! ```text
//! socket ─► listen.rs ─► arrival.rs (TLS, start-up) ─► auth.rs ─► connection.rs ─┬─► simple.rs
//!                                                                                ├─► extended.rs, portal.rs
//!                                                                                └─► copy/
//! ```
//!
//! - Bytes in and out, within limits: `wire.rs`; messages of clients: `message.rs`; those of the server: `backend.rs`.
//! - What a text is, as far as the protocol has to know: `lex.rs`, `statement.rs`; what it is called when it is done: `tag.rs`.
//! - Values from Arrow to PostgreSQL: `rows/`; from PostgreSQL to Arrow, for parameters and COPY: `read/`.
//! - Errors as SQLSTATEs: `status.rs`. Ending what runs: `cancel.rs`.
//!
//! The codec is our own. Of a library only the twelve messages of clients would be of use: accounts hold Argon2 hashes, from
//! which no SCRAM verifier can be made, and rows go from Arrow straight into the buffer of the socket.
//!
//! What must never happen here: memory by a length that a client says, a whole result in memory, a message that is
//! half written, a password asked for where others can read it.

mod arrival;
mod auth;
mod backend;
mod cancel;
mod connection;
mod copy;
mod extended;
mod lex;
mod listen;
mod message;
mod portal;
mod read;
mod reported;
mod rows;
mod simple;
mod startup;
mod statement;
mod status;
mod tag;
mod wire;

#[cfg(test)]
mod tests;

pub use listen::{Choices, Error, serve};
