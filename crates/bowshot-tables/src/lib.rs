//! Tables that Bowshot itself writes: immutable snapshots, commits of which the first wins, and DataFusion's view of
//! the rows. Knows no SQL: defaults, checks and keys are kept here as text and enforced above.
//!
//! # The road of a change
//!
//! ```text
//! store.snapshot() = base ─▶ table.append / delete / redefine ─▶ base.with_entry = changed ─▶ store.commit(both)
//!                             (new segments, others shared)                                (merge, publish)
//! ```
//!
//! Nothing that was handed out ever changes: a statement reads one [`Snapshot`] to its end, a savepoint is an older
//! `Arc<Snapshot>`, and a rollback forgets one. A change costs what it touches: `append` shares all segments, `delete`
//! notes which rows of a file are deleted if they are few, and rewrites other segments that lose rows, and a snapshot copies
//! only the maps of names on the way to the entry.
//!
//! # What a commit promises
//!
//! Snapshot isolation. [`TableStore::commit`] finds out what a transaction did by comparing its two snapshots, and
//! merges that into the newest one:
//!
//! - Appends never conflict with one another, nor with deletes. Only when the table has a primary key, added rows
//!   conflict with rows of the same key that others have added since the transaction's base, with many rows, and with those
//!   whose keys are not compared by their bytes ([`key_conflicts`]).
//! - Deletes (and so updates) conflict when they delete the same row. Segments remember for a while what they were made of
//!   ([`segment_parts`]), so that rows are found again in what was united or written anew since; a row that is not found again
//!   counts as deleted, and so does one of a file that would have to be written anew.
//! - What was created, dropped, redefined or renamed must be in the newest snapshot as it was in the base.
//! - What a transaction only read is not looked at. So two transactions may each read what the other one writes, and
//!   both commit (write skew). [`TableStore::commit_serializable`] looks at that as well: a table that was read must be as it
//!   was in the base, and rows that the transaction has locked to read them must be as they were then.
//! - A materialized view that is refreshed on commit shows its tables in every snapshot: [`TableStore::rebased`] gives the state over
//!   which its rows are computed, and a commit that would leave one behind fails ([`commit_views`]).
//!
//! # Where rows are
//!
//! A segment is a record batch in memory or a Parquet file; the table's definition says which of the two outlives the
//! server ([`durable`]). Rows in memory are counted by the allocations they keep alive, each once, against the limit of
//! the store.

mod broken;
mod catalog_kv;
mod commit_queue;
mod commit_views;
mod compaction;
mod deep_copy;
mod definition;
mod definition_check;
mod deleted_rows;
pub mod durable;
mod error;
mod external;
mod file_scan;
mod key_conflicts;
mod key_lookup;
mod memory_accounting;
mod merge;
mod model_files;
mod name;
mod pipes;
mod provider;
mod read_set;
mod refresh_failures;
mod scan;
mod segment;
mod segment_parts;
mod sequences;
mod snapshot;
mod store;
mod table;
mod view_usage;
mod writer;

pub use broken::{Broken, examine, notes_in};
pub use catalog_kv::Notes;
pub use definition::{
    Check, Column, DECLARED, Definition, ENUM, Generated, Identity, IdentityKind, Key, LastRefresh,
    Materialized, PADDED, Reference, SourceVersion, Storage,
};
pub use durable::{Opening, TablesPlace, durable_type};
pub use error::{Error, What};
pub use external::External;
pub use key_lookup::{FoundRows, has_plain_equality};
pub use model_files::ModelFiles;
pub use name::EntryName;
pub use pipes::{Pipe, PipeError, PipeFile, PipeLoad};
pub use read_set::{Reads, SeenRows};
pub use segment::Segment;
pub use sequences::Numbering;
pub use snapshot::{Entry, Snapshot, View};
pub use store::{StoreOptions, TableStore};
pub use table::Table;
pub use view_usage::ViewUsage;
pub use writer::SegmentWriter;

#[cfg(test)]
mod tests;
