//! `CREATE TYPE t AS ENUM ('a', 'b')`, `ALTER TYPE t ADD VALUE 'c'` and `DROP TYPE t`. Types are notes of the snapshot, as models are.
//! Each column holds the labels of its type itself: a new label is written into all tables that have one, in the same commit.

use crate::catalog::names::Names;
use crate::write::ddl::{Ddl, Stores, full, put};
use bowshot_api::catalog_names::{DEFAULT_CATALOG, TEMPORARY_CATALOG};
use bowshot_api::{Error, ErrorKind, Reason, Result};
use bowshot_policy::access::{Access, denied};
use bowshot_policy::rules::{Key, Rules, type_place};
use bowshot_policy::snapshot::Pinned;
use bowshot_policy::without_type;
use bowshot_system_catalog::enum_types::may_know;
use bowshot_tables::{Column, Definition, Entry, EntryName, Snapshot, Table};
use bowshot_types::declared::{DECLARED, Declared};
use bowshot_types::enums::{self, EnumType};
use datafusion::sql::sqlparser::ast::{
    AlterType, AlterTypeAddValue, AlterTypeAddValuePosition, AlterTypeOperation, ArrayElemTypeDef, ColumnDef,
    DataType as SqlType, Expr, Ident, ObjectName, Statement, UserDefinedTypeRepresentation, Value,
    ValueWithSpan,
};
use serde_json::json;
use std::sync::Arc;

/// Types in all schemas: every snapshot holds their notes.
const MAX_TYPES: usize = 10_000;
/// Labels of one type, which the definition of each column of it holds.
const MAX_LABELS: usize = 1_000;
/// Longest name and longest label, in bytes, as PostgreSQL has it.
const MAX_NAME_BYTES: usize = 63;

/// A change of one type.
#[derive(Debug, Clone)]
pub(crate) struct TypeChange {
    pub(crate) name: EntryName,
    change: Change,
}

