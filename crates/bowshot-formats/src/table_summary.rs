//! What is told of a table of files before anybody reads it.

use crate::rejects::Reject;
use std::path::PathBuf;

/// One table, for start-up output and `bowshot check`.
#[derive(Debug, Clone)]
pub struct TableSummary {
    /// The table's name in schema `main`.
    pub name: String,
    /// Its format, if its files could be read; else empty.
    pub format: &'static str,
    pub files: usize,
    pub bytes: u64,
    /// The file or folder.
    pub path: PathBuf,
    /// How the first of its files is read and why, for formats that do not say it.
    pub read_as: Option<String>,
    /// Lines that scans have left out (`ignore_errors`), each with its file.
    pub rejects: Vec<(PathBuf, Reject)>,
    /// Why the table cannot be read, with the next action.
    pub problem: Option<String>,
}
