//! A source in an object store over time: listed when it is needed and the last listing is too old, by one caller for all.
//! What fails is believed for a moment only, so that a store that comes back is there again.

use super::client::{Client, Content};
use super::fault::Fault;
use super::file::RemoteFile;
use super::listing::{Listing, foreign_part, is_ignored};
use super::url::{RemoteUrl, Scheme};
use crate::entry::pause;
use crate::format;
use crate::listing::{FoundFile, ListingLimits, of_one_format};
use crate::secrets::{InForce, KeptSecret, same};
use crate::version::FileIdentity;
use crate::{Error, ReadOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Objects of one source.
const MAX_OBJECTS: usize = 500_000;
/// How long a failure is believed.
const FAILURE_BELIEVED: Duration = Duration::from_secs(1);

pub(super) type Outcome = Result<Arc<Listing>, Fault>;

/// See the module.
#[derive(Debug)]
pub(crate) struct RemoteSource {
    pub(super) url: RemoteUrl,
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

/// A table in a source: all of it, a folder in it, or a file.
#[derive(Debug, Clone)]
pub(crate) struct RemoteTable {
    pub(super) source: Arc<RemoteSource>,
    /// Its name in the bucket.
    pub(super) location: String,
}

impl RemoteSource {
    pub(super) fn new(url: RemoteUrl, client: Arc<Client>) -> Arc<Self> {
        Arc::new(Self {
            url,
            client,
            state: Mutex::default(),
            listing: tokio::sync::Mutex::default(),
            stale: Arc::default(),
            in_background: AtomicBool::new(false),
        })
    }

    /// The whole source as a table.
    pub(crate) fn table(self: &Arc<Self>) -> RemoteTable {
        RemoteTable { source: Arc::clone(self), location: self.url.location.as_ref().to_owned() }
    }

    /// Has the store asked again, since something is known to be another content by now.
    pub(super) fn mark_stale(&self) {
        self.stale.store(true, Ordering::Release);
    }

    /// Whether the store is to be asked before anything else is told: something is another content by now, or the credentials are
    /// others.
    pub(super) fn is_stale(&self) -> bool {
        self.lock().last.as_ref().is_some_and(|last| !self.counts(last)) || self.stale.load(Ordering::Acquire)
    }

    /// Whether a listing still says what is there, and who may see it.
    fn counts(&self, last: &Listed) -> bool {
        !self.stale.load(Ordering::Acquire) && same(last.by.as_ref(), self.secret().as_ref())
    }

    /// The secret whose credentials the source has, if any.
    fn secret(&self) -> Option<Arc<KeptSecret>> {
        self.client.ways.secret(&self.url.location)
    }

    /// What the last listing has shown, and what came of the last attempt. Never waits; a listing that is too old is made anew
    /// in the background.
    pub(super) fn known(self: &Arc<Self>) -> (Option<Arc<Listing>>, Option<Fault>) {
        let (good, fault, due) = {
            let state = self.lock();
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
    pub(crate) fn expect(self: &Arc<Self>, patience: Duration) {
        let source = Arc::clone(self);
        let work = async move { tokio::time::timeout(patience, source.current()).await.is_ok() };
        let _ = self.client.shared.io.wait(work);
    }

    /// The same for asynchronous callers.
    pub(crate) async fn expected(self: &Arc<Self>, patience: Duration) {
        let source = Arc::clone(self);
        let work = async move { tokio::time::timeout(patience, source.current()).await.is_ok() };
        let _ = self.client.shared.io.spawn(work).done().await;
    }

    /// Whether the last listing is too old to say what is not there.
    pub(crate) fn is_due(&self) -> bool {
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
    pub(super) fn listing(self: &Arc<Self>) -> Outcome {
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
        let state = self.lock();
        let last =
            state.last.as_ref().filter(|last| Instant::now() < last.good_until && self.counts(last))?;
        Some(last.outcome.clone())
    }

    /// Lists, unless somebody else has done so since `asked`.
    async fn list_once(&self, asked: Instant) -> Outcome {
        let _one = self.listing.lock().await;
        if let Some(last) =
            self.lock().last.as_ref().filter(|last| last.finished >= asked && self.counts(last))
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
        let mut state = self.lock();
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
        let looks_like_file = is_web || format::kind_of(Path::new(name)).is_some();
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

    fn found(
        &self,
        object: &object_store::ObjectMeta,
        folders: Vec<String>,
        kind: format::Kind,
    ) -> FoundFile {
        let path = self.url.shown(object.location.as_ref());
        let file = RemoteFile::new(&self.client, object, path.clone(), &self.stale);
        let identity = FileIdentity::of_remote(file.key(), file.content());
        let shown = path.display().to_string();
        FoundFile { path, folders, kind, shown, identity, remote: Some(file) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RemoteTable {
    /// Whether its files are others by now than its last listing has.
    pub(crate) fn is_stale(&self) -> bool {
        self.source.is_stale()
    }

    /// The files of the table, by path. Blocks while the store is asked.
    pub(crate) fn list(&self, limits: ListingLimits, options: &ReadOptions) -> Result<Vec<FoundFile>, Error> {
        let path = self.source.url.shown(&self.location);
        let listing = self.source.listing().map_err(|fault| fault.at(&path))?;
        if let Some(object) = listing.object(&self.location) {
            let unknown = || Error::UnknownFormat { path: path.clone() };
            let kind = options.kind(Path::new(&self.location)).ok_or_else(unknown)?;
            return Ok(vec![self.source.found(object, Vec::new(), kind)]);
        }
        if listing.has_odd_names(&self.location) {
            return Err(Fault::OddName.at(&path));
        }
        let mut found = Vec::new();
        if let Some(kind) = listing.foreign_table(&self.location) {
            return Err(Error::ForeignTable { path, kind });
        }
        for (name, object) in listing.below(&self.location) {
            let parts: Vec<&str> = name.split('/').collect();
            let Some((file, folders)) = parts.split_last() else { continue };
            if parts.iter().any(|part| is_ignored(part)) {
                continue;
            }
            let Some(kind) = options.kind(Path::new(file)) else { continue };
            if folders.len() > limits.max_depth {
                return Err(Error::TooDeep { path, limit: limits.max_depth });
            }
            let folders = folders.iter().map(|&part| part.to_owned()).collect();
            found.push(self.source.found(object, folders, kind));
            if found.len() > limits.max_files {
                return Err(Error::TooManyFiles { path, limit: limits.max_files });
            }
        }
        of_one_format(&path, found)
    }

    /// The same where all files below are one table, of which others can be no part.
    pub(crate) fn list_whole(
        &self,
        limits: ListingLimits,
        options: &ReadOptions,
    ) -> Result<Vec<FoundFile>, Error> {
        let listing = self.source.listing().map_err(|fault| fault.at(&self.path()))?;
        for (name, object) in listing.below(&self.location) {
            if let Some(kind) = foreign_part(&name.split('/').collect::<Vec<_>>()) {
                let path = self.source.url.shown(object.location.as_ref());
                return Err(Error::ForeignTable { path, kind });
            }
        }
        self.list(limits, options)
    }

    /// All secrets that are in force, if the server keeps some.
    pub(crate) fn in_force(&self) -> Option<Arc<InForce>> {
        self.source.client.ways.in_force()
    }

    /// Where it is.
    pub(crate) fn path(&self) -> PathBuf {
        self.source.url.shown(&self.location)
    }

    /// The format of the table that the folder is, if its own metadata decide which of its files count.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn foreign(&self) -> Result<Option<&'static str>, Error> {
        let listing = self.source.listed().await.map_err(|fault| fault.at(&self.path()))?;
        // A file is none, and a listing of it has nothing else.
        Ok(listing.foreign_table(&self.location).filter(|_| !listing.is_file))
    }
}

impl FileIdentity {
    /// Of a remote file: its digest in the place of device and inode.
    pub(crate) fn of_remote(key: [u8; 16], content: &Content) -> Self {
        let (high, low) = key.split_at(8);
        let number = |bytes: &[u8]| bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        Self::given((number(high), number(low)), content.size, content.modified_ms, content.is_exact())
    }
}
