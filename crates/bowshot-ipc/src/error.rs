//! What can go wrong between arrays and bytes, and what the caller should do about it.

use arrow::error::ArrowError;
use bowshot_api::ErrorKind;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An array that cannot be sent, or bytes that are no Arrow data.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A batch does not fit the schema that its stream announced.
    #[error("a batch has {found}, but its stream announced {announced}")]
    SchemaMismatch {
        /// What the stream announced.
        announced: String,
        /// What came.
        found: String,
    },
    /// The schema has a column that the options rule out.
    #[error("column `{column}` is dictionary-encoded, but the reader asked for plain columns")]
    DictionaryRefused {
        /// The column's name.
        column: String,
    },
    /// One row is larger than a message can be.
    #[error("one row takes {bytes} bytes, more than a message can hold: {limit}")]
    RowTooLarge {
        /// Bytes of the row.
        bytes: usize,
        /// Bytes of the largest message.
        limit: usize,
    },
    /// Arrow refused to encode a batch or schema.
    #[error("the batch cannot be encoded as Arrow IPC")]
    Encode(#[source] ArrowError),
    /// The bytes break a rule of the Arrow IPC format.
    #[error("malformed Arrow data: {0}")]
    Malformed(String),
    /// Arrow refused to read the bytes.
    #[error("malformed Arrow data")]
    Decode(#[source] ArrowError),
    /// The bytes are well formed but larger than this server accepts.
    #[error("Arrow data too large: {what} is {found}, the limit is {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How large it is.
        found: u64,
        /// How large it may be.
        limit: u64,
    },
    /// A message came at a place where it is not allowed.
    #[error("unexpected Arrow message: {0}")]
    Unexpected(&'static str),
    /// Valid Arrow data that this version cannot read.
    #[error("unsupported Arrow data: {0}")]
    Unsupported(String),
    /// The worker that compressed a message died.
    #[error("the encoder stopped")]
    Stopped(#[source] tokio::task::JoinError),
}

impl Error {
    pub(crate) fn malformed(what: impl Into<String>) -> Self {
        Self::Malformed(what.into())
    }
}

impl From<Error> for bowshot_api::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::SchemaMismatch { .. }
            | Error::DictionaryRefused { .. }
            | Error::Encode(_)
            | Error::Stopped(_) => ErrorKind::Internal,
            Error::RowTooLarge { .. } | Error::TooLarge { .. } => ErrorKind::LimitReached,
            Error::Malformed(_) | Error::Decode(_) | Error::Unexpected(_) => ErrorKind::Invalid,
            Error::Unsupported(_) => ErrorKind::Unsupported,
        };
        let message = match &error {
            // The cause of these is the caller's data, so the caller gets to see it.
            Error::Decode(cause) => format!("{error}: {cause}"),
            _ => error.to_string(),
        };
        bowshot_api::Error::new(kind, message).with_source(error)
    }
}
