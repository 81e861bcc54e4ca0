//! Errors of encoding and decoding.

use arrow::error::ArrowError;
use bowshot_api::ErrorKind;
use std::path::{Path, PathBuf};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An array that cannot be sent, or bytes that are no Arrow data.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("a batch has {found}, but its stream announced {announced}")]
    SchemaMismatch { announced: String, found: String },
    #[error("column `{column}` is dictionary-encoded, but the reader asked for plain columns")]
    DictionaryRefused { column: String },
    #[error("one row takes {bytes} bytes, more than a message can hold: {limit}")]
    RowTooLarge { bytes: usize, limit: usize },
    #[error("the batch cannot be encoded as Arrow IPC")]
    Encode(#[source] ArrowError),
    #[error("malformed Arrow data: {0}")]
    Malformed(String),
    #[error("malformed Arrow data")]
    Decode(#[source] ArrowError),
    /// Arrow panicked on the bytes: a case that the checks before it should have caught.
    #[error("malformed Arrow data that its reader could not bear")]
    Panicked,
    #[error("Arrow data too large: {what} is {found}, the limit is {limit}")]
    TooLarge { what: &'static str, found: u64, limit: u64 },
    #[error("no Arrow file, but {found}")]
    NotArrow { found: &'static str },
    #[error("the file cannot be read any more: {0}")]
    Changed(&'static str),
    #[error("the file cannot be read")]
    Io(#[from] std::io::Error),
    #[error("file `{}`: {source}", path.display())]
    File { path: PathBuf, source: Box<Error> },
    /// Memory of a client that could change while it is read, or is none.
    #[error("the shared memory is refused: {0}")]
    NotSealed(&'static str),
    #[error("unexpected Arrow message: {0}")]
    Unexpected(&'static str),
    #[error("unsupported Arrow data: {0}")]
    Unsupported(String),
    #[error("the encoder stopped")]
    Stopped(#[source] tokio::task::JoinError),
}

impl Error {
    pub(crate) fn malformed(what: impl Into<String>) -> Self {
        Self::Malformed(what.into())
    }

    /// Names the file; an error that names one already stays as it is.
    pub(crate) fn in_file(self, path: &Path) -> Self {
        match self {
            Self::File { .. } => self,
            source => Self::File { path: path.to_owned(), source: Box::new(source) },
        }
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::SchemaMismatch { .. }
            | Self::DictionaryRefused { .. }
            | Self::Encode(_)
            | Self::Stopped(_) => ErrorKind::Internal,
            Self::RowTooLarge { .. } | Self::TooLarge { .. } => ErrorKind::LimitReached,
            Self::Malformed(_)
            | Self::Decode(_)
            | Self::Panicked
            | Self::Unexpected(_)
            | Self::NotSealed(_) => ErrorKind::Invalid,
            Self::Unsupported(_) => ErrorKind::Unsupported,
            Self::NotArrow { .. } | Self::Changed(_) => ErrorKind::Corrupt,
            Self::Io(error) if error.kind() == std::io::ErrorKind::NotFound => ErrorKind::NotFound,
            Self::Io(_) => ErrorKind::Unavailable,
            // What a client sends wrong is its fault; what is wrong in a file is the file's.
            Self::File { source, .. } => match source.kind() {
                ErrorKind::Invalid => ErrorKind::Corrupt,
                kind => kind,
            },
        }
    }

    /// The message with those causes that lie in the caller's own data.
    fn told(&self) -> String {
        match self {
            Self::Decode(cause) => format!("{self}: {cause}"),
            Self::Io(cause) => format!("{self}: {cause}"),
            Self::File { path, source } => format!("file `{}`: {}", path.display(), source.told()),
            _ => self.to_string(),
        }
    }
}

impl From<Error> for bowshot_api::Error {
    fn from(error: Error) -> Self {
        bowshot_api::Error::new(error.kind(), error.told()).with_source(error)
    }
}
