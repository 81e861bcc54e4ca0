//! Functions with regular expressions that DataFusion lacks.

use super::regex::{compile, compile_whole, of_glob, of_like, of_similar_to};
use crate::define::{Function, Gives, scalar};
use crate::values::Kind::{self, Int as Whole, Text as Words};
use crate::values::{Arguments, Flag, Int, Memo, Rows, Str, StrList, Text, fill, map1, map2};
use ::regex::Regex;
use arrow::array::ArrayRef;
use datafusion::common::{Result, exec_err};

/// Texts and the expression of each row, with flags from the argument at `flags`.
struct Searches<'a> {
    texts: Rows<'a, Text>,
    patterns: Rows<'a, Text>,
    flags: Option<Rows<'a, Text>>,
    compile: fn(&str, &str) -> Result<Regex>,
    known: Memo<Regex>,
}

impl<'a> Searches<'a> {
    fn open(
        arguments: &'a Arguments,
        flags: usize,
        compile: fn(&str, &str) -> Result<Regex>,
    ) -> Result<Self> {
        Ok(Self {
            texts: arguments.read(0)?,
            patterns: arguments.read(1)?,
            flags: arguments.read_if_given(flags)?,
            compile,
            known: Memo::new(),
        })
    }

    fn get(&mut self, row: usize) -> Result<Option<(&'a str, &Regex)>> {
        let (Some(text), Some(pattern)) = (self.texts.get(row)?, self.patterns.get(row)?) else {
            return Ok(None);
        };
        let flags = match &self.flags {
            Some(flags) => flags.get(row)?.unwrap_or_default(),
            None => "",
        };
        let compile = self.compile;
        // Flags and pattern together say which expression it is.
        let key = format!("{flags}/{pattern}");
        self.known.get(&key, |_| compile(pattern, flags)).map(|regex| Some((text, regex)))
    }
}

fn matches(arguments: &Arguments, compile: fn(&str, &str) -> Result<Regex>) -> Result<ArrayRef> {
    let mut searches = Searches::open(arguments, 2, compile)?;
    fill::<Flag, Result<Option<bool>>>(arguments, |row| {
        Ok(searches.get(row)?.map(|(text, regex)| regex.is_match(text)))
    })
}

fn group_of(groups: Option<&Rows<'_, Int>>, row: usize, regex: &Regex) -> Result<Option<usize>> {
    let group = match groups {
        Some(groups) => groups.get(row)?,
        None => Some(0),
    };
    let Some(group) = group else { return Ok(None) };
    match usize::try_from(group) {
        Ok(group) if group < regex.captures_len() => Ok(Some(group)),
        _ => exec_err!("the expression has {} groups, there is no group {group}", regex.captures_len() - 1),
    }
}

/// The group of the first match, an empty text if there is none.
fn extract(arguments: &Arguments) -> Result<ArrayRef> {
    let groups = arguments.read_if_given::<Int>(2)?;
    let mut searches = Searches::open(arguments, 3, compile)?;
    fill::<Str, Result<Option<String>>>(arguments, |row| {
        let Some((text, regex)) = searches.get(row)? else { return Ok(None) };
        let Some(group) = group_of(groups.as_ref(), row, regex)? else { return Ok(None) };
        let found = regex.captures(text).and_then(|captures| captures.get(group));
        Ok(Some(found.map_or_else(String::new, |found| found.as_str().to_owned())))
    })
}

fn extract_all(arguments: &Arguments) -> Result<ArrayRef> {
    let groups = arguments.read_if_given::<Int>(2)?;
    let mut searches = Searches::open(arguments, 3, compile)?;
    fill::<StrList, Result<Option<Vec<Option<String>>>>>(arguments, |row| {
        let Some((text, regex)) = searches.get(row)? else { return Ok(None) };
        let Some(group) = group_of(groups.as_ref(), row, regex)? else { return Ok(None) };
        let found = regex.captures_iter(text).map(|captures| {
            Some(captures.get(group).map_or_else(String::new, |found| found.as_str().to_owned()))
        });
        Ok(Some(found.collect()))
    })
}

/// PostgreSQL's `regexp_substr(text, pattern, start, n, flags, group)`: null if it is not found.
fn substr(arguments: &Arguments) -> Result<ArrayRef> {
    let (starts, counts) = (arguments.read_if_given::<Int>(2)?, arguments.read_if_given::<Int>(3)?);
    let groups = arguments.read_if_given::<Int>(5)?;
    let mut searches = Searches::open(arguments, 4, compile)?;
    fill::<Str, Result<Option<String>>>(arguments, |row| {
        let Some((text, regex)) = searches.get(row)? else { return Ok(None) };
        let mut numbers = [1_usize, 1];
        for (number, reader) in numbers.iter_mut().zip([&starts, &counts]) {
            if let Some(reader) = reader {
                let Some(given) = reader.get(row)? else { return Ok(None) };
                match usize::try_from(given) {
                    Ok(given) if given > 0 => *number = given,
                    _ => return exec_err!("positions and counts of `regexp_substr` are greater than 0"),
                }
            }
        }
        let [start, count] = numbers;
        let Some(group) = group_of(groups.as_ref(), row, regex)? else { return Ok(None) };
        let begin = text.char_indices().nth(start - 1).map_or(text.len(), |(byte, _)| byte);
        let rest = text.get(begin..).unwrap_or_default();
        let found = regex.captures_iter(rest).nth(count - 1).and_then(|captures| captures.get(group));
        Ok(found.map(|found| found.as_str().to_owned()))
    })
}

