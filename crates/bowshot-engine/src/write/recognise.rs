//! Which statements change tables, and what they change.

use crate::catalog::Visible;
use crate::enforce::TransactionStatement;
use crate::error::classify;
use crate::write::alter::{self, Alteration};
use crate::write::ddl::Ddl;
use crate::write::defaults::WithDefaults;
use crate::write::names::{Names, ident};
use crate::write::{Write, change, defaults, define, fit, merge, nulls};
use bowshot_api::{Error, Result};
use bowshot_storage::tables::{Check, EntryName, Table};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::execution::SessionState;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{DmlStatement, EmptyRelation, Expr, LogicalPlan, WriteOp};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    self, AlterColumnOperation, AlterTable, AlterTableOperation, ColumnDef, ColumnOption, CommentObject,
    Ident, ObjectName, ObjectType, Query, RenameTableNameKind, SchemaName, Statement, TransactionAccessMode,
    TransactionIsolationLevel, TransactionMode,
};
use std::sync::Arc;

/// A statement that changes something, and the query that gives its rows.
pub(crate) enum Recognised {
    Write(Box<Write>, LogicalPlan),
    Transaction(TransactionStatement),
}

/// `None` for a statement that changes no table.
pub(crate) async fn recognise(
    statement: &Parsed,
    visible: &Visible,
    names: &Names,
) -> Result<Option<Recognised>> {
    let Parsed::Statement(statement) = statement else { return Ok(None) };
    let mut statement = statement.clone();
    if matches!(
        statement.as_ref(),
        Statement::Insert(_) | Statement::CreateTable(_) | Statement::CreateView(_) | Statement::Merge(_)
    ) {
        nulls::aware(&mut statement)?;
    }
    let statement = &statement;
    if let Some(transaction) = transaction(statement)? {
        return Ok(Some(Recognised::Transaction(transaction)));
    }
    if let Some(ddl) = catalog_change(statement, names)? {
        return Ok(Some(Recognised::Write(Box::new(Write::Ddl(ddl)), nothing())));
    }
    let recognised = match statement.as_ref() {
        Statement::CreateTable(create) => {
            let state = visible.state();
            let (write, rows) = Box::pin(define::table(create.clone(), names, &state)).await?;
            Recognised::Write(Box::new(write), rows.unwrap_or_else(nothing))
        }
        Statement::CreateView(create) => {
            let view = Box::pin(define::view(create.clone(), names, visible)).await?;
            Recognised::Write(Box::new(view), nothing())
        }
        Statement::AlterTable(alter) => {
            let ddl = Box::pin(alteration(alter, names, &visible.state())).await?;
            Recognised::Write(Box::new(Write::Ddl(ddl)), nothing())
        }
        Statement::Insert(insert) => Box::pin(self::insert(insert, visible, names)).await?,
        Statement::Delete(delete) => {
            let (name, query) = change::delete(delete)?;
            let (target, table) = names.writable(&name)?;
            Recognised::Write(Box::new(Write::Delete(target)), changing(query, &table, visible).await?)
        }
        Statement::Update(update) => {
            let (name, query) = change::update(update, |name| definition(name, names))?;
            let (target, table) = names.writable(&name)?;
            Recognised::Write(Box::new(Write::Update(target)), changing(query, &table, visible).await?)
        }
        Statement::Merge(merge) => {
            let (name, query) = merge::merge(merge, |name| definition(name, names))?;
            let (target, table) = names.writable(&name)?;
            let plan = changing(query, &table, visible).await?;
            merge::check_stable(&plan)?;
            Recognised::Write(Box::new(Write::Merge(target)), plan)
        }
        _ => return Ok(None),
    };
    Ok(Some(recognised))
}

pub(crate) fn nothing() -> LogicalPlan {
    LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema: Arc::new(DFSchema::empty()) })
}

fn definition(name: &ObjectName, names: &Names) -> Result<Arc<bowshot_storage::tables::Definition>> {
    Ok(Arc::clone(names.writable(name)?.1.definition()))
}

/// Plans a query over the target with the addresses of its rows.
async fn changing(query: Box<Query>, table: &Arc<Table>, visible: &Visible) -> Result<LogicalPlan> {
    let mut statement = Statement::Query(query);
    nulls::aware(&mut statement)?;
    let visible = visible.with_target(table.addressed_provider(change::ADDRESS));
    let statement = Parsed::Statement(Box::new(statement));
    let plan = visible.state().statement_to_plan(statement).await.map_err(classify)?;
    typed(plan, table)
}

