//! The files of tables in an object store, with the catalog, and copies of some files, beside the server.
//!
//! ```text
//! DIR/catalog.sqlite                     what there is: the truth, as without a store
//! DIR/tables/ID/                         copies: what was written here, as far as there is room
//! s3://bucket/prefix/ID/*.parquet        rows of table ID
//! s3://bucket/prefix/ID/_delta_log/      the same table for others to read
//! s3://bucket/prefix/bowshot-owner.json  whose tables these are ([`lease`])
//! ```
//!
//! A file of rows is written and synced here, then copied to the store as a whole, and only then may a commit name it: what a
//! client was told is committed needs nothing of `DIR/tables`. What is not here is read from the store in parts, by way of
//! `remote/`, or fetched as a whole where all of it is rewritten.
//!
//! Names are given once, and files never change. Whatever is removed here is removed there too, later and by [`work`], the
//! thread that does all that no statement has to wait for: entries of Delta logs, what was dropped, what nobody needs, copies
//! beyond the room for them. What the catalog does not know is left alone, unless it is certain that it never was committed.

mod files;
mod lease;
mod log;
mod work;

pub(super) use lease::{address, forget};
pub(super) use log::names_in;
pub(crate) use work::start;

use super::catalog::Catalog;
use super::disk::PREFIX;
use crate::{Error, TableStore};
use bowshot_api::ErrorKind;
use bowshot_object_store::{ObjectFolder, RemoteFile};
use lease::Claim;
use parking_lot::Mutex;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use uuid::Uuid;

/// How long the start waits for the store to say whose the tables are.
const START_PATIENCE: Duration = Duration::from_secs(5);
/// Names that wait to be removed; what is more is found at the next start.
const MAX_UNNEEDED: usize = 100_000;

#[derive(Debug, Clone)]
pub struct TablesPlace {
    pub folder: ObjectFolder,
    /// Bytes that copies of files may take on this machine.
    pub cache_bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Bucket {
    objects: ObjectFolder,
    cache_bytes: u64,
    claim: Mutex<Claim>,
    /// Tables all of whose files are known to be there.
    whole: Mutex<HashSet<Uuid>>,
    bringing: Mutex<()>,
    unneeded: Mutex<Vec<String>>,
    /// Whether copies may take more room than they should.
    grown: AtomicBool,
    /// Whether the store did not answer when it was asked last.
    failing: AtomicBool,
    /// Whether something of the catalog cannot be read: nobody knows then what is rubbish.
    doubtful: AtomicBool,
    store: OnceLock<Weak<TableStore>>,
}

impl Bucket {
    /// Takes the place for this data folder. A store that does not answer is asked again later. Blocks, not for long.
    ///
    /// # Errors
    /// When the place is another's, or the folder's tables are in a store that the settings do not name.
    pub(crate) fn open(place: Option<&TablesPlace>, catalog: &Catalog) -> Result<Option<Arc<Self>>, Error> {
        let Some(place) = place else {
            return match address(catalog)? {
                Some(address) => Err(Error::NotNamed { address }),
                None => Ok(None),
            };
        };
        let bucket = Self {
            objects: place.folder.clone(),
            cache_bytes: place.cache_bytes,
            claim: Mutex::new(Claim::Waiting("the store has not answered yet".to_owned())),
            whole: Mutex::default(),
            bringing: Mutex::default(),
            unneeded: Mutex::default(),
            grown: AtomicBool::new(true),
            failing: AtomicBool::new(false),
            doubtful: AtomicBool::new(false),
            store: OnceLock::new(),
        };
        match bucket.take(&bucket.objects.within(START_PATIENCE), catalog) {
            Ok(()) => {}
            Err(error @ Error::NotOurs { .. }) => return Err(error),
            Err(error) => {
                bucket.failing.store(true, Ordering::Relaxed);
                tracing::warn!(%error, "the store of the tables does not answer: what is here is served, and no new files are written until it does");
            }
        }
        Ok(Some(Arc::new(bucket)))
    }

