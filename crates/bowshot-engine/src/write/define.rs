//! What `CREATE TABLE` and `CREATE VIEW` define.

use crate::catalog::Visible;
use crate::error::classify;
use crate::write::names::{Names, ident};
use crate::write::{NewTable, NewView, WhenThere, Write, ddl::Ddl, defaults};
use bowshot_api::{Error, Layout, Result};
use bowshot_storage::tables::{Check, Column, Definition, Key, Storage, View, durable_type};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{DdlStatement, Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, ColumnDef, ColumnOption, ColumnOptionDef, CreateTable, CreateTableOptions, CreateView,
    Expr as SqlExpr, IndexColumn, SqlOption, TableConstraint, Value,
};
use std::collections::HashSet;
use std::sync::Arc;
use uuid::Uuid;

/// What a table is to be, and the query that gives its rows for `CREATE TABLE … AS`.
pub(crate) async fn table(
    mut create: CreateTable,
    names: &Names,
    state: &SessionState,
) -> Result<(Write, Option<LogicalPlan>)> {
    let when_there = when_there(create.or_replace, create.if_not_exists)?;
    let asked = storage_option(std::mem::replace(&mut create.table_options, CreateTableOptions::None))?;
    let temporary = std::mem::take(&mut create.temporary);
    let name = names.new_name(&create.name, temporary)?;
    let storage = names.storage(&name, asked)?;
    let parts = Parts::take(&mut create)?;
    let has_rows = create.query.is_some();
    create.or_replace = false;
    create.if_not_exists = false;
    let rows = planned(create, state).await?;
    let definition = parts.definition(rows.schema().as_arrow(), has_rows, storage)?;
    check_expressions(&definition, state)?;
    let table = NewTable { name, definition, when_there };
    Ok(if has_rows {
        (Write::CreateAs(table), Some(rows))
    } else {
        (Write::Ddl(Ddl::CreateTable(table)), None)
    })
}

/// The query that a plain CREATE TABLE stands for: one with its columns.
async fn planned(mut create: CreateTable, state: &SessionState) -> Result<LogicalPlan> {
    // Under a name that nobody has: whether it is taken is decided where the catalog changes.
    create.name = ast::ObjectName::from(vec![ast::Ident::new("__bowshot_new")]);
    let statement = Statement::Statement(Box::new(ast::Statement::CreateTable(create)));
    match state.statement_to_plan(statement).await.map_err(classify)? {
        LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(planned)) => Ok(Arc::unwrap_or_clone(planned.input)),
        _ => Err(Error::internal("CREATE TABLE was planned as something else")),
    }
}

/// The columns of a plain CREATE TABLE, in the types in which they are kept.
pub(crate) async fn planned_columns(create: CreateTable, state: &SessionState) -> Result<SchemaRef> {
    Ok(Layout::default().schema(planned(create, state).await?.schema().as_arrow()))
}

pub(crate) fn when_there(or_replace: bool, if_not_exists: bool) -> Result<WhenThere> {
    match (or_replace, if_not_exists) {
        (true, true) => Err(Error::invalid("OR REPLACE and IF NOT EXISTS exclude one another")),
        (true, false) => Ok(WhenThere::Replace),
        (false, true) => Ok(WhenThere::Keep),
        (false, false) => Ok(WhenThere::Fail),
    }
}

/// The only option of a table is where its rows are kept.
fn storage_option(options: CreateTableOptions) -> Result<Option<Storage>> {
    let options = match options {
        CreateTableOptions::None => return Ok(None),
        CreateTableOptions::With(options)
        | CreateTableOptions::Options(options)
        | CreateTableOptions::Plain(options)
        | CreateTableOptions::TableProperties(options) => options,
    };
    let mut storage = None;
    for option in options {
        let SqlOption::KeyValue { key, value } = &option else {
            return Err(unknown_option(&option.to_string()));
        };
        if ident(key) != "storage" {
            return Err(unknown_option(&key.value));
        }
        storage = Some(match text(value).as_deref() {
            Some("memory") => Storage::Memory,
            Some("durable") => Storage::Durable,
            _ => {
                return Err(Error::unsupported(format!("storage {value} is not there"))
                    .with_hint("write `storage = 'durable'` or `storage = 'memory'`"));
            }
        });
    }
    Ok(storage)
}

/// The type in which a table keeps the values of a column.
///
/// # Errors
/// `Unsupported` for a type that a durable table has no place for.
pub(crate) fn kept_type(storage: Storage, column: &str, data_type: &DataType) -> Result<DataType> {
    if storage == Storage::Memory {
        return Ok(data_type.clone());
    }
    durable_type(data_type).ok_or_else(|| {
        Error::unsupported(format!("column `{column}` of type {data_type} cannot be durable"))
            .with_hint("store another type, or keep the table in memory: `WITH (storage = 'memory')`")
    })
}

