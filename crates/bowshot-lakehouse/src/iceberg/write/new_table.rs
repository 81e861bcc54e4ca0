//! A table that is to be made, as a catalog is asked for it. The numbers of columns are suggestions: catalogs give their own.

use super::super::metadata::IcebergField;
use super::super::types;
use super::table_state::VERSIONS;
use super::transform::Transform;
use crate::columns::LakeColumn;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use bowshot_api::{Error, Reason, Result};
use bowshot_formats::extension_types::{EXTENSION, UUID};
use serde::Deserialize;
use serde_json::{Value, json};

const DEFAULT_VERSION: u32 = 2;
/// The first version that has types of nanoseconds.
const WITH_NANOSECONDS: u32 = 3;
const FIRST_PARTITION: i64 = 1000;

/// One of the values that the rows of a new table are partitioned by: a transform as the format writes it, and a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPartition {
    pub transform: String,
    pub column: String,
}

#[derive(Debug, Clone, Copy)]
pub struct NewTable<'a> {
    pub columns: &'a Schema,
    pub partition: &'a [NewPartition],
    /// The version of the format; 2 for none.
    pub version: Option<u32>,
}

/// What a catalog is asked for.
///
/// # Errors
/// `Unsupported` for types that the format does not have, and for versions that are not written; `Invalid` for partitions that make no
/// sense.
pub(in super::super) fn table_request(name: &str, new: &NewTable<'_>) -> Result<Value> {
    let NewTable { columns: schema, partition, version } = *new;
    let version = version.unwrap_or(DEFAULT_VERSION);
    if !VERSIONS.contains(&version) {
        return Err(Error::unsupported(format!(
            "version {version} of the Iceberg format is not supported for new tables"
        ))
        .with_hint("use version 2 or 3"));
    }
    let last = i32::try_from(schema.fields().len()).unwrap_or(i32::MAX);
    let mut numbers = Numbers { last, version };
    let mut fields = Vec::with_capacity(schema.fields().len());
    for (number, field) in (1_i32..).zip(schema.fields()) {
        let data_type = numbers.checked_type(field)?;
        fields.push(json!({
            "id": number, "name": field.name(), "required": !field.is_nullable(), "type": data_type,
        }));
    }
    let fields = Value::Array(fields);
    let spec = spec(&fields, partition)?;
    Ok(json!({
        "name": name,
        "schema": {"type": "struct", "schema-id": 0, "fields": fields},
        "partition-spec": {"spec-id": 0, "fields": spec},
        "stage-create": false,
        "properties": {"format-version": version.to_string()},
    }))
}

fn spec(fields: &Value, partition: &[NewPartition]) -> Result<Vec<Value>> {
    let parsed = Vec::<IcebergField>::deserialize(fields)
        .map_err(|error| Error::internal("the columns of a new table cannot be read").with_source(error))?;
    let columns = types::columns(&parsed).map_err(Error::unsupported)?;
    let mut spec: Vec<Value> = Vec::with_capacity(partition.len());
    for (number, field) in (FIRST_PARTITION..).zip(partition) {
        let NewPartition { transform, column } = field;
        let found = columns.iter().find(|known| known.field.name() == column);
        let made = partition_field(found, field, number)?;
        if spec.iter().any(|other| other["name"] == made["name"]) {
            return Err(Error::invalid(format!("rows are partitioned by {transform} of `{column}` twice")));
        }
        spec.push(made);
    }
    Ok(spec)
}

/// A field of a specification, of a column if it was found.
pub(super) fn partition_field(
    column: Option<&LakeColumn>,
    NewPartition { transform, column: name }: &NewPartition,
    number: i64,
) -> Result<Value> {
    let found = column.ok_or_else(|| {
        Error::not_found(format!("column `{name}` of PARTITION BY does not exist"))
            .with_reason(Reason::UndefinedColumn)
    })?;
    let data_type = found.field.data_type();
    if Transform::parse(transform).and_then(|transform| transform.result(data_type)).is_none() {
        return Err(Error::invalid(format!(
            "rows cannot be partitioned by {transform} of `{name}`: it is of the type {data_type}"
        )));
    }
    Ok(json!({
        "source-id": found.number, "field-id": number, "name": partition_name(transform, name),
        "transform": transform,
    }))
}

