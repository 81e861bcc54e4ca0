//! Functions that write and read dates by a pattern. Patterns with `%` are those of strftime or MySQL, the others
//! PostgreSQL's, or Java's where Spark has the function.

use super::calendar::SECOND;
use super::calendar::split;
use super::parsed_fields::Gathered;
use super::strftime::{self, Style};
use super::{java_pattern, pg_format, pg_number_format};
use crate::define::{Function, functions};
use crate::values::Kind::{self, Float as Number, Interval as Span, Stamp as At, Text as Words, Texts};
use crate::values::{
    Arguments, Column, Float, Int64, Memo, Moment, Rows, Stamp, Stamps, Str, Text, fill, map2,
};
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err};

/// Local time, and how many seconds the zone is ahead of UTC if there is one.
struct Times<'a> {
    local: Rows<'a, Stamp>,
    utc: Option<Rows<'a, Moment>>,
}

impl<'a> Times<'a> {
    fn open(arguments: &'a Arguments, position: usize) -> Result<Self> {
        let zoned = matches!(arguments.data_type(position)?, DataType::Timestamp(_, Some(_)));
        let utc = if zoned { Some(arguments.read(position)?) } else { None };
        Ok(Self { local: arguments.read(position)?, utc })
    }

    fn get(&self, row: usize) -> Result<Option<(i64, Option<i64>)>> {
        let Some(local) = self.local.get(row)? else { return Ok(None) };
        let utc = self.utc.as_ref().map_or(Ok(None), |utc| utc.get(row))?;
        Ok(Some((local, utc.map(|utc| (local - utc) / SECOND))))
    }
}

fn write_percent(arguments: &Arguments, style: Style) -> Result<ArrayRef> {
    // SQLite has the pattern first; a pattern is never a timestamp.
    let swapped = *arguments.data_type(0)? == DataType::Utf8 && {
        let first = arguments.read::<Text>(0)?;
        arguments.rows > 0 && first.get(0)?.is_some_and(|text| text.contains('%'))
    };
    let (times, patterns) = if swapped {
        (Times::open(arguments, 1)?, arguments.read::<Text>(0)?)
    } else {
        (Times::open(arguments, 0)?, arguments.read::<Text>(1)?)
    };
    let mut known = Memo::new();
    fill::<Str, Result<Option<String>>>(arguments, |row| {
        let (Some((local, offset)), Some(pattern)) = (times.get(row)?, patterns.get(row)?) else {
            return Ok(None);
        };
        strftime::write(style, known.get(pattern, strftime::pieces)?, split(local)?, offset).map(Some)
    })
}

/// MySQL's pattern if there is a `%` in it, else Java's.
fn date_format(arguments: &Arguments) -> Result<ArrayRef> {
    let (times, patterns) = (Times::open(arguments, 0)?, arguments.read::<Text>(1)?);
    let mut known = Memo::new();
    fill::<Str, Result<Option<String>>>(arguments, |row| {
        let (Some((local, offset)), Some(pattern)) = (times.get(row)?, patterns.get(row)?) else {
            return Ok(None);
        };
        if !pattern.contains('%') {
            return java_pattern::write(pattern, split(local)?, offset).map(Some);
        }
        strftime::write(Style::Mysql, known.get(pattern, strftime::pieces)?, split(local)?, offset).map(Some)
    })
}

/// What a text that does not fit its pattern gives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Misfit {
    Error,
    Null,
}

fn read_percent(arguments: &Arguments, style: Style, misfit: Misfit) -> Result<ArrayRef> {
    let texts = arguments.read::<Text>(0)?;
    let lists = matches!(arguments.data_type(1)?, DataType::List(_));
    let patterns = if lists { None } else { Some(arguments.read::<Text>(1)?) };
    let alternatives = if lists { alternatives(arguments.array(1)?)? } else { Vec::new() };
    let mut known = Memo::new();
    fill::<Stamps, Result<Option<i64>>>(arguments, |row| {
        let Some(text) = texts.get(row)? else { return Ok(None) };
        let found = match &patterns {
            Some(patterns) => {
                let Some(pattern) = patterns.get(row)? else { return Ok(None) };
                strftime::read(style, known.get(pattern, strftime::pieces)?, text)
                    .and_then(|found| found.instant())
            }
            None => alternatives.iter().find_map(|pattern| strftime::read(style, pattern, text)?.instant()),
        };
        if found.is_none() && misfit == Misfit::Error {
            return exec_err!("`{text}` does not fit the pattern of `{}`", arguments.function);
        }
        Ok(found)
    })
}

/// The patterns of a constant list, which are tried one after the other.
fn alternatives(array: &ArrayRef) -> Result<Vec<Vec<strftime::Piece>>> {
    let lists = array.as_list::<i32>();
    if lists.len() != 1 || lists.is_null(0) {
        return exec_err!("a list of patterns must be constant");
    }
    let texts = lists.value(0);
    texts.as_string::<i32>().iter().flatten().map(strftime::pieces).collect()
}