fn unknown_option(name: &str) -> Error {
    Error::invalid(format!("`{name}` is no option of a table")).with_hint("the one option is `storage`")
}

fn text(value: &SqlExpr) -> Option<String> {
    match value {
        SqlExpr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => {
                Some(text.to_ascii_lowercase())
            }
            _ => None,
        },
        SqlExpr::Identifier(name) => Some(ident(name)),
        _ => None,
    }
}

/// What DataFusion's planner of CREATE TABLE does not take.
#[derive(Default)]
struct Parts {
    defaults: Vec<(String, String)>,
    comments: Vec<(String, String)>,
    checks: Vec<Check>,
    primary_key: Option<Key>,
    comment: Option<String>,
}

impl Parts {
    /// Takes these parts out of the statement.
    fn take(create: &mut CreateTable) -> Result<Self> {
        let mut parts =
            Self { comment: create.comment.take().map(|comment| comment_text(&comment)), ..Self::default() };
        for column in &mut create.columns {
            parts.take_column(column)?;
        }
        for constraint in std::mem::take(&mut create.constraints) {
            parts.add_constraint(constraint)?;
        }
        Ok(parts)
    }

    fn take_column(&mut self, column: &mut ColumnDef) -> Result<()> {
        let name = ident(&column.name);
        for ColumnOptionDef { name: constraint, option } in std::mem::take(&mut column.options) {
            match option {
                ColumnOption::Null | ColumnOption::NotNull => {
                    column.options.push(ColumnOptionDef { name: constraint, option });
                }
                ColumnOption::Default(value) => self.defaults.push((name.clone(), value.to_string())),
                ColumnOption::Comment(text) => self.comments.push((name.clone(), text)),
                ColumnOption::PrimaryKey(_) => {
                    self.set_key(Key { name: constraint.as_ref().map(ident), columns: vec![name.clone()] })?;
                }
                ColumnOption::Check(check) => {
                    self.add_check(constraint.or(check.name).as_ref(), &check.expr);
                }
                other => return Err(not_enforced(&other.to_string())),
            }
        }
        Ok(())
    }

    fn add_constraint(&mut self, constraint: TableConstraint) -> Result<()> {
        match constraint {
            TableConstraint::PrimaryKey(key) => {
                let columns = key.columns.iter().map(key_column).collect::<Result<_>>()?;
                self.set_key(Key { name: key.name.as_ref().map(ident), columns })
            }
            TableConstraint::Check(check) => {
                self.add_check(check.name.as_ref(), &check.expr);
                Ok(())
            }
            other => Err(not_enforced(&other.to_string())),
        }
    }

    fn set_key(&mut self, key: Key) -> Result<()> {
        if self.primary_key.is_some() {
            return Err(Error::invalid("a table has one primary key, not two")
                .with_hint("name all of its columns in one `PRIMARY KEY (…)`"));
        }
        self.primary_key = Some(key);
        Ok(())
    }

    fn add_check(&mut self, name: Option<&ast::Ident>, expr: &SqlExpr) {
        let name = name.map_or_else(|| free_name(&self.checks), ident);
        self.checks.push(Check { name, sql: expr.to_string() });
    }

    fn definition(self, schema: &Schema, has_rows: bool, storage: Storage) -> Result<Definition> {
        let schema = Layout::default().schema(schema);
        let mut columns = Vec::with_capacity(schema.fields().len());
        let mut seen = HashSet::new();
        for field in schema.fields() {
            if !seen.insert(field.name().as_str()) {
                return Err(Error::invalid(format!("column `{}` is there twice", field.name()))
                    .with_hint("give the columns different names"));
            }
            check_column_name(field.name())?;
            let in_key = self.primary_key.as_ref().is_some_and(|key| key.columns.contains(field.name()));
            // The rows of a query decide nothing about rows to come.
            let nullable = !in_key && (field.is_nullable() || has_rows);
            let of = |list: &[(String, String)]| {
                list.iter().find(|(name, _)| name == field.name()).map(|(_, value)| value.clone())
            };
            let data_type = kept_type(storage, field.name(), field.data_type())?;
            columns.push(Column {
                field: Arc::new(Field::new(field.name(), data_type, nullable)),
                default: of(&self.defaults),
                comment: of(&self.comments),
            });
        }
        if columns.is_empty() {
            return Err(Error::invalid("a table needs at least one column"));
        }
        let Self { checks, primary_key, comment, .. } = self;
        let mut names = HashSet::new();
        if let Some(twice) = checks.iter().find(|check| !names.insert(check.name.as_str())) {
            return Err(Error::invalid(format!("constraint `{}` is there twice", twice.name))
                .with_hint("give the constraints different names"));
        }
        let definition = Definition { storage, columns, primary_key, checks, comment };
        let key = definition.primary_key.iter().flat_map(|key| &key.columns);
        match key.clone().find(|column| definition.position(column).is_none()) {
            Some(missing) => {
                Err(Error::invalid(format!("the primary key names a column `{missing}` that is not there")))
            }
            None => Ok(definition),
        }
    }
}