#[derive(Debug, Clone)]
enum Change {
    Create(Vec<String>),
    AddValue { label: String, if_not_exists: bool, position: Option<(Side, String)> },
    Drop { if_exists: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

/// The statement, if it is one of these but DROP.
///
/// # Errors
/// `Unsupported` for other kinds of types, `Invalid` for labels that cannot be.
pub(crate) fn recognise(statement: &Statement, names: &Names) -> Result<Option<Ddl>> {
    let (name, change) = match statement {
        Statement::CreateType { name, representation } => {
            let Some(UserDefinedTypeRepresentation::Enum { labels }) = representation else {
                return Err(Error::unsupported("only enumerated types can be created")
                    .with_hint("write `CREATE TYPE name AS ENUM ('a', 'b')`, or use a STRUCT"));
            };
            let labels: Vec<String> = labels.iter().map(label).collect::<Result<_>>()?;
            check_labels(&labels)?;
            enums::check_name(name).map_err(crate::error::classify)?;
            (name, Change::Create(labels))
        }
        Statement::AlterType(AlterType { name, operation }) => {
            let AlterTypeOperation::AddValue(AlterTypeAddValue { if_not_exists, value, position }) =
                operation
            else {
                return Err(Error::unsupported(format!("ALTER TYPE … {operation} is not supported"))
                    .with_hint(
                        "a label can be added: `ALTER TYPE name ADD VALUE 'label' [BEFORE | AFTER 'other']`",
                    ));
            };
            let position = match position {
                None => None,
                Some(AlterTypeAddValuePosition::Before(other)) => Some((Side::Before, label(other)?)),
                Some(AlterTypeAddValuePosition::After(other)) => Some((Side::After, label(other)?)),
            };
            (name, Change::AddValue { label: label(value)?, if_not_exists: *if_not_exists, position })
        }
        _ => return Ok(None),
    };
    let types = names.types();
    let full =
        if matches!(change, Change::Create(_)) { types.full_name(name) } else { types.known_name(name) };
    Ok(Some(Ddl::Type(TypeChange { name: checked(full, name, names)?, change })))
}

/// `DROP TYPE [IF EXISTS] t`. With CASCADE the columns of the type would go too: those are to be named.
///
/// # Errors
/// `Invalid` for what is no name of a type.
pub(crate) fn dropped(name: &ObjectName, if_exists: bool, names: &Names) -> Result<Ddl> {
    let name = checked(names.types().known_name(name), name, names)?;
    Ok(Ddl::Type(TypeChange { name, change: Change::Drop { if_exists } }))
}

/// The full name of a type, if there can be one of that name.
fn checked(full: Option<EntryName>, name: &ObjectName, names: &Names) -> Result<EntryName> {
    let full = full.ok_or_else(|| Error::invalid(format!("`{name}` is no name of a type")))?;
    if full.catalog == TEMPORARY_CATALOG || full.schema == TEMPORARY_CATALOG {
        return Err(Error::invalid("there are no temporary types"));
    }
    if names.parts.databases.has(&full.catalog) {
        return Err(Error::unsupported("types cannot be made in other databases"));
    }
    Ok(full)
}

/// A label as it is written, which stands in quotes.
fn label(written: &Ident) -> Result<String> {
    if written.quote_style != Some('\'') {
        return Err(Error::new(ErrorKind::Syntax, format!("syntax error: {written} is no label"))
            .with_hint("write labels in single quotes"));
    }
    let text = written.value.clone();
    if text.is_empty() || text.len() > MAX_NAME_BYTES {
        return Err(Error::invalid(format!("invalid enum label \"{text}\""))
            .with_hint(format!("labels have 1 to {MAX_NAME_BYTES} bytes")));
    }
    Ok(text)
}

fn check_labels(labels: &[String]) -> Result<()> {
    if labels.len() > MAX_LABELS {
        return Err(Error::new(ErrorKind::LimitReached, format!("a type has at most {MAX_LABELS} labels")));
    }
    let twice =
        labels.iter().enumerate().find(|(place, label)| labels.iter().take(*place).any(|l| l == *label));
    match twice {
        Some((_, label)) => Err(Error::invalid(format!("enum label \"{label}\" is there twice"))),
        None => Ok(()),
    }
}

impl TypeChange {
    /// What is done, for who decides about it.
    pub(crate) fn action(&self) -> &'static str {
        match self.change {
            Change::Create(_) => "create",
            Change::AddValue { .. } => "alter",
            Change::Drop { .. } => "drop",
        }
    }

    /// # Errors
    /// `Denied`, and `NotFound` for who may not know the type.
    pub(crate) fn check(&self, access: &Access) -> Result<()> {
        let name = &self.name;
        let if_exists = match self.change {
            Change::Create(_) => return access.check_make(&name.catalog, &name.schema),
            Change::AddValue { .. } => false,
            Change::Drop { if_exists } => if_exists,
        };
        if access.owns(&type_place(name)) || (if_exists && !may_know(name, access)) {
            return Ok(());
        }
        if !may_know(name, access) {
            return Err(not_there(name));
        }
        Err(denied(&format!("`{}` may not change type `{name}`", access.user()))
            .with_hint("its owner and the owner of its schema may"))
    }

    /// The state after the change.
    ///
    /// # Errors
    /// `AlreadyExists`, `NotFound`, `Invalid`, and what writing the tables gives.
    pub(crate) fn apply(&self, names: &Names, stores: &Stores) -> Result<Pinned> {
        let rules = names.pinned.shared().notes().read(Rules::of);
        let there = rules.types.get(&self.name).filter(|_| may_know(&self.name, &names.access));
        match (&self.change, there) {
            (Change::Create(labels), _) => create(&self.name, labels, &rules, names),
            (Change::Drop { if_exists: true }, None) => Ok(names.pinned.clone()),
            (_, None) => Err(not_there(&self.name)),
            (Change::Drop { .. }, Some(_)) => drop_type(&self.name, &rules, names),
            (Change::AddValue { label, if_not_exists: true, .. }, Some(labels)) if labels.contains(label) => {
                Ok(names.pinned.clone())
            }
            (Change::AddValue { label, position, .. }, Some(labels)) => {
                let labels = with_label(labels, label, position.as_ref())?;
                add_value(&EnumType { name: Some(self.name.clone()), labels }, names, stores)
            }
        }
    }
}

fn not_there(name: &EntryName) -> Error {
    Error::not_found(format!("type \"{}\" does not exist", name.name))
        .with_hint("list the types with `SELECT typname FROM pg_type`")
}

fn create(name: &EntryName, labels: &[String], rules: &Rules, names: &Names) -> Result<Pinned> {
    names.check_schema(name)?;
    if name.name.is_empty() || name.name.len() > MAX_NAME_BYTES {
        return Err(Error::invalid(format!("the name of a type has 1 to {MAX_NAME_BYTES} bytes")));
    }
    if rules.types.contains_key(name) {
        return Err(Error::new(ErrorKind::AlreadyExists, format!("type \"{}\" already exists", name.name))
            .with_hint("choose another name, or add labels with `ALTER TYPE … ADD VALUE`"));
    }
    if rules.types.len() >= MAX_TYPES {
        return Err(full(MAX_TYPES, "types"));
    }
    let mut changes = vec![(Key::Type(name).text(), Some(json!(labels).to_string()))];
    if !names.access.is_off() {
        changes.push((Key::Owner(&type_place(name)).text(), Some(json!(names.access.user()).to_string())));
    }
    names.pinned.changed(DEFAULT_CATALOG, |snapshot| snapshot.with_notes(changes))
}

fn with_label(labels: &[String], new: &str, position: Option<&(Side, String)>) -> Result<Vec<String>> {
    let place = match position {
        None => labels.len(),
        Some((side, other)) => {
            let place = labels.iter().position(|label| label == other).ok_or_else(|| {
                Error::invalid(format!("\"{other}\" is not an existing enum label"))
                    .with_reason(Reason::InvalidValue)
            })?;
            if *side == Side::After { place + 1 } else { place }
        }
    };
    if labels.iter().any(|label| label == new) {
        return Err(Error::new(ErrorKind::AlreadyExists, format!("enum label \"{new}\" already exists"))
            .with_hint("add IF NOT EXISTS"));
    }
    let mut labels = labels.to_vec();
    labels.insert(place, new.to_owned());
    check_labels(&labels)?;
    Ok(labels)
}

fn add_value(of: &EnumType, names: &Names, stores: &Stores) -> Result<Pinned> {
    let Some(name) = &of.name else { return Err(Error::internal("a type without a name was altered")) };
    let note = (Key::Type(name).text(), Some(json!(of.labels).to_string()));
    let mut pinned = names.pinned.changed(DEFAULT_CATALOG, |snapshot| snapshot.with_notes([note]))?;
    for snapshot in [names.pinned.shared(), names.pinned.own()] {
        for (place, table) in tables_with(name, snapshot) {
            let definition = with_labels(table.definition(), of);
            let store = stores.of(&place);
            let table = table.redefine(store, definition, true, |rows| Ok(rows.clone()))?;
            pinned = put(&pinned, &place, Entry::Table(Arc::new(table)))?;
        }
    }
    Ok(pinned)
}

fn with_labels(definition: &Definition, of: &EnumType) -> Definition {
    let mut definition = definition.clone();
    for column in &mut definition.columns {
        if EnumType::declared(&column.field).is_some_and(|there| there.name == of.name) {
            let mut metadata = column.field.metadata().clone();
            metadata.insert(DECLARED.to_owned(), Declared::Enum(of.clone()).to_string());
            column.field = Arc::new(column.field.as_ref().clone().with_metadata(metadata));
        }
    }
    definition
}

/// The tables with a column of a type.
fn tables_with(name: &EntryName, snapshot: &Snapshot) -> Vec<(EntryName, Arc<Table>)> {
    let mut found = Vec::new();
    for catalog in snapshot.catalogs() {
        for schema in snapshot.schemas(&catalog) {
            for table in snapshot.names(&catalog, &schema) {
                let place = EntryName::new(&catalog, &schema, table);
                if let Some(Entry::Table(table)) = snapshot.entry(&place)
                    && table.definition().columns.iter().any(|column| {
                        EnumType::declared(&column.field).is_some_and(|of| of.name.as_ref() == Some(name))
                    })
                {
                    found.push((place, Arc::clone(table)));
                }
            }
        }
    }
    found
}

fn drop_type(name: &EntryName, rules: &Rules, names: &Names) -> Result<Pinned> {
    // Also what the caller does not see keeps its type.
    let mut used = tables_with(name, names.pinned.shared());
    used.extend(tables_with(name, names.pinned.own()));
    if let Some((first, _)) = used.first() {
        let table = if names.access.sees(first) { format!(": table `{first}`") } else { String::new() };
        return Err(Error::invalid(format!(
            "cannot drop type {} because other objects depend on it{table}",
            name.name
        ))
        .with_reason(Reason::DependentObjects)
        .with_hint("drop its columns first, or give them another type; CASCADE does not drop columns"));
    }
    names.pinned.changed(DEFAULT_CATALOG, |snapshot| snapshot.with_notes(without_type(rules, name)))
}

/// Refuses a default that is written out and is no label of the type of its column.
///
/// # Errors
/// `Invalid`.
pub(crate) fn check_default(column: &Column) -> Result<()> {
    let (Some(of), Some(default)) = (EnumType::declared(&column.field), &column.default) else {
        return Ok(());
    };
    match bowshot_sql::read_expression(default)? {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => {
            of.position(&text).map(drop)
        }
        _ => Ok(()),
    }
}

/// Refuses a column whose parts would be of such a type: they are not held against its labels.
///
/// # Errors
/// `Unsupported`.
pub(crate) fn check_column(column: &ColumnDef) -> Result<()> {
    if matches!(column.data_type, SqlType::Enum(..)) || !has_enum(&column.data_type) {
        return Ok(());
    }
    let message = format!("column `{}` cannot be an array of an enumerated type", column.name.value);
    Err(Error::unsupported(message).with_hint("use `TEXT[]`, or a table with a row for each element"))
}

fn has_enum(sql_type: &SqlType) -> bool {
    match sql_type {
        SqlType::Enum(..) => true,
        SqlType::Array(
            ArrayElemTypeDef::AngleBracket(item)
            | ArrayElemTypeDef::SquareBracket(item, _)
            | ArrayElemTypeDef::Parenthesis(item),
        ) => has_enum(item),
        SqlType::Struct(parts, _) | SqlType::Tuple(parts) => {
            parts.iter().any(|part| has_enum(&part.field_type))
        }
        SqlType::Map(key, value) => has_enum(key) || has_enum(value),
        _ => false,
    }
}
