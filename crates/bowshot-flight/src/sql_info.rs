//! `CommandGetSqlInfo`: the capabilities of the server. Exactly the standard codes have rows: the JDBC driver fails
//! on missing and on unknown ones. Each code has the union member that the JDBC, ODBC and Go drivers read, which
//! sometimes differs from `FlightSql.proto`.

mod codes;
mod keywords;

use crate::metadata::batch;
use arrow::array::{
    ArrayBuilder, ArrayRef, BooleanBuilder, Int32Builder, Int64Builder, ListBuilder, MapBuilder,
    MapFieldNames, StringBuilder, UInt32Array, UnionArray,
};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, UnionFields, UnionMode};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use bowshot_api::{About, Error, Limits, Result};
use codes::Value;
use std::sync::{Arc, LazyLock};

pub(crate) fn schema() -> SchemaRef {
    Arc::clone(&SCHEMA)
}

/// The rows of the requested codes, or of all; unknown codes have none.
pub(crate) fn answer(about: &About, limits: &Limits, requested: &[u32]) -> Result<RecordBatch> {
    let mut rows = codes::all(about, limits);
    rows.retain(|(code, _)| requested.is_empty() || requested.contains(code));
    rows.sort_by_key(|(code, _)| *code);
    let names = UInt32Array::from_iter_values(rows.iter().map(|(code, _)| *code));
    let values = union(&rows).map_err(|error| {
        Error::internal("the server's description does not fit its schema").with_source(error)
    })?;
    batch(schema(), vec![Arc::new(names), Arc::new(values)])
}

/// Keywords of the dialect, sorted, in upper case.
pub(crate) fn keywords() -> &'static [&'static str] {
    keywords::KEYWORDS
}

type MapOfLists = MapBuilder<Int32Builder, ListBuilder<Int32Builder>>;

fn union(rows: &[(u32, Value)]) -> Result<UnionArray, ArrowError> {
    let mut texts = StringBuilder::new();
    let mut truths = BooleanBuilder::new();
    let mut numbers = Int64Builder::new();
    let mut bitmasks = Int32Builder::new();
    let mut lists = ListBuilder::new(StringBuilder::new());
    let mut maps = map_builder();
    let mut type_ids: Vec<i8> = Vec::with_capacity(rows.len());
    let mut lengths: Vec<usize> = Vec::with_capacity(rows.len());
    for (_, value) in rows {
        let (member, length) = match value {
            Value::Text(text) => {
                texts.append_value(text);
                (0, texts.len())
            }
            Value::Bool(truth) => {
                truths.append_value(*truth);
                (1, truths.len())
            }
            Value::BigInt(number) => {
                numbers.append_value(*number);
                (2, numbers.len())
            }
            Value::Bitmask(bits) => {
                bitmasks.append_value(*bits);
                (3, bitmasks.len())
            }
            Value::Words(words) => {
                lists.append_value(words.iter().map(Some));
                (4, lists.len())
            }
            Value::Conversions(conversions) => {
                append_conversions(&mut maps, conversions)?;
                (5, maps.len())
            }
        };
        type_ids.push(member);
        lengths.push(length);
    }
    let children: Vec<ArrayRef> = vec![
        Arc::new(texts.finish()),
        Arc::new(truths.finish()),
        Arc::new(numbers.finish()),
        Arc::new(bitmasks.finish()),
        Arc::new(lists.finish()),
        Arc::new(maps.finish()),
    ];
    // Each row points at the value that was the last of its member when the row was added.
    let offsets = lengths
        .into_iter()
        .map(|length| i32::try_from(length.saturating_sub(1)))
        .collect::<Result<ScalarBuffer<i32>, _>>()
        .map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
    UnionArray::try_new(members(), ScalarBuffer::from(type_ids), Some(offsets), children)
}

fn append_conversions(maps: &mut MapOfLists, conversions: &[(i32, &[i32])]) -> Result<(), ArrowError> {
    for (from, to) in conversions {
        maps.keys().append_value(*from);
        maps.values().append_value(to.iter().map(|code| Some(*code)));
    }
    maps.append(true)
}

fn map_builder() -> MapOfLists {
    let names =
        MapFieldNames { entry: "entries".to_owned(), key: "key".to_owned(), value: "value".to_owned() };
    MapBuilder::new(Some(names), Int32Builder::new(), ListBuilder::new(Int32Builder::new()))
}

fn map_type() -> DataType {
    let list = DataType::List(Arc::new(Field::new_list_field(DataType::Int32, true)));
    let entry =
        Fields::from(vec![Field::new("key", DataType::Int32, false), Field::new("value", list, true)]);
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entry), false)), false)
}

fn members() -> UnionFields {
    let words = DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)));
    UnionFields::from_fields(vec![
        Field::new("string_value", DataType::Utf8, false),
        Field::new("bool_value", DataType::Boolean, false),
        Field::new("bigint_value", DataType::Int64, false),
        Field::new("int32_bitmask", DataType::Int32, false),
        Field::new("string_list", words, false),
        Field::new("int32_to_int32_list_map", map_type(), false),
    ])
}

static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        Field::new("info_name", DataType::UInt32, false),
        Field::new("value", DataType::Union(members(), UnionMode::Dense), false),
    ]))
});

#[cfg(test)]
mod tests;
