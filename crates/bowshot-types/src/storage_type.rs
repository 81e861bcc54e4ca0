//! How a durable table stores types that Delta Lake lacks; the declaration of the column has the SQL type, and every scan casts
//! back. TIME is a BIGINT of microseconds; unsigned integers are the next larger type, BIGINT UNSIGNED is DECIMAL(20, 0);
//! DECIMAL(p, -s) is DECIMAL(p + s, 0); UUIDs in bytes are BYTEA; HUGEINT, a DECIMAL(39, 0), is DECIMAL(38, 0) and refuses the
//! longest values.

use super::declared::{DECLARED, Declared, is_kept};
use super::enums::EnumType;
use super::planner::DIGITS_OF_128_BITS;
use super::{names, texts, zone};
use bowshot_api::variant;
use bowshot_tables::{Definition, Storage, durable_type};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit,
};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::FormatOptions;
use datafusion::catalog::TableProvider;
use datafusion::common::{Result, TableReference};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, cast, ident};
use std::collections::HashMap;
use std::sync::Arc;

const STRICT: CastOptions<'static> = CastOptions { safe: false, format_options: FormatOptions::new() };

/// The field of a column as a table keeps it; `None` where a durable table has no place for the type.
pub fn kept(storage: Storage, field: &Field) -> Option<Field> {
    if variant::is_marked(field) && !variant::is_variant_type(field.data_type()) {
        return kept(storage, &field.clone().with_data_type(variant::data_type()));
    }
    if storage == Storage::Memory {
        let data_type = match field.data_type() {
            // An instant has no zone of its own, whatever zone the session shows it in.
            DataType::Timestamp(unit, Some(_)) => DataType::Timestamp(*unit, Some("UTC".into())),
            other => other.clone(),
        };
        return Some(field.clone().with_data_type(data_type));
    }
    let logical = match field.data_type() {
        DataType::Time32(_) | DataType::Time64(_) => DataType::Time64(TimeUnit::Microsecond),
        other => other.clone(),
    };
    let Some(physical) = physical(&logical) else {
        let data_type = durable_type(&logical)?;
        return Some(field.clone().with_data_type(data_type));
    };
    let mut metadata = field.metadata().clone();
    metadata.entry(DECLARED.to_owned()).or_insert_with(|| names::sql_type(&logical));
    Some(field.clone().with_data_type(physical).with_metadata(metadata))
}

/// The form in which a type is kept that is none of a durable table's.
fn physical(logical: &DataType) -> Option<DataType> {
    match logical {
        DataType::Time64(_) => Some(DataType::Int64),
        DataType::FixedSizeBinary(_) => Some(DataType::Binary),
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => durable_type(logical),
        DataType::Decimal128(precision, scale) if *scale < 0 => {
            let digits = precision.checked_add(scale.unsigned_abs())?;
            (digits <= DECIMAL128_MAX_PRECISION).then_some(DataType::Decimal128(digits, 0))
        }
        DataType::Decimal256(DIGITS_OF_128_BITS, 0) => {
            Some(DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0))
        }
        _ => None,
    }
}

/// The type that a column of a table has in SQL.
pub fn logical(field: &Field) -> DataType {
    let declared = field.metadata().get(DECLARED);
    declared.and_then(|text| meant(text, field.data_type())).unwrap_or_else(|| field.data_type().clone())
}

fn meant(text: &str, kept: &DataType) -> Option<DataType> {
    let meant = match text {
        "TINYINT UNSIGNED" => DataType::UInt8,
        "SMALLINT UNSIGNED" => DataType::UInt16,
        "INTEGER UNSIGNED" => DataType::UInt32,
        "BIGINT UNSIGNED" => DataType::UInt64,
        time if time.starts_with("TIME") && !time.starts_with("TIMESTAMP") => {
            DataType::Time64(TimeUnit::Microsecond)
        }
        binary if binary.starts_with("BINARY(") => {
            let length = binary.strip_prefix("BINARY(")?.strip_suffix(')')?.parse().ok()?;
            DataType::FixedSizeBinary(length)
        }
        decimal => {
            let parts = decimal.strip_prefix("DECIMAL(")?.strip_suffix(')')?;
            let (precision, scale) = parts.split_once(',')?;
            let precision: u8 = precision.trim().parse().ok()?;
            let scale: i8 = scale.trim().parse().ok()?;
            if precision > DECIMAL128_MAX_PRECISION {
                DataType::Decimal256(precision, scale)
            } else {
                DataType::Decimal128(precision, scale)
            }
        }
    };
    (physical(&meant).as_ref() == Some(kept)).then_some(meant)
}

/// The columns of a table in the types that they have in SQL.
pub fn schema(definition: &Definition) -> SchemaRef {
    let kept = definition.schema();
    if !differs(definition) {
        return kept;
    }
    Arc::new(Schema::new(
        definition.columns.iter().map(|column| meant_field(&column.field)).collect::<Fields>(),
    ))
}

/// The same with what operators of checks and policies ask for.
pub fn operand_schema(definition: &Definition) -> SchemaRef {
    let plain = schema(definition);
    let fields = plain.fields().iter().zip(&definition.columns);
    let fields = fields.map(|(field, column)| match operand_mark(&column.field) {
        Some(mark) => Arc::new(field.as_ref().clone().with_metadata(mark.metadata().clone())),
        None => Arc::clone(field),
    });
    Arc::new(Schema::new(fields.collect::<Fields>()))
}

