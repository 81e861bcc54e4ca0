//! Questions that come again with the next tables: `… FROM sales20210804` today, `… FROM sales20210805` tomorrow.
//!
//! A template is the text of a query with placeholders where a table's name counts, with who asked it and how. When a table
//! continues the sequence, the text with the next names is what will be asked, and can be asked ahead.

use crate::plan;
use bowshot_api::{Layout, Principal};
use bowshot_cache::{Pattern, TableName};
use datafusion::prelude::SessionConfig;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer, Word};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Templates that are remembered; the one that was not asked for longest leaves.
const MAX_TEMPLATES: usize = 256;
/// Bytes of a text that is remembered.
const MAX_TEXT: usize = 32 << 10;
/// Forecasts in a row that nobody asked for, after which there are no more of that template until somebody does.
const MAX_UNUSED: u32 = 3;

/// A question, with who asks it and how.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) text: Arc<str>,
    pub(crate) principal: Principal,
    pub(crate) config: SessionConfig,
    pub(crate) layout: Layout,
}

impl std::fmt::Debug for Asked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Texts may hold somebody's secrets.
        f.debug_struct("Asked").field("principal", &self.principal).finish_non_exhaustive()
    }
}

/// A question that somebody will ask soon.
#[derive(Debug, Clone)]
pub(super) struct Foretold {
    pub(super) asked: Asked,
    pub(super) tables: Vec<TableName>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Questions {
    templates: Mutex<HashMap<Key, Template>>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    /// The text with placeholders.
    text: String,
    principal: Principal,
    settings: String,
    layout: Layout,
}

#[derive(Debug)]
struct Template {
    latest: Asked,
    /// The tables of the last two that were asked with different ones, the later one last.
    seen: Vec<Vec<TableName>>,
    count: u64,
    unused: u32,
    used: Instant,
}

impl Questions {
    /// Notes a question over some tables, in the order of its plan, whose result is kept. `settings` are those that give
    /// it another result.
    pub(super) fn note<'t>(
        &self,
        asked: &Asked,
        tables: impl Iterator<Item = &'t TableName>,
        settings: &str,
    ) {
        let mut distinct: Vec<TableName> = Vec::new();
        for table in tables {
            if !distinct.contains(table) {
                distinct.push(table.clone());
            }
        }
        let counts = |table: &TableName| !Pattern::of(&table.table).values.is_empty();
        if asked.text.len() > MAX_TEXT || !distinct.iter().any(counts) {
            return;
        }
        let placeholder = |name: &TableName| Pattern::of(&name.table).text;
        let Some(text) = replaced(asked, &distinct, placeholder) else { return };
        let (principal, settings) = (asked.principal.clone(), settings.to_owned());
        let key = Key { text, principal, settings, layout: asked.layout };
        let mut templates = self.lock();
        if templates.len() >= MAX_TEMPLATES && !templates.contains_key(&key) {
            let oldest = templates.iter().map(|(_, template)| template.used).min();
            templates.retain(|_, template| Some(template.used) != oldest);
        }
        let template = templates.entry(key).or_insert_with(|| Template {
            latest: asked.clone(),
            seen: Vec::new(),
            count: 0,
            unused: 0,
            used: Instant::now(),
        });
        template.count += 1;
        template.unused = 0;
        template.used = Instant::now();
        if template.seen.last().is_none_or(|latest| is_later(&distinct, latest)) {
            template.latest = asked.clone();
            template.seen.push(distinct);
            let outdated = template.seen.len().saturating_sub(2);
            template.seen.drain(..outdated);
        }
    }

    /// What will be asked now that a table has appeared, of templates that were asked so often.
    pub(super) fn continued_by(&self, appeared: &TableName, least: u64) -> Vec<Foretold> {
        let mut templates = self.lock();
        let often = templates.values_mut().filter(|it| it.count >= least && it.unused < MAX_UNUSED);
        let next = often.filter_map(|template| {
            let tables = bowshot_cache::next_tables(&template.seen, appeared)?;
            let latest = template.seen.last()?;
            let next_name = |name: &TableName| {
                let place = latest.iter().position(|table| table == name);
                place.and_then(|place| tables.get(place)).map_or_else(String::new, |next| next.table.clone())
            };
            let text = replaced(&template.latest, latest, next_name)?;
            // Names that stand in views only do not move on with the text.
            if *text == *template.latest.text {
                return None;
            }
            template.unused += 1;
            Some(Foretold { asked: Asked { text: text.into(), ..template.latest.clone() }, tables })
        });
        next.collect()
    }

