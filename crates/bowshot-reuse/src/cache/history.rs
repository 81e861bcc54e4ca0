//! Templates of requested joins, in which the tables of a sequence are one, with what is needed to compute the next join of each in advance.

use crate::cache::prediction;
use crate::cache::sequence::Pattern;
use crate::cache::shape::{ColumnRef, JoinShape, TableName, Tree};
use crate::cache::slice::Slices;
use chrono::{DateTime, TimeDelta, Timelike, Utc};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::time::SystemTime;

/// Joins of one template that are stored.
const REMEMBERED: usize = 8;
/// Days in a row with unused predictions after which no more are made until the next request for
/// one.
const GIVEN_UP: u32 = 14;
/// Least time between two such days: an hourly sequence may pause at night, and many tables may come at once.
const PASSING_DAY: TimeDelta = TimeDelta::hours(20);
/// Assumed bytes of a join of unknown size.
const USUAL_BYTES: u64 = 1 << 20;
/// Most halvings of the rank of a template with unused predictions.
const MAX_UNUSED: u32 = 16;

/// What all joins of a template have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Key {
    /// Catalog, pattern of the schema's name and pattern of the name of each table.
    tables: Vec<[String; 3]>,
    tree: Tree,
    settings: String,
}

/// Requested joins of one kind.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Template {
    key: Key,
    /// Tables of the last different joins, the latest last.
    pub(crate) seen: Vec<Vec<TableName>>,
    /// Conditions on single tables that every query had.
    filters: BTreeSet<String>,
    /// Columns that any query used.
    pub(crate) columns: BTreeSet<ColumnRef>,
    pub(crate) count: u64,
    /// Requests in each hour of the day, UTC.
    pub(crate) hours: [u32; 24],
    pub(crate) first: SystemTime,
    pub(crate) last: SystemTime,
    /// Milliseconds to compute the last one.
    pub(crate) cost_ms: u64,
    #[serde(default)]
    bytes: u64,
    /// Unused predictions in a row.
    pub(crate) unused: u32,
    /// Days in a row on which members of a sequence passed without a request.
    #[serde(default)]
    passed: u32,
    /// The last of these days.
    #[serde(default)]
    passed_at: Option<SystemTime>,
    /// Tables of joins that were read by precomputed queries: later queries use their results and do not
    /// read the join.
    #[serde(default)]
    ahead: Vec<Vec<TableName>>,
    /// Joins that do not fit the cache. Forgotten at a restart, which may change the budget.
    #[serde(skip)]
    slices: Slices,
}

/// A join to compute, by the names of its tables.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Order {
    pub(crate) tables: Vec<TableName>,
    pub(crate) tree: Tree,
    pub(crate) settings: String,
    pub(crate) columns: Vec<ColumnRef>,
}

/// The result of recording a request.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// Requests of the template, or of this slice if its join is too large, including this one; 0 if it does
    /// not fit.
    pub(crate) count: u64,
    /// Unused predictions in a row.
    pub(crate) unused: u32,
    /// A join that answers all recorded queries.
    pub(crate) order: Order,
}

/// All templates, up to a limit; the one with the fewest and oldest requests is removed first.
#[derive(Debug)]
pub(crate) struct History {
    templates: Mutex<HashMap<Key, Template>>,
    limit: usize,
}

impl History {
    pub(crate) fn new(limit: usize) -> Self {
        Self { templates: Mutex::default(), limit: limit.max(1) }
    }

