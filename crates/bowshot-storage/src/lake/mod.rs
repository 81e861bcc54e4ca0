//! Tables of an open format whose columns have numbers: files are found by the table's own metadata, columns in them by
//! their numbers, whatever they were called when a file was written, and rows that were deleted later are left out.
//!
//! ```text
//! metadata ─▶ manifests ─▶ data files, deletes ─▶ groups of files that are read alike ─▶ plan
//! └──────────── iceberg ────────────┘             └────── columns, deletes ──────┘      table
//! ```
//!
//! Of DuckLake the metadata are in a database ([`ducklake`]), and the rest of the road is the same. The change data feed of Delta
//! tables takes the end of it, too ([`delta`]).

mod columns;
mod deletes;
pub(crate) mod delta;
mod ducklake;
pub(crate) mod iceberg;
mod table;
pub(crate) mod vector;

pub(crate) use deletes::{MAX_DELETED, MAX_VECTOR_BYTES};
pub use delta::{CHANGE_COLUMNS, ChangeRange, Changes};
pub use ducklake::{DuckLake, DuckLakePlace};
pub(crate) use table::LakeTable;