    /// Forgets all templates.
    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Template>> {
        self.templates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether tables of the same patterns count further than others.
fn is_later(tables: &[TableName], earlier: &[TableName]) -> bool {
    let mut ahead = false;
    tables.len() == earlier.len()
        && tables.iter().zip(earlier).all(|(now, then)| {
            let steps = Pattern::of(&now.table).steps_from(&Pattern::of(&then.table)).unwrap_or_default();
            ahead |= steps.iter().any(|step| *step > 0);
            now == then || !steps.is_empty() && steps.iter().all(|step| *step >= 0)
        })
        && ahead
}

/// The text with other words for the names of tables; `None` for one that cannot be read.
fn replaced(asked: &Asked, tables: &[TableName], other: impl Fn(&TableName) -> String) -> Option<String> {
    let dialect = plan::dialect(asked.config.options()).ok()?;
    let tokens = Tokenizer::new(dialect.as_ref(), &asked.text).tokenize_with_location().ok()?;
    let lines: Vec<&str> = asked.text.split_inclusive('\n').collect();
    let (mut text, mut copied) = (String::with_capacity(asked.text.len()), 0);
    for token in tokens {
        let Token::Word(word) = &token.token else { continue };
        let Some(table) = tables.iter().find(|table| is_name(word, &table.table)) else { continue };
        let start = plan::offset(&lines, token.span.start)?;
        let end = plan::offset(&lines, token.span.end)?;
        text.push_str(asked.text.get(copied..start)?);
        text.extend(word.quote_style);
        text.push_str(&other(table));
        text.extend(word.quote_style);
        copied = end;
    }
    text.push_str(asked.text.get(copied..)?);
    Some(text)
}

fn is_name(word: &Word, table: &str) -> bool {
    match word.quote_style {
        None => word.value.eq_ignore_ascii_case(table),
        Some('"' | '`') => word.value == table,
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(table: &str) -> TableName {
        TableName { catalog: "bowshot".into(), schema: "main".into(), table: table.into() }
    }

    fn asked(text: &str) -> Asked {
        let (principal, config) = (Principal::anonymous(), SessionConfig::new());
        Asked { text: text.into(), principal, config, layout: Layout::default() }
    }

    fn question(day: u32) -> (Asked, Vec<TableName>) {
        let text = format!(
            "SELECT 'sales{day}', \"sales{day}\".x -- of sales{day}\nFROM SALES{day}\tJOIN main.stores{day} ON größe = 1"
        );
        (asked(&text), vec![name(&format!("sales{day}")), name(&format!("stores{day}"))])
    }

    fn texts(foretold: Vec<Foretold>) -> Vec<String> {
        foretold.into_iter().map(|foretold| foretold.asked.text.to_string()).collect()
    }

    #[test]
    fn the_next_question_has_the_next_tables() {
        let questions = Questions::default();
        for day in [20_210_803, 20_210_804] {
            let (asked, tables) = question(day);
            questions.note(&asked, tables.iter().chain(&tables), "");
        }
        let next = "SELECT 'sales20210804', \"sales20210805\".x -- of sales20210804\n\
                    FROM sales20210805\tJOIN main.stores20210805 ON größe = 1";
        assert_eq!(texts(questions.continued_by(&name("sales20210805"), 3)), Vec::<String>::new());
        assert_eq!(texts(questions.continued_by(&name("sales20210805"), 2)), [next]);
        assert_eq!(texts(questions.continued_by(&name("sales20210802"), 1)), Vec::<String>::new());
        assert_eq!(texts(questions.continued_by(&name("other5"), 1)), Vec::<String>::new());
    }

    #[test]
    fn forecasts_that_nobody_asks_for_end() {
        let questions = Questions::default();
        let (asked, tables) = question(20_210_803);
        questions.note(&asked, tables.iter(), "");
        let foretold = || questions.continued_by(&name("sales20210804"), 1).len();
        assert_eq!([foretold(), foretold(), foretold(), foretold()], [1, 1, 1, 0]);
        questions.note(&asked, tables.iter(), "");
        assert_eq!(foretold(), 1);
        questions.note(&asked, tables.iter(), "another setting");
        assert_eq!(foretold(), 2);
    }

    #[test]
    fn texts_without_tables_that_count_are_not_remembered() {
        let questions = Questions::default();
        questions.note(&asked("SELECT * FROM sales"), [name("sales")].iter(), "");
        questions.note(&asked("SELECT * FROM view_of_it"), [name("sales7")].iter(), "");
        assert_eq!(texts(questions.continued_by(&name("sales8"), 1)), Vec::<String>::new());
    }
}
