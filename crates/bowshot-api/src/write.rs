//! What changes tables: transactions and bulk ingest, as front ends ask for them.

use crate::{BatchStream, TransactionId};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// How a transaction or a savepoint ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionEnd {
    /// The changes of a transaction become visible to everybody, all at once; a savepoint is forgotten.
    Commit,
    /// The changes since the begin, or since the savepoint, are undone.
    Rollback,
}

/// What to do when the target of an ingest is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfMissing {
    /// Make a table with the columns of the rows.
    Create,
    /// Refuse.
    Fail,
}

/// What to do when the target of an ingest is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfExists {
    /// Refuse.
    Fail,
    /// Add the rows.
    Append,
    /// Drop the table and make a new one with the columns of the rows.
    Replace,
}

/// Rows on their way into a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ingest {
    /// Catalog of the table; the session's default when `None`.
    pub catalog: Option<String>,
    /// Schema of the table; the session's default when `None`.
    pub schema_name: Option<String>,
    /// Name of the table, taken as it is: never folded to lower case.
    pub table: String,
    /// Whether the table belongs to this session alone and goes with it.
    pub temporary: bool,
    /// When the table is not there.
    pub if_missing: IfMissing,
    /// When the table is there.
    pub if_exists: IfExists,
    /// Transaction that the rows belong to. `None`: the only open one of the session, if there is exactly one, since drivers
    /// name none here; else the ingest is a transaction by itself.
    pub transaction: Option<TransactionId>,
    /// Options of the server's own.
    pub options: BTreeMap<String, String>,
}

/// Rows that a client sends along with a statement, which reads them as a table while they come.
#[derive(Debug)]
pub struct Input {
    /// What the statement calls the table, taken as it is.
    pub name: String,
    /// Whether rows that the statement gives straight from these come in the order of these. Without it they come from all
    /// processors at once.
    pub ordered: bool,
    /// How many rows a join or a filter gathers before it gives them on; `None`: as many as in other statements.
    pub batch_rows: Option<NonZeroUsize>,
    /// The rows.
    pub rows: BatchStream,
}
