//! CREATE, ALTER and DROP of tables and schemas in other databases that let them be made from here. Columns are planned like those of
//! tables here; what of them there can be, the database decides.

use crate::catalog::Visible;
use crate::catalog::lazy_state::LazyState;
use crate::catalog::names::Names;
use crate::databases::{ColumnChange, DatabaseDefinition, NewDatabaseTable, PartitionField};
use crate::write::alter::{Alteration, ColumnPlace, NewColumn};
use crate::write::ddl::Ddl;
use crate::write::recognise::{Recognised, nothing};
use crate::write::{Write, alter_table_operations, create_table};
use bowshot_api::{Error, Result};
use bowshot_tables::{Column, EntryName};
use bowshot_types::storage_type;
use datafusion::arrow::datatypes::{Field, Fields, Schema};
use datafusion::sql::sqlparser::ast::{
    AlterTable, ColumnOption, CreateTable, CreateTableOptions, Expr as SqlExpr, ObjectName, ObjectType,
    SchemaName, SqlOption, Statement, Value,
};
use std::sync::Arc;

/// What is made or dropped.
#[derive(Debug, Clone)]
pub(crate) struct DatabaseDefine {
    pub(crate) definition: DatabaseDefinition,
    /// Whether the rows of the plan go into the table.
    pub(crate) has_rows: bool,
}

impl DatabaseDefine {
    /// The database that changes.
    fn database(&self) -> &str {
        match &self.definition {
            DatabaseDefinition::CreateSchema { database, .. }
            | DatabaseDefinition::DropSchema { database, .. } => database,
            DatabaseDefinition::CreateTable(new) => &new.name.catalog,
            DatabaseDefinition::AlterTable { name, .. }
            | DatabaseDefinition::AlterLayout { name, .. }
            | DatabaseDefinition::DropTable { name, .. }
            | DatabaseDefinition::Optimize { name }
            | DatabaseDefinition::Vacuum { name, .. } => &name.catalog,
        }
    }
}

/// `None` for every other statement.
pub(super) async fn recognise(
    statement: &Statement,
    visible: &Visible,
    names: &Names,
) -> Result<Option<Recognised>> {
    if let Statement::CreateTable(create) = statement {
        if create.external || create.temporary {
            return Ok(None);
        }
        let name = names.full_new_name(&create.name)?;
        return match names.parts.databases.has_definitions(&name.catalog) {
            true => Box::pin(created(create.clone(), name, visible, names)).await.map(Some),
            false => Ok(None),
        };
    }
    if let Statement::AlterTable(alter) = statement {
        let is_meant = names.parts.databases.has_definitions(&names.resolve(&alter.name)?.catalog);
        return match is_meant {
            true => Box::pin(altered(alter, visible, names)).await.map(Some),
            false => Ok(None),
        };
    }
    let Some(definition) = plain(statement, names)? else { return Ok(None) };
    let define = DatabaseDefine { definition, has_rows: false };
    names.parts.databases.check_writable(define.database())?;
    Ok(Some(Recognised::Write(Box::new(Write::DatabaseDefine(define)), nothing())))
}

/// The statements that plan nothing.
fn plain(statement: &Statement, names: &Names) -> Result<Option<DatabaseDefinition>> {
    let is_there = |database: &str| names.parts.databases.has_definitions(database);
    match statement {
        Statement::CreateSchema { schema_name: SchemaName::Simple(name), if_not_exists, .. } => {
            let (database, schema) = names.schema(name)?;
            let if_not_exists = *if_not_exists;
            let change = DatabaseDefinition::CreateSchema { database, schema, if_not_exists };
            Ok(matches!(&change, DatabaseDefinition::CreateSchema { database, .. } if is_there(database))
                .then_some(change))
        }
        Statement::Drop { object_type, if_exists, names: dropped, cascade, temporary: false, .. } => {
            let mut found = Vec::new();
            for name in dropped {
                found.extend(dropped_one(*object_type, name, *if_exists, names)?);
            }
            if !found.is_empty() && dropped.len() > 1 {
                return Err(Error::unsupported("what is in other databases is dropped one by one")
                    .with_hint("write a statement for each of them"));
            }
            let found = found.pop();
            if found.is_some() && *cascade {
                return Err(Error::unsupported("what is in another database is not dropped with CASCADE")
                    .with_hint("drop the tables first, then their schema"));
            }
            Ok(found)
        }
        _ => Ok(None),
    }
}

fn dropped_one(
    kind: ObjectType,
    name: &ObjectName,
    if_exists: bool,
    names: &Names,
) -> Result<Option<DatabaseDefinition>> {
    let databases = &names.parts.databases;
    match kind {
        ObjectType::Table => {
            let name = names.resolve(name)?;
            let is_meant = databases.has_definitions(&name.catalog);
            Ok(is_meant.then_some(DatabaseDefinition::DropTable { name, if_exists }))
        }
        ObjectType::Schema => {
            let (database, schema) = names.schema(name)?;
            let is_meant = databases.has_definitions(&database);
            Ok(is_meant.then_some(DatabaseDefinition::DropSchema { database, schema, if_exists }))
        }
        _ => Ok(None),
    }
}

