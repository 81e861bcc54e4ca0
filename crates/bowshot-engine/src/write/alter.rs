//! ALTER TABLE: one definition of a table becomes another, and its rows follow.

use crate::catalog::defaults::Computed;
use crate::catalog::names::Names;
use crate::error::classify;
use crate::write::ddl::{Stores, put, without};
use crate::write::{constraints, create_table, enums, table_clauses};
use bowshot_api::{Error, ErrorKind, Reason, Result};
use bowshot_policy::snapshot::Pinned;
use bowshot_system_catalog::information_schema::{KeyKind, key_name, reference_name};
use bowshot_tables::Error as TablesError;
use bowshot_tables::{Check, Column, Definition, Entry, EntryName, Key, Reference, Table, TableStore};
use bowshot_types::declared::Declared;
use bowshot_types::{lacks_assignment, storage_type};
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use std::collections::HashMap;
use std::sync::Arc;

/// One change of a table.
#[derive(Debug, Clone)]
pub(crate) enum Alteration {
    AddColumn(NewColumn),
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
    /// The field has the type and what is declared beyond it; times without a zone are those of the session's.
    SetType {
        column: String,
        field: Field,
        zone: Arc<str>,
    },
    SetComment {
        column: String,
        text: Option<String>,
    },
    AddCheck(Check),
    AddKey {
        key: Key,
        primary: bool,
    },
    AddReference(Reference),
    DropPrimaryKey,
    DropConstraint {
        name: String,
        if_exists: bool,
    },
}

/// A column to be added.
#[derive(Debug, Clone)]
pub(crate) struct NewColumn {
    pub(crate) column: Column,
    /// Of the rows that are there; null without one.
    pub(crate) value: Option<Computed>,
    pub(crate) place: ColumnPlace,
    pub(crate) if_not_exists: bool,
}

/// Where a column stands among the others.
#[derive(Debug, Clone)]
pub(crate) enum ColumnPlace {
    First,
    After(String),
    Last,
}

/// The state after all changes of one ALTER TABLE.
pub(crate) fn alter(
    name: &EntryName,
    if_exists: bool,
    changes: &[Alteration],
    names: &Names,
    store: &Stores,
) -> Result<Pinned> {
    if if_exists && names.is_nothing(name) {
        return Ok(names.pinned.clone());
    }
    if let ([Alteration::RenameTable { to }], Some(entry @ (Entry::External(_) | Entry::View(_)))) =
        (changes, names.entry(name))
    {
        check_free(to, names)?;
        return put(&without(name, names)?, to, entry.clone());
    }
    let mut table = names.table(name)?;
    let mut target = name.clone();
    for change in changes {
        if let Alteration::RenameTable { to } = change {
            check_free(to, names)?;
            target = to.clone();
            continue;
        }
        table = Arc::new(altered(&table, name, change, store)?);
    }
    let pinned = if target == *name { names.pinned.clone() } else { without(name, names)? };
    put(&pinned, &target, Entry::Table(table))
}

/// Something may get this name.
fn check_free(name: &EntryName, names: &Names) -> Result<()> {
    names.check_new(name)?;
    if names.pinned.entry(name).is_some() {
        return Err(Error::new(ErrorKind::AlreadyExists, format!("`{name}` already exists"))
            .with_reason(Reason::DuplicateTable));
    }
    Ok(())
}