    /// `s3://bucket/prefix/ID`
    pub(crate) fn address_of(&self, name: &str) -> String {
        self.objects.address_of(name)
    }

    /// Nothing of the store is taken for rubbish from now on.
    pub(crate) fn keep_everything(&self) {
        self.doubtful.store(true, Ordering::Relaxed);
    }

    /// Whether it is of use to begin with what needs the store.
    pub(crate) fn is_answering(&self) -> bool {
        !self.failing.load(Ordering::Relaxed) && matches!(*self.claim.lock(), Claim::Ours(_))
    }

    /// Fails if nothing may be written to the store.
    pub(super) fn check_ours(&self) -> Result<Uuid, Error> {
        let address = self.objects.address();
        match &*self.claim.lock() {
            Claim::Ours(run) => Ok(*run),
            Claim::Lost(reason) => Err(Error::NotOurs { address, reason: reason.clone() }),
            Claim::Waiting(reason) => Err(bowshot_api::Error::new(
                ErrorKind::Unavailable,
                format!("files of tables cannot be written to `{address}` yet: {reason}"),
            )
            .with_hint("run the statement again when the store answers; `system.object_stores` tells more")
            .into()),
        }
    }

    /// Copies a file to the store, where it is as a whole when this comes back without an error, and still ours.
    pub(super) fn upload(&self, name: &str, path: &Path) -> Result<(), Error> {
        self.check_ours()?;
        self.objects.upload(name, path)?;
        self.grown.store(true, Ordering::Relaxed);
        self.confirm()
    }

    /// Nobody needs this file any more. It is removed in the background.
    pub(super) fn forget_file(&self, name: String) {
        let mut unneeded = self.unneeded.lock();
        if unneeded.len() < MAX_UNNEEDED {
            unneeded.push(name);
        }
    }

    pub(super) fn remove_unneeded(&self) -> Result<(), Error> {
        let names = std::mem::take(&mut *self.unneeded.lock());
        if names.is_empty() {
            return Ok(());
        }
        let removed = self.check_ours().and_then(|_| Ok(self.objects.remove(&names)?));
        if removed.is_err() {
            let mut unneeded = self.unneeded.lock();
            let room = MAX_UNNEEDED.saturating_sub(unneeded.len());
            unneeded.extend(names.into_iter().take(room));
        }
        removed
    }

    pub(super) fn file(&self, name: &str) -> Result<Arc<RemoteFile>, bowshot_object_store::Error> {
        self.objects.file(name).map_err(|error| self.lost(name, error))
    }

    pub(super) fn fetch(&self, name: &str, to: &Path) -> Result<(), bowshot_object_store::Error> {
        let beside = to.with_file_name(format!(".{PREFIX}{}.tmp", Uuid::new_v4()));
        self.grown.store(true, Ordering::Relaxed);
        self.objects.fetch(name, to, &beside).map_err(|error| self.lost(name, error))
    }

    fn lost(&self, name: &str, error: bowshot_object_store::Error) -> bowshot_object_store::Error {
        match error {
            bowshot_object_store::Error::Gone { .. } => {
                let path = PathBuf::from(self.objects.address_of(name));
                bowshot_object_store::Error::corrupt(&path, "it is neither on this machine nor in the store")
            }
            other => other,
        }
    }

    fn name_of(&self, table: Uuid) -> Option<String> {
        let store = self.store.get()?.upgrade()?;
        let snapshot = store.snapshot();
        let (name, _) = snapshot.tables().find(|(_, known)| known.id() == table)?;
        Some(name.to_string())
    }

    /// The error with the name of the table that cannot be had for it.
    pub(super) fn named(
        &self,
        table: Option<Uuid>,
        error: bowshot_object_store::Error,
    ) -> bowshot_object_store::Error {
        match table.and_then(|table| self.name_of(table)) {
            Some(name) => error.of_table(&name),
            None => error,
        }
    }
}
