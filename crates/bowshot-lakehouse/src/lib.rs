//! Tables of open formats that others write: Delta, Iceberg and DuckLake. Their own metadata say which files count, and which rows of
//! these were deleted.
//!
//! ```text
//! metadata ─▶ manifests ─▶ data files, deletes ─▶ groups of files that are read alike ─▶ plan
//! └──────────── iceberg ────────────┘             └────── columns, deletes ──────┘      table
//! ```
//!
//! Columns have numbers: in files they are found by these, whatever they were called when a file was written. Of DuckLake the
//! metadata are in a database ([`DuckLake`]). Delta logs are read by the library ([`delta`]), their changes here ([`change_feed`]).

pub mod change_feed;
mod columns;
mod deletes;
mod deletion_bitmap;
pub mod delta;
mod ducklake;
pub mod iceberg;
pub mod row_lineage;
mod table;
pub mod table_folder;
pub mod table_formats;

pub(crate) use deletes::{MAX_DELETED, MAX_VECTOR_BYTES};
pub use ducklake::{DuckLake, DuckLakePlace};
pub use table::LakeTable;
