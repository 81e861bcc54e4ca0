//! The newest snapshot, the memory of all rows, the data folder, and the one door for commits.

use super::commit_queue::CommitQueue;
use super::commit_views;
use super::compaction::unite_small_segments;
use super::deep_copy::owned;
use super::deleted_rows::DeletedRows;
use super::durable::{
    Bucket, Catalog, Disk, Keeper, Leftovers, Loaded, Opening, Persisted, StoredFile, TablesPlace, load,
    look_after_bucket, persist, remove_abandoned_holds, write_file,
};
use super::memory_accounting::Account;
use super::merge::{Sides, are_unchanged};
use super::model_files::ModelFiles;
use super::read_set::Reads;
use super::refresh_failures::RefreshFailures;
use super::segment::{Segment, without_dead_texts};
use super::sequences::Numbers;
use super::snapshot::{Defaults, Snapshot};
use super::view_usage::{ViewUsage, ViewUsages};
use super::{EntryName, Error, Table};
use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use bowshot_formats::decoded_columns::ColumnCache;
use datafusion::execution::runtime_env::RuntimeEnv;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use uuid::Uuid;

/// Rows of a durable table that are kept in the catalog when they come alone; more go into a file at once.
const FEW_ROWS: usize = 4096;
/// Bytes of such rows.
const FEW_BYTES: usize = 256 << 10;

/// Tables in memory, and in a data folder if there is one. See the module `tables` for what a commit promises.
#[derive(Debug)]
pub struct TableStore {
    /// Locked for an instant, also by writers.
    head: RwLock<Arc<Snapshot>>,
    waiting: CommitQueue<Request>,
    /// Held by the commit that is merging for all that wait, and by whoever keeps commits out.
    pub(super) turn: Mutex<()>,
    account: Arc<Account>,
    folder: Option<Folder>,
    numbers: Numbers,
    model_files: ModelFiles,
    refresh_failures: RefreshFailures,
    view_usages: ViewUsages,
}

#[derive(Debug)]
pub(super) struct Folder {
    pub(super) catalog: Catalog,
    pub(super) disk: Arc<Disk>,
    pub(super) keeper: Keeper,
}

#[derive(Debug)]
struct Request {
    base: Arc<Snapshot>,
    changed: Arc<Snapshot>,
    /// What the transaction has read, where that must not have changed since `base`.
    reads: Reads,
    outcome: Mutex<Option<Result<Arc<Snapshot>, Error>>>,
}

#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Catalog of names that do not say theirs; always there.
    pub default_catalog: String,
    /// Schema of names that do not say theirs; always there.
    pub default_schema: String,
    /// Bytes that rows may take in memory.
    pub memory_bytes: u64,
    /// File handles kept open for durable tables.
    pub max_open_files: usize,
    pub columns: Arc<ColumnCache>,
    /// Where the files of durable tables are, if that is not the data folder.
    pub place: Option<TablesPlace>,
}

impl TableStore {
    /// A store with one empty schema, whose rows may take `limit_bytes` of memory.
    pub fn in_memory(default_catalog: &str, default_schema: &str, limit_bytes: u64) -> Arc<Self> {
        let defaults = Defaults { catalog: default_catalog.to_owned(), schema: default_schema.to_owned() };
        let account = Arc::new(Account::new(limit_bytes, 0));
        Arc::new(Self::new(Snapshot::first(defaults), account, None, ModelFiles::in_memory()))
    }

    /// The store of a data folder, which no other process may use: what was committed there, ready for more. Removes
    /// what writers left that were killed. Blocks.
    ///
    /// # Errors
    /// When the folder cannot be read or written, or its catalog is damaged; nothing in it is changed then.
    pub fn open(folder: &Path, options: &StoreOptions, runtime: &RuntimeEnv) -> Result<Arc<Self>, Error> {
        let disk = Disk::open(folder, runtime, options)?;
        if !Catalog::is_in(folder) && disk.has_tables()? {
            return Err(Error::NoCatalog { path: folder.to_path_buf() });
        }
        let catalog = Catalog::open(folder)?;
        if let Some(bucket) = Bucket::open(options.place.as_ref(), &catalog)? {
            disk.keep_in(bucket);
        }
        let account = Arc::new(Account::new(options.memory_bytes, 0));
        let defaults =
            || Defaults { catalog: options.default_catalog.clone(), schema: options.default_schema.clone() };
        let Loaded { snapshot, next_segment, leftovers } = load(&catalog, &disk, &account, defaults())?;
        account.begin_at(next_segment);
        let head = match snapshot {
            Some(snapshot) => snapshot,
            // Without names, the files of tables would be taken for rubbish.
            None if disk.has_tables()? => return Err(Error::NoCatalog { path: folder.to_path_buf() }),
            None => {
                let mut first = Snapshot::first(defaults());
                persist(&catalog, &Snapshot::empty(defaults()), &mut first)?;
                first
            }
        };
        leftovers.remove(&catalog, &disk)?;
        remove_abandoned_holds(folder);
        let model_files = ModelFiles::open(folder)?;
        let keeper = kept(&disk, &head, &leftovers);
        let folder = Folder { catalog, disk, keeper };
        let store = Arc::new(Self::new(head, account, Some(folder), model_files));
        Keeper::start(&store);
        look_after_bucket(&store);
        Ok(store)
    }

