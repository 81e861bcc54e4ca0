//! Looks every second which joins should be there: those that new tables continue, and those whose tables have changed.
//! Keeps the history on disk.

use super::queue::Job;
use super::{JoinCache, keys};
use bowshot_cache::{Content, JoinShape, Order, TableKey, TableName};
use chrono::Utc;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often it looks.
const TICK: Duration = Duration::from_secs(1);
/// How often the history is written, in ticks.
const SAVE_TICKS: u32 = 10;
/// Joins that are watched; those of higher rank first.
const MAX_WATCHED: usize = 64;
/// A join is computed again after so many times what computing it takes, so that a table that changes all the time costs
/// a fraction of the processor.
const REST: u32 = 10;
/// Each forecast in a row that nobody used doubles the rest, so many times at most.
const MAX_DOUBLINGS: u32 = 8;
/// Computations that are remembered for that.
const MAX_REMEMBERED: usize = 1_024;
/// Name of the file of the history, in the folder of the cache.
const HISTORY_FILE: &str = "history.json";

/// What upkeep remembers from one look to the next.
#[derive(Debug, Default)]
pub(super) struct Watch {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// All tables that there were.
    tables: HashSet<TableName>,
    /// Joins that were foretold.
    foretold: Vec<(f64, Order)>,
    /// Versions that tables of watched joins had.
    versions: HashMap<TableName, TableKey>,
    /// When a join was last computed, or tried to be, and how long it rests from then.
    ended: HashMap<Order, (Instant, Duration)>,
}

impl Watch {
    /// Notes that a join was computed, or could not be. It rests for a while, `least` at least.
    pub(super) fn ended(&self, order: &Order, took: Duration, least: Duration) {
        let mut state = self.lock();
        if state.ended.len() >= MAX_REMEMBERED {
            state.ended.retain(|_, (ended, rest)| ended.elapsed() < *rest);
        }
        let rest = took.saturating_mul(REST).max(least);
        state.ended.insert(order.clone(), (Instant::now(), rest));
    }

    /// Whether a join was computed so recently that it is not yet computed again; `unused` forecasts in a row make it
    /// wait longer.
    pub(super) fn rests(&self, order: &Order, unused: u32) -> bool {
        let state = self.lock();
        let Some((ended, rest)) = state.ended.get(order) else { return false };
        ended.elapsed() < rest.saturating_mul(1 << unused.min(MAX_DOUBLINGS))
    }

    /// The tables that there were at the last look; none before the first.
    pub(super) fn tables(&self) -> HashSet<TableName> {
        self.lock().tables.clone()
    }

