//! Regular expressions, compiled once and kept while a batch has the same one.

use datafusion::common::{Result, exec_datafusion_err, exec_err};
use regex::{Regex, RegexBuilder};

/// The most bytes that a compiled expression takes.
const MOST_COMPILED: usize = 8 << 20;

/// An expression with PostgreSQL's and DuckDB's flags: `i` ignores case, `s` and `n` say what a point and line ends are,
/// `x` allows blanks; `g`, `c`, `l` change nothing here.
pub(super) fn compile(pattern: &str, flags: &str) -> Result<Regex> {
    let mut builder = RegexBuilder::new(pattern);
    builder.size_limit(MOST_COMPILED);
    for flag in flags.chars() {
        match flag {
            'i' => builder.case_insensitive(true),
            's' => builder.dot_matches_new_line(true),
            'm' | 'n' | 'p' => builder.multi_line(true),
            'x' => builder.ignore_whitespace(true),
            'l' => {
                builder = RegexBuilder::new(&regex::escape(pattern));
                builder.size_limit(MOST_COMPILED)
            }
            'g' | 'c' | 'e' => &mut builder,
            other => return exec_err!("`{other}` is not a flag of regular expressions"),
        };
    }
    builder.build().map_err(|error| exec_datafusion_err!("invalid regular expression: {error}"))
}

/// The expression that the whole text must match.
pub(super) fn compile_whole(pattern: &str, flags: &str) -> Result<Regex> {
    compile(&format!("^(?:{pattern})$"), flags)
}

/// The pattern of SIMILAR TO as a regular expression over the whole text.
pub(super) fn of_similar_to(pattern: &str, escape: Option<char>) -> Result<Regex> {
    let mut found = String::from("^(?:");
    let (mut characters, mut in_class) = (pattern.chars(), false);
    while let Some(character) = characters.next() {
        if Some(character) == escape {
            match characters.next() {
                Some(next) => found.push_str(&regex::escape(&next.to_string())),
                None => return exec_err!("the pattern `{pattern}` ends with its escape character"),
            }
            continue;
        }
        match character {
            '[' => (in_class, _) = (true, found.push('[')),
            ']' => (in_class, _) = (false, found.push(']')),
            other if in_class => found.push(other),
            '%' => found.push_str(".*"),
            '_' => found.push('.'),
            '|' | '*' | '+' | '?' | '{' | '}' | '(' | ')' => found.push(character),
            other => found.push_str(&regex::escape(&other.to_string())),
        }
    }
    found.push_str(")$");
    compile(&found, "s")
}

/// The pattern of LIKE as a regular expression over the whole text.
pub(super) fn of_like(pattern: &str, escape: Option<char>, flags: &str) -> Result<Regex> {
    let mut found = String::from("^");
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        let literal = if Some(character) == escape {
            characters.next()
        } else {
            match character {
                '%' => {
                    found.push_str(".*");
                    continue;
                }
                '_' => {
                    found.push('.');
                    continue;
                }
                other => Some(other),
            }
        };
        match literal {
            Some(literal) => found.push_str(&regex::escape(&literal.to_string())),
            None => return exec_err!("the pattern `{pattern}` ends with its escape character"),
        }
    }
    found.push('$');
    compile(&found, flags)
}

/// The pattern of GLOB as a regular expression over the whole text.
pub(super) fn of_glob(pattern: &str) -> Result<Regex> {
    let mut found = String::from("^");
    let (mut characters, mut in_class) = (pattern.chars().peekable(), false);
    while let Some(character) = characters.next() {
        match character {
            '[' if !in_class => {
                in_class = true;
                found.push('[');
                if characters.next_if_eq(&'!').is_some() {
                    found.push('^');
                }
            }
            ']' => (in_class, _) = (false, found.push(']')),
            '-' | '^' if in_class => found.push(character),
            '*' if !in_class => found.push_str(".*"),
            '?' if !in_class => found.push('.'),
            '\\' => {
                let next = characters.next().unwrap_or('\\');
                found.push_str(&regex::escape(&next.to_string()));
            }
            other => found.push_str(&regex::escape(&other.to_string())),
        }
    }
    found.push('$');
    compile(&found, "s")
}
