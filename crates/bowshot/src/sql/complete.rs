//! Completion of tables, columns and keywords, and the end of a statement: a semicolon outside quotes, or the end of a backslash command.

use super::prompt;
use bowshot_sql::{Dialect, DialectName, split_script};
use parking_lot::RwLock;
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A table as a statement names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedTable {
    pub(super) name: String,
    /// Empty where nobody asked for them.
    pub(super) columns: Vec<String>,
}

impl NamedTable {
    /// Whether a word of a statement means it: by its name, or by the last part of it.
    fn is_meant_by(&self, word: &str) -> bool {
        let last = self.name.rsplit('.').next().unwrap_or(&self.name);
        self.name.eq_ignore_ascii_case(word) || last.eq_ignore_ascii_case(word)
    }
}

/// The tables, as the prompt last heard of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Names(Arc<RwLock<Vec<NamedTable>>>);

impl Names {
    pub(super) fn set(&self, tables: Vec<NamedTable>) {
        *self.0.write() = tables;
    }

    fn tables(&self, prefix: &str) -> Vec<String> {
        let tables = self.0.read();
        tables.iter().filter(|table| begins(&table.name, prefix)).map(|table| table.name.clone()).collect()
    }

    /// Columns, in order and each once: of the tables that the line names, or while it names none, of those that
    /// need no schema before their name: the system's tables have columns such as `self_referencing_column_name`.
    fn columns(&self, line: &str, prefix: &str) -> BTreeSet<String> {
        let tables = self.0.read();
        let named: Vec<&NamedTable> =
            tables.iter().filter(|table| words(line).any(|word| table.is_meant_by(word))).collect();
        let unqualified = || tables.iter().filter(|table| !table.name.contains('.')).collect();
        let of: Vec<&NamedTable> = if named.is_empty() { unqualified() } else { named };
        let columns = of.iter().flat_map(|table| &table.columns);
        columns.filter(|column| begins(column, prefix)).cloned().collect()
    }

    /// `TABLE.COLUMN`, where the word has a table before its last dot.
    fn qualified(&self, word: &str) -> BTreeSet<String> {
        let Some((table, prefix)) = word.rsplit_once('.') else { return BTreeSet::new() };
        let tables = self.0.read();
        let columns = tables.iter().filter(|named| named.is_meant_by(table)).flat_map(|named| &named.columns);
        columns.filter(|column| begins(column, prefix)).map(|column| format!("{table}.{column}")).collect()
    }
}

fn begins(name: &str, prefix: &str) -> bool {
    name.to_lowercase().starts_with(&prefix.to_lowercase())
}

/// Names and keywords of a text.
fn words(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    text.split(|c: char| !is_word(c)).filter(|word| !word.is_empty())
}

/// Behind these stands a table, and no column.
const BEFORE_TABLES: [&str; 8] = ["FROM", "JOIN", "INTO", "UPDATE", "TABLE", "VIEW", "DESCRIBE", "SUMMARIZE"];

/// What the line editor asks.
#[derive(Debug)]
pub(super) struct Assistant {
    pub(super) names: Names,
    pub(super) keywords: &'static [&'static str],
}

impl Assistant {
    /// What the word may become that begins behind the first `start` bytes of the line.
    fn candidates(&self, line: &str, start: usize, word: &str) -> Vec<String> {
        let mut found = self.names.tables(word);
        found.extend(self.names.qualified(word));
        if word.is_empty() {
            return found;
        }
        let before = words(line.get(..start).unwrap_or_default()).next_back().unwrap_or_default();
        if !BEFORE_TABLES.iter().any(|keyword| before.eq_ignore_ascii_case(keyword)) {
            found.extend(self.names.columns(line, word));
        }
        let lower = word.chars().all(|c| !c.is_uppercase());
        let upper = word.to_uppercase();
        found.extend(
            self.keywords
                .iter()
                .filter(|keyword| keyword.starts_with(&upper))
                .map(|keyword| if lower { keyword.to_lowercase() } else { (*keyword).to_owned() }),
        );
        found
    }
}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let start = word_start(line, position);
        let word = line.get(start..position).unwrap_or_default();
        let pairs = self
            .candidates(line, start, word)
            .into_iter()
            .map(|name| Pair { display: name.clone(), replacement: name })
            .collect();
        Ok((start, pairs))
    }
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if is_complete(context.input()) {
            ValidationResult::Valid(None)
        } else {
            ValidationResult::Incomplete
        })
    }
}

impl Hinter for Assistant {
    type Hint = String;
}

impl Highlighter for Assistant {}

impl Helper for Assistant {}

fn word_start(line: &str, position: usize) -> usize {
    let before = line.get(..position).unwrap_or_default();
    before.rfind(|c| !is_word(c)).map_or(0, |index| {
        index + before.get(index..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '"')
}

fn is_complete(input: &str) -> bool {
    let trimmed = input.trim_start();
    let is_command = trimmed.starts_with('\\') || prompt::leaves(trimmed);
    trimmed.is_empty() || is_command || split_script(input, Dialect::new(DialectName::Ansi)).1.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assistant() -> Assistant {
        let table = |name: &str, columns: &[&str]| NamedTable {
            name: name.to_owned(),
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
        };
        let names = Names::default();
        names.set(vec![
            table("lineitem", &["l_key", "l_price"]),
            table("Limits", &["least", "name"]),
            table("system.queries", &["statement", "list_of_it"]),
        ]);
        Assistant { names, keywords: &["LIKE", "LIMIT", "SELECT"] }
    }

    /// What the last word of a line may become.
    fn completed(line: &str) -> Vec<String> {
        let start = word_start(line, line.len());
        assistant().candidates(line, start, &line[start..])
    }

    #[test]
    fn tables_then_columns_then_keywords_in_the_case_of_the_word() {
        assert_eq!(completed("li"), ["lineitem", "Limits", "like", "limit"]);
        assert_eq!(completed("LIM"), ["Limits", "LIMIT"]);
        assert_eq!(completed("system.q"), ["system.queries"]);
        assert_eq!(completed("").len(), 3);
    }

    #[test]
    fn columns_are_those_of_the_tables_that_the_line_names() {
        assert_eq!(
            completed("SELECT l"),
            ["lineitem", "Limits", "l_key", "l_price", "least", "like", "limit"]
        );
        assert_eq!(completed("SELECT name FROM limits WHERE le"), ["least"]);
        assert_eq!(completed("SELECT * FROM lineitem JOIN l"), ["lineitem", "Limits", "like", "limit"]);
        assert_eq!(completed("SELECT lineitem.l_p"), ["lineitem.l_price"]);
        assert_eq!(completed("SELECT QUERIES.s"), ["QUERIES.statement"]);
        assert!(completed("SELECT nothing.s").is_empty());
    }

    #[test]
    fn words_begin_after_punctuation() {
        for (line, word) in
            [("select a from li", "li"), ("f(x", "x"), ("süß→a.b", "a.b"), ("abc", "abc"), ("a ", "")]
        {
            assert_eq!(&line[word_start(line, line.len())..], word, "{line}");
        }
    }

    #[test]
    fn lines_are_complete_at_semicolons_and_backslashes() {
        for complete in ["", "  ", "select 1;", "\\d", " \\dt x", "-- note", "exit", " QUIT "] {
            assert!(is_complete(complete), "{complete}");
        }
        for open in ["select 1", "exit 1", "select ';", "select 1; select 2", "/* open"] {
            assert!(!is_complete(open), "{open}");
        }
    }
}
