//! Settings of the tables made of files, with their limits.

use bowshot_object_store::Remotes;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How files are found and read.
#[derive(Debug, Clone)]
pub struct StorageOptions {
    /// How often a table that is used is checked for new, changed and deleted files. Slow listings are repeated less
    /// often, so that they take at most a tenth of the time.
    pub refresh: Duration,
    /// How long a plan reads exactly the files that it was made for. A statement that runs later, because it was
    /// prepared, looks at the files again.
    pub pinned: Duration,
    /// Rows of each CSV or JSON file from which its column types are taken.
    pub sample_rows: usize,
    /// Files of one table; more are refused.
    pub max_files_per_table: usize,
    /// Folders below a table's folder; deeper nesting is refused.
    pub max_depth: usize,
    /// File handles kept open over all tables.
    pub max_open_files: usize,
    /// Whether statements may name files with their path.
    pub read_by_path: bool,
    /// The folder whose files those are; the sources without it.
    pub read_folder: Option<PathBuf>,
    /// The object stores, for sources and files that lie in one.
    pub remotes: Option<Arc<Remotes>>,
    /// Threads that read the headers and footers of a table's files.
    pub scan_threads: usize,
}

impl Default for StorageOptions {
    fn default() -> Self {
        Self {
            refresh: Duration::from_secs(1),
            pinned: Duration::from_secs(2),
            sample_rows: 20_000,
            max_files_per_table: 100_000,
            max_depth: 32,
            max_open_files: 512,
            read_by_path: true,
            read_folder: None,
            remotes: None,
            scan_threads: 8,
        }
    }
}
