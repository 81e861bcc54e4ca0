//! `regexp_replace`, with what stands for groups in the replacements of PostgreSQL and MySQL.

use super::regex::{Pattern, Spans};
use super::regex_functions::{Searches, behind, by_dialect, counted, part};
use crate::define::{Function, Gives, scalar};
use crate::values::Kind::{Int as Whole, Text as Words};
use crate::values::{Arguments, Int, Memo, Rows, Slice, Str, Text, fill};
use ::regex::Regex;
use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err};

#[derive(Debug, PartialEq)]
enum Piece {
    Text(String),
    Group(usize),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Groups {
    /// `\1`, `\&`.
    Postgres,
    /// The same, and DuckDB's `\0`.
    Ansi,
    /// `$1`, and MariaDB's `\1`.
    MySql,
}

impl Groups {
    fn of(arguments: &Arguments) -> Self {
        match arguments.config.sql_parser.dialect.to_string().to_ascii_lowercase().as_str() {
            "mysql" => Self::MySql,
            "postgresql" | "postgres" => Self::Postgres,
            _ => Self::Ansi,
        }
    }

    /// The group that a character behind a backslash stands for.
    fn escaped(self, character: char) -> Option<usize> {
        match character {
            '&' if self != Self::MySql => Some(0),
            '0' if self == Self::Postgres => None,
            digit => digit.to_digit(10).and_then(|digit| usize::try_from(digit).ok()),
        }
    }
}

fn pieces(replacement: &str, groups: Groups) -> Vec<Piece> {
    let (mut found, mut text) = (Vec::new(), String::new());
    let mut characters = replacement.chars().peekable();
    while let Some(character) = characters.next() {
        let group = match (character, characters.peek().copied()) {
            ('\\', Some(next)) if groups.escaped(next).is_some() => groups.escaped(next),
            ('$', Some(next)) if groups == Groups::MySql => {
                next.to_digit(10).and_then(|digit| usize::try_from(digit).ok())
            }
            ('\\', Some(next)) if next == '\\' || groups == Groups::MySql => {
                characters.next();
                text.push(next);
                continue;
            }
            _ => None,
        };
        match group {
            Some(group) => {
                characters.next();
                if !text.is_empty() {
                    found.push(Piece::Text(std::mem::take(&mut text)));
                }
                found.push(Piece::Group(group));
            }
            None => text.push(character),
        }
    }
    if !text.is_empty() {
        found.push(Piece::Text(text));
    }
    found
}

#[derive(Debug, Clone, Copy)]
enum Which {
    All,
    Number(usize),
}

fn replaced(text: &str, pattern: &Pattern, pieces: &[Piece], which: Which) -> Result<String> {
    let (mut found, mut begin) = (String::with_capacity(text.len()), 0);
    for (at, spans) in pattern.matches(text).enumerate() {
        let spans: Spans = spans?;
        let Some(whole) = spans.first().cloned().flatten() else { continue };
        match which {
            Which::Number(number) if at + 1 < number => continue,
            _ => {}
        }
        found.push_str(text.get(begin..whole.start).unwrap_or_default());
        for piece in pieces {
            match piece {
                Piece::Text(text) => found.push_str(text),
                Piece::Group(group) => found.push_str(part(text, &spans, *group).unwrap_or_default()),
            }
        }
        begin = whole.end;
        if matches!(which, Which::Number(_)) {
            break;
        }
    }
    found.push_str(text.get(begin..).unwrap_or_default());
    Ok(found)
}

fn replace(arguments: &Arguments) -> Result<ArrayRef> {
    if let Some(extracted) = extracted(arguments)? {
        return Ok(extracted);
    }
    let groups = Groups::of(arguments);
    // `(…, flags)`, or `(…, start, n, flags)`.
    let flags_first = arguments.len() == 4 && *arguments.data_type(3)? == DataType::Utf8;
    let number = |position| if flags_first { Ok(None) } else { arguments.read_if_given::<Int>(position) };
    let (starts, counts) = (number(3)?, number(4)?);
    let replacements = arguments.read::<Text>(2)?;
    let flags = if flags_first { 3 } else { 5 };
    let mut searches = Searches::open(arguments, flags, by_dialect(arguments))?;
    let mut known = Memo::new();
    fill::<Str, Result<Option<String>>>(arguments, |row| {
        let Some(replacement) = replacements.get(row)? else { return Ok(None) };
        let Some(start) = counted(arguments, starts.as_ref(), row)? else { return Ok(None) };
        let everywhere = groups == Groups::MySql || searches.flags(row)?.contains('g');
        let Some(which) = which(counts.as_ref(), row, everywhere)? else { return Ok(None) };
        let Some((text, pattern)) = searches.get(row)? else { return Ok(None) };
        let pieces = known.get(replacement, |text| Ok(pieces(text, groups)))?;
        let (before, rest) = behind(text, start);
        let replaced = replaced(rest, pattern, pieces, which)?;
        Ok(Some(if before.is_empty() { replaced } else { format!("{before}{replaced}") }))
    })
}

/// Match number 0 is all of them.
fn which(counts: Option<&Rows<'_, Int>>, row: usize, everywhere: bool) -> Result<Option<Which>> {
    let Some(counts) = counts else {
        return Ok(Some(if everywhere { Which::All } else { Which::Number(1) }));
    };
    let Some(count) = counts.get(row)? else { return Ok(None) };
    match usize::try_from(count) {
        Ok(0) => Ok(Some(Which::All)),
        Ok(number) => Ok(Some(Which::Number(number))),
        Err(_) => exec_err!("the number of a match of `regexp_replace` is 0 or greater"),
    }
}

/// `regexp_replace(text, '^…(…)….*$', '\1')`, which takes a part out of each text: what is behind the group need not be looked
/// at, and no text has to be made. `None` for all else.
fn extracted(arguments: &Arguments) -> Result<Option<ArrayRef>> {
    let constant =
        |position| Ok::<_, datafusion::error::DataFusionError>(arguments.array(position)?.len() == 1);
    if arguments.len() != 3 || arguments.is_mysql() || !constant(1)? || !constant(2)? {
        return Ok(None);
    }
    let (texts, patterns) = (arguments.read::<Text>(0)?, arguments.read::<Text>(1)?);
    let (Some(pattern), Some(replacement)) = (patterns.get(0)?, arguments.read::<Text>(2)?.get(0)?) else {
        return Ok(None);
    };
    if pieces(replacement, Groups::of(arguments)) != [Piece::Group(1)] {
        return Ok(None);
    }
    let Some(regex) = beginning(pattern) else { return Ok(None) };
    let mut places = regex.capture_locations();
    let found = fill::<Slice<'_>, Result<Option<&str>>>(arguments, |row| {
        let Some(text) = texts.get(row)? else { return Ok(None) };
        if regex.captures_read(&mut places, text).is_none() {
            return Ok(Some(text));
        }
        Ok(Some(places.get(1).and_then(|(from, to)| text.get(from..to)).unwrap_or_default()))
    });
    found.map(Some)
}

