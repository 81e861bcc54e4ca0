//! Functions that search with regular expressions.

use super::regex::{
    Pattern, Spans, compile, compile_as_mysql, compile_as_postgres, compile_whole, of_glob, of_like,
    of_similar_to,
};
use crate::define::{Function, functions};
use crate::values::Kind::{self, Int as Whole, Text as Words};
use crate::values::{Arguments, Flag, Int, Int64, Memo, Rows, Str, StrList, Text, fill, get_or, map1, map2};
use ::regex::Regex;
use arrow::array::{ArrayRef, ListBuilder, StringBuilder};
use arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, exec_err};
use std::sync::Arc;

/// How an expression and its flags are read.
pub(super) type Compile = fn(&str, &str) -> Result<Pattern>;

/// How the functions of PostgreSQL and MySQL read them.
pub(super) fn by_dialect(arguments: &Arguments) -> Compile {
    if arguments.is_mysql() { compile_as_mysql } else { compile_as_postgres }
}

/// Texts and the expression of each row, with flags from the argument at `flags`.
pub(super) struct Searches<'a> {
    texts: Rows<'a, Text>,
    patterns: Rows<'a, Text>,
    flags: Option<Rows<'a, Text>>,
    compile: Compile,
    known: Memo<Pattern>,
}

impl<'a> Searches<'a> {
    pub(super) fn open(arguments: &'a Arguments, flags: usize, compile: Compile) -> Result<Self> {
        Ok(Self {
            texts: arguments.read(0)?,
            patterns: arguments.read(1)?,
            flags: arguments.read_if_given(flags)?,
            compile,
            known: Memo::new(),
        })
    }

    pub(super) fn flags(&self, row: usize) -> Result<&'a str> {
        Ok(get_or(self.flags.as_ref(), row, "")?.unwrap_or_default())
    }

    pub(super) fn get(&mut self, row: usize) -> Result<Option<(&'a str, &Pattern)>> {
        let (Some(text), Some(pattern)) = (self.texts.get(row)?, self.patterns.get(row)?) else {
            return Ok(None);
        };
        let flags = self.flags(row)?;
        let compile = self.compile;
        // Flags and pattern together say which expression it is.
        let key = format!("{flags}/{pattern}");
        self.known.get(&key, |_| compile(pattern, flags)).map(|regex| Some((text, regex)))
    }
}

pub(super) fn part<'t>(text: &'t str, spans: &Spans, group: usize) -> Option<&'t str> {
    spans.get(group).cloned().flatten().and_then(|span| text.get(span))
}

fn matches(arguments: &Arguments, compile: Compile) -> Result<ArrayRef> {
    let mut searches = Searches::open(arguments, 2, compile)?;
    fill::<Flag, Result<Option<bool>>>(arguments, |row| {
        searches.get(row)?.map(|(text, pattern)| pattern.is_match(text)).transpose()
    })
}

fn group_of(groups: Option<&Rows<'_, Int>>, row: usize, pattern: &Pattern) -> Result<Option<usize>> {
    let Some(group) = get_or(groups, row, 0)? else { return Ok(None) };
    match usize::try_from(group) {
        Ok(group) if group < pattern.groups() => Ok(Some(group)),
        _ => exec_err!("the expression has {} groups, there is no group {group}", pattern.groups() - 1),
    }
}

/// The group of the first match, an empty text if there is none.
fn extract(arguments: &Arguments) -> Result<ArrayRef> {
    let groups = arguments.read_if_given::<Int>(2)?;
    let mut searches = Searches::open(arguments, 3, compile)?;
    fill::<Str, Result<Option<String>>>(arguments, |row| {
        let Some((text, pattern)) = searches.get(row)? else { return Ok(None) };
        let Some(group) = group_of(groups.as_ref(), row, pattern)? else { return Ok(None) };
        let found = pattern.first(text)?;
        Ok(Some(found.and_then(|spans| part(text, &spans, group)).unwrap_or_default().to_owned()))
    })
}

fn extract_all(arguments: &Arguments) -> Result<ArrayRef> {
    let groups = arguments.read_if_given::<Int>(2)?;
    let mut searches = Searches::open(arguments, 3, compile)?;
    fill::<StrList, Result<Option<Vec<Option<String>>>>>(arguments, |row| {
        let Some((text, pattern)) = searches.get(row)? else { return Ok(None) };
        let Some(group) = group_of(groups.as_ref(), row, pattern)? else { return Ok(None) };
        let found = pattern
            .matches(text)
            .map(|spans| Ok(Some(part(text, &spans?, group).unwrap_or_default().to_owned())));
        found.collect::<Result<_>>().map(Some)
    })
}

