//! The data plane: record batches to frames and back, without copying a data buffer on the way out.
//!
//! ```text
//! RecordBatch ─► Encoder (slice, trim, encode) ─► Message ─► into_frames ─► FlightBody ─► HTTP/2 socket
//! socket ─► FlightData parts ─► Decoder (check, then read) ─► RecordBatch that shares the memory of the body
//! Arrow file ─► MappedFile (check, then read) ─► RecordBatch that shares the memory of the map
//! ```
//!
//! - [`schema_bytes`], [`read_schema_bytes`]: a schema as an encapsulated IPC message (`schema.rs`).
//! - [`Encoder`]: cuts batches into messages of bounded size (`batch.rs`) whose bodies share the arrays' memory.
//! - [`Message`]: one IPC message; [`Message::into_frames`] writes the gRPC and protobuf bytes around it (`frame.rs`).
//! - [`FlightBody`]: an HTTP body that streams a result as Flight data and ends with gRPC trailers (`body.rs`).
//!   For some readers one message of a long stream is larger than all others (`large_message.rs`) and made of several batches
//!   (`joined.rs`).
//! - [`Rope`]: the frames of one message, handed to the socket together (`rope.rs`).
//! - [`Decoder`]: hostile bytes to record batches or to an error, never to a panic (`decode.rs`, `check.rs`).
//! - [`MappedFile`]: an Arrow file as batches that share the mapped memory (`mapped.rs`, `map.rs`), and what keeps the process
//!   alive when such a file is truncated (`guard.rs`); [`FilePages`]: the same for the bytes of any file (`pages.rs`).
//! - [`shared`]: memory that a client on the same machine maps instead of receiving rows, and the other way round (Linux).
//!
//! Nothing here knows sessions, queries or SQL. This is the only crate that may have `unsafe` code.

mod batch;
mod body;
mod check;
mod compress;
mod decode;
mod dictionary;
mod encode;
mod error;
mod frame;
mod guard;
mod joined;
mod large_message;
mod map;
mod mapped;
mod measure;
pub mod os;
mod pages;
mod parts;
mod rope;
mod schema;
#[cfg(target_os = "linux")]
pub mod shared;
mod trim;

pub use body::FlightBody;
pub use compress::Compression;
pub use decode::{Decoded, Decoder};
pub use encode::{EncodeOptions, Encoder};
pub use error::{Error, Result};
pub use frame::Message;
pub use large_message::{LargeMessage, Primed};
pub use map::Witness;
pub use mapped::{MappedFile, install_truncation_guard};
pub use pages::FilePages;
pub use rope::Rope;
pub use schema::{read_schema_bytes, schema_bytes};
