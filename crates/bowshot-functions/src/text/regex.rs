//! Regular expressions, compiled once and kept while a batch has the same one.
//!
//! `regex` takes time that is linear in the text, and runs whatever it can compile. Look-around and back-references are
//! `fancy-regex`'s, which goes back and tries again, so that it has a limit.

use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err};
use regex::{Regex, RegexBuilder};
use std::ops::Range;

/// The most bytes that a compiled expression takes.
const MOST_COMPILED: usize = 8 << 20;
/// How often a search with look-around or back-references goes back in one text.
const MOST_STEPS: usize = 1_000_000;

/// Where a match and its groups are in the text, the match first.
pub(super) type Spans = Vec<Option<Range<usize>>>;

#[derive(Debug)]
pub(super) enum Pattern {
    Plain(Regex),
    Backtracking(Box<fancy_regex::Regex>),
}

impl Pattern {
    pub(super) fn is_match(&self, text: &str) -> Result<bool> {
        match self {
            Self::Plain(regex) => Ok(regex.is_match(text)),
            Self::Backtracking(regex) => regex.is_match(text).map_err(|error| stopped(&error)),
        }
    }

    /// The groups of a match, which is one itself.
    pub(super) fn groups(&self) -> usize {
        match self {
            Self::Plain(regex) => regex.captures_len(),
            Self::Backtracking(regex) => regex.captures_len(),
        }
    }

    pub(super) fn matches<'a>(&'a self, text: &'a str) -> Box<dyn Iterator<Item = Result<Spans>> + 'a> {
        let groups = self.groups();
        match self {
            Self::Plain(regex) => Box::new(regex.captures_iter(text).map(move |found| {
                Ok((0..groups).map(|group| found.get(group).map(|part| part.range())).collect())
            })),
            Self::Backtracking(regex) => Box::new(regex.captures_iter(text).map(move |found| {
                let found = found.map_err(|error| stopped(&error))?;
                Ok((0..groups).map(|group| found.get(group).map(|part| part.start()..part.end())).collect())
            })),
        }
    }

    pub(super) fn first(&self, text: &str) -> Result<Option<Spans>> {
        self.matches(text).next().transpose()
    }
}

fn stopped(error: &fancy_regex::Error) -> DataFusionError {
    exec_datafusion_err!("a regular expression was given up: {error}; write it without look-around and \\1")
}

/// What flags say of an expression.
#[derive(Debug, Default)]
struct Options {
    ignore_case: bool,
    /// A point is any character, ends of lines too.
    whole_text: bool,
    /// `^` and `$` are at each line.
    lines: bool,
    blanks: bool,
    literal: bool,
}

/// An expression with DuckDB's flags: `i` ignores case, `s` and `n` say what a point and line ends are, `x` allows blanks;
/// `g`, `c` change nothing here.
pub(super) fn compile(pattern: &str, flags: &str) -> Result<Pattern> {
    let mut options = Options::default();
    for flag in flags.chars() {
        match flag {
            'i' => options.ignore_case = true,
            's' => options.whole_text = true,
            'm' | 'n' | 'p' => options.lines = true,
            'x' => options.blanks = true,
            'l' => options.literal = true,
            'g' | 'c' | 'e' => {}
            other => return unknown_flag(other),
        }
    }
    build(pattern, &options)
}

/// The same with PostgreSQL's flags. Without any, a point is the end of a line too.
pub(super) fn compile_as_postgres(pattern: &str, flags: &str) -> Result<Pattern> {
    let mut options = Options { whole_text: true, ..Options::default() };
    for flag in flags.chars() {
        match flag {
            'i' => options.ignore_case = true,
            'c' => options.ignore_case = false,
            's' => (options.whole_text, options.lines) = (true, false),
            'm' | 'n' => (options.whole_text, options.lines) = (false, true),
            'p' => (options.whole_text, options.lines) = (false, false),
            'w' => (options.whole_text, options.lines) = (true, true),
            'x' => options.blanks = true,
            'q' | 'l' => options.literal = true,
            'g' | 'e' | 't' => {}
            other => return unknown_flag(other),
        }
    }
    build(pattern, &options)
}

