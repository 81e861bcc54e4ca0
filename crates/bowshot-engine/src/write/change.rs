//! UPDATE and DELETE as the queries that find the rows and give what they become.

use crate::catalog::defaults;
use crate::catalog::names::{self, ident};
use crate::write::{tuple_assignment, values};
use bowshot_api::catalog_names::{CHANGE_SCHEMA, TARGET};
use bowshot_api::{Error, Reason, Result};
use bowshot_sql::{read_expression, read_query};
use bowshot_tables::{Column, Definition, Identity};
use bowshot_types::storage_type;
use datafusion::arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{
    Assignment, CreateTable, Delete, Expr, FromTable, Ident, JoinOperator, ObjectName, Query, Select,
    SelectItem, SetExpr, Statement, TableAlias, TableFactor, TableWithJoins, Update, UpdateTableFromKind,
    Value,
};
use std::collections::BTreeSet;

/// Name of the column with the address of a row.
pub(crate) const ADDRESS: &str = "__bowshot_address";

/// What the names of columns with the values that rows had before begin with.
pub(crate) const FORMER: &str = "__bowshot_former_";

/// A statement that changes rows, as a query.
pub(crate) struct Changed {
    /// The table.
    pub(crate) name: ObjectName,
    /// What the statement calls it.
    pub(crate) alias: Ident,
    /// Finds the rows.
    pub(crate) query: Box<Query>,
}

/// The rows that a DELETE takes out: their addresses.
///
/// With RETURNING their columns come too.
pub(crate) fn delete(
    delete: &Delete,
    definition: impl FnOnce(&ObjectName) -> Result<std::sync::Arc<Definition>>,
) -> Result<Changed> {
    if delete.output.is_some() {
        return Err(no_output());
    }
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
    let [target] = from.as_slice() else {
        return Err(
            Error::unsupported("DELETE takes rows out of one table").with_hint("name the others with USING")
        );
    };
    let of_some = !delete.order_by.is_empty() || delete.limit.is_some();
    if of_some && (delete.using.is_some() || !target.joins.is_empty()) {
        return Err(of_one_table_alone("DELETE"));
    }
    let (name, target, alias) = match delete.tables.as_slice() {
        [] => retarget(target)?,
        [named] => retarget_named(target, named)?,
        _ => {
            return Err(Error::unsupported("DELETE takes rows out of one table")
                .with_hint("send one statement for each table"));
        }
    };
    let mut columns = vec![SelectItem::UnnamedExpr(column(&alias, ADDRESS))];
    if delete.returning.is_some() {
        let definition = definition(&name)?;
        let all = definition.columns.iter().map(|there| column(&alias, there.field.name()));
        columns.extend(all.map(SelectItem::UnnamedExpr));
    }
    let mut query = template()?;
    query.order_by = order(&delete.order_by)?;
    query.limit_clause = limit(delete.limit.as_ref())?;
    let select = select_of(&mut query)?;
    select.projection = columns;
    select.from = std::iter::once(target).chain(delete.using.iter().flatten().cloned()).collect();
    select.selection.clone_from(&delete.selection);
    Ok(Changed { name, alias, query })
}