    fn new(head: Snapshot, account: Arc<Account>, folder: Option<Folder>, model_files: ModelFiles) -> Self {
        Self {
            head: RwLock::new(Arc::new(head)),
            waiting: CommitQueue::default(),
            turn: Mutex::new(()),
            account,
            folder,
            numbers: Numbers::default(),
            model_files,
            refresh_failures: RefreshFailures::default(),
            view_usages: ViewUsages::default(),
        }
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.head.read())
    }

    /// The newest committed notes, as a function that does not hold the store.
    pub fn newest_texts(
        self: &Arc<Self>,
    ) -> impl Fn() -> Option<Arc<BTreeMap<String, String>>> + Send + Sync + use<> {
        let store = Arc::downgrade(self);
        move || Some(Arc::clone(store.upgrade()?.snapshot().notes().shared_texts()))
    }

    /// How the catalog of durable tables was opened; without one, nothing is known.
    pub fn opening(&self) -> Opening {
        self.folder.as_ref().map(|folder| folder.catalog.opening()).unwrap_or_default()
    }

    pub fn model_files(&self) -> &ModelFiles {
        &self.model_files
    }

    pub fn note_refresh(&self, view: Uuid, error: Option<String>) {
        self.refresh_failures.note(view, error);
    }

    /// When the server could not refresh a materialized view, and why, unless it could since.
    pub fn refresh_failure(&self, view: Uuid) -> Option<(Instant, String)> {
        self.refresh_failures.of(view)
    }

    pub fn note_answer(&self, view: Uuid) {
        self.view_usages.note(view, |usage| usage.answered += 1);
    }

    pub fn note_made(&self, view: Uuid) {
        self.view_usages.note(view, |usage| usage.by_server = true);
    }

    pub fn view_usage(&self, view: Uuid) -> ViewUsage {
        self.view_usages.of(view)
    }

    pub fn forget_dropped_views(&self) {
        let snapshot = self.snapshot();
        let views = snapshot.tables().filter(|(_, table)| table.definition().materialized.is_some());
        let views: HashSet<Uuid> = views.map(|(_, table)| table.id()).collect();
        self.view_usages.retain(|view| views.contains(&view));
    }

    pub fn has_folder(&self) -> bool {
        self.folder.is_some()
    }

    /// Copies the rows into memory of the store. Fails with [`Error::Full`] at the limit.
    pub fn segment(&self, rows: &RecordBatch) -> Result<Arc<Segment>, Error> {
        self.in_memory_segment(owned(rows)?)
    }

    /// Makes the changes between `base` and `changed` visible, all at once, and gives the new newest snapshot: what
    /// both transactions and all that committed since `base` did. Without a change it is the newest one as it is.
    /// What concerns durable tables is on disk then. Commits that come at the same time share one write to disk.
    /// Blocks.
    ///
    /// Fails with [`Error::Conflict`], and changes nothing, when another transaction was first.
    pub fn commit(&self, base: &Arc<Snapshot>, changed: &Arc<Snapshot>) -> Result<Arc<Snapshot>, Error> {
        self.commit_serializable(base, changed, Reads::default())
    }

    /// The same for a transaction that has read these tables. Where each transaction that writes commits so, all of them are
    /// as if they had run one after the other, in the order of their commits.
    ///
    /// Fails with [`Error::NotSerializable`], too, when another transaction has changed one of them since `base`.
    pub fn commit_serializable(
        &self,
        base: &Arc<Snapshot>,
        changed: &Arc<Snapshot>,
        reads: Reads,
    ) -> Result<Arc<Snapshot>, Error> {
        if base.same(changed) {
            return Ok(self.snapshot());
        }
        let request = Arc::new(Request {
            base: Arc::clone(base),
            changed: Arc::clone(changed),
            reads,
            outcome: Mutex::default(),
        });
        if let Some(mut leader) = self.waiting.join(&request) {
            let turn = self.turn.lock();
            let persisted = self.commit_all(&leader.take());
            drop(turn);
            drop(leader);
            if let Some(folder) = &self.folder {
                folder.keeper.after_commit(folder, persisted);
            }
        }
        let outcome = request.outcome.lock().take();
        outcome.unwrap_or_else(|| Err(Error::Invalid("a commit was lost".to_owned())))
    }

    /// Commits all of these, in their order; those that conflict with one before fail.
    fn commit_all(&self, requests: &[Arc<Request>]) -> Persisted {
        let mut all = Persisted::default();
        match self.commit_together(requests) {
            Ok(persisted) => all = persisted,
            // Only that one is to fail which cannot be kept.
            Err(error) if requests.len() > 1 && !matches!(error, Error::Stopped { .. }) => {
                for request in requests {
                    let alone = std::slice::from_ref(request);
                    match self.commit_together(alone) {
                        Ok(persisted) => all.add(persisted),
                        Err(error) => *request.outcome.lock() = Some(Err(error)),
                    }
                }
            }
            Err(error) => {
                for request in requests {
                    request.outcome.lock().get_or_insert_with(|| Err(error.again()));
                }
            }
        }
        all
    }

    /// Commits all of these that do not conflict with one before, or none.
    fn commit_together(&self, requests: &[Arc<Request>]) -> Result<Persisted, Error> {
        let head = self.snapshot();
        let mut next = head.as_ref().clone();
        let mut merged = Vec::with_capacity(requests.len());
        for request in requests {
            let sides = Sides { base: request.base.as_ref(), changed: request.changed.as_ref(), head: &next };
            match merge_and_check(&sides, &request.reads) {
                Ok(snapshot) => {
                    next = snapshot;
                    merged.push(request);
                }
                Err(error) => *request.outcome.lock() = Some(Err(error)),
            }
        }
        if merged.is_empty() {
            return Ok(Persisted::default());
        }
        unite_small_segments(self, &head, &mut next);
        let persisted = match &self.folder {
            Some(folder) => persist(&folder.catalog, &head, &mut next)?,
            None => Persisted::default(),
        };
        let next = self.publish(next);
        for request in merged {
            *request.outcome.lock() = Some(Ok(Arc::clone(&next)));
        }
        Ok(persisted)
    }

    /// The newest snapshot, and what a transaction that has read these tables makes of it: to compute more over that before it is
    /// committed, with the first as its base.
    ///
    /// Fails with [`Error::Conflict`] and [`Error::NotSerializable`] as a commit does.
    pub fn rebased(
        &self,
        base: &Snapshot,
        changed: &Snapshot,
        reads: &Reads,
    ) -> Result<[Arc<Snapshot>; 2], Error> {
        let head = self.snapshot();
        let rebased = merge(Sides { base, changed, head: head.as_ref() }, reads)?.in_place_of(&head);
        Ok([head, Arc::new(rebased)])
    }

    /// Whether these tables are as they were: for stores with one writer, which is the caller.
    ///
    /// Fails with [`Error::NotSerializable`] where one of them has changed.
    pub fn check_unchanged(&self, base: &Snapshot, reads: &BTreeSet<EntryName>) -> Result<(), Error> {
        if are_unchanged(reads, base, &self.snapshot()) { Ok(()) } else { Err(Error::NotSerializable) }
    }

    fn publish(&self, next: Snapshot) -> Arc<Snapshot> {
        let next = Arc::new(next);
        let replaced = {
            let mut head = self.head.write();
            mem::replace(&mut *head, Arc::clone(&next))
        };
        // Outside the lock: this may be the last user of many rows.
        drop(replaced);
        next
    }

    /// Returns to an earlier snapshot of this store. For stores with one writer, who takes the last commit back.
    pub fn reset(&self, earlier: &Arc<Snapshot>) {
        let replaced = {
            let mut head = self.head.write();
            mem::replace(&mut *head, Arc::clone(earlier))
        };
        drop(replaced);
    }

    /// Bytes of memory that rows take, also those that only running queries and open transactions still use.
    pub fn memory_bytes(&self) -> u64 {
        self.account.bytes()
    }

    pub(super) fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    pub(super) fn folder(&self) -> Option<&Folder> {
        self.folder.as_ref()
    }

    pub(super) fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// A segment of rows that were computed from segments, if there are any.
    pub(super) fn rewritten(
        &self,
        table: &Table,
        rows: impl Iterator<Item = Result<RecordBatch, Error>>,
    ) -> Result<Option<Arc<Segment>>, Error> {
        self.taken_over(table, rows.map(|rows| without_dead_texts(&rows?)))
    }

    /// A segment of rows that come from outside, if there are any.
    pub(super) fn copied(
        &self,
        table: &Table,
        rows: Vec<RecordBatch>,
    ) -> Result<Option<Arc<Segment>>, Error> {
        if rows.iter().map(RecordBatch::num_rows).sum::<usize>() > FEW_ROWS {
            return self.taken_over(table, rows.into_iter().map(Ok));
        }
        // Their size counts, not that of the message or batch that they came with.
        self.taken_over(table, rows.iter().map(owned))
    }

    /// A segment of rows that are the store's own already, if there are any.
    pub(super) fn taken_over(
        &self,
        table: &Table,
        mut rows: impl Iterator<Item = Result<RecordBatch, Error>>,
    ) -> Result<Option<Arc<Segment>>, Error> {
        let in_files = self.folder.as_ref().filter(|_| table.definition().is_durable());
        let (mut few, mut count, mut bytes) = (Vec::new(), 0, 0);
        for batch in rows.by_ref() {
            let batch = batch?;
            count += batch.num_rows();
            bytes += batch.get_array_memory_size();
            few.push(batch);
            if let Some(folder) = in_files
                && (count > FEW_ROWS || bytes > FEW_BYTES)
            {
                let all = few.into_iter().map(Ok).chain(rows);
                let file = write_file(&folder.disk, table, all)?;
                return Ok(file.map(|file| Arc::new(self.whole_file(file))));
            }
        }
        let rows = match few.as_slice() {
            [one] => one.clone(),
            many => concat_batches(&table.schema(), many)?,
        };
        if rows.num_rows() == 0 { Ok(None) } else { self.in_memory_segment(rows).map(Some) }
    }

    /// A segment in memory of rows that are the store's own already.
    pub(super) fn in_memory_segment(&self, rows: RecordBatch) -> Result<Arc<Segment>, Error> {
        Ok(Arc::new(Segment::in_memory(self.account.number(), rows, &self.account)?))
    }

    fn whole_file(&self, file: StoredFile) -> Segment {
        Segment::in_file(self.account.number(), file, DeletedRows::default(), &self.account)
    }

    /// A segment with the rows of others, in which a commit may find those again.
    pub(super) fn united(&self, rows: RecordBatch, parts: &[Arc<Segment>]) -> Result<Arc<Segment>, Error> {
        Ok(Arc::new(Segment::in_memory(self.account.number(), rows, &self.account)?.of_parts(parts)))
    }

    /// See [`Self::united`].
    pub(super) fn united_file(&self, file: StoredFile, parts: &[Arc<Segment>]) -> Arc<Segment> {
        Arc::new(self.whole_file(file).of_parts(parts))
    }
}

/// What a transaction makes of the head, unless that has changed what it has read.
fn merge(sides: Sides<'_, Snapshot>, reads: &Reads) -> Result<Snapshot, Error> {
    if reads.has_rows_in(sides.head) && are_unchanged(&reads.names, sides.base, sides.head) {
        Snapshot::merge(sides)
    } else {
        Err(Error::NotSerializable)
    }
}

/// The same, where every view that commits refresh shows its tables then.
fn merge_and_check(sides: &Sides<'_, Snapshot>, reads: &Reads) -> Result<Snapshot, Error> {
    let merged = merge(sides.part(|snapshot| snapshot), reads)?;
    commit_views::check(sides, &merged)?;
    Ok(merged)
}

fn kept(disk: &Disk, head: &Snapshot, leftovers: &Leftovers) -> Keeper {
    let Some(bucket) = disk.bucket() else { return Keeper::default() };
    if leftovers.is_doubtful() {
        bucket.keep_everything();
    }
    let keeper = Keeper::with_dropped(leftovers.dropped());
    keeper.look_at_all(head);
    keeper
}
