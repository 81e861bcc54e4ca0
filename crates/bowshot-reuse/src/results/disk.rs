//! Results that were used again are written to disk, so that they are available after they left memory, and after a restart.

use super::key::Question;
use super::store::{CachedResult, Saved};
use super::{ResultCache, ResultCacheConfig, stored_key};
use crate::cache::{ResultFiles, ResultInfo, TableKey, Written};
use crate::{keys, lineage};
use bowshot_engine::reuse::Asked;
use bowshot_storage::tables::TableStore;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What takes less time is computed again as soon as it is read.
const LEAST_COST: Duration = Duration::from_millis(5);

/// The files of a configuration, less those of tables that have changed since. Without memory or disk for them there are none,
/// and those of before are removed: nobody could make the server forget them.
pub(super) fn open(config: &ResultCacheConfig, tables: &TableStore) -> Option<ResultFiles> {
    let folder = config.folder.clone()?;
    if config.memory_bytes == 0 || config.disk_bytes == 0 {
        ResultFiles::remove_all(&folder);
        return None;
    }
    let files = ResultFiles::open(folder.clone(), config.disk_bytes, crate::cache::this_program)?;
    let (newest, continues) = (tables.snapshot(), lineage::continues(&folder, tables.opening()));
    files.remove_changed(|table| keys::holds(table, &newest) && (continues || keys::is_file(table)));
    lineage::note(&folder, tables.opening());
    Some(files)
}

impl ResultCache {
    /// Whether a result may come from disk.
    pub(super) fn is_on_disk(&self, question: &Question) -> bool {
        let largest = self.store.largest();
        self.files
            .as_ref()
            .is_some_and(|files| files.may_have(question.digest, &question.key.tables, largest))
    }

    /// A result from disk, in memory from now on.
    pub(super) async fn restored(
        &self,
        question: &Question,
        asked: Option<&Asked>,
    ) -> Option<Arc<CachedResult>> {
        if !self.is_on_disk(question) {
            return None;
        }
        let (begun, cleared) = (Instant::now(), self.cleared());
        // One after the other: many may ask the same at once, and then it is there for all but the first.
        let _one = self.restoring.lock().await;
        if let Some(kept) = self.store.find(question) {
            return Some(kept);
        }
        if !question.still_holds() {
            return None;
        }
        let (files, digest) = (self.files.clone()?, question.digest);
        let (text, tables) = (stored_key::text(&question.key)?, question.key.tables.clone());
        let read = tokio::task::spawn_blocking(move || files.read(digest, &tables, &text)).await;
        let (about, schema, batches) = read.ok().flatten()?;
        let key = question.key.to_keep()?;
        let template = asked.and_then(|asked| self.questions.note(asked, &key));
        let mut result =
            CachedResult::new((key, about.bytes), (schema, split(batches, &about.streams)), about.cost);
        (result.ordered, result.promised, result.created) = (about.ordered, about.promised, about.created);
        (result.template, result.begun) = (template, begun);
        result.set_saved(Saved::Yes);
        let result = Arc::new(result);
        self.store.insert(digest, Arc::clone(&result));
        if cleared != self.cleared() {
            self.store.forget(&result);
            return None;
        }
        metrics::counter!("bowshot_result_cache_restored_total").increment(1);
        Some(result)
    }

    /// Has a result written that was just given again, if it is worth that and not there yet. To be called on a runtime.
    /// `cleared` is how often all had been forgotten before it was found.
    pub(super) fn save(self: &Arc<Self>, digest: u64, kept: &Arc<CachedResult>, cleared: u64) {
        let Some(files) = &self.files else { return };
        if kept.save_from(Saved::Yes, Saved::Yes) && !files.used(digest, &kept.key.tables) {
            // It had to make room, and is used again. If many have to in turn, none should be written at each use.
            if kept.hits().is_power_of_two() {
                kept.set_saved(Saved::No);
            }
        }
        if files.rests() || !kept.save_from(Saved::No, Saved::Begun) {
            return;
        }
        if kept.cost < LEAST_COST || !kept.key.tables.iter().all(TableKey::is_lasting) {
            kept.set_saved(Saved::Never);
            return;
        }
        let Ok(place) = Arc::clone(&self.writers).try_acquire_owned() else {
            // At its next use.
            kept.set_saved(Saved::No);
            return;
        };
        let (cache, kept) = (Arc::clone(self), Arc::clone(kept));
        drop(tokio::spawn(async move {
            let _one = cache.writing.lock().await;
            let (writer, written) = (Arc::clone(&cache), Arc::clone(&kept));
            let done = tokio::task::spawn_blocking(move || writer.write(digest, &written, cleared)).await;
            kept.set_saved(match done {
                Ok(Some(Written::There)) => Saved::Yes,
                Ok(Some(Written::Later)) => Saved::No,
                Ok(Some(Written::Never) | None) | Err(_) => Saved::Never,
            });
            drop(place);
        }));
    }

    /// Writes a result; `None` if it cannot be told from all others.
    fn write(&self, digest: u64, kept: &CachedResult, cleared: u64) -> Option<Written> {
        let (files, query) = (self.files.as_ref()?, stored_key::text(&kept.key)?);
        if cleared != self.cleared() {
            return Some(Written::Later);
        }
        let about = ResultInfo {
            query,
            program: files.program().to_owned(),
            tables: kept.key.tables.clone(),
            digest,
            streams: kept.streams.iter().map(Vec::len).collect(),
            ordered: kept.ordered,
            promised: kept.promised,
            bytes: kept.bytes,
            cost: kept.cost,
            created: kept.created,
        };
        let batches: Vec<RecordBatch> = kept.streams.iter().flatten().cloned().collect();
        let written = files.write(about, &SchemaRef::clone(&kept.schema), &batches);
        if cleared != self.cleared() {
            files.clear();
        }
        if written == Written::There {
            let newest = self.tables.snapshot();
            files.remove_changed(|table| keys::holds(table, &newest));
        }
        Some(written)
    }
}

/// The batches of each stream.
fn split(batches: Vec<RecordBatch>, streams: &[usize]) -> Vec<Vec<RecordBatch>> {
    let mut batches = batches.into_iter();
    streams.iter().map(|count| batches.by_ref().take(*count).collect()).collect()
}
