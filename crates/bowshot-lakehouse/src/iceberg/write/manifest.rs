//! Manifests and manifest lists of the format versions 2 and 3, written (specification, "Manifests" and "Manifest Lists").

use super::super::manifest::{FieldSummary, ManifestFile};
use super::avro::{Container, Encoder};
use super::column_bounds::{extremes, is_nan, lower_bound, upper_bound};
use super::data_files::WrittenFile;
use super::table_state::{PartitionColumn, Spec, Target};
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What entries say of files.
const EXISTING: i64 = 0;
const ADDED: i64 = 1;
const DELETED: i64 = 2;

/// What the files of a manifest are for.
pub(super) const DATA: i64 = 0;
pub(super) const DELETES: i64 = 1;

#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    Added,
    /// Leaves it in the table, to which this snapshot has added it.
    Existing {
        snapshot: i64,
        sequence: i64,
        file_sequence: i64,
    },
    Deleted {
        sequence: i64,
        file_sequence: i64,
    },
}

pub(super) fn manifest<'f>(
    (target, spec, content): (&Target, &Spec, i64),
    files: impl Iterator<Item = (Change, &'f WrittenFile)>,
    snapshot: i64,
) -> Vec<u8> {
    let (schema_id, spec_id) = (target.schema_id.to_string(), spec.id.to_string());
    let version = target.version.to_string();
    let properties = [
        ("schema", target.schema_text.as_str()),
        ("schema-id", schema_id.as_str()),
        ("partition-spec", spec.text.as_str()),
        ("partition-spec-id", spec_id.as_str()),
        ("format-version", version.as_str()),
        ("content", if content == DATA { "data" } else { "deletes" }),
    ];
    let schema = entry_schema(&spec.partition, target.has_lineage());
    let mut container = Container::new(&schema.to_string(), &properties);
    for (change, file) in files {
        // The numbers of a new file are those of the manifest, which are not known before the commit.
        let (status, added_by, sequence, file_sequence) = match change {
            Change::Existing { snapshot, sequence, file_sequence } => {
                (EXISTING, snapshot, Some(sequence), Some(file_sequence))
            }
            Change::Added => (ADDED, snapshot, None, None),
            Change::Deleted { sequence, file_sequence } => {
                (DELETED, snapshot, Some(sequence), Some(file_sequence))
            }
        };
        container.row(|row| {
            row.long(status);
            row.optional(Some(added_by), Encoder::long);
            row.optional(sequence, Encoder::long);
            row.optional(file_sequence, Encoder::long);
            write_file(row, file, target.has_lineage());
        });
    }
    container.finish()
}

fn write_file(row: &mut Encoder, file: &WrittenFile, has_lineage: bool) {
    row.long(file.content);
    row.text(&file.path);
    row.text(&file.format);
    file.partition.iter().for_each(|value| write_value(row, value));
    row.long(file.rows);
    row.long(file.bytes);
    let metrics = &file.metrics;
    for numbers in [&metrics.sizes, &metrics.values, &metrics.nulls, &metrics.nans] {
        write_map(row, numbers, |row, value| row.long(*value));
    }
    for bounds in [&metrics.lower, &metrics.upper] {
        write_map(row, bounds, |row, value| row.bytes(value));
    }
    row.optional(file.key.as_deref(), Encoder::bytes);
    if has_lineage {
        let equality = Some(&file.equality).filter(|numbers| !numbers.is_empty());
        row.optional(equality, |row, numbers| {
            row.array(numbers.iter(), |row, number| row.long(i64::from(*number)));
        });
    }
    row.optional(file.sort_order, Encoder::long);
    if has_lineage {
        row.optional(file.first_row, Encoder::long);
        row.optional(file.referenced.as_deref(), Encoder::text);
        row.optional(file.range.map(|(place, _)| place), Encoder::long);
        row.optional(file.range.map(|(_, length)| length), Encoder::long);
    }
}

fn write_map<V>(row: &mut Encoder, map: &BTreeMap<i32, V>, write: impl Fn(&mut Encoder, &V)) {
    row.optional(Some(map).filter(|map| !map.is_empty()), |row, map| {
        row.array(map.iter(), |row, (number, value)| {
            row.long(i64::from(*number));
            write(row, value);
        });
    });
}