fn altered(table: &Arc<Table>, name: &EntryName, change: &Alteration, stores: &Stores) -> Result<Table> {
    let mut definition = table.definition().as_ref().clone();
    let store = stores.of(name);
    match change {
        Alteration::AddColumn(new) => match definition.position(new.column.field.name()) {
            None => add_column(table, name, new, store),
            Some(_) if new.if_not_exists => Ok(table.as_ref().clone()),
            Some(_) => Err(taken(name, new.column.field.name())),
        },
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
            if default.is_some() {
                check_has_no_values(&definition, column)?;
            }
            let column = column_of(&mut definition, name, column)?;
            column.default.clone_from(default);
            enums::check_default(column)?;
            relabel(table, store, definition)
        }
        Alteration::SetNullable { column, nullable } => {
            set_nullable(&mut definition, (name, table), column, *nullable)?;
            relabel(table, store, definition)
        }
        Alteration::SetType { column, field, zone } => set_type(table, name, (column, field, zone), store),
        Alteration::SetComment { column, text } => {
            column_of(&mut definition, name, column)?.comment.clone_from(text);
            relabel(table, store, definition)
        }
        Alteration::AddKey { key, primary } => {
            add_key(&mut definition, (name, table), key, *primary)?;
            relabel(table, store, definition)
        }
        Alteration::AddReference(reference) => {
            definition.references.push(reference.clone());
            table_clauses::limit(definition.references.len(), table_clauses::MAX_REFERENCES, "references")?;
            table_clauses::check_references(&definition)?;
            relabel(table, store, definition)
        }
        Alteration::DropPrimaryKey => {
            definition
                .primary_key
                .take()
                .ok_or_else(|| Error::not_found(format!("table `{name}` has no primary key")))?;
            relabel(table, store, definition)
        }
        Alteration::AddCheck(check) => {
            check_free_constraint(&definition, &check.name)?;
            definition.checks.push(check.clone());
            table_clauses::limit(definition.checks.len(), table_clauses::MAX_CHECKS, "checks")?;
            relabel(table, store, definition)
        }
        Alteration::DropConstraint { name: constraint, if_exists } => {
            drop_constraint(&mut definition, name, constraint, *if_exists)?;
            relabel(table, store, definition)
        }
        Alteration::RenameTable { .. } => Err(Error::internal("a table is renamed where its entry is")),
    }
}

fn set_type(
    table: &Table,
    name: &EntryName,
    (column, new, zone): (&str, &Field, &Arc<str>),
    store: &Arc<TableStore>,
) -> Result<Table> {
    let mut definition = table.definition().as_ref().clone();
    let position = definition.position(column).ok_or_else(|| no_column(name, column))?;
    let storage = definition.storage;
    let changed = column_of(&mut definition, name, column)?;
    let before = Arc::clone(&changed.field);
    let plain = before.as_ref().clone().with_metadata(HashMap::new()).with_data_type(new.data_type().clone());
    changed.field = Arc::new(create_table::kept_field(storage, &table_clauses::declared(new, plain))?);
    let field = Arc::clone(&changed.field);
    let same_type = storage_type::logical(&before) == storage_type::logical(&field);
    // What was held against the old values is not known of the new ones.
    if !same_type {
        check_unused(table.definition(), name, column)?;
    }
    if definition.identity(column).is_some() && !new.data_type().is_numeric() {
        return Err(Error::invalid(format!("column `{column}` numbers itself, and stays a whole number")));
    }
    let schema = definition.schema();
    Ok(table.redefine(store, definition, false, |rows| {
        retyped(rows, position, (&before, &field), (&schema, zone))
    })?)
}

fn add_key(
    definition: &mut Definition,
    (name, table): (&EntryName, &Table),
    key: &Key,
    primary: bool,
) -> Result<()> {
    table_clauses::check_key(definition, if primary { "primary key" } else { "unique key" }, key)?;
    if let Some(constraint) = &key.name {
        check_free_constraint(definition, constraint)?;
    }
    if !primary {
        definition.unique.push(key.clone());
        return table_clauses::limit(definition.unique.len(), table_clauses::MAX_UNIQUE, "unique keys");
    }
    if definition.primary_key.is_some() {
        return Err(Error::invalid(format!("table `{name}` already has a primary key")));
    }
    for part in &key.columns {
        set_nullable(definition, (name, table), part, false)?;
    }
    definition.primary_key = Some(key.clone());
    Ok(())
}

