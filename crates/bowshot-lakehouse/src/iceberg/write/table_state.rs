//! The metadata of a table as a whole, and what they say of how rows are written to it.

use super::super::metadata::TableMetadata;
use super::super::types;
use super::transform::Transform;
use crate::columns::LakeColumn;
use crate::row_lineage;
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use bowshot_api::{Error, ErrorKind, Result};
use datafusion::common::ScalarValue;
use serde::Deserialize;
use serde_json::Value;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

pub(super) const VERSIONS: RangeInclusive<u32> = 2..=3;
/// The first version in which rows have numbers, and vectors say which of them are deleted.
const WITH_LINEAGE: u32 = 3;

#[derive(Debug)]
pub(in super::super) struct TableState {
    pub(super) whole: Value,
    pub(super) metadata: TableMetadata,
}

#[derive(Debug)]
pub(in super::super) struct Target {
    pub(super) version: u32,
    pub(super) location: String,
    pub(super) columns: Vec<LakeColumn>,
    /// What rows have in columns that they do not name.
    pub(super) defaults: Vec<ScalarValue>,
    /// As files have them.
    pub(super) schema: SchemaRef,
    pub(super) schema_id: i64,
    /// The columns as the metadata say them.
    pub(super) schema_text: String,
    pub(super) spec: Spec,
}

#[derive(Debug)]
pub(super) struct Spec {
    pub(super) id: i64,
    /// As the metadata say it.
    pub(super) text: String,
    pub(super) partition: Vec<PartitionColumn>,
}

#[derive(Debug)]
pub(super) struct PartitionColumn {
    pub(super) number: i32,
    pub(super) name: String,
    pub(super) transform: Transform,
    /// The place of the column; of none where all values are NULL.
    pub(super) source: Option<usize>,
    pub(super) result: DataType,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct SpecField {
    source_id: Option<i32>,
    field_id: i32,
    name: String,
    transform: String,
}

impl TableState {
    pub(in super::super) fn new(whole: Value, file: &Path) -> Result<Self> {
        let metadata = TableMetadata::deserialize(&whole)
            .map_err(|error| bowshot_object_store::Error::corrupt(file, error))?;
        metadata.check(file)?;
        Ok(Self { whole, metadata })
    }

    pub(super) fn number(&self, key: &str) -> Option<i64> {
        self.whole.get(key)?.as_i64()
    }

    /// The table, whatever it is called.
    pub(in super::super) fn uuid(&self) -> Option<&str> {
        self.whole.get("table-uuid")?.as_str()
    }

    pub(in super::super) fn current(&self) -> Option<i64> {
        self.number("current-snapshot-id").filter(|id| *id >= 0)
    }

    pub(super) fn snapshots(&self) -> impl Iterator<Item = &Value> {
        self.whole.get("snapshots").and_then(Value::as_array).into_iter().flatten()
    }

    pub(super) fn main(&self) -> Option<&Value> {
        self.whole.get("refs")?.get("main")
    }

    /// Tags, and branches beside the main one.
    pub(super) fn refs(&self) -> impl Iterator<Item = (&String, &Value)> {
        let refs = self.whole.get("refs").and_then(Value::as_object).into_iter().flatten();
        refs.filter(|(name, _)| *name != "main")
    }

    pub(super) fn property(&self, key: &str) -> Option<&str> {
        self.whole.get("properties")?.get(key)?.as_str()
    }

    pub(super) fn snapshot(&self, id: i64) -> Option<&Value> {
        self.snapshots().find(|snapshot| snapshot.get("snapshot-id").and_then(Value::as_i64) == Some(id))
    }

    fn with_id(&self, list: &str, key: &str, id: i64) -> Option<&Value> {
        let list = self.whole.get(list)?.as_array()?;
        list.iter().find(|one| one.get(key).and_then(Value::as_i64) == Some(id))
    }

    pub(super) fn fields(&self) -> Option<&Value> {
        self.with_id("schemas", "schema-id", self.number("current-schema-id")?)?.get("fields")
    }

