//! Columns of a table that are added, dropped, renamed and widened, as a catalog is asked for it. Files stay as they are: readers find
//! columns by their numbers.

use super::super::metadata::IcebergField;
use super::super::types;
use super::new_table::Numbers;
use super::table_state::TableState;
use arrow::datatypes::{DataType, Field, FieldRef};
use bowshot_api::{Error, ErrorKind, Reason, Result};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Clone)]
pub enum ColumnChange {
    Add { column: FieldRef, if_not_exists: bool },
    Drop { column: String, if_exists: bool },
    Rename { from: String, to: String },
    SetType { column: String, data_type: DataType },
    DropNotNull { column: String },
}

/// What a catalog is asked for, and the columns that the table has then.
#[derive(Debug)]
pub(in super::super) struct SchemaChange {
    pub(in super::super) request: Value,
    fields: Value,
}

impl SchemaChange {
    /// `None` where all is as it is to be.
    pub(in super::super) fn new(
        state: &TableState,
        (namespace, table): (&[String], &str),
        changes: &[ColumnChange],
    ) -> Result<Option<Self>> {
        let target = state.target(table)?;
        let corrupt = |what: &str| {
            Error::new(ErrorKind::Corrupt, format!("the metadata of `{table}` have no valid `{what}`"))
        };
        let mut schema: Value = serde_json::from_str(&target.schema_text).map_err(|_| corrupt("schemas"))?;
        let last = state.number("last-column-id").and_then(|last| i32::try_from(last).ok());
        let last = last.ok_or_else(|| corrupt("last-column-id"))?;
        let before =
            schema.get("fields").and_then(Value::as_array).ok_or_else(|| corrupt("schemas"))?.clone();
        let numbers = Numbers { last, version: state.metadata.format_version };
        let mut columns = Columns { state, table, fields: before.clone(), numbers };
        changes.iter().try_for_each(|change| columns.apply(change))?;
        let Columns { fields, numbers, .. } = columns;
        if fields == before {
            return Ok(None);
        }
        let fields = Value::Array(fields);
        let whole = schema.as_object_mut().ok_or_else(|| corrupt("schemas"))?;
        whole.insert("fields".to_owned(), fields.clone());
        whole.insert("schema-id".to_owned(), json!(state.free_schema_id()));
        let request = json!({
            "identifier": {"namespace": namespace, "name": table},
            "requirements": [
                {"type": "assert-table-uuid", "uuid": state.uuid()},
                {"type": "assert-current-schema-id", "current-schema-id": target.schema_id},
                {"type": "assert-last-assigned-field-id", "last-assigned-field-id": last},
            ],
            "updates": [
                {"action": "add-schema", "schema": schema, "last-column-id": numbers.last},
                {"action": "set-current-schema", "schema-id": -1},
            ],
        });
        Ok(Some(Self { request, fields }))
    }

    /// Whether a state has the columns, whoever has made them.
    pub(in super::super) fn is_in(&self, state: &TableState) -> bool {
        let wanted = numbered(&self.fields);
        wanted.is_some() && state.fields().and_then(numbered) == wanted
    }
}

fn numbered(fields: &Value) -> Option<Vec<(FieldRef, i32)>> {
    let fields = Vec::<IcebergField>::deserialize(fields).ok()?;
    let columns = types::columns(&fields).ok()?;
    Some(columns.into_iter().map(|column| (column.field, column.number)).collect())
}

struct Columns<'a> {
    state: &'a TableState,
    table: &'a str,
    fields: Vec<Value>,
    numbers: Numbers,
}

