//! Checks every second which joins should be cached: those that new tables continue, and those whose tables have changed. Also writes joins
//! to disk.

use super::JoinCache;
use super::queue::Job;
use crate::cache::{Content, JoinShape, Order, Pattern, TableKey, TableName};
use crate::keys;
use bowshot_api::catalog_names::{DEFAULT_CATALOG, DEFAULT_SCHEMA};
use chrono::Utc;
use futures::FutureExt;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often it looks.
const TICK: Duration = Duration::from_secs(1);
/// Until work goes on that panicked.
const AFTER_PANIC: Duration = Duration::from_secs(60);
/// How often things are written, in ticks.
const SAVE_TICKS: u32 = 10;
/// Joins that are watched; those of higher rank first.
const MAX_WATCHED: usize = 64;
/// Joins of a template that were predicted and wait for other tables, at most.
const MAX_WAITING: usize = 2;
/// A join is computed again after so many times what computing it takes, so that a table that changes all the time costs
/// a fraction of the processor.
const REST: u32 = 10;
/// Each forecast in a row that nobody used doubles the rest, so many times at most.
const MAX_DOUBLINGS: u32 = 8;
/// Computations that are remembered for that.
const MAX_REMEMBERED: usize = 1_024;

/// What upkeep remembers from one look to the next.
#[derive(Debug, Default)]
pub(super) struct Watch {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// All tables that there were.
    tables: HashSet<TableName>,
    predicted: Vec<Prediction>,
    /// Versions that tables of watched joins had.
    versions: HashMap<TableName, TableKey>,
    /// When a join was last computed, or tried to be, and how long it rests from then.
    ended: HashMap<Order, (Instant, Duration)>,
    /// How often all joins were to be forgotten: what was looked up before is not ordered.
    generation: u64,
}

/// A join that a new table continues.
#[derive(Debug, Clone)]
struct Prediction {
    rank: f64,
    order: Order,
    /// Whether it was there, or was tried to be computed.
    done: bool,
}

impl Watch {
    /// Notes that a join was computed, or could not be. It rests for a while, `least` at least.
    pub(super) fn ended(&self, order: &Order, took: Duration, least: Duration) {
        let mut state = self.state.lock();
        if state.ended.len() >= MAX_REMEMBERED {
            state.ended.retain(|_, (ended, rest)| ended.elapsed() < *rest);
        }
        let rest = took.saturating_mul(REST).max(least);
        state.ended.insert(order.clone(), (Instant::now(), rest));
        state.done(order);
    }

    /// Whether a join was computed so recently that it is not yet computed again; `unused` forecasts in a row make it
    /// wait longer.
    pub(super) fn rests(&self, order: &Order, unused: u32) -> bool {
        let state = self.state.lock();
        let Some((ended, rest)) = state.ended.get(order) else { return false };
        ended.elapsed() < rest.saturating_mul(1 << unused.min(MAX_DOUBLINGS))
    }

    /// A number that is another one after [`Self::clear`].
    fn generation(&self) -> u64 {
        self.state.lock().generation
    }

    pub(super) fn clear(&self) {
        let mut state = self.state.lock();
        state.predicted.clear();
        state.generation += 1;
    }

    pub(super) fn forget(&self, shape: &JoinShape) {
        self.state.lock().predicted.retain(|predicted| !predicted.order.is_of(shape));
    }

    /// The tables that there were at the last look; none before the first.
    pub(super) fn tables(&self) -> HashSet<TableName> {
        self.state.lock().tables.clone()
    }

    /// The joins that were predicted, those of higher rank first.
    pub(super) fn predicted(&self) -> Vec<(f64, Order)> {
        let mut predicted: Vec<_> =
            self.state.lock().predicted.iter().map(|it| (it.rank, it.order.clone())).collect();
        predicted.sort_by(|one, other| other.0.total_cmp(&one.0));
        predicted
    }
}

