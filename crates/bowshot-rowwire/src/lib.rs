//! What the front ends of row-oriented protocols (PostgreSQL, MySQL) share: connections, results and rows, from Arrow to bytes
//! and back. No code of one protocol, no error code and no SQL belongs here: a front end passes in what differs.

pub mod connection;
pub mod encode;
mod error;
pub mod ingest;
mod listener;
mod result_stream;
mod running_statement;
mod socket;

pub use error::{ConnectionError, ProtocolError, client_message};
pub use listener::{Error, FrontEnd, ListenOptions, serve};
pub use result_stream::ResultStream;
pub use running_statement::RunningStatement;
pub use socket::{MessageLimits, Socket, Stream, accept_tls};
