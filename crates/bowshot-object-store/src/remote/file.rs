//! One content of one object, read in blocks: those on disk from there, the others from the store, neighbours with one request,
//! several requests at a time.

use super::cache::{BLOCK_BYTES, BlockId, FileKey};
use super::client::{Client, Content, Counts};
use super::fault::Fault;
use super::fetches::{Blocks, Fetch};
use crate::Error;
use bytes::{Bytes, BytesMut};
use futures::future::Shared;
use futures::{FutureExt, StreamExt, TryStreamExt};
use object_store::ObjectMeta;
use object_store::path::Path as Location;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Blocks of one request.
const RUN_BLOCKS: u32 = 8;
/// Requests of one read that are open at once.
const PARALLEL_RUNS: usize = 8;
/// Bytes that a reader which goes through a file takes at once.
pub const SEQUENTIAL_BYTES: usize = (RUN_BLOCKS as usize) << 20;

#[derive(Debug)]
pub struct RemoteFile {
    client: Arc<Client>,
    location: Location,
    path: PathBuf,
    content: Content,
    key: FileKey,
    /// Set when the object is another one by now, so that it is listed again.
    stale: Arc<AtomicBool>,
}

impl RemoteFile {
    pub(super) fn new(
        client: &Arc<Client>,
        meta: &ObjectMeta,
        path: PathBuf,
        stale: &Arc<AtomicBool>,
    ) -> Arc<Self> {
        let content = Content::of(meta);
        let key = key(client, &meta.location, &content);
        let (client, stale) = (Arc::clone(client), Arc::clone(stale));
        Arc::new(Self { client, location: meta.location.clone(), path, content, key, stale })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn key(&self) -> [u8; 16] {
        self.key
    }

    pub fn content(&self) -> &Content {
        &self.content
    }

    /// Exactly the bytes of these ranges, which must lie within the file.
    pub async fn read(self: &Arc<Self>, ranges: Vec<Range<u64>>) -> Result<Vec<Bytes>, Error> {
        let file = Arc::clone(self);
        let task = self.client.shared.io.spawn(async move { file.read_here(&ranges).await });
        task.done().await.map_err(|fault| fault.at(&self.path))?
    }

    /// The same for callers that may block, on any thread.
    pub fn read_blocking(self: &Arc<Self>, range: Range<u64>) -> Result<Bytes, Error> {
        let file = Arc::clone(self);
        let read = self.client.shared.io.wait(async move { file.read_here(&[range]).await });
        let mut read = read.map_err(|fault| fault.at(&self.path))??;
        read.pop().ok_or_else(|| Fault::Stopped.at(&self.path))
    }

    /// A copy of the whole file on disk, open: the cache may remove its name at any time. Blocks.
    pub fn copy(self: &Arc<Self>) -> Result<File, Error> {
        let Some(cache) = &self.client.shared.cache else {
            return Err(Error::Unsupported {
                path: self.path.clone(),
                detail: "Arrow files in object stores need the disk cache, which is off".to_owned(),
            });
        };
        let mut fault = None;
        let made = cache.open_whole(self.key, self.content.size, |copy| {
            let mut at = 0;
            while at < self.content.size {
                let end = self.content.size.min(at + SEQUENTIAL_BYTES as u64 * 4);
                let bytes = self.read_blocking(at..end).inspect_err(|error| fault = Some(error.clone()))?;
                copy.write_all(&bytes)?;
                at = end;
            }
            Ok(())
        });
        made.map_err(|error| {
            fault.unwrap_or_else(|| Error::corrupt(&self.path, format!("cannot make a local copy: {error}")))
        })
    }

    async fn read_here(self: Arc<Self>, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, Error> {
        if ranges.iter().any(|range| range.end > self.content.size || range.start > range.end) {
            return Err(Error::corrupt(&self.path, "it refers to bytes beyond its end"));
        }
        let wanted = self.wanted(ranges);
        let mut blocks = self.kept(&wanted).await?;
        let missing = runs(wanted.iter().filter(|number| !blocks.contains_key(number)).copied());
        let fetched: Result<Vec<Blocks>, Fault> = futures::stream::iter(missing)
            .map(|run| self.fetch_once(run))
            .buffer_unordered(PARALLEL_RUNS)
            .try_collect()
            .await;
        let fetched = fetched.map_err(|fault| self.explained(&fault))?;
        blocks.extend(fetched.into_iter().flatten());
        ranges.iter().map(|range| self.cut(&blocks, range)).collect()
    }

    /// What an operator and a client should know; a file that is another one by now is listed again.
    fn explained(&self, fault: &Fault) -> Error {
        match fault {
            Fault::Missing => {
                self.stale.store(true, Ordering::Release);
                Error::Gone { path: self.path.clone() }
            }
            Fault::Changed => {
                self.stale.store(true, Ordering::Release);
                fault.at(&self.path)
            }
            other => other.at(&self.path),
        }
    }

    /// The blocks that the ranges touch. Footers end in the last block and often begin in the one before.
    fn wanted(&self, ranges: &[Range<u64>]) -> BTreeSet<u32> {
        let mut wanted = BTreeSet::new();
        for range in ranges.iter().filter(|range| range.start < range.end) {
            wanted.extend(block_at(range.start)..=block_at(range.end - 1));
        }
        let last = block_at(self.content.size.saturating_sub(1));
        if wanted.len() == 1 && wanted.contains(&last) && last > 0 {
            wanted.insert(last - 1);
        }
        wanted
    }

    /// Those of the blocks that are on disk.
    async fn kept(self: &Arc<Self>, wanted: &BTreeSet<u32>) -> Result<Blocks, Error> {
        if self.client.shared.cache.is_none() {
            return Ok(Blocks::new());
        }
        let (file, wanted) = (Arc::clone(self), wanted.clone());
        let read = tokio::task::spawn_blocking(move || {
            let Some(cache) = &file.client.shared.cache else { return Blocks::new() };
            let one = |number: u32| {
                let expected = file.block_range(number);
                let bytes = cache.get(BlockId { file: file.key, number })?;
                (bytes.len() as u64 == expected.end - expected.start).then_some((number, bytes))
            };
            let blocks: Blocks = wanted.into_iter().filter_map(one).collect();
            blocks.values().for_each(|bytes| Counts::add(&file.client.counts.bytes_from_cache, bytes.len()));
            blocks
        });
        read.await.map_err(|_| Fault::Stopped.at(&self.path))
    }

    /// Fetches a run of blocks, or waits for whoever fetches the same one already.
    fn fetch_once(self: &Arc<Self>, run: Range<u32>) -> Shared<Fetch> {
        let fetch = || Arc::clone(self).fetch(run.clone()).boxed();
        self.client.fetches.join((self.key, run.clone()), fetch)
    }

    /// Fetches neighbouring blocks with one request, and keeps them.
    async fn fetch(self: Arc<Self>, run: Range<u32>) -> Result<Blocks, Fault> {
        let range = self.block_range(run.start).start..self.block_range(run.end - 1).end;
        let bytes = self.client.part(&self.location, &self.content, range.clone()).await?;
        let cut = |number: u32| {
            let block = self.block_range(number);
            let place = |at: u64| usize::try_from(at - range.start).unwrap_or(usize::MAX).min(bytes.len());
            (number, bytes.slice(place(block.start)..place(block.end)))
        };
        let blocks: Blocks = run.map(cut).collect();
        // Without a tag that stands for the bytes, they may be others by the next start.
        if self.client.shared.cache.is_some() && self.content.is_exact() {
            let (file, kept) = (Arc::clone(&self), blocks.clone());
            let keeping = tokio::task::spawn_blocking(move || {
                let Some(cache) = &file.client.shared.cache else { return };
                kept.iter().for_each(|(number, bytes)| {
                    cache.put(BlockId { file: file.key, number: *number }, bytes)
                });
            });
            keeping.await.map_err(|_| Fault::Stopped)?;
        }
        Ok(blocks)
    }

    fn block_range(&self, number: u32) -> Range<u64> {
        let start = u64::from(number) * BLOCK_BYTES;
        start..(start + BLOCK_BYTES).min(self.content.size)
    }

    /// The bytes of one range; without a copy if they lie in one block.
    fn cut(&self, blocks: &Blocks, range: &Range<u64>) -> Result<Bytes, Error> {
        if range.start == range.end {
            return Ok(Bytes::new());
        }
        let (first, last) = (block_at(range.start), block_at(range.end - 1));
        let lost = || Fault::Strange("a part of the response is missing").at(&self.path);
        let piece = |number: u32| {
            let (block, bytes) = (self.block_range(number), blocks.get(&number)?);
            let from = usize::try_from(range.start.max(block.start) - block.start).ok()?;
            let to = usize::try_from(range.end.min(block.end) - block.start).ok()?;
            (to <= bytes.len()).then(|| bytes.slice(from..to))
        };
        if first == last {
            return piece(first).ok_or_else(lost);
        }
        let length = usize::try_from(range.end - range.start).map_err(|_| lost())?;
        let mut whole = BytesMut::with_capacity(length);
        for number in first..=last {
            whole.extend_from_slice(&piece(number).ok_or_else(lost)?);
        }
        Ok(whole.freeze())
    }
}

fn block_at(at: u64) -> u32 {
    u32::try_from(at / BLOCK_BYTES).unwrap_or(u32::MAX)
}

/// Neighbours together, as many as one request takes.
fn runs(numbers: impl Iterator<Item = u32>) -> Vec<Range<u32>> {
    let mut runs: Vec<Range<u32>> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some(run) if run.end == number && run.end - run.start < RUN_BLOCKS => run.end = number + 1,
            _ => runs.push(number..number + 1),
        }
    }
    runs
}

fn key(client: &Client, location: &Location, content: &Content) -> FileKey {
    let mut digest = Sha256::new();
    let modified = content.modified_ms.to_string();
    let size = content.size.to_string();
    // With a tag the time says nothing more, and is rounded in some answers.
    let time = if content.is_exact() { "" } else { modified.as_str() };
    let tag = content.tag.as_deref().unwrap_or_default();
    // Two servers may have buckets of the same name.
    let endpoint = client.way(location).map(|way| way.endpoint.clone()).unwrap_or_default();
    for part in [endpoint.as_str(), &client.root, location.as_ref(), &size, tag, time] {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    let mut key = FileKey::default();
    key.iter_mut().zip(digest.finalize()).for_each(|(place, byte)| *place = byte);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_fetched_together() {
        assert_eq!(runs([0, 1, 2, 5, 9, 10].into_iter()), [0..3, 5..6, 9..11]);
        assert_eq!(runs(0..RUN_BLOCKS + 1), [0..RUN_BLOCKS, RUN_BLOCKS..RUN_BLOCKS + 1]);
        assert_eq!(runs(std::iter::empty()), Vec::<Range<u32>>::new());
    }
}