async fn created(
    mut create: CreateTable,
    name: EntryName,
    visible: &Visible,
    names: &Names,
) -> Result<Recognised> {
    names.access.check_make(&name.catalog, &name.schema)?;
    names.parts.databases.check_writable(&name.catalog)?;
    let partition = PartitionField::take(&mut create)?;
    let format_version = take_format_version(&mut create)?;
    check_plain(&create, &name)?;
    let if_not_exists = std::mem::take(&mut create.if_not_exists);
    let has_rows = create.query.is_some();
    let state = visible.state();
    let (columns, rows) = match has_rows {
        true => {
            let rows = create_table::planned(create, &state).await?;
            let fields = rows.schema().fields().iter();
            let fields = fields.map(|field| Arc::new(field.as_ref().clone().with_nullable(true)));
            (Arc::new(Schema::new(fields.collect::<Fields>())), rows)
        }
        false => (create_table::planned_columns(create, &state).await?, nothing()),
    };
    let new = NewDatabaseTable { name, columns, partition, format_version, if_not_exists };
    let define = DatabaseDefine { definition: DatabaseDefinition::CreateTable(new), has_rows };
    Ok(Recognised::Write(Box::new(Write::DatabaseDefine(define)), rows))
}

async fn altered(alter: &AlterTable, visible: &Visible, names: &Names) -> Result<Recognised> {
    let state = LazyState::new(visible.clone());
    let Ddl::Alter { name, if_exists, changes } =
        alter_table_operations::alteration(alter, names, &state).await?
    else {
        return Err(Error::internal("ALTER TABLE was read as something else"));
    };
    names.parts.databases.check_writable(&name.catalog)?;
    let mut of_columns = Vec::with_capacity(changes.len());
    for change in changes {
        of_columns.extend(column_change(change, &name)?);
    }
    let definition = DatabaseDefinition::AlterTable { name, changes: of_columns, if_exists };
    let define = DatabaseDefine { definition, has_rows: false };
    Ok(Recognised::Write(Box::new(Write::DatabaseDefine(define)), nothing()))
}

/// `None` for what is so in any case.
fn column_change(change: Alteration, table: &EntryName) -> Result<Option<ColumnChange>> {
    Ok(Some(match change {
        Alteration::AddColumn(NewColumn {
            column: Column { field, default: None, comment: None },
            place: ColumnPlace::Last,
            if_not_exists,
            ..
        }) => {
            let data_type = storage_type::logical(&field);
            let column = Arc::new(Field::new(field.name(), data_type, field.is_nullable()));
            ColumnChange::Add { column, if_not_exists }
        }
        Alteration::DropColumn { name: column, if_exists } => ColumnChange::Drop { column, if_exists },
        Alteration::RenameColumn { from, to } => ColumnChange::Rename { from, to },
        Alteration::SetType { column, field, .. } => {
            ColumnChange::SetType { column, data_type: field.data_type().clone() }
        }
        Alteration::SetNullable { column, nullable: true } => ColumnChange::DropNotNull { column },
        Alteration::SetDefault { default: None, .. } | Alteration::SetComment { text: None, .. } => {
            return Ok(None);
        }
        _ => {
            return Err(Error::unsupported(format!(
                "`{table}` is in another database, where ALTER TABLE changes columns alone"
            ))
            .with_hint(
                "add a column behind the others without DEFAULT and COMMENT; drop, rename or widen one; or drop its NOT NULL",
            ));
        }
    }))
}

/// `WITH (format_version = 3)`, also as `TBLPROPERTIES ('format-version' = '3')`. Other options stay in the statement.
fn take_format_version(create: &mut CreateTable) -> Result<Option<u32>> {
    let (CreateTableOptions::With(options) | CreateTableOptions::TableProperties(options)) =
        &create.table_options
    else {
        return Ok(None);
    };
    let [SqlOption::KeyValue { key, value: SqlExpr::Value(value) }] = options.as_slice() else {
        return Ok(None);
    };
    if key.value.to_lowercase().replace('-', "_") != "format_version" {
        return Ok(None);
    }
    let version = match &value.value {
        Value::Number(digits, _) => digits.to_string().parse().ok(),
        Value::SingleQuotedString(text) => text.parse().ok(),
        _ => None,
    };
    let version = version.ok_or_else(|| {
        Error::invalid(format!("`{value}` is no version of a format"))
            .with_hint("write `WITH (format_version = 3)`")
    })?;
    create.table_options = CreateTableOptions::None;
    Ok(Some(version))
}

/// A table there has columns and partitions, and nothing that this server would have to watch over.
fn check_plain(create: &CreateTable, name: &EntryName) -> Result<()> {
    let has_options = create
        .columns
        .iter()
        .flat_map(|column| &column.options)
        .any(|option| !matches!(option.option, ColumnOption::Null | ColumnOption::NotNull));
    let more = has_options
        || create.or_replace
        || create.like.is_some()
        || create.clone.is_some()
        || create.comment.is_some()
        || !create.constraints.is_empty()
        || create.table_options != CreateTableOptions::None;
    if more {
        return Err(Error::unsupported(format!(
            "`{name}` is made in another database: it has columns with their types and NOT NULL, and partitions"
        ))
        .with_hint(
            "leave OR REPLACE, LIKE, CLONE, options, comments, defaults, keys and other constraints out",
        ));
    }
    Ok(())
}