/// A value of a partition, which may be NULL.
fn write_value(row: &mut Encoder, value: &ScalarValue) {
    row.optional((!value.is_null()).then_some(value), |row, value| match value {
        ScalarValue::Boolean(Some(it)) => row.boolean(*it),
        ScalarValue::Int32(Some(it)) | ScalarValue::Date32(Some(it)) => row.long(i64::from(*it)),
        ScalarValue::Int64(Some(it))
        | ScalarValue::Time64Microsecond(Some(it))
        | ScalarValue::TimestampMicrosecond(Some(it), _)
        | ScalarValue::TimestampNanosecond(Some(it), _) => row.long(*it),
        ScalarValue::Float32(Some(it)) => row.raw(&it.to_le_bytes()),
        ScalarValue::Float64(Some(it)) => row.raw(&it.to_le_bytes()),
        ScalarValue::Utf8(Some(it)) => row.text(it),
        ScalarValue::Binary(Some(it)) => row.bytes(it),
        ScalarValue::FixedSizeBinary(_, Some(it)) => row.raw(it),
        ScalarValue::Decimal128(Some(it), precision, _) => {
            row.raw(&it.to_be_bytes()[16 - decimal_bytes(*precision)..]);
        }
        other => unreachable!("`{other}` is not a type of `avro_type`"),
    });
}

fn decimal_bytes(precision: u8) -> usize {
    let holds = |bytes: &usize| 10_u128.pow(u32::from(precision)) <= 1_u128 << (8 * bytes - 1);
    (1..16).find(holds).unwrap_or(16)
}

/// The type of a value of a partition; all primitive types have one.
fn avro_type(column: &PartitionColumn) -> Value {
    let fixed =
        |bytes: i64| json!({"type": "fixed", "name": format!("fixed_{}", column.number), "size": bytes});
    match &column.result {
        DataType::Boolean => json!("boolean"),
        DataType::Int32 => json!("int"),
        DataType::Int64 => json!("long"),
        DataType::Float32 => json!("float"),
        DataType::Float64 => json!("double"),
        DataType::Date32 => json!({"type": "int", "logicalType": "date"}),
        DataType::Time64(_) => json!({"type": "long", "logicalType": "time-micros"}),
        DataType::Timestamp(unit, zone) => {
            let of_unit = if *unit == TimeUnit::Nanosecond { "timestamp-nanos" } else { "timestamp-micros" };
            json!({"type": "long", "logicalType": of_unit, "adjust-to-utc": zone.is_some()})
        }
        DataType::Binary => json!("bytes"),
        DataType::FixedSizeBinary(bytes) => fixed(i64::from(*bytes)),
        DataType::Decimal128(precision, scale) => {
            let mut decimal = fixed(i64::try_from(decimal_bytes(*precision)).unwrap_or(16));
            decimal["logicalType"] = json!("decimal");
            decimal["precision"] = json!(precision);
            decimal["scale"] = json!(scale);
            decimal
        }
        _ => json!("string"),
    }
}

fn avro_name(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    for (place, character) in name.chars().enumerate() {
        match character {
            'a'..='z' | 'A'..='Z' | '_' => plain.push(character),
            '0'..='9' if place > 0 => plain.push(character),
            '0'..='9' => plain.extend(['_', character]),
            other => plain.push_str(&format!("_x{:X}", u32::from(other))),
        }
    }
    plain
}

fn field(number: i32, name: &str, data_type: Value) -> Value {
    json!({"name": name, "type": data_type, "field-id": number})
}

fn optional_field(number: i32, name: &str, data_type: Value) -> Value {
    json!({"name": name, "type": ["null", data_type], "default": null, "field-id": number})
}

fn map_field(number: i32, name: &str, (key, value): (i32, i32), value_type: &str) -> Value {
    let pair = json!({"type": "record", "name": format!("k{key}_v{value}"), "fields": [
        field(key, "key", json!("int")), field(value, "value", json!(value_type)),
    ]});
    optional_field(number, name, json!({"type": "array", "logicalType": "map", "items": pair}))
}

fn entry_schema(partition: &[PartitionColumn], has_lineage: bool) -> Value {
    let of_partition =
        |column: &PartitionColumn| optional_field(column.number, &avro_name(&column.name), avro_type(column));
    let partition: Vec<Value> = partition.iter().map(of_partition).collect();
    let numbers = json!({"type": "array", "items": "int", "element-id": 136});
    let mut file = vec![
        field(134, "content", json!("int")),
        field(100, "file_path", json!("string")),
        field(101, "file_format", json!("string")),
        field(102, "partition", json!({"type": "record", "name": "r102", "fields": partition})),
        field(103, "record_count", json!("long")),
        field(104, "file_size_in_bytes", json!("long")),
        map_field(108, "column_sizes", (117, 118), "long"),
        map_field(109, "value_counts", (119, 120), "long"),
        map_field(110, "null_value_counts", (121, 122), "long"),
        map_field(137, "nan_value_counts", (138, 139), "long"),
        map_field(125, "lower_bounds", (126, 127), "bytes"),
        map_field(128, "upper_bounds", (129, 130), "bytes"),
        optional_field(131, "key_metadata", json!("bytes")),
    ];
    // Of version 2, manifests of deletes are never written again.
    file.extend(has_lineage.then(|| optional_field(135, "equality_ids", numbers)));
    file.push(optional_field(140, "sort_order_id", json!("int")));
    if has_lineage {
        file.extend([
            optional_field(142, "first_row_id", json!("long")),
            optional_field(143, "referenced_data_file", json!("string")),
            optional_field(144, "content_offset", json!("long")),
            optional_field(145, "content_size_in_bytes", json!("long")),
        ]);
    }
    json!({"type": "record", "name": "manifest_entry", "fields": [
        field(0, "status", json!("int")),
        optional_field(1, "snapshot_id", json!("long")),
        optional_field(3, "sequence_number", json!("long")),
        optional_field(4, "file_sequence_number", json!("long")),
        field(2, "data_file", json!({"type": "record", "name": "r2", "fields": file})),
    ]})
}

