//! The change data feed of Delta tables: which rows each commit of a range has inserted, deleted and updated (Delta protocol,
//! "Change Data Files" and "Add CDC File"). Ordinary reads of the tables are the library's ([`crate::delta`]).
//!
//! ```text
//! log ─ commits ─▶ what each commit did to which file ─ feed ─▶ files, and which of their rows ─ table ─▶ plan
//!                  (shape: columns then and now)                (vectors: deleted rows)
//! ```
//!
//! A commit that has files of changes of its own is read from these, and its other files are not looked at. Of any other commit
//! the rows of files that were added are inserts, and those of files that were removed deletes; of a file that got another deletion
//! vector, the rows that one of the two deletes, and the other does not. All rows have the columns that the table has now.
//!
//! A log is data that somebody else has written: files that it names lie in the folder of the table or are refused, and nothing in
//! it makes this code read or keep more than its limits allow.

mod commits;
mod deletion_vectors;
mod delta_protocol;
mod feed;
mod file_columns;
mod relabel;
mod table;

use bowshot_api::ErrorKind;
use bowshot_formats::table_version::AsOf;
use bowshot_object_store::Error;
pub(crate) use commits::{Commit, read};
use datafusion::catalog::TableProvider;
pub(crate) use delta_protocol::Shape;
pub(crate) use feed::{Building, Feed};
pub use feed::{change_fields, is_taken};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
pub(crate) use table::ChangesTable;

/// Columns that changes have beside those of the table: what was done, and by which commit, when.
pub const CHANGE_COLUMNS: [&str; 3] = [CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP];
const CHANGE_TYPE: &str = "_change_type";
const COMMIT_VERSION: &str = "_commit_version";
const COMMIT_TIMESTAMP: &str = "_commit_timestamp";

/// What to do where rows of then are none of the table as it is now.
const LATER: &str = "start at the version that introduced the current columns, or query an old version with `FOR VERSION AS OF`";

/// Which changes of a table are meant. Both ends are among them.
#[derive(Debug, Clone, Copy)]
pub struct ChangeRange {
    /// The first version, or the time from which on.
    pub from: AsOf,
    /// The last version, or the time until which; `None` for the newest version.
    pub to: Option<AsOf>,
}

#[derive(Debug)]
pub struct Changes {
    /// Their rows: the columns of the table, and [`CHANGE_COLUMNS`].
    pub table: Arc<dyn TableProvider>,
    /// Whether the table had the columns that it has now in all versions of the range.
    pub same_columns: bool,
}

/// Whether somebody still waits for a feed. What makes it blocks, and cannot be stopped from outside.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted(Arc<AtomicBool>);

/// Whoever waits. Nobody does when it is dropped.
#[derive(Debug)]
pub(crate) struct Waiting(Wanted);

impl Wanted {
    pub(crate) fn wait(&self) -> Waiting {
        Waiting(self.clone())
    }

    /// # Errors
    /// `Interrupted` when nobody waits any more.
    pub(crate) fn check(&self, path: &Path) -> Result<(), Error> {
        if self.0.load(Ordering::Relaxed) {
            let detail = "the statement has ended".to_owned();
            return Err(Error::Interrupted { path: path.to_path_buf(), detail });
        }
        Ok(())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

pub(crate) fn refused(path: &Path, kind: ErrorKind, detail: String, hint: &str) -> Error {
    Error::Feed { path: path.to_path_buf(), detail, kind, hint: hint.to_owned() }
}

/// The error for a table of files of which no changes are known.
pub fn keeps_none(name: &str) -> bowshot_api::Error {
    bowshot_api::Error::unsupported(format!("`{name}` does not record changes of its rows")).with_hint(
        "Delta tables record changes with `delta.enableChangeDataFeed`; for Iceberg tables compare two versions: \
         `SELECT * FROM t EXCEPT SELECT * FROM t FOR VERSION AS OF …`",
    )
}