/// PostgreSQL's `regexp_substr(text, pattern, start, n, flags, group)`: null if it is not found.
fn substr(arguments: &Arguments) -> Result<ArrayRef> {
    let (starts, counts) = (arguments.read_if_given::<Int>(2)?, arguments.read_if_given::<Int>(3)?);
    let groups = arguments.read_if_given::<Int>(5)?;
    let mut searches = Searches::open(arguments, 4, by_dialect(arguments))?;
    fill::<Str, Result<Option<String>>>(arguments, |row| {
        let Some((text, pattern)) = searches.get(row)? else { return Ok(None) };
        let Some(start) = counted(arguments, starts.as_ref(), row)? else { return Ok(None) };
        let Some(count) = counted(arguments, counts.as_ref(), row)? else { return Ok(None) };
        let Some(group) = group_of(groups.as_ref(), row, pattern)? else { return Ok(None) };
        let rest = behind(text, start).1;
        let found = pattern.matches(rest).nth(count - 1).transpose()?;
        Ok(found.and_then(|spans| part(rest, &spans, group)).map(str::to_owned))
    })
}

/// A position or a number of a match, the first one where none is given.
pub(super) fn counted(
    arguments: &Arguments,
    reader: Option<&Rows<'_, Int>>,
    row: usize,
) -> Result<Option<usize>> {
    let Some(given) = get_or(reader, row, 1)? else { return Ok(None) };
    match usize::try_from(given) {
        Ok(given) if given > 0 => Ok(Some(given)),
        _ => exec_err!("positions and counts of `{}` are greater than 0", arguments.function),
    }
}

/// The text before a character, counted from one, and the one from there on.
pub(super) fn behind(text: &str, start: usize) -> (&str, &str) {
    let begin = text.char_indices().nth(start - 1).map_or(text.len(), |(byte, _)| byte);
    text.split_at(begin)
}

/// How often it is found from a position on.
fn count(arguments: &Arguments) -> Result<ArrayRef> {
    let starts = arguments.read_if_given::<Int>(2)?;
    let mut searches = Searches::open(arguments, 3, by_dialect(arguments))?;
    fill::<Int64, Result<Option<i64>>>(arguments, |row| {
        let Some((text, pattern)) = searches.get(row)? else { return Ok(None) };
        let Some(start) = counted(arguments, starts.as_ref(), row)? else { return Ok(None) };
        let mut found = 0;
        for spans in pattern.matches(behind(text, start).1) {
            spans?;
            found += 1;
        }
        Ok(Some(found))
    })
}

/// PostgreSQL's `regexp_instr(text, pattern, start, n, end, flags, group)`: where it begins, or what is behind it; 0 if it is not
/// found.
fn place(arguments: &Arguments) -> Result<ArrayRef> {
    let (starts, counts) = (arguments.read_if_given::<Int>(2)?, arguments.read_if_given::<Int>(3)?);
    let (ends, groups) = (arguments.read_if_given::<Int>(4)?, arguments.read_if_given::<Int>(6)?);
    let mut searches = Searches::open(arguments, 5, by_dialect(arguments))?;
    fill::<Int64, Result<Option<i64>>>(arguments, |row| {
        let Some((text, pattern)) = searches.get(row)? else { return Ok(None) };
        let Some(start) = counted(arguments, starts.as_ref(), row)? else { return Ok(None) };
        let Some(count) = counted(arguments, counts.as_ref(), row)? else { return Ok(None) };
        let Some(group) = group_of(groups.as_ref(), row, pattern)? else { return Ok(None) };
        let Some(end) = get_or(ends.as_ref(), row, 0)? else { return Ok(None) };
        let (before, rest) = behind(text, start);
        let found = pattern.matches(rest).nth(count - 1).transpose()?;
        let span = found.and_then(|spans| spans.get(group).cloned().flatten());
        let characters = |text: &str| i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        Ok(Some(span.map_or(0, |span| {
            let to = rest.get(..if end != 0 { span.end } else { span.start }).unwrap_or_default();
            characters(before).saturating_add(characters(to)).saturating_add(1)
        })))
    })
}

/// The groups of a match, or all of it where there are none.
fn groups_of(text: &str, spans: &Spans) -> Vec<Option<String>> {
    let from = usize::from(spans.len() > 1);
    (from..spans.len()).map(|group| part(text, spans, group).map(str::to_owned)).collect()
}

fn first_groups(arguments: &Arguments) -> Result<ArrayRef> {
    let mut searches = Searches::open(arguments, 2, by_dialect(arguments))?;
    fill::<StrList, Result<Option<Vec<Option<String>>>>>(arguments, |row| {
        let Some((text, pattern)) = searches.get(row)? else { return Ok(None) };
        Ok(pattern.first(text)?.map(|spans| groups_of(text, &spans)))
    })
}

/// The groups of the first match, or with flag `g` of each, as a list of lists: the rows of PostgreSQL's `regexp_matches`.
fn all_groups(arguments: &Arguments) -> Result<ArrayRef> {
    let mut searches = Searches::open(arguments, 2, by_dialect(arguments))?;
    let mut lists = ListBuilder::new(ListBuilder::new(StringBuilder::new()));
    let mut bytes = 0_usize;
    for row in 0..arguments.rows {
        let most = if searches.flags(row)?.contains('g') { usize::MAX } else { 1 };
        let Some((text, pattern)) = searches.get(row)? else {
            lists.append_null();
            continue;
        };
        for spans in pattern.matches(text).take(most) {
            for group in groups_of(text, &spans?) {
                bytes = bytes.saturating_add(16 + group.as_ref().map_or(0, String::len));
                arguments.check_size(bytes)?;
                lists.values().values().append_option(group);
            }
            lists.values().append(true);
        }
        lists.append(true);
    }
    Ok(Arc::new(lists.finish()))
}