impl Columns<'_> {
    fn apply(&mut self, change: &ColumnChange) -> Result<()> {
        match change {
            ColumnChange::Add { column, if_not_exists } => self.add(column, *if_not_exists),
            ColumnChange::Drop { column, if_exists } => self.drop(column, *if_exists),
            ColumnChange::Rename { from, to } if from == to => self.find(from).map(|_| ()),
            ColumnChange::Rename { from, to } => {
                self.check_free(to)?;
                self.set(from, "name", json!(to))
            }
            ColumnChange::SetType { column, data_type } => self.set_type(column, data_type),
            ColumnChange::DropNotNull { column } => {
                if self.state.identifies(self.number(column)?) {
                    return Err(Error::unsupported(format!(
                        "column `{column}` must be NOT NULL: it is an identifier field of `{}`",
                        self.table
                    )));
                }
                self.set(column, "required", json!(false))
            }
        }
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.get("name").and_then(Value::as_str) == Some(name))
    }

    fn find(&self, name: &str) -> Result<&Value> {
        let found = self.position(name).and_then(|place| self.fields.get(place));
        found.ok_or_else(|| {
            Error::not_found(format!("`{}` has no column `{name}`", self.table))
                .with_reason(Reason::UndefinedColumn)
        })
    }

    fn number(&self, name: &str) -> Result<i64> {
        let number = self.find(name)?.get("id").and_then(Value::as_i64);
        number.ok_or_else(|| Error::new(ErrorKind::Corrupt, format!("column `{name}` has no field id")))
    }

    fn check_free(&self, name: &str) -> Result<()> {
        match self.position(name) {
            None => Ok(()),
            Some(_) => {
                let message = format!("`{}` already has a column `{name}`", self.table);
                Err(Error::new(ErrorKind::AlreadyExists, message).with_reason(Reason::DuplicateColumn))
            }
        }
    }

    fn set(&mut self, column: &str, key: &str, value: Value) -> Result<()> {
        self.find(column)?;
        let place = self.position(column);
        if let Some(field) = place.and_then(|place| self.fields.get_mut(place)).and_then(Value::as_object_mut)
        {
            field.insert(key.to_owned(), value);
        }
        Ok(())
    }

    fn add(&mut self, column: &Field, if_not_exists: bool) -> Result<()> {
        let name = column.name();
        if if_not_exists && self.position(name).is_some() {
            return Ok(());
        }
        self.check_free(name)?;
        if !column.is_nullable() {
            return Err(Error::unsupported(format!(
                "column `{name}` cannot be NOT NULL: existing rows have NULL in it"
            ))
            .with_hint("leave NOT NULL out"));
        }
        let number = self.numbers.next();
        let data_type = self.numbers.checked_type(column)?;
        self.fields.push(json!({"id": number, "name": name, "required": false, "type": data_type}));
        Ok(())
    }

    fn drop(&mut self, column: &str, if_exists: bool) -> Result<()> {
        let Some(place) = self.position(column) else {
            return if if_exists { Ok(()) } else { self.find(column).map(|_| ()) };
        };
        let number = self.number(column)?;
        if self.state.is_laid_out_by(number) || self.state.identifies(number) {
            return Err(Error::unsupported(format!(
                "column `{column}` cannot be dropped: it is a partition, sort or identifier field of `{}`",
                self.table
            ))
            .with_hint("copy the other columns: `CREATE TABLE … AS SELECT …`"));
        }
        if self.fields.len() == 1 {
            return Err(Error::invalid(format!("column `{column}` is the only one of `{}`", self.table))
                .with_hint("drop the table"));
        }
        self.fields.remove(place);
        Ok(())
    }

    fn set_type(&mut self, column: &str, data_type: &DataType) -> Result<()> {
        let there = json!([self.find(column)?]);
        let wanted = self.numbers.checked_type(&Field::new(column, data_type.clone(), true))?;
        let field = json!([{"id": 0, "name": column, "required": false, "type": &wanted}]);
        let only = |fields: &Value| Some(numbered(fields)?.pop()?.0.data_type().clone());
        let fits = match (only(&there), only(&field)) {
            (Some(there), Some(wanted)) if there == wanted => return Ok(()),
            (Some(DataType::Int32), Some(DataType::Int64))
            | (Some(DataType::Float32), Some(DataType::Float64)) => true,
            (Some(DataType::Decimal128(digits, scale)), Some(DataType::Decimal128(more, same))) => {
                more >= digits && same == scale
            }
            _ => false,
        };
        if fits {
            return self.set(column, "type", wanted);
        }
        Err(Error::unsupported(format!(
            "cannot change the type of column `{column}` of `{}` to {data_type}",
            self.table
        ))
        .with_hint(
            "allowed are INTEGER to BIGINT, REAL to DOUBLE and more digits of a DECIMAL; else add a column",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// What no statement here makes: a table whose rows are identified by a column, and a column that is described.
    #[test]
    fn what_others_have_said_of_columns_holds() {
        let whole = json!({
            "format-version": 2, "location": "s3://b/t", "table-uuid": "u", "current-schema-id": 1, "last-column-id": 7,
            "schemas": [{"schema-id": 1, "type": "struct", "identifier-field-ids": [1], "fields": [
                {"id": 1, "name": "id", "required": true, "type": "int"},
                {"id": 2, "name": "at", "required": false, "type": "timestamp", "doc": "when"}]}],
            "default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}],
        });
        let state = TableState::new(whole, Path::new("t")).unwrap();
        let change = |change: ColumnChange| SchemaChange::new(&state, (&["db".to_owned()], "t"), &[change]);
        let rename = ColumnChange::Rename { from: "at".to_owned(), to: "seen".to_owned() };
        let made = change(rename).unwrap().unwrap();
        assert_eq!(
            made.request["updates"][0]["schema"]["fields"][1],
            json!({"id": 2, "name": "seen", "required": false, "type": "timestamp", "doc": "when"})
        );
        assert!(change(ColumnChange::Drop { column: "id".to_owned(), if_exists: false }).is_err());
        assert!(change(ColumnChange::DropNotNull { column: "id".to_owned() }).is_err());
    }
}
