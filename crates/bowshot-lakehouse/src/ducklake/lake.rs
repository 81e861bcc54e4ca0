//! One DuckLake: its catalog and a cache of its tables.

use super::super::table::{LakeSnapshot, LakeTable};
use super::catalog::{self, Catalog, Moment};
use super::inlined::Inlined;
use super::load::Loading;
use super::metadata::{self, Described, LakeName};
use super::paths::Named;
use bowshot_api::ErrorKind;
use bowshot_formats::inspection::{KnownFiles, Workshop};
use bowshot_formats::read_options::ReadOptions;
use bowshot_formats::table_summary::TableSummary;
use bowshot_formats::table_version::{AsOf, TableVersion};
use bowshot_object_store::{Error, FileIdentity};
use datafusion::catalog::TableProvider;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const MAX_KNOWN: usize = 4_096;
/// How long a catalog that was too slow is left alone, so that those who wait for it are told.
const PAUSE: Duration = Duration::from_secs(30);

/// Schemas and tables.
type Names = Arc<Vec<(String, String)>>;
/// A table as it was read, and its version.
type Known = (Arc<LakeSnapshot>, TableVersion);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuckLakePlace {
    pub name: String,
    pub catalog: PathBuf,
    /// Where its files are, whatever the catalog says.
    pub data_path: Option<PathBuf>,
    /// Further folders whose files it may have.
    pub read_paths: Vec<PathBuf>,
    /// Folders that all of that has to be in, of a lake that a statement has opened.
    pub within: Option<Vec<PathBuf>>,
}

#[derive(Debug)]
pub struct DuckLake {
    place: DuckLakePlace,
    named: Named,
    workshop: Arc<Workshop>,
    max_files: usize,
    catalog: Mutex<Slot>,
    listing: Mutex<Option<(Moment, Names)>>,
    tables: Mutex<HashMap<i64, Arc<Mutex<Loaded>>>>,
    /// What names meant when the catalog was looked at last.
    recent: Mutex<HashMap<LakeName, (Moment, Known)>>,
}

/// The catalog, which is opened when it is read for the first time.
#[derive(Debug, Default)]
struct Slot {
    open: Option<Catalog>,
    /// Until when it is not read, of one that was too slow.
    pause: Option<Instant>,
}

#[derive(Debug, Default)]
struct Loaded {
    /// Without the rows of the catalog itself, which are in the snapshot.
    last: Option<(Described, Arc<LakeSnapshot>, TableVersion)>,
    known: KnownFiles,
}

enum Found {
    Nothing,
    Known(Known),
    Described(Box<Described>, Moment),
}

impl DuckLake {
    pub fn new(place: DuckLakePlace, workshop: Arc<Workshop>, max_files: usize) -> Arc<Self> {
        let (data_path, read_paths) = (place.data_path.clone(), place.read_paths.clone());
        let named = Named { data_path, read_paths, within: place.within.clone() };
        Arc::new(Self {
            place,
            named,
            workshop,
            max_files,
            catalog: Mutex::default(),
            listing: Mutex::default(),
            tables: Mutex::default(),
            recent: Mutex::default(),
        })
    }

    pub fn name(&self) -> &str {
        &self.place.name
    }

    /// Its schemas and tables, sorted. Blocks.
    pub fn listed(&self) -> Result<Arc<Vec<(String, String)>>, bowshot_api::Error> {
        self.listed_now().map_err(Into::into)
    }

    fn listed_now(&self) -> Result<Names, Error> {
        self.reading(|catalog| {
            let state = catalog.state()?;
            let known = self.listing.lock().clone();
            if let Some((moment, known)) = known
                && moment == state.moment
            {
                return Ok(known);
            }
            let names = metadata::listed(&state)?.into_iter().map(|name| (name.schema, name.table));
            let names = Arc::new(names.collect::<Vec<_>>());
            *self.listing.lock() = Some((state.moment.clone(), Arc::clone(&names)));
            Ok(names)
        })
    }

    /// A table by its exact names, as it is now or was; none that is not there.
    ///
    /// # Errors
    /// When the catalog or what it names cannot be read, or asks for what this reader does not know.
    pub async fn table(
        self: &Arc<Self>,
        schema: &str,
        table: &str,
        at: Option<AsOf>,
    ) -> Result<Option<Arc<dyn TableProvider>>, bowshot_api::Error> {
        let (lake, name) =
            (Arc::clone(self), LakeName { schema: schema.to_owned(), table: table.to_owned() });
        let looking = tokio::task::spawn_blocking(move || lake.look(&name, at));
        let found = looking.await.map_err(|error| self.interrupted(&error))??;
        Ok(found.map(|table| Arc::new(table) as Arc<dyn TableProvider>))
    }

    pub async fn newest(self: &Arc<Self>) -> Result<AsOf, bowshot_api::Error> {
        let lake = Arc::clone(self);
        let looking =
            tokio::task::spawn_blocking(move || lake.reading(|catalog| Ok(catalog.state()?.moment.snapshot)));
        let snapshot = looking.await.map_err(|error| self.interrupted(&error))??;
        Ok(AsOf::Version(snapshot.cast_unsigned()))
    }