    pub(super) fn free_schema_id(&self) -> i64 {
        let schemas = self.whole.get("schemas").and_then(Value::as_array);
        let ids = schemas.into_iter().flatten().filter_map(|schema| schema.get("schema-id")?.as_i64());
        ids.max().map_or(0, |last| last.saturating_add(1))
    }

    /// Whether files are partitioned or sorted by the column of this number.
    pub(super) fn is_laid_out_by(&self, column: i64) -> bool {
        let lists = ["partition-specs", "sort-orders"]
            .into_iter()
            .filter_map(|list| self.whole.get(list)?.as_array());
        let fields = lists.flatten().filter_map(|one| one.get("fields")?.as_array()).flatten();
        let mut fields =
            fields.filter(|field| field.get("transform").and_then(Value::as_str) != Some("void"));
        fields.any(|field| field.get("source-id").and_then(Value::as_i64) == Some(column))
    }

    pub(super) fn identifies(&self, column: i64) -> bool {
        let current = self.number("current-schema-id");
        let schema = current.and_then(|id| self.with_id("schemas", "schema-id", id));
        let ids = schema.and_then(|schema| schema.get("identifier-field-ids")?.as_array());
        ids.is_some_and(|ids| ids.iter().any(|id| id.as_i64() == Some(column)))
    }

    /// What files of a specification are partitioned by; `None` for one that is not known here.
    pub(super) fn spec(&self, id: i64, columns: &[LakeColumn]) -> Option<Spec> {
        let spec = self.with_id("partition-specs", "spec-id", id)?.get("fields")?;
        let fields = Vec::<SpecField>::deserialize(spec).ok()?;
        let partition = fields.into_iter().map(|field| partition_column(field, columns));
        Some(Spec { id, text: spec.to_string(), partition: partition.collect::<Option<_>>()? })
    }

    /// How rows are written to the table as it is now.
    ///
    /// # Errors
    /// `Unsupported` for a table that asks for what this writer does not do; `Corrupt` for metadata that lack something.
    pub(in super::super) fn target(&self, name: &str) -> Result<Target> {
        let refused = |why: String| Error::unsupported(format!("cannot write to `{name}`: {why}"));
        let version = self.metadata.format_version;
        if !VERSIONS.contains(&version) {
            return Err(refused(format!("it has version {version} of the Iceberg format"))
                .with_hint("only versions 2 and 3 can be written: use another program, or copy it: `CREATE TABLE … AS SELECT …`"));
        }
        let lacks =
            |what: &str| Error::new(ErrorKind::Corrupt, format!("the metadata of `{name}` have no `{what}`"));
        let schema_id = self.number("current-schema-id").ok_or_else(|| lacks("current-schema-id"))?;
        let schema = self.with_id("schemas", "schema-id", schema_id).ok_or_else(|| lacks("schemas"))?;
        let fields = self.metadata.fields(None).ok_or_else(|| lacks("schemas"))?;
        let columns = types::columns(fields).map_err(&refused)?;
        let defaults = types::write_defaults(fields, &columns).map_err(&refused)?;
        let spec_id = self.number("default-spec-id").ok_or_else(|| lacks("default-spec-id"))?;
        let spec = self.spec(spec_id, &columns).ok_or_else(|| {
            refused("it has an unknown partition transform".to_owned())
                .with_hint("write it with the program that created it")
        })?;
        Ok(Target {
            version,
            defaults,
            location: self.metadata.location.trim_end_matches('/').to_owned(),
            schema: Arc::new(Schema::new(
                columns.iter().map(|column| Arc::clone(&column.field)).collect::<Vec<_>>(),
            )),
            columns,
            schema_id,
            schema_text: schema.to_string(),
            spec,
        })
    }
}

fn partition_column(field: SpecField, columns: &[LakeColumn]) -> Option<PartitionColumn> {
    let transform = Transform::parse(&field.transform)?;
    let source = columns.iter().position(|column| field.source_id == Some(column.number));
    let result = match source.and_then(|place| columns.get(place)) {
        Some(column) => transform.result(column.field.data_type())?,
        // The column is gone, and with it what the files were partitioned by.
        None if transform == Transform::Void => DataType::Int32,
        None => return None,
    };
    Some(PartitionColumn { number: field.field_id, name: field.name, transform, source, result })
}

impl Target {
    /// Whether rows have numbers, and vectors say which of them are deleted.
    pub(super) fn has_lineage(&self) -> bool {
        self.version >= WITH_LINEAGE
    }

