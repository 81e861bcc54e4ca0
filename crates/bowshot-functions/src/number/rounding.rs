//! Truncation of integers, decimals and doubles to a number of digits.

use crate::date::first_day_of;
use crate::define::{Function, functions};
use crate::values::Kind::{self, Float as Real64, Int as Whole, Number};
use crate::values::{Arguments, Date, Days, Float, Int, Int64, Real, Text, fill, get_or, map1, map2};
use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, exec_err};

/// How many places a constant second argument asks for; none if it is not constant.
fn places(constants: &[Option<&ScalarValue>]) -> Option<i64> {
    match constants.get(1).copied().flatten()?.cast_to(&DataType::Int64).ok()? {
        ScalarValue::Int64(places) => places,
        _ => None,
    }
}

/// Decimals keep as many places as are asked for.
fn truncated_type(given: &[DataType], constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(match given.first() {
        Some(DataType::Decimal128(precision, scale)) => {
            let asked = if given.len() == 1 { Some(0) } else { places(constants) };
            let kept = match asked {
                Some(places) => i8::try_from(places.max(0)).unwrap_or(*scale).min(*scale),
                None => *scale,
            };
            DataType::Decimal128(*precision, kept.max(0))
        }
        Some(given) if given.is_integer() => DataType::Int64,
        // A date and a unit.
        Some(_) if given.get(1) == Some(&DataType::Utf8) => DataType::Date32,
        _ => DataType::Float64,
    })
}

fn scale(arguments: &Arguments) -> Result<ArrayRef> {
    let digits = match arguments.data_type(0)? {
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => i64::from((*scale).max(0)),
        given if given.is_integer() => 0,
        other => return exec_err!("`scale` takes a decimal, not {other}"),
    };
    let values = arguments.full(0)?;
    fill::<Int64, Option<i64>>(arguments, |row| values.is_valid(row).then_some(digits))
}

/// How many digits behind the point a decimal needs.
fn needed(mut digits: i128, scale: i8) -> i8 {
    let mut needed = scale.max(0);
    while needed > 0 && digits % 10 == 0 {
        (digits, needed) = (digits / 10, needed - 1);
    }
    needed
}

fn min_scale(arguments: &Arguments) -> Result<ArrayRef> {
    let values = arguments.full(0)?;
    match values.data_type() {
        DataType::Decimal128(_, scale) => {
            let numbers = values.as_primitive::<Decimal128Type>();
            fill::<Int64, Option<i64>>(arguments, |row| {
                numbers.is_valid(row).then(|| i64::from(needed(numbers.value(row), *scale)))
            })
        }
        _ => scale(arguments),
    }
}

/// The digits that a constant needs; those of a column stay, since they are of its type.
fn trimmed_type(given: &[DataType], constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    match (given.first(), constants.first().copied().flatten()) {
        (Some(_), Some(ScalarValue::Decimal128(Some(digits), precision, scale))) => {
            Ok(DataType::Decimal128(*precision, needed(*digits, *scale)))
        }
        (Some(of), _) => Ok(of.clone()),
        (None, _) => exec_err!("`trim_scale` takes a decimal"),
    }
}

fn trim_scale(arguments: &Arguments) -> Result<ArrayRef> {
    Ok(cast(&arguments.full(0)?, &arguments.gives)?)
}

