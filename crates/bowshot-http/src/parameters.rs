//! Converts JSON parameters to one Arrow row of the types that the statement expects.

use crate::json_integers::{carrier, fit};
use crate::sql_request::Parameters;
use arrow::array::{Array, ArrayRef, StringArray, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use arrow::error::ArrowError;
use arrow::json::ReaderBuilder;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use bowshot_api::{Error, Result};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The parameters as one row; `None` for a statement without parameters.
///
/// # Errors
/// `Invalid` for another number of values than the statement has parameters, or one of a type that does not fit.
pub(crate) fn row(wanted: &Schema, given: Parameters) -> Result<Option<RecordBatch>> {
    let values = in_order(wanted, given)?;
    if wanted.fields().is_empty() {
        return Ok(None);
    }
    let mut fields = Vec::with_capacity(values.len());
    let mut columns = Vec::with_capacity(values.len());
    for (field, value) in wanted.fields().iter().zip(values) {
        let column = column(field, value)?;
        fields.push(Field::new(field.name(), column.data_type().clone(), true));
        columns.push(column);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options);
    batch.map(Some).map_err(|error| Error::internal("cannot make a row of the parameters").with_source(error))
}

fn in_order(wanted: &Schema, given: Parameters) -> Result<Vec<Value>> {
    let count = wanted.fields().len();
    let mut given = match given {
        Parameters::None => Map::new(),
        Parameters::Numbered(values) if values.len() == count => return Ok(values),
        Parameters::Numbered(values) => return Err(wrong_count(count, values.len())),
        Parameters::Named(values) => values,
    };
    if given.len() != count {
        return Err(wrong_count(count, given.len()));
    }
    let named = wanted.fields().iter().map(|field| {
        let name = field.name().trim_start_matches('$');
        given.remove(name).ok_or_else(|| Error::invalid(format!("the parameter `{name}` has no value")))
    });
    named.collect()
}

fn wrong_count(wanted: usize, given: usize) -> Error {
    Error::invalid(format!("the statement has {wanted} parameters, and {given} values were given"))
        .with_hint("send one value for each in `parameters`")
}

fn column(field: &FieldRef, value: Value) -> Result<ArrayRef> {
    let wanted = field.data_type();
    if value.is_null() {
        return Ok(new_null_array(wanted, 1));
    }
    let shown = field.name().clone();
    let text = |text: &str| -> ArrayRef { Arc::new(StringArray::from(vec![text])) };
    let made = match (natural(&value), wanted) {
        // No type was inferred, or text: use the type of the value.
        (Some(natural), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => read(&natural, &value),
        // Keep integers as they are: one beyond 32 bits can be compared with a 32-bit column.
        (Some(natural), wanted) if natural.is_integer() && (wanted.is_integer() || wanted.is_decimal()) => {
            read(&natural, &value)
        }
        // The inferred precision is that of the other operand.
        (Some(_), wanted) if wanted.is_decimal() => match value.to_string() {
            number if number.contains(['e', 'E']) => read(&DataType::Float64, &value),
            number => Ok(text(&number)),
        },
        (None, wanted) => match &value {
            Value::String(number) if wanted.is_decimal() => {
                let strict = CastOptions { safe: false, ..CastOptions::default() };
                cast_with_options(&text(number), &DataType::Float64, &strict).map(|_| text(number))
            }
            Value::String(shown) if is_uuid(wanted, shown) => Ok(text(shown)),
            Value::String(shown) if !is_binary(wanted) => {
                let strict = CastOptions { safe: false, ..CastOptions::default() };
                cast_with_options(&text(shown), wanted, &strict)
            }
            _ => read(wanted, &value),
        },
        (Some(_), wanted) => read(wanted, &value),
    };
    made.map_err(|error| {
        Error::invalid(format!("the value of the parameter `{shown}` cannot be used as {wanted}"))
            .with_hint(
                "send a value of that type; dates, times and exact numbers as texts, bytes in hexadecimal",
            )
            .with_source(error)
    })
}

/// The type of a JSON value; the statement decides about strings and lists.
fn natural(value: &Value) -> Option<DataType> {
    match value {
        Value::Bool(_) => Some(DataType::Boolean),
        Value::Number(number) if number.is_i64() => Some(DataType::Int64),
        Value::Number(number) if number.is_u64() => Some(DataType::UInt64),
        Value::Number(_) => Some(DataType::Float64),
        Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn is_binary(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_)
    )
}

fn is_uuid(wanted: &DataType, text: &str) -> bool {
    *wanted == DataType::FixedSizeBinary(16) && text.contains('-')
}

/// Reads a value with Arrow's JSON reader.
fn read(data_type: &DataType, value: &Value) -> Result<ArrayRef, ArrowError> {
    let schema = Arc::new(Schema::new(vec![Field::new("value", carrier(data_type), true)]));
    let reader = ReaderBuilder::new(schema).with_batch_size(1).with_coerce_primitive(true);
    let mut decoder = reader.build_decoder()?;
    decoder.serialize(&[Map::from_iter([("value".to_owned(), value.clone())])])?;
    let batch = decoder.flush()?;
    let column = batch.as_ref().and_then(|batch| batch.columns().first());
    fit(column.ok_or_else(|| ArrowError::JsonError("no value".to_owned()))?, data_type)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::util::display::array_value_to_string;
    use serde_json::json;

    fn show(data_type: &DataType, value: Value) -> String {
        let wanted = Schema::new(vec![Field::new("$1", data_type.clone(), true)]);
        match row(&wanted, Parameters::Numbered(vec![value])) {
            Ok(Some(batch)) => {
                let column = batch.column(0);
                format!("{} {}", column.data_type(), array_value_to_string(column, 0).unwrap())
            }
            Ok(None) => "none".to_owned(),
            Err(error) => error.message().to_owned(),
        }
    }

    #[test]
    fn values_take_the_type_that_is_wanted() {
        let list = DataType::new_list(DataType::Int64, true);
        for (data_type, value, expected) in [
            (DataType::Int64, json!(1), "Int64 1"),
            (DataType::Int32, json!(7), "Int64 7"),
            (DataType::Int32, json!(1_099_511_627_776_i64), "Int64 1099511627776"),
            (DataType::Int64, json!("12"), "Int64 12"),
            (DataType::Utf8, json!("a"), "Utf8 a"),
            (DataType::Utf8, json!(1), "Int64 1"),
            (DataType::Utf8, json!(1.5), "Float64 1.5"),
            (DataType::Utf8, json!(true), "Boolean true"),
            (DataType::Date32, json!("2024-02-29"), "Date32 2024-02-29"),
            (DataType::Decimal128(10, 2), json!("1.10"), "Utf8 1.10"),
            (DataType::Decimal128(10, 2), json!(0.001), "Utf8 0.001"),
            (DataType::Decimal128(10, 2), json!(1e-9), "Float64 1e-9"),
            (DataType::Decimal128(10, 2), json!(3), "Int64 3"),
            (DataType::Binary, json!("00ff"), "Binary 00ff"),
            (
                DataType::FixedSizeBinary(16),
                json!("6fb1aaaa-0000-0000-0000-000000000000"),
                "Utf8 6fb1aaaa-0000-0000-0000-000000000000",
            ),
            (list, json!([1, null]), "List(Int64) [1, ]"),
            (DataType::Int64, Value::Null, "Int64 "),
            (DataType::Int64, json!("x"), "the value of the parameter `$1` cannot be used as Int64"),
            (DataType::Int64, json!(1.5), "the value of the parameter `$1` cannot be used as Int64"),
            (DataType::Boolean, json!(2), "the value of the parameter `$1` cannot be used as Boolean"),
            (DataType::Utf8, json!([1]), "the value of the parameter `$1` cannot be used as Utf8"),
            (DataType::Date32, json!("x"), "the value of the parameter `$1` cannot be used as Date32"),
        ] {
            assert_eq!(show(&data_type, value.clone()), expected, "{value}");
        }
    }

    #[test]
    fn each_parameter_has_one_value() {
        let wanted =
            Schema::new(vec![Field::new("a", DataType::Int64, true), Field::new("b", DataType::Int64, true)]);
        let named = |values: Value| match values {
            Value::Object(values) => row(&wanted, Parameters::Named(values)),
            _ => panic!(),
        };
        let batch = named(json!({"b": 2, "a": 1})).unwrap().unwrap();
        assert_eq!(array_value_to_string(batch.column(0), 0).unwrap(), "1");
        assert_eq!(named(json!({"b": 2, "c": 1})).unwrap_err().message(), "the parameter `a` has no value");
        let error = row(&wanted, Parameters::Numbered(vec![json!(1)])).unwrap_err();
        assert_eq!(error.message(), "the statement has 2 parameters, and 1 values were given");
        assert!(row(&wanted, Parameters::None).is_err());
        assert!(row(&Schema::empty(), Parameters::None).unwrap().is_none());
        assert!(row(&Schema::empty(), Parameters::Numbered(vec![json!(1)])).is_err());
    }
}
