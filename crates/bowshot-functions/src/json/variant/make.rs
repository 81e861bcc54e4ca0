//! VARIANT values of JSON text and of typed values.

use crate::json::arguments::{Rows, at, is_json, is_uuid};
use crate::json::reader::Reader;
use crate::json::value::Json;
use bowshot_api::variant::{from_parts, has_variants, is_variant_type};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray, StructArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, exec_datafusion_err, exec_err, internal_datafusion_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use parquet_variant::{
    ObjectFieldBuilder, Variant, VariantBuilderExt, VariantDecimal4, VariantDecimal8, VariantDecimal16,
};
use parquet_variant_compute::{VariantArrayBuilder, cast_to_variant};
use std::sync::Arc;
use uuid::Uuid;

pub(super) fn parsed(given: &ScalarFunctionArgs, tries: bool) -> Result<ColumnarValue> {
    variants_of_json(Rows::new(given)?.text(0)?, tries).map(ColumnarValue::Array)
}

pub(super) fn of_values(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let rows = Rows::new(given)?;
    let field = given.arg_fields.first().ok_or_else(|| internal_datafusion_err!("the value has no field"))?;
    variants_of(rows.array(0)?, field).map(ColumnarValue::Array)
}

/// JSON texts as VARIANT; where it is tried, what is no JSON is NULL.
///
/// # Errors
/// For text that is no JSON, and for numbers that no type holds.
pub fn variants_of_json(texts: &StringArray, tries: bool) -> Result<ArrayRef> {
    let mut out = VariantArrayBuilder::new(texts.len());
    for row in 0..texts.len() {
        let Some(text) = at(texts, row) else {
            out.append_null();
            continue;
        };
        // The whole tree is read before anything of it is in the column.
        match Reader::tree(text).and_then(|tree| check_numbers(&tree).map(|()| tree)) {
            Ok(tree) => append(&tree, &mut out)?,
            Err(_) if tries => out.append_null(),
            Err(error) => return Err(error),
        }
    }
    finished(out)
}

/// Typed values as VARIANT. The field says whether texts are JSON, and bytes UUIDs.
///
/// # Errors
/// For types that VARIANT has no place for, and for text that is no JSON.
pub fn variants_of(values: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    let data_type = values.data_type();
    if is_variant_type(data_type) {
        return Ok(Arc::clone(values));
    }
    if is_json(field) {
        return variants_of_json(cast(values, &DataType::Utf8)?.as_string(), false);
    }
    if has_variants(data_type) {
        return exec_err!(
            "a VARIANT cannot be made of lists or structs with VARIANT values in them; `parse_json(to_json(…))` makes one"
        );
    }
    if let Some(bytes) = values.as_fixed_size_binary_opt().filter(|_| is_uuid(field)) {
        let uuid = |bytes| Uuid::from_slice(bytes).map_err(|error| exec_datafusion_err!("{error}"));
        let uuids = bytes.iter().map(|bytes| Ok(bytes.map(uuid).transpose()?.map(Variant::Uuid)));
        return variant_column(uuids.collect::<Result<Vec<_>>>()?);
    }
    Ok(from_parts(&StructArray::from(cast_to_variant(values)?))?)
}

/// A column of these values.
///
/// # Errors
/// For one that has no bytes, which is a fault here.
pub fn variant_column<'m, 'v>(values: impl IntoIterator<Item = Option<Variant<'m, 'v>>>) -> Result<ArrayRef> {
    let mut out = VariantArrayBuilder::new(0);
    out.extend(values);
    finished(out)
}

pub(super) fn finished(builder: VariantArrayBuilder) -> Result<ArrayRef> {
    Ok(from_parts(&StructArray::from(builder.build()))?)
}

fn check_numbers(tree: &Json<'_>) -> Result<()> {
    let mut open = vec![tree];
    while let Some(part) = open.pop() {
        match part {
            Json::Number(digits) => _ = number(digits)?,
            other => open.extend(other.children()),
        }
    }
    Ok(())
}

fn append(json: &Json<'_>, out: &mut impl VariantBuilderExt) -> Result<()> {
    match json {
        Json::Null => out.append_value(Variant::Null),
        Json::Bool(truth) => out.append_value(*truth),
        Json::Number(digits) => out.append_value(number(digits)?),
        Json::Text(text) => out.append_value(&**text),
        Json::Array(elements) => {
            let mut list = out.try_new_list()?;
            for element in elements {
                append(element, &mut list)?;
            }
            list.finish();
        }
        Json::Object(members) => {
            let mut object = out.try_new_object()?;
            for (name, value) in members {
                append(value, &mut ObjectFieldBuilder::new(name, &mut object))?;
            }
            object.finish();
        }
    }
    Ok(())
}

/// The smallest whole number, else a decimal, so that no digit is lost, else a floating-point number.
fn number(digits: &str) -> Result<Variant<'static, 'static>> {
    let is_negative_zero =
        digits.starts_with('-') && !digits.bytes().any(|digit| (b'1'..=b'9').contains(&digit));
    if is_negative_zero {
        return Ok(Variant::Double(-0.0));
    }
    if let Ok(whole) = digits.parse::<i64>() {
        return Ok(narrowed(whole));
    }
    if let Some(decimal) = decimal(digits) {
        return Ok(decimal);
    }
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(Variant::Double(number)),
        _ => exec_err!("number out of range: {digits}"),
    }
}

fn narrowed(whole: i64) -> Variant<'static, 'static> {
    if let Ok(byte) = i8::try_from(whole) {
        return byte.into();
    }
    if let Ok(short) = i16::try_from(whole) {
        return short.into();
    }
    i32::try_from(whole).map_or_else(|_| whole.into(), Variant::from)
}

/// `None` for a number with an exponent, or with more digits than a decimal has.
fn decimal(digits: &str) -> Option<Variant<'static, 'static>> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let scale = u8::try_from(fraction.len()).ok()?;
    let unscaled: i128 = format!("{whole}{fraction}").parse().ok()?;
    if let Some(small) = i32::try_from(unscaled).ok().and_then(|it| VariantDecimal4::try_new(it, scale).ok())
    {
        return Some(small.into());
    }
    if let Some(large) = i64::try_from(unscaled).ok().and_then(|it| VariantDecimal8::try_new(it, scale).ok())
    {
        return Some(large.into());
    }
    VariantDecimal16::try_new(unscaled, scale).ok().map(Into::into)
}
