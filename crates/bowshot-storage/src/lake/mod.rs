//! Tables of an open format whose columns have numbers: files are found by the table's own metadata, columns in them by
//! their numbers, whatever they were called when a file was written, and rows that were deleted later are left out.
//!
//! ```text
//! metadata ─▶ manifests ─▶ data files, deletes ─▶ groups of files that are read alike ─▶ plan
//! └──────────── iceberg ────────────┘             └────── columns, deletes ──────┘      table
//! ```

mod columns;
mod deletes;
pub(crate) mod iceberg;
mod table;
mod vector;

pub(crate) use table::LakeTable;
