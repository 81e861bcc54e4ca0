//! Blocks of remote files on disk. A block's file is named after what it holds: the digest of the file's address and content
//! with the number of the block. So a block is right as long as it is there, whichever server wrote it and when, and a new
//! content of a file is another name. A checksum at its end finds what a crash or a failing disk made of it.
//!
//! ```text
//! FOLDER/4f/4f31…c0-0000002a    bytes of the block, then 8 bytes: their CRC-32 with that of the name, their number
//! FOLDER/4f/4f31…c0-whole       a whole file, for formats that are mapped; made of blocks, gone at the next start
//! ```
//!
//! What was used least lately goes first when the budget is reached. A disk that takes nothing makes reads slow, not wrong.

use crate::private;
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// Bytes of a block; the last one of a file has fewer.
pub(super) const BLOCK_BYTES: u64 = 1 << 20;
/// Behind the bytes of a block.
const TRAILER_BYTES: usize = 8;
/// The number that stands for a whole file.
const WHOLE: u32 = u32::MAX;
const TEMPORARY: &str = ".tmp";

/// The digest of a file's address and content.
pub(super) type FileKey = [u8; 16];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct BlockId {
    pub(super) file: FileKey,
    pub(super) number: u32,
}

#[derive(Debug)]
pub(crate) struct RangeCache {
    folder: PathBuf,
    budget: u64,
    state: Mutex<State>,
    /// Whole files that somebody makes just now.
    filling: Mutex<HashSet<FileKey>>,
    filled: Condvar,
    troubled: AtomicU64,
}

/// The one who makes a whole file, until this is dropped.
struct Filling<'a> {
    cache: &'a RangeCache,
    file: FileKey,
}

impl Drop for Filling<'_> {
    fn drop(&mut self) {
        self.cache.filling.lock().remove(&self.file);
        self.cache.filled.notify_all();
    }
}

#[derive(Debug, Default)]
struct State {
    blocks: HashMap<BlockId, Block>,
    /// By when they were used last.
    order: BTreeMap<u64, BlockId>,
    clock: u64,
    bytes: u64,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    bytes: u64,
    used: u64,
    /// Whether its checksum was looked at, or it was written, since the start.
    proven: bool,
}

impl RangeCache {
    /// The cache in a folder, with what earlier servers have left there.
    pub(super) fn open(folder: &Path, budget: u64) -> io::Result<Self> {
        private::folder(folder)?;
        let mut found = Vec::new();
        for shelf in fs::read_dir(folder)? {
            let shelf = shelf?.path();
            if shelf.is_dir() {
                gather(&shelf, &mut found)?;
            }
        }
        found.sort_by_key(|(written, ..)| *written);
        let cache = Self {
            folder: folder.to_path_buf(),
            budget,
            state: Mutex::default(),
            filling: Mutex::default(),
            filled: Condvar::new(),
            troubled: AtomicU64::new(0),
        };
        let mut state = State::default();
        for (_, id, bytes) in found {
            state.add(id, bytes, false);
        }
        let gone = state.shrink(budget);
        *cache.state.lock() = state;
        cache.remove(&gone);
        Ok(cache)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.state.lock().bytes
    }

    /// The bytes of a block, if they are there and what they were. Blocks on the disk.
    pub(super) fn get(&self, id: BlockId) -> Option<Bytes> {
        let proven = self.state.lock().touch(id)?.proven;
        let read = fs::read(self.path(id)).ok().and_then(|bytes| opened(id, bytes, proven));
        match &read {
            Some(_) if !proven => self.state.lock().prove(id),
            Some(_) => {}
            None => self.forget(id),
        }
        read
    }

    /// Keeps a block. Blocks on the disk.
    pub(super) fn put(&self, id: BlockId, bytes: &Bytes) {
        let total = (bytes.len() + TRAILER_BYTES) as u64;
        if total > self.budget || self.state.lock().blocks.contains_key(&id) {
            return;
        }
        let written = self.write(&self.path(id), |file| {
            file.write_all(bytes)?;
            file.write_all(&trailer(id, bytes))
        });
        match written {
            Ok(_) => self.added(id, total),
            Err(error) => self.complain(&error),
        }
    }