fn list_of_lists(_: &[DataType]) -> Result<DataType> {
    let list = |of| DataType::List(Arc::new(Field::new_list_field(of, true)));
    Ok(list(list(DataType::Utf8)))
}

fn split(arguments: &Arguments) -> Result<ArrayRef> {
    let mut searches = Searches::open(arguments, 2, by_dialect(arguments))?;
    fill::<StrList, Result<Option<Vec<Option<String>>>>>(arguments, |row| {
        searches.get(row)?.map(|(text, pattern)| parts(text, pattern)).transpose()
    })
}

/// As PostgreSQL splits: matches of nothing at the beginning, the end or behind a match do not count.
fn parts(text: &str, pattern: &Pattern) -> Result<Vec<Option<String>>> {
    let (mut found, mut begin) = (Vec::new(), 0);
    for spans in pattern.matches(text) {
        let Some(separator) = spans?.into_iter().next().flatten() else { continue };
        if separator.is_empty() && (separator.start == begin || separator.end == text.len()) {
            continue;
        }
        found.push(text.get(begin..separator.start).map(str::to_owned));
        begin = separator.end;
    }
    found.push(text.get(begin..).map(str::to_owned));
    Ok(found)
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
        let Some(escape) = get_or(escapes.as_ref(), row, "\\")? else { return Ok(None) };
        let escape = escape.chars().next();
        let key = format!("{}/{pattern}", escape.map(String::from).unwrap_or_default());
        let regex = known.get(&key, |_| compile(pattern, escape))?;
        Ok(Some(regex.is_match(text)))
    })
}

const FLAGGED: &[&[Kind]] = &[&[Words, Words], &[Words, Words, Words]];
const GROUPED: &[&[Kind]] = &[&[Words, Words], &[Words, Words, Whole], &[Words, Words, Whole, Words]];

pub(super) const FUNCTIONS: &[Function] = functions! {
    scalar;
    "regexp_like" "regexp" "rlike": FLAGGED, Bool, |a| matches(a, by_dialect(a)) =>
        "whether a pattern is found";
    "regexp_match": FLAGGED, Texts, first_groups => "the groups of the first match, as a list";
    "regexp_match_groups": FLAGGED, By(list_of_lists), all_groups =>
        "the groups of the first match, or of each with flag `g`, as a list of lists";
    "regexp_count": &[&[Words, Words], &[Words, Words, Whole], &[Words, Words, Whole, Words]], Int, count =>
        "how often a pattern is found";
    "regexp_instr": &[
        &[Words, Words],
        &[Words, Words, Whole],
        &[Words, Words, Whole, Whole],
        &[Words, Words, Whole, Whole, Whole],
        &[Words, Words, Whole, Whole, Whole, Words],
        &[Words, Words, Whole, Whole, Whole, Words, Whole],
    ], Int,
        place => "the position at which a pattern is found";
    "regexp_matches": FLAGGED, Bool, |a| matches(a, compile) =>
        "whether a pattern is found",
        note("as in DuckDB; in dialect `postgres` a row with the groups of each match");
    "regexp_full_match": FLAGGED, Bool, |a| matches(a, compile_whole) =>
        "whether the whole text matches a pattern";
    "regexp_extract": GROUPED, Text, extract =>
        "the first match, or a group of it; an empty text if there is none";
    "regexp_extract_all": GROUPED, Texts, extract_all => "all matches, or a group of each, as a list";
    "regexp_substr": &[
        &[Words, Words],
        &[Words, Words, Whole],
        &[Words, Words, Whole, Whole],
        &[Words, Words, Whole, Whole, Words],
        &[Words, Words, Whole, Whole, Words, Whole],
    ], Text,
        substr => "the n-th match from a position on, or a group of it; null if there is none";
    "regexp_split_to_array" "string_split_regex" "str_split_regex" "regexp_split": FLAGGED, Texts, split =>
        "the parts between matches, as a list";
    "regexp_escape": &[&[Words]], Text, |a| map1::<Text, Str, _>(a, ::regex::escape) =>
        "the pattern that finds the text itself";
    "similar_to": FLAGGED, Bool, similar_to => "whether the whole text matches a pattern of SIMILAR TO";
    "like_escape": FLAGGED, Bool, |a| whole(a, |pattern, escape| of_like(pattern, escape, "s")) =>
        "LIKE with an escape character";
    "ilike_escape": FLAGGED, Bool, |a| whole(a, |pattern, escape| of_like(pattern, escape, "si")) =>
        "ILIKE with an escape character";
    "glob": &[&[Words, Words]], Bool, |a| {
        let mut known = Memo::new();
        map2::<Text, Text, Flag, Result<bool>>(a, |text, pattern| {
            Ok(known.get(pattern, of_glob)?.is_match(text))
        })
    } => "whether the whole text matches a pattern with `*`, `?` and `[…]`";
};
