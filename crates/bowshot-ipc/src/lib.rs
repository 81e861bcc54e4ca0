//! The data plane: record batches to Flight frames ([`Encoder`], [`FlightBody`]) and back ([`Decoder`]), without copying a data buffer on the
//! way out, and Arrow files as batches that share mapped memory ([`MappedFile`]). Bytes from outside are checked before they are read, and
//! never cause a panic. Nothing here knows sessions, queries or SQL. This is the only crate with `unsafe` code.

mod batch;
mod batch_metadata;
mod body;
mod combined_message;
mod compress;
mod decode;
mod dictionary;
mod encode;
mod error;
mod file_map;
mod file_pages;
mod frame;
mod large_message;
mod mapped_file;
mod metadata_check;
pub mod os;
mod rope;
mod schema;
#[cfg(target_os = "linux")]
pub mod shared;
mod slice_size;
mod trim;
mod truncation_guard;

pub use body::FlightBody;
pub use decode::{Decoded, Decoder};
pub use encode::{EncodeOptions, Encoder};
pub use error::{Error, Result};
pub use file_map::Witness;
pub use file_pages::FilePages;
pub use frame::Message;
pub use large_message::{LargeMessage, Primed};
pub use mapped_file::{MappedFile, install_truncation_guard};
pub use rope::Rope;
pub use schema::{read_schema_bytes, schema_bytes};