    /// Records a join and the columns that its query uses.
    pub(crate) fn see(&self, shape: &JoinShape, columns: &BTreeSet<ColumnRef>, now: DateTime<Utc>) -> Seen {
        let key = Key::of(shape);
        let tables = shape.names();
        let mut templates = self.templates.lock();
        if !templates.contains_key(&key) && templates.len() >= self.limit {
            let least = templates.iter().min_by_key(|(_, template)| (template.count.min(2), template.last));
            let least = least.map(|(key, _)| key.clone());
            least.and_then(|key| templates.remove(&key));
        }
        let template = templates.entry(key.clone()).or_insert_with(|| Template {
            key,
            seen: Vec::new(),
            filters: shape.tree.filters(),
            columns: BTreeSet::new(),
            count: 0,
            hours: [0; 24],
            first: now.into(),
            last: now.into(),
            cost_ms: 0,
            bytes: 0,
            unused: 0,
            passed: 0,
            passed_at: None,
            ahead: Vec::new(),
            slices: Slices::default(),
        });
        let filters = shape.tree.filters();
        template.note(tables.clone(), columns, &filters, now);
        let (count, filters) = template.wanted(&tables, &filters);
        Seen { count, unused: template.unused, order: template.order(tables, filters) }
    }

    /// The joins that `appeared` continues, with their rank: the time that each is likely to save for each byte, more at
    /// hours of earlier requests; each unused prediction halves it.
    pub(crate) fn continued_by(
        &self,
        appeared: &TableName,
        least: u64,
        now: DateTime<Utc>,
    ) -> Vec<(f64, Order)> {
        let templates = self.templates.lock();
        let often =
            templates.values().filter(|template| template.count >= least && template.passed < GIVEN_UP);
        let next = often.filter_map(|template| {
            let tables = prediction::next(&template.seen, appeared)?;
            Some((template.rank(now), template.order(tables, &template.filters)))
        });
        next.collect()
    }

    /// The last join of each template with its rank, or the last slice of those that are too large.
    pub(crate) fn latest(&self, least: u64, now: DateTime<Utc>) -> Vec<(f64, Order)> {
        let templates = self.templates.lock();
        let latest = templates.values().filter_map(|template| {
            let tables = template.seen.last()?;
            let (filters, count) = match template.slices.is_too_large(tables, &template.filters) {
                true => template.slices.last(tables)?,
                false => (&template.filters, template.count),
            };
            (count >= least).then(|| (template.rank(now), template.order(tables.clone(), filters)))
        });
        latest.collect()
    }

    /// The slices that continue the last two of each template that is too large, with their ranks.
    pub(crate) fn next_slices(&self, least: u64, now: DateTime<Utc>) -> Vec<(f64, Order)> {
        let templates = self.templates.lock();
        let often = templates.values().filter(|template| template.count >= least);
        let next = often.filter_map(|template| {
            let tables = template.seen.last()?;
            let filters = template.slices.next(tables)?;
            Some((template.rank(now), template.order(tables.clone(), &filters)))
        });
        next.collect()
    }

    /// Unused joins of a template in a row.
    pub(crate) fn unused(&self, order: &Order) -> u32 {
        let key = Key::of_order(order);
        self.templates.lock().get(&key).map_or(0, |it| it.unused)
    }

    /// Records the time and size of a computed join.
    pub(crate) fn computed(&self, shape: &JoinShape, cost_ms: u64, bytes: u64) {
        if let Some(template) = self.templates.lock().get_mut(&Key::of(shape)) {
            (template.cost_ms, template.bytes) = (cost_ms, bytes);
        }
    }

    /// Records that a join does not fit the cache. True if that is new, and it is not a slice: from now on slices
    /// are cached.
    pub(crate) fn too_large(&self, shape: &JoinShape) -> bool {
        let filters = shape.tree.filters();
        self.templates.lock().get_mut(&Key::of(shape)).is_some_and(|template| {
            template.slices.note_too_large(&shape.names(), &filters) && template.filters == filters
        })
    }

    /// Whether a join is known not to fit the cache.
    pub(crate) fn does_not_fit(&self, order: &Order) -> bool {
        let key = Key::of_order(order);
        let filters = order.tree.filters();
        self.templates.lock().get(&key).is_some_and(|it| it.slices.is_too_large(&order.tables, &filters))
    }

