//! What the parts of an ALTER TABLE mean.

use crate::catalog::defaults::{self, Computed};
use crate::catalog::lazy_state::LazyState;
use crate::catalog::names::{Names, ident};
use crate::error::classify;
use crate::write::alter::{self, Alteration, ColumnPlace, NewColumn};
use crate::write::ddl::Ddl;
use crate::write::{change, constraints, create_table, key, table_clauses};
use bowshot_api::{Error, ErrorKind, Reason, Result};
use bowshot_tables::{Check, Column, EntryName};
use datafusion::arrow::datatypes::Field;
use datafusion::sql::sqlparser::ast::{
    self, AlterColumnOperation, AlterTable, AlterTableOperation, ColumnDef, ColumnOption, Ident,
    MySQLColumnPosition, RenameTableNameKind, TableConstraint,
};
use futures::FutureExt;
use futures::future::BoxFuture;

/// Changes of one ALTER TABLE: each makes the whole definition anew.
const MAX_CHANGES: usize = 1_000;

/// The change that the statement is.
///
/// # Errors
/// `LimitReached` for too many changes.
pub(crate) fn alteration<'a>(
    alter: &'a AlterTable,
    names: &'a Names,
    state: &'a LazyState,
) -> BoxFuture<'a, Result<Ddl>> {
    async move {
        let name = names.resolve(&alter.name)?;
        let mut changes = Vec::with_capacity(alter.operations.len());
        for operation in &alter.operations {
            changes.extend(alterations(operation, &name, names, state).await?);
            if changes.len() > MAX_CHANGES {
                let message = format!("one ALTER TABLE makes at most {MAX_CHANGES} changes");
                return Err(Error::new(ErrorKind::LimitReached, message)
                    .with_hint("split it into several statements of one transaction"));
            }
        }
        Ok(Ddl::Alter { name, if_exists: alter.if_exists, changes })
    }
    .boxed()
}

/// `RENAME TO name`
fn renamed_table(to: &RenameTableNameKind, table: &EntryName, names: &Names) -> Result<Alteration> {
    let (RenameTableNameKind::As(to) | RenameTableNameKind::To(to)) = to;
    let to = match to.0.as_slice() {
        [part] => EntryName { name: part.as_ident().map(ident).unwrap_or_default(), ..table.clone() },
        _ => names.resolve(to)?,
    };
    if to.catalog != table.catalog {
        return Err(Error::unsupported("a table stays in its catalog")
            .with_hint("use `CREATE TABLE … AS` and drop the old one"));
    }
    Ok(Alteration::RenameTable { to })
}

fn alterations<'a>(
    operation: &'a AlterTableOperation,
    table: &'a EntryName,
    names: &'a Names,
    state: &'a LazyState,
) -> BoxFuture<'a, Result<Vec<Alteration>>> {
    async move {
        Ok(match operation {
            AlterTableOperation::AddColumn { column_def, if_not_exists, column_position, .. } => {
                let place = match column_position {
                    Some(MySQLColumnPosition::First) => ColumnPlace::First,
                    Some(MySQLColumnPosition::After(other)) => ColumnPlace::After(ident(other)),
                    None => ColumnPlace::Last,
                };
                let (column, value) = added(column_def, state).await?;
                let new = NewColumn { column, value, place, if_not_exists: *if_not_exists };
                vec![Alteration::AddColumn(new)]
            }
            AlterTableOperation::DropColumn { column_names, if_exists, .. } => {
                let dropped =
                    |name: &Ident| Alteration::DropColumn { name: ident(name), if_exists: *if_exists };
                column_names.iter().map(dropped).collect()
            }
            AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
                create_table::check_column_name(&ident(new_column_name))?;
                vec![Alteration::RenameColumn { from: ident(old_column_name), to: ident(new_column_name) }]
            }
            AlterTableOperation::RenameTable { table_name } => {
                vec![renamed_table(table_name, table, names)?]
            }
            AlterTableOperation::AlterColumn { column_name, op } => {
                vec![altered_column(ident(column_name), op, state).await?]
            }
            AlterTableOperation::AddConstraint { constraint: TableConstraint::Check(check), .. } => {
                table_clauses::check_holds(check)?;
                let there = names.table(table)?;
                let name = check
                    .name
                    .as_ref()
                    .map_or_else(|| create_table::free_name(&there.definition().checks), ident);
                let check = Check { name, sql: check.expr.to_string(), comment: None };
                constraints::check_all(table, &there, &check, state)?;
                vec![Alteration::AddCheck(check)]
            }
            AlterTableOperation::AddConstraint { constraint, .. } => {
                vec![added_key(constraint, table, names, state).await?]
            }
            AlterTableOperation::DropPrimaryKey { .. } => vec![Alteration::DropPrimaryKey],
            AlterTableOperation::ModifyColumn { col_name, data_type, options, column_position: None } => {
                modified(col_name, data_type, options, state).await?
            }
            AlterTableOperation::ChangeColumn {
                old_name,
                new_name,
                data_type,
                options,
                column_position: None,
            } => {
                let mut changes = modified(old_name, data_type, options, state).await?;
                if ident(old_name) != ident(new_name) {
                    create_table::check_column_name(&ident(new_name))?;
                    changes.push(Alteration::RenameColumn { from: ident(old_name), to: ident(new_name) });
                }
                changes
            }
            AlterTableOperation::DropConstraint { name, if_exists, .. } => {
                vec![Alteration::DropConstraint { name: ident(name), if_exists: *if_exists }]
            }
            other => return Err(Error::unsupported(format!("ALTER TABLE … {other} is not supported"))),
        })
    }
    .boxed()
}

