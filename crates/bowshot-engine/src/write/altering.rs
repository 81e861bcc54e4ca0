//! What the parts of an ALTER TABLE mean.

use crate::error::classify;
use crate::state::LazyState;
use crate::write::alter::{self, Alteration};
use crate::write::ddl::Ddl;
use crate::write::names::{Names, ident};
use crate::write::{change, defaults, define, fit};
use bowshot_api::{Error, Result};
use bowshot_storage::tables::{Check, EntryName};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    self, AlterColumnOperation, AlterTable, AlterTableOperation, ColumnDef, ColumnOption, Ident,
    RenameTableNameKind,
};

/// The change that the statement is.
pub(crate) async fn alteration(alter: &AlterTable, names: &Names, state: &LazyState) -> Result<Ddl> {
    let name = names.resolve(&alter.name)?;
    let mut changes = Vec::with_capacity(alter.operations.len());
    for operation in &alter.operations {
        changes.extend(alterations(operation, &name, names, state).await?);
    }
    Ok(Ddl::Alter { name, if_exists: alter.if_exists, changes })
}

async fn alterations(
    operation: &AlterTableOperation,
    table: &EntryName,
    names: &Names,
    state: &LazyState,
) -> Result<Vec<Alteration>> {
    Ok(match operation {
        AlterTableOperation::AddColumn { column_def, if_not_exists, .. } => {
            vec![added(column_def, *if_not_exists, state).await?]
        }
        AlterTableOperation::DropColumn { column_names, if_exists, .. } => {
            let dropped = |name: &Ident| Alteration::DropColumn { name: ident(name), if_exists: *if_exists };
            column_names.iter().map(dropped).collect()
        }
        AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
            define::check_column_name(&ident(new_column_name))?;
            vec![Alteration::RenameColumn { from: ident(old_column_name), to: ident(new_column_name) }]
        }
        AlterTableOperation::RenameTable { table_name } => {
            let (RenameTableNameKind::As(to) | RenameTableNameKind::To(to)) = table_name;
            let to = match to.0.as_slice() {
                [part] => EntryName { name: part.as_ident().map(ident).unwrap_or_default(), ..table.clone() },
                _ => names.resolve(to)?,
            };
            if to.catalog != table.catalog {
                return Err(Error::unsupported("a table stays in its catalog")
                    .with_hint("use `CREATE TABLE … AS` and drop the old one"));
            }
            vec![Alteration::RenameTable { to }]
        }
        AlterTableOperation::AlterColumn { column_name, op } => {
            vec![altered_column(ident(column_name), op, state).await?]
        }
        AlterTableOperation::AddConstraint { constraint: ast::TableConstraint::Check(check), .. } => {
            let there = names.table(table)?;
            let name =
                check.name.as_ref().map_or_else(|| define::free_name(&there.definition().checks), ident);
            let check = Check { name, sql: check.expr.to_string() };
            fit::check_all(table, &there, &check, state)?;
            vec![Alteration::AddCheck(check)]
        }
        AlterTableOperation::DropConstraint { name, if_exists, .. } => {
            vec![Alteration::DropConstraint { name: ident(name), if_exists: *if_exists }]
        }
        other => return Err(Error::unsupported(format!("ALTER TABLE … {other} is not supported"))),
    })
}

async fn altered_column(column: String, op: &AlterColumnOperation, state: &LazyState) -> Result<Alteration> {
    Ok(match op {
        AlterColumnOperation::SetNotNull => Alteration::SetNullable { column, nullable: false },
        AlterColumnOperation::DropNotNull => Alteration::SetNullable { column, nullable: true },
        AlterColumnOperation::SetDefault { value } => {
            let default = value.to_string();
            defaults::parse(&default, state).map_err(classify)?;
            Alteration::SetDefault { column, default: Some(default) }
        }
        AlterColumnOperation::DropDefault => Alteration::SetDefault { column, default: None },
        AlterColumnOperation::SetDataType { data_type, using: None, .. } => {
            let definition =
                ColumnDef { name: Ident::new("c"), data_type: data_type.clone(), options: Vec::new() };
            let (data_type, _) = planned_type(definition, state).await?;
            Alteration::SetType { column, data_type }
        }
        other => return Err(Error::unsupported(format!("ALTER COLUMN … {other} is not supported"))),
    })
}

/// A column to be added. Its default is computed once, for all rows that are there.
async fn added(column: &ColumnDef, if_not_exists: bool, state: &LazyState) -> Result<Alteration> {
    let name = ident(&column.name);
    define::check_column_name(&name)?;
    let (mut default, mut kept) = (None, Vec::new());
    for option in &column.options {
        match &option.option {
            ColumnOption::Default(value) => default = Some(value.to_string()),
            ColumnOption::Null | ColumnOption::NotNull => kept.push(option.clone()),
            other => {
                return Err(Error::unsupported(format!("`{other}` cannot be added with a column"))
                    .with_hint(
                        "a new column has NULL, NOT NULL and DEFAULT; add a check with ADD CONSTRAINT",
                    ));
            }
        }
    }
    let definition =
        ColumnDef { name: column.name.clone(), data_type: column.data_type.clone(), options: kept };
    let (data_type, nullable) = planned_type(definition, state).await?;
    let value = match &default {
        Some(default) => defaults::computed(default, &data_type, state)?,
        None => ScalarValue::Null,
    };
    if !nullable && value.is_null() {
        return Err(Error::invalid(format!("column `{name}` must not be NULL and has no default"))
            .with_hint("give it a default, which is the value of the rows that are there"));
    }
    Ok(Alteration::AddColumn {
        column: alter::new_column(&name, data_type, nullable, default),
        value,
        if_not_exists,
    })
}

async fn planned_type(column: ColumnDef, state: &LazyState) -> Result<(DataType, bool)> {
    let mut create = change::parse_create("CREATE TABLE t (c INT)")?;
    create.columns = vec![column];
    let schema = Box::pin(define::planned_columns(create, state)).await?;
    let field = schema.fields().first().ok_or_else(|| Error::internal("a column was planned as none"))?;
    Ok((field.data_type().clone(), field.is_nullable()))
}
