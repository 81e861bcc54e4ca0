//! Results that were used again are written to disk, so that they are available after they left memory, and after a restart.

use super::key::Question;
use super::store::{AskedQuery, CachedResult, FoundResult, ResultInfo};
use super::{ResultCache, ResultCacheConfig, stored_key};
use crate::cache::{Budget, Loaded, Place, Store, TableKey};
use crate::{keys, lineage};
use bowshot_engine::reuse::Asked;
use bowshot_tables::TableStore;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What takes less time is computed again as soon as it is read.
const LEAST_COST: Duration = Duration::from_millis(5);
/// One result has at most one part of so many of the disk.
const LARGEST_PART: u64 = 8;

/// A store with so many bytes in memory and the files of a configuration, less those of tables that have changed since. Without
/// memory or disk for files, those of before are removed: nobody could make the server forget them.
pub(super) fn open(config: &ResultCacheConfig, memory_bytes: u64, tables: &TableStore) -> Store<ResultInfo> {
    let mut folder = config.folder.clone();
    if (config.memory_bytes == 0 || config.disk_bytes == 0)
        && let Some(unused) = folder.take()
    {
        Store::<ResultInfo>::remove_files(&unused);
    }
    let store = Store::open(Budget { memory_bytes, disk_bytes: config.disk_bytes, folder });
    lineage::keep_current(&store, tables);
    store
}

impl ResultCache {
    /// A result from disk, in memory from now on.
    pub(super) async fn restored(&self, question: &Question, asked: Option<&Asked>) -> Option<FoundResult> {
        self.store.find_on_disk(question)?;
        let (begun, cleared) = (Instant::now(), self.cleared());
        // One after the other: many may ask the same at once, and then it is there for all but the first.
        let _one = self.restoring.lock().await;
        if let Some(found) = self.store.find(question) {
            return Some(found);
        }
        let result = self.store.find_on_disk(question).filter(|_| question.still_holds())?;
        let query = stored_key::fingerprint(&question.key)?;
        if result.about.query.get() != Some(&query) {
            return None;
        }
        let rows = self.read(&result).await?;
        let key = question.key.to_keep()?;
        let template = asked.and_then(|asked| self.questions.note(asked, &key));
        let asked = Arc::new(AskedQuery { key, begun, template });
        *result.about.asked.lock() = Some(Arc::clone(&asked));
        if self.store.restore(&result, rows.clone()).is_err() || cleared != self.cleared() {
            self.store.remove(result.id);
            return None;
        }
        metrics::counter!("bowshot_result_cache_restored_total").increment(1);
        Some(FoundResult { result, rows, asked })
    }

    async fn read(&self, result: &Arc<CachedResult>) -> Option<Loaded> {
        let reading = Arc::clone(result);
        let read = tokio::task::spawn_blocking(move || reading.read()).await.ok()?;
        read.inspect_err(|error| self.store.remove_broken(result.id, error)).ok()
    }

    /// Has a result written that was just given again, or asked ahead, if it is worth that and not there yet. To be called on
    /// a runtime. If results have to make room in turn, none should be written at each use.
    pub(super) fn save(self: &Arc<Self>, result: &Arc<CachedResult>) {
        let hits = result.hits();
        let is_due = hits == 0 || hits.is_power_of_two() || result.set_unwritten(false);
        if self.store.folder().is_none()
            || !is_due
            || result.bytes_in(Place::Disk) > 0
            || result.info.cost < LEAST_COST
            || result.info.bytes > self.store.disk_bytes() / LARGEST_PART
            || !result.about.tables.iter().all(TableKey::is_lasting)
        {
            return;
        }
        let place = Arc::clone(&self.writers).try_acquire_owned().ok().filter(|_| !self.store.rests());
        let Some(place) = place else {
            // At its next use.
            result.set_unwritten(true);
            return;
        };
        let (cache, result) = (Arc::clone(self), Arc::clone(result));
        drop(tokio::spawn(async move {
            let _one = cache.writing.lock().await;
            let writer = Arc::clone(&cache);
            // It says itself what went wrong.
            let _ = tokio::task::spawn_blocking(move || writer.write(&result)).await;
            drop(place);
        }));
    }

    /// Writes a result that can be told from all others, and removes those of tables that have changed.
    fn write(&self, result: &Arc<CachedResult>) {
        let Some(asked) = result.about.asked.lock().clone() else { return };
        if result.about.query.get().is_none() {
            let Some(query) = stored_key::fingerprint(&asked.key) else { return };
            // Nobody else writes.
            let _ = result.about.query.set(query);
        }
        self.store.write(result, &|| {});
        let newest = self.tables.snapshot();
        self.store.remove_of(|table| !keys::holds(table, &newest));
    }
}
