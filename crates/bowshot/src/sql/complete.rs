//! Completion of table names and keywords, and the end of a statement: a semicolon outside quotes, or the end of a backslash command.

use super::{prompt, statement_split};
use parking_lot::RwLock;
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};
use std::sync::Arc;

/// Names of tables, as the prompt last heard of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Names(Arc<RwLock<Vec<String>>>);

impl Names {
    pub(super) fn set(&self, names: Vec<String>) {
        *self.0.write() = names;
    }

    fn starting_with(&self, prefix: &str) -> Vec<String> {
        let names = self.0.read();
        let prefix = prefix.to_lowercase();
        names.iter().filter(|name| name.to_lowercase().starts_with(&prefix)).cloned().collect()
    }
}

/// What the line editor asks.
#[derive(Debug)]
pub(super) struct Assistant {
    pub(super) names: Names,
    pub(super) keywords: &'static [&'static str],
}

impl Assistant {
    fn candidates(&self, word: &str) -> Vec<String> {
        let mut found = self.names.starting_with(word);
        if word.is_empty() {
            return found;
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
            .candidates(word)
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
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '"');
    before.rfind(|c| !is_word(c)).map_or(0, |index| {
        index + before.get(index..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
    })
}

fn is_complete(input: &str) -> bool {
    let trimmed = input.trim_start();
    let is_command = trimmed.starts_with('\\') || prompt::leaves(trimmed);
    trimmed.is_empty() || is_command || statement_split::split(input).rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_first_then_keywords_in_the_case_of_the_word() {
        let names = Names::default();
        names.set(vec!["lineitem".into(), "Limits".into(), "system.queries".into()]);
        let assistant = Assistant { names, keywords: &["LIKE", "LIMIT", "SELECT"] };
        assert_eq!(assistant.candidates("li"), ["lineitem", "Limits", "like", "limit"]);
        assert_eq!(assistant.candidates("LIM"), ["Limits", "LIMIT"]);
        assert_eq!(assistant.candidates("system.q"), ["system.queries"]);
        assert_eq!(assistant.candidates("").len(), 3);
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