fn trunc(arguments: &Arguments) -> Result<ArrayRef> {
    if arguments.gives == DataType::Date32 {
        return map2::<Date, Text, Days, Result<i32>>(arguments, first_day_of);
    }
    let given = arguments.data_type(0)?.clone();
    let places = arguments.read_if_given::<Int>(1)?;
    let places_at = |row| get_or(places.as_ref(), row, 0);
    match given {
        DataType::Decimal128(..) => decimals(arguments, &places_at),
        given if given.is_integer() => {
            let numbers = cast(&arguments.full(0)?, &DataType::Int64)?;
            let numbers = numbers.as_primitive::<arrow::datatypes::Int64Type>();
            fill::<Int64, Result<Option<i64>>>(arguments, |row| {
                let Some(places) = places_at(row)? else { return Ok(None) };
                Ok(numbers.is_valid(row).then(|| whole(numbers.value(row), places)))
            })
        }
        _ => {
            let numbers = cast(&arguments.full(0)?, &DataType::Float64)?;
            let numbers = numbers.as_primitive::<arrow::datatypes::Float64Type>();
            fill::<Real, Result<Option<f64>>>(arguments, |row| {
                let Some(places) = places_at(row)? else { return Ok(None) };
                Ok(numbers.is_valid(row).then(|| double(numbers.value(row), places)))
            })
        }
    }
}

fn whole(number: i64, places: i64) -> i64 {
    if places >= 0 {
        return number;
    }
    match u32::try_from(-places).ok().and_then(|zeros| 10_i64.checked_pow(zeros)) {
        Some(unit) => number / unit * unit,
        None => 0,
    }
}

fn double(number: f64, places: i64) -> f64 {
    let places = i32::try_from(places.clamp(-400, 400)).unwrap_or(0);
    if places == 0 {
        return number.trunc();
    }
    if places > 17 || !number.is_finite() {
        return number;
    }
    // The digits as they are written decide: 1.15 is not 1.149999.
    let text = format!("{number}");
    match text.split_once('.') {
        Some((whole, fraction)) if places > 0 => {
            let kept: String = fraction.chars().take(places.unsigned_abs() as usize).collect();
            format!("{whole}.{kept}").parse().unwrap_or(number)
        }
        _ if places > 0 => number,
        _ => {
            let unit = 10_f64.powi(-places);
            (number / unit).trunc() * unit
        }
    }
}

fn decimals(arguments: &Arguments, places_at: &dyn Fn(usize) -> Result<Option<i64>>) -> Result<ArrayRef> {
    let array = arguments.full(0)?;
    let (DataType::Decimal128(_, scale), DataType::Decimal128(precision, kept)) =
        (array.data_type(), &arguments.gives)
    else {
        return Err(exec_datafusion_err!("a decimal is expected"));
    };
    let numbers = array.as_primitive::<Decimal128Type>();
    let power =
        |exponent: i64| u32::try_from(exponent).ok().and_then(|exponent| 10_i128.checked_pow(exponent));
    let mut found: Vec<Option<i128>> = Vec::with_capacity(arguments.rows);
    for row in 0..arguments.rows {
        let places = places_at(row)?;
        let value = numbers.is_valid(row).then(|| numbers.value(row));
        found.push(value.zip(places).map(|(value, places)| {
            let dropped = i64::from(*scale) - places.min(i64::from(*scale));
            let cut = match power(dropped) {
                Some(unit) => value / unit * unit,
                None => 0,
            };
            cut / power(i64::from(scale - kept)).unwrap_or(1)
        }));
    }
    Ok(std::sync::Arc::new(Decimal128Array::from(found).with_precision_and_scale(*precision, *kept)?))
}

const TRUNCATED: &[&[Kind]] = &[&[Number], &[Number, Whole], &[Kind::Date, Kind::Text]];

pub(super) const FUNCTIONS: &[Function] = functions! {
    scalar;
    "scale": &[&[Number]], Int, scale => "how many digits a decimal has behind the point";
    "min_scale": &[&[Number]], Int, min_scale => "how many digits behind the point a decimal needs";
    "trim_scale": &[&[Number]], Seen(trimmed_type), trim_scale =>
        "a decimal that is written out without zeros at its end";
    "trunc" "truncate": TRUNCATED, Seen(truncated_type), trunc =>
        "without its fraction, or cut to a number of decimal places; of a date, the first day of a unit";
    "rint" "round_even" "roundbankers": &[&[Real64]], Float,
        |a| map1::<Float, Real, _>(a, f64::round_ties_even) => "rounded to an integer, halves to the even one";
};
