//! A source in an object store over time: listed when it is needed and the last listing is too old, by one caller for all.
//! What fails is believed for a moment only, so that a store that comes back is there again.

use super::client::{Client, Content};
use super::fault::Fault;
use super::file::RemoteFile;
use super::listing::Listing;
use super::url::{RemoteUrl, Scheme};
use crate::secrets::{InForce, KeptSecret, same};
use crate::{Error, FileIdentity, file_name};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Listing takes at most one part of so many of the time.
const LISTING_SHARE: u32 = 10;
const MAX_OBJECTS: usize = 500_000;
/// How long a failure is believed.
const FAILURE_BELIEVED: Duration = Duration::from_secs(1);

pub(super) type Outcome = Result<Arc<Listing>, Fault>;

#[derive(Debug)]
pub struct RemoteSource {
    pub url: RemoteUrl,
    pub(super) client: Arc<Client>,
    state: Mutex<State>,
    /// Held by whoever lists.
    listing: tokio::sync::Mutex<()>,
    /// Whether something is another content by now than the listing has.
    stale: Arc<AtomicBool>,
    in_background: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    last: Option<Listed>,
    /// The last listing that came, however long ago.
    good: Option<Arc<Listing>>,
}

#[derive(Debug, Clone)]
struct Listed {
    outcome: Outcome,
    finished: Instant,
    good_until: Instant,
    /// The secret by which it was listed, if it was one.
    by: Option<Arc<KeptSecret>>,
}

/// How long what was found since `started` is good for. A refresh time of zero means to look each time.
pub fn pause(refresh: Duration, started: Instant) -> Duration {
    if refresh.is_zero() { refresh } else { refresh.max(started.elapsed() * LISTING_SHARE) }
}

/// A table in a source: all of it, a folder in it, or a file.
#[derive(Debug, Clone)]
pub struct RemoteTable {
    pub source: Arc<RemoteSource>,
    pub location: String,
}

impl RemoteSource {
    pub fn new(url: RemoteUrl, client: Arc<Client>) -> Arc<Self> {
        Arc::new(Self {
            url,
            client,
            state: Mutex::default(),
            listing: tokio::sync::Mutex::default(),
            stale: Arc::default(),
            in_background: AtomicBool::new(false),
        })
    }

    pub fn table(self: &Arc<Self>) -> RemoteTable {
        RemoteTable { source: Arc::clone(self), location: self.url.location.as_ref().to_owned() }
    }

    /// Has the store asked again, since something is known to be another content by now.
    pub(super) fn mark_stale(&self) {
        self.stale.store(true, Ordering::Release);
    }

    /// Whether the store must be asked first: something in it has changed, or the credentials have.
    pub(super) fn is_stale(&self) -> bool {
        self.state.lock().last.as_ref().is_some_and(|last| !self.counts(last))
            || self.stale.load(Ordering::Acquire)
    }

    /// Whether a listing still says what is there, and who may see it.
    fn counts(&self, last: &Listed) -> bool {
        !self.stale.load(Ordering::Acquire) && same(last.by.as_ref(), self.secret().as_ref())
    }

    fn secret(&self) -> Option<Arc<KeptSecret>> {
        self.client.pool.secret(&self.url.location)
    }

    /// The last listing, and what came of the last attempt. Never waits: an old listing is renewed in the background.
    pub fn known(self: &Arc<Self>) -> (Option<Arc<Listing>>, Option<Fault>) {
        let (good, fault, due) = {
            let state = self.state.lock();
            let fault = state.last.as_ref().and_then(|last| last.outcome.as_ref().err().cloned());
            let due = state.last.as_ref().is_none_or(|last| Instant::now() >= last.good_until);
            (state.good.clone(), fault, due)
        };
        if (due || self.is_stale()) && !self.in_background.swap(true, Ordering::AcqRel) {
            let source = Arc::clone(self);
            let work = async move {
                let _ = source.list_once(Instant::now()).await;
                source.in_background.store(false, Ordering::Release);
            };
            self.client.shared.io.detach(work);
        }
        (good, fault)
    }

    /// Waits for a listing, but not for long. Blocks.
    pub fn expect(self: &Arc<Self>, patience: Duration) {
        let source = Arc::clone(self);
        let work = async move { tokio::time::timeout(patience, source.current()).await.is_ok() };
        let _ = self.client.shared.io.wait(work);
    }

    /// The same for asynchronous callers.
    pub async fn expected(self: &Arc<Self>, patience: Duration) {
        let source = Arc::clone(self);
        let work = async move { tokio::time::timeout(patience, source.current()).await.is_ok() };
        let _ = self.client.shared.io.spawn(work).done().await;
    }

    pub fn is_due(&self) -> bool {
        self.fresh().is_none()
    }

    /// A listing that is fresh enough, for asynchronous callers.
    pub(super) async fn listed(self: &Arc<Self>) -> Outcome {
        if let Some(fresh) = self.fresh() {
            return fresh;
        }
        let source = Arc::clone(self);
        self.client.shared.io.spawn(async move { source.current().await }).done().await?
    }