/// The same with MySQL's flags.
pub(super) fn compile_as_mysql(pattern: &str, flags: &str) -> Result<Pattern> {
    let mut options = Options::default();
    for flag in flags.chars() {
        match flag {
            'i' => options.ignore_case = true,
            'c' => options.ignore_case = false,
            'm' => options.lines = true,
            'n' | 's' => options.whole_text = true,
            'x' => options.blanks = true,
            'g' | 'u' => {}
            other => return unknown_flag(other),
        }
    }
    build(pattern, &options)
}

fn unknown_flag<T>(flag: char) -> Result<T> {
    exec_err!("`{flag}` is not a flag of regular expressions")
}

fn build(pattern: &str, options: &Options) -> Result<Pattern> {
    let plain = if options.literal { regex::escape(pattern) } else { in_our_words(pattern, false) };
    match plain_builder(&plain, options).build() {
        Ok(regex) => Ok(Pattern::Plain(regex)),
        Err(error @ regex::Error::Syntax(_)) => {
            let text = error.to_string();
            if !text.contains("look-around") && !text.contains("backreferences") {
                return Err(exec_datafusion_err!("invalid regular expression: {text}"));
            }
            let mut builder = fancy_regex::RegexBuilder::new(&in_our_words(pattern, true));
            builder
                .backtrack_limit(MOST_STEPS)
                .delegate_size_limit(MOST_COMPILED)
                .case_insensitive(options.ignore_case)
                .dot_matches_new_line(options.whole_text)
                .multi_line(options.lines)
                .ignore_whitespace(options.blanks);
            let regex = builder
                .build()
                .map_err(|error| exec_datafusion_err!("invalid regular expression: {error}"))?;
            Ok(Pattern::Backtracking(Box::new(regex)))
        }
        Err(error) => Err(exec_datafusion_err!("invalid regular expression: {error}")),
    }
}

fn plain_builder(pattern: &str, options: &Options) -> RegexBuilder {
    let mut builder = RegexBuilder::new(pattern);
    builder
        .size_limit(MOST_COMPILED)
        .case_insensitive(options.ignore_case)
        .dot_matches_new_line(options.whole_text)
        .multi_line(options.lines)
        .ignore_whitespace(options.blanks);
    builder
}

/// An expression that we make, without look-around.
fn compile_plain(pattern: &str, flags: &str) -> Result<Regex> {
    let options =
        Options { ignore_case: flags.contains('i'), whole_text: flags.contains('s'), ..Options::default() };
    let built = plain_builder(pattern, &options).build();
    built.map_err(|error| exec_datafusion_err!("invalid regular expression: {error}"))
}

/// PostgreSQL's escapes for the ends of words (`\m`, `\M`, `\y`, `\Y`, `[[:<:]]`, `[[:>:]]`) and of the text (`\Z`) in those
/// that are known here.
fn in_our_words(pattern: &str, backtracking: bool) -> String {
    let (begin, end) =
        if backtracking { (r"(?:\b(?=\w))", r"(?:\b(?<=\w))") } else { (r"\b{start}", r"\b{end}") };
    let mut found = String::with_capacity(pattern.len());
    let (mut rest, mut in_class) = (pattern, false);
    while let Some(character) = rest.chars().next() {
        let known = [("[[:<:]]", begin), ("[[:>:]]", end), (r"\m", begin), (r"\M", end)];
        let further = [(r"\y", r"\b"), (r"\Y", r"\B"), (r"\Z", r"\z")];
        let mut escapes = known.iter().chain(&further);
        if !in_class && let Some((escape, ours)) = escapes.find(|(escape, _)| rest.starts_with(escape)) {
            found.push_str(ours);
            rest = rest.get(escape.len()..).unwrap_or_default();
            continue;
        }
        // An escaped character is itself, whatever it is.
        let mut taken = character.len_utf8();
        if character == '\\' {
            taken += rest.get(taken..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        }
        in_class = match character {
            '[' => true,
            ']' => false,
            _ => in_class,
        };
        found.push_str(rest.get(..taken).unwrap_or_default());
        rest = rest.get(taken..).unwrap_or_default();
    }
    found
}

/// The expression that the whole text must match.
pub(super) fn compile_whole(pattern: &str, flags: &str) -> Result<Pattern> {
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
    compile_plain(&found, "s")
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
    compile_plain(&found, flags)
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
    compile_plain(&found, "s")
}