    /// A whole file, open, which `fill` writes if it is not kept. It can be read to its end though its name may be gone at any
    /// time, and is filled once for all who want it at the same time. Blocks on the disk.
    pub(super) fn open_whole(
        &self,
        file: FileKey,
        size: u64,
        fill: impl FnOnce(&mut fs::File) -> io::Result<()>,
    ) -> io::Result<fs::File> {
        if size > self.budget {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "it is larger than the cache of object stores",
            ));
        }
        let id = BlockId { file, number: WHOLE };
        let _filling = self.begin_filling(file);
        if let Some(kept) = self.open_kept(id) {
            return Ok(kept);
        }
        let made = self.write(&self.path(id), fill)?;
        self.added(id, size);
        Ok(made)
    }

    fn open_kept(&self, id: BlockId) -> Option<fs::File> {
        self.state.lock().touch(id)?;
        fs::File::open(self.path(id)).ok()
    }

    /// None after another has filled the file, or could not: nobody waits for more than one.
    fn begin_filling(&self, file: FileKey) -> Option<Filling<'_>> {
        let mut filling = self.filling.lock();
        if filling.insert(file) {
            return Some(Filling { cache: self, file });
        }
        self.filled.wait_while(&mut filling, |filling| filling.contains(&file));
        None
    }

    fn added(&self, id: BlockId, bytes: u64) {
        let gone = {
            let mut state = self.state.lock();
            state.add(id, bytes, true);
            state.shrink(self.budget)
        };
        self.remove(&gone);
    }

    /// Under another name first: nobody ever sees half a block.
    fn write(&self, path: &Path, fill: impl FnOnce(&mut fs::File) -> io::Result<()>) -> io::Result<fs::File> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        if let Some(shelf) = path.parent() {
            private::folder(shelf)?;
        }
        let temporary = path.with_extension(format!("{}-{number}{TEMPORARY}", std::process::id()));
        let written = private::new_file(&temporary).and_then(|mut file| fill(&mut file).map(|()| file));
        let named = written.and_then(|file| fs::rename(&temporary, path).map(|()| file));
        if named.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        named
    }

    fn forget(&self, id: BlockId) {
        self.state.lock().drop_block(id);
        let _ = fs::remove_file(self.path(id));
    }

    fn remove(&self, gone: &[BlockId]) {
        for id in gone {
            let _ = fs::remove_file(self.path(*id));
        }
    }

    /// Once in a while: the disk is likely to say the same for each block.
    fn complain(&self, error: &io::Error) {
        if self.troubled.fetch_add(1, Ordering::Relaxed).is_multiple_of(1_000) {
            tracing::warn!(folder = %self.folder.display(), %error, "the cache of object stores cannot be written");
        }
    }

    fn path(&self, id: BlockId) -> PathBuf {
        let name = hex(id.file);
        let shelf = name.get(..2).unwrap_or_default();
        let file = match id.number {
            WHOLE => format!("{name}-whole"),
            number => format!("{name}-{number:08x}"),
        };
        self.folder.join(shelf).join(file)
    }
}

impl State {
    fn touch(&mut self, id: BlockId) -> Option<Block> {
        self.clock += 1;
        let clock = self.clock;
        let block = self.blocks.get_mut(&id)?;
        self.order.remove(&block.used);
        block.used = clock;
        self.order.insert(clock, id);
        Some(*block)
    }

    fn prove(&mut self, id: BlockId) {
        if let Some(block) = self.blocks.get_mut(&id) {
            block.proven = true;
        }
    }

    fn add(&mut self, id: BlockId, bytes: u64, proven: bool) {
        self.drop_block(id);
        self.clock += 1;
        self.blocks.insert(id, Block { bytes, used: self.clock, proven });
        self.order.insert(self.clock, id);
        self.bytes += bytes;
    }

    fn drop_block(&mut self, id: BlockId) {
        if let Some(block) = self.blocks.remove(&id) {
            self.order.remove(&block.used);
            self.bytes = self.bytes.saturating_sub(block.bytes);
        }
    }

    /// Gives up what was used least lately until the rest fits.
    fn shrink(&mut self, budget: u64) -> Vec<BlockId> {
        let mut gone = Vec::new();
        while self.bytes > budget {
            let Some((_, id)) = self.order.pop_first() else { break };
            if let Some(block) = self.blocks.remove(&id) {
                self.bytes = self.bytes.saturating_sub(block.bytes);
            }
            gone.push(id);
        }
        gone
    }
}

/// What a shelf holds, without what is of no use any more.
fn gather(shelf: &Path, found: &mut Vec<(SystemTime, BlockId, u64)>) -> io::Result<()> {
    for entry in fs::read_dir(shelf)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        match (id_of(&name), entry.metadata()) {
            (Some(id), Ok(metadata)) => {
                let written = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                found.push((written, id, metadata.len()));
            }
            _ if name.ends_with("-whole") || name.ends_with(TEMPORARY) => {
                let _ = fs::remove_file(entry.path());
            }
            _ => {}
        }
    }
    Ok(())
}

fn id_of(name: &str) -> Option<BlockId> {
    let (file, number) = name.split_once('-')?;
    if file.len() != 32 || number.len() != 8 {
        return None;
    }
    let file = u128::from_str_radix(file, 16).ok()?.to_be_bytes();
    let number = u32::from_str_radix(number, 16).ok().filter(|number| *number != WHOLE)?;
    Some(BlockId { file, number })
}

fn hex(key: FileKey) -> String {
    format!("{:032x}", u128::from_be_bytes(key))
}

fn trailer(id: BlockId, bytes: &[u8]) -> [u8; TRAILER_BYTES] {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let mut trailer = [0; TRAILER_BYTES];
    let (sum, number) = trailer.split_at_mut(4);
    sum.copy_from_slice(&checksum(id, bytes).to_le_bytes());
    number.copy_from_slice(&length.to_le_bytes());
    trailer
}

