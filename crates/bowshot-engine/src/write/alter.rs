//! ALTER TABLE: one definition of a table becomes another, and its rows follow.

use crate::error::classify;
use crate::pinned::Pinned;
use crate::write::ddl::{Stores, put};
use crate::write::names::Names;
use crate::write::{define, fit};
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_storage::tables::{
    Check, Column, Definition, Entry, EntryName, Error as TablesError, Table, TableStore,
};
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use std::sync::Arc;

/// One change of a table.
#[derive(Debug, Clone)]
pub(crate) enum Alteration {
    /// The value is that of the rows which are there.
    AddColumn {
        column: Column,
        value: ScalarValue,
        if_not_exists: bool,
    },
    DropColumn {
        name: String,
        if_exists: bool,
    },
    RenameColumn {
        from: String,
        to: String,
    },
    RenameTable {
        to: EntryName,
    },
    SetDefault {
        column: String,
        default: Option<String>,
    },
    SetNullable {
        column: String,
        nullable: bool,
    },
    SetType {
        column: String,
        data_type: DataType,
    },
    AddCheck(Check),
    DropConstraint {
        name: String,
        if_exists: bool,
    },
}

/// The state after all changes of one ALTER TABLE.
pub(crate) fn alter(
    name: &EntryName,
    if_exists: bool,
    changes: &[Alteration],
    names: &Names,
    store: &Stores,
) -> Result<Pinned> {
    if if_exists && names.pinned.entry(name).is_none() && !names.parts.is_file_table(name) {
        return Ok(names.pinned.clone());
    }
    let mut table = names.table(name)?;
    let mut target = name.clone();
    for change in changes {
        if let Alteration::RenameTable { to } = change {
            names.check_new(to)?;
            if names.pinned.entry(to).is_some() {
                return Err(Error::new(ErrorKind::AlreadyExists, format!("`{to}` already exists")));
            }
            target = to.clone();
            continue;
        }
        table = Arc::new(altered(&table, name, change, store)?);
    }
    let pinned = if target == *name {
        names.pinned.clone()
    } else {
        names.pinned.changed(&name.catalog, |tables| tables.without_entry(name))?
    };
    put(&pinned, &target, Entry::Table(table))
}

fn altered(table: &Arc<Table>, name: &EntryName, change: &Alteration, stores: &Stores) -> Result<Table> {
    let mut definition = table.definition().as_ref().clone();
    let store = stores.of(name);
    match change {
        Alteration::AddColumn { column, value, if_not_exists } => {
            if definition.position(column.field.name()).is_none() {
                return add_column(table, (column, value), store);
            }
            if *if_not_exists { Ok(table.as_ref().clone()) } else { Err(taken(name, column.field.name())) }
        }
        Alteration::DropColumn { name: column, if_exists } => match definition.position(column) {
            Some(position) => drop_column(table, name, position, store),
            None if *if_exists => Ok(table.as_ref().clone()),
            None => Err(no_column(name, column)),
        },
        Alteration::RenameColumn { from, to } => {
            rename_column(&mut definition, name, from, to)?;
            relabel(table, store, definition)
        }
        Alteration::SetDefault { column, default } => {
            column_of(&mut definition, name, column)?.default.clone_from(default);
            relabel(table, store, definition)
        }
        Alteration::SetNullable { column, nullable } => {
            set_nullable(&mut definition, (name, table), column, *nullable)?;
            relabel(table, store, definition)
        }
        Alteration::SetType { column, data_type } => {
            let position = definition.position(column).ok_or_else(|| no_column(name, column))?;
            // What was held against the old values is not known of the new ones.
            check_unused(&definition, name, column)?;
            let data_type = define::kept_type(definition.storage, column, data_type)?;
            let column = column_of(&mut definition, name, column)?;
            column.field = Arc::new(column.field.as_ref().clone().with_data_type(data_type));
            let (field, schema) = (Arc::clone(&column.field), definition.schema());
            Ok(table.redefine(store, definition, false, |rows| retyped(rows, position, &field, &schema))?)
        }
        Alteration::AddCheck(check) => {
            if definition.checks.iter().any(|there| there.name == check.name) {
                let message = format!("constraint `{}` already exists", check.name);
                return Err(Error::new(ErrorKind::AlreadyExists, message));
            }
            definition.checks.push(check.clone());
            relabel(table, store, definition)
        }
        Alteration::DropConstraint { name: constraint, if_exists } => {
            drop_constraint(&mut definition, name, constraint, *if_exists)?;
            relabel(table, store, definition)
        }
        Alteration::RenameTable { .. } => Err(Error::internal("a table is renamed where its entry is")),
    }
}

fn add_column(
    table: &Table,
    (column, value): (&Column, &ScalarValue),
    store: &Arc<TableStore>,
) -> Result<Table> {
    let mut definition = table.definition().as_ref().clone();
    let data_type = define::kept_type(definition.storage, column.field.name(), column.field.data_type())?;
    let field = Arc::new(column.field.as_ref().clone().with_data_type(data_type.clone()));
    let value = if value.is_null() { value.clone() } else { value.cast_to(&data_type).map_err(classify)? };
    definition.columns.push(Column { field, ..column.clone() });
    let schema = definition.schema();
    Ok(table.redefine(store, definition, value.is_null(), |rows| {
        let added = filled(&value, &data_type, rows.num_rows())?;
        let columns = rows.columns().iter().cloned().chain([added]).collect();
        Ok(RecordBatch::try_new(Arc::clone(&schema), columns)?)
    })?)
}

