//! What can go wrong when tables are changed.

use arrow::error::ArrowError;
use bowshot_api::ErrorKind;
use std::fmt;

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A catalog.
    Catalog,
    /// A schema of a catalog.
    Schema,
    /// A table.
    Table,
    /// A view.
    View,
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Catalog => "catalog",
            Self::Schema => "schema",
            Self::Table => "table",
            Self::View => "view",
        })
    }
}

/// An error of the tables that Bowshot writes. Names are whole: `catalog.schema.table`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The named thing is not in the snapshot.
    #[error("{what} `{name}` does not exist")]
    Missing { what: What, name: String },
    /// The name is taken in the snapshot.
    #[error("{what} `{name}` exists already")]
    Exists { what: What, name: String },
    /// Dropped without CASCADE, though there is something in it.
    #[error("{what} `{name}` is not empty")]
    NotEmpty { what: What, name: String },
    /// Dropped, though unqualified names stand for what is in it.
    #[error("{what} `{name}` cannot be dropped: it is the default {what}")]
    IsDefault { what: What, name: String },
    /// Another transaction was first; `change` is what it did ("created", "changed", "dropped").
    #[error("{what} `{name}` was {change} by another transaction")]
    Conflict { what: What, name: String, change: &'static str },
    /// The rows would take more memory than the store may use, in bytes.
    #[error("tables in memory would take {wanted} bytes, more than their limit: {limit}")]
    Full { wanted: u64, limit: u64 },
    /// A row to delete is not there: the address is of another state of the table.
    #[error("no row at segment {segment}, row {row}")]
    NoRow { segment: u64, row: u64 },
    /// Rewriting lost or made up rows.
    #[error("rewriting made {after} rows of {before}")]
    Rewritten { before: usize, after: usize },
    /// Rows that are not of the table's columns, or that Arrow cannot copy.
    #[error("rows do not fit the table: {0}")]
    Rows(#[from] ArrowError),
    /// Values that `rewrite` cannot give another type.
    #[error("{0}")]
    Invalid(String),
    /// What else the caller's own part of a change (`rewrite`) failed with.
    #[error(transparent)]
    Caller(#[from] bowshot_api::Error),
}

impl Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Missing { .. } => ErrorKind::NotFound,
            Self::Exists { .. } => ErrorKind::AlreadyExists,
            Self::NotEmpty { .. } | Self::IsDefault { .. } | Self::Invalid(_) => ErrorKind::Invalid,
            Self::Conflict { .. } => ErrorKind::Conflict,
            Self::Full { .. } => ErrorKind::LimitReached,
            Self::NoRow { .. } | Self::Rewritten { .. } | Self::Rows(_) => ErrorKind::Internal,
            Self::Caller(error) => error.kind(),
        }
    }

    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Missing { .. }
            | Self::NoRow { .. }
            | Self::Rewritten { .. }
            | Self::Rows(_)
            | Self::Invalid(_)
            | Self::Caller(_) => None,
            Self::Exists { .. } => Some("choose another name, or drop it first"),
            Self::NotEmpty { .. } => Some("drop what is in it first, or add CASCADE"),
            Self::IsDefault { .. } => Some("drop its tables and views one by one"),
            Self::Conflict { .. } => Some("run the transaction again"),
            Self::Full { .. } => Some("drop or truncate a table, or raise `storage.memory_bytes`"),
        }
    }
}

impl From<Error> for bowshot_api::Error {
    fn from(error: Error) -> Self {
        if let Error::Caller(error) = error {
            return error;
        }
        let converted = Self::new(error.kind(), error.to_string());
        let converted = match error.hint() {
            Some(hint) => converted.with_hint(hint),
            None => converted,
        };
        converted.with_source(error)
    }
}