fn checksum(id: BlockId, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(bytes);
    hasher.update(&id.file);
    hasher.update(&id.number.to_be_bytes());
    hasher.finalize()
}

/// The bytes without the trailer, if that fits them.
fn opened(id: BlockId, bytes: Vec<u8>, proven: bool) -> Option<Bytes> {
    let length = bytes.len().checked_sub(TRAILER_BYTES)?;
    let (content, end) = bytes.split_at_checked(length)?;
    let stored = u32::from_le_bytes(end.get(4..)?.try_into().ok()?);
    if usize::try_from(stored).ok()? != length || (!proven && end != trailer(id, content)) {
        return None;
    }
    Some(Bytes::from(bytes).slice(..length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u32) -> BlockId {
        BlockId { file: [7; 16], number }
    }

    #[test]
    fn blocks_survive_a_restart_and_damage_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = Bytes::from(vec![3; 1000]);
        let cache = RangeCache::open(folder.path(), 1 << 20).unwrap();
        cache.put(id(0), &bytes);
        cache.put(id(1), &bytes);
        assert_eq!(cache.get(id(0)), Some(bytes.clone()));
        assert_eq!(cache.get(id(2)), None);
        let damaged = cache.path(id(1));
        let mut content = fs::read(&damaged).unwrap();
        content[5] ^= 1;
        fs::write(&damaged, content).unwrap();
        drop(cache);
        let again = RangeCache::open(folder.path(), 1 << 20).unwrap();
        assert_eq!(again.get(id(0)), Some(bytes));
        assert_eq!(again.get(id(1)), None);
        assert!(!damaged.exists());
    }

    #[test]
    fn the_budget_holds_and_the_oldest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let cache = RangeCache::open(folder.path(), 3 * 1008).unwrap();
        let bytes = Bytes::from(vec![1; 1000]);
        for number in 0..3 {
            cache.put(id(number), &bytes);
        }
        assert!(cache.get(id(0)).is_some());
        cache.put(id(3), &bytes);
        assert_eq!(cache.bytes(), 3 * 1008);
        assert!(cache.get(id(1)).is_none() && cache.get(id(0)).is_some() && cache.get(id(3)).is_some());
        let smaller = RangeCache::open(folder.path(), 1008).unwrap();
        assert_eq!(smaller.bytes(), 1008);
    }

    #[test]
    fn whole_files_count_and_go_at_the_next_start() {
        let folder = tempfile::tempdir().unwrap();
        let cache = RangeCache::open(folder.path(), 1 << 20).unwrap();
        drop(cache.open_whole([9; 16], 5, |file| file.write_all(b"hello")).unwrap());
        assert_eq!(cache.bytes(), 5);
        drop(cache.open_whole([9; 16], 5, |_| panic!("it is kept")).unwrap());
        assert!(cache.open_whole([8; 16], 2 << 20, |_| Ok(())).is_err());
        let path = cache.path(BlockId { file: [9; 16], number: WHOLE });
        assert!(path.exists());
        drop(cache);
        assert_eq!(RangeCache::open(folder.path(), 1 << 20).unwrap().bytes(), 0);
        assert!(!path.exists());
    }

    #[test]
    fn a_whole_file_is_read_though_it_was_evicted() {
        let folder = tempfile::tempdir().unwrap();
        let cache = RangeCache::open(folder.path(), 8).unwrap();
        let made = cache.open_whole([1; 16], 5, |file| file.write_all(b"hello")).unwrap();
        let kept = cache.open_whole([1; 16], 5, |_| panic!("it is kept")).unwrap();
        cache.open_whole([2; 16], 6, |file| file.write_all(b"others")).unwrap();
        assert!(!cache.path(BlockId { file: [1; 16], number: WHOLE }).exists());
        for file in [made, kept] {
            let mut bytes = [0; 5];
            std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 0).unwrap();
            assert_eq!(&bytes, b"hello");
        }
    }

    #[test]
    fn a_whole_file_is_filled_once_for_all() {
        let folder = tempfile::tempdir().unwrap();
        let cache = RangeCache::open(folder.path(), 1 << 20).unwrap();
        let (begun, first) = std::sync::mpsc::channel();
        let (go_on, wait) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let fill = move |file: &mut fs::File| {
                begun.send(()).unwrap();
                wait.recv().unwrap();
                file.write_all(b"hello")
            };
            let cache = &cache;
            let one = scope.spawn(move || cache.open_whole([1; 16], 5, fill).unwrap());
            first.recv().unwrap();
            let two = scope.spawn(|| cache.open_whole([1; 16], 5, |_| panic!("filled twice")).unwrap());
            go_on.send(()).unwrap();
            one.join().unwrap();
            two.join().unwrap();
        });
        // Who could not fill it leaves it to the next.
        assert!(cache.open_whole([2; 16], 5, |_| Err(io::ErrorKind::Other.into())).is_err());
        cache.open_whole([2; 16], 5, |file| file.write_all(b"again")).unwrap();
    }
}