/// The rows that an UPDATE changes: their addresses and what their columns become. Columns that are not `seen`, and nothing is
/// assigned to, are left out.
pub(crate) fn update(
    update: &Update,
    definition: impl FnOnce(&ObjectName) -> Result<(std::sync::Arc<Definition>, Option<BTreeSet<String>>)>,
) -> Result<Changed> {
    if update.output.is_some() {
        return Err(no_output());
    }
    if update.or.is_some() {
        return Err(Error::unsupported("UPDATE has no OR").with_hint("name the rows with WHERE"));
    }
    let of_some = !update.order_by.is_empty() || update.limit.is_some();
    if of_some && (update.from.is_some() || !update.table.joins.is_empty()) {
        return Err(of_one_table_alone("UPDATE"));
    }
    let (name, target, alias) = retarget(&update.table)?;
    let (definition, seen) = definition(&name)?;
    let values = assigned(&update.assignments, &alias, &definition)?;
    let others = match &update.from {
        None => Vec::new(),
        Some(UpdateTableFromKind::BeforeSet(tables) | UpdateTableFromKind::AfterSet(tables)) => {
            tables.clone()
        }
    };
    let mut query = template()?;
    let select = select_of(&mut query)?;
    select.projection = vec![SelectItem::UnnamedExpr(column(&alias, ADDRESS))];
    for (field, value) in definition.columns.iter().zip(values) {
        let name = field.field.name();
        if value.is_none() && seen.as_ref().is_some_and(|seen| !seen.contains(name)) {
            continue;
        }
        let expr = value.unwrap_or_else(|| column(&alias, name));
        select.projection.push(SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) });
    }
    select.selection =
        if of_some { Some(among_first(update, &target, &alias)?) } else { update.selection.clone() };
    select.from = std::iter::once(target).chain(others).collect();
    Ok(Changed { name, alias, query })
}

/// A row that meets several of other tables would count as often.
fn of_one_table_alone(statement: &str) -> Error {
    Error::unsupported(format!("{statement} has ORDER BY and LIMIT for one table alone"))
        .with_hint("name the rows with WHERE … IN (SELECT … ORDER BY … LIMIT n)")
}

/// Lets a query give what these columns were, too, so that rows which become no others can be told apart.
pub(crate) fn with_former(query: &mut Query, columns: &BTreeSet<String>, alias: &Ident) -> Result<()> {
    let former = columns.iter().map(|name| SelectItem::ExprWithAlias {
        expr: column(alias, name),
        alias: Ident::with_quote('"', format!("{FORMER}{name}")),
    });
    select_of(query)?.projection.extend(former);
    Ok(())
}

/// Whether a row is one of those that ORDER BY and LIMIT choose. They see what the row was, so they are in a query of their own:
/// the columns beside them are what it becomes.
fn among_first(update: &Update, target: &TableWithJoins, alias: &Ident) -> Result<Expr> {
    let mut query = template()?;
    query.order_by = order(&update.order_by)?;
    query.limit_clause = limit(update.limit.as_ref())?;
    let select = select_of(&mut query)?;
    select.projection = vec![SelectItem::UnnamedExpr(column(alias, ADDRESS))];
    select.from = vec![target.clone()];
    select.selection.clone_from(&update.selection);
    Ok(Expr::InSubquery { expr: Box::new(column(alias, ADDRESS)), subquery: query, negated: false })
}

/// For each column of the table what is assigned to it.
pub(crate) fn assigned(
    assignments: &[Assignment],
    table: &Ident,
    definition: &Definition,
) -> Result<Vec<Option<Expr>>> {
    let mut values = vec![None; definition.columns.len()];
    for (target, value) in tuple_assignment::split(assignments)? {
        let target = &target;
        let name = ident(&names::last(target)?);
        check_qualifier(target, table)?;
        let position = definition.position(&name).ok_or_else(|| no_column(&name, definition))?;
        let column = definition.columns.get(position);
        let default = column.and_then(|column| defaults::of(definition, column));
        check_settable(definition, &name, &value)?;
        let value = value_or_default(&value, default.as_deref())?;
        let value = match column {
            Some(column) if needs_cast(&value, column) => values::cast(value, column)?,
            _ => value,
        };
        if let Some(slot) = values.get_mut(position)
            && slot.replace(value).is_some()
        {
            return Err(Error::invalid(format!("column `{name}` is assigned twice"))
                .with_reason(Reason::DuplicateColumn));
        }
    }
    Ok(values)
}

/// Whether a value that is written out is another one in SQL than Arrow's cast to the type of the column makes of it.
fn needs_cast(value: &Expr, column: &Column) -> bool {
    let of = storage_type::logical(&column.field);
    match value {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => of == DataType::Binary && text.contains('\\'),
            _ => false,
        },
        Expr::Array(_) => of == DataType::Utf8,
        _ => false,
    }
}

