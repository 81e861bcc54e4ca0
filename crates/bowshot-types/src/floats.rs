//! REAL and DOUBLE from texts and from wider numbers. Arrow makes a number infinite that is too large for the type; to SQL it is out
//! of range.

use super::names::sql_type;
use super::planner::refused;
use bowshot_api::{Error, Reason};
use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options, nullif};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;

/// Whether numbers of a type can be too large for another one.
pub(super) fn may_overflow(from: &DataType, to: &DataType) -> bool {
    *to == DataType::Float32 && matches!(from, DataType::Float64 | DataType::Decimal256(..))
}

/// Texts or numbers as floats; where it is tried, what is none is NULL.
pub(super) fn values(given: &ArrayRef, to: &DataType, tries: bool) -> Result<ArrayRef> {
    let read = cast_with_options(given, to, &CastOptions { safe: tries, ..CastOptions::default() })?;
    let floats = cast(&read, &DataType::Float64)?;
    let floats = floats.as_primitive::<Float64Type>();
    if !floats.iter().flatten().any(f64::is_infinite) {
        return Ok(read);
    }
    let texts = cast(given, &DataType::Utf8)?;
    // `Infinity` has no digits.
    let is_number = |text: &str| text.bytes().any(|byte| byte.is_ascii_digit());
    let rows = texts.as_string::<i32>().iter().zip(floats);
    let too_large =
        rows.map(|(text, float)| float.is_some_and(f64::is_infinite) && text.is_some_and(is_number));
    let too_large: Vec<bool> = too_large.collect();
    let Some(row) = too_large.iter().position(|too_large| *too_large) else { return Ok(read) };
    if tries {
        return Ok(nullif(&read, &BooleanArray::from(too_large))?);
    }
    let (text, name) = (texts.as_string::<i32>().value(row), sql_type(to).to_lowercase());
    Err(refused(
        Error::invalid(format!("\"{text}\" is out of range for type {name}")).with_reason(Reason::OutOfRange),
    ))
}