    /// A listing that is fresh enough. Blocks.
    pub fn listing(self: &Arc<Self>) -> Outcome {
        if let Some(fresh) = self.fresh() {
            return fresh;
        }
        let source = Arc::clone(self);
        self.client.shared.io.wait(async move { source.current().await })?
    }

    async fn current(self: Arc<Self>) -> Outcome {
        match self.fresh() {
            Some(fresh) => fresh,
            None => self.list_once(Instant::now()).await,
        }
    }

    fn fresh(&self) -> Option<Outcome> {
        let state = self.state.lock();
        let last =
            state.last.as_ref().filter(|last| Instant::now() < last.good_until && self.counts(last))?;
        Some(last.outcome.clone())
    }

    /// Lists, unless somebody else has done so since `asked`.
    async fn list_once(&self, asked: Instant) -> Outcome {
        let _one = self.listing.lock().await;
        if let Some(last) =
            self.state.lock().last.as_ref().filter(|last| last.finished >= asked && self.counts(last))
        {
            return last.outcome.clone();
        }
        self.stale.store(false, Ordering::Release);
        let (started, by) = (Instant::now(), self.secret());
        let outcome = self.ask().await.map(Arc::new);
        let believed = match &outcome {
            Ok(_) => pause(self.client.shared.refresh, started),
            Err(_) => FAILURE_BELIEVED,
        };
        let finished = Instant::now();
        let mut state = self.state.lock();
        if let Ok(listing) = &outcome {
            state.good = Some(Arc::clone(listing));
        }
        let good_until = finished + believed;
        state.last = Some(Listed { outcome: outcome.clone(), finished, good_until, by });
        outcome
    }

    /// A file is asked for by its name, a folder by what is below. What is meant, its ending tells, or what is there.
    async fn ask(&self) -> Result<Listing, Fault> {
        let location = &self.url.location;
        let name = location.as_ref();
        let is_web = self.url.scheme == Scheme::Web;
        let looks_like_file = is_web || file_name::kind_of(Path::new(name)).is_some();
        if looks_like_file {
            match self.client.head(location).await {
                Ok(object) => return Ok(Listing::of_file(object)),
                Err(Fault::Missing) if !is_web => {}
                Err(fault) => return Err(fault),
            }
        }
        let (objects, odd) = self.client.list_apart(location, MAX_OBJECTS).await?;
        if objects.len() > MAX_OBJECTS {
            return Err(Fault::Strange("it has more than 500000 objects below this address"));
        }
        if objects.is_empty() && odd.is_empty() && !looks_like_file && !name.is_empty() {
            return match self.client.head(location).await {
                Ok(object) => Ok(Listing::of_file(object)),
                Err(Fault::Missing) => Ok(Listing::default()),
                Err(fault) => Err(fault),
            };
        }
        Ok(Listing::of_folder(objects, odd, name))
    }

    /// The one object that the address names, if it is there. Blocks.
    pub(super) fn single(self: &Arc<Self>) -> Result<Option<Arc<RemoteFile>>, Error> {
        let source = Arc::clone(self);
        let asked = self.client.shared.io.wait(async move { source.client.head(&source.url.location).await });
        let path = self.url.shown(self.url.location.as_ref());
        match asked.and_then(|answer| answer) {
            Ok(object) => Ok(Some(RemoteFile::new(&self.client, &object, path, &self.stale))),
            Err(Fault::Missing) => Ok(None),
            Err(fault) => Err(fault.at(&path)),
        }
    }

    pub fn file(&self, object: &object_store::ObjectMeta) -> Arc<RemoteFile> {
        let path = self.url.shown(object.location.as_ref());
        RemoteFile::new(&self.client, object, path, &self.stale)
    }
}

impl RemoteTable {
    /// Whether its files are others by now than its last listing has.
    pub fn is_stale(&self) -> bool {
        self.source.is_stale()
    }

    /// All secrets that are in force, if the server keeps some.
    pub fn in_force(&self) -> Option<Arc<InForce>> {
        self.source.client.pool.in_force()
    }

    pub fn path(&self) -> PathBuf {
        self.source.url.shown(&self.location)
    }

    /// The format of the table that the folder is, if its own metadata decide which of its files count.
    pub async fn foreign(&self) -> Result<Option<&'static str>, Error> {
        let listing = self.source.listed().await.map_err(|fault| fault.at(&self.path()))?;
        // A file is none, and a listing of it has nothing else.
        Ok(listing.foreign_table(&self.location).filter(|_| !listing.is_file))
    }
}

impl FileIdentity {
    /// Of a remote file: its digest in the place of device and inode.
    pub fn of_remote(key: [u8; 16], content: &Content) -> Self {
        let (high, low) = key.split_at(8);
        let number = |bytes: &[u8]| bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        Self::given((number(high), number(low)), content.size, content.modified_ms, content.is_exact())
    }
}