/// The columns that something is assigned to, whether they are there or not.
pub(crate) fn assigned_names(assignments: &[Assignment]) -> Result<BTreeSet<String>> {
    tuple_assignment::split(assignments)?.iter().map(|(target, _)| Ok(ident(&names::last(target)?))).collect()
}

/// A column that is computed, or always numbers itself, takes no other value than that.
pub(crate) fn check_settable(definition: &Definition, column: &str, value: &Expr) -> Result<()> {
    let computed = definition.generated(column).is_some();
    let numbered = definition.identity(column).is_some_and(Identity::is_always);
    if is_default(value) || !(computed || numbered) {
        return Ok(());
    }
    let reason = if computed { "it is a generated column" } else { "it is GENERATED ALWAYS AS IDENTITY" };
    Err(Error::invalid(format!("column `{column}` can only be set to DEFAULT: {reason}"))
        .with_reason(Reason::GeneratedAlways)
        .with_hint("leave the column out"))
}

/// `SET other.x = 1` changes no column of this table.
fn check_qualifier(target: &ObjectName, table: &Ident) -> Result<()> {
    let [.., qualifier, _] = target.0.as_slice() else { return Ok(()) };
    if qualifier.as_ident().is_some_and(|qualifier| ident(qualifier) == ident(table)) {
        return Ok(());
    }
    Err(Error::invalid(format!("`{target}` is no column of the changed table"))
        .with_reason(Reason::UndefinedColumn)
        .with_hint(format!("name its columns alone, or as `{table}.column`")))
}

/// `DEFAULT` in the place of a value is the default of the column.
pub(crate) fn value_or_default(value: &Expr, default: Option<&str>) -> Result<Expr> {
    if is_default(value) { read_expression(default.unwrap_or("NULL")) } else { Ok(value.clone()) }
}

