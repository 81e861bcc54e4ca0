//! Files of others that were added to a table: the catalog says which names their columns have (specification,
//! `ducklake_name_mapping`). They are given the numbers that these stand for, and read like all others.

use super::super::columns::numbered;
use super::metadata::NameRow;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema};
use std::sync::Arc;

/// The columns of a file with the numbers that their names stand for; those without a name there have none.
pub(super) fn by_name(file: &Schema, names: &[NameRow]) -> Schema {
    let fields: Fields = file
        .fields()
        .iter()
        .map(|field| {
            let found = names
                .iter()
                .find(|name| name.parent.is_none() && !name.is_partition && name.name == *field.name());
            with_number(field, found, names)
        })
        .collect();
    Schema::new(fields)
}

fn with_number(field: &FieldRef, found: Option<&NameRow>, names: &[NameRow]) -> FieldRef {
    let plain = field.as_ref().clone();
    let Some(found) = found else { return Arc::new(plain.with_metadata(Default::default())) };
    let inner = |wanted: &dyn Fn(&NameRow) -> bool| {
        names.iter().find(|name| name.parent == Some(found.id) && wanted(name))
    };
    let by_its_name = |field: &FieldRef| with_number(field, inner(&|name| name.name == *field.name()), names);
    let data_type = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(by_its_name).collect()),
        // What it is called differs between writers, and there is one.
        DataType::List(element) => DataType::List(with_number(element, inner(&|_| true), names)),
        DataType::LargeList(element) => DataType::LargeList(with_number(element, inner(&|_| true), names)),
        DataType::Map(entries, sorted) => DataType::Map(Arc::new(of_map(entries, by_its_name)), *sorted),
        other => other.clone(),
    };
    let metadata = i32::try_from(found.target).map(numbered).unwrap_or_default();
    Arc::new(plain.with_data_type(data_type).with_metadata(metadata))
}

fn of_map(entries: &Field, with_number: impl Fn(&FieldRef) -> FieldRef) -> Field {
    match entries.data_type() {
        DataType::Struct(fields) => {
            entries.clone().with_data_type(DataType::Struct(fields.iter().map(with_number).collect()))
        }
        _ => entries.clone(),
    }
}

/// The value that a path has for a column, as folders called `key=value` have them.
pub(super) fn in_path(path: &str, key: &str) -> Option<Option<String>> {
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    let value = folders.split('/').rev().find_map(|part| {
        let (name, value) = part.split_once('=')?;
        (decoded(name) == key).then_some(value)
    })?;
    Some((value != "__HIVE_DEFAULT_PARTITION__").then(|| decoded(value)))
}

fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}
