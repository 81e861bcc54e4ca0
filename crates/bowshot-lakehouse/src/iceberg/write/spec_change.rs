//! What rows of a table are partitioned by from now on, as a catalog is asked for it. Files stay as they are: each knows by which
//! specification it is partitioned.

use super::new_table::{NewPartition, partition_field};
use super::table_state::TableState;
use bowshot_api::{Error, ErrorKind, Result};
use serde_json::{Value, json};

/// Number below the first partition field.
const BEFORE_FIRST: i64 = 999;

#[derive(Debug, Clone)]
pub enum PartitionChange {
    /// One more value, which may have a name.
    Add { field: NewPartition, name: Option<String> },
    /// One less; a column alone may be the name of one.
    Drop(NewPartition),
}

/// What a catalog is asked for, and the fields that the specification of the table has then.
#[derive(Debug)]
pub(in super::super) struct SpecChange {
    pub(in super::super) request: Value,
    fields: Vec<Value>,
}

impl SpecChange {
    pub(in super::super) fn new(
        state: &TableState,
        (namespace, table): (&[String], &str),
        change: &PartitionChange,
    ) -> Result<Self> {
        let target = state.target(table)?;
        let corrupt =
            || Error::new(ErrorKind::Corrupt, format!("the metadata of `{table}` have no valid specs"));
        let specs = state.whole.get("partition-specs").and_then(Value::as_array).ok_or_else(corrupt)?;
        let fields_of = |spec: &Value| spec.get("fields").and_then(Value::as_array).cloned();
        let is_default = |spec: &&Value| number(spec, "spec-id") == Some(target.spec.id);
        let before = specs.iter().find(is_default).and_then(fields_of).ok_or_else(corrupt)?;
        let last = state.number("last-partition-id").unwrap_or(BEFORE_FIRST);
        let fields = match change {
            PartitionChange::Add { field, name } => {
                let column = target.columns.iter().find(|known| known.field.name() == &field.column);
                let mut new = partition_field(column, field, last + 1)?;
                if let Some(name) = name {
                    new["name"] = json!(name);
                }
                // The same value keeps its number, so that files of before are found by it.
                let mut all = specs.iter().filter_map(fields_of).flatten();
                if let Some(same) = all.find(|known| is_same(known, &new)) {
                    new["field-id"] = same["field-id"].clone();
                }
                added(before, new, (&target.column_names(), table))?
            }
            PartitionChange::Drop(field) => without(before, field, (&target.column_numbers(), table))?,
        };
        let there = specs.iter().find(|spec| fields_of(spec).is_some_and(|known| known == fields));
        let mut updates = Vec::new();
        let spec_id = match there.and_then(|spec| number(spec, "spec-id")) {
            Some(id) => id,
            None => {
                let ids = specs.iter().filter_map(|spec| number(spec, "spec-id"));
                let id = ids.max().map_or(0, |last| last.saturating_add(1));
                updates.push(json!({"action": "add-spec", "spec": {"spec-id": id, "fields": &fields}}));
                -1
            }
        };
        updates.push(json!({"action": "set-default-spec", "spec-id": spec_id}));
        let request = json!({
            "identifier": {"namespace": namespace, "name": table},
            "requirements": [
                {"type": "assert-table-uuid", "uuid": state.uuid()},
                {"type": "assert-current-schema-id", "current-schema-id": target.schema_id},
                {"type": "assert-default-spec-id", "default-spec-id": target.spec.id},
                {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": last},
            ],
            "updates": updates,
        });
        Ok(Self { request, fields })
    }

    /// Whether rows of a state are partitioned so, whoever has decided it.
    pub(in super::super) fn is_in(&self, state: &TableState) -> bool {
        let specs = state.whole.get("partition-specs").and_then(Value::as_array);
        let id = state.number("default-spec-id");
        let mut specs =
            specs.into_iter().flatten().filter(|spec| id.is_some() && number(spec, "spec-id") == id);
        specs.any(|spec| spec.get("fields").and_then(Value::as_array) == Some(&self.fields))
    }
}

fn number(of: &Value, key: &str) -> Option<i64> {
    of.get(key)?.as_i64()
}

fn is_same(one: &Value, other: &Value) -> bool {
    ["source-id", "transform", "name"].iter().all(|key| one.get(key) == other.get(key))
}

fn added(mut fields: Vec<Value>, new: Value, (columns, table): (&[&str], &str)) -> Result<Vec<Value>> {
    let is_value =
        |known: &Value| ["source-id", "transform"].iter().all(|key| known.get(key) == new.get(key));
    if fields.iter().any(is_value) {
        let message = format!("`{table}` is already partitioned by this");
        return Err(Error::new(ErrorKind::AlreadyExists, message));
    }
    let name = new["name"].as_str().unwrap_or_default();
    let is_taken = fields.iter().any(|known| known.get("name").and_then(Value::as_str) == Some(name))
        || new["transform"] != "identity" && columns.contains(&name);
    if is_taken {
        let message = format!("`{table}` already has a column or a partition field `{name}`");
        return Err(Error::new(ErrorKind::AlreadyExists, message)
            .with_hint("give it another name: `ADD PARTITION FIELD day(at) AS at_day_2`"));
    }
    fields.push(new);
    Ok(fields)
}

fn without(
    mut fields: Vec<Value>,
    field: &NewPartition,
    (columns, table): (&[(&str, i32)], &str),
) -> Result<Vec<Value>> {
    let is_named = |known: &Value| {
        field.transform == "identity"
            && known.get("name").and_then(Value::as_str) == Some(field.column.as_str())
    };
    let source = columns.iter().find(|(name, _)| *name == field.column).map(|(_, number)| i64::from(*number));
    let is_meant = |known: &Value| {
        source.is_some() && number(known, "source-id") == source && known["transform"] == field.transform
    };
    let found = fields.iter().position(is_named).or_else(|| fields.iter().position(is_meant));
    let found = found.ok_or_else(|| {
        let NewPartition { transform, column } = field;
        Error::not_found(format!("rows of `{table}` are not partitioned by {transform} of `{column}`"))
    })?;
    fields.remove(found);
    Ok(fields)
}
