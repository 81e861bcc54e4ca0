//! VARIANT values as those of another type.

use crate::{functions, names, storage_type};
use bowshot_api::variant::{is_variant_type, type_name, write_json};
use bowshot_functions::variant_column;
use chrono::Timelike;
use datafusion::arrow::array::{Array, ArrayRef, ListArray, StringArray, StructArray, new_null_array};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options, concat, interleave};
use datafusion::arrow::datatypes::{DataType, Date32Type, FieldRef, Fields};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err};
use datafusion::error::DataFusionError;
use parquet_variant::Variant;
use std::sync::Arc;

/// Digits of the decimals that values are read as.
const DIGITS: u8 = 38;

/// What values become.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) data_type: &'a DataType,
    /// That of the session.
    pub(super) zone: &'a Arc<str>,
    /// Whether a value that cannot be cast is NULL.
    pub(super) tries: bool,
}

impl<'a> Target<'a> {
    fn part(self, field: &'a FieldRef) -> Self {
        Self { data_type: field.data_type(), ..self }
    }
}

pub(super) fn typed(values: &[Option<Variant<'_, '_>>], target: &Target<'_>) -> Result<ArrayRef> {
    match target.data_type {
        of if is_variant_type(of) => variant_column(values.iter().cloned()),
        of if of.is_string() => texts(values, of),
        DataType::List(item) => lists(values, item, target),
        DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            let strict = CastOptions { safe: target.tries, ..CastOptions::default() };
            Ok(cast_with_options(&lists(values, item, target)?, target.data_type, &strict)?)
        }
        DataType::Struct(parts) => structs(values, parts, target),
        _ => scalars(values, target),
    }
}

/// Texts as they are, everything else as JSON.
fn texts(values: &[Option<Variant<'_, '_>>], of: &DataType) -> Result<ArrayRef> {
    let text = |value: &Option<Variant<'_, '_>>| match value {
        None | Some(Variant::Null) => None,
        Some(Variant::String(text)) => Some((*text).to_owned()),
        Some(Variant::ShortString(text)) => Some(text.as_str().to_owned()),
        Some(value) => {
            let mut text = String::new();
            write_json(value, &mut text);
            // Days, times and bytes are texts in JSON.
            let within = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
            Some(within.map(str::to_owned).unwrap_or(text))
        }
    };
    let texts: ArrayRef = Arc::new(values.iter().map(text).collect::<StringArray>());
    if *of == DataType::Utf8 { Ok(texts) } else { Ok(cast(&texts, of)?) }
}

fn lists(values: &[Option<Variant<'_, '_>>], item: &FieldRef, target: &Target<'_>) -> Result<ArrayRef> {
    let (mut items, mut lengths, mut valid) = (Vec::new(), Vec::new(), Vec::new());
    for value in values {
        let before = items.len();
        match value {
            Some(Variant::List(list)) => items.extend(list.iter().map(Some)),
            None | Some(Variant::Null) => {}
            Some(_) if target.tries => {}
            Some(other) => return Err(mismatch(other, target.data_type)),
        }
        lengths.push(items.len() - before);
        valid.push(matches!(value, Some(Variant::List(_))));
    }
    let items = typed(&items, &target.part(item))?;
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(Arc::clone(item), offsets, items, Some(NullBuffer::from(valid)))?))
}