    /// Number of requests of a join, and whether it does not fit the cache.
    pub(crate) fn known(&self, shape: &JoinShape) -> (u64, bool) {
        let (tables, filters) = (shape.names(), shape.tree.filters());
        self.templates.lock().get(&Key::of(shape)).map_or((0, false), |template| {
            let (count, wanted) = template.wanted(&tables, &filters);
            (count, template.slices.is_too_large(&tables, wanted))
        })
    }

    /// Whether two joins are of one template.
    pub(crate) fn is_alike(&self, one: &Order, other: &Order) -> bool {
        Key::of_order(one) == Key::of_order(other)
    }

    /// Records that the next join of a sequence replaces this one, which was computed in advance: it was useless if
    /// it was not requested.
    pub(crate) fn passed(&self, order: &Order, now: DateTime<Utc>) {
        let key = Key::of_order(order);
        if let Some(template) = self.templates.lock().get_mut(&key)
            && !template.seen.contains(&order.tables)
            && !template.ahead.contains(&order.tables)
            && template.passed_at.is_none_or(|last| now - DateTime::<Utc>::from(last) >= PASSING_DAY)
        {
            template.passed_at = Some(now.into());
            template.unused = (template.unused + 1).min(MAX_UNUSED);
            template.passed = template.passed.saturating_add(1);
        }
    }

    /// Records that a precomputed query read a join: whether it was useful depends on the use of that query's result.
    pub(crate) fn read_ahead(&self, shape: &JoinShape) {
        if let Some(template) = self.templates.lock().get_mut(&Key::of(shape)) {
            template.note_ahead(shape);
        }
    }

    pub(crate) fn forget(&self, shape: &JoinShape) {
        self.templates.lock().remove(&Key::of(shape));
    }

    /// Records whether a computed join was used.
    pub(crate) fn used(&self, shape: &JoinShape, used: bool) {
        if let Some(template) = self.templates.lock().get_mut(&Key::of(shape)) {
            if used {
                // A query with more conditions on two tables has another template, but uses this join.
                template.note_ahead(shape);
                (template.unused, template.passed) = (0, 0);
            } else {
                template.unused = (template.unused + 1).min(MAX_UNUSED);
            }
        }
    }

    pub(crate) fn templates(&self) -> Vec<Template> {
        self.templates.lock().values().cloned().collect()
    }

    pub(crate) fn to_text(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&self.templates())
    }

    /// Restores the templates with known settings: an earlier build may have written others.
    pub(crate) fn restore(
        &self,
        text: &str,
        is_known: impl Fn(&str) -> bool,
    ) -> Result<(), serde_json::Error> {
        let known: Vec<Template> = serde_json::from_str(text)?;
        let known = known.into_iter().filter(|template| is_known(&template.key.settings)).take(self.limit);
        let known = known.map(Template::with_key_of_names).map(|template| (template.key.clone(), template));
        self.templates.lock().extend(known);
        Ok(())
    }

    pub(crate) fn clear(&self) {
        self.templates.lock().clear();
    }
}

impl Order {
    /// Whether it is the same join, whatever columns of it are wanted.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.tables == other.tables && self.tree == other.tree && self.settings == other.settings
    }

    /// Whether it is this join, with any filters.
    pub(crate) fn is_of(&self, shape: &JoinShape) -> bool {
        self.tables.iter().eq(shape.tables.iter().map(|table| &table.name))
            && self.settings == shape.settings
            && self.tree.without_filters() == shape.tree.without_filters()
    }
}

impl Key {
    fn of(shape: &JoinShape) -> Self {
        Self::of_names(shape.tables.iter().map(|table| &table.name), &shape.tree, &shape.settings)
    }

    fn of_order(order: &Order) -> Self {
        Self::of_names(&order.tables, &order.tree, &order.settings)
    }