    /// The joins that were foretold.
    pub(super) fn foretold(&self) -> Vec<(f64, Order)> {
        self.lock().foretold.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks every second, for as long as the cache is there.
pub(super) async fn work(cache: Arc<JoinCache>) {
    let mut saved = String::new();
    for tick in 1_u32.. {
        tokio::time::sleep(TICK).await;
        cache.learn();
        if cache.config.forecast {
            cache.foretell(cache.listed().await);
            cache.refresh().await;
        }
        if tick.is_multiple_of(SAVE_TICKS) {
            cache.forget_dropped();
            cache.save_history(&mut saved);
        }
    }
}

impl JoinCache {
    /// Adds the joins that tables continue that were not there before.
    fn foretell(&self, now: HashSet<TableName>) {
        let appeared: Vec<TableName> = {
            let mut state = self.watch.lock();
            let appeared = now.difference(&state.tables).cloned().collect();
            state.tables = now;
            appeared
        };
        for table in appeared {
            let next = self.history.continued_by(&table, self.config.fill_after, Utc::now());
            let mut state = self.watch.lock();
            for (rank, order) in next {
                state.foretold.retain(|(_, other)| other.tables != order.tables || other.tree != order.tree);
                state.foretold.push((rank, order));
            }
            state.foretold.sort_by(|one, other| other.0.total_cmp(&one.0));
            state.foretold.truncate(MAX_WATCHED);
        }
    }

    /// Has the joins computed that should be there and are not: those that were foretold, and the latest of each template.
    /// A table that still changes is left alone until the next look.
    async fn refresh(&self) {
        let mut wanted: Vec<(f64, Order, bool)> =
            self.watch.foretold().into_iter().map(|(rank, order)| (rank, order, true)).collect();
        let latest = self.history.latest(self.config.fill_after, Utc::now());
        wanted.extend(latest.into_iter().map(|(rank, order)| (rank, order, false)));
        wanted.sort_by(|one, other| other.0.total_cmp(&one.0));
        wanted.truncate(MAX_WATCHED);
        let mut versions = HashMap::new();
        for (rank, order, forecast) in wanted {
            let unused = self.history.unused(&order);
            if let Some(keys) = self.settled(&order, &mut versions).await
                && !self.is_there(&order, keys)
                && !self.watch.rests(&order, unused)
            {
                self.queue.push(Job { order, rank, forecast });
            }
        }
        self.watch.lock().versions = versions;
    }

    /// The versions of the tables of a join, if they are what they were at the last look.
    async fn settled(
        &self,
        order: &Order,
        versions: &mut HashMap<TableName, TableKey>,
    ) -> Option<Vec<TableKey>> {
        let (mut found, mut settled) = (Vec::with_capacity(order.tables.len()), true);
        for name in &order.tables {
            let key = match versions.get(name) {
                Some(key) => key.clone(),
                None => keys::find(name, &self.parts).await?.key,
            };
            settled &= self.watch.lock().versions.get(name) == Some(&key);
            versions.insert(name.clone(), key.clone());
            found.push(key);
        }
        settled.then_some(found)
    }

    fn is_there(&self, order: &Order, keys: Vec<TableKey>) -> bool {
        let (shape, numbers) = JoinShape::new(keys, &order.tree, order.settings.clone());
        let columns = order.columns.iter().map(|column| bowshot_cache::ColumnRef {
            table: numbers.get(column.table).copied().unwrap_or(column.table),
            column: column.column.clone(),
        });
        self.store.find(&shape, &shape.tree.conditions, &columns.collect()).is_some()
    }

    /// The names of all tables that joins are cached of. Others wait for a listing that is under way: not for one of a
    /// thread that leaves the processor to them.
    pub(super) async fn listed(self: &Arc<Self>) -> HashSet<TableName> {
        let listing = Arc::clone(self);
        // It ends with the threads of the engine only.
        self.queries.spawn_blocking(move || listing.table_names()).await.unwrap_or_default()
    }

    fn table_names(&self) -> HashSet<TableName> {
        let snapshot = self.parts.tables.snapshot();
        let own = snapshot.tables().map(|(name, _)| TableName {
            catalog: name.catalog,
            schema: name.schema,
            table: name.name,
        });
        let files = self.parts.main.table_names().into_iter().map(|table| TableName {
            catalog: crate::DEFAULT_CATALOG.to_owned(),
            schema: crate::DEFAULT_SCHEMA.to_owned(),
            table,
        });
        own.chain(files).collect()
    }

    /// Forgets the joins of tables that are no more, with their files.
    fn forget_dropped(&self) {
        let snapshot = self.parts.tables.snapshot();
        let own: HashSet<String> = snapshot.tables().map(|(_, table)| table.id().to_string()).collect();
        let removed = self.store.remove_of(|key| match &key.content {
            Content::Own { id, .. } => !own.contains(id),
            Content::Files { .. } => !self.parts.main.table_exist(&key.name.table),
        });
        if removed > 0 {
            tracing::debug!(removed, "joins of tables that were dropped are forgotten");
        }
    }

    /// Takes over what an earlier process has seen. A history that cannot be read is begun anew.
    pub(super) fn restore_history(&self) {
        let Some(path) = self.history_file() else { return };
        let Ok(text) = std::fs::read_to_string(&path) else { return };
        if let Err(error) = self.history.restore(&text) {
            tracing::warn!(path = %path.display(), %error, "the history of joins cannot be read and begins anew");
        }
    }

    /// Writes the history if it is another one than `saved`.
    pub(super) fn save_history(&self, saved: &mut String) {
        let (Some(path), Ok(text)) = (self.history_file(), self.history.to_text()) else { return };
        if text == *saved {
            return;
        }
        let begun = path.with_extension("begun");
        match std::fs::write(&begun, &text).and_then(|()| std::fs::rename(&begun, &path)) {
            Ok(()) => *saved = text,
            Err(error) => {
                tracing::debug!(path = %path.display(), %error, "the history of joins is not saved")
            }
        }
    }

    fn history_file(&self) -> Option<PathBuf> {
        self.store.folder().map(|folder| folder.join(HISTORY_FILE))
    }
}