/// `SET a = $1`: a parameter that is assigned as it is has the type of its column.
fn typed(plan: LogicalPlan, table: &Table) -> Result<LogicalPlan> {
    let LogicalPlan::Projection(mut top) = plan else { return Ok(plan) };
    for expr in &mut top.expr {
        let Expr::Alias(alias) = expr else { continue };
        let Expr::Placeholder(Placeholder { field: place @ None, .. }) = alias.expr.as_mut() else {
            continue;
        };
        let position = table.definition().position(&alias.name);
        let column = position.and_then(|position| table.definition().columns.get(position));
        *place = column.map(|column| Arc::clone(&column.field));
    }
    let plan = LogicalPlan::Projection(top);
    plan.transform_up_with_subqueries(|node| node.recompute_schema().map(Transformed::yes))
        .data()
        .map_err(classify)
}

async fn insert(insert: &ast::Insert, visible: &Visible, names: &Names) -> Result<Recognised> {
    if insert.returning.is_some() || insert.output.is_some() {
        return Err(Error::unsupported("RETURNING is not supported")
            .with_hint("query the rows in the same transaction"));
    }
    if insert.on.is_some() || insert.or.is_some() || insert.ignore || insert.replace_into || insert.overwrite
    {
        return Err(
            Error::unsupported("INSERT only adds rows").with_hint("use MERGE to change rows that are there")
        );
    }
    let ast::TableObject::TableName(name) = &insert.table else {
        return Err(Error::unsupported("INSERT takes the name of a table"));
    };
    let (target, table) = names.writable(name)?;
    let mut insert = insert.clone();
    insert.table = ast::TableObject::TableName(change::target_name());
    let provider =
        WithDefaults::to_insert(table.provider(), table.definition(), &visible.state()).map_err(classify)?;
    let statement = Parsed::Statement(Box::new(Statement::Insert(insert)));
    let state = visible.with_target(provider).state();
    let plan = state.statement_to_plan(statement).await.map_err(classify)?;
    match plan {
        LogicalPlan::Dml(DmlStatement { op: WriteOp::Insert(InsertOp::Append), input, .. }) => {
            Ok(Recognised::Write(Box::new(Write::Insert(target)), Arc::unwrap_or_clone(input)))
        }
        _ => Err(Error::internal("INSERT was planned as something else")),
    }
}

/// Changes of the catalog that need no planning.
fn catalog_change(statement: &Statement, names: &Names) -> Result<Option<Ddl>> {
    Ok(Some(match statement {
        Statement::CreateSchema { schema_name, if_not_exists, .. } => {
            let SchemaName::Simple(name) = schema_name else {
                return Err(Error::unsupported("AUTHORIZATION is not supported"));
            };
            let (catalog, name) = names.schema(name)?;
            check_schema_name(&name)?;
            Ddl::CreateSchema { catalog, name, keep: *if_not_exists }
        }
        Statement::CreateDatabase { db_name, if_not_exists, .. } => {
            let name = names.catalog(db_name)?;
            if name == crate::pinned::TEMPORARY_CATALOG || name.starts_with("__bowshot") {
                return Err(Error::invalid(format!("the catalog name `{name}` is reserved")));
            }
            Ddl::CreateCatalog { name, keep: *if_not_exists }
        }
        Statement::Drop { object_type, if_exists, names: dropped, cascade, .. } => {
            let [name] = dropped.as_slice() else {
                return Err(
                    Error::unsupported("DROP takes one name").with_hint("send one statement for each")
                );
            };
            dropped_thing(*object_type, name, *if_exists, *cascade, names)?
        }
        Statement::Comment { object_type, object_name, comment, .. } => {
            commented(*object_type, object_name, comment.clone(), names)?
        }
        Statement::Truncate(truncate) => {
            let tables = truncate.table_names.iter();
            let resolved = tables.map(|table| Ok(names.writable(&table.name)?.0)).collect::<Result<_>>()?;
            Ddl::Truncate { names: resolved }
        }
        _ => return Ok(None),
    }))
}

