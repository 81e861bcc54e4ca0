//! Queries that are repeated with the next table of a sequence: `… FROM sales20210804` today, `… FROM sales20210805` tomorrow. Their texts are
//! split into a template and names of tables.

use super::key::ResultKey;
use super::store::AskedQuery;
use crate::cache::{Pattern, TableName};
use bowshot_api::{Layout, Principal};
use bowshot_engine::internals::{SearchPath, dialect};
use bowshot_engine::reuse::Asked;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

/// Templates that are remembered; the one that was not asked for longest leaves.
const MAX_TEMPLATES: usize = 256;
/// Bytes of a text that is remembered.
const MAX_TEXT: usize = 8 << 10;
/// Forecasts in a row that nobody asked for, after which there are no more of that template until somebody does.
const MAX_UNUSED: u32 = 3;

/// A question that somebody will ask soon.
#[derive(Debug, Clone)]
pub(super) struct Prediction {
    pub(super) asked: Asked,
    pub(super) tables: Vec<TableName>,
    pub(super) template: Arc<Key>,
}

/// A question that was noted, to note it again without reading its text.
#[derive(Debug, Clone)]
pub(super) struct Noted {
    asked: Asked,
    template: Arc<Key>,
}

#[derive(Debug, Default)]
pub(super) struct Questions {
    templates: Mutex<HashMap<Arc<Key>, Template>>,
}

/// What makes questions instances of one template.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Key {
    text: String,
    principal: Principal,
    settings: String,
    layout: Layout,
}

bowshot_api::debug_fields!(Key { principal });

#[derive(Debug, Clone)]
struct Template {
    latest: Asked,
    /// The tables of the last two that were asked with different ones, the later one last.
    seen: Vec<Vec<TableName>>,
    count: u64,
    unused: u32,
    used: Instant,
}

impl Questions {
    /// Notes a question whose result is kept. `None` if no names of its tables count.
    pub(super) fn note(&self, asked: &Asked, key: &ResultKey) -> Option<Noted> {
        let mut tables: Vec<TableName> = Vec::new();
        for table in key.names() {
            if !tables.contains(table) {
                tables.push(table.clone());
            }
        }
        let counts = |table: &TableName| !Pattern::of(&table.table).values.is_empty();
        if asked.text.len() > MAX_TEXT || !tables.iter().any(counts) {
            return None;
        }
        let text = replaced(asked, &tables, |name| Pattern::of(&name.table).text)?;
        let options = asked.config.options();
        let catalog = &options.catalog;
        let path = options.extensions.get::<SearchPath>().map(|path| path.schemas.as_str());
        let settings =
            format!("{} {:?} {:?} {path:?}", &key.settings, catalog.default_catalog, catalog.default_schema);
        let template = Key { text, principal: asked.principal.clone(), settings, layout: asked.layout };
        let template = Arc::new(template);
        self.add(&template, asked, tables);
        Some(Noted { asked: asked.clone(), template })
    }

    /// Notes a question that was answered with a kept result.
    pub(super) fn again(&self, asked: &Asked, kept: &AskedQuery) {
        match &kept.template {
            Some(noted) if noted.asked.text == asked.text && noted.asked.principal == asked.principal => {
                if let Some(template) = self.templates.lock().get_mut(&noted.template) {
                    template.count += 1;
                    (template.unused, template.used) = (0, Instant::now());
                }
            }
            _ => drop(self.note(asked, &kept.key)),
        }
    }

    fn add(&self, key: &Arc<Key>, asked: &Asked, tables: Vec<TableName>) {
        let mut templates = self.templates.lock();
        if templates.len() >= MAX_TEMPLATES && !templates.contains_key(key) {
            let oldest = templates.values().map(|template| template.used).min();
            templates.retain(|_, template| Some(template.used) != oldest);
        }
        let template = templates.entry(Arc::clone(key)).or_insert_with(|| Template {
            latest: asked.clone(),
            seen: Vec::new(),
            count: 0,
            unused: 0,
            used: Instant::now(),
        });
        template.count += 1;
        (template.unused, template.used) = (0, Instant::now());
        if template.seen.last().is_none_or(|latest| crate::cache::is_later(&tables, latest)) {
            template.latest = asked.clone();
            template.seen.push(tables);
            let outdated = template.seen.len().saturating_sub(2);
            template.seen.drain(..outdated);
        }
    }

    /// What will be asked now that tables have appeared, of templates that were asked so often: of each the next one.
    pub(super) fn continued_by(&self, appeared: &[TableName], least: u64) -> Vec<Prediction> {
        let often = |template: &Template| template.count >= least && template.unused < MAX_UNUSED;
        // A copy, so that nobody waits for what comes now.
        let templates: Vec<_> = {
            let templates = self.templates.lock();
            let chosen = templates.iter().filter(|(_, template)| often(template));
            chosen.map(|(key, template)| (Arc::clone(key), template.clone())).collect()
        };
        let mut by_pattern: HashMap<String, Vec<&TableName>> = HashMap::new();
        for table in appeared {
            by_pattern.entry(Pattern::of(&table.table).text).or_default().push(table);
        }
        let next = templates.into_iter().filter_map(|(key, template)| {
            let latest = template.seen.last()?;
            let patterns: HashSet<String> =
                latest.iter().map(|table| Pattern::of(&table.table).text).collect();
            let new = patterns.iter().filter_map(|pattern| by_pattern.get(pattern)).flatten();
            let next = new.filter_map(|table| crate::cache::next_tables(&template.seen, table));
            // The text moves on by the names of tables only.
            let stays = |tables: &Vec<TableName>| {
                tables.iter().zip(latest).all(|(one, other)| one.schema == other.schema)
            };
            let next = next.filter(stays);
            let values = |tables: &Vec<TableName>| -> Vec<_> {
                tables.iter().map(|table| Pattern::of(&table.table).values).collect()
            };
            let tables = next.min_by_key(values)?;
            let next_name = |name: &TableName| {
                let place = latest.iter().position(|table| table == name);
                place.and_then(|place| tables.get(place)).map_or_else(String::new, |next| next.table.clone())
            };
            let text = replaced(&template.latest, latest, next_name)?;
            // Names that stand in views only do not move on with the text.
            (*text != *template.latest.text).then(|| Prediction {
                asked: Asked { text: text.into(), ..template.latest.clone() },
                tables,
                template: key,
            })
        });
        next.collect()
    }

