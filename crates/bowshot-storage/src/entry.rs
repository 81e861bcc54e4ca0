//! One table of the catalog over time: lists its files again when the refresh time has passed, and publishes a new
//! snapshot when they changed. Only one thread looks; the others wait for what it finds.

use crate::Error;
use crate::listing::{self, ListingLimits};
use crate::snapshot::{KnownFiles, Snapshot, Workshop};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Listing takes at most one part of so many of the time.
const LISTING_SHARE: u32 = 10;

/// How long what was found since `started` is good for. A refresh time of zero means to look each time.
pub(crate) fn pause(refresh: Duration, started: Instant) -> Duration {
    if refresh.is_zero() { refresh } else { refresh.max(started.elapsed() * LISTING_SHARE) }
}

/// What a catalog says about a table before anybody reads it.
#[derive(Debug, Clone)]
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// Why the table cannot be read whatever its files say, for instance because two files claim its name.
    pub(crate) problem: Option<Error>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct TableEntry {
    pub(crate) definition: Definition,
    refresh: Duration,
    limits: ListingLimits,
    workshop: Arc<Workshop>,
    published: RwLock<Option<Published>>,
    known: Mutex<KnownFiles>,
}

#[derive(Debug)]
struct Published {
    outcome: Result<Arc<Snapshot>, Error>,
    next_check: Instant,
}

impl TableEntry {
    pub(crate) fn new(
        definition: Definition,
        refresh: Duration,
        limits: ListingLimits,
        workshop: Arc<Workshop>,
    ) -> Self {
        Self { definition, refresh, limits, workshop, published: RwLock::default(), known: Mutex::default() }
    }

    /// The table as it is now, give or take the refresh time. Blocks on the disk when it has to look.
    pub(crate) fn look(&self) -> Result<Arc<Snapshot>, Error> {
        if let Some(fresh) = self.fresh() {
            return fresh;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fresh) = self.fresh() {
            return fresh;
        }
        let started = Instant::now();
        let outcome = self.rebuild(&mut known);
        let pause = pause(self.refresh, started);
        let published = Published { outcome: outcome.clone(), next_check: Instant::now() + pause };
        *self.published.write().unwrap_or_else(PoisonError::into_inner) = Some(published);
        self.workshop.sources.store.sweep();
        outcome
    }

    /// [`Self::look`] for asynchronous callers.
    pub(crate) async fn current(self: &Arc<Self>) -> Result<Arc<Snapshot>, Error> {
        if let Some(fresh) = self.fresh() {
            return fresh;
        }
        let entry = Arc::clone(self);
        match tokio::task::spawn_blocking(move || entry.look()).await {
            Ok(outcome) => outcome,
            Err(error) => {
                let path = self.definition.path.clone();
                Err(Error::Interrupted { path, detail: error.to_string() })
            }
        }
    }

    fn fresh(&self) -> Option<Result<Arc<Snapshot>, Error>> {
        if let Some(problem) = &self.definition.problem {
            return Some(Err(problem.clone()));
        }
        let published = self.published.read().unwrap_or_else(PoisonError::into_inner);
        let published = published.as_ref()?;
        (Instant::now() < published.next_check).then(|| published.outcome.clone())
    }

    fn rebuild(&self, known: &mut KnownFiles) -> Result<Arc<Snapshot>, Error> {
        let found = listing::list_table(&self.definition.path, self.limits)?;
        let published = self.published.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(Published { outcome: Ok(snapshot), .. }) = published.as_ref() {
            if snapshot.is_of(&found) {
                return Ok(Arc::clone(snapshot));
            }
        }
        drop(published);
        Ok(Arc::new(Snapshot::build(&found, known, &self.workshop)?))
    }
}
