//! A mapped file, registered with the truncation guard.

use crate::error::{Error, Result};
use crate::truncation_guard::{self, Guard, MAX_MAPS};
use arrow::array::ArrayData;
use bytes::Bytes;
use memmap2::Mmap;
#[cfg(target_os = "linux")]
use memmap2::{Advice, UncheckedAdvice};
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::SystemTime;

/// The map, its registration with the guard, and what the file was when it was opened.
#[derive(Debug)]
pub(crate) struct Map {
    // Fields are dropped in this order: the range must leave the guard's table before it is unmapped.
    guard: Guard,
    map: Mmap,
    file: File,
    len: u64,
    modified: Option<SystemTime>,
    /// Whether the file was still what it was when the map went.
    intact_at_end: Arc<OnceLock<bool>>,
    /// Whether the file belongs to this process' user.
    #[cfg(target_os = "linux")]
    is_ours: bool,
    #[cfg(target_os = "linux")]
    page_bytes: usize,
}

impl Map {
    #[expect(unsafe_code, reason = "a map of a file shows what others do to it")]
    pub(crate) fn new(file: File) -> Result<Self> {
        truncation_guard::install()?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(Error::NotArrow { found: "not a file" });
        }
        if metadata.len() == 0 {
            return Err(Error::NotArrow { found: "an empty file" });
        }
        // SAFETY: the map is only read. Others may write to the file meanwhile; Arrow's validation before, `check` after
        // each read and the guard against truncation make that an error of this table. What remains is a writer that
        // changes bytes between validation and use, against which no map of a file can be protected; the head of
        // `mapped_file.rs` and the user's guide say that files must be replaced and not rewritten.
        let map = unsafe { Mmap::map(&file)? };
        let limit = MAX_MAPS as u64;
        let guard = truncation_guard::guard(&map).ok_or(Error::TooLarge {
            what: "mapped files",
            found: limit + 1,
            limit,
        })?;
        Ok(Self {
            guard,
            map,
            file,
            len: metadata.len(),
            modified: metadata.modified().ok(),
            intact_at_end: Arc::default(),
            #[cfg(target_os = "linux")]
            is_ours: is_ours(&metadata),
            #[cfg(target_os = "linux")]
            page_bytes: page_bytes(),
        })
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.guard.is_damaged() {
            return Err(Error::Changed("it was truncated while it was read"));
        }
        let now = self.file.metadata()?;
        if now.len() != self.len || now.modified().ok() != self.modified {
            return Err(Error::Changed("it was changed after it was opened"));
        }
        Ok(())
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // Nobody else sets it.
        let _ = self.intact_at_end.set(self.check().is_ok());
    }
}

/// Tells of a map whether its file stayed what it was, also when the map is gone, and keeps nothing of it.
#[derive(Debug)]
pub struct Witness {
    path: PathBuf,
    map: Weak<Map>,
    intact_at_end: Arc<OnceLock<bool>>,
}

impl Witness {
    pub(crate) fn of(map: &Arc<Map>, path: &Path) -> Self {
        let (map, intact_at_end) = (Arc::downgrade(map), Arc::clone(&map.intact_at_end));
        Self { path: path.to_owned(), map, intact_at_end }
    }

    /// Whether both are of one map.
    pub fn is_of_same_map(&self, other: &Self) -> bool {
        self.map.ptr_eq(&other.map)
    }

    /// Fails if the file was truncated or changed while the map was there: then what was read of it is not to be trusted.
    pub fn check(&self) -> Result<()> {
        let checked = match self.map.upgrade() {
            Some(map) => map.check(),
            // Who drops it says so at once.
            None if *self.intact_at_end.wait() => Ok(()),
            None => Err(Error::Changed("it was changed while it was read")),
        };
        checked.map_err(|error| error.in_file(&self.path))
    }
}

