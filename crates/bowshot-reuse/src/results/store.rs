//! What the result cache keeps in its store, and how a result is found there.

use super::key::{Question, ResultKey};
use super::query_patterns::Noted;
use crate::cache::{Cacheable, Entry, EntryInfo, Error, Loaded, Place, Sizes, Store, TableKey};
use bowshot_api::BatchStream;
use bowshot_engine::{Execution, ProgressMeter};
use datafusion::arrow::datatypes::SchemaRef;
use parking_lot::Mutex;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

pub(super) type CachedResult = Entry<ResultInfo>;

/// A result without its rows.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ResultInfo {
    /// That of the query: see [`Question::digest`].
    pub(super) digest: u64,
    pub(super) tables: Vec<TableKey>,
    pub(super) streams: Vec<usize>,
    pub(super) ordered: bool,
    /// Rows that the plan promised, if it did: an answer says the same each time.
    pub(super) promised: Option<u64>,
    /// The query of a result on disk: see [`super::stored_key::fingerprint`].
    #[serde(serialize_with = "serialize_once", deserialize_with = "deserialize_once")]
    pub(super) query: OnceLock<String>,
    #[serde(skip)]
    pub(super) asked: Mutex<Option<Arc<AskedQuery>>>,
}

#[derive(Debug)]
pub(super) struct AskedQuery {
    pub(super) key: ResultKey,
    /// When it was planned: an earlier one never takes the place of a later one.
    pub(super) begun: Instant,
    /// What it is an instance of, if it may be asked ahead with the next tables.
    pub(super) template: Option<Noted>,
}

/// A result with its rows, which stay when they leave the store.
pub(super) struct FoundResult {
    pub(super) result: Arc<CachedResult>,
    pub(super) rows: Loaded,
    pub(super) asked: Arc<AskedQuery>,
}

impl FoundResult {
    /// The rows as a query gives them that has run.
    pub(super) fn execution(&self) -> Execution {
        let about = &self.result.about;
        let schema = || SchemaRef::clone(&self.rows.schema);
        let mut batches = self.rows.batches.iter().cloned();
        let streams = about.streams.iter();
        let streams =
            streams.map(|count| BatchStream::from_batches(schema(), batches.by_ref().take(*count).collect()));
        Execution {
            schema: schema(),
            streams: streams.collect(),
            ordered: about.ordered,
            rows: about.promised,
            progress: ProgressMeter::default(),
            opening: None,
        }
    }
}

impl Cacheable for ResultInfo {
    const MAX_ENTRIES: usize = 10_000;
    const ALWAYS_ENTERS: bool = true;
    // It is in the folder of the tables, which is locked.
    const CLAIMS_FOLDER: bool = false;

    fn digest(&self) -> u64 {
        self.digest
    }

    fn tables(&self) -> &[TableKey] {
        &self.tables
    }

    /// Nobody can ask for what the same query gave before a change.
    fn replaces(&self, old: &CachedResult) -> bool {
        let names = |tables: &[TableKey]| tables.iter().map(|table| table.name.clone()).collect::<Vec<_>>();
        old.about.digest == self.digest && names(&old.about.tables) == names(&self.tables)
    }

    fn leave_memory(&self) {
        *self.asked.lock() = None;
    }

    fn count_eviction(place: Place) {
        match place {
            Place::Memory => metrics::counter!("bowshot_result_cache_evictions_total").increment(1),
            Place::Disk => {
                metrics::counter!("bowshot_result_cache_evictions_total", "place" => "disk").increment(1);
            }
        }
    }

    fn publish(sizes: Sizes) {
        metrics::gauge!("bowshot_result_cache_bytes").set(sizes.memory as f64);
        metrics::gauge!("bowshot_result_cache_results").set(sizes.in_memory as f64);
        metrics::gauge!("bowshot_result_cache_disk_bytes").set(sizes.disk as f64);
    }

    fn failed(what: &'static str, error: &Error) {
        metrics::counter!("bowshot_result_cache_errors_total", "what" => what).increment(1);
        tracing::warn!(what, error = error as &dyn std::error::Error, "the result cache steps aside");
    }
}

impl Store<ResultInfo> {
    /// The result of a query, if it is in memory for what its tables hold now.
    pub(super) fn find(&self, question: &Question) -> Option<FoundResult> {
        self.of_digest(question.digest).into_iter().find_map(|result| {
            let asked = result.about.asked.lock().clone()?;
            // Outside the locks, since plans may be large.
            let rows = (asked.key == question.key).then(|| result.memory()).flatten()?;
            Some(FoundResult { result, rows, asked })
        })
    }

    /// A result on disk that may be the one of a query.
    pub(super) fn find_on_disk(&self, question: &Question) -> Option<Arc<CachedResult>> {
        let there = self.of_digest(question.digest).into_iter();
        there
            .filter(|result| result.about.tables == question.key.tables)
            .find(|result| result.place() == "disk")
    }

    /// Keeps a result, if none of the same query is there that was planned later.
    pub(super) fn keep(
        &self,
        about: ResultInfo,
        (info, rows): (EntryInfo, Loaded),
        asked: AskedQuery,
    ) -> Option<Arc<CachedResult>> {
        let outdated = self.of_digest(about.digest).into_iter().any(|there| {
            let there = there.about.asked.lock().clone();
            there.is_some_and(|at| at.begun > asked.begun && at.key.is_of_same_query(&asked.key))
        });
        if outdated {
            return None;
        }
        *about.asked.lock() = Some(Arc::new(asked));
        self.insert(about, info, rows).ok()
    }
}

/// Bytes of results that are on their way to a client, and may be kept at their end.
#[derive(Debug)]
pub(super) struct BegunBytes {
    limit: u64,
    taken: AtomicU64,
}

impl BegunBytes {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, taken: AtomicU64::new(0) }
    }

    /// Takes bytes for a result, if there is room for them.
    pub(super) fn begin(&self, bytes: u64) -> bool {
        let before = self.taken.fetch_add(bytes, Ordering::Relaxed);
        metrics::gauge!("bowshot_result_cache_begun_bytes").increment(bytes as f64);
        let fits = before + bytes <= self.limit;
        if !fits {
            self.end(bytes);
        }
        fits
    }

    /// Gives back such bytes.
    pub(super) fn end(&self, bytes: u64) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
        metrics::gauge!("bowshot_result_cache_begun_bytes").decrement(bytes as f64);
    }
}

fn serialize_once<S: Serializer>(query: &OnceLock<String>, serializer: S) -> Result<S::Ok, S::Error> {
    query.get().serialize(serializer)
}

fn deserialize_once<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OnceLock<String>, D::Error> {
    String::deserialize(deserializer).map(OnceLock::from)
}