fn split(arguments: &Arguments) -> Result<ArrayRef> {
    let mut searches = Searches::open(arguments, 2, compile)?;
    fill::<StrList, Result<Option<Vec<Option<String>>>>>(arguments, |row| {
        Ok(searches.get(row)?.map(|(text, regex)| parts(text, regex)))
    })
}

/// As PostgreSQL splits: matches of nothing at the beginning, the end or behind a match do not count.
fn parts(text: &str, regex: &Regex) -> Vec<Option<String>> {
    let (mut found, mut begin) = (Vec::new(), 0);
    for separator in regex.find_iter(text) {
        if separator.is_empty() && (separator.start() == begin || separator.end() == text.len()) {
            continue;
        }
        found.push(text.get(begin..separator.start()).map(str::to_owned));
        begin = separator.end();
    }
    found.push(text.get(begin..).map(str::to_owned));
    found
}

fn similar_to(arguments: &Arguments) -> Result<ArrayRef> {
    whole(arguments, of_similar_to)
}

/// Whether the whole text matches a pattern with an escape character, which is a backslash if none is given.
fn whole(arguments: &Arguments, compile: fn(&str, Option<char>) -> Result<Regex>) -> Result<ArrayRef> {
    let (texts, patterns) = (arguments.read::<Text>(0)?, arguments.read::<Text>(1)?);
    let escapes = arguments.read_if_given::<Text>(2)?;
    let mut known = Memo::new();
    fill::<Flag, Result<Option<bool>>>(arguments, |row| {
        let (Some(text), Some(pattern)) = (texts.get(row)?, patterns.get(row)?) else { return Ok(None) };
        let escape = match &escapes {
            Some(escapes) => match escapes.get(row)? {
                Some(escape) => escape.chars().next(),
                None => return Ok(None),
            },
            None => Some('\\'),
        };
        let key = format!("{}/{pattern}", escape.map(String::from).unwrap_or_default());
        let regex = known.get(&key, |_| compile(pattern, escape))?;
        Ok(Some(regex.is_match(text)))
    })
}

const FLAGGED: &[&[Kind]] = &[&[Words, Words], &[Words, Words, Words]];
const GROUPED: &[&[Kind]] = &[&[Words, Words], &[Words, Words, Whole], &[Words, Words, Whole, Words]];

pub(super) const FUNCTIONS: &[Function] = &[
    scalar("regexp_matches", "whether a pattern is found", FLAGGED, Gives::Bool, |a| matches(a, compile))
        .note("as in DuckDB; PostgreSQL's list of groups is `regexp_match`"),
    scalar("regexp_full_match", "whether the whole text matches a pattern", FLAGGED, Gives::Bool, |a| {
        matches(a, compile_whole)
    }),
    scalar(
        "regexp_extract",
        "the first match, or a group of it; an empty text if there is none",
        GROUPED,
        Gives::Text,
        extract,
    ),
    scalar(
        "regexp_extract_all",
        "all matches, or a group of each, as a list",
        GROUPED,
        Gives::Texts,
        extract_all,
    ),
    scalar(
        "regexp_substr",
        "the n-th match from a position on, or a group of it; null if there is none",
        &[
            &[Words, Words],
            &[Words, Words, Whole],
            &[Words, Words, Whole, Whole],
            &[Words, Words, Whole, Whole, Words],
            &[Words, Words, Whole, Whole, Words, Whole],
        ],
        Gives::Text,
        substr,
    ),
    scalar("regexp_split_to_array", "the parts between matches, as a list", FLAGGED, Gives::Texts, split)
        .aliases(&["string_split_regex", "str_split_regex", "regexp_split"]),
    scalar("regexp_escape", "the pattern that finds the text itself", &[&[Words]], Gives::Text, |a| {
        map1::<Text, Str, _>(a, ::regex::escape)
    }),
    scalar(
        "similar_to",
        "whether the whole text matches a pattern of SIMILAR TO",
        FLAGGED,
        Gives::Bool,
        similar_to,
    ),
    scalar("like_escape", "LIKE with an escape character", FLAGGED, Gives::Bool, |a| {
        whole(a, |pattern, escape| of_like(pattern, escape, "s"))
    }),
    scalar("ilike_escape", "ILIKE with an escape character", FLAGGED, Gives::Bool, |a| {
        whole(a, |pattern, escape| of_like(pattern, escape, "si"))
    }),
    scalar(
        "glob",
        "whether the whole text matches a pattern with `*`, `?` and `[…]`",
        &[&[Words, Words]],
        Gives::Bool,
        |a| {
            let mut known = Memo::new();
            map2::<Text, Text, Flag, Result<bool>>(a, |text, pattern| {
                Ok(known.get(pattern, of_glob)?.is_match(text))
            })
        },
    ),
];
