//! Settings of the tables made of files, with their limits.

use bowshot_object_store::Remotes;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

bowshot_api::defaults! {
    /// How files are found and read.
    #[derive(Debug, Clone)]
    pub struct StorageOptions {
        /// How often a table that is used is checked for new, changed and deleted files. Slow listings are repeated less
        /// often, so that they take at most a tenth of the time.
        pub refresh: Duration = Duration::from_secs(1),
        /// How long a plan reads exactly the files that it was made for. A statement that runs later, because it was
        /// prepared, looks at the files again.
        pub pinned: Duration = Duration::from_secs(2),
        /// Rows of each CSV or JSON file from which its column types are taken.
        pub sample_rows: usize = 20_000,
        /// Files of one table; more are refused.
        pub max_files_per_table: usize = 100_000,
        /// Folders below a table's folder; deeper nesting is refused.
        pub max_depth: usize = 32,
        /// File handles kept open over all tables.
        pub max_open_files: usize = 512,
        /// Whether statements may name files with their path.
        pub read_by_path: bool = true,
        /// The folder whose files those are; the sources without it.
        pub read_folder: Option<PathBuf> = None,
        /// The object stores, for sources and files that lie in one.
        pub remotes: Option<Arc<Remotes>> = None,
        /// Threads that read the headers and footers of a table's files.
        pub scan_threads: usize = 8,
    }
}
