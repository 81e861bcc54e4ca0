//! Which joins were asked for: templates in which the tables of a sequence are one, with what is needed to compute the
//! next join of each ahead.

use crate::forecast;
use crate::sequence::Pattern;
use crate::shape::{ColumnRef, JoinShape, TableName, Tree};
use chrono::{DateTime, Timelike, Utc};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Joins of one template whose tables are remembered.
const REMEMBERED: usize = 8;
/// Halvings of the rank of a template whose forecasts nobody used, at most.
const MAX_UNUSED: u32 = 16;

/// What all joins of a template have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Key {
    /// Catalog, schema and pattern of the name of each table.
    tables: Vec<[String; 3]>,
    tree: Tree,
    settings: String,
}

/// A join that was seen, and those like it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Template {
    key: Key,
    /// Tables of the last joins, the latest last; all of them differ.
    pub seen: Vec<Vec<TableName>>,
    /// Conditions on single tables that every query had.
    filters: BTreeSet<String>,
    /// Columns that any query used.
    pub columns: BTreeSet<ColumnRef>,
    /// How often it was seen.
    pub count: u64,
    /// How often in each hour of the day, UTC.
    pub hours: [u32; 24],
    pub first: SystemTime,
    pub last: SystemTime,
    /// What computing the last one took, in milliseconds.
    pub cost_ms: u64,
    /// How many forecasts in a row nobody used.
    pub unused: u32,
}

/// What is to be computed: a join by the names of its tables.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Order {
    pub tables: Vec<TableName>,
    pub tree: Tree,
    pub settings: String,
    pub columns: Vec<ColumnRef>,
}

/// What one sighting told.
#[derive(Debug, Clone)]
pub struct Seen {
    /// How often the template was seen, this time included.
    pub count: u64,
    /// How many forecasts in a row nobody used.
    pub unused: u32,
    /// A join wide enough for all queries that were seen.
    pub order: Order,
}

/// All templates, up to a limit; the one that was seen least and longest ago leaves first.
#[derive(Debug)]
pub struct History {
    templates: Mutex<HashMap<Key, Template>>,
    limit: usize,
}

impl History {
    /// An empty history of so many templates at most.
    pub fn new(limit: usize) -> Self {
        Self { templates: Mutex::default(), limit: limit.max(1) }
    }

