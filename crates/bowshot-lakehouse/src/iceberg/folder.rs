//! One Iceberg table, looked at again when its metadata file is another one, and earlier states of it.

use super::super::table::{LakeSnapshot, LakeTable};
use super::loading::Loading;
use super::metadata::{self, TableMetadata};
use super::time_travel;
use crate::table_folder::{Failure, FolderView, TableFolder};
use bowshot_formats::inspection::{KnownFiles, Workshop};
use bowshot_formats::read_options::ReadOptions;
use bowshot_formats::table_version::{AsOf, TableVersion};
use bowshot_object_store::{Error, FileIdentity};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAX_EARLIER: usize = 4;

#[derive(Debug)]
pub struct IcebergFolder {
    folder: TableFolder,
    workshop: Arc<Workshop>,
    max_files: usize,
    state: Arc<tokio::sync::Mutex<State>>,
}

/// The metadata of a table as a catalog has given them.
#[derive(Debug, Clone)]
pub(super) struct Given {
    /// Where their file is, which is another one for each state.
    pub(super) location: String,
    pub(super) metadata: Arc<TableMetadata>,
}

#[derive(Debug, Default)]
struct State {
    current: Option<Loaded>,
    known: KnownFiles,
    /// The one that was asked for last at the end.
    earlier: VecDeque<Earlier>,
    failed: Option<Failure>,
}

#[derive(Debug)]
struct Loaded {
    current: Current,
    metadata: Arc<TableMetadata>,
    snapshot: Option<Arc<LakeSnapshot>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Current {
    path: PathBuf,
    /// Of a file that was found; what a catalog names is another file for each state.
    identity: Option<FileIdentity>,
}

/// A state that is not the current one, as a metadata file says it.
#[derive(Debug)]
struct Earlier {
    of: Current,
    id: i64,
    snapshot: Arc<LakeSnapshot>,
}

struct Look {
    folder: TableFolder,
    workshop: Arc<Workshop>,
    max_files: usize,
    given: Option<Given>,
    as_of: Option<AsOf>,
}

type Looked = (Option<TableVersion>, Arc<LakeSnapshot>);

impl IcebergFolder {
    /// The table has at most `max_files` files.
    pub(crate) fn new(folder: TableFolder, workshop: Arc<Workshop>, max_files: usize) -> Self {
        Self { folder, workshop, max_files, state: Arc::default() }
    }

    pub(super) fn place(&self) -> &TableFolder {
        &self.folder
    }

    /// The table of this name as its metadata have it now, or had it in an earlier state.
    ///
    /// # Errors
    /// When the metadata or what they name cannot be read, or ask for what this reader does not know; `NoState` for a state that
    /// is not kept.
    pub(crate) async fn table(&self, name: &str, as_of: Option<AsOf>) -> Result<LakeTable, Error> {
        self.table_of(name, None, as_of).await
    }

    pub(super) async fn table_of(
        &self,
        name: &str,
        given: Option<Given>,
        as_of: Option<AsOf>,
    ) -> Result<LakeTable, Error> {
        let (version, snapshot) = self.look(given, as_of).await?;
        let store = Arc::clone(&self.workshop.sources.store);
        Ok(LakeTable { name: name.to_owned(), snapshot, version, store, lineage: None })
    }

    pub(crate) async fn referenced_state(&self, name: &str) -> Result<Option<u64>, Error> {
        self.look(None, None).await?;
        let state = self.state.lock().await;
        Ok(state.current.as_ref().and_then(|loaded| loaded.metadata.referenced_state(name)))
    }

    pub(crate) async fn files(&self) -> Result<usize, Error> {
        Ok(self.look(None, None).await?.1.files)
    }

    async fn look(&self, given: Option<Given>, as_of: Option<AsOf>) -> Result<Looked, Error> {
        // Who waits holds no thread.
        let mut state = Arc::clone(&self.state).lock_owned().await;
        let (folder, workshop) = (self.folder.clone(), Arc::clone(&self.workshop));
        let look = Look { folder, workshop, max_files: self.max_files, given, as_of };
        let looking = tokio::task::spawn_blocking(move || look.at_all(&mut state));
        let interrupted = |error: tokio::task::JoinError| Error::Interrupted {
            path: self.folder.path(),
            detail: error.to_string(),
        };
        looking.await.map_err(interrupted)?
    }
}

impl Look {
    /// What a listing of a store shows may be gone by the time at which it is read: then it is listed once more.
    fn at_all(&self, state: &mut State) -> Result<Looked, Error> {
        if let Some(error) = state.failed.as_ref().and_then(|failed| failed.believed(&self.folder)) {
            return Err(error);
        }
        state.failed = None;
        let mut looked = self.once(state);
        let TableFolder::Remote(folder) = &self.folder else { return looked };
        if matches!(looked, Err(Error::Changed { .. } | Error::Gone { .. } | Error::Missing { .. })) {
            folder.spoil();
            looked = self.once(state);
        }
        match &looked {
            // Not there is an answer, and another state may be.
            Ok(_) | Err(Error::NoState { .. }) => {}
            Err(error) => state.failed = Failure::of(&self.folder, error),
        }
        looked
    }