    fn interrupted(&self, error: &tokio::task::JoinError) -> Error {
        Error::Interrupted { path: self.place.catalog.clone(), detail: error.to_string() }
    }

    fn look(&self, name: &LakeName, at: Option<AsOf>) -> Result<Option<LakeTable>, Error> {
        let found = self.reading(|catalog| {
            let state = catalog.state()?;
            let snapshot = match metadata::snapshot(&state, at)? {
                Some(snapshot) => snapshot,
                None => {
                    let first = metadata::first_snapshot(&state)?;
                    return Err(self.no_snapshot(first, state.moment.snapshot));
                }
            };
            if snapshot == state.moment.snapshot
                && let Some(known) = self.recent(name, &state.moment)
            {
                return Ok(Found::Known(known));
            }
            match metadata::described(&state, name, snapshot, self.max_files)? {
                Some(described) => Ok(Found::Described(Box::new(described), state.moment)),
                None if metadata::is_view(&state, name, snapshot)? => Err(self.view(name)),
                None if snapshot != state.moment.snapshot => Err(self.not_there(name, snapshot)),
                None => Ok(Found::Nothing),
            }
        })?;
        let (snapshot, version) = match found {
            Found::Nothing => return Ok(None),
            Found::Known(known) => known,
            Found::Described(described, moment) => {
                let is_newest = described.is_newest;
                let (snapshot, version) = self.loaded(name, *described)?;
                if is_newest {
                    let mut recent = self.recent.lock();
                    if recent.len() >= MAX_KNOWN {
                        recent.clear();
                    }
                    recent.insert(name.clone(), (moment, (Arc::clone(&snapshot), version)));
                }
                (snapshot, version)
            }
        };
        let store = Arc::clone(&self.workshop.sources.store);
        let name = format!("{}.{}.{}", self.place.name, name.schema, name.table);
        Ok(Some(LakeTable { name, snapshot, version: Some(version), store, lineage: None }))
    }

    fn recent(&self, name: &LakeName, moment: &Moment) -> Option<Known> {
        let recent = self.recent.lock();
        let (of, known) = recent.get(name)?;
        (of == moment && !known.0.has_fault()).then(|| known.clone())
    }

    /// Reads of the catalog, of which one is open at a time; a replaced one is opened again.
    fn reading<T>(&self, read: impl FnOnce(&mut Catalog) -> Result<T, Error>) -> Result<T, Error> {
        let mut guard = self.catalog.lock();
        let Slot { open, pause } = &mut *guard;
        if pause.is_some_and(|until| Instant::now() < until) {
            return Err(catalog::too_slow(&self.place.catalog));
        }
        *pause = None;
        if open.as_ref().is_some_and(|catalog| !catalog.is_current()) {
            *open = None;
        }
        let catalog = match open.as_mut() {
            Some(catalog) => catalog,
            None => {
                self.named.expect_within().map_err(|detail| self.not_opened(detail))?;
                open.insert(Catalog::open(&self.place.catalog)?)
            }
        };
        let done = read(catalog);
        if let Err(error) = &done {
            // Whatever has gone wrong, the next statement begins anew.
            *open = None;
            if matches!(error, Error::Lake { kind: ErrorKind::Timeout, .. }) {
                *pause = Instant::now().checked_add(PAUSE);
            }
        }
        done
    }

    fn loaded(
        &self,
        name: &LakeName,
        mut described: Described,
    ) -> Result<(Arc<LakeSnapshot>, TableVersion), Error> {
        let loaded = {
            let mut tables = self.tables.lock();
            if tables.len() >= MAX_KNOWN && !tables.contains_key(&described.table) {
                tables.clear();
            }
            Arc::clone(tables.entry(described.table).or_default())
        };
        let mut loaded = loaded.lock();
        if let Some((last, snapshot, version)) = &loaded.last
            && is_same(last, &described)
            && !snapshot.has_fault()
        {
            return Ok((Arc::clone(snapshot), *version));
        }
        self.workshop.sources.store.sweep();
        let loading = Loading {
            catalog: &self.place.catalog,
            name: &format!("{}.{}", name.schema, name.table),
            described: &described,
            named: &self.named,
            workshop: &self.workshop,
        };
        if !described.is_newest {
            // An older state takes no place of the newest.
            let mut known = loaded.known.clone();
            let snapshot = Arc::new(loading.snapshot(&mut known)?);
            let version = version(&self.place.catalog, &described, &snapshot);
            return Ok((snapshot, version));
        }
        let snapshot = Arc::new(loading.snapshot(&mut loaded.known)?);
        let version = version(&self.place.catalog, &described, &snapshot);
        described.inlined.iter_mut().for_each(Inlined::forget_rows);
        loaded.last = Some((described, Arc::clone(&snapshot), version));
        Ok((snapshot, version))
    }

