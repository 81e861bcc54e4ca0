//! The column chunks of one file: how often each was used, and its values if they are kept.

use super::cache::{ColumnCache, Heat, Reservation};
use super::packed::Piece;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// What counting the uses of a chunk takes, in the table and around it.
const COUNTER_BYTES: u64 = 128;
/// Uses after which a chunk is worth its memory.
const WORTH: u8 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ChunkId {
    pub(super) group: u32,
    pub(super) column: u32,
}

impl ChunkId {
    pub(super) fn new(group: usize, column: usize) -> Self {
        // Footers count both in 32 bits.
        let short = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self { group: short(group), column: short(column) }
    }
}

/// The values of a chunk, in pieces of [`super::PIECE_ROWS`] rows.
pub(super) type Pieces = Arc<[Piece]>;

/// The cached column chunks of one file. What is kept goes with the last user of the file's content.
pub struct FileColumns {
    cache: Arc<ColumnCache>,
    chunks: Mutex<HashMap<ChunkId, Chunk>>,
}

struct Chunk {
    uses: u8,
    heat: Heat,
    content: Content,
}

enum Content {
    Nowhere,
    /// Somebody reads it now and will keep it.
    Coming,
    Kept(Pieces, Reservation),
}

impl FileColumns {
    pub fn new(cache: &Arc<ColumnCache>) -> Arc<Self> {
        Arc::new(Self { cache: Arc::clone(cache), chunks: Mutex::default() })
    }

    /// Whether a scan should use the cache for this chunk: its values are kept, or will be by this use.
    pub(super) fn is_of_use(&self, id: ChunkId) -> bool {
        self.chunks.lock().get(&id).is_some_and(|chunk| match chunk.content {
            Content::Kept(..) => true,
            Content::Nowhere => chunk.uses.saturating_add(1) >= WORTH,
            Content::Coming => false,
        })
    }

    /// Counts a use, and gives the values if they are kept.
    pub(super) fn use_chunk(&self, id: ChunkId) -> Option<Pieces> {
        let age = self.cache.age();
        let mut chunks = self.chunks.lock();
        if !chunks.contains_key(&id) && !self.make_counter(&mut chunks, age) {
            return None;
        }
        let chunk = match chunks.entry(id) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                entry.insert(Chunk { uses: 0, heat: Heat::new(age), content: Content::Nowhere })
            }
        };
        chunk.uses = chunk.uses.saturating_add(1);
        chunk.heat.touch(age);
        chunk.pieces()
    }

    /// The values if they are kept, for a use that does not count.
    pub(super) fn find(&self, id: ChunkId) -> Option<Pieces> {
        self.chunks.lock().get(&id)?.pieces()
    }

    /// Begins to keep a chunk that was used before, if there is room for so many bytes and nobody else is at it.
    pub(super) fn fill(self: &Arc<Self>, id: ChunkId, bytes: u64) -> Option<Filling> {
        let heat = {
            let mut chunks = self.chunks.lock();
            let chunk = chunks.get_mut(&id)?;
            if chunk.uses < WORTH || !matches!(chunk.content, Content::Nowhere) {
                return None;
            }
            chunk.content = Content::Coming;
            chunk.heat.at(self.cache.age())
        };
        // Not under the lock: other chunks of this file may have to give way.
        let reservation = self.cache.reserve(bytes, heat);
        let filling = Filling { file: Arc::clone(self), id, reservation, finished: false };
        filling.reservation.is_some().then_some(filling)
    }

    /// The bytes of a kept chunk that would give way to one of that heat.
    pub(super) fn size_if_colder(&self, id: ChunkId, heat: u8) -> Option<u64> {
        let chunks = self.chunks.lock();
        let chunk = chunks.get(&id)?;
        // One use more is no difference: two chunks that are used in turn would drive each other out.
        let colder = chunk.heat.at(self.cache.age()).saturating_add(1) < heat;
        match &chunk.content {
            Content::Kept(_, reservation) if colder => Some(reservation.bytes()),
            _ => None,
        }
    }

    /// Lets a kept chunk go; scans that have it use it to their end.
    pub(super) fn forget(&self, id: ChunkId) {
        let left = match self.chunks.lock().get_mut(&id) {
            Some(chunk) if matches!(chunk.content, Content::Kept(..)) => {
                std::mem::replace(&mut chunk.content, Content::Nowhere)
            }
            _ => return,
        };
        // Freeing large arrays takes time: not under the lock.
        drop(left);
    }

    fn set(&self, id: ChunkId, content: Content) {
        if let Some(chunk) = self.chunks.lock().get_mut(&id) {
            chunk.content = content;
        }
    }

    /// Room for counting one chunk more, if need be in place of chunks that were not used for long.
    fn make_counter(&self, chunks: &mut HashMap<ChunkId, Chunk>, age: u32) -> bool {
        if self.cache.count(COUNTER_BYTES) {
            return true;
        }
        let before = chunks.len();
        chunks.retain(|_, chunk| !matches!(chunk.content, Content::Nowhere) || chunk.heat.at(age) > 0);
        self.cache.uncount(COUNTER_BYTES * (before - chunks.len()) as u64);
        self.cache.count(COUNTER_BYTES)
    }
}

impl Chunk {
    fn pieces(&self) -> Option<Pieces> {
        match &self.content {
            Content::Kept(pieces, _) => Some(Arc::clone(pieces)),
            Content::Nowhere | Content::Coming => None,
        }
    }
}

impl Drop for FileColumns {
    fn drop(&mut self) {
        let chunks = self.chunks.get_mut();
        self.cache.uncount(COUNTER_BYTES * chunks.len() as u64);
    }
}

bowshot_api::debug_fields!(FileColumns {});

/// A chunk that is being read to be kept. Dropping it unfinished leaves the chunk as it was.
pub(super) struct Filling {
    file: Arc<FileColumns>,
    id: ChunkId,
    /// `None` when there is no room, or when the values are kept.
    reservation: Option<Reservation>,
    finished: bool,
}

impl Filling {
    pub(super) fn fits(&mut self, bytes: u64) -> bool {
        let Some(reservation) = &mut self.reservation else { return false };
        // A quarter more at a time where there is that much, so that not every piece takes this way.
        bytes <= reservation.bytes() || reservation.settle(bytes + bytes / 4) || reservation.settle(bytes)
    }

    /// Keeps the values, which take so many bytes, if there is still room. Says whether.
    pub(super) fn finish(mut self, pieces: Vec<Piece>, bytes: u64) -> bool {
        let Some(reservation) = self.reservation.take_if(|reservation| reservation.settle(bytes)) else {
            return false;
        };
        self.finished = true;
        self.file.set(self.id, Content::Kept(pieces.into(), reservation));
        self.file.cache.list(&self.file, self.id);
        true
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        if !self.finished {
            self.file.set(self.id, Content::Nowhere);
        }
    }
}
