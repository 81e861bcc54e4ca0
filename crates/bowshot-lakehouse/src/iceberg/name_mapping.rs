//! Files whose columns have no numbers: the table says which names its columns had there (specification, "Name Mapping
//! Serialization"). They are given the numbers that these stand for, and read like all others.

use super::super::columns::numbered;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema};
use serde::Deserialize;
use std::sync::Arc;

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct MappedField {
    field_id: Option<i32>,
    names: Vec<String>,
    #[serde(default)]
    fields: Vec<MappedField>,
}

/// The columns of a file with the numbers that their names stand for; those without a name there have none.
pub(super) fn by_name(file: &Schema, names: &[MappedField]) -> Schema {
    Schema::new(with_numbers(file.fields(), names))
}

fn with_numbers(fields: &Fields, names: &[MappedField]) -> Fields {
    fields.iter().map(|field| with_number(field, find(names, field.name()))).collect()
}

fn find<'a>(names: &'a [MappedField], name: &str) -> Option<&'a MappedField> {
    names.iter().find(|mapped| mapped.names.iter().any(|known| known == name))
}

fn with_number(field: &Field, mapped: Option<&MappedField>) -> FieldRef {
    let inner = mapped.map(|mapped| mapped.fields.as_slice()).unwrap_or_default();
    let data_type = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(with_numbers(fields, inner)),
        // What it is called in files differs between writers.
        DataType::List(element) => DataType::List(with_number(element, find(inner, "element"))),
        DataType::LargeList(element) => DataType::LargeList(with_number(element, find(inner, "element"))),
        DataType::Map(entries, sorted) => DataType::Map(of_map(entries, inner), *sorted),
        other => other.clone(),
    };
    let number = mapped.and_then(|mapped| mapped.field_id);
    let metadata = number.map(numbered).unwrap_or_default();
    Arc::new(field.clone().with_data_type(data_type).with_metadata(metadata))
}

/// Key and value, whatever they are called in the file.
fn of_map(entries: &FieldRef, names: &[MappedField]) -> FieldRef {
    let DataType::Struct(fields) = entries.data_type() else { return Arc::clone(entries) };
    let pairs = fields.iter().zip(["key", "value"]);
    let fields = pairs.map(|(field, name)| with_number(field, find(names, name))).collect();
    Arc::new(entries.as_ref().clone().with_data_type(DataType::Struct(fields)))
}
