//! Infers column types of CSV: the narrowest type that preserves all sampled values. `007` is text. Later values that
//! the type would change are errors.

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::compute::kernels::cast_utils::{Parser, string_to_datetime};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Date32Type, Field, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use bowshot_api::{Error, Result};
use std::sync::Arc;

/// Digits that a 64-bit float preserves.
const SAFE_DIGITS: usize = 15;
/// Characters of a value in errors.
const SHOWN_CHARS: usize = 64;

/// The columns of texts that are the first rows.
pub(super) fn schema(texts: &[RecordBatch], columns: &Schema) -> Schema {
    let fields = columns.fields().iter().enumerate().map(|(place, field)| {
        let column: Vec<&StringArray> =
            texts.iter().filter_map(|batch| batch.column(place).as_string_opt()).collect();
        Field::new(field.name(), narrowest(&column), true)
    });
    Schema::new(fields.collect::<Vec<_>>())
}

fn narrowest(column: &[&StringArray]) -> DataType {
    let values = || column.iter().flat_map(|texts| texts.iter().flatten());
    if values().next().is_none() {
        return DataType::Null;
    }
    let stamp = |zone: Option<&str>| {
        let units = [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond];
        units.map(|unit| DataType::Timestamp(unit, zone.map(Into::into)))
    };
    let plain = [DataType::Boolean, DataType::Int64, DataType::Float64, DataType::Date32];
    let mut types = plain.into_iter().chain(stamp(None)).chain(stamp(Some("UTC")));
    types.find(|data_type| values().all(|text| keeps(data_type, text))).unwrap_or(DataType::Utf8)
}

/// Whether a type that was guessed has a value as it is written.
fn keeps(data_type: &DataType, text: &str) -> bool {
    match data_type {
        DataType::Boolean => text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false"),
        DataType::Int64 => text.parse::<i64>().is_ok_and(|whole| whole.to_string() == text),
        DataType::Float64 => keeps_real(text),
        DataType::Date32 => text.len() == 10 && Date32Type::parse(text).is_some(),
        DataType::Timestamp(unit, zone) => {
            let Some(rest) = text.get(19..).filter(|_| text.as_bytes().get(4) == Some(&b'-')) else {
                return false;
            };
            let fraction = rest.strip_prefix('.').unwrap_or_default();
            let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
            let zoned = rest.len() > digits + usize::from(digits > 0);
            digits <= digits_of(*unit)
                && zoned == zone.is_some()
                && "+00:00".parse().is_ok_and(|utc: Tz| {
                    let moment = string_to_datetime(&utc, text);
                    moment.is_ok_and(|moment| {
                        *unit != TimeUnit::Nanosecond || moment.timestamp_nanos_opt().is_some()
                    })
                })
        }
        _ => true,
    }
}

/// Fractions may be rounded, integers may not.
fn keeps_real(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let begins = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let padded = matches!(digits.as_bytes(), [b'0', b'0'..=b'9', ..]);
    let Ok(real) = text.parse::<f64>() else { return false };
    let whole = digits.len() > SAFE_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    let exact = || text.parse::<i128>().is_ok_and(|whole| real as i128 == whole) || real.to_string() == text;
    begins && !padded && (!whole || exact())
}

fn digits_of(unit: TimeUnit) -> usize {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

/// Converts strings to the types of `schema`; `before` is the number of earlier rows.
pub(super) fn typed(rows: &RecordBatch, schema: &SchemaRef, before: usize) -> Result<RecordBatch> {
    let columns = rows.columns().iter().zip(schema.fields()).map(|(column, field)| {
        if column.data_type() == field.data_type() {
            return Ok(Arc::clone(column));
        }
        check(column, field, before)?;
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        cast_with_options(column, field.data_type(), &strict).map_err(cannot)
    });
    let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
    RecordBatch::try_new(Arc::clone(schema), columns).map_err(cannot)
}

/// Whether texts are values of the type of a field that was guessed.
///
/// # Errors
/// `Invalid`, naming row and column, for a value that its type would change.
pub(super) fn check(texts: &ArrayRef, field: &Field, before: usize) -> Result<()> {
    let Some(texts) = texts.as_string_opt::<i32>() else { return Ok(()) };
    let mut values = texts.iter().enumerate().filter_map(|(row, text)| Some((row, text?)));
    match values.find(|(_, text)| !keeps(field.data_type(), text)) {
        None => Ok(()),
        Some((row, text)) => Err(refused(text, field, before + row + 1)),
    }
}

fn refused(text: &str, field: &Field, row: usize) -> Error {
    let shown: String = text.chars().take(SHOWN_CHARS).collect();
    let (name, data_type) = (field.name(), field.data_type());
    Error::invalid(format!(
        "row {row}: `{shown}` in column `{name}` is not a value of type {data_type}, which the first rows \
         show"
    ))
    .with_hint("make the table with CREATE TABLE and its types, and send the rows with POST")
}

fn cannot(error: ArrowError) -> Error {
    Error::invalid(format!("the CSV cannot be read: {error}")).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::narrowest;
    use arrow::array::StringArray;

    #[test]
    fn the_narrowest_type_that_changes_nothing() {
        for (values, expected) in [
            (&["1", "-2"][..], "Int64"),
            (&["007", "8"], "Utf8"),
            (&["+7"], "Utf8"),
            (&["007.5"], "Utf8"),
            (&["1", "2.50"], "Float64"),
            (&["9007199254740993", "1.5"], "Utf8"),
            (&["18446744073709551616"], "Float64"),
            (&["true", "False"], "Boolean"),
            (&["true", "1"], "Utf8"),
            (&["2024-02-29"], "Date32"),
            (&["2024-02-30"], "Utf8"),
            (&["2024-01-01T10:00:00", "2024-01-01 10:00:00.25"], "Timestamp(ms)"),
            (&["2024-01-01T10:00:00Z", "2024-01-01T10:00:00+02:00"], "Timestamp(s, \"UTC\")"),
            (&["2024-01-01T10:00:00", "2024-01-01T10:00:00+02:00"], "Utf8"),
            (&["0001-01-01T10:00:00.123456789"], "Utf8"),
            (&["nan"], "Utf8"),
        ] {
            assert_eq!(narrowest(&[&StringArray::from(values.to_vec())]).to_string(), expected, "{values:?}");
        }
    }
}