    /// The same for rows that have been in the table before, which keep their numbers.
    pub(in super::super) fn with_lineage(self) -> Result<Self> {
        if !self.has_lineage() {
            return Ok(self);
        }
        let more = row_lineage::file_fields();
        if let Some(taken) = more.iter().find(|field| self.schema.field_with_name(field.name()).is_ok()) {
            return Err(Error::unsupported(format!(
                "cannot rewrite rows of a table with a column `{}`",
                taken.name()
            ))
            .with_hint("rename the column: files of version 3 reserve the name for row lineage"));
        }
        let fields: Vec<FieldRef> = self.schema.fields().iter().cloned().chain(more).collect();
        Ok(Self { schema: Arc::new(Schema::new(fields)), ..self })
    }

    pub(super) fn column_names(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.field.name().as_str()).collect()
    }

    pub(super) fn column_numbers(&self) -> Vec<(&str, i32)> {
        self.columns.iter().map(|column| (column.field.name().as_str(), column.number)).collect()
    }

    pub(super) fn address(&self, name: &str) -> String {
        format!("{}/{name}", self.location)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn state(changes: &[(&str, Value)]) -> TableState {
        let mut whole = json!({
            "format-version": 2, "location": "s3://b/t/", "table-uuid": "u", "current-schema-id": 1,
            "schemas": [{"schema-id": 1, "type": "struct", "fields": [
                {"id": 1, "name": "id", "required": true, "type": "long"},
                {"id": 2, "name": "at", "required": false, "type": "timestamp"}]}],
            "default-spec-id": 3,
            "partition-specs": [{"spec-id": 3, "fields": [
                {"source-id": 2, "field-id": 1000, "name": "at_day", "transform": "day"},
                {"source-id": 9, "field-id": 1001, "name": "gone", "transform": "void"}]}],
            "current-snapshot-id": -1, "snapshots": []
        });
        changes.iter().for_each(|(key, value)| whole[*key] = value.clone());
        TableState::new(whole, Path::new("t")).unwrap()
    }

    #[test]
    fn rows_of_version_3_keep_their_numbers() {
        let fields = |name: &str| {
            json!([{"schema-id": 1, "type": "struct", "fields": [
            {"id": 2, "name": name, "required": false, "type": "timestamp_ns"},
            {"id": 3, "name": "n", "required": false, "type": "int", "write-default": 7}]}])
        };
        let third = |name: &str| {
            state(&[("format-version", json!(3)), ("schemas", fields(name))]).target("t").unwrap()
        };
        let target = third("at").with_lineage().unwrap();
        let names: Vec<_> = target.schema.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names, ["at", "n", "_row_id", "_last_updated_sequence_number"]);
        assert_eq!(target.defaults.last(), Some(&ScalarValue::Int32(Some(7))));
        assert!(third("_row_id").with_lineage().is_err());
        assert_eq!(state(&[]).target("t").unwrap().with_lineage().unwrap().schema.fields().len(), 2);
    }

    #[test]
    fn what_is_not_written_is_refused() {
        let fields = |transform: &str, source: i32| {
            json!([{"spec-id": 3, "fields": [
                {"source-id": source, "field-id": 1000, "name": "p", "transform": transform}]}])
        };
        for changes in [
            vec![("format-version", json!(1))],
            vec![("partition-specs", fields("zorder", 1))],
            vec![("partition-specs", fields("hour", 1))],
            vec![("partition-specs", fields("identity", 9))],
            vec![("default-spec-id", json!(7))],
        ] {
            assert!(state(&changes).target("t").is_err(), "{changes:?}");
        }
    }
}
