//! Dates, timestamps, intervals, numbers, bytes, arrays and UUIDs from text. Arrow parses what it can; this file has the other
//! forms of PostgreSQL: `2024-01-01 12:00`, times in the hour in which clocks change, a zone that a timestamp without one
//! ignores, every form of an interval.

use super::functions::on_array;
use super::uuids::read_uuid;
use super::{casts, floats, numerics, storage_type, zone};
use bowshot_api::{Error, Reason, unsupported_time};
use bowshot_functions::{read_time, read_time_of_day};
use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, Date32Array, FixedSizeBinaryBuilder, IntervalMonthDayNanoArray,
    ListArray, ListBuilder, StringArray, StringBuilder, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options, interleave};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, IntervalMonthDayNano, IntervalUnit, TimeUnit};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

const MICROS_OF_DAY: i64 = 86_400_000_000;

/// Whether such values are ours to read.
pub(super) fn is_ours(to: &DataType) -> bool {
    matches!(
        to,
        DataType::Timestamp(..)
            | DataType::Date32
            | DataType::Time64(_)
            | DataType::Float32
            | DataType::Float64
            | DataType::Interval(_)
            | DataType::FixedSizeBinary(16)
            | DataType::List(_)
    ) || to.is_decimal()
}

/// Whether a cast of one to the other is ours.
pub(super) fn reads(from: &DataType, to: &DataType) -> bool {
    from.is_string() && is_ours(to)
        || numerics::may_lose_all(from, to)
        || numerics::rounds(from, to)
        || floats::may_overflow(from, to)
}

/// Texts in a type; where it is tried, what is none is NULL.
pub(super) fn values(texts: &ArrayRef, to: &DataType, tries: bool) -> Result<ArrayRef> {
    // The text that a CASE seemed to be has become this type: another branch has it.
    if texts.data_type() == to {
        return Ok(Arc::clone(texts));
    }
    match to {
        DataType::Binary if texts.data_type().is_binary() => Ok(cast(texts, to)?),
        DataType::Interval(_) => intervals(texts, to, tries),
        DataType::FixedSizeBinary(_) => uuids(texts, tries),
        DataType::Binary => bytes(texts, tries),
        DataType::List(item) => arrays(texts, item, tries),
        to if to.is_decimal() => numerics::values(texts, to, tries),
        to if to.is_floating() => floats::values(texts, to, tries),
        _ => times(texts, to, tries),
    }
}

