//! Where durable tables are: the data folder, and an object store for their files, if they are not in the folder too.

use crate::usage::Usage;
use bowshot_object_store::is_remote;
use std::path::{Path, PathBuf};

/// Where durable tables live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DataFolder {
    /// Nowhere: nothing is kept.
    Memory,
    At(PathBuf),
}

bowshot_api::defaults! {
    /// The location of files of durable tables, if it is not the data folder.
    #[derive(Debug, Clone)]
    pub(crate) struct TableSettings {
        /// A place in an object store; none when empty.
        pub(crate) address: String = String::new(),
        /// Disk for copies of files that are there.
        pub(crate) cache_bytes: u64 = 20 << 30,
    }
}

impl TableSettings {
    /// Fails for a place that is none, and for one without a folder for the catalog.
    pub(super) fn check(&self, data: Option<&DataFolder>) -> Result<(), Usage> {
        if self.address.is_empty() {
            return Ok(());
        }
        if !is_remote(Path::new(&self.address)) {
            return Err(Usage::new(
                "invalid `storage.tables`: expected the address of an object store, such as \
                 `s3://bucket/prefix`",
            )
            .with_hint("write it as `s3://bucket/prefix`"));
        }
        if !matches!(data, Some(DataFolder::At(_))) {
            return Err(Usage::new("`storage.tables` needs a data folder for the catalog")
                .with_hint("name one with `--data DIR`"));
        }
        Ok(())
    }
}