#[cfg(target_os = "linux")]
impl Map {
    /// Brings the array's pages into memory. Old kernels cannot; then the first use of each page does.
    pub(crate) fn load(&self, data: &ArrayData) -> Result<()> {
        let nulls = data.nulls().map(|nulls| nulls.buffer());
        for buffer in data.buffers().iter().chain(nulls) {
            // Buffers that were decompressed or realigned lie elsewhere.
            let offset = buffer.as_ptr().addr().checked_sub(self.map.as_ptr().addr());
            let Some(offset) = offset.filter(|offset| offset + buffer.len() <= self.map.len()) else {
                continue;
            };
            if self.is_resident(offset, buffer.len()) {
                continue;
            }
            let loaded = self.map.advise_range(Advice::PopulateRead, offset, buffer.len());
            // These codes stand for the SIGBUS that a read would have raised.
            if let Err(libc::EFAULT | libc::EHWPOISON) =
                loaded.map_err(|error| error.raw_os_error().unwrap_or(0))
            {
                return Err(Error::Changed("it was truncated while it was read"));
            }
        }
        data.child_data().iter().try_for_each(|child| self.load(child))
    }

    /// The bytes of a range that lies within the file, if all of its pages are in memory.
    pub(crate) fn resident(self: &Arc<Self>, range: Range<usize>) -> Option<Bytes> {
        let lies_within = range.start <= range.end && range.end <= self.map.len();
        (lies_within && self.is_resident(range.start, range.len()))
            .then(|| Bytes::from_owner(MappedRange { map: Arc::clone(self), range }))
    }

    /// Takes the pages of a range out of this process' memory; the system keeps them.
    #[expect(unsafe_code, reason = "memmap2 calls this advice unsafe for all kinds of maps")]
    fn release(&self, range: &Range<usize>) {
        // SAFETY: the map is a shared, read-only one of a file. The advice loses nothing of such a map: who touches a page
        // again finds the file's content again. Ranges are checked by memmap2.
        let advised =
            unsafe { self.map.unchecked_advise_range(UncheckedAdvice::DontNeed, range.start, range.len()) };
        // It is about memory only; a kernel that refuses keeps it for longer.
        let _ = advised;
    }

    /// Whether no page of the range has to be read from disk. Asking is far cheaper than having pages brought in that are
    /// there: that was 12 % of the server's time in `bench/run.py transport`.
    #[expect(unsafe_code, reason = "no safe wrapper of `mincore`")]
    fn is_resident(&self, offset: usize, len: usize) -> bool {
        // To everybody else the kernel claims that all pages are there.
        if !self.is_ours {
            return false;
        }
        let start = offset - offset % self.page_bytes;
        let mut pages = vec![0_u8; (offset + len - start).div_ceil(self.page_bytes)];
        // SAFETY: the range begins at a page of the map and ends in its last page at most, because the caller has checked
        // that the buffer lies within the map, and `pages` has a byte for each page of the range.
        let answer = unsafe {
            let first = self.map.as_ptr().add(start).cast_mut().cast();
            libc::mincore(first, offset + len - start, pages.as_mut_ptr().cast())
        };
        answer == 0 && pages.iter().all(|page| page & 1 == 1)
    }
}

#[cfg(not(target_os = "linux"))]
impl Map {
    /// Nobody can tell on other systems.
    pub(crate) fn resident(self: &Arc<Self>, _range: Range<usize>) -> Option<Bytes> {
        None
    }

    /// Other systems have no call for it; the first use of each page brings it into memory.
    pub(crate) fn load(&self, _data: &ArrayData) -> Result<()> {
        Ok(())
    }
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe wrapper in the standard library")]
fn is_ours(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    // SAFETY: the call has no preconditions and cannot fail.
    let user = unsafe { libc::geteuid() };
    // Not for root as such: in a container it may lack the capability for the files of others.
    user == metadata.uid()
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe wrapper in the standard library")]
fn page_bytes() -> usize {
    // SAFETY: the call has no preconditions.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).ok().filter(|bytes| bytes.is_power_of_two()).unwrap_or(4096)
}

/// A range of the map that one reader uses; its pages leave this process with it, so that a scan of a large file does not
/// hold all of it.
#[cfg(target_os = "linux")]
struct MappedRange {
    map: Arc<Map>,
    range: Range<usize>,
}

#[cfg(target_os = "linux")]
impl AsRef<[u8]> for MappedRange {
    fn as_ref(&self) -> &[u8] {
        self.map.map.get(self.range.clone()).unwrap_or_default()
    }
}

#[cfg(target_os = "linux")]
impl Drop for MappedRange {
    fn drop(&mut self) {
        self.map.release(&self.range);
    }
}

/// Lets `Bytes` own a share of the map.
pub(crate) struct Shared(pub(crate) Arc<Map>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0.map
    }
}
