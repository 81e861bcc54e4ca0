//! The thread that looks after the data folder: what commits leave to do, and what piles up.

use super::delta::{self, Logs};
use super::optimize_vacuum::{self, Work};
use super::persist::Persisted;
use crate::store::{Folder, TableStore};
use crate::{Error, Snapshot, Table};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// How often the thread looks.
const PAUSE: Duration = Duration::from_millis(250);
/// How long few rows stay in the catalog.
const FEW_ROWS_STAY: Duration = Duration::from_secs(2);
/// How long a file keeps rows that are deleted, for each MiB of it: a table that is always changed is not always written anew,
const DELETED_ROWS_STAY: Duration = Duration::from_secs(1);
/// but no longer than this.
const DELETED_ROWS_STAY_AT_MOST: Duration = Duration::from_secs(600);
/// How often versions that are too old are looked for.
const TRIM_EVERY: Duration = Duration::from_secs(60);
/// How long a table is left alone that could not be tidied.
const TRY_AGAIN: Duration = Duration::from_secs(5);
/// Entries of a Delta log between two checkpoints.
const CHECKPOINT_EVERY: u64 = 10;

#[derive(Debug, Default)]
pub(crate) struct Keeper {
    logs: Mutex<Logs>,
    todo: Mutex<Todo>,
}

#[derive(Debug, Default)]
struct Todo {
    /// Tables whose Delta log could not be written, or is to be written by another thread.
    unpublished: HashSet<Uuid>,
    /// Those of them of which the operator was told.
    told: HashSet<Uuid>,
    /// When those may be tried again.
    tell_again: Option<Instant>,
    checkpoints: HashMap<Uuid, u64>,
    /// Tables that are gone; queries may still read them.
    dropped: Vec<Uuid>,
    /// When a table was first seen to have something to do.
    waiting_since: HashMap<(Uuid, Work), Instant>,
    /// When the versions of all tables were last trimmed, and which version each had then.
    trimmed: Option<Instant>,
    trimmed_at: HashMap<Uuid, u64>,
    tidying: Option<Uuid>,
    /// Tables that could not be tidied.
    not_before: HashMap<(Uuid, Work), Instant>,
}

impl Keeper {
    /// With tables that were dropped before the last run ended, and whose files are to go.
    pub(crate) fn with_dropped(dropped: Vec<Uuid>) -> Self {
        Self { logs: Mutex::default(), todo: Mutex::new(Todo { dropped, ..Todo::default() }) }
    }

    pub(crate) fn start(store: &Arc<TableStore>) {
        let weak = Arc::downgrade(store);
        let started = thread::Builder::new().name("bowshot-keeper".to_owned()).spawn(move || {
            let mut caught_up = false;
            while let Some(store) = weak.upgrade() {
                // What breaks on one table must not leave the others to themselves.
                let round = catch_unwind(AssertUnwindSafe(|| Self::round(&store, caught_up)));
                if round.is_err() {
                    tracing::error!("looking after the data folder broke down; it goes on");
                }
                caught_up = true;
                drop(store);
                thread::sleep(PAUSE);
            }
        });
        if let Err(error) = started {
            tracing::error!(%error, "nobody looks after the data folder");
        }
    }

    fn round(store: &Arc<TableStore>, caught_up: bool) {
        let Some(folder) = store.folder() else { return };
        let keeper = &folder.keeper;
        if folder.disk.bucket().is_some_and(|bucket| !bucket.is_answering()) {
            // Whatever there is to do needs the store.
            return;
        }
        if folder.disk.bucket().is_some() {
            // The rest is the work of another thread, which may wait for the store.
            return keeper.look_after(store, folder);
        }
        if !caught_up {
            // What a crash has kept from the Delta logs.
            keeper.publish_all(store, folder);
        }
        let removed = keeper.remove_dropped(folder);
        keeper.look_after(store, folder);
        if let Err(error) = removed.and_then(|()| keeper.show_others(store, folder)) {
            tracing::warn!(%error, "what commits have left to do is done later");
        }
        keeper.write_checkpoints(folder);
    }

    /// Shows others what a commit has done to files; soon, where a store has to be asked for that.
    pub(crate) fn after_commit(&self, folder: &Folder, persisted: Persisted) {
        self.todo.lock().dropped.extend(persisted.dropped);
        if folder.disk.bucket().is_some() {
            self.todo.lock().unpublished.extend(persisted.changed.iter().map(|table| table.id()));
            return;
        }
        for table in persisted.changed {
            self.publish(&table, folder);
        }
    }