/// As other writers call it.
fn partition_name(transform: &str, column: &str) -> String {
    match transform.split('[').next().unwrap_or_default() {
        "identity" => column.to_owned(),
        "truncate" => format!("{column}_trunc"),
        other => format!("{column}_{other}"),
    }
}

/// The last number that was given to a field, in a table of this version.
pub(super) struct Numbers {
    pub(super) last: i32,
    pub(super) version: u32,
}

impl Numbers {
    /// # Errors
    /// `Unsupported` for a type that the format does not have.
    pub(super) fn checked_type(&mut self, field: &Field) -> Result<Value> {
        self.type_of(field).ok_or_else(|| {
            let message = format!("column `{}` has the type {}", field.name(), field.data_type());
            let version = self.version;
            Error::unsupported(format!("{message}, which Iceberg tables of version {version} do not have"))
                .with_hint("use another type, such as VARCHAR")
        })
    }

    pub(super) fn next(&mut self) -> i32 {
        self.last = self.last.saturating_add(1);
        self.last
    }

    /// `None` for a type that the format does not have.
    fn type_of(&mut self, field: &Field) -> Option<Value> {
        let is_uuid = field.metadata().get(EXTENSION).is_some_and(|name| name == UUID);
        Some(match field.data_type() {
            DataType::Boolean => json!("boolean"),
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16 => {
                json!("int")
            }
            DataType::Int64 | DataType::UInt32 => json!("long"),
            DataType::Float16 | DataType::Float32 => json!("float"),
            DataType::Float64 => json!("double"),
            DataType::Decimal32(precision, scale)
            | DataType::Decimal64(precision, scale)
            | DataType::Decimal128(precision, scale)
                if *scale >= 0 && i16::from(*scale) <= i16::from(*precision) =>
            {
                json!(format!("decimal({precision}, {scale})"))
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => json!("string"),
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => json!("binary"),
            DataType::FixedSizeBinary(16) if is_uuid => json!("uuid"),
            DataType::FixedSizeBinary(length) if *length > 0 => json!(format!("fixed[{length}]")),
            DataType::Date32 => json!("date"),
            DataType::Time32(_) | DataType::Time64(_) => json!("time"),
            DataType::Timestamp(TimeUnit::Nanosecond, zone) if self.version >= WITH_NANOSECONDS => {
                if zone.is_some() { json!("timestamptz_ns") } else { json!("timestamp_ns") }
            }
            DataType::Timestamp(_, None) => json!("timestamp"),
            DataType::Timestamp(_, Some(_)) => json!("timestamptz"),
            DataType::List(element) | DataType::LargeList(element) => {
                let (number, data_type) = (self.next(), self.type_of(element)?);
                json!({
                    "type": "list", "element-id": number, "element": data_type,
                    "element-required": !element.is_nullable(),
                })
            }
            DataType::Struct(fields) => {
                let mut inner = Vec::with_capacity(fields.len());
                for field in fields {
                    let (number, data_type) = (self.next(), self.type_of(field)?);
                    inner.push(json!({
                        "id": number, "name": field.name(), "required": !field.is_nullable(), "type": data_type,
                    }));
                }
                json!({"type": "struct", "fields": inner})
            }
            DataType::Map(entries, _) => {
                let DataType::Struct(pair) = entries.data_type() else { return None };
                let [key, value] = &pair[..] else { return None };
                let (key_id, value_id) = (self.next(), self.next());
                json!({
                    "type": "map", "key-id": key_id, "key": self.type_of(key)?,
                    "value-id": value_id, "value": self.type_of(value)?, "value-required": !value.is_nullable(),
                })
            }
            DataType::Dictionary(_, values) => {
                self.type_of(&Field::new(field.name(), values.as_ref().clone(), field.is_nullable()))?
            }
            _ => return None,
        })
    }
}