    fn no_snapshot(&self, first: i64, last: i64) -> Error {
        let name = &self.place.name;
        Error::Lake {
            path: self.place.catalog.clone(),
            detail: format!(
                "snapshot not found in the lake `{name}`: the first is {first}, the last is {last}"
            ),
            kind: ErrorKind::NotFound,
            hint: "name a snapshot by its number or time; older ones may have expired",
        }
    }

    fn not_there(&self, name: &LakeName, snapshot: i64) -> Error {
        let (lake, LakeName { schema, table }) = (&self.place.name, name);
        Error::Lake {
            path: self.place.catalog.clone(),
            detail: format!(
                "the table `{schema}.{table}` does not exist in snapshot {snapshot} of the lake `{lake}`"
            ),
            kind: ErrorKind::NotFound,
            hint: "name another snapshot, or none for the current table",
        }
    }

    fn not_opened(&self, detail: String) -> Error {
        Error::Lake {
            path: self.place.catalog.clone(),
            detail,
            kind: ErrorKind::Denied,
            hint: "the operator can allow folders of lakes with the setting `attach.places`: `ducklake:///folder`",
        }
    }

    fn view(&self, name: &LakeName) -> Error {
        Error::Lake {
            path: self.place.catalog.clone(),
            detail: format!("`{}.{}` is a view in DuckDB's dialect", name.schema, name.table),
            kind: ErrorKind::Unsupported,
            hint: "views of a lake are not supported: create one here with CREATE VIEW",
        }
    }

    /// What each table has, for the list of what is served; a table is looked at when its turn comes. Blocks.
    pub fn describe(&self) -> impl Iterator<Item = TableSummary> {
        let (names, failed) = match self.listed_now() {
            Ok(names) => (names, None),
            Err(error) => (Names::default(), Some(self.empty_summary(self.place.name.clone(), Some(error)))),
        };
        let of_one = move |at: usize| names.get(at).map(|name| self.summary(name));
        failed.into_iter().chain((0..).map_while(of_one))
    }

    /// Names of all tables as they were listed last, without a look at the catalog; that of the lake where they were not.
    pub fn names(&self) -> Vec<(String, PathBuf)> {
        let (path, known) = (&self.place.catalog, self.listing.lock().clone());
        match known {
            Some((_, names)) => names.iter().map(|name| (self.full(name), path.clone())).collect(),
            None => vec![(self.place.name.clone(), path.clone())],
        }
    }

    fn full(&self, (schema, table): &(String, String)) -> String {
        format!("{}.{schema}.{table}", self.place.name)
    }

    fn summary(&self, name: &(String, String)) -> TableSummary {
        let (schema, table) = name.clone();
        match self.look(&LakeName { schema, table }, None) {
            Ok(Some(found)) => TableSummary {
                files: found.snapshot.files,
                bytes: found.snapshot.bytes(),
                ..self.empty_summary(self.full(name), None)
            },
            // It was dropped meanwhile.
            Ok(None) => self.empty_summary(self.full(name), None),
            Err(error) => self.empty_summary(self.full(name), Some(error)),
        }
    }

    fn empty_summary(&self, name: String, problem: Option<Error>) -> TableSummary {
        TableSummary {
            name,
            format: "ducklake",
            files: 0,
            bytes: 0,
            path: self.place.catalog.clone(),
            read_as: None,
            rejects: Vec::new(),
            problem: problem.map(|error| bowshot_api::Error::from(error).to_string()),
        }
    }
}

fn is_same(one: &Described, other: &Described) -> bool {
    let Described {
        table,
        snapshot: _,
        is_newest,
        data_path,
        folders,
        columns,
        files,
        deletes,
        places,
        mappings,
        inlined,
    } = one;
    *is_newest
        && other.is_newest
        && *table == other.table
        && *data_path == other.data_path
        && *folders == other.folders
        && *columns == other.columns
        && *files == other.files
        && *deletes == other.deletes
        && *places == other.places
        && *mappings == other.mappings
        && *inlined == other.inlined
}

/// The version of a table: its files, and all else that the catalog says of it. Files are written once, under names of their own.
fn version(catalog: &Path, described: &Described, snapshot: &LakeSnapshot) -> TableVersion {
    let mut said = Said(Sha256::new());
    // What it says may be long, and is not put together. Hashing does not fail.
    write!(said, "{described:?}").unwrap_or_default();
    let (empty, said) =
        (FileIdentity::given((0, 0), 0, 0, true), format!("{:?}", said.0.finalize().as_slice()));
    let said = [(catalog, &empty), (Path::new(&said), &empty)];
    let files = snapshot.groups.iter().flat_map(|group| &group.files);
    let files = files.map(|file| (file.file.data.path(), file.file.data.identity()));
    TableVersion::of(said.into_iter().chain(files), &ReadOptions::default())
}

struct Said(Sha256);

impl Write for Said {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text);
        Ok(())
    }
}