impl State {
    fn done(&mut self, order: &Order) {
        self.predicted
            .iter_mut()
            .filter(|predicted| predicted.order.is_like(order))
            .for_each(|predicted| predicted.done = true);
    }
}

/// Writes joins again that a disk had no room for, one at each turn, for as long as the cache is there.
pub(super) async fn write(cache: Arc<JoinCache>) {
    loop {
        tokio::time::sleep(TICK * SAVE_TICKS).await;
        outlive("writing joins that had no room on disk", cache.write_again()).await;
    }
}

/// Looks every second, for as long as the cache is there.
pub(super) async fn work(cache: Arc<JoinCache>) {
    for tick in 1_u32.. {
        tokio::time::sleep(TICK).await;
        outlive("a look at the joins that should be there", cache.look(tick)).await;
    }
}

/// Does one piece of work; a panic ends this piece and not all that come after it.
async fn outlive(what: &str, work: impl Future<Output = ()>) {
    if AssertUnwindSafe(work).catch_unwind().await.is_err() {
        tracing::error!("{what} panicked");
        tokio::time::sleep(AFTER_PANIC).await;
    }
}

impl JoinCache {
    async fn write_again(&self) {
        while let Some(join) = self.store.unwritten() {
            let _turn = self.throttle.turn().await;
            tokio::task::block_in_place(|| self.store.write(&join, &|| self.throttle.pass_blocking()));
        }
    }

    async fn look(self: &Arc<Self>, tick: u32) {
        self.learn();
        if self.config.forecast {
            self.predict(self.listed().await);
            self.refresh().await;
        }
        if tick.is_multiple_of(SAVE_TICKS) {
            self.forget_dropped();
            self.save_history();
        }
    }

    /// Adds the joins that tables continue that were not there before.
    fn predict(&self, now: HashSet<TableName>) {
        let mut appeared: Vec<TableName> = {
            let mut state = self.watch.state.lock();
            let appeared = now.difference(&state.tables).cloned().collect();
            state.tables = now;
            appeared
        };
        appeared
            .sort_by_cached_key(|name| (name.catalog.clone(), name.schema.clone(), Pattern::of(&name.table)));
        for table in appeared {
            let next = self.history.continued_by(&table, self.config.fill_after, Utc::now());
            let mut state = self.watch.state.lock();
            for (rank, order) in next {
                state.predicted.retain(|other| !other.order.is_like(&order));
                self.retire(&mut state, &order);
                state.predicted.push(Prediction { rank, order, done: false });
            }
            while state.predicted.len() > MAX_WATCHED {
                let ranks = state.predicted.iter().map(|predicted| predicted.rank).enumerate();
                let Some((least, _)) = ranks.min_by(|one, other| one.1.total_cmp(&other.1)) else { break };
                state.predicted.remove(least);
            }
        }
    }

    /// Ends the watch over forecasts of the same template that have had their time: all that were computed but the last.
    /// That one may be of today, and `new` of a table for tomorrow. They stay in the cache for as long as they are worth it.
    fn retire(&self, state: &mut State, new: &Order) {
        let alike = |it: &Prediction| self.history.is_alike(&it.order, new);
        // Those whose other tables never come make room too.
        let mut waiting: Vec<_> =
            state.predicted.iter().filter(|it| alike(it) && !it.done).map(|it| place(&it.order)).collect();
        waiting.sort();
        let given_up = waiting.len().checked_sub(MAX_WAITING).and_then(|at| waiting.into_iter().nth(at));
        for it in state.predicted.iter_mut().filter(|it| alike(it) && Some(place(&it.order)) < given_up) {
            it.done = true;
        }
        let had_its_time = |it: &Prediction| it.done && alike(it);
        let last = state.predicted.iter().filter(|it| had_its_time(it)).map(|it| place(&it.order)).max();
        for passed in state.predicted.extract_if(.., |it| had_its_time(it) && Some(place(&it.order)) < last) {
            self.history.passed(&passed.order, Utc::now());
        }
    }

