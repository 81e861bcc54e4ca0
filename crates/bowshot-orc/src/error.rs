//! What can go wrong between a file and its rows.

use arrow::error::ArrowError;
use std::io;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file's content contradicts itself.
    #[error("{0}")]
    Corrupt(String),
    /// The file is sound, but has what is not read.
    #[error("{0}")]
    Unsupported(String),
    /// The bytes did not come.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Self {
        Self::Corrupt(error.to_string())
    }
}

/// An error of the first kind.
pub(crate) fn corrupt(what: impl Into<String>) -> Error {
    Error::Corrupt(what.into())
}
