//! ORC files: what is in them, and their rows as record batches.
//!
//! Everything a file says is checked before it is believed: lengths against the file, counts against limits, places
//! against what there is. A file of noise gives an [`Error`], never a panic, and memory grows with what is decoded and
//! not with what is claimed. Only the columns that are asked for are read.
//!
//! | module | what is in it |
//! |---|---|
//! | [`messages`] | the metadata of a file and of a stripe |
//! | [`footer`] | the end of a file: types, stripes, compression |
//! | [`types`] | types of ORC, and the Arrow types that they become |
//! | [`stripe`] | what is in one stripe: streams, encodings |
//! | [`stream`] | the bytes of one stream, unpacked a block at a time |
//! | [`integer_rle`], [`byte_rle`] | run lengths |
//! | [`column`] | values of one column, with those below it |
//! | [`reader`] | the batches |
//!
//! No files here: who uses this crate says where bytes come from ([`Source`]). Union columns, encrypted files and the
//! compressions LZO and Brotli are refused.

mod byte_rle;
mod column;
mod decompression;
mod error;
mod footer;
mod integer_rle;
mod messages;
mod reader;
mod stream;
mod stripe;
mod texts;
mod times;
mod types;

pub use error::Error;
pub use footer::OrcFile;
pub use reader::{Batches, Wanted};

use bytes::Bytes;
use std::io;
use std::ops::Range;

/// Where the bytes of a file come from.
pub trait Source: Send + Sync {
    /// The bytes of the whole file.
    fn size(&self) -> u64;

    /// Exactly the bytes of a range that lies within the file.
    fn read(&self, range: Range<u64>) -> io::Result<Bytes>;
}

#[cfg(test)]
mod tests;