    /// Has the joins computed that should be there and are not: those that were predicted, and the latest of each template,
    /// or if that is too large its slices.
    /// A table that still changes is left alone until the next look.
    async fn refresh(&self) {
        let generation = self.watch.generation();
        let mut wanted: Vec<(f64, Order, bool)> =
            self.watch.predicted().into_iter().map(|(rank, order)| (rank, order, true)).collect();
        let slices = self.history.next_slices(self.config.fill_after, Utc::now());
        wanted.extend(slices.into_iter().map(|(rank, order)| (rank, order, true)));
        let latest = self.history.latest(self.config.fill_after, Utc::now());
        wanted.extend(latest.into_iter().map(|(rank, order)| (rank, order, false)));
        wanted.sort_by(|one, other| other.0.total_cmp(&one.0));
        wanted.truncate(MAX_WATCHED);
        let mut versions = HashMap::new();
        for (rank, order, forecast) in wanted {
            if self.history.does_not_fit(&order) {
                self.watch.state.lock().done(&order);
                continue;
            }
            let unused = self.history.unused(&order);
            let Some(keys) = self.settled(&order, &mut versions).await else { continue };
            if self.is_there(&order, keys) {
                self.watch.state.lock().done(&order);
            } else if !self.watch.rests(&order, unused) && generation == self.watch.generation() {
                self.queue.push(Job { order, rank, forecast });
            }
        }
        self.watch.state.lock().versions = versions;
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
                None => keys::find(name, &self.sources).await?.key,
            };
            settled &= self.watch.state.lock().versions.get(name) == Some(&key);
            versions.insert(name.clone(), key.clone());
            found.push(key);
        }
        settled.then_some(found)
    }

    fn is_there(&self, order: &Order, keys: Vec<TableKey>) -> bool {
        let (shape, numbers) = JoinShape::new(keys, &order.tree, order.settings.clone());
        let columns = order.columns.iter().map(|column| crate::cache::ColumnRef {
            table: numbers.get(column.table).copied().unwrap_or(column.table),
            column: column.column.clone(),
        });
        self.store.find(&shape, &shape.tree.conditions, &columns.collect()).is_some()
    }

    /// The names of all tables that joins are cached of. Others wait for a listing that is under way: not for one of a
    /// thread that leaves the processor to them.
    pub(crate) async fn listed(self: &Arc<Self>) -> HashSet<TableName> {
        let listing = Arc::clone(self);
        // It ends with the threads of the engine only.
        self.queries.spawn_blocking(move || listing.table_names()).await.unwrap_or_default()
    }

    fn table_names(&self) -> HashSet<TableName> {
        let snapshot = self.sources.tables.snapshot();
        let own = snapshot.tables().map(|(name, _)| TableName {
            catalog: name.catalog,
            schema: name.schema,
            table: name.name,
        });
        let files = self.sources.main.table_names().into_iter().map(|table| TableName {
            catalog: DEFAULT_CATALOG.to_owned(),
            schema: DEFAULT_SCHEMA.to_owned(),
            table,
        });
        own.chain(files).collect()
    }

    /// Forgets the joins of tables that are no more, with their files.
    fn forget_dropped(&self) {
        let snapshot = self.sources.tables.snapshot();
        let own: HashSet<String> = snapshot.tables().map(|(_, table)| table.id().to_string()).collect();
        let removed = self.store.remove_of(|key| match &key.content {
            Content::Own { id, .. } => !own.contains(id),
            Content::Files { .. } => !self.sources.main.table_exist(&key.name.table),
        });
        if removed > 0 {
            tracing::debug!(removed, "joins of tables that were dropped are forgotten");
        }
    }
}

/// Where a join stands among those of its template.
fn place(order: &Order) -> Vec<Pattern> {
    order.tables.iter().map(|name| Pattern::of(&name.table)).collect()
}