    fn of_names<'a>(names: impl IntoIterator<Item = &'a TableName>, tree: &Tree, settings: &str) -> Self {
        let tables = names.into_iter().map(|name| {
            let schema = Pattern::of_schema(&name.schema).text;
            [name.catalog.clone(), schema, Pattern::of(&name.table).text]
        });
        Self { tables: tables.collect(), tree: tree.without_filters(), settings: settings.to_owned() }
    }
}

impl Template {
    /// The names of its tables with placeholders.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = &str> {
        self.key.tables.iter().map(|[_, _, pattern]| pattern.as_str())
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.key.tree
    }

    /// Recomputes the key from the names, since another build may have split them in another way and later requests would not match.
    /// Earlier names that do not match the latest ones are dropped.
    fn with_key_of_names(mut self) -> Self {
        if let Some(latest) = self.seen.last() {
            let key = Key::of_names(latest, &self.key.tree, &self.key.settings);
            self.seen.retain(|tables| Key::of_names(tables, &key.tree, &key.settings) == key);
            self.key = key;
        }
        self
    }

    fn note(
        &mut self,
        tables: Vec<TableName>,
        columns: &BTreeSet<ColumnRef>,
        filters: &BTreeSet<String>,
        now: DateTime<Utc>,
    ) {
        self.count += 1;
        self.passed = 0;
        self.last = now.into();
        if let Some(hour) = self.hours.get_mut(now.hour() as usize) {
            *hour += 1;
        }
        self.columns.extend(columns.iter().cloned());
        let gone: Vec<String> = self.filters.difference(filters).cloned().collect();
        // Queries apply conditions that are left out themselves.
        let left_out = gone.iter().chain(filters.difference(&self.filters));
        let needed: Vec<ColumnRef> =
            left_out.flat_map(|text| crate::cache::shape::columns_in(text)).collect();
        self.columns.extend(needed);
        gone.iter().for_each(|filter| {
            self.filters.remove(filter);
        });
        if self.filters != *filters && self.slices.is_too_large(&tables, &self.filters) {
            self.slices.note(&tables, filters);
        }
        if self.seen.last() != Some(&tables) {
            self.seen.retain(|other| *other != tables);
            self.seen.push(tables);
            // A repeated request for an earlier day is not the latest.
            prediction::sort(&mut self.seen);
            if self.seen.len() > REMEMBERED {
                self.seen.remove(0);
            }
        }
    }

    /// Records that a join of these tables was used.
    fn note_ahead(&mut self, shape: &JoinShape) {
        let tables = shape.names();
        if !self.ahead.contains(&tables) {
            if self.ahead.len() >= REMEMBERED {
                self.ahead.remove(0);
            }
            self.ahead.push(tables);
        }
    }

    /// The filters of the join or slice worth caching, and its number of requests.
    fn wanted<'a>(
        &'a self,
        tables: &[TableName],
        filters: &'a BTreeSet<String>,
    ) -> (u64, &'a BTreeSet<String>) {
        if self.slices.is_too_large(tables, &self.filters) {
            return (self.slices.count(tables, filters), filters);
        }
        (self.count, &self.filters)
    }

    fn order(&self, tables: Vec<TableName>, filters: &BTreeSet<String>) -> Order {
        let mut tree = self.key.tree.clone();
        tree.conditions.extend(filters.iter().cloned());
        tree.conditions.sort();
        let columns = self.columns.iter().cloned().collect();
        Order { tables, tree, settings: self.key.settings.clone(), columns }
    }

    fn rank(&self, now: DateTime<Utc>) -> f64 {
        let hour = now.hour() as usize;
        let here = [hour, (hour + 1) % 24].iter().filter_map(|hour| self.hours.get(*hour)).sum::<u32>();
        let uses = self.count as f64 + f64::from(here);
        let bytes = if self.bytes == 0 { USUAL_BYTES } else { self.bytes };
        let saved = uses * (self.cost_ms.max(1) as f64) / (bytes as f64 / USUAL_BYTES as f64);
        saved / f64::from(1_u32 << self.unused.min(MAX_UNUSED))
    }
}

#[cfg(test)]
mod tests;
