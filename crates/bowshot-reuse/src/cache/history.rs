//! Templates of requested joins, in which the tables of a sequence are one, with what is needed to compute the next join of each in advance.

use crate::cache::prediction;
use crate::cache::sequence::Pattern;
use crate::cache::shape::{ColumnRef, JoinShape, TableName, Tree};
use crate::cache::slice::Slices;
use chrono::{DateTime, TimeDelta, Timelike, Utc};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Joins of one template whose tables are remembered.
const REMEMBERED: usize = 8;
/// Days in a row on which forecasts passed that nobody had asked for, after which no more are made until somebody asks for
/// one again.
const GIVEN_UP: u32 = 14;
/// Between two that count as days: an hourly sequence may rest over night, and many tables may come at once.
const PASSING_DAY: TimeDelta = TimeDelta::hours(20);
/// Bytes of a join of which it is not known how large it is.
const USUAL_BYTES: u64 = 1 << 20;
/// Halvings of the rank of a template whose forecasts nobody used, at most.
const MAX_UNUSED: u32 = 16;

/// What all joins of a template have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Key {
    /// Catalog, pattern of the schema's name and pattern of the name of each table.
    tables: Vec<[String; 3]>,
    tree: Tree,
    settings: String,
}

/// A join that was seen, and those like it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Template {
    key: Key,
    /// Tables of the last joins, the latest last; all of them differ.
    pub(crate) seen: Vec<Vec<TableName>>,
    /// Conditions on single tables that every query had.
    filters: BTreeSet<String>,
    /// Columns that any query used.
    pub(crate) columns: BTreeSet<ColumnRef>,
    /// How often it was seen.
    pub(crate) count: u64,
    /// How often in each hour of the day, UTC.
    pub(crate) hours: [u32; 24],
    pub(crate) first: SystemTime,
    pub(crate) last: SystemTime,
    /// What computing the last one took, in milliseconds.
    pub(crate) cost_ms: u64,
    /// Bytes of the last one that was computed.
    #[serde(default)]
    bytes: u64,
    /// How many forecasts in a row nobody used.
    pub(crate) unused: u32,
    /// On how many days in a row members of a sequence passed without a question.
    #[serde(default)]
    passed: u32,
    /// The last of these days.
    #[serde(default)]
    passed_at: Option<SystemTime>,
    /// Tables of joins that were read by queries which nobody had asked yet: of these, questions are answered with whole
    /// results and never come here.
    #[serde(default)]
    ahead: Vec<Vec<TableName>>,
    /// What does not fit the cache. Tried again after a start: the budget may be another one.
    #[serde(skip)]
    slices: Slices,
}

/// What is to be computed: a join by the names of its tables.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Order {
    pub(crate) tables: Vec<TableName>,
    pub(crate) tree: Tree,
    pub(crate) settings: String,
    pub(crate) columns: Vec<ColumnRef>,
}

/// What one sighting told.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// How often the template was seen, or if its join is too large this slice of it, this time included; 0 for what does
    /// not fit.
    pub(crate) count: u64,
    /// How many forecasts in a row nobody used.
    pub(crate) unused: u32,
    /// A join wide enough for all queries that were seen.
    pub(crate) order: Order,
}

/// All templates, up to a limit; the one that was seen least and longest ago leaves first.
#[derive(Debug)]
pub(crate) struct History {
    templates: Mutex<HashMap<Key, Template>>,
    limit: usize,
}

impl History {
    /// An empty history of so many templates at most.
    pub(crate) fn new(limit: usize) -> Self {
        Self { templates: Mutex::default(), limit: limit.max(1) }
    }

