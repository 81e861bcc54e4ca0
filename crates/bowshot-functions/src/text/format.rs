//! Texts from a pattern: PostgreSQL's `format('%s')`, DuckDB's `format('{}')`, C's `printf`.

use super::printf;
use super::quote::{identifier, literal};
use crate::define::{Function, functions};
use crate::number::with_commas;
use crate::values::Kind::{self, Float as Number, Int as Whole, Many, Shown, Text as Words};
use crate::values::{Arguments, Float, Int, Real, Rows, Str, Text, fill, map2};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_datafusion_err, exec_err};

pub(super) struct Values<'a> {
    rows: Vec<Rows<'a, Text>>,
}

impl<'a> Values<'a> {
    fn open(arguments: &'a Arguments) -> Result<Self> {
        let rows =
            (1..arguments.len()).map(|position| arguments.read::<Text>(position)).collect::<Result<_>>()?;
        Ok(Self { rows })
    }

    /// The value with this number, counted from 0; none if it is null.
    pub(super) fn get(&self, position: usize, row: usize) -> Result<Option<&'a str>> {
        match self.rows.get(position) {
            Some(rows) => rows.get(row),
            None => exec_err!("too few arguments for the pattern: there is no argument {}", position + 1),
        }
    }
}

fn by_pattern(
    arguments: &Arguments,
    write: fn(&str, &Values<'_>, usize) -> Result<String>,
) -> Result<ArrayRef> {
    let (patterns, values) = (arguments.read::<Text>(0)?, Values::open(arguments)?);
    fill::<Str, Result<Option<String>>>(arguments, |row| {
        patterns.get(row)?.map(|pattern| write(pattern, &values, row)).transpose()
    })
}

/// MySQL's `format(number, places)`, or a pattern.
fn format(arguments: &Arguments) -> Result<ArrayRef> {
    if *arguments.data_type(0)? == DataType::Float64 {
        return map2::<Float, Int, Str, _>(arguments, |number: f64, places: i64| {
            with_commas(number, usize::try_from(places.clamp(0, 30)).unwrap_or(0))
        });
    }
    by_pattern(arguments, |pattern, values, row| {
        if pattern.contains('{') && !pattern.contains('%') {
            printf::write_braces(pattern, values, row)
        } else {
            write_percent(pattern, values, row)
        }
    })
}

/// `%s`, `%I`, `%L` and `%%`, with positions (`%2$s`) and widths (`%-10s`).
fn write_percent(pattern: &str, values: &Values<'_>, row: usize) -> Result<String> {
    let (mut text, mut rest, mut next) = (String::new(), pattern, 0_usize);
    while let Some(at) = rest.find('%') {
        let (before, after) = rest.split_at(at);
        text.push_str(before);
        let spec = after.get(1..).unwrap_or_default();
        if let Some(after) = spec.strip_prefix('%') {
            text.push('%');
            rest = after;
            continue;
        }
        let Some(end) = spec.find(|c: char| c.is_ascii_alphabetic()) else {
            return exec_err!("unterminated format specifier in `{pattern}`");
        };
        let (between, kind_and_rest) = spec.split_at(end);
        let (position, width) = match between.split_once('$') {
            Some((position, width)) => (position.parse::<usize>().ok().and_then(|n| n.checked_sub(1)), width),
            None => (Some(next), between),
        };
        let position = position.ok_or_else(|| {
            exec_datafusion_err!("format specifies argument 0, but arguments are numbered from 1")
        })?;
        let value = values.get(position, row)?;
        next = position + 1;
        let kind = kind_and_rest.chars().next().unwrap_or_default();
        let shown = match (kind, value) {
            ('s', value) => value.unwrap_or_default().to_owned(),
            ('I', Some(value)) => identifier(value),
            ('I', None) => return exec_err!("null values cannot be formatted as an SQL identifier"),
            ('L', Some(value)) => literal(value),
            ('L', None) => "NULL".to_owned(),
            // Letters of C, which PostgreSQL lacks.
            _ => return printf::write(pattern, values, row),
        };
        text.push_str(&printf::in_width(&shown, width)?);
        rest = kind_and_rest.get(1..).unwrap_or_default();
    }
    text.push_str(rest);
    Ok(text)
}

/// PostgreSQL's `to_number`: the digits, sign and point of a text that a pattern describes.
fn to_number(text: &str, pattern: &str) -> Result<f64> {
    let negative = text.contains('-') || (text.contains('<') && text.contains('>'));
    let digits: String = text.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
    let number: f64 = digits.parse().map_err(|_| {
        exec_datafusion_err!("invalid input syntax for type numeric: `{text}` by `{pattern}`")
    })?;
    let shifted = match pattern.to_ascii_uppercase().split_once('V') {
        Some((_, behind)) => {
            let places = behind.chars().filter(|c| matches!(c, '0' | '9')).count();
            number / 10_f64.powi(i32::try_from(places).unwrap_or(0))
        }
        None => number,
    };
    Ok(if negative { -shifted } else { shifted })
}

const PATTERN: &[&[Kind]] = &[&[Words, Many(&Shown)]];

pub(super) const FUNCTIONS: &[Function] = functions! {
    scalar;
    "format": &[&[Words, Many(&Shown)], &[Number, Whole]], Text, format =>
        "a pattern with values in the place of `%s`, as names for `%I`, as literals for `%L`, or of DuckDB's `{}`",
        note("a number and a count of places as in MySQL");
    "printf" "format_string": PATTERN, Text, |a| by_pattern(a, printf::write) =>
        "a pattern of C: `%d`, `%5.2f`, `%s`, `%x`";
    "to_number": &[&[Words, Words]], Float, |a| map2::<Text, Text, Real, Result<f64>>(a, to_number) =>
        "the number of a text by a pattern of PostgreSQL";
};
