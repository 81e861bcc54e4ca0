//! Which content a file had when it was looked at, and which files a table was made of.

use crate::ReadOptions;
use crate::delta_table::DeltaFolderTable;
use crate::lake::LakeTable;
use crate::table::FileTable;
use datafusion::catalog::TableProvider;
use std::fmt;
use std::fs::Metadata;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Clocks of file systems tick every few milliseconds: a file written that recently may change again without a new
/// time stamp, so nothing learned about it may be kept.
const CLOCK_TICK: Duration = Duration::from_millis(50);

/// What tells one content of a path from the next without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FileIdentity {
    device: u64,
    inode: u64,
    pub(crate) size: u64,
    modified_ns: i128,
    changed_ns: i128,
    /// Whether the last change was longer ago than the clock's tick.
    pub(crate) settled: bool,
}

impl FileIdentity {
    pub(crate) fn new(metadata: &Metadata, now: SystemTime) -> Self {
        let modified_ns = nanoseconds(metadata.mtime(), metadata.mtime_nsec());
        let changed_ns = nanoseconds(metadata.ctime(), metadata.ctime_nsec());
        let now_ns = now
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |elapsed| i128::try_from(elapsed.as_nanos()).unwrap_or(i128::MAX));
        let tick_ns = i128::try_from(CLOCK_TICK.as_nanos()).unwrap_or(0);
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified_ns,
            changed_ns,
            settled: (now_ns - modified_ns.max(changed_ns)).abs() > tick_ns,
        }
    }

    /// Of something that is no file of this machine: a number for its content in the place of device and inode.
    pub(crate) fn given(number: (u64, u64), size: u64, modified_ms: i64, settled: bool) -> Self {
        let modified_ns = i128::from(modified_ms) * 1_000_000;
        Self { device: number.0, inode: number.1, size, modified_ns, changed_ns: 0, settled }
    }

    /// Whether an open file still has the content that was looked at. The change time is left out, since renaming or
    /// unlinking a file that is being read sets it and harms nobody.
    pub(crate) fn has_content_of(&self, metadata: &Metadata) -> bool {
        self.device == metadata.dev()
            && self.inode == metadata.ino()
            && self.size == metadata.size()
            && self.modified_ns == nanoseconds(metadata.mtime(), metadata.mtime_nsec())
    }

    pub(crate) fn modified(&self) -> (i64, u32) {
        let seconds = self.modified_ns.div_euclid(1_000_000_000);
        let rest = self.modified_ns.rem_euclid(1_000_000_000);
        (i64::try_from(seconds).unwrap_or(0), u32::try_from(rest).unwrap_or(0))
    }

    pub(crate) fn inode(&self) -> (u64, u64) {
        (self.device, self.inode)
    }
}

fn nanoseconds(seconds: i64, rest: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(rest)
}

/// A table of files that knows which content it stands for.
pub trait Versioned {
    /// The table's name in schema `main`.
    fn name(&self) -> &str;

    /// The version, unless a file was written so recently that it may change again without a trace. What is computed of
    /// such a file must not be kept.
    fn settled_version(&self) -> Option<TableVersion>;

    /// Whether a scan that is planned now still reads that version.
    fn is_pinned(&self) -> bool;
}

/// What a table knows of its version, if it is one of files.
pub fn versioned(provider: &dyn TableProvider) -> Option<&dyn Versioned> {
    let files = provider.downcast_ref::<FileTable>().map(|table| table as &dyn Versioned);
    let delta = || provider.downcast_ref::<DeltaFolderTable>().map(|table| table as &dyn Versioned);
    let lake = || provider.downcast_ref::<LakeTable>().map(|table| table as &dyn Versioned);
    files.or_else(delta).or_else(lake)
}

/// The version of a table: equal versions mean the same files with the same size, times and inodes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TableVersion(u128);

impl TableVersion {
    pub(crate) fn of<'a>(
        files: impl Iterator<Item = (&'a Path, &'a FileIdentity)>,
        options: &ReadOptions,
    ) -> Self {
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

    /// The sixteen bytes of the version, for keys.
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