fn added_key<'a>(
    constraint: &'a TableConstraint,
    table: &'a EntryName,
    names: &'a Names,
    state: &'a LazyState,
) -> BoxFuture<'a, Result<Alteration>> {
    async move {
        let (key, primary) = match constraint {
            TableConstraint::PrimaryKey(key) => {
                table_clauses::check_enforced(key.characteristics.as_ref())?;
                (table_clauses::named_key(key.name.as_ref(), &key.columns)?, true)
            }
            TableConstraint::Unique(key) => (table_clauses::unique_key(key)?, false),
            TableConstraint::ForeignKey(key) => {
                let reference = table_clauses::reference(key)?;
                table_clauses::note_referred(std::slice::from_ref(&reference), names)?;
                return Ok(Alteration::AddReference(reference));
            }
            other => return Err(Error::unsupported(format!("ADD {other} is not supported"))),
        };
        let there = names.table(table)?;
        let kind = if primary { "primary key" } else { "unique key" };
        table_clauses::check_key(there.definition(), kind, &key)?;
        key::check_rows(table, (kind, &key), &there, state).await?;
        Ok(Alteration::AddKey { key, primary })
    }
    .boxed()
}

/// `MODIFY` says anew what a column is: what it does not say is gone, as in MySQL.
fn modified<'a>(
    name: &'a Ident,
    data_type: &'a ast::DataType,
    options: &'a [ColumnOption],
    state: &'a LazyState,
) -> BoxFuture<'a, Result<Vec<Alteration>>> {
    async move {
        let column = ident(name);
        let definition =
            ColumnDef { name: Ident::new("c"), data_type: data_type.clone(), options: Vec::new() };
        let (mut nullable, mut default, mut text) = (true, None, None);
        for option in options {
            match option {
                ColumnOption::Null => nullable = true,
                ColumnOption::NotNull => nullable = false,
                ColumnOption::Default(value) => {
                    defaults::parse(&value.to_string(), state).map_err(classify)?;
                    default = Some(value.to_string());
                }
                ColumnOption::Comment(comment) => text = Some(comment.clone()),
                ColumnOption::CharacterSet(_) => {}
                other => return Err(Error::unsupported(format!("`{other}` is not supported in MODIFY"))),
            }
        }
        Ok(vec![
            Alteration::SetType {
                column: column.clone(),
                field: planned_type(definition, state).await?,
                zone: state.zone(),
            },
            Alteration::SetNullable { column: column.clone(), nullable },
            Alteration::SetDefault { column: column.clone(), default },
            Alteration::SetComment { column, text },
        ])
    }
    .boxed()
}

fn altered_column<'a>(
    column: String,
    op: &'a AlterColumnOperation,
    state: &'a LazyState,
) -> BoxFuture<'a, Result<Alteration>> {
    async move {
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
                let field = planned_type(definition, state).await?;
                Alteration::SetType { column, field, zone: state.zone() }
            }
            AlterColumnOperation::SetDataType { .. } => {
                return Err(Error::unsupported("ALTER COLUMN … TYPE … USING is not supported")
                    .with_hint("add a column of the type, fill it with UPDATE, and drop the other one"));
            }
            other => return Err(Error::unsupported(format!("ALTER COLUMN … {other} is not supported"))),
        })
    }
    .boxed()
}

/// A column to be added. The rows that are there get its default.
fn added<'a>(
    column: &'a ColumnDef,
    state: &'a LazyState,
) -> BoxFuture<'a, Result<(Column, Option<Computed>)>> {
    async move {
        let name = ident(&column.name);
        create_table::check_column_name(&name)?;
        let (mut default, mut comment, mut kept) = (None, None, Vec::new());
        for option in &column.options {
            match &option.option {
                ColumnOption::Default(value) => default = Some(value.to_string()),
                ColumnOption::Null | ColumnOption::NotNull => kept.push(option.clone()),
                ColumnOption::Comment(text) => comment = Some(text.clone()),
                ColumnOption::CharacterSet(_) => {}
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
        let field = planned_type(definition, state).await?;
        let value = match &default {
            Some(default) => Some(Computed::plan(default, field.data_type(), state)?),
            None => None,
        };
        let is_null = match &value {
            Some(value) => value.value()?.is_null(),
            None => true,
        };
        if !field.is_nullable() && is_null {
            return Err(Error::invalid(format!("column `{name}` must not be NULL and has no default"))
                .with_reason(Reason::NotNullViolation)
                .with_hint("give it a default, which is the value of the rows that are there"));
        }
        Ok((alter::new_column(&name, &field, default, comment), value))
    }
    .boxed()
}

fn planned_type<'a>(column: ColumnDef, state: &'a LazyState) -> BoxFuture<'a, Result<Field>> {
    async move {
        let mut create = change::parse_create("CREATE TABLE t (c INT)")?;
        create.columns = vec![column];
        let schema = Box::pin(create_table::planned_columns(create, state)).await?;
        let field = schema.fields().first().ok_or_else(|| Error::internal("a column was planned as none"))?;
        Ok(field.as_ref().clone())
    }
    .boxed()
}