    /// Notes a join and the columns that its query uses.
    pub(crate) fn see(&self, shape: &JoinShape, columns: &BTreeSet<ColumnRef>, now: DateTime<Utc>) -> Seen {
        let key = Key::of(shape);
        let tables = shape.names();
        let mut templates = self.lock();
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

    /// The joins that `appeared` continues, with the rank of each: the time that it is likely to save for each byte, more at
    /// hours at which it was seen; each forecast that nobody used halves it.
    pub(crate) fn continued_by(
        &self,
        appeared: &TableName,
        least: u64,
        now: DateTime<Utc>,
    ) -> Vec<(f64, Order)> {
        let templates = self.lock();
        let often =
            templates.values().filter(|template| template.count >= least && template.passed < GIVEN_UP);
        let next = often.filter_map(|template| {
            let tables = prediction::next(&template.seen, appeared)?;
            Some((template.rank(now), template.order(tables, &template.filters)))
        });
        next.collect()
    }

    /// The join seen last of each template, with its rank; of those that are too large the slice that was seen last.
    pub(crate) fn latest(&self, least: u64, now: DateTime<Utc>) -> Vec<(f64, Order)> {
        let templates = self.lock();
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
        let templates = self.lock();
        let often = templates.values().filter(|template| template.count >= least);
        let next = often.filter_map(|template| {
            let tables = template.seen.last()?;
            let filters = template.slices.next(tables)?;
            Some((template.rank(now), template.order(tables.clone(), &filters)))
        });
        next.collect()
    }

    /// How many joins of an order's template were computed in a row that nobody used.
    pub(crate) fn unused(&self, order: &Order) -> u32 {
        self.lock().get(&Key::of_names(&order.tables, &order.tree, &order.settings)).map_or(0, |it| it.unused)
    }

    /// Notes what computing a join took, and how large it is.
    pub(crate) fn computed(&self, shape: &JoinShape, cost_ms: u64, bytes: u64) {
        if let Some(template) = self.lock().get_mut(&Key::of(shape)) {
            (template.cost_ms, template.bytes) = (cost_ms, bytes);
        }
    }

    /// Notes that a join does not fit the cache. True if that was not known, and no slice of it is meant: from now on slices
    /// are cached.
    pub(crate) fn too_large(&self, shape: &JoinShape) -> bool {
        let filters = shape.tree.filters();
        self.lock().get_mut(&Key::of(shape)).is_some_and(|template| {
            template.slices.note_too_large(&shape.names(), &filters) && template.filters == filters
        })
    }

    /// Whether a join that was ordered is known not to fit the cache.
    pub(crate) fn does_not_fit(&self, order: &Order) -> bool {
        let key = Key::of_names(&order.tables, &order.tree, &order.settings);
        let filters = order.tree.filters();
        self.lock().get(&key).is_some_and(|it| it.slices.is_too_large(&order.tables, &filters))
    }

    /// What is known of a join: how often it was asked for, and whether it does not fit the cache.
    pub(crate) fn known(&self, shape: &JoinShape) -> (u64, bool) {
        let (tables, filters) = (shape.names(), shape.tree.filters());
        self.lock().get(&Key::of(shape)).map_or((0, false), |template| {
            let (count, wanted) = template.wanted(&tables, &filters);
            (count, template.slices.is_too_large(&tables, wanted))
        })
    }

    /// Whether two joins are of one template.
    pub(crate) fn is_alike(&self, one: &Order, other: &Order) -> bool {
        let key = |order: &Order| Key::of_names(&order.tables, &order.tree, &order.settings);
        key(one) == key(other)
    }

    /// Notes that the next join of a sequence takes the place of this one, which was computed ahead: it was of no use if
    /// nobody has asked for it.
    pub(crate) fn passed(&self, order: &Order, now: DateTime<Utc>) {
        let key = Key::of_names(&order.tables, &order.tree, &order.settings);
        if let Some(template) = self.lock().get_mut(&key)
            && !template.seen.contains(&order.tables)
            && !template.ahead.contains(&order.tables)
            && template.passed_at.is_none_or(|last| now - DateTime::<Utc>::from(last) >= PASSING_DAY)
        {
            template.passed_at = Some(now.into());
            template.unused = (template.unused + 1).min(MAX_UNUSED);
            template.passed = template.passed.saturating_add(1);
        }
    }

    /// Notes that a join was read by a query that nobody had asked yet: whether it was of use, the use of that one's result
    /// would tell.
    pub(crate) fn read_ahead(&self, shape: &JoinShape) {
        if let Some(template) = self.lock().get_mut(&Key::of(shape)) {
            template.note_ahead(shape);
        }
    }

    /// Forgets the template of a join.
    pub(crate) fn forget(&self, shape: &JoinShape) {
        self.lock().remove(&Key::of(shape));
    }

    /// Notes whether a join that was computed was used.
    pub(crate) fn used(&self, shape: &JoinShape, used: bool) {
        if let Some(template) = self.lock().get_mut(&Key::of(shape)) {
            if used {
                // A query with more conditions on two tables is of another template, and uses this one's join all the same.
                template.note_ahead(shape);
                (template.unused, template.passed) = (0, 0);
            } else {
                template.unused = (template.unused + 1).min(MAX_UNUSED);
            }
        }
    }

    pub(crate) fn templates(&self) -> Vec<Template> {
        self.lock().values().cloned().collect()
    }

    /// The templates as text, for the next start.
    pub(crate) fn to_text(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&self.templates())
    }

    /// Takes over what [`Self::to_text`] gave, as far as its settings are known: an earlier build may have written other ones.
    pub(crate) fn restore(
        &self,
        text: &str,
        is_known: impl Fn(&str) -> bool,
    ) -> Result<(), serde_json::Error> {
        let known: Vec<Template> = serde_json::from_str(text)?;
        let known = known.into_iter().filter(|template| is_known(&template.key.settings)).take(self.limit);
        let known = known.map(Template::with_key_of_names).map(|template| (template.key.clone(), template));
        self.lock().extend(known);
        Ok(())
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Template>> {
        self.templates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Order {
    /// Whether it is an order of this join, whatever filters it has.
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

    fn of_names<'a>(names: impl IntoIterator<Item = &'a TableName>, tree: &Tree, settings: &str) -> Self {
        let tables = names.into_iter().map(|name| {
            let schema = Pattern::of_schema(&name.schema).text;
            [name.catalog.clone(), schema, Pattern::of(&name.table).text]
        });
        Self { tables: tables.collect(), tree: tree.without_filters(), settings: settings.to_owned() }
    }
}

impl Template {
    /// The names of its tables with placeholders where they count.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = &str> {
        self.key.tables.iter().map(|[_, _, pattern]| pattern.as_str())
    }

    /// What is joined.
    pub(crate) fn tree(&self) -> &Tree {
        &self.key.tree
    }

    /// The same with the key that its names have now: another program may have taken them apart in another way, and what is
    /// seen next would not be found to be alike. Names of before that are not like the latest ones are forgotten.
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
        // A condition that is left out has to be applied by the queries that still have it.
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
            // An earlier day that is asked for again is not the latest.
            prediction::sort(&mut self.seen);
            if self.seen.len() > REMEMBERED {
                self.seen.remove(0);
            }
        }
    }

    /// Notes that a join of these tables was of use, whoever read it.
    fn note_ahead(&mut self, shape: &JoinShape) {
        let tables = shape.names();
        if !self.ahead.contains(&tables) {
            if self.ahead.len() >= REMEMBERED {
                self.ahead.remove(0);
            }
            self.ahead.push(tables);
        }
    }

    /// The filters of what is worth caching for a query with these, and how often it was asked for.
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
