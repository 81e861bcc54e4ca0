//! One table of the catalog over time: lists its files again when the refresh time has passed, and publishes a new
//! snapshot when they changed. Only one thread looks; the others wait for what it finds.

use crate::ad_hoc_files::NamedFiles;
use crate::listing::{self, Choice, ListingLimits};
use crate::remote_tables::list_whole;
use crate::snapshot::Snapshot;
use bowshot_formats::inspection::{KnownFiles, Workshop};
use bowshot_formats::listed_file::ListedFile;
use bowshot_formats::read_options::ReadOptions;
use bowshot_lakehouse::table_folder::TableFolder;
use bowshot_lakehouse::table_formats::ForeignFolder;
use bowshot_object_store::secrets::{InForce, same};
use bowshot_object_store::{Error, RemoteFolder, RemoteTable, pause};
use parking_lot::{Mutex, RwLock};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long it is believed that an object store does not answer.
const FAILURE_BELIEVED: Duration = Duration::from_secs(1);

/// How often a table whose files change under its hands is looked at before it fails.
const ATTEMPTS: usize = 3;

/// What a catalog says about a table before anybody reads it.
#[derive(Debug, Clone)]
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// The shape of its files' names, if only some of those directly in the folder are its own.
    pub(crate) parts: Option<String>,
    /// The files that a statement has named; else those at the path.
    pub(crate) named: Option<Arc<NamedFiles>>,
    /// Set for a table in an object store.
    pub(crate) remote: Option<RemoteTable>,
    /// How the files are read.
    pub(crate) options: ReadOptions,
    /// Why the table cannot be read whatever its files say, for instance because two files claim its name.
    pub(crate) problem: Option<Error>,
}

impl Definition {
    /// Whether a store is known to have other files by now than were listed.
    fn is_stale(&self) -> bool {
        let named = self.named.as_ref().is_some_and(|named| named.is_stale());
        named || self.remote.as_ref().is_some_and(RemoteTable::is_stale)
    }

    /// All secrets that are in force, of a table in an object store: with others, others may see it.
    fn in_force(&self) -> Option<Arc<InForce>> {
        let named = || self.named.as_ref().and_then(|named| named.in_force());
        self.remote.as_ref().and_then(RemoteTable::in_force).or_else(named)
    }

    /// Whether it is of files in an object store.
    pub(crate) fn is_remote(&self) -> bool {
        self.remote.is_some() || self.named.as_ref().is_some_and(|named| named.is_remote())
    }
}

/// When files are looked at again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    pub(crate) refresh: Duration,
    pub(crate) pinned: Duration,
}

#[derive(Debug)]
pub(crate) struct TableEntry {
    pub(crate) definition: Definition,
    timing: Timing,
    limits: ListingLimits,
    workshop: Arc<Workshop>,
    published: RwLock<Option<Published>>,
    known: Mutex<KnownFiles>,
    /// What a folder of this machine is, or one of a store was when it was asked for last.
    foreign: RwLock<Option<Arc<ForeignFolder>>>,
}

#[derive(Debug)]
struct Published {
    outcome: Result<Arc<Snapshot>, Error>,
    next_check: Instant,
    /// Surprises in files of any table before it was made.
    surprises: u64,
    /// The secrets by which it was made, of files in an object store.
    in_force: Option<Arc<InForce>>,
}

impl TableEntry {
    pub(crate) fn new(
        definition: Definition,
        timing: Timing,
        limits: ListingLimits,
        workshop: Arc<Workshop>,
    ) -> Self {
        let is_folder = definition.named.is_none() && definition.remote.is_none();
        let foreign =
            if is_folder { ForeignFolder::at(&definition.path, &workshop, limits.max_files) } else { None };
        let foreign = RwLock::new(foreign.map(Arc::new));
        let (published, known) = (RwLock::default(), Mutex::default());
        Self { definition, timing, limits, workshop, published, known, foreign }
    }

    /// The table as a Delta or Iceberg table, if it is one and can be read under its name. What a folder of a store is, its last
    /// listing says.
    pub(crate) async fn foreign(&self) -> Result<Option<Arc<ForeignFolder>>, Error> {
        if let Some(remote) = &self.definition.remote {
            return self.foreign_in_store(remote).await.map_err(|error| error.of_table(self.named_as()));
        }
        match (self.known_foreign(), &self.definition.problem) {
            (Some(_), Some(problem)) => Err(problem.clone()),
            (foreign, _) => Ok(foreign),
        }
    }