/// What a list says of the partitions of some files.
pub(super) fn summaries(partition: &[PartitionColumn], files: &[WrittenFile]) -> Vec<FieldSummary> {
    let summary = |(place, column): (usize, &PartitionColumn)| {
        let values = || files.iter().filter_map(move |file| file.partition.get(place));
        let found = extremes(values());
        FieldSummary {
            has_null: values().any(ScalarValue::is_null),
            has_nan: Some(column.result.is_floating() && values().any(is_nan)),
            lower: found.and_then(|(low, _)| lower_bound(low)),
            upper: found.and_then(|(_, high)| upper_bound(high)),
        }
    };
    partition.iter().enumerate().map(summary).collect()
}

/// The list of the manifests of a snapshot; with the number of its first new row, since version 3.
pub(super) fn list(
    manifests: &[ManifestFile],
    (snapshot, parent): (i64, Option<i64>),
    (sequence, first_row): (i64, Option<i64>),
) -> Vec<u8> {
    let parent = parent.map_or_else(|| "null".to_owned(), |parent| parent.to_string());
    let (snapshot, sequence) = (snapshot.to_string(), sequence.to_string());
    let first = first_row.map(|first| first.to_string());
    let mut properties = vec![
        ("snapshot-id", snapshot.as_str()),
        ("parent-snapshot-id", parent.as_str()),
        ("sequence-number", sequence.as_str()),
        ("format-version", if first.is_some() { "3" } else { "2" }),
    ];
    properties.extend(first.as_ref().map(|first| ("first-row-id", first.as_str())));
    let mut container = Container::new(&list_schema(first.is_some()).to_string(), &properties);
    for manifest in manifests {
        container.row(|row| {
            write_manifest(row, manifest);
            if first.is_some() {
                row.optional(manifest.first_row, Encoder::long);
            }
        });
    }
    container.finish()
}

fn write_manifest(row: &mut Encoder, manifest: &ManifestFile) {
    row.text(&manifest.path);
    let ManifestFile { length, spec, content, sequence, min_sequence, snapshot, .. } = manifest;
    for number in [length, spec, content, sequence, min_sequence, snapshot] {
        row.long(*number);
    }
    manifest.files.iter().chain(&manifest.rows).for_each(|count| row.long(*count));
    row.optional(manifest.partitions.as_ref(), |row, summaries| {
        row.array(summaries.iter(), |row, summary| {
            row.boolean(summary.has_null);
            row.optional(summary.has_nan, Encoder::boolean);
            row.optional(summary.lower.as_deref(), Encoder::bytes);
            row.optional(summary.upper.as_deref(), Encoder::bytes);
        });
    });
    row.optional(manifest.key.as_deref(), Encoder::bytes);
}

fn list_schema(has_lineage: bool) -> Value {
    let summary = json!({"type": "record", "name": "r508", "fields": [
        field(509, "contains_null", json!("boolean")),
        optional_field(518, "contains_nan", json!("boolean")),
        optional_field(510, "lower_bound", json!("bytes")),
        optional_field(511, "upper_bound", json!("bytes")),
    ]});
    let mut fields = vec![
        field(500, "manifest_path", json!("string")),
        field(501, "manifest_length", json!("long")),
        field(502, "partition_spec_id", json!("int")),
        field(517, "content", json!("int")),
        field(515, "sequence_number", json!("long")),
        field(516, "min_sequence_number", json!("long")),
        field(503, "added_snapshot_id", json!("long")),
        field(504, "added_files_count", json!("int")),
        field(505, "existing_files_count", json!("int")),
        field(506, "deleted_files_count", json!("int")),
        field(512, "added_rows_count", json!("long")),
        field(513, "existing_rows_count", json!("long")),
        field(514, "deleted_rows_count", json!("long")),
        optional_field(507, "partitions", json!({"type": "array", "items": summary, "element-id": 508})),
        optional_field(519, "key_metadata", json!("bytes")),
    ];
    if has_lineage {
        fields.push(optional_field(520, "first_row_id", json!("long")));
    }
    json!({"type": "record", "name": "manifest_file", "fields": fields})
}
