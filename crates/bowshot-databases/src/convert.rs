//! Batches of a driver to the columns of the table. A driver is foreign code behind a C interface: types are checked before values are
//! read, and texts before they are used as UTF-8.

use crate::columns::{Column, ValueEncoding};
use crate::error::DatabaseError;
use bowshot_kernels::nan::with_one_nan;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, BooleanArray, RecordBatch, RecordBatchOptions, make_array,
};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Int64Type, SchemaRef, TimeUnit, TimestampMicrosecondType,
};
use std::sync::Arc;

/// Days that stand for `infinity` and `-infinity`. PostgreSQL's driver shifts them by the thirty years between both epochs, and
/// wraps around.
const NO_DAYS: [i32; 5] =
    [i32::MAX, -i32::MAX, i32::MIN, i32::MAX.wrapping_add(10_957), i32::MIN.wrapping_add(10_957)];

/// The rows with the columns of the table, which begin after `first` others.
pub(crate) fn convert_batch(
    given: &RecordBatch,
    columns: &[Arc<Column>],
    schema: &SchemaRef,
    first: usize,
) -> Result<RecordBatch, DatabaseError> {
    if given.num_columns() < first + columns.len() {
        return Err(DatabaseError::Unexpected("it returned too few columns".to_owned()));
    }
    let arrays = given.columns().iter().skip(first).zip(columns);
    let arrays = arrays.map(|(array, column)| {
        with_one_nan(&one(array, column)?).map_err(|error| DatabaseError::Unexpected(error.to_string()))
    });
    let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(given.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)
        .map_err(|error| DatabaseError::Unexpected(error.to_string()))
}

fn one(array: &ArrayRef, column: &Column) -> Result<ArrayRef, DatabaseError> {
    checked(array, column)?;
    let wanted = column.field.data_type();
    match column.given {
        ValueEncoding::AsIs => as_is(array, column, wanted),
        ValueEncoding::DecimalText => {
            let options = CastOptions { safe: false, ..CastOptions::default() };
            cast_with_options(&text(array, column)?, wanted, &options)
                .map_err(|_| value(column, "NaN, an infinite number or one with too many digits"))
        }
        ValueEncoding::Numbers => truths(array, column),
        ValueEncoding::Digits => bytes(array, column),
        ValueEncoding::Moment => match array.data_type() {
            DataType::Timestamp(..) => {
                cast(array, wanted).map_err(|_| value(column, "a timestamp out of range"))
            }
            _ => Err(unexpected(array, column)),
        },
        ValueEncoding::FiniteDays => {
            let array = as_is(array, column, &DataType::Date32)?;
            let days = array.as_primitive::<Date32Type>();
            let none = (0..days.len()).any(|row| days.is_valid(row) && NO_DAYS.contains(&days.value(row)));
            if none { Err(value(column, "`infinity`")) } else { Ok(array) }
        }
        ValueEncoding::FiniteMicros => micros(array, column, wanted),
    }
}

fn as_is(array: &ArrayRef, column: &Column, wanted: &DataType) -> Result<ArrayRef, DatabaseError> {
    match array.data_type() {
        given if given == wanted => Ok(Arc::clone(array)),
        DataType::LargeUtf8 | DataType::Utf8View | DataType::Dictionary(..) if *wanted == DataType::Utf8 => {
            cast(array, wanted).map_err(|error| DatabaseError::Unexpected(error.to_string()))
        }
        // Names and nullability of nested fields may differ.
        given if given.is_nested() && given.equals_datatype(wanted) => {
            cast(array, wanted).map_err(|error| DatabaseError::Unexpected(error.to_string()))
        }
        // Without values, a driver may not know the type.
        _ if array.null_count() == array.len() => {
            Ok(datafusion::arrow::array::new_null_array(wanted, array.len()))
        }
        _ => Err(unexpected(array, column)),
    }
}

fn text(array: &ArrayRef, column: &Column) -> Result<ArrayRef, DatabaseError> {
    as_is(array, column, &DataType::Utf8)
}

fn truths(array: &ArrayRef, column: &Column) -> Result<ArrayRef, DatabaseError> {
    let array = as_is(array, column, &DataType::Int64)?;
    let numbers = array.as_primitive::<Int64Type>();
    if (0..numbers.len()).any(|row| numbers.is_valid(row) && !matches!(numbers.value(row), 0 | 1)) {
        return Err(value(column, "a number other than 0 and 1"));
    }
    Ok(Arc::new(numbers.iter().map(|number| number.map(|number| number == 1)).collect::<BooleanArray>()))
}

fn bytes(array: &ArrayRef, column: &Column) -> Result<ArrayRef, DatabaseError> {
    let array = text(array, column)?;
    let digits = array.as_string::<i32>();
    let mut built = BinaryBuilder::with_capacity(digits.len(), digits.value_data().len() / 2);
    let mut decoded = Vec::new();
    for written in digits {
        match written {
            None => built.append_null(),
            Some(written) => {
                decoded.clear();
                decode(written.as_bytes(), &mut decoded)
                    .ok_or_else(|| value(column, "a value that is not a BLOB"))?;
                built.append_value(&decoded);
            }
        }
    }
    Ok(Arc::new(built.finish()))
}

fn decode(digits: &[u8], into: &mut Vec<u8>) -> Option<()> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = digits.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    for pair in pairs {
        let [high, low] = pair else { return None };
        into.push(digit(*high)? << 4 | digit(*low)?);
    }
    Some(())
}

fn micros(array: &ArrayRef, column: &Column, wanted: &DataType) -> Result<ArrayRef, DatabaseError> {
    let DataType::Timestamp(TimeUnit::Microsecond, _) = array.data_type() else {
        return as_is(array, column, wanted);
    };
    let there = array.as_primitive::<TimestampMicrosecondType>();
    // The range of timestamps.
    let far = |micros: i64| !(-210_866_803_200_000_000..=8_210_266_876_799_999_999).contains(&micros);
    if (0..there.len()).any(|row| there.is_valid(row) && far(there.value(row))) {
        return Err(value(column, "`infinity`, or a timestamp out of range"));
    }
    let data = there.to_data().into_builder().data_type(wanted.clone()).build();
    data.map(make_array).map_err(|error| DatabaseError::Unexpected(error.to_string()))
}

/// Checks the buffers of an array, so that reading it is safe.
fn checked(array: &ArrayRef, column: &Column) -> Result<(), DatabaseError> {
    let data = array.to_data();
    let looked = if has_texts(array.data_type()) { data.validate_full() } else { data.validate() };
    looked.map_err(|_| DatabaseError::Value(format!("has invalid UTF-8 in column `{}`", column.field.name())))
}

fn has_texts(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, inner) => has_texts(inner),
        other => other.is_nested(),
    }
}

fn value(column: &Column, what: &str) -> DatabaseError {
    let (name, wanted) = (column.field.name(), column.field.data_type());
    DatabaseError::Value(format!("has {what} in column `{name}` of type {wanted}"))
}

fn unexpected(array: &ArrayRef, column: &Column) -> DatabaseError {
    DatabaseError::Unexpected(format!(
        "column `{}` has type {}, expected {}",
        column.field.name(),
        array.data_type(),
        column.field.data_type()
    ))
}
