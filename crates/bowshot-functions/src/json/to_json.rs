//! Arrow values as JSON, as PostgreSQL's `to_json` writes them.

use super::arguments::{is_json, is_uuid};
use bowshot_api::variant::{Values, is_variant_type, quote, write_json};
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Field, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::{Result, exec_datafusion_err};
use std::fmt::Write;
use uuid::Uuid;

/// How PostgreSQL writes a moment in JSON: ISO 8601, with a T, and no more digits than there are.
const SHOWN: FormatOptions<'static> = FormatOptions::new()
    .with_timestamp_format(Some("%Y-%m-%dT%H:%M:%S%.f"))
    .with_timestamp_tz_format(Some("%Y-%m-%dT%H:%M:%S%.f%:z"));

/// Writes the value of a row. `field` says whether text is JSON already.
pub(crate) fn write(array: &ArrayRef, field: &Field, row: usize, out: &mut String) -> Result<()> {
    // Arrays of no type have no buffer that says so.
    if array.is_null(row) || array.data_type().is_null() {
        out.push_str("null");
        return Ok(());
    }
    match array.data_type() {
        DataType::Utf8 => text(array.as_string::<i32>().value(row), field, out),
        DataType::LargeUtf8 => text(array.as_string::<i64>().value(row), field, out),
        DataType::Utf8View => text(array.as_string_view().value(row), field, out),
        DataType::Boolean => out.push_str(if array.as_boolean().value(row) { "true" } else { "false" }),
        DataType::Int8 => show(array.as_primitive::<Int8Type>().value(row), out),
        DataType::Int16 => show(array.as_primitive::<Int16Type>().value(row), out),
        DataType::Int32 => show(array.as_primitive::<Int32Type>().value(row), out),
        DataType::Int64 => show(array.as_primitive::<Int64Type>().value(row), out),
        DataType::UInt8 => show(array.as_primitive::<UInt8Type>().value(row), out),
        DataType::UInt16 => show(array.as_primitive::<UInt16Type>().value(row), out),
        DataType::UInt32 => show(array.as_primitive::<UInt32Type>().value(row), out),
        DataType::UInt64 => show(array.as_primitive::<UInt64Type>().value(row), out),
        DataType::Float32 => float(array.as_primitive::<Float32Type>().value(row), f32::is_finite, out),
        DataType::Float64 => float(array.as_primitive::<Float64Type>().value(row), f64::is_finite, out),
        DataType::Decimal128(..) => {
            out.push_str(&array.as_primitive::<Decimal128Type>().value_as_string(row))
        }
        DataType::List(element) => elements(&array.as_list::<i32>().value(row), element, out)?,
        DataType::LargeList(element) => elements(&array.as_list::<i64>().value(row), element, out)?,
        DataType::FixedSizeList(element, _) => {
            elements(&array.as_fixed_size_list().value(row), element, out)?
        }
        of if is_variant_type(of) => {
            if let Some(value) = Values::of(array)?.at(row)? {
                write_json(&value, out);
            }
        }
        DataType::Struct(_) | DataType::Map(..) => object(array, row, out)?,
        DataType::Dictionary(..) => {
            let values = datafusion::arrow::compute::cast(&array.slice(row, 1), &DataType::Utf8)?;
            write(&values, field, 0, out)?;
        }
        DataType::FixedSizeBinary(16) if is_uuid(field) => {
            let bytes = array.as_fixed_size_binary().value(row);
            let uuid = Uuid::from_slice(bytes).map_err(|error| exec_datafusion_err!("{error}"))?;
            quote(&uuid.hyphenated().to_string(), out);
        }
        _ => quote(&ArrayFormatter::try_new(array, &SHOWN)?.value(row).try_to_string()?, out),
    }
    Ok(())
}

fn show(value: impl std::fmt::Display, out: &mut String) {
    // Writing to a string does not fail.
    let _ = write!(out, "{value}");
}

/// JSON has no infinite numbers; they become text, as in PostgreSQL.
fn float<N: std::fmt::Display + std::fmt::Debug + Copy>(value: N, finite: fn(N) -> bool, out: &mut String) {
    if !finite(value) {
        let name = value.to_string();
        return quote(&name.replace("inf", "Infinity"), out);
    }
    // The other form has an exponent where the plain one would be long.
    let plain = value.to_string();
    if plain.len() > 21 {
        let _ = write!(out, "{value:?}");
    } else {
        out.push_str(&plain);
    }
}

fn text(value: &str, field: &Field, out: &mut String) {
    if is_json(field) { out.push_str(value) } else { quote(value, out) }
}

fn elements(values: &ArrayRef, element: &Field, out: &mut String) -> Result<()> {
    out.push('[');
    for row in 0..values.len() {
        if row > 0 {
            out.push(',');
        }
        write(values, element, row, out)?;
    }
    out.push(']');
    Ok(())
}

fn object(array: &ArrayRef, row: usize, out: &mut String) -> Result<()> {
    out.push('{');
    if let Some(map) = array.as_map_opt() {
        let entries = map.value(row);
        let (keys, values) = (entries.column(0), entries.column(1));
        let fields = entries.fields();
        for entry in 0..entries.len() {
            out.push_str(if entry > 0 { "," } else { "" });
            key(keys, entry, out)?;
            out.push(':');
            if let Some(field) = fields.get(1) {
                write(values, field, entry, out)?;
            }
        }
    } else if let Some(record) = array.as_struct_opt() {
        for (index, (field, column)) in record.fields().iter().zip(record.columns()).enumerate() {
            out.push_str(if index > 0 { "," } else { "" });
            quote(field.name(), out);
            out.push(':');
            write(column, field, row, out)?;
        }
    }
    out.push('}');
    Ok(())
}

/// The name of a member: the value as text.
pub(crate) fn key(array: &ArrayRef, row: usize, out: &mut String) -> Result<()> {
    quote(&ArrayFormatter::try_new(array, &SHOWN)?.value(row).try_to_string()?, out);
    Ok(())
}