    /// All durable tables are to be shown to others as they are.
    pub(crate) fn look_at_all(&self, snapshot: &Snapshot) {
        let durable = snapshot.tables().filter(|(_, table)| table.definition().is_durable());
        self.todo.lock().unpublished.extend(durable.map(|(_, table)| table.id()));
    }

    /// Brings the Delta log of a table up to this state, or notes that it must be done. Gives whether it is done.
    fn publish(&self, table: &Table, folder: &Folder) -> bool {
        let published = {
            let mut logs = self.logs.lock();
            // After a failure nobody knows what is written: the next attempt looks.
            logs.publish(table, &folder.catalog, &folder.disk).inspect_err(|_| logs.forget(table.id()))
        };
        let mut todo = self.todo.lock();
        match published {
            Ok(version) => {
                if let Some(version) =
                    version.filter(|version| version % CHECKPOINT_EVERY == CHECKPOINT_EVERY - 1)
                {
                    todo.checkpoints.insert(table.id(), version);
                }
                todo.told.remove(&table.id());
                true
            }
            Err(error) => {
                todo.unpublished.insert(table.id());
                todo.tell_again = Some(Instant::now() + TRY_AGAIN);
                if todo.told.insert(table.id()) {
                    tracing::warn!(table = %table.id(), %error, "other programs do not see the newest rows of a table");
                }
                false
            }
        }
    }

    pub(super) fn publish_all(&self, store: &TableStore, folder: &Folder) {
        let snapshot = store.snapshot();
        for (_, table) in snapshot.tables().filter(|(_, table)| table.definition().is_durable()) {
            self.publish(table, folder);
        }
    }

    /// Whether the rows of a table are being moved, so that others must leave its segments as they are.
    pub(crate) fn is_tidying(&self, table: Uuid) -> bool {
        self.todo.lock().tidying == Some(table)
    }

    /// Notes in the catalog what the Delta log shows, so that versions before the given one may be forgotten.
    pub(super) fn record(&self, table: &Table, folder: &Folder) -> Result<Option<u64>, Error> {
        if let Some(bucket) = folder.disk.bucket() {
            bucket.make_whole(table.id(), &folder.disk, &folder.catalog)?;
        }
        let mut logs = self.logs.lock();
        let recorded = logs.publish(table, &folder.catalog, &folder.disk);
        let recorded = recorded.and_then(|_| logs.record(table.id(), &folder.catalog));
        recorded.inspect_err(|_| logs.forget(table.id()))?;
        Ok(logs.shown(table.id()))
    }

    /// Moves rows into files, writes files anew, and forgets old versions.
    fn look_after(&self, store: &Arc<TableStore>, folder: &Folder) {
        let snapshot = store.snapshot();
        let durable = snapshot.tables().filter(|(_, table)| table.definition().is_durable());
        let due = durable.flat_map(|(name, table)| {
            self.due(table).into_iter().map(move |work| (name.clone(), (table.id(), work)))
        });
        for (name, (table, work)) in due.collect::<Vec<_>>() {
            self.todo.lock().tidying = (work == Work::FewRows).then_some(table);
            let tidied = optimize_vacuum::tidy(store, &name, work);
            let mut todo = self.todo.lock();
            todo.tidying = None;
            match tidied {
                Ok(_) => drop(todo.waiting_since.remove(&(table, work))),
                Err(error) => {
                    tracing::debug!(table = %name, %error, "a table is tidied later");
                    todo.not_before.insert((table, work), Instant::now() + TRY_AGAIN);
                }
            }
        }
        self.trim(store, &snapshot, folder);
    }

    /// Writes the Delta logs that are to be written.
    ///
    /// # Errors
    /// When a store does not answer; what is not done is done later.
    pub(super) fn show_others(&self, store: &TableStore, folder: &Folder) -> Result<(), Error> {
        // Before the snapshot: what is noted from now on may be newer than that.
        let due = self.due_to_show(folder);
        let snapshot = store.snapshot();
        for (_, table) in snapshot.tables().filter(|(_, table)| due.contains(&table.id())) {
            if let Some(bucket) = folder.disk.bucket() {
                let shown = bucket.make_whole(table.id(), &folder.disk, &folder.catalog);
                // A log that others have spoilt is the matter of its table alone.
                let shown = shown.and_then(|()| match self.publish(table, folder) {
                    true => Ok(()),
                    false => bucket.confirm(),
                });
                shown.inspect_err(|_| self.todo.lock().unpublished.extend(&due))?;
            } else {
                self.publish(table, folder);
            }
        }
        Ok(())
    }

