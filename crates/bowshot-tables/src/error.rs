//! What can go wrong when tables are changed.

use arrow::error::ArrowError;
use bowshot_api::{ErrorKind, Reason};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Catalog,
    Schema,
    Table,
    View,
    /// A rule about who may do what.
    Rule,
    Model,
    Type,
    Function,
    Secret,
    /// Files that are loaded as they come.
    Pipe,
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Catalog => "catalog",
            Self::Schema => "schema",
            Self::Table => "table",
            Self::View => "view",
            Self::Rule => "rule about access",
            Self::Model => "model",
            Self::Type => "type",
            Self::Function => "function",
            Self::Secret => "secret",
            Self::Pipe => "pipe",
        })
    }
}

/// An error of the tables that Bowshot writes. Names are whole: `catalog.schema.table`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{what} `{name}` does not exist")]
    Missing { what: What, name: String },
    #[error("{what} `{name}` exists already")]
    Exists { what: What, name: String },
    #[error("{what} `{name}` is not empty")]
    NotEmpty { what: What, name: String },
    /// Dropped, though unqualified names stand for what is in it.
    #[error("{what} `{name}` cannot be dropped: it is the default {what}")]
    IsDefault { what: What, name: String },
    /// Another transaction was first; `change` is what it did ("created", "changed", "dropped").
    #[error("{what} `{name}` was {change} by another transaction")]
    Conflict { what: What, name: String, change: &'static str },
    /// A serializable transaction has read what another one changed meanwhile. No name: it may be behind a view.
    #[error("could not serialize access due to read/write dependencies among transactions")]
    NotSerializable,
    /// The rows would take more memory than the store may use, in bytes.
    #[error("tables in memory would take {wanted} bytes, more than their limit: {limit}")]
    Full { wanted: u64, limit: u64 },
    #[error("cannot {doing} `{}`: {reason}", path.display())]
    File { doing: &'static str, path: PathBuf, reason: Arc<io::Error> },
    #[error("the catalog of the data folder {doing}: {reason}")]
    Catalog { doing: &'static str, reason: String },
    /// The data folder has tables, but nothing says which.
    #[error("the data folder `{}` has tables but no catalog", path.display())]
    NoCatalog { path: PathBuf },
    /// The data folder has a table, or a version of one, that its catalog does not know.
    #[error("the catalog of the data folder is older than the table `{}`", path.display())]
    OldCatalog { path: PathBuf },
    /// The place of tables in an object store is not, or no longer, this data folder's.
    #[error("the tables in `{address}` cannot be used: {reason}")]
    NotOurs { address: String, reason: String },
    /// The tables of a data folder are in an object store, and the settings do not say so.
    #[error("the tables of this data folder are in `{address}`")]
    NotNamed { address: String },
    /// Files that are to be copied are in an object store alone.
    #[error("{files} files of tables are only in `{address}`, such as `{first}`")]
    OnlyInStore { address: String, files: usize, first: String },
    /// Nothing is kept any more, since it is not known what of the last commit is on disk.
    #[error("tables cannot be changed since the data folder failed: {reason}")]
    Stopped { reason: String },
    #[error(transparent)]
    Read(#[from] bowshot_object_store::Error),
    /// An earlier state of a table is not kept, or never was.
    #[error("{0}")]
    NoVersion(String),
    #[error("{0}")]
    TooMuch(String),
    #[error("{what} `{name}` cannot be read: {reason}")]
    Broken { what: What, name: String, reason: String },
    /// A row to delete is not there: the address is of another state of the table.
    #[error("no row at segment {segment}, row {row}")]
    NoRow { segment: u64, row: u64 },
    #[error("rewriting made {after} rows of {before}")]
    Rewritten { before: usize, after: usize },
    /// Rows that are not of the table's columns, or that Arrow cannot copy.
    #[error("rows do not fit the table: {0}")]
    Rows(#[from] ArrowError),
    /// Values that `rewrite` cannot give another type.
    #[error("{0}")]
    Invalid(String),
    #[error("reached {end} value of the sequence ({limit})")]
    Exhausted { end: &'static str, limit: i64 },
    #[error("`{}` is there and not empty", path.display())]
    Occupied { path: PathBuf },
    #[error("`{}` is no data folder: it has no `catalog.sqlite`", path.display())]
    NoData { path: PathBuf },
    #[error("`{}` is no backup: it has no `manifest.json`", path.display())]
    NoBackup { path: PathBuf },
    #[error("{place}: {problem}")]
    Damaged { place: String, problem: String },
    /// Tables were dropped and vacuumed faster than their files could be held.
    #[error("the tables change faster than a backup can hold their files")]
    Restless,
    #[error("stopped; nothing is left of it")]
    Interrupted,
    /// What else the caller's own part of a change (`rewrite`) failed with.
    #[error(transparent)]
    Caller(#[from] bowshot_api::Error),
}

impl Error {
    pub(super) fn file(doing: &'static str, path: &Path, reason: io::Error) -> Self {
        Self::File { doing, path: path.to_path_buf(), reason: Arc::new(reason) }
    }

    /// The same for another commit that shared the failed write.
    pub(super) fn again(&self) -> Self {
        match self {
            Self::File { doing, path, reason } => {
                Self::File { doing, path: path.clone(), reason: Arc::clone(reason) }
            }
            Self::Catalog { doing, reason } => Self::Catalog { doing, reason: reason.clone() },
            Self::Stopped { reason } => Self::Stopped { reason: reason.clone() },
            other => Self::Invalid(other.to_string()),
        }
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::Missing { .. } => ErrorKind::NotFound,
            Self::Exists { .. } => ErrorKind::AlreadyExists,
            Self::NotEmpty { .. } | Self::IsDefault { .. } | Self::Invalid(_) => ErrorKind::Invalid,
            Self::Exhausted { .. } => ErrorKind::Invalid,
            Self::Conflict { .. } | Self::NotSerializable => ErrorKind::Conflict,
            Self::Full { .. } | Self::TooMuch(_) => ErrorKind::LimitReached,
            Self::Broken { .. } => ErrorKind::Corrupt,
            Self::File { reason, .. } if reason.kind() == io::ErrorKind::StorageFull => {
                ErrorKind::LimitReached
            }
            Self::File { .. } | Self::Catalog { .. } | Self::Stopped { .. } => ErrorKind::Unavailable,
            Self::NotOurs { .. } | Self::OnlyInStore { .. } => ErrorKind::Unavailable,
            Self::NotNamed { .. } => ErrorKind::Invalid,
            Self::NoCatalog { .. } | Self::OldCatalog { .. } | Self::Damaged { .. } => ErrorKind::Corrupt,
            Self::Occupied { .. } => ErrorKind::AlreadyExists,
            Self::NoData { .. } | Self::NoBackup { .. } => ErrorKind::NotFound,
            Self::Restless => ErrorKind::Unavailable,
            Self::Interrupted => ErrorKind::Cancelled,
            Self::NoVersion(_) => ErrorKind::NotFound,
            Self::NoRow { .. } | Self::Rewritten { .. } | Self::Rows(_) | Self::Read(_) => {
                ErrorKind::Internal
            }
            Self::Caller(error) => error.kind(),
        }
    }

    fn reason(&self) -> Option<Reason> {
        Some(match self {
            Self::Missing { what: What::Catalog, .. } => Reason::UndefinedCatalog,
            Self::Missing { what: What::Schema, .. } => Reason::UndefinedSchema,
            Self::Missing { what: What::Table | What::View, .. } => Reason::UndefinedTable,
            Self::Exists { what: What::Catalog, .. } => Reason::DuplicateCatalog,
            Self::Exists { what: What::Schema, .. } => Reason::DuplicateSchema,
            Self::Exists { what: What::Table | What::View, .. } => Reason::DuplicateTable,
            Self::NotEmpty { .. } | Self::IsDefault { .. } => Reason::DependentObjects,
            Self::Full { .. } => Reason::InsufficientResources,
            Self::Exhausted { .. } => Reason::SequenceLimit,
            Self::File { reason, .. } if reason.kind() == io::ErrorKind::StorageFull => {
                Reason::InsufficientResources
            }
            _ => return None,
        })
    }

    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Missing { .. }
            | Self::NoRow { .. }
            | Self::Rewritten { .. }
            | Self::Rows(_)
            | Self::Invalid(_)
            | Self::Exhausted { .. }
            | Self::Read(_)
            | Self::Interrupted
            | Self::Caller(_) => None,
            Self::Occupied { .. } => Some("name a folder that is not there yet"),
            Self::NoData { .. } => Some("name the folder that the server has as `--data`"),
            Self::NoBackup { .. } => Some("name a folder that `bowshot backup` has made"),
            Self::Damaged { .. } => Some("`bowshot verify` lists all that is wrong; take another backup"),
            Self::Restless => Some("try again when fewer tables are dropped and vacuumed"),
            Self::File { .. } | Self::Catalog { .. } => {
                Some("make room on the disk or mend it, and run the statement again")
            }
            Self::OldCatalog { .. } => Some(
                "bring back the newest `catalog.sqlite`, with its `-wal` file; or move that folder away, which can be served by its path",
            ),
            Self::NoCatalog { .. } => Some(
                "bring its `catalog.sqlite` back from a backup; its tables can be served by their paths as Delta tables",
            ),
            Self::NotOurs { .. } => Some(
                "name an empty prefix of its own in `storage.tables`; the guide `object-stores` says how tables move",
            ),
            Self::NotNamed { .. } => Some(
                "set `storage.tables` to it; or make a folder without a store of it, with `bowshot backup` and `bowshot restore`",
            ),
            Self::OnlyInStore { .. } => {
                Some("let the store answer, with its credentials in `--config` or the environment")
            }
            Self::Stopped { .. } => Some("mend the disk and start the server again"),
            Self::NoVersion(_) => Some("list what is kept with `SELECT * FROM system.table_history`"),
            Self::Exists { .. } => Some("choose another name, or drop it first"),
            Self::NotEmpty { .. } => Some("drop what is in it first, or add CASCADE"),
            Self::IsDefault { .. } => Some("drop its tables and views one by one"),
            Self::Conflict { .. } => Some("run the transaction again"),
            Self::NotSerializable => Some("the transaction might succeed if retried: run all of it again"),
            Self::Full { .. } => Some("drop or truncate a table, or raise `storage.memory_bytes`"),
            Self::TooMuch(_) => Some("choose shorter names, fewer columns or flatter types"),
            Self::Broken { .. } => {
                Some("bring the data folder back from a backup, or drop the entry; the others are served")
            }
        }
    }
}

impl From<Error> for bowshot_api::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Caller(error) => return error,
            Error::Read(error) => return error.into(),
            _ => {}
        }
        let converted = Self::new(error.kind(), error.to_string());
        let converted = match error.reason() {
            Some(reason) => converted.with_reason(reason),
            None => converted,
        };
        let converted = match error.hint() {
            Some(hint) => converted.with_hint(hint),
            None => converted,
        };
        converted.with_source(error)
    }
}