/// MySQL's and Spark's `from_unixtime`.
fn from_unixtime(arguments: &Arguments) -> Result<ArrayRef> {
    if arguments.len() == 1 {
        return crate::values::map1::<Float, Stamps, _>(arguments, super::constructors::micros_of_seconds);
    }
    let mut known = Memo::new();
    map2::<Float, Text, Str, Result<String>>(arguments, |seconds, pattern| {
        let time = split(super::constructors::micros_of_seconds(seconds)?)?;
        if !pattern.contains('%') {
            return java_pattern::write(pattern, time, None);
        }
        strftime::write(Style::Mysql, known.get(pattern, strftime::pieces)?, time, None)
    })
}

fn from_unixtime_type(given: &[DataType]) -> Result<DataType> {
    Ok(match given {
        [_] => DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, None),
        _ => DataType::Utf8,
    })
}

/// Seconds since 1970 of a text by a pattern.
pub(super) fn read_seconds(arguments: &Arguments) -> Result<ArrayRef> {
    map2::<Text, Text, Int64, Result<Option<i64>>>(arguments, |text, pattern| {
        let found: Option<Gathered> = if pattern.contains('%') {
            strftime::read(Style::Mysql, &strftime::pieces(pattern)?, text)
        } else {
            super::pg_parse::read(pattern, text).ok()
        };
        Ok(found.and_then(|found| found.instant()).map(|micros| micros.div_euclid(SECOND)))
    })
}

fn to_char(arguments: &Arguments) -> Result<ArrayRef> {
    let patterns = arguments.read::<Text>(1)?;
    match arguments.data_type(0)? {
        DataType::Interval(_) => {
            let spans = arguments.read::<crate::values::Interval>(0)?;
            let mut known = Memo::new();
            fill::<Str, Result<Option<String>>>(arguments, |row| {
                let (Some(span), Some(pattern)) = (spans.get(row)?, patterns.get(row)?) else {
                    return Ok(None);
                };
                pg_format::write_interval(known.get(pattern, pg_format::pieces)?, span).map(Some)
            })
        }
        given if given.is_numeric() => {
            let shown = arrow::compute::cast(arguments.array(0)?, &DataType::Utf8)?;
            let numbers = Text::open(&shown)?;
            let constant = arguments.array(0)?.len() != arguments.rows;
            fill::<Str, Result<Option<String>>>(arguments, |row| {
                let number = Text::get(&numbers, if constant { 0 } else { row })?;
                let (Some(number), Some(pattern)) = (number, patterns.get(row)?) else { return Ok(None) };
                pg_number_format::write(number, pattern).map(Some)
            })
        }
        _ => stamps_to_char(arguments),
    }
}

fn stamps_to_char(arguments: &Arguments) -> Result<ArrayRef> {
    let (times, patterns) = (Times::open(arguments, 0)?, arguments.read::<Text>(1)?);
    let (mut known, mut percents) = (Memo::new(), Memo::new());
    fill::<Str, Result<Option<String>>>(arguments, |row| {
        let (Some((local, offset)), Some(pattern)) = (times.get(row)?, patterns.get(row)?) else {
            return Ok(None);
        };
        let time = split(local)?;
        // DataFusion's own patterns keep their meaning.
        if pattern.contains('%') {
            return strftime::write(Style::Strftime, percents.get(pattern, strftime::pieces)?, time, offset)
                .map(Some);
        }
        pg_format::write(known.get(pattern, pg_format::pieces)?, time, offset).map(Some)
    })
}

const WRITES: &[&[Kind]] = &[&[At, Words]];
const READS: &[&[Kind]] = &[&[Words, Words], &[Words, Texts]];

pub(super) const FUNCTIONS: &[Function] = functions! {
    scalar;
    "strftime": &[&[At, Words], &[Words, At]], Text, |a| write_percent(a, Style::Strftime) =>
        "a date as text by a pattern of strftime (`%Y-%m-%d`)";
    "strptime": READS, Stamp, |a| read_percent(a, Style::Strftime, Misfit::Error) =>
        "the timestamp of a text by a pattern of strftime, or by the first of a list that fits";
    "try_strptime": READS, Stamp, |a| read_percent(a, Style::Strftime, Misfit::Null) =>
        "the same, null when the text does not fit";
    "date_format" "time_format": WRITES, Text, date_format =>
        "a date as text by a pattern of MySQL (`%Y-%m-%d %H:%i`), or of Java if it has no `%`";
    "str_to_date": &[&[Words, Words]], Stamp, |a| read_percent(a, Style::Mysql, Misfit::Null) =>
        "the timestamp of a text by a pattern of MySQL, null when it does not fit";
    "from_unixtime": &[&[Number], &[Number, Words]], By(from_unixtime_type), from_unixtime =>
        "the timestamp of seconds since 1970, or its text by a pattern of MySQL or Java";
    "to_char" "to_varchar": &[&[At, Words], &[Span, Words], &[Kind::Number, Words]], Text, to_char =>
        "a timestamp, interval or number as text by a pattern of PostgreSQL (`YYYY-MM-DD`, `FM999,990.00`)",
        note("patterns with `%` are those of strftime");
};