    async fn foreign_in_store(&self, remote: &RemoteTable) -> Result<Option<Arc<ForeignFolder>>, Error> {
        if let Some(problem) = &self.definition.problem {
            return Err(problem.clone());
        }
        let kind = remote.foreign().await?;
        if let Some(known) = self.known_foreign().filter(|known| Some(known.kind()) == kind) {
            return Ok(Some(known));
        }
        let mut foreign = self.foreign.write();
        // Somebody else may have been here meanwhile.
        if foreign.as_ref().map(|known| known.kind()) != kind {
            let folder = || TableFolder::Remote(RemoteFolder::of(remote));
            let made = kind
                .and_then(|kind| ForeignFolder::of(kind, folder(), &self.workshop, self.limits.max_files));
            *foreign = made.map(Arc::new);
        }
        Ok(foreign.clone())
    }

    fn known_foreign(&self) -> Option<Arc<ForeignFolder>> {
        self.foreign.read().clone()
    }

    /// Whether it still is a table of its format, or still none: data files of a new one come before its metadata.
    pub(crate) fn is_what_it_was(&self) -> bool {
        let is_folder = self.definition.named.is_none() && self.definition.remote.is_none();
        !is_folder || ForeignFolder::is_same(self.known_foreign().as_deref(), &self.definition.path)
    }

    /// How long a plan reads exactly the files that it was made for.
    pub(crate) fn pinned(&self) -> Duration {
        self.timing.pinned
    }

    /// The table as it is now, give or take the refresh time. Blocks on the disk when it has to look.
    pub(crate) fn look(&self) -> Result<Arc<Snapshot>, Error> {
        if let Some(fresh) = self.fresh() {
            return fresh;
        }
        let mut known = self.known.lock();
        if let Some(fresh) = self.fresh() {
            return fresh;
        }
        let (started, surprises) = (Instant::now(), self.workshop.sources.surprises());
        let in_force = self.definition.in_force();
        let outcome = self.rebuild(&mut known).map_err(|error| error.of_table(self.named_as()));
        let pause = match &outcome {
            // What a store does not give now, it may give soon.
            Err(error) if error.is_of_store() => FAILURE_BELIEVED.min(self.timing.refresh),
            _ => pause(self.timing.refresh, started),
        };
        let next_check = Instant::now() + pause;
        let published = Published { outcome: outcome.clone(), next_check, surprises, in_force };
        *self.published.write() = Some(published);
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
        let published = self.published.read();
        let published = published.as_ref()?;
        let surprised = published.surprises != self.workshop.sources.surprises()
            || !same(published.in_force.as_ref(), self.definition.in_force().as_ref())
            || self.definition.is_stale();
        (Instant::now() < published.next_check && !surprised).then(|| published.outcome.clone())
    }

    fn rebuild(&self, known: &mut KnownFiles) -> Result<Arc<Snapshot>, Error> {
        let mut attempt = 1;
        loop {
            let found = self.list()?;
            if let Some(unchanged) = self.unchanged(&found) {
                return Ok(unchanged);
            }
            self.workshop.sources.store.sweep();
            match Snapshot::build(&found, known, &self.definition.options, &self.workshop) {
                // A file that changed between listing and looking gets another chance, but a busy writer no endless loop.
                Err(Error::Changed { .. } | Error::Gone { .. } | Error::Missing { .. })
                    if attempt < ATTEMPTS =>
                {
                    attempt += 1
                }
                built => return built.map(Arc::new),
            }
        }
    }

    /// The name, unless it is the one that carries what a statement names.
    fn named_as(&self) -> &str {
        if self.definition.named.is_some() { "files that the statement names" } else { &self.definition.name }
    }

    fn list(&self) -> Result<Vec<ListedFile>, Error> {
        let choice = Choice { options: &self.definition.options, parts: self.definition.parts.as_deref() };
        match (&self.definition.named, &self.definition.remote) {
            (Some(named), _) => named.list(self.limits, choice.options),
            (None, Some(remote)) => list_whole(remote, self.limits, choice),
            (None, None) => listing::list_table(&self.definition.path, self.limits, choice),
        }
    }

    fn unchanged(&self, found: &[ListedFile]) -> Option<Arc<Snapshot>> {
        let published = self.published.read();
        let snapshot = published.as_ref()?.outcome.as_ref().ok()?;
        snapshot.is_of(found).then(|| Arc::clone(snapshot))
    }
}
