//! Columns of Parquet files that are scanned repeatedly, kept decoded in memory.
//!
//! Most of the time of a warm scan goes into decoding pages that were decoded before. So the uses of each column chunk (a
//! column of a row group) are counted; the second scan keeps what it decodes, the third finds it. What is kept belongs to
//! the content of one file ([`crate::data_file::DataFile`]): another content is another file, so nothing stale is ever found.
//!
//! # The road of a file of a scan
//!
//! ```text
//! source ─▶ plan: may anything be kept? ── no ──▶ DataFusion's Parquet source
//!             │ yes
//!             ▼
//!           choose: row groups by range and statistics, then by what is kept ──▶ the rest: DataFusion's source
//!             ▼
//!           read: kept pieces and decoded ones side by side; decoded ones are gathered and kept at the end
//!             ▼
//!           learned: rows that a join above has learned not to need leave ──▶ projection ──▶ batches
//! ```
//!
//! [`cache`] has the budget, and who gives way; [`file`] the state of each chunk; [`packed`] the form of its values.

mod cache;
mod dynamic_filters;
mod file;
mod packed;
mod plan;
mod read;
mod row_group_selection;
mod scan;

pub use cache::ColumnCache;
pub(crate) use file::FileColumns;
pub(crate) use plan::ColumnPlanner;
pub use scan::{ColumnScan, Scan};

/// Rows of one piece of a kept chunk, and of a batch made of it: what DataFusion's operators are made for.
const PIECE_ROWS: usize = 8192;

/// Files below this are read so soon that keeping account of them costs more.
const MIN_FILE_BYTES: u64 = 64 << 10;