/// A name for a check that has none.
pub(crate) fn free_name(checks: &[Check]) -> String {
    let is_free = |name: &String| checks.iter().all(|check| check.name != *name);
    (1..).map(|number| format!("check_{number}")).find(is_free).unwrap_or_default()
}

/// Names that the queries need which find the rows of a change.
pub(crate) fn check_column_name(name: &str) -> Result<()> {
    if name.starts_with("__bowshot") {
        return Err(Error::invalid(format!("the column name `{name}` is reserved")));
    }
    Ok(())
}

/// A table with the columns of some rows.
pub(crate) fn of_rows(schema: &Schema, storage: Storage) -> Result<Definition> {
    Parts::default().definition(schema, true, storage)
}

fn key_column(column: &IndexColumn) -> Result<String> {
    match &column.column.expr {
        SqlExpr::Identifier(name) => Ok(ident(name)),
        other => Err(Error::invalid(format!("`{other}` is no column of a primary key"))),
    }
}

fn not_enforced(what: &str) -> Error {
    Error::unsupported(format!("`{what}` is not enforced, so it is refused"))
        .with_hint("tables have NOT NULL, DEFAULT, CHECK and PRIMARY KEY")
}

fn comment_text(comment: &ast::CommentDef) -> String {
    match comment {
        ast::CommentDef::WithEq(text) | ast::CommentDef::WithoutEq(text) => text.clone(),
    }
}

/// Defaults and checks must make sense before rows depend on them.
pub(crate) fn check_expressions(definition: &Definition, state: &SessionState) -> Result<()> {
    for column in &definition.columns {
        if let Some(default) = &column.default {
            let planned = defaults::parse(default, state).map_err(classify)?;
            if !planned.column_refs().is_empty() {
                return Err(Error::invalid(format!(
                    "the default of column `{}` names a column",
                    column.field.name()
                )));
            }
        }
    }
    for check in &definition.checks {
        super::fit::plan_check(&definition.schema(), check, state)?;
    }
    Ok(())
}

/// What a view is to be. Its query is planned once, so that one that cannot work is refused now.
pub(crate) async fn view(create: CreateView, names: &Names, visible: &Visible) -> Result<Write> {
    if create.materialized || create.to.is_some() || create.or_alter {
        return Err(
            Error::unsupported("only plain views can be created").with_hint("use `CREATE TABLE … AS`")
        );
    }
    let when_there = when_there(create.or_replace, create.if_not_exists)?;
    let name = names.new_name(&create.name, create.temporary)?;
    let sql = create.query.to_string();
    // What everybody sees is not made of the tables of one session.
    let state = if create.temporary { visible.state() } else { visible.without_own().state() };
    let query = Statement::Statement(Box::new(ast::Statement::Query(create.query)));
    let plan = state.statement_to_plan(query).await.map_err(classify)?;
    crate::enforce::check_readable(&plan)?;
    if !plan.get_parameter_fields().map_err(classify)?.is_empty() {
        return Err(Error::invalid("a view has no parameters").with_hint("write the values into its query"));
    }
    let columns: Vec<String> = create.columns.iter().map(|column| ident(&column.name)).collect();
    let made = plan.schema().fields().len();
    if !columns.is_empty() && columns.len() != made {
        return Err(Error::invalid(format!(
            "the view names {} columns, its query gives {made}",
            columns.len()
        )));
    }
    let view = View {
        id: Uuid::new_v4(),
        sql,
        default_catalog: names.default_catalog.clone(),
        default_schema: names.default_schema.clone(),
        columns,
        comment: create.comment,
    };
    Ok(Write::Ddl(Ddl::CreateView(NewView { name, view, when_there })))
}

/// The plan with other names of its columns.
pub(crate) fn renamed(plan: LogicalPlan, names: &[String]) -> datafusion::common::Result<LogicalPlan> {
    let columns = plan.schema().columns();
    let renamed: Vec<Expr> = columns
        .into_iter()
        .zip(names)
        .map(|(column, name)| Expr::Column(column).alias(name.clone()))
        .collect();
    LogicalPlanBuilder::from(plan).project(renamed)?.build()
}