fn drop_column(table: &Table, name: &EntryName, position: usize, store: &Arc<TableStore>) -> Result<Table> {
    let mut definition = table.definition().as_ref().clone();
    let column = definition.columns.remove(position);
    check_unused(table.definition(), name, column.field.name())?;
    if definition.columns.is_empty() {
        return Err(Error::invalid(format!(
            "column `{}` is the only one of table `{name}`",
            column.field.name()
        ))
        .with_hint("drop the table"));
    }
    let kept: Vec<usize> = (0..=definition.columns.len()).filter(|index| *index != position).collect();
    Ok(table.redefine(store, definition, false, |rows| Ok(rows.project(&kept)?))?)
}

fn rename_column(definition: &mut Definition, table: &EntryName, from: &str, to: &str) -> Result<()> {
    if definition.position(to).is_some() {
        return Err(taken(table, to));
    }
    check_unchecked(definition, table, from)?;
    let column = column_of(definition, table, from)?;
    column.field = Arc::new(column.field.as_ref().clone().with_name(to));
    for key in definition.primary_key.iter_mut().flat_map(|key| &mut key.columns) {
        if key == from {
            to.clone_into(key);
        }
    }
    Ok(())
}

fn set_nullable(
    definition: &mut Definition,
    (name, table): (&EntryName, &Table),
    column: &str,
    nullable: bool,
) -> Result<()> {
    let in_key = definition.primary_key.iter().any(|key| key.columns.iter().any(|part| part == column));
    if nullable && in_key {
        return Err(Error::invalid(format!("column `{column}` belongs to the primary key")));
    }
    let column = column_of(definition, name, column)?;
    column.field = Arc::new(column.field.as_ref().clone().with_nullable(nullable));
    fit::check_nulls(table, &column.field)
}

/// The same rows under another definition of the same types.
fn relabel(table: &Table, store: &Arc<TableStore>, definition: Definition) -> Result<Table> {
    let schema = definition.schema();
    let same_names =
        table.schema().fields().iter().zip(schema.fields()).all(|(old, new)| old.name() == new.name());
    Ok(table.redefine(store, definition, same_names, |rows| {
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&schema), rows.columns().to_vec(), &options)?)
    })?)
}

fn retyped(
    rows: &RecordBatch,
    position: usize,
    field: &FieldRef,
    schema: &datafusion::arrow::datatypes::SchemaRef,
) -> Result<RecordBatch, TablesError> {
    let mut columns = rows.columns().to_vec();
    if let Some(column) = columns.get_mut(position) {
        *column =
            fit::cast_exactly(column, field).map_err(|error| TablesError::Invalid(error.to_string()))?;
    }
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

fn filled(value: &ScalarValue, data_type: &DataType, rows: usize) -> Result<ArrayRef, TablesError> {
    if value.is_null() {
        return Ok(new_null_array(data_type, rows));
    }
    value.to_array_of_size(rows).map_err(|error| TablesError::Invalid(error.to_string()))
}

fn drop_constraint(
    definition: &mut Definition,
    table: &EntryName,
    name: &str,
    if_exists: bool,
) -> Result<()> {
    let before = definition.checks.len();
    definition.checks.retain(|check| check.name != name);
    let is_key = definition.primary_key.as_ref().is_some_and(|key| key.name.as_deref() == Some(name));
    if is_key {
        definition.primary_key = None;
    }
    if is_key || definition.checks.len() < before || if_exists {
        return Ok(());
    }
    Err(Error::not_found(format!("constraint `{name}` of table `{table}` not found")))
}

pub(crate) fn column_of<'a>(
    definition: &'a mut Definition,
    table: &EntryName,
    name: &str,
) -> Result<&'a mut Column> {
    let found = definition.columns.iter_mut().find(|column| column.field.name() == name);
    found.ok_or_else(|| no_column(table, name))
}

fn no_column(table: &EntryName, column: &str) -> Error {
    Error::not_found(format!("column `{column}` of table `{table}` not found"))
}

fn taken(table: &EntryName, column: &str) -> Error {
    Error::new(ErrorKind::AlreadyExists, format!("table `{table}` already has a column `{column}`"))
}

/// A column that the key or a check needs cannot go.
fn check_unused(definition: &Definition, table: &EntryName, column: &str) -> Result<()> {
    if definition.primary_key.iter().any(|key| key.columns.iter().any(|part| part == column)) {
        return Err(Error::invalid(format!(
            "column `{column}` belongs to the primary key of table `{table}`"
        )));
    }
    check_unchecked(definition, table, column)
}

fn check_unchecked(definition: &Definition, table: &EntryName, column: &str) -> Result<()> {
    match definition.checks.iter().find(|check| fit::mentions(&check.sql, column)) {
        Some(check) => Err(Error::invalid(format!(
            "constraint `{}` of table `{table}` names column `{column}`",
            check.name
        ))
        .with_hint(format!(
            "drop the constraint first: `ALTER TABLE {table} DROP CONSTRAINT {}`",
            check.name
        ))),
        None => Ok(()),
    }
}

/// A new column as the definition has it.
pub(crate) fn new_column(name: &str, data_type: DataType, nullable: bool, default: Option<String>) -> Column {
    Column { field: Arc::new(Field::new(name, data_type, nullable)), default, comment: None }
}