/// Names that mean something else cannot be taken.
fn check_schema_name(name: &str) -> Result<()> {
    let reserved = ["information_schema", crate::SYSTEM_SCHEMA, crate::pinned::TEMPORARY_CATALOG];
    if reserved.contains(&name) || name.starts_with("__bowshot") {
        return Err(Error::invalid(format!("the schema name `{name}` is reserved")));
    }
    Ok(())
}

fn dropped_thing(
    kind: ObjectType,
    name: &ObjectName,
    if_exists: bool,
    cascade: bool,
    names: &Names,
) -> Result<Ddl> {
    Ok(match kind {
        ObjectType::Table => Ddl::DropTable { name: names.resolve(name)?, if_exists },
        ObjectType::View => Ddl::DropView { name: names.resolve(name)?, if_exists },
        ObjectType::Schema => {
            let (catalog, name) = names.schema(name)?;
            Ddl::DropSchema { catalog, name, if_exists, cascade }
        }
        ObjectType::Database => Ddl::DropCatalog { name: names.catalog(name)?, if_exists, cascade },
        other => return Err(Error::unsupported(format!("DROP {other} is not supported"))),
    })
}

fn commented(kind: CommentObject, name: &ObjectName, text: Option<String>, names: &Names) -> Result<Ddl> {
    match kind {
        CommentObject::Table | CommentObject::View => {
            Ok(Ddl::Comment { name: names.resolve(name)?, column: None, text })
        }
        CommentObject::Column => {
            let (Some(column), [table @ .., _]) = (name.0.last(), name.0.as_slice()) else {
                return Err(Error::invalid("COMMENT ON COLUMN takes `table.column`"));
            };
            let column = column.as_ident().map(ident);
            Ok(Ddl::Comment { name: names.resolve(&ObjectName(table.to_vec()))?, column, text })
        }
        other => Err(Error::unsupported(format!("COMMENT ON {other} is not supported"))),
    }
}

async fn alteration(alter: &AlterTable, names: &Names, state: &SessionState) -> Result<Ddl> {
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
    state: &SessionState,
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

async fn altered_column(
    column: String,
    op: &AlterColumnOperation,
    state: &SessionState,
) -> Result<Alteration> {
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
async fn added(column: &ColumnDef, if_not_exists: bool, state: &SessionState) -> Result<Alteration> {
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

async fn planned_type(column: ColumnDef, state: &SessionState) -> Result<(DataType, bool)> {
    let mut create = change::parse_create("CREATE TABLE t (c INT)")?;
    create.columns = vec![column];
    let schema = Box::pin(define::planned_columns(create, state)).await?;
    let field = schema.fields().first().ok_or_else(|| Error::internal("a column was planned as none"))?;
    Ok((field.data_type().clone(), field.is_nullable()))
}

/// The statements that begin and end transactions.
fn transaction(statement: &Statement) -> Result<Option<TransactionStatement>> {
    Ok(Some(match statement {
        Statement::StartTransaction { modes, .. } => {
            TransactionStatement::Begin { read_only: read_only(modes)? }
        }
        Statement::Commit { chain: false, .. } => TransactionStatement::Commit,
        Statement::Rollback { chain: false, savepoint: None } => TransactionStatement::Rollback,
        Statement::Rollback { chain: false, savepoint: Some(name) } => {
            TransactionStatement::RollbackTo(ident(name))
        }
        Statement::Savepoint { name } => TransactionStatement::Savepoint(ident(name)),
        Statement::ReleaseSavepoint { name } => TransactionStatement::Release(ident(name)),
        Statement::Commit { .. } | Statement::Rollback { .. } => {
            return Err(Error::unsupported("AND CHAIN is not supported").with_hint("send BEGIN afterwards"));
        }
        _ => return Ok(None),
    }))
}

/// Transactions have snapshot isolation, which is at least what the weaker levels promise.
fn read_only(modes: &[TransactionMode]) -> Result<bool> {
    let mut read_only = false;
    for mode in modes {
        match mode {
            TransactionMode::AccessMode(access) => read_only = *access == TransactionAccessMode::ReadOnly,
            TransactionMode::IsolationLevel(TransactionIsolationLevel::Serializable) => {
                return Err(Error::unsupported("isolation level SERIALIZABLE is not supported")
                    .with_hint("transactions have snapshot isolation: use REPEATABLE READ"));
            }
            TransactionMode::IsolationLevel(_) => {}
        }
    }
    Ok(read_only)
}
