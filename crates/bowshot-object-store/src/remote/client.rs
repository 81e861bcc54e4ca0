//! Requests to one bucket: within the time, as often as is of use, counted, and with errors in our own words. Each takes the way
//! that the credentials for its address give just then ([`store_pool`](super::store_pool)).

use super::cache::RangeCache;
use super::fault::Fault;
use super::fetches::Fetches;
use super::io::Io;
use super::store_pool::{StorePool, Way};
use bytes::Bytes;
use futures::TryStreamExt;
use object_store::path::Path as Location;
use object_store::{GetOptions, GetRange, ListResult, ObjectMeta, ObjectStore};
use parking_lot::Mutex;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The first pause between two attempts; each later one is twice as long, and all are shortened at random.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) io: Io,
    pub(super) cache: Option<RangeCache>,
    pub(super) timeout: Duration,
    pub(super) refresh: Duration,
    pub(super) max_retries: usize,
}

/// The two stores of one bucket, with the same credentials, which the library's own `Debug` would show.
pub(super) struct Stores {
    /// Tries once: what comes is held against what was asked for before it counts, so the attempts are made here.
    pub(super) once: Arc<dyn ObjectStore>,
    /// Tries again by itself, within each step of a listing or of an upload.
    pub(super) patient: Arc<dyn ObjectStore>,
}

bowshot_api::debug_fields!(Stores {});

#[derive(Debug)]
pub struct Client {
    /// `s3://bucket`
    pub(super) root: String,
    pub(super) pool: StorePool,
    pub(super) shared: Arc<Shared>,
    pub(super) counts: Counts,
    pub(super) fetches: Fetches,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) requests: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) bytes_read: AtomicU64,
    pub(super) bytes_written: AtomicU64,
    pub(super) bytes_from_cache: AtomicU64,
    last_error: Mutex<Option<String>>,
}

impl Counts {
    pub(super) fn add(counter: &AtomicU64, bytes: usize) {
        counter.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn last_error(&self) -> Option<String> {
        self.last_error.lock().clone()
    }
}

/// A content of an object, as requests ask for it and answers are held against it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    pub size: u64,
    /// Without quotation marks, which not all answers of a store have around it.
    pub tag: Option<String>,
    pub(crate) modified_ms: i64,
}

impl Content {
    pub fn of(meta: &ObjectMeta) -> Self {
        let tag = meta.e_tag.as_deref().map(|tag| tag.trim_matches('"').to_owned());
        Self { size: meta.size, tag, modified_ms: meta.last_modified.timestamp_millis() }
    }

    /// Whether the tag stands for exactly these bytes.
    pub fn is_exact(&self) -> bool {
        self.tag.as_ref().is_some_and(|tag| !tag.is_empty() && !tag.starts_with("W/"))
    }

    /// Whether an answer is of this content. Clocks of listings have milliseconds, those of answers seconds.
    fn is_of(&self, meta: &ObjectMeta) -> bool {
        let other = Self::of(meta);
        let same = match self.is_exact() {
            true => self.tag == other.tag,
            false => self.modified_ms / 1000 == other.modified_ms / 1000,
        };
        same && self.size == other.size
    }
}

impl Client {
    pub(super) fn new(root: String, pool: StorePool, shared: Arc<Shared>) -> Self {
        Self { root, pool, shared, counts: Counts::default(), fetches: Fetches::default() }
    }

    /// The way for a listing or an upload, whose store is the patient one.
    pub(super) fn way(&self, location: &Location) -> Result<Arc<Way>, Fault> {
        self.pool.to(location)
    }

    pub(super) async fn head(&self, location: &Location) -> Result<ObjectMeta, Fault> {
        let options = || GetOptions { head: true, ..GetOptions::default() };
        let ask = || async {
            let way = self.way(location)?;
            let answer = way.stores.once.get_opts(location, options()).await;
            answer.map(|answer| answer.meta).map_err(|error| way.fault(&error))
        };
        self.attempts(ask).await
    }

    /// Exactly the bytes of a part of an object, of exactly this content.
    pub(super) async fn part(
        &self,
        location: &Location,
        content: &Content,
        range: Range<u64>,
    ) -> Result<Bytes, Fault> {
        let bytes = self.attempts(|| self.part_once(location, content, range.clone())).await?;
        Counts::add(&self.counts.bytes_read, bytes.len());
        Ok(bytes)
    }

