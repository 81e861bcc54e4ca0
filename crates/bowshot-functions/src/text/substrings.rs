//! Parts of texts: found, replaced, chosen, split.

use crate::define::{Function, functions};
use crate::values::Kind::{self, Int as Whole, Many, Shown, Text as Words};
use crate::values::{Arguments, Int, Int64, Slice, Str, StrList, Text, fill, map2, map3};
use arrow::array::ArrayRef;
use datafusion::common::Result;

/// The byte at which the n-th character begins, counted from 0; the end if there are fewer.
fn byte_of(text: &str, character: usize) -> usize {
    text.char_indices().nth(character).map_or(text.len(), |(byte, _)| byte)
}

/// The position of a text in another one from a position on, counted from 1; 0 if it is not there.
fn found_at(wanted: &str, text: &str, from: i64) -> i64 {
    let Some(skipped) = usize::try_from(from).ok().and_then(|from| from.checked_sub(1)) else { return 0 };
    if skipped > text.chars().count() {
        return 0;
    }
    let begin = byte_of(text, skipped);
    let rest = text.get(begin..).unwrap_or_default();
    let Some(byte) = rest.find(wanted) else { return 0 };
    let before = rest.get(..byte).map_or(0, |before| before.chars().count());
    i64::try_from(skipped + before + 1).unwrap_or(i64::MAX)
}

fn locate(arguments: &Arguments) -> Result<ArrayRef> {
    if arguments.len() == 2 {
        return map2::<Text, Text, Int64, _>(arguments, |wanted, text| found_at(wanted, text, 1));
    }
    map3::<Text, Text, Int, Int64, _>(arguments, found_at)
}

/// MySQL's `insert`: the text as it is when the position lies outside of it.
fn insert(arguments: &Arguments) -> Result<ArrayRef> {
    let (texts, positions) = (arguments.read::<Text>(0)?, arguments.read::<Int>(1)?);
    let (lengths, added) = (arguments.read::<Int>(2)?, arguments.read::<Text>(3)?);
    fill::<Str, Result<Option<String>>>(arguments, |row| {
        let (Some(text), Some(position)) = (texts.get(row)?, positions.get(row)?) else { return Ok(None) };
        let (Some(length), Some(added)) = (lengths.get(row)?, added.get(row)?) else { return Ok(None) };
        let count = text.chars().count();
        let Some(skipped) = usize::try_from(position).ok().and_then(|position| position.checked_sub(1))
        else {
            return Ok(Some(text.to_owned()));
        };
        if skipped >= count {
            return Ok(Some(text.to_owned()));
        }
        let length = usize::try_from(length).unwrap_or(count);
        let (begin, end) = (byte_of(text, skipped), byte_of(text, skipped.saturating_add(length)));
        let (before, after) = (text.get(..begin).unwrap_or_default(), text.get(end..).unwrap_or_default());
        arguments.check_size(before.len() + added.len() + after.len())?;
        Ok(Some(format!("{before}{added}{after}")))
    })
}

/// The position of the first value among the others, 0 if it is not among them.
fn field(arguments: &Arguments) -> Result<ArrayRef> {
    let wanted = arguments.read::<Text>(0)?;
    let others =
        (1..arguments.len()).map(|position| arguments.read::<Text>(position)).collect::<Result<Vec<_>>>()?;
    fill::<Int64, Result<i64>>(arguments, |row| {
        let Some(wanted) = wanted.get(row)? else { return Ok(0) };
        for (position, other) in (1..).zip(&others) {
            if other.get(row)? == Some(wanted) {
                return Ok(position);
            }
        }
        Ok(0)
    })
}

fn elt(arguments: &Arguments) -> Result<ArrayRef> {
    let numbers = arguments.read::<Int>(0)?;
    let texts =
        (1..arguments.len()).map(|position| arguments.read::<Text>(position)).collect::<Result<Vec<_>>>()?;
    fill::<Slice<'_>, Result<Option<&str>>>(arguments, |row| {
        let Some(number) = numbers.get(row)? else { return Ok(None) };
        let chosen = usize::try_from(number).ok().and_then(|number| texts.get(number.checked_sub(1)?));
        chosen.map_or(Ok(None), |texts| texts.get(row))
    })
}

/// All parts between separators; an empty separator leaves single characters.
fn split(arguments: &Arguments) -> Result<ArrayRef> {
    map2::<Text, Text, StrList, _>(arguments, |text: &str, separator: &str| {
        let own = |part: &str| Some(part.to_owned());
        if separator.is_empty() {
            return text.chars().map(|character| Some(character.to_string())).collect::<Vec<_>>();
        }
        text.split(separator).map(own).collect::<Vec<_>>()
    })
}

fn strcmp(arguments: &Arguments) -> Result<ArrayRef> {
    map2::<Text, Text, Int64, _>(arguments, |one: &str, other: &str| one.cmp(other) as i64)
}

const FOUND: &[&[Kind]] = &[&[Words, Words], &[Words, Words, Whole]];

pub(super) const FUNCTIONS: &[Function] = functions! {
    scalar;
    "locate" "charindex": FOUND, Int, locate =>
        "the position of the first text in the second, from a position on";
    "insert": &[&[Words, Whole, Whole, Words]], Text, insert =>
        "so many characters from a position on replaced";
    "field": &[&[Shown, Many(&Shown)]], Int, field =>
        "the position of the first value among the others, 0 if it is not among them";
    "elt": &[&[Whole, Many(&Words)]], Text, elt => "the text with that number";
    "string_split" "str_split" "split": &[&[Words, Words]], Texts, split =>
        "the parts between separators, as a list";
    "strcmp": &[&[Words, Words]], Int, strcmp => "-1, 0 or 1 as texts compare";
};
