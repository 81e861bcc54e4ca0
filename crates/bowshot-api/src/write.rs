//! Transactions and bulk ingest.

use crate::{BatchStream, TransactionId};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// How a transaction or a savepoint ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionEnd {
    /// The changes become visible to all sessions atomically; a savepoint is released.
    Commit,
    /// The changes since the transaction began, or since the savepoint, are undone.
    Rollback,
}

/// What to do if the target table is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfMissing {
    /// Create a table with the columns of the rows.
    Create,
    /// Refuse.
    Fail,
}

/// What to do if the target table exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfExists {
    /// Refuse.
    Fail,
    /// Append the rows.
    Append,
    /// Replace it by a table with the columns of the rows.
    Replace,
}

/// The target of a bulk ingest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ingest {
    /// Catalog of the table; the session's default when `None`.
    pub catalog: Option<String>,
    /// Schema of the table; the session's default when `None`.
    pub schema_name: Option<String>,
    /// Name of the table, case-sensitive.
    pub table: String,
    /// Whether the table is temporary.
    pub temporary: bool,
    /// What to do if the table is missing.
    pub if_missing: IfMissing,
    /// What to do if the table exists.
    pub if_exists: IfExists,
    /// The transaction of the ingest. `None`: the only open one of the session, if there is exactly one, since
    /// drivers name none here; else one of its own.
    pub transaction: Option<TransactionId>,
    /// Server-specific options.
    pub options: BTreeMap<String, String>,
}

/// Rows that a client sends with a statement, which reads them as a table.
#[derive(Debug)]
pub struct Input {
    /// Name of the table in the statement, case-sensitive.
    pub name: String,
    /// Whether output rows keep the order of input rows. Without it they come from all processors at once.
    pub ordered: bool,
    /// Batch size of joins and filters; `None` for the default.
    pub batch_rows: Option<NonZeroUsize>,
    pub rows: BatchStream,
}