    /// Notes that a question was asked ahead. Whoever asks it takes that back.
    pub(super) fn asked_ahead(&self, template: &Key) {
        if let Some(template) = self.templates.lock().get_mut(template) {
            template.unused += 1;
        }
    }

    /// Forgets all templates.
    pub(super) fn clear(&self) {
        self.templates.lock().clear();
    }
}

/// The text with other words for the names of tables; `None` for one that cannot be read.
fn replaced(asked: &Asked, tables: &[TableName], other: impl Fn(&TableName) -> String) -> Option<String> {
    let dialect = dialect(asked.config.options()).name();
    bowshot_sql::replace_names(&asked.text, dialect, |name, quote| {
        tables.iter().find(|table| is_name(name, quote, &table.table)).map(&other)
    })
}

fn is_name(name: &str, quote: Option<char>, table: &str) -> bool {
    match quote {
        None => name.eq_ignore_ascii_case(table),
        Some('"' | '`') => name == table,
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{Content, TableKey};
    use crate::results::key::Question;
    use datafusion::logical_expr::LogicalPlanBuilder;
    use datafusion::prelude::SessionConfig;

    fn name(table: &str) -> TableName {
        TableName { catalog: "bowshot".into(), schema: "main".into(), table: table.into() }
    }

    fn asked(text: &str) -> Asked {
        let (principal, config) = (Principal::anonymous(), SessionConfig::new());
        Asked { text: text.into(), principal, config, layout: Layout::default() }
    }

    fn key(tables: &[&str]) -> ResultKey {
        let key = |table: &&str| {
            let content = Content::Files { version: String::new(), columns: 0 };
            TableKey { name: name(table), content }
        };
        let plan = LogicalPlanBuilder::empty(true).build().expect("a plan");
        Question::over(&plan, tables.iter().map(key).collect()).expect("a question").key
    }

    fn question(day: u32) -> (Asked, ResultKey) {
        let text = format!(
            "SELECT 'sales20210804', \"sales{day}\".x -- of sales20210804\nFROM SALES{day}\tJOIN main.stores{day} ON größe = 1"
        );
        let (sales, stores) = (format!("sales{day}"), format!("stores{day}"));
        (asked(&text), key(&[&sales, &stores, &sales]))
    }

    fn predicted(questions: &Questions, appeared: &[&str], least: u64) -> Vec<String> {
        let appeared: Vec<TableName> = appeared.iter().map(|table| name(table)).collect();
        let predicted = questions.continued_by(&appeared, least);
        predicted.into_iter().map(|predicted| predicted.asked.text.to_string()).collect()
    }

    #[test]
    fn the_next_question_has_the_next_tables() {
        let questions = Questions::default();
        for day in [20_210_803, 20_210_804] {
            let (asked, key) = question(day);
            assert!(questions.note(&asked, &key).is_some());
        }
        let next = "SELECT 'sales20210804', \"sales20210805\".x -- of sales20210804\n\
                    FROM sales20210805\tJOIN main.stores20210805 ON größe = 1";
        let nothing: [&str; 0] = [];
        assert_eq!(predicted(&questions, &["sales20210805"], 3), nothing);
        assert_eq!(predicted(&questions, &["sales20210805"], 2), [next]);
        let many = ["sales20210807", "stores20210805", "sales20210805", "sales20210806", "x"];
        assert_eq!(predicted(&questions, &many, 2), [next], "the nearest one, and once");
        assert_eq!(predicted(&questions, &["sales20210802"], 1), nothing);
        assert_eq!(predicted(&questions, &["other5"], 1), nothing);
    }

    #[test]
    fn forecasts_that_nobody_asks_for_end() {
        let questions = Questions::default();
        let (asked, key) = question(20_210_803);
        let noted = questions.note(&asked, &key).expect("a template");
        let next = || predicted(&questions, &["sales20210804", "stores20210804"], 1).len();
        for _ in 0..MAX_UNUSED {
            assert_eq!(next(), 1);
            questions.asked_ahead(&noted.template);
        }
        assert_eq!(next(), 0);
        let _ = questions.note(&asked, &key);
        assert_eq!(next(), 1);
    }

    #[test]
    fn texts_without_tables_that_count_are_not_remembered() {
        let questions = Questions::default();
        assert!(questions.note(&asked("SELECT * FROM sales"), &key(&["sales"])).is_none());
        let _ = questions.note(&asked("SELECT * FROM view_of_it"), &key(&["sales7"]));
        assert_eq!(predicted(&questions, &["sales8"], 1), Vec::<String>::new());
    }
}
