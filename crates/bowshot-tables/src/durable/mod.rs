//! Tables that outlive the server.
//!
//! ```text
//! DIR/catalog.sqlite          what there is: names, definitions, versions, segments; the truth
//! DIR/tables/ID/*.parquet     rows of table ID, one file for a segment
//! DIR/tables/ID/_delta_log/   the same table for others to read (Delta Lake)
//! ```
//!
//! # The road of a commit
//!
//! ```text
//! rows ─▶ writer ─┬─ many: Parquet file, synced ─┐
//!                 └─ few: in memory ─────────────┴▶ store.commit ─▶ catalog (one SQLite transaction) ─▶ Delta log
//!                                                     (merge)        few rows go into it as they are
//! ```
//!
//! What counts is the SQLite transaction, which all commits that wait for their turn share. Before it, files are
//! nobody's: a writer that fails removes its own, and those of a writer that was killed go at the next start. After it,
//! the Delta log is brought up to date; what a crash leaves out is caught up from the catalog. A few rows stay in the
//! catalog until [`optimize_vacuum`] moves them into a file, and so do the numbers of few rows that are deleted from a file.
//!
//! Where the files are in an object store, each is copied there before the catalog may name it, and what is here is a copy
//! ([`bucket`]).
//!
//! # Versions
//!
//! Each table counts its commits. A segment is part of the versions `added <= v < removed`, so that an earlier version
//! is a query of the catalog ([`history`]), until VACUUM forgets it.
//!
//! # From outside
//!
//! [`backup`] copies one state of a folder that a server may be using, and [`verify`] holds catalog and files against
//! one another. Both are work of another process and ask the server nothing.

mod background_maintenance;
pub mod backup;
mod bucket;
mod catalog;
mod codec;
mod delta;
mod disk;
mod file;
mod history;
mod load;
mod optimize_vacuum;
mod persist;
mod types;
pub mod verify;
mod writer;

pub use bucket::TablesPlace;
pub use catalog::Opening;
pub use history::Version;
pub use optimize_vacuum::{Optimized, Vacuumed};
pub use types::durable_type;

pub(super) use background_maintenance::Keeper;
pub(super) use backup::remove_abandoned_holds;
pub(super) use bucket::{Bucket, start as look_after_bucket};
pub(super) use catalog::Catalog;
#[cfg(test)]
pub(super) use codec::survives;
pub(super) use disk::{Disk, make_folder, sync_folder};
pub(super) use file::StoredFile;
pub(super) use load::{Leftovers, Loaded, broken_in, load, notes_of};
#[cfg(test)]
pub(super) use optimize_vacuum::vacuum;
pub(super) use persist::{Persisted, persist};
pub(super) use writer::write_file;