/// The expression without the `.*$` at its end, if what it finds before that is the same.
fn beginning(pattern: &str) -> Option<Regex> {
    let before = pattern.strip_prefix('^')?.strip_suffix(".*$")?;
    let special = before.contains('|') || before.ends_with('\\') || before.contains(r"\m");
    // Options within an expression may change what a point is.
    if special || before.replace("(?:", "").contains("(?") {
        return None;
    }
    let regex = ::regex::RegexBuilder::new(&format!("^{before}")).dot_matches_new_line(true).build().ok()?;
    (regex.captures_len() == 2).then_some(regex)
}

pub(super) const FUNCTIONS: &[Function] = &[scalar(
    "regexp_replace",
    "what a pattern finds replaced, with flag `g` everywhere; `\\1` is a group, `\\&` the match",
    &[
        &[Words, Words, Words],
        &[Words, Words, Words, Words],
        &[Words, Words, Words, Whole],
        &[Words, Words, Words, Whole, Whole],
        &[Words, Words, Words, Whole, Whole, Words],
    ],
    Gives::Text,
    replace,
)
.note("in dialect `mysql` everywhere, and groups are `$1`")];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::regex::compile_as_postgres;

    #[test]
    fn groups_are_written_as_in_each_dialect() {
        assert_eq!(pieces("$1", Groups::MySql), [Piece::Group(1)]);
        assert_eq!(pieces(r"\$1", Groups::MySql), [Piece::Text("$1".to_owned())]);
        assert_eq!(pieces(r"\0", Groups::Postgres), [Piece::Text(r"\0".to_owned())]);
        assert_eq!(pieces(r"\0", Groups::Ansi), [Piece::Group(0)]);
    }

    #[test]
    fn only_what_is_the_same_is_cut_short() {
        assert!(beginning(r"^https?://(?:www\.)?([^/]+)/.*$").is_some());
        for pattern in [r"^(a)\.*$", "^a(b)|c.*$", "^(a)(?m).*$", "(a).*$", "^(a)(b).*$"] {
            assert!(beginning(pattern).is_none(), "{pattern}");
        }
    }

    #[test]
    fn endless_searches_end() {
        let pattern = compile_as_postgres(r"(x+x+)+y\1", "").unwrap();
        assert!(!matches!(pattern.is_match(&"x".repeat(200)), Ok(true)));
    }
}