/// A field with the metadata that operators ask for: labels have an order, and UUIDs are no texts.
fn operand_mark(column: &Field) -> Option<Field> {
    if let Some(of) = EnumType::declared(column) {
        return Some(of.field());
    }
    let declared = Declared::of(column)?;
    let is_uuid = match &declared {
        Declared::Items(item) => **item == Declared::Uuid,
        declared => *declared == Declared::Uuid,
    };
    is_uuid.then(|| declared.field(column.data_type().clone()))
}

/// A column of a table as SQL has it.
pub fn meant_field(kept: &Field) -> FieldRef {
    Arc::new(Field::new(kept.name(), logical(kept), kept.is_nullable()))
}

/// Whether a table keeps any column in another form.
pub fn differs(definition: &Definition) -> bool {
    definition.columns.iter().any(|column| logical(&column.field) != *column.field.data_type())
}

/// Values in another type, by way of what they mean: a time of day is kept in microseconds.
///
/// # Errors
/// For values that the type has no place for.
pub fn converted(values: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    if values.data_type() == to {
        return Ok(Arc::clone(values));
    }
    if let Some(converted) = texts::converted(values, to) {
        return converted.map_err(|error| ArrowError::ExternalError(Box::new(error)));
    }
    // Arrow does not read UUIDs, which lists may be of.
    if let (Some(lists), DataType::List(item)) = (values.as_list_opt::<i32>(), to)
        && *item.data_type() == DataType::FixedSizeBinary(16)
    {
        let elements = converted(lists.values(), item.data_type())?;
        let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
        return Ok(Arc::new(ListArray::try_new(Arc::clone(item), offsets, elements, nulls)?));
    }
    let through = match (values.data_type(), to) {
        (DataType::Time32(_) | DataType::Time64(_), DataType::Int64) => {
            &cast_with_options(values, &DataType::Time64(TimeUnit::Microsecond), &STRICT)?
        }
        _ => values,
    };
    cast_with_options(through, to, &STRICT)
}

/// Values that are assigned to a column of a type, as what they mean in the session's zone: an instant as what the clock shows
/// there, where the column has no zone, and the reverse. What is left to do is a cast that needs no zone.
///
/// # Errors
/// For texts that are no instants, and for times out of range.
pub fn assigned(values: &ArrayRef, to: &DataType, zone: &Arc<str>) -> Result<ArrayRef> {
    use DataType::{Date32, Date64, LargeUtf8, Time32, Time64, Timestamp, Utf8, Utf8View};
    if zone::is_utc(zone) {
        return Ok(Arc::clone(values));
    }
    let of_zone = |unit: TimeUnit| Timestamp(unit, Some(Arc::clone(zone)));
    match (values.data_type(), to) {
        (Timestamp(_, None), Timestamp(_, Some(_)))
        | (Timestamp(_, Some(_)), Timestamp(_, None) | Date32 | Date64 | Time32(_) | Time64(_)) => {
            zone::in_zone(values, zone)
        }
        (Date32 | Date64, Timestamp(_, Some(_))) => {
            zone::in_zone(&cast_with_options(values, &Timestamp(TimeUnit::Microsecond, None), &STRICT)?, zone)
        }
        (Timestamp(unit, Some(_)), Utf8 | LargeUtf8 | Utf8View) => {
            Ok(cast_with_options(values, &of_zone(*unit), &STRICT)?)
        }
        (Utf8 | LargeUtf8 | Utf8View, Timestamp(unit, Some(_))) => Ok(converted(values, &of_zone(*unit))?),
        _ => Ok(Arc::clone(values)),
    }
}

/// A table whose columns have the types of SQL; the same one if they all have them already.
pub fn as_declared(
    provider: Arc<dyn TableProvider>,
    definition: &Definition,
    name: TableReference,
) -> Result<Arc<dyn TableProvider>> {
    if !differs(definition) {
        return Ok(provider);
    }
    let columns = provider.schema();
    let columns = columns.fields().iter().map(|field| {
        let column = definition.position(field.name()).and_then(|position| definition.columns.get(position));
        let kept = ident(field.name());
        match column.map(|column| (logical(&column.field), column)) {
            Some((logical, column)) if logical != *field.data_type() => {
                cast_to(kept, logical, &column.field).alias(field.name())
            }
            _ => kept,
        }
    });
    let columns: Vec<Expr> = columns.collect();
    let plan =
        LogicalPlanBuilder::scan(name, provider_as_source(provider), None)?.project(columns)?.build()?;
    Ok(Arc::new(ViewTable::new(plan, None)))
}

/// A cast to the type of a column, with what its metadata say of the values.
fn cast_to(kept: Expr, logical: DataType, column: &Field) -> Expr {
    let told = column.metadata().iter().filter(|(key, value)| is_kept(key, value));
    let metadata: HashMap<_, _> = told.map(|(key, value)| (key.clone(), value.clone())).collect();
    if metadata.is_empty() {
        return cast(kept, logical);
    }
    let field = Field::new(column.name(), logical, column.is_nullable()).with_metadata(metadata);
    Expr::Cast(Cast::new_from_field(Box::new(kept), Arc::new(field)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_comes_back_as_it_was() {
        for data_type in [
            DataType::Time64(TimeUnit::Microsecond),
            DataType::UInt8,
            DataType::UInt16,
            DataType::UInt32,
            DataType::UInt64,
            DataType::Decimal128(5, -2),
            DataType::Decimal256(39, 0),
            DataType::FixedSizeBinary(16),
            DataType::Int32,
            DataType::Decimal128(5, 2),
            variant::data_type(),
        ] {
            let kept = kept(Storage::Durable, &Field::new("a", data_type.clone(), true)).unwrap();
            assert_eq!(durable_type(kept.data_type()).as_ref(), Some(kept.data_type()));
            assert_eq!(logical(&kept), data_type);
        }
    }
}