    fn once(&self, state: &mut State) -> Result<Looked, Error> {
        let folder = self.folder.view()?;
        if folder.is_renewed() {
            *state = State::default();
        }
        let (current, settled) = self.current(&folder)?;
        let version = || {
            let identity = current.identity.as_ref().filter(|_| settled)?;
            let file = std::iter::once((current.path.as_path(), identity));
            Some(TableVersion::of(file, &ReadOptions::default()))
        };
        if state.current.as_ref().is_none_or(|loaded| loaded.current != current) {
            self.workshop.sources.store.sweep();
            let metadata = self.metadata(&folder, &current.path)?;
            state.current = Some(Loaded { current: current.clone(), metadata, snapshot: None });
        }
        let State { current: Some(loaded), known, earlier, .. } = state else {
            return Err(Error::corrupt(&current.path, "its metadata file does not exist"));
        };
        if let Some(as_of) = self.as_of {
            let snapshot = self.earlier(&folder, loaded, as_of, (&*known, earlier))?;
            // What is computed of it is not kept: the version is that of the current state.
            return Ok((None, snapshot));
        }
        if let Some(snapshot) = &loaded.snapshot {
            return Ok((version(), Arc::clone(snapshot)));
        }
        let loading = self.loading(&folder, &loaded.metadata, &current.path);
        let snapshot = Arc::new(loading.snapshot(known)?);
        loaded.snapshot = Some(Arc::clone(&snapshot));
        Ok((version(), snapshot))
    }

    fn loading<'a>(
        &'a self,
        folder: &'a FolderView,
        metadata: &'a TableMetadata,
        file: &'a Path,
    ) -> Loading<'a> {
        let (workshop, max_files) = (self.workshop.as_ref(), self.max_files);
        Loading { folder, metadata, earlier: None, file, workshop, max_files }
    }

    fn earlier(
        &self,
        folder: &FolderView,
        loaded: &Loaded,
        as_of: AsOf,
        (known, earlier): (&KnownFiles, &mut VecDeque<Earlier>),
    ) -> Result<Arc<LakeSnapshot>, Error> {
        let state = time_travel::state_at(&loaded.metadata, as_of, &folder.path(""))?;
        let is_it = |kept: &Earlier| kept.id == state.snapshot_id && kept.of == loaded.current;
        let place = earlier.iter().position(is_it);
        let snapshot = match place.and_then(|place| earlier.remove(place)) {
            Some(kept) => kept.snapshot,
            None => {
                let loading = self.loading(folder, &loaded.metadata, &loaded.current.path);
                // Files of the current state stay known.
                let mut known = known.clone();
                Arc::new(Loading { earlier: Some(state), ..loading }.snapshot(&mut known)?)
            }
        };
        if earlier.len() >= MAX_EARLIER {
            earlier.pop_front();
        }
        let (of, id) = (loaded.current.clone(), state.snapshot_id);
        earlier.push_back(Earlier { of, id, snapshot: Arc::clone(&snapshot) });
        Ok(snapshot)
    }

    /// The metadata file that is current, and whether it was written so long ago that every later change shows.
    fn current(&self, folder: &FolderView) -> Result<(Current, bool), Error> {
        if let Some(given) = &self.given {
            return Ok((Current { path: PathBuf::from(&given.location), identity: None }, true));
        }
        let found = folder.find(&metadata::newest(folder, &self.workshop.pool)?)?;
        let mut identity = found.identity;
        let settled = std::mem::replace(&mut identity.settled, true);
        Ok((Current { path: found.path, identity: Some(identity) }, settled))
    }

    fn metadata(&self, folder: &FolderView, path: &Path) -> Result<Arc<TableMetadata>, Error> {
        if let Some(given) = &self.given {
            return Ok(Arc::clone(&given.metadata));
        }
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        TableMetadata::read(folder, &format!("metadata/{name}"), &self.workshop.pool).map(Arc::new)
    }
}
