//! The thread that does what concerns the store and what nobody waits for. What fails is tried again; a store that does not
//! answer holds up nobody but this thread.

use super::Bucket;
use crate::Error;
use crate::store::{Folder, TableStore};
use bowshot_api::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(250);
/// How long it leaves a store alone that did not answer.
const TRY_AGAIN: Duration = Duration::from_secs(3);
/// How long copies are left alone that are all being read.
const ROOM_AGAIN: Duration = Duration::from_secs(2);

/// Starts the thread, if the tables are in a store; it ends with the tables.
pub(crate) fn start(store: &Arc<TableStore>) {
    let Some(bucket) = store.folder().and_then(|folder| folder.disk.bucket()).map(Arc::clone) else { return };
    // Set once, here.
    let _ = bucket.store.set(Arc::downgrade(store));
    let weak = Arc::downgrade(store);
    let started = thread::Builder::new().name("bowshot-bucket".to_owned()).spawn(move || {
        let mut look = Look::default();
        while let Some(store) = weak.upgrade() {
            let done = catch_unwind(AssertUnwindSafe(|| bucket.round(&store, &mut look)));
            drop(store);
            thread::sleep(match done {
                Ok(Ok(())) => PAUSE,
                Ok(Err(error)) => bucket.noted(error),
                Err(_) => {
                    tracing::error!("looking after the store of the tables broke down; it goes on");
                    TRY_AGAIN
                }
            });
        }
    });
    if let Err(error) = started {
        tracing::error!(%error, "nobody looks after the store of the tables");
    }
}

#[derive(Debug, Default)]
struct Look {
    /// Once in each run.
    for_strangers: bool,
    /// When room may be looked for again that was not to be had.
    for_room: Option<Instant>,
}

impl Bucket {
    fn round(&self, store: &Arc<TableStore>, look: &mut Look) -> Result<(), Error> {
        let Some(folder) = store.folder() else { return Ok(()) };
        if matches!(*self.claim.lock(), super::Claim::Waiting(_)) {
            self.take(&self.objects, &folder.catalog)?;
            tracing::info!("the store of the tables answers: files are written again");
        }
        if self.failing.load(Ordering::Relaxed) {
            self.confirm()?;
            self.failing.store(false, Ordering::Relaxed);
        }
        self.keep(store, folder, look)
    }

    fn keep(&self, store: &Arc<TableStore>, folder: &Folder, look: &mut Look) -> Result<(), Error> {
        self.remove_unneeded()?;
        folder.keeper.show_others(store, folder)?;
        folder.keeper.write_checkpoints(folder);
        if !look.for_strangers {
            self.look_for_strangers(&folder.disk, &folder.catalog)?;
            look.for_strangers = true;
        }
        if look.for_room.is_none_or(|time| Instant::now() >= time) {
            self.make_room(&folder.disk)?;
            let lacks = self.grown.load(Ordering::Relaxed);
            look.for_room = lacks.then(|| Instant::now() + ROOM_AGAIN);
        }
        folder.keeper.remove_dropped(folder)
    }

    /// Tells the operator, once for each time that the store does not answer. Gives how long it is left alone.
    fn noted(&self, error: Error) -> Duration {
        let error = bowshot_api::Error::from(error);
        let before = self.failing.swap(error.kind() == ErrorKind::Unavailable, Ordering::Relaxed);
        if !before && !matches!(*self.claim.lock(), super::Claim::Lost(_)) {
            tracing::warn!(%error, "the store of the tables cannot be looked after for now");
        }
        TRY_AGAIN
    }
}