fn add_column(
    table: &Table,
    name: &EntryName,
    NewColumn { column, value, place, .. }: &NewColumn,
    store: &Arc<TableStore>,
) -> Result<Table> {
    let mut definition = table.definition().as_ref().clone();
    let last = definition.columns.len();
    let place = match place {
        ColumnPlace::First => 0,
        ColumnPlace::After(other) => definition.position(other).ok_or_else(|| no_column(name, other))? + 1,
        ColumnPlace::Last => last,
    };
    let field = Arc::new(create_table::kept_field(definition.storage, &column.field)?);
    let data_type = field.data_type().clone();
    let values = |rows: usize| -> Result<ArrayRef> {
        let Some(value) = value else { return Ok(new_null_array(&data_type, rows)) };
        let kept = storage_type::converted(&value.values(rows)?, &data_type);
        let kept = kept.map_err(|error| classify(error.into()))?;
        Declared::of(&field).map_or(Ok(Arc::clone(&kept)), |declared| declared.assign(&kept))
    };
    let one = ScalarValue::try_from_array(&values(1)?, 0).map_err(classify)?;
    let is_volatile = value.as_ref().is_some_and(|value| value.is_volatile);
    definition.columns.insert(place, Column { field: Arc::clone(&field), ..column.clone() });
    let schema = definition.schema();
    let keeps_files = one.is_null() && !is_volatile && place == last;
    Ok(table.redefine(store, definition, keeps_files, |rows| {
        let added = match is_volatile {
            true => {
                values(rows.num_rows()).map_err(|error| TablesError::Invalid(error.message().to_owned()))?
            }
            false => filled(&one, &data_type, rows.num_rows())?,
        };
        let mut columns = rows.columns().to_vec();
        columns.insert(place.min(columns.len()), added);
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
    definition.references.retain(|reference| !reference.columns.contains(column.field.name()));
    definition.identities.retain(|identity| &identity.column != column.field.name());
    definition.generated.retain(|generated| &generated.column != column.field.name());
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
    let keys =
        definition.primary_key.iter_mut().chain(&mut definition.unique).flat_map(|key| &mut key.columns);
    let referring = definition.references.iter_mut().flat_map(|reference| &mut reference.columns);
    let numbered = definition.identities.iter_mut().map(|identity| &mut identity.column);
    let computed = definition.generated.iter_mut().map(|generated| &mut generated.column);
    for name in keys.chain(referring).chain(numbered).chain(computed) {
        if name == from {
            to.clone_into(name);
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
        return Err(Error::invalid(format!("column `{column}` belongs to the primary key"))
            .with_reason(Reason::DependentObjects));
    }
    if nullable && definition.identity(column).is_some() {
        return Err(Error::invalid(format!("column `{column}` numbers itself, and is never NULL")));
    }
    let column = column_of(definition, name, column)?;
    column.field = Arc::new(column.field.as_ref().clone().with_nullable(nullable));
    constraints::check_nulls(table, &column.field)
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
    (before, field): (&FieldRef, &FieldRef),
    (schema, zone): (&datafusion::arrow::datatypes::SchemaRef, &Arc<str>),
) -> Result<RecordBatch, TablesError> {
    let mut columns = rows.columns().to_vec();
    if let Some(column) = columns.get_mut(position) {
        let told = |error: Error| TablesError::Invalid(error.message().to_owned());
        // From what the values mean, not from how they are kept.
        let from = storage_type::logical(before);
        if lacks_assignment(&from, &storage_type::logical(field)) {
            let message = format!("column `{}` cannot be cast automatically to the new type", field.name());
            return Err(TablesError::Invalid(message));
        }
        let meant = storage_type::converted(column, &from)?;
        let wanted = Arc::new(field.as_ref().clone().with_data_type(storage_type::logical(field)));
        let meant = storage_type::assigned(&meant, wanted.data_type(), zone);
        let meant = meant.map_err(|error| told(classify(error)))?;
        *column = constraints::cast_exactly(&meant, &wanted).map_err(told)?;
        *column = storage_type::converted(column, field.data_type())?;
        if let Some(declared) = Declared::of(field) {
            *column = declared.assign(column).map_err(told)?;
        }
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
    let keys = definition.unique.len() + definition.references.len();
    definition.unique.retain(|key| key_name(table, key, KeyKind::Unique) != name);
    definition.references.retain(|reference| reference_name(table, reference) != name);
    let is_key =
        definition.primary_key.as_ref().is_some_and(|key| key_name(table, key, KeyKind::Primary) == name);
    if is_key {
        definition.primary_key = None;
    }
    let gone = definition.unique.len() + definition.references.len() < keys;
    if is_key || gone || definition.checks.len() < before || if_exists {
        return Ok(());
    }
    Err(no_constraint(table, name))
}

pub(crate) fn no_constraint(table: &EntryName, name: &str) -> Error {
    Error::not_found(format!("constraint `{name}` of table `{table}` not found"))
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
        .with_reason(Reason::UndefinedColumn)
}

fn taken(table: &EntryName, column: &str) -> Error {
    Error::new(ErrorKind::AlreadyExists, format!("table `{table}` already has a column `{column}`"))
        .with_reason(Reason::DuplicateColumn)
}

/// A column that numbers itself, or is computed, has no default beside that.
fn check_has_no_values(definition: &Definition, column: &str) -> Result<()> {
    let what = if definition.identity(column).is_some() {
        "numbers itself"
    } else if definition.generated(column).is_some() {
        "is computed"
    } else {
        return Ok(());
    };
    Err(Error::invalid(format!("column `{column}` {what}, and has no default")))
}

/// Checks and keys of one table have different names.
fn check_free_constraint(definition: &Definition, name: &str) -> Result<()> {
    let checks = definition.checks.iter().map(|check| check.name.as_str());
    let keys = definition.keys().filter_map(|key| key.name.as_deref());
    if !checks.chain(keys).any(|there| there == name) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::AlreadyExists, format!("constraint `{name}` already exists")))
}

/// A column that the key or a check needs cannot go.
fn check_unused(definition: &Definition, table: &EntryName, column: &str) -> Result<()> {
    if definition.keys().any(|key| key.columns.iter().any(|part| part == column)) {
        return Err(Error::invalid(format!("column `{column}` belongs to a key of table `{table}`"))
            .with_reason(Reason::DependentObjects));
    }
    check_unchecked(definition, table, column)
}

fn check_unchecked(definition: &Definition, table: &EntryName, column: &str) -> Result<()> {
    let computed =
        definition.generated.iter().find(|generated| constraints::mentions(&generated.sql, column));
    if let Some(computed) = computed {
        return Err(Error::invalid(format!(
            "column `{}` of table `{table}` is computed of column `{column}`",
            computed.column
        ))
        .with_reason(Reason::DependentObjects)
        .with_hint("drop the computed column first"));
    }
    match definition.checks.iter().find(|check| constraints::mentions(&check.sql, column)) {
        Some(check) => Err(Error::invalid(format!(
            "constraint `{}` of table `{table}` names column `{column}`",
            check.name
        ))
        .with_reason(Reason::DependentObjects)
        .with_hint(format!(
            "drop the constraint first: `ALTER TABLE {table} DROP CONSTRAINT {}`",
            check.name
        ))),
        None => Ok(()),
    }
}

/// A new column as the definition has it.
pub(crate) fn new_column(
    name: &str,
    field: &Field,
    default: Option<String>,
    comment: Option<String>,
) -> Column {
    let plain = Field::new(name, field.data_type().clone(), field.is_nullable());
    Column { field: Arc::new(table_clauses::declared(field, plain)), default, comment }
}