    async fn part_once(
        &self,
        location: &Location,
        content: &Content,
        range: Range<u64>,
    ) -> Result<Bytes, Fault> {
        let tag = content.tag.as_ref().filter(|_| content.is_exact());
        let options = GetOptions {
            range: Some(GetRange::Bounded(range.clone())),
            if_match: tag.map(|tag| format!("\"{tag}\"")),
            ..GetOptions::default()
        };
        let way = self.way(location)?;
        let of_library = |error: object_store::Error| way.fault(&error);
        let answer = way.stores.once.get_opts(location, options).await.map_err(of_library)?;
        if !content.is_of(&answer.meta) {
            return Err(Fault::Changed);
        }
        if answer.range != range {
            return Err(Fault::Strange("it returned another range of the file than requested"));
        }
        let bytes = answer.bytes().await.map_err(of_library)?;
        if bytes.len() as u64 != range.end - range.start {
            return Err(Fault::Strange("its response does not have the announced length"));
        }
        Ok(bytes)
    }

    /// All objects below a prefix, but no more than `limit`: one more is the sign that there are too many.
    pub(super) async fn list(&self, prefix: &Location, limit: usize) -> Result<Vec<ObjectMeta>, Fault> {
        let listing = async {
            let way = self.way(prefix)?;
            let prefix = Some(prefix).filter(|prefix| !prefix.as_ref().is_empty());
            let mut found = Vec::new();
            let mut objects = way.stores.patient.list(prefix);
            while let Some(object) = objects.try_next().await.map_err(|error| way.fault(&error))? {
                found.push(object);
                if found.len() > limit {
                    break;
                }
            }
            Ok(found)
        };
        self.counted(listing).await
    }

    /// The same without what is in folders that have a name directly in them which the library cannot say, and those folders: one
    /// such name would end the listing of all others.
    pub(super) async fn list_apart(
        &self,
        prefix: &Location,
        limit: usize,
    ) -> Result<(Vec<ObjectMeta>, Vec<String>), Fault> {
        match self.list(prefix, limit).await {
            Err(Fault::OddName) => {}
            listed => return Ok((listed?, Vec::new())),
        }
        let by_folders = async {
            let (mut found, mut odd, mut open) = (Vec::new(), Vec::new(), vec![prefix.clone()]);
            while let Some(folder) = open.pop().filter(|_| found.len() <= limit) {
                let level = match self.level(&folder).await {
                    Err(Fault::OddName) => {
                        odd.push(folder.as_ref().to_owned());
                        continue;
                    }
                    level => level?,
                };
                found.extend(level.objects);
                for below in level.common_prefixes {
                    match self.list(&below, limit).await {
                        Err(Fault::OddName) => open.push(below),
                        objects => found.extend(objects?),
                    }
                }
            }
            Ok::<_, Fault>((found, odd))
        };
        let time = self.shared.timeout;
        tokio::time::timeout(time, by_folders).await.unwrap_or(Err(Fault::Late(time)))
    }

    /// What is directly in a folder.
    async fn level(&self, folder: &Location) -> Result<ListResult, Fault> {
        let listing = async {
            let way = self.way(folder)?;
            let folder = Some(folder).filter(|folder| !folder.as_ref().is_empty());
            let level = way.stores.patient.list_with_delimiter(folder).await;
            level.map_err(|error| way.fault(&error))
        };
        self.counted(listing).await
    }

    /// Counts an undertaking, and ends it when its time is over.
    pub(super) async fn counted<T>(&self, work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        self.counts.requests.fetch_add(1, Ordering::Relaxed);
        let limit = self.shared.timeout;
        let done = tokio::time::timeout(limit, work).await.unwrap_or(Err(Fault::Late(limit)));
        if let Err(fault) = &done
            && !matches!(fault, Fault::Missing | Fault::Exists)
        {
            self.counts.failed.fetch_add(1, Ordering::Relaxed);
            *self.counts.last_error.lock() = Some(fault.to_string());
        }
        done
    }

    /// Asks until an answer counts, the time is over, or asking again is of no use.
    async fn attempts<T, F>(&self, ask: impl Fn() -> F) -> Result<T, Fault>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        let deadline = Instant::now() + self.shared.timeout;
        let all = async {
            let mut pause = FIRST_PAUSE;
            let mut attempt = 0;
            loop {
                let fault = match ask().await {
                    Ok(answer) => return Ok(answer),
                    Err(fault) => fault,
                };
                let wait = shortened(pause);
                let again = fault.may_pass() || matches!(fault, Fault::Strange(_));
                if !again || attempt >= self.shared.max_retries || Instant::now() + wait >= deadline {
                    return Err(fault);
                }
                tokio::time::sleep(wait).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
                attempt += 1;
            }
        };
        self.counted(all).await
    }
}

/// Between half of a pause and all of it, so that many who failed together do not come back together.
fn shortened(pause: Duration) -> Duration {
    let (random, _) = uuid::Uuid::new_v4().as_u64_pair();
    let share = u32::try_from(random >> 40 & 0xffff).unwrap_or(0);
    pause / 2 + (pause / 2) * share / 0xffff
}
