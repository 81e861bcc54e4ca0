//! Which files a table was made of.

use crate::read_options::ReadOptions;
use bowshot_object_store::FileIdentity;
use chrono::{DateTime, Utc};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

/// A table of files that knows which content it stands for.
pub trait Versioned {
    /// The table's name in schema `main`.
    fn name(&self) -> &str;

    /// The version, unless a file is so recent that it may change without a trace: nothing that is computed of it may be kept.
    fn settled_version(&self) -> Option<TableVersion>;

    /// Whether a scan that is planned now still reads that version.
    fn is_pinned(&self) -> bool;
}

/// The version of a table: equal versions mean the same files with the same size, times and inodes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TableVersion(u128);

impl TableVersion {
    pub fn of<'a>(files: impl Iterator<Item = (&'a Path, &'a FileIdentity)>, options: &ReadOptions) -> Self {
        let (mut high, mut low) = (DefaultHasher::new(), DefaultHasher::new());
        1_u8.hash(&mut high);
        // The same files read in another way are another table.
        if !options.is_empty() {
            options.hash(&mut high);
            options.hash(&mut low);
        }
        for (path, identity) in files {
            (path, identity).hash(&mut high);
            (path, identity).hash(&mut low);
        }
        Self((u128::from(high.finish()) << 64) | u128::from(low.finish()))
    }

    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

impl fmt::Display for TableVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for TableVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TableVersion({self})")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsOf {
    Version(u64),
    Time(DateTime<Utc>),
}
