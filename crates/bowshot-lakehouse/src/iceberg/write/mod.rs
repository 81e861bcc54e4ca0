//! Snapshots for an Iceberg table of the format versions 2 and 3 (<https://iceberg.apache.org/spec/>).
//!
//! ```text
//! rows ─▶ data_files ─ transform: by partition ─▶ Parquet ─ metrics ─▶ manifest ─▶ append ─▶ snapshot, which a catalog commits
//!         └──────────────────────── new_files: gone unless a snapshot names them ────────┘
//! ```
//!
//! Everything here but the commit blocks. A file is never overwritten, and one that no snapshot can name is removed.

mod append;
mod avro;
mod column_bounds;
mod compaction;
mod data_files;
mod delete_vectors;
mod expiry;
mod manifest;
mod metrics;
mod new_files;
mod new_table;
mod puffin;
mod ref_change;
mod removal;
mod schema_change;
mod spec_change;
mod table_change;
mod table_state;
mod transform;

pub(super) use append::Append;
pub(super) use compaction::small_files;
pub(super) use data_files::{RowWriter, WrittenFile};
pub(super) use expiry::Expiry;
pub(super) use metrics::Metrics;
pub(super) use new_files::NewFiles;
pub(super) use new_table::table_request;
pub use new_table::{NewPartition, NewTable};
pub use ref_change::ReferenceChange;
pub(super) use removal::Removal;
pub use schema_change::ColumnChange;
pub use spec_change::PartitionChange;
pub use table_change::TableAlteration;
pub(super) use table_change::TableChange;
pub(super) use table_state::TableState;