    /// Notes a join and the columns that its query uses.
    pub fn see(&self, shape: &JoinShape, columns: &BTreeSet<ColumnRef>, now: DateTime<Utc>) -> Seen {
        let key = Key::of(shape);
        let tables: Vec<TableName> = shape.tables.iter().map(|table| table.name.clone()).collect();
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
            unused: 0,
        });
        template.note(tables.clone(), columns, &shape.tree, now);
        let (count, unused) = (template.count, template.unused);
        Seen { count, unused, order: template.order(tables) }
    }

    /// The joins that `appeared` continues, with the rank of each: the more often it is seen, the more so at this hour,
    /// the higher; each forecast that nobody used halves it.
    pub fn continued_by(&self, appeared: &TableName, least: u64, now: DateTime<Utc>) -> Vec<(f64, Order)> {
        let templates = self.lock();
        let often = templates.values().filter(|template| template.count >= least);
        let next = often.filter_map(|template| {
            let tables = forecast::next(&template.seen, appeared)?;
            Some((template.rank(now), template.order(tables)))
        });
        next.collect()
    }

    /// The join seen last of each template, with its rank.
    pub fn latest(&self, least: u64, now: DateTime<Utc>) -> Vec<(f64, Order)> {
        let templates = self.lock();
        let often = templates.values().filter(|template| template.count >= least);
        let latest = often.filter_map(|template| {
            let tables = template.seen.last()?;
            Some((template.rank(now), template.order(tables.clone())))
        });
        latest.collect()
    }

    /// How many joins of an order's template were computed in a row that nobody used.
    pub fn unused(&self, order: &Order) -> u32 {
        self.lock().get(&Key::of_names(&order.tables, &order.tree, &order.settings)).map_or(0, |it| it.unused)
    }

    /// Notes what computing a join took.
    pub fn computed(&self, shape: &JoinShape, cost_ms: u64) {
        if let Some(template) = self.lock().get_mut(&Key::of(shape)) {
            template.cost_ms = cost_ms;
        }
    }

    /// Notes whether a join that was computed was used.
    pub fn used(&self, shape: &JoinShape, used: bool) {
        if let Some(template) = self.lock().get_mut(&Key::of(shape)) {
            template.unused = if used { 0 } else { (template.unused + 1).min(MAX_UNUSED) };
        }
    }

    /// All templates.
    pub fn templates(&self) -> Vec<Template> {
        self.lock().values().cloned().collect()
    }

    /// The templates as text, for the next start.
    ///
    /// # Errors
    /// None that a template of ours can have.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&self.templates())
    }

    /// Takes over what [`Self::to_text`] gave.
    ///
    /// # Errors
    /// When the text is none of ours; the history stays as it is.
    pub fn restore(&self, text: &str) -> Result<(), serde_json::Error> {
        let known: Vec<Template> = serde_json::from_str(text)?;
        let known = known.into_iter().take(self.limit).map(|template| (template.key.clone(), template));
        self.lock().extend(known);
        Ok(())
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Template>> {
        self.templates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Key {
    fn of(shape: &JoinShape) -> Self {
        Self::of_names(shape.tables.iter().map(|table| &table.name), &shape.tree, &shape.settings)
    }

    fn of_names<'a>(names: impl IntoIterator<Item = &'a TableName>, tree: &Tree, settings: &str) -> Self {
        let tables = names
            .into_iter()
            .map(|name| [name.catalog.clone(), name.schema.clone(), Pattern::of(&name.table).text]);
        Self { tables: tables.collect(), tree: tree.without_filters(), settings: settings.to_owned() }
    }
}

impl Template {
    /// The names of its tables with placeholders where they count.
    pub fn patterns(&self) -> impl Iterator<Item = &str> {
        self.key.tables.iter().map(|[_, _, pattern]| pattern.as_str())
    }

    /// What is joined.
    pub fn tree(&self) -> &Tree {
        &self.key.tree
    }

    fn note(
        &mut self,
        tables: Vec<TableName>,
        columns: &BTreeSet<ColumnRef>,
        tree: &Tree,
        now: DateTime<Utc>,
    ) {
        self.count += 1;
        self.last = now.into();
        if let Some(hour) = self.hours.get_mut(now.hour() as usize) {
            *hour += 1;
        }
        self.columns.extend(columns.iter().cloned());
        let filters = tree.filters();
        let gone: Vec<String> = self.filters.difference(&filters).cloned().collect();
        // A condition that is left out has to be applied by the queries that still have it.
        let left_out = gone.iter().chain(filters.difference(&self.filters));
        let needed: Vec<ColumnRef> = left_out.flat_map(|text| crate::shape::columns_in(text)).collect();
        self.columns.extend(needed);
        gone.iter().for_each(|filter| {
            self.filters.remove(filter);
        });
        if self.seen.last() != Some(&tables) {
            self.seen.retain(|other| *other != tables);
            self.seen.push(tables);
            // An earlier day that is asked for again is not the latest.
            self.seen.sort_by_cached_key(|tables| {
                tables.iter().map(|name| Pattern::of(&name.table).values).collect::<Vec<_>>()
            });
            if self.seen.len() > REMEMBERED {
                self.seen.remove(0);
            }
        }
    }

    fn order(&self, tables: Vec<TableName>) -> Order {
        let mut tree = self.key.tree.clone();
        tree.conditions.extend(self.filters.iter().cloned());
        tree.conditions.sort();
        let columns = self.columns.iter().cloned().collect();
        Order { tables, tree, settings: self.key.settings.clone(), columns }
    }

    fn rank(&self, now: DateTime<Utc>) -> f64 {
        let hour = now.hour() as usize;
        let here = [hour, (hour + 1) % 24].iter().filter_map(|hour| self.hours.get(*hour)).sum::<u32>();
        let uses = self.count as f64 + f64::from(here);
        uses * (self.cost_ms.max(1) as f64) / f64::from(1_u32 << self.unused.min(MAX_UNUSED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::{Content, Member, TableKey};

    const JOIN: &str = "(bin \"=\" #0:\"k\" #1:\"k\")";

    fn day(day: u32, filter: Option<&str>) -> JoinShape {
        let key = |table: &str| TableKey {
            name: TableName {
                catalog: "bowshot".into(),
                schema: "main".into(),
                table: format!("{table}202108{day:02}"),
            },
            content: Content::Files { version: String::new(), columns: 0 },
        };
        let conditions = [JOIN].into_iter().chain(filter).map(str::to_owned).collect();
        let tree = Tree { members: vec![Member::Table(0), Member::Table(1)], conditions };
        JoinShape::new(vec![key("sales"), key("stores")], &tree, String::new()).0
    }

    fn column(table: usize, column: &str) -> ColumnRef {
        ColumnRef { table, column: column.into() }
    }

    #[test]
    fn the_joins_of_two_days_are_one_template_that_the_third_day_continues() {
        let (history, now) = (History::new(10), DateTime::<Utc>::default());
        let filter = "(bin \"<\" #0:\"x\" (lit \"Int64\" \"5\"))";
        assert_eq!(history.see(&day(3, Some(filter)), &[column(0, "a")].into(), now).count, 1);
        let seen = history.see(&day(4, None), &[column(1, "b")].into(), now);
        assert_eq!(seen.count, 2);
        assert_eq!(seen.order.tree.conditions, [JOIN], "only one of the queries had the filter");
        assert_eq!(seen.order.columns, [column(0, "a"), column(0, "x"), column(1, "b")]);
        let appeared = &day(5, None).tables[0].name;
        let next = history.continued_by(appeared, 2, now);
        let tables: Vec<_> = next[0].1.tables.iter().map(|name| name.table.as_str()).collect();
        assert_eq!(tables, ["sales20210805", "stores20210805"]);
        assert!(history.continued_by(appeared, 3, now).is_empty(), "not seen often enough");
    }

    #[test]
    fn it_survives_as_text_and_forgets_the_least() {
        let (history, now) = (History::new(10), DateTime::<Utc>::default());
        history.see(&day(3, None), &BTreeSet::new(), now);
        let again = History::new(10);
        again.restore(&history.to_text().expect("text")).expect("restored");
        assert_eq!(again.templates().len(), 1);
        assert!(again.restore("no history").is_err());
        let small = History::new(1);
        small.see(&day(3, None), &BTreeSet::new(), now);
        let mut other = day(3, None);
        other.settings = "other".into();
        small.see(&other, &BTreeSet::new(), now);
        assert_eq!(small.templates().len(), 1);
    }

    #[test]
    fn forecasts_that_nobody_uses_lose_rank() {
        let (history, now) = (History::new(10), DateTime::<Utc>::default());
        history.see(&day(3, None), &BTreeSet::new(), now);
        let rank = || history.latest(1, now)[0].0;
        let before = rank();
        history.used(&day(3, None), false);
        assert!(rank() < before);
        history.used(&day(3, None), true);
        assert!((rank() - before).abs() < f64::EPSILON);
    }
}
