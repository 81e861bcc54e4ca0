//! Extension types of Arrow for what Parquet and Avro say of a column beyond its bytes: UUID, JSON and VARIANT. What a Parquet file says of its
//! columns by itself, in the schema of Arrow that it has, comes first.

use crate::parquet::columns::is_variant;
use crate::variants::are_parts;
use arrow::datatypes::{DataType, FieldRef, Fields, Schema};
use bowshot_api::variant;
use parquet::basic::{ConvertedType, LogicalType};
use parquet::schema::types::{Type, TypePtr};
use std::sync::Arc;

/// Key of a field's metadata under which stands the extension type of Arrow.
pub const EXTENSION: &str = "ARROW:extension:name";
pub const UUID: &str = "arrow.uuid";

pub(crate) const PARAMETERS: &str = "ARROW:extension:metadata";
const JSON: &str = "arrow.json";

/// The columns of a file with the extension types that its own schema has.
pub fn with_extensions(columns: &Schema, root: &Type) -> Schema {
    let fields = with_parts(columns.fields(), root.get_fields());
    Schema::new_with_metadata(fields, columns.metadata().clone())
}

fn with_parts(fields: &Fields, types: &[TypePtr]) -> Fields {
    if fields.len() != types.len() {
        return fields.clone();
    }
    fields.iter().zip(types).map(|(field, of)| with_extension(field, of)).collect()
}

fn with_extension(field: &FieldRef, of: &Type) -> FieldRef {
    if (is_variant(of) || variant::is_marked(field)) && are_parts(field.data_type()) {
        return variant::marked(&Arc::new(field.as_ref().clone().with_data_type(variant::data_type())));
    }
    match extension(field.data_type(), of) {
        Some(_) if field.metadata().contains_key(EXTENSION) => Arc::clone(field),
        Some(name) => extended(field, name),
        None => {
            let within = within(field.data_type(), of);
            if &within == field.data_type() {
                return Arc::clone(field);
            }
            Arc::new(field.as_ref().clone().with_data_type(within))
        }
    }
}

/// The field with an extension that has no parameters.
fn extended(field: &FieldRef, name: &str) -> FieldRef {
    let mut metadata = field.metadata().clone();
    metadata.insert(EXTENSION.to_owned(), name.to_owned());
    metadata.insert(PARAMETERS.to_owned(), String::new());
    Arc::new(field.as_ref().clone().with_metadata(metadata))
}

fn extension(data_type: &DataType, of: &Type) -> Option<&'static str> {
    let info = of.get_basic_info();
    let is_json =
        info.logical_type_ref() == Some(&LogicalType::Json) || info.converted_type() == ConvertedType::JSON;
    match data_type {
        DataType::FixedSizeBinary(16) if info.logical_type_ref() == Some(&LogicalType::Uuid) => Some(UUID),
        DataType::Utf8 | DataType::LargeUtf8 if is_json => Some(JSON),
        _ => None,
    }
}

fn within(data_type: &DataType, of: &Type) -> DataType {
    if of.is_primitive() {
        return data_type.clone();
    }
    match data_type {
        DataType::Struct(fields) => DataType::Struct(with_parts(fields, of.get_fields())),
        DataType::List(item) => DataType::List(item_within(item, of)),
        DataType::LargeList(item) => DataType::LargeList(item_within(item, of)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(item_within(item, of), *size),
        DataType::Map(entries, sorted) => DataType::Map(
            match of.get_fields() {
                [pairs] => with_extension(entries, pairs),
                _ => Arc::clone(entries),
            },
            *sorted,
        ),
        other => other.clone(),
    }
}

/// Lists have three levels: the list, what is repeated, and the item in it.
fn item_within(item: &FieldRef, list: &Type) -> FieldRef {
    match list.get_fields() {
        [repeated] if repeated.is_group() => match repeated.get_fields() {
            [of] => with_extension(item, of),
            _ => Arc::clone(item),
        },
        _ => Arc::clone(item),
    }
}

/// The columns of an Avro file, whose reader leaves the logical type of UUIDs in the metadata.
pub(crate) fn with_logical_types(columns: &Schema) -> Schema {
    let fields = columns.fields().iter().map(of_logical_type).collect::<Fields>();
    Schema::new_with_metadata(fields, columns.metadata().clone())
}

fn of_logical_type(field: &FieldRef) -> FieldRef {
    let is_uuid = field.metadata().get("logicalType").is_some_and(|name| name.trim_matches('"') == "uuid");
    let data_type = match field.data_type() {
        DataType::FixedSizeBinary(16) if is_uuid => return extended(field, UUID),
        DataType::List(item) => DataType::List(of_logical_type(item)),
        DataType::Map(entries, sorted) => DataType::Map(of_logical_type(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(of_logical_type).collect()),
        _ => return Arc::clone(field),
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::arrow::parquet_to_arrow_schema;
    use parquet::schema::parser::parse_message_type;
    use parquet::schema::types::SchemaDescriptor;

    #[test]
    fn uuids_and_json_are_told_from_bytes_and_texts() {
        let root = Arc::new(
            parse_message_type(
                "message m {
                    optional FIXED_LEN_BYTE_ARRAY(16) u (UUID);
                    optional FIXED_LEN_BYTE_ARRAY(16) b;
                    optional BINARY j (JSON);
                    optional BINARY t (UTF8);
                    optional group l (LIST) { repeated group list { optional FIXED_LEN_BYTE_ARRAY(16) element (UUID); } }
                }",
            )
            .unwrap(),
        );
        let written = parquet_to_arrow_schema(&SchemaDescriptor::new(Arc::clone(&root)), None).unwrap();
        let told = with_extensions(&written, &root);
        let name = |field: &FieldRef| field.metadata().get(EXTENSION).cloned();
        let names: Vec<_> = told.fields().iter().map(name).collect();
        assert_eq!(names, [Some(UUID.to_owned()), None, Some(JSON.to_owned()), None, None]);
        let DataType::List(item) = told.field(4).data_type() else { unreachable!("a list") };
        assert_eq!(name(item).as_deref(), Some(UUID));
    }
}
