//! Repeated and padded texts, up to the limit of a batch.

use crate::define::{Function, functions};
use crate::values::Kind::{self, Float as Number, Int as Whole, Text as Words};
use crate::values::{Arguments, Float, Int, Str, Text, fill, get_or, map1, map2};
use arrow::array::ArrayRef;
use datafusion::common::Result;

/// A length that is asked for; what is negative is nothing.
fn length(asked: i64) -> usize {
    usize::try_from(asked.max(0)).unwrap_or(usize::MAX)
}

fn repeated(arguments: &Arguments, text: &str, count: i64) -> Result<String> {
    let count = length(count);
    arguments.check_size(text.len().saturating_mul(count))?;
    Ok(if text.is_empty() { String::new() } else { text.repeat(count) })
}

fn repeat(arguments: &Arguments) -> Result<ArrayRef> {
    map2::<Text, Int, Str, Result<String>>(arguments, |text, count| repeated(arguments, text, count))
}

#[derive(Clone, Copy)]
enum End {
    Left,
    Right,
}

/// PostgreSQL's `lpad` and `rpad`: a text that is too long is cut at its end; an empty filling adds nothing.
fn pad(arguments: &Arguments, end: End) -> Result<ArrayRef> {
    let (texts, lengths) = (arguments.read::<Text>(0)?, arguments.read::<Int>(1)?);
    let fillings = arguments.read_if_given::<Text>(2)?;
    fill::<Str, Result<Option<String>>>(arguments, |row| {
        let (Some(text), Some(asked)) = (texts.get(row)?, lengths.get(row)?) else { return Ok(None) };
        let Some(filling) = get_or(fillings.as_ref(), row, " ")? else { return Ok(None) };
        padded(arguments, text, length(asked), (filling, end)).map(Some)
    })
}

fn padded(arguments: &Arguments, text: &str, wanted: usize, (filling, end): (&str, End)) -> Result<String> {
    let has = text.chars().count();
    if wanted <= has {
        return Ok(text.chars().take(wanted).collect());
    }
    if filling.is_empty() {
        return Ok(text.to_owned());
    }
    let missing = wanted - has;
    // Four bytes are the most that a character takes.
    arguments.check_size(missing.saturating_mul(if filling.is_ascii() { 1 } else { 4 }))?;
    let added: String = filling.chars().cycle().take(missing).collect();
    Ok(match end {
        End::Left => added + text,
        End::Right => format!("{text}{added}"),
    })
}

/// DuckDB's bar of blocks, in eighths.
fn bar(arguments: &Arguments) -> Result<ArrayRef> {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let (values, lows) = (arguments.read::<Float>(0)?, arguments.read::<Float>(1)?);
    let highs = arguments.read::<Float>(2)?;
    let widths = arguments.read_if_given::<Float>(3)?;
    fill::<Str, Result<Option<String>>>(arguments, |row| {
        let (Some(value), Some(low), Some(high)) = (values.get(row)?, lows.get(row)?, highs.get(row)?) else {
            return Ok(None);
        };
        let width = get_or(widths.as_ref(), row, 80.0)?.unwrap_or(80.0).clamp(1.0, 1000.0);
        let share = ((value - low) / (high - low)).clamp(0.0, 1.0);
        let share = if share.is_finite() { share } else { 0.0 };
        let eighths = (share * width * 8.0).floor() as usize;
        let text = "█".repeat(eighths / 8) + PARTS.get(eighths % 8).copied().unwrap_or_default();
        let missing = (width as usize).saturating_sub(text.chars().count());
        Ok(Some(text + &" ".repeat(missing)))
    })
}

const PADDED: &[&[Kind]] = &[&[Words, Whole], &[Words, Whole, Words]];

pub(super) const FUNCTIONS: &[Function] = functions! {
    scalar;
    "repeat" "replicate": &[&[Words, Whole]], Text, repeat => "the text so many times";
    "space": &[&[Whole]], Text, |a| map1::<Int, Str, Result<String>>(a, |count| repeated(a, " ", count)) =>
        "so many blanks";
    "lpad": PADDED, Text, |a| pad(a, End::Left) => "filled up at the left to a length, or cut to it";
    "rpad": PADDED, Text, |a| pad(a, End::Right) => "filled up at the right to a length, or cut to it";
    "bar": &[&[Number, Number, Number], &[Number, Number, Number, Number]], Text, bar =>
        "a bar of blocks for a number between two others";
};