fn refused(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn intervals(texts: &ArrayRef, to: &DataType, tries: bool) -> Result<ArrayRef> {
    let texts = cast(texts, &DataType::Utf8)?;
    let read = texts.as_string::<i32>().iter().map(|text| {
        let Some(text) = text else { return Ok(None) };
        match bowshot_sql::read_interval(text) {
            Ok(read) => Ok(Some(IntervalMonthDayNano::new(read.months, read.days, read.nanoseconds))),
            Err(_) if tries => Ok(None),
            Err(error) => Err(refused(error)),
        }
    });
    let read: ArrayRef = Arc::new(read.collect::<Result<IntervalMonthDayNanoArray>>()?);
    if *to == DataType::Interval(IntervalUnit::MonthDayNano) { Ok(read) } else { Ok(cast(&read, to)?) }
}

fn uuids(texts: &ArrayRef, tries: bool) -> Result<ArrayRef> {
    let texts = cast(texts, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>();
    let mut uuids = FixedSizeBinaryBuilder::with_capacity(texts.len(), 16);
    for text in texts {
        match text.map(read_uuid) {
            Some(Ok(uuid)) => uuids.append_value(uuid.as_bytes())?,
            Some(Err(error)) if !tries => return Err(refused(error)),
            _ => uuids.append_null(),
        }
    }
    Ok(Arc::new(uuids.finish()))
}

fn bytes(texts: &ArrayRef, tries: bool) -> Result<ArrayRef> {
    let texts = cast(texts, &DataType::Utf8)?;
    let read = texts.as_string::<i32>().iter().map(|text| {
        let Some(text) = text else { return Ok(None) };
        match casts::text_bytes(text) {
            None if !tries && casts::has_odd_digits(text) => {
                let what = "invalid hexadecimal data: odd number of digits";
                Err(refused(Error::invalid(what).with_reason(Reason::InvalidValue)))
            }
            None if !tries => {
                let what = format!("invalid input syntax for type bytea: \"{text}\"");
                Err(refused(Error::invalid(what).with_reason(Reason::InvalidText)))
            }
            read => Ok(read),
        }
    });
    Ok(Arc::new(read.collect::<Result<BinaryArray>>()?))
}

/// `{1,NULL,"a b"}`. Arrow's own cast would make an array of the one text.
fn arrays(texts: &ArrayRef, item: &FieldRef, tries: bool) -> Result<ArrayRef> {
    let texts = cast(texts, &DataType::Utf8)?;
    let is_nested = matches!(item.data_type(), DataType::List(_));
    let mut lists = ListBuilder::new(StringBuilder::new());
    for text in texts.as_string::<i32>() {
        match text.map(|text| (text, elements(text, is_nested))) {
            Some((_, Some(found))) => {
                found.into_iter().for_each(|element| lists.values().append_option(element));
                lists.append(true);
            }
            Some((text, None)) if !tries => {
                let what = format!("malformed array literal: \"{text}\"");
                return Err(refused(Error::invalid(what).with_reason(Reason::InvalidText)));
            }
            _ => lists.append(false),
        }
    }
    let (_, offsets, elements, nulls) = lists.finish().into_parts();
    let elements = match item.data_type() {
        DataType::List(item) => arrays(&elements, item, tries)?,
        to if tries && is_ours(to) => values(&elements, to, true)?,
        to if tries => cast(&elements, to)?,
        to => storage_type::converted(&elements, to)?,
    };
    Ok(Arc::new(ListArray::try_new(Arc::clone(item), offsets, elements, nulls)?))
}

/// What stands in an array, also arrays as texts; `None` for a text that is none.
fn elements(text: &str, is_nested: bool) -> Option<Vec<Option<String>>> {
    let plain = bowshot_sql::rewrite::array_elements(text);
    if !is_nested || plain.as_ref().is_some_and(Vec::is_empty) {
        return plain;
    }
    let parts = bowshot_sql::rewrite::array_parts(text)?;
    Some(parts.into_iter().map(|part| Some(part.to_owned())).collect())
}

fn times(texts: &ArrayRef, to: &DataType, tries: bool) -> Result<ArrayRef> {
    let fast = cast_with_options(texts, to, &CastOptions { safe: true, ..CastOptions::default() })?;
    let texts = cast(texts, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>();
    // Arrow converts from a zone that stands in the text, and knows no summer time from 2100 on.
    let is_wrong = |text: &str| match to {
        // Arrow cuts digits off, and takes a number for microseconds.
        DataType::Timestamp(TimeUnit::Microsecond, _) | DataType::Time64(TimeUnit::Microsecond)
            if has_more_digits(text) =>
        {
            true
        }
        DataType::Time64(_) => !text.contains(':'),
        DataType::Timestamp(TimeUnit::Nanosecond, Some(_)) => false,
        DataType::Timestamp(_, Some(zone)) => {
            !zone::is_utc(zone) && text.get(..4).is_some_and(|year| year >= "2100") && !may_name_zone(text)
        }
        _ => may_name_zone(text),
    };
    let again: Vec<usize> = (0..texts.len())
        .filter(|row| texts.is_valid(*row) && (fast.is_null(*row) || is_wrong(texts.value(*row))))
        .collect();
    if again.is_empty() {
        return Ok(fast);
    }
    let slow = again_read(texts, &again, (to, tries))?;
    let mut order: Vec<(usize, usize)> = (0..texts.len()).map(|row| (0, row)).collect();
    for (place, row) in again.iter().enumerate() {
        if slow.is_valid(place)
            && let Some(slot) = order.get_mut(*row)
        {
            *slot = (1, place);
        }
    }
    Ok(interleave(&[fast.as_ref(), slow.as_ref()], &order)?)
}

/// Whether a text has more digits of a second than microseconds.
fn has_more_digits(text: &str) -> bool {
    let fraction = text.rsplit_once('.').map_or("", |(_, fraction)| fraction);
    fraction.bytes().take_while(u8::is_ascii_digit).count() > 6
}

/// Behind the date may stand a zone.
fn may_name_zone(text: &str) -> bool {
    text.get(11..)
        .is_some_and(|rest| rest.contains(|c: char| matches!(c, '+' | '-') || c.is_ascii_alphabetic()))
}

/// The texts of some rows, in the type.
fn again_read(texts: &StringArray, rows: &[usize], (to, tries): (&DataType, bool)) -> Result<ArrayRef> {
    let own = match to {
        DataType::Timestamp(_, Some(zone)) => Some(zone.parse::<Tz>()?),
        _ => None,
    };
    let is_clock = matches!(to, DataType::Time64(_));
    let micros = |text: &str| if is_clock { read_time_of_day(text) } else { micros(text, own) };
    let read = rows.iter().map(|row| match micros(texts.value(*row)) {
        Some(micros) => Ok(Some(micros)),
        None if tries => Ok(None),
        None => Err(refused(no_time(texts.value(*row), to))),
    });
    let read: Vec<Option<i64>> = read.collect::<Result<_>>()?;
    if *to == DataType::Date32 {
        let days = read.iter().map(|micros| i32::try_from((*micros)?.div_euclid(MICROS_OF_DAY)).ok());
        return Ok(Arc::new(days.collect::<Date32Array>()));
    }
    let zone = match to {
        DataType::Timestamp(_, zone) => zone.clone(),
        DataType::Time64(_) => {
            let micros: ArrayRef = Arc::new(Time64MicrosecondArray::from(read));
            return Ok(cast(&micros, to)?);
        }
        _ => return exec_err!("a text is read as another type than a time"),
    };
    let micros: ArrayRef = Arc::new(TimestampMicrosecondArray::from(read).with_timezone_opt(zone));
    if matches!(to, DataType::Timestamp(TimeUnit::Microsecond, _)) {
        return Ok(micros);
    }
    Ok(cast_with_options(&micros, to, &CastOptions { safe: tries, ..CastOptions::default() })?)
}

/// Microseconds since 1970: of what the clock on the wall shows, or in UTC of what it shows in a zone.
fn micros(text: &str, own: Option<Tz>) -> Option<i64> {
    let (wall, named) = read_time(text)?;
    match own {
        Some(own) => zone::instant(named.unwrap_or(own), wall, 1_000_000),
        None => Some(wall),
    }
}

fn no_time(text: &str, to: &DataType) -> Error {
    let name = match to {
        DataType::Date32 => "date",
        DataType::Time64(_) => "time",
        DataType::Timestamp(_, Some(_)) => "timestamp with time zone",
        _ => "timestamp",
    };
    unsupported_time(name, text).unwrap_or_else(|| {
        Error::invalid(format!("invalid input syntax for type {name}: \"{text}\""))
            .with_reason(Reason::InvalidDatetime)
            .with_hint("write it as in '2024-01-31', '01:02:03' or '2024-01-31 01:02:03'")
    })
}

/// A function of a text, of a NULL whose type is that of the result, and of the name of that type: nobody calls it by name.
/// Two NULLs count as equal whatever their zones, so without the name two readings of a column would be taken for one.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Read {
    name: &'static str,
    tries: bool,
    signature: Signature,
}

/// The function that reads, and the one that tries to.
pub(super) fn functions() -> [ScalarUDF; 2] {
    [("__bowshot_time", false), ("__bowshot_try_time", true)].map(|(name, tries)| {
        ScalarUDF::new_from_impl(Read { name, tries, signature: Signature::any(3, Volatility::Immutable) })
    })
}

/// A text in a type.
pub(super) fn call(text: Expr, to: &DataType, tries: bool) -> Result<Expr> {
    let [strict, trying] = functions();
    let nothing = Expr::Literal(ScalarValue::try_from(to)?, None);
    let named = Expr::Literal(ScalarValue::from(to.to_string()), None);
    Ok(if tries { trying } else { strict }.call(vec![text, nothing, named]))
}

/// Whether it is the function for which a text that is no such value is an error.
pub fn reads_strictly(function: &ScalarUDF) -> bool {
    function.inner().downcast_ref::<Read>().is_some_and(|read| !read.tries)
}

impl ScalarUDFImpl for Read {
    bowshot_api::getters!(name: &str, signature: &Signature);

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [_, to, _] => Ok(to.clone()),
            _ => plan_err!("a text is read in one type"),
        }
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let [text, to, _] = arguments.arg_fields else { return plan_err!("a text is read in one type") };
        Ok(Arc::new(Field::new(self.name, to.data_type().clone(), self.tries || text.is_nullable())))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let to = arguments.return_field.data_type().clone();
        on_array(arguments, |texts| values(texts, &to, self.tries))
    }
}