    pub(super) fn write_checkpoints(&self, folder: &Folder) {
        let checkpoints: Vec<_> = self.todo.lock().checkpoints.drain().collect();
        for (table, version) in checkpoints {
            if let Err(error) = delta::checkpoint(&folder.disk, table, version) {
                tracing::warn!(%table, %error, "a Delta log has no new checkpoint");
            }
        }
    }

    /// Takes the tables whose Delta logs are to be written now. What has failed in a store is left alone for a while.
    fn due_to_show(&self, folder: &Folder) -> HashSet<Uuid> {
        let mut todo = self.todo.lock();
        let due = std::mem::take(&mut todo.unpublished);
        let early = todo.tell_again.is_some_and(|time| Instant::now() < time);
        if folder.disk.bucket().is_none() || !early {
            return due;
        }
        let (later, due) = due.into_iter().partition(|table| todo.told.contains(table));
        todo.unpublished = later;
        due
    }

    /// What is due for a table: its few rows or deleted rows have waited long enough, or it has too many small files.
    fn due(&self, table: &Table) -> Vec<Work> {
        let in_catalog = table.shared_segments().iter().any(|segment| segment.memory().is_some());
        let few_rows = in_catalog.then_some(FEW_ROWS_STAY);
        let files = match optimize_vacuum::bytes_with_deleted_rows(table) {
            _ if optimize_vacuum::has_many_small_files(table) => Some(Duration::ZERO),
            0 => None,
            bytes => {
                let stay = DELETED_ROWS_STAY.saturating_mul(u32::try_from(bytes >> 20).unwrap_or(u32::MAX));
                Some(stay.clamp(FEW_ROWS_STAY, DELETED_ROWS_STAY_AT_MOST))
            }
        };
        let mut todo = self.todo.lock();
        let is_due = |(work, stay): (Work, Option<Duration>)| {
            let key = (table.id(), work);
            if todo.not_before.get(&key).is_some_and(|time| Instant::now() < *time) {
                return None;
            }
            todo.not_before.remove(&key);
            let Some(stay) = stay else {
                todo.waiting_since.remove(&key);
                return None;
            };
            let since = todo.waiting_since.entry(key).or_insert_with(Instant::now);
            (since.elapsed() >= stay).then_some(work)
        };
        [(Work::FewRows, few_rows), (Work::Files, files)].into_iter().filter_map(is_due).collect()
    }

    fn trim(&self, store: &TableStore, snapshot: &Snapshot, folder: &Folder) {
        if self.todo.lock().trimmed.is_some_and(|last| last.elapsed() < TRIM_EVERY) {
            return;
        }
        let before = std::mem::take(&mut self.todo.lock().trimmed_at);
        let mut now = HashMap::new();
        for (name, table) in snapshot.tables().filter(|(_, table)| table.definition().is_durable()) {
            now.insert(table.id(), table.version());
            if before.get(&table.id()) != Some(&table.version())
                && let Err(error) = optimize_vacuum::trim(store, folder, table)
            {
                tracing::warn!(table = %name, %error, "old versions of a table are kept for now");
            }
        }
        let mut todo = self.todo.lock();
        (todo.trimmed, todo.trimmed_at) = (Some(Instant::now()), now);
    }

    /// Removes the files of the tables that were dropped and that nobody reads any more.
    ///
    /// # Errors
    /// When one cannot be removed from a store, where it is tried again. One that is here goes at the next start.
    pub(super) fn remove_dropped(&self, folder: &Folder) -> Result<(), Error> {
        let (used, mut gone): (Vec<_>, Vec<_>) =
            self.todo.lock().dropped.drain(..).partition(|table| folder.disk.is_used(*table));
        self.todo.lock().dropped.extend(used);
        while let Some(table) = gone.pop() {
            match self.remove_table(table, folder) {
                Ok(()) => {}
                Err(error) if folder.disk.bucket().is_some() => {
                    gone.push(table);
                    self.todo.lock().dropped.append(&mut gone);
                    return Err(error);
                }
                Err(error) => {
                    tracing::warn!(%table, %error, "the folder of a dropped table is removed at the next start");
                }
            }
        }
        Ok(())
    }

    fn remove_table(&self, table: Uuid, folder: &Folder) -> Result<(), Error> {
        {
            // Held until the folder is gone. Nobody writes a log into it after that: the catalog does not have the table.
            let mut logs = self.logs.lock();
            logs.forget(table);
            folder.disk.remove_folder(table)?;
        }
        if let Some(bucket) = folder.disk.bucket() {
            bucket.remove_table(table)?;
        }
        folder.catalog.write(|connection| {
            let done = connection.execute("DELETE FROM dropped WHERE table_id = ?", [table.to_string()]);
            done.map(drop).map_err(|error| folder.catalog.failed("cannot be written", &error))
        })
    }
}
