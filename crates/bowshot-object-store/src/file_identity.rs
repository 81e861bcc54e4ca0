//! Which content a file had when it was looked at.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

/// Clocks of file systems tick: a file written this recently may change again without a new time, so nothing of it is kept.
const CLOCK_TICK: Duration = Duration::from_millis(50);

/// What tells one content of a path from the next without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
    pub size: u64,
    modified_ns: i128,
    changed_ns: i128,
    /// Whether the last change was longer ago than the clock's tick.
    pub settled: bool,
}

impl FileIdentity {
    pub fn new(metadata: &Metadata, now: SystemTime) -> Self {
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
    pub fn given(number: (u64, u64), size: u64, modified_ms: i64, settled: bool) -> Self {
        let modified_ns = i128::from(modified_ms) * 1_000_000;
        Self { device: number.0, inode: number.1, size, modified_ns, changed_ns: 0, settled }
    }

    /// Whether an open file has the known content. The change time does not count: renaming and unlinking set it.
    pub fn has_content_of(&self, metadata: &Metadata) -> bool {
        self.device == metadata.dev()
            && self.inode == metadata.ino()
            && self.size == metadata.size()
            && self.modified_ns == nanoseconds(metadata.mtime(), metadata.mtime_nsec())
    }

    pub fn modified(&self) -> (i64, u32) {
        let seconds = self.modified_ns.div_euclid(1_000_000_000);
        let rest = self.modified_ns.rem_euclid(1_000_000_000);
        (i64::try_from(seconds).unwrap_or(0), u32::try_from(rest).unwrap_or(0))
    }

    pub fn inode(&self) -> (u64, u64) {
        (self.device, self.inode)
    }
}

fn nanoseconds(seconds: i64, rest: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(rest)
}