fn structs(values: &[Option<Variant<'_, '_>>], parts: &Fields, target: &Target<'_>) -> Result<ArrayRef> {
    let is_wrong =
        |value: &&Variant<'_, '_>| !matches!(value, Variant::Object(_) | Variant::Null) && !target.tries;
    if let Some(other) = values.iter().flatten().find(is_wrong) {
        return Err(mismatch(other, target.data_type));
    }
    let columns = parts.iter().map(|part| {
        let members: Vec<_> = values.iter().map(|value| member(value.as_ref(), part.name())).collect();
        typed(&members, &target.part(part))
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let valid: Vec<bool> = values.iter().map(|value| matches!(value, Some(Variant::Object(_)))).collect();
    Ok(Arc::new(StructArray::try_new(parts.clone(), columns, Some(NullBuffer::from(valid)))?))
}

fn member<'m, 'v>(value: Option<&Variant<'m, 'v>>, name: &str) -> Option<Variant<'m, 'v>> {
    match value {
        Some(Variant::Object(object)) => object.get(name),
        _ => None,
    }
}

/// Values of one type of scalars.
struct Group {
    data_type: DataType,
    name: &'static str,
    values: Vec<ScalarValue>,
}

/// The values of each type are cast together, as a column of that type.
fn scalars(values: &[Option<Variant<'_, '_>>], target: &Target<'_>) -> Result<ArrayRef> {
    let mut groups: Vec<Group> = Vec::new();
    // Of each row the group and the place in it; the first group is that of NULL.
    let mut order: Vec<(usize, usize)> = Vec::with_capacity(values.len());
    for value in values {
        let value = match value {
            None | Some(Variant::Null) => None,
            Some(value) => match scalar(value).filter(|from| takes(&from.data_type(), target.data_type)) {
                Some(scalar) => Some((scalar, type_name(value))),
                None if target.tries => None,
                None => return Err(mismatch(value, target.data_type)),
            },
        };
        let Some((scalar, name)) = value else {
            order.push((0, 0));
            continue;
        };
        let data_type = scalar.data_type();
        let place = groups.iter().position(|group| group.data_type == data_type).unwrap_or_else(|| {
            groups.push(Group { data_type, name, values: Vec::new() });
            groups.len() - 1
        });
        if let Some(group) = groups.get_mut(place) {
            group.values.push(scalar);
            order.push((place + 1, group.values.len() - 1));
        }
    }
    let mut columns = vec![new_null_array(target.data_type, 1)];
    for group in groups {
        columns.push(group.cast(target)?);
    }
    if let ([_, only], true) = (columns.as_slice(), order.iter().all(|(group, _)| *group > 0)) {
        return Ok(Arc::clone(only));
    }
    let columns: Vec<&dyn Array> = columns.iter().map(AsRef::as_ref).collect();
    Ok(interleave(&columns, &order)?)
}

impl Group {
    fn cast(self, target: &Target<'_>) -> Result<ArrayRef> {
        let values = ScalarValue::iter_to_array(self.values)?;
        let failed = match strictly(&values, target) {
            Err(error) if !target.tries => error,
            Err(_) => {
                let one = |row| {
                    let value = values.slice(row, 1);
                    strictly(&value, target).unwrap_or_else(|_| new_null_array(target.data_type, 1))
                };
                let each: Vec<ArrayRef> = (0..values.len()).map(one).collect();
                return Ok(concat(&each.iter().map(AsRef::as_ref).collect::<Vec<_>>())?);
            }
            done => return done,
        };
        let to = names::sql_type(target.data_type);
        let failed = failed.strip_backtrace();
        Err(exec_datafusion_err!("a VARIANT of type {} cannot be cast to {to}: {failed}", self.name))
    }
}

/// A column of scalars in the type of a target, as SQL casts it.
fn strictly(values: &ArrayRef, target: &Target<'_>) -> Result<ArrayRef> {
    let to = target.data_type;
    let values = match values.data_type() {
        // A division would round once more.
        from if from.is_decimal() && to.is_floating() => cast(values, &DataType::Utf8)?,
        _ if to.is_integer() => functions::without_fractions(values).unwrap_or_else(|| Arc::clone(values)),
        _ => storage_type::assigned(values, to, target.zone)?,
    };
    Ok(storage_type::converted(&values, to)?)
}

/// A scalar as the engine has it; `None` for lists and objects.
fn scalar(value: &Variant<'_, '_>) -> Option<ScalarValue> {
    let utc = || Some(Arc::from("UTC"));
    let decimal = |number: i128, scale: u8| {
        Some(ScalarValue::Decimal128(Some(number), DIGITS, i8::try_from(scale).ok()?))
    };
    Some(match value {
        Variant::BooleanTrue => ScalarValue::Boolean(Some(true)),
        Variant::BooleanFalse => ScalarValue::Boolean(Some(false)),
        Variant::Int8(number) => ScalarValue::Int64(Some(i64::from(*number))),
        Variant::Int16(number) => ScalarValue::Int64(Some(i64::from(*number))),
        Variant::Int32(number) => ScalarValue::Int64(Some(i64::from(*number))),
        Variant::Int64(number) => ScalarValue::Int64(Some(*number)),
        Variant::Float(number) => ScalarValue::Float32(Some(*number)),
        Variant::Double(number) => ScalarValue::Float64(Some(*number)),
        Variant::Decimal4(number) => return decimal(i128::from(number.integer()), number.scale()),
        Variant::Decimal8(number) => return decimal(i128::from(number.integer()), number.scale()),
        Variant::Decimal16(number) => return decimal(number.integer(), number.scale()),
        Variant::Date(day) => ScalarValue::Date32(Some(Date32Type::from_naive_date(*day))),
        Variant::Time(time) => {
            let seconds = i64::from(time.num_seconds_from_midnight());
            ScalarValue::Time64Microsecond(Some(seconds * 1_000_000 + i64::from(time.nanosecond() / 1_000)))
        }
        Variant::TimestampMicros(time) => {
            ScalarValue::TimestampMicrosecond(Some(time.timestamp_micros()), utc())
        }
        Variant::TimestampNanos(time) => {
            ScalarValue::TimestampNanosecond(Some(time.timestamp_nanos_opt()?), utc())
        }
        Variant::TimestampNtzMicros(time) => {
            ScalarValue::TimestampMicrosecond(Some(time.and_utc().timestamp_micros()), None)
        }
        Variant::TimestampNtzNanos(time) => {
            ScalarValue::TimestampNanosecond(Some(time.and_utc().timestamp_nanos_opt()?), None)
        }
        Variant::String(text) => ScalarValue::Utf8(Some((*text).to_owned())),
        Variant::ShortString(text) => ScalarValue::Utf8(Some(text.as_str().to_owned())),
        Variant::Uuid(uuid) => ScalarValue::Utf8(Some(uuid.to_string())),
        Variant::Binary(bytes) => ScalarValue::Binary(Some(bytes.to_vec())),
        Variant::Null | Variant::Object(_) | Variant::List(_) => return None,
    })
}

/// Whether values of a type can mean something in another one: Arrow makes days and numbers of one another.
fn takes(from: &DataType, to: &DataType) -> bool {
    use DataType::{Binary, Boolean, Date32, Date64, Time32, Time64, Timestamp, Utf8};
    let is_number = |of: &DataType| of.is_numeric() || *of == Boolean;
    match from {
        Utf8 => true,
        Date32 => matches!(to, Date32 | Date64 | Timestamp(..)),
        Time64(_) => matches!(to, Time32(_) | Time64(_)),
        Timestamp(..) => matches!(to, Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..)),
        Binary => to.is_binary() || matches!(to, DataType::FixedSizeBinary(_)),
        from => is_number(from) && is_number(to),
    }
}

fn mismatch(value: &Variant<'_, '_>, to: &DataType) -> DataFusionError {
    let to = names::sql_type(to);
    exec_datafusion_err!(
        "a VARIANT of type {} cannot be cast to {to}; TRY_CAST gives NULL for it",
        type_name(value)
    )
}