/// Whether a value is the word `DEFAULT`, which the parser takes for a column.
pub(crate) fn is_default(value: &Expr) -> bool {
    matches!(value, Expr::Identifier(name)
        if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"))
}

pub(crate) fn no_column(name: &str, definition: &Definition) -> Error {
    let there: Vec<&str> = definition.columns.iter().map(|column| column.field.name().as_str()).collect();
    Error::not_found(format!("column `{name}` not found"))
        .with_reason(Reason::UndefinedColumn)
        .with_hint(format!("the table has {}", there.join(", ")))
}

pub(crate) fn no_output() -> Error {
    Error::unsupported("OUTPUT is not supported").with_hint("write `RETURNING columns` at the end")
}

/// The target with its addresses in the place of the table, under the name that the statement calls it by. The rows of
/// what is joined to it only say which rows are meant, so they must not be there without one of its own.
fn retarget(table: &TableWithJoins) -> Result<(ObjectName, TableWithJoins, Ident)> {
    check_joins(table)?;
    let (name, relation, alias) = retarget_factor(&table.relation)?;
    Ok((name, TableWithJoins { relation, joins: table.joins.clone() }, alias))
}

/// The name of the table that an UPDATE changes.
pub(crate) fn target(table: &TableWithJoins) -> Result<ObjectName> {
    Ok(retarget(table)?.0)
}

/// `DELETE t FROM t JOIN u`: the target is one of the joined tables.
fn retarget_named(
    tables: &TableWithJoins,
    named: &ObjectName,
) -> Result<(ObjectName, TableWithJoins, Ident)> {
    check_joins(tables)?;
    let wanted = ident(&names::last(named)?);
    let mut changed = tables.clone();
    let factors = std::iter::once(&mut changed.relation);
    for factor in factors.chain(changed.joins.iter_mut().map(|join| &mut join.relation)) {
        let Ok((name, target, alias)) = retarget_factor(factor) else { continue };
        if ident(&alias) == wanted {
            *factor = target;
            return Ok((name, changed, alias));
        }
    }
    Err(Error::not_found(format!("`{named}` is none of the tables that rows are taken out of"))
        .with_reason(Reason::UndefinedTable))
}

fn check_joins(table: &TableWithJoins) -> Result<()> {
    let outer = table.joins.iter().enumerate().find(|(_, join)| {
        !matches!(
            join.join_operator,
            JoinOperator::Join(_)
                | JoinOperator::Inner(_)
                | JoinOperator::CrossJoin(_)
                | JoinOperator::Left(_)
                | JoinOperator::LeftOuter(_)
        )
    });
    match outer {
        None => Ok(()),
        Some(_) => Err(Error::unsupported("such a join cannot be changed")
            .with_hint("put the changed table first, and use JOIN or LEFT JOIN")),
    }
}

/// See [`retarget`].
pub(crate) fn retarget_factor(table: &TableFactor) -> Result<(ObjectName, TableFactor, Ident)> {
    let TableFactor::Table { name, alias, args: None, .. } = table else {
        return Err(Error::unsupported(format!("`{table}` is no table whose rows can be changed")));
    };
    let alias = match alias {
        Some(alias) => alias.name.clone(),
        None => names::last(name)?,
    };
    let mut changed = table.clone();
    if let TableFactor::Table { name, alias: place, .. } = &mut changed {
        *name = target_name();
        *place = Some(TableAlias { name: alias.clone(), ..alias_template()? });
    }
    Ok((name.clone(), changed, alias))
}

/// What the changed table is called in the query that a statement becomes.
pub(crate) fn target_name() -> ObjectName {
    ObjectName::from(vec![Ident::with_quote('"', CHANGE_SCHEMA), Ident::with_quote('"', TARGET)])
}

fn alias_template() -> Result<TableAlias> {
    let mut query = read_query("SELECT 1 FROM t AS t")?;
    let select = select_of(&mut query)?;
    match select.from.pop().map(|table| table.relation) {
        Some(TableFactor::Table { alias: Some(alias), .. }) => Ok(alias),
        _ => Err(Error::internal("a table with an alias was parsed as something else")),
    }
}

pub(crate) fn column(table: &Ident, name: &str) -> Expr {
    Expr::CompoundIdentifier(vec![table.clone(), Ident::with_quote('"', name)])
}

/// Fails for a name that the text of a query would not have as it is: the parser leaves quotes alone that look as if they were
/// escaped, and what follows them would be read as SQL.
pub(crate) fn check_names(definition: &Definition) -> Result<()> {
    let is_as_written =
        |name: &str| Ident::with_quote('"', name).to_string() == format!("\"{}\"", name.replace('"', "\"\""));
    let mut names = definition.columns.iter().map(|column| column.field.name());
    match names.find(|name| !is_as_written(name)) {
        None => Ok(()),
        Some(name) => {
            Err(Error::unsupported(format!("MERGE and ON CONFLICT do not support the column name `{name}`"))
                .with_hint("rename the column: leave out quotes behind a backslash or another quote"))
        }
    }
}

/// A query to be filled in.
pub(crate) fn template() -> Result<Box<Query>> {
    read_query("SELECT 1 FROM t")
}

/// A table to be filled in.
pub(crate) fn parse_create(sql: &str) -> Result<CreateTable> {
    match bowshot_sql::read_statement(sql)? {
        Statement::CreateTable(create) => Ok(create),
        _ => Err(Error::internal(format!("`{sql}` makes no table"))),
    }
}

pub(crate) fn select_of(query: &mut Query) -> Result<&mut Select> {
    match query.body.as_mut() {
        SetExpr::Select(select) => Ok(select),
        _ => Err(Error::internal("a template was parsed as something else")),
    }
}

fn order(
    order: &[datafusion::sql::sqlparser::ast::OrderByExpr],
) -> Result<Option<datafusion::sql::sqlparser::ast::OrderBy>> {
    if order.is_empty() {
        return Ok(None);
    }
    let text = order.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    Ok(read_query(&format!("SELECT 1 FROM t ORDER BY {text}"))?.order_by)
}

fn limit(limit: Option<&Expr>) -> Result<Option<datafusion::sql::sqlparser::ast::LimitClause>> {
    match limit {
        None => Ok(None),
        Some(limit) => Ok(read_query(&format!("SELECT 1 FROM t LIMIT {limit}"))?.limit_clause),
    }
}
