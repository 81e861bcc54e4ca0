//! Errors of the cache. None of them fails a query.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The rows exceed the budget.
    #[error("{bytes} bytes do not fit the cache")]
    TooLarge { bytes: u64 },
    /// The rows left memory and were never on disk.
    #[error("the rows are no longer there")]
    Gone,
    #[error("the cache file `{}` is damaged", path.display())]
    Damaged { path: PathBuf },
    #[error("the cache file `{}` cannot be used", path.display())]
    Disk {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the folder `{}` holds `{}`, which is none of the cache's: name an empty folder", folder.display(), file.display())]
    Foreign { folder: PathBuf, file: PathBuf },
    #[error("the folder `{}` is used by another server: each needs one of its own", folder.display())]
    Held { folder: PathBuf },
    /// A file of the cache cannot be mapped.
    #[error("a cache file cannot be mapped")]
    Map(#[from] bowshot_ipc::Error),
    /// Rows cannot be written as Arrow.
    #[error("rows cannot be written as Arrow")]
    Arrow(#[from] arrow::error::ArrowError),
}
