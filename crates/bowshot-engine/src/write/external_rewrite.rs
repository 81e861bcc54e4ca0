//! DELETE, UPDATE and TRUNCATE of a table in another database that has its rows in files. The statement is planned once, as a query
//! over the whole table that says of each row what happens to it and what its columns become. That query runs over each file: those
//! without such a row stay, the others are written again. MERGE is one more such query, beside which another gives rows that are new.

use crate::catalog::Visible;
use crate::catalog::names::{Names, ident, last};
use crate::databases::row_lineage::{self, LAST_CHANGE, ROW_PLACE};
use crate::error::classify;
use crate::plan;
use crate::write::merge::{ACT, PUT, TAKE};
use crate::write::recognise::{Leading, Recognised};
use crate::write::{Write, change, external_database, external_definition, merge, not_in, tuple_assignment};
use bowshot_api::catalog_names::{CHANGE_SCHEMA, TARGET};
use bowshot_api::{Error, ErrorKind, Reason, Result};
use bowshot_policy::Touched;
use bowshot_policy::access::{Access, Reading};
use bowshot_sql::read_expression;
use bowshot_tables::EntryName;
use datafusion::arrow::datatypes::{Field, FieldRef, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, ScalarValue, TableReference};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableScan, cast, lit, when};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    self, Assignment, Expr as SqlExpr, FromTable, Ident, ObjectName, SelectItem, Statement, TableFactor,
    TableWithJoins,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The column that says whether a row is none of the table yet. Beside it [`ACT`] says what happens to a row, if anything does.
pub(super) const IS_NEW: &str = "__bowshot_is_new";
/// What the names of columns begin with that have new values.
pub(super) const NEW: &str = "__bowshot_new_";
/// What the source of a MERGE is called in its plan, which reads it more than once.
pub(super) const SOURCE_ROWS: &str = "__bowshot_source_rows";

/// Rows of this table are changed, and others may be added.
#[derive(Debug, Clone)]
pub(crate) struct DatabaseRewrite {
    pub(crate) name: EntryName,
    pub(crate) touched: Touched,
}

/// A statement that changes rows.
struct Meant<'s> {
    name: EntryName,
    written: ObjectName,
    factor: TableFactor,
    selection: Option<&'s SqlExpr>,
    assignments: Option<&'s [Assignment]>,
    /// Whether it asks for nothing else.
    is_plain: bool,
}

/// A change of another database; `None` for every other statement.
pub(super) async fn recognise(
    statement: &Statement,
    leading: &mut Leading,
    visible: &Visible,
    names: &Names,
) -> Result<Option<Recognised>> {
    if let Some(defined) = external_definition::recognise(statement, visible, names).await? {
        return Ok(Some(defined));
    }
    match meant(statement, names)? {
        Some(meant) => Box::pin(planned(meant, leading.take_out(), visible, names)).await.map(Some),
        None => Ok(None),
    }
}

impl DatabaseRewrite {
    /// Whether the caller may change rows, and sees all of them as they are: files are written again as they are seen.
    ///
    /// # Errors
    /// `Denied`; `NotFound` for what the caller may not know.
    pub(crate) fn check(&self, access: &Access) -> Result<()> {
        access.check_touched(&self.name, &self.touched)?;
        access.check_rows(&self.name, &[])?;
        match access.reading(&self.name) {
            Reading::All => Ok(()),
            _ => Err(Error::unsupported(format!(
                "`{}` sees a part of `{}`, and files of another database are written again as they are seen",
                access.user(),
                self.name
            ))
            .with_hint("let somebody who sees all of the table change it")),
        }
    }

    /// Whether rows that are there become others, or go.
    pub(crate) fn changes_rows(&self) -> bool {
        self.touched.deletes || self.touched.updates.is_some()
    }
}

/// `None` for a statement about another table.
fn meant<'s>(statement: &'s Statement, names: &Names) -> Result<Option<Meant<'s>>> {
    let (table, selection, assignments, is_plain) = match statement {
        Statement::Delete(delete) => {
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
            let [table] = from.as_slice() else { return Ok(None) };
            let is_plain = delete.tables.is_empty()
                && delete.using.is_none()
                && delete.returning.is_none()
                && delete.output.is_none()
                && delete.order_by.is_empty()
                && delete.limit.is_none();
            (table, delete.selection.as_ref(), None, is_plain)
        }
        Statement::Update(update) => {
            let is_plain = update.from.is_none()
                && update.returning.is_none()
                && update.output.is_none()
                && update.or.is_none()
                && update.order_by.is_empty()
                && update.limit.is_none();
            (&update.table, update.selection.as_ref(), Some(update.assignments.as_slice()), is_plain)
        }
        Statement::Truncate(truncate) => return truncated(truncate, names),
        _ => return Ok(None),
    };
    let TableFactor::Table { name: written, args: None, .. } = &table.relation else { return Ok(None) };
    let name = names.resolve(written)?;
    if !names.parts.databases.has_definitions(&name.catalog) {
        return Ok(None);
    }
    let (written, factor) = (written.clone(), table.relation.clone());
    let is_plain = is_plain && table.joins.is_empty();
    Ok(Some(Meant { name, written, factor, selection, assignments, is_plain }))
}

/// TRUNCATE takes out what DELETE without a condition does.
fn truncated<'s>(truncate: &ast::Truncate, names: &Names) -> Result<Option<Meant<'s>>> {
    for table in &truncate.table_names {
        let name = names.resolve(&table.name)?;
        if names.parts.databases.has_definitions(&name.catalog) {
            let mut query = change::template()?;
            let relation = change::select_of(&mut query)?.from.pop().map(|table| table.relation);
            let mut factor = relation.ok_or_else(|| Error::internal("a template has no table"))?;
            if let TableFactor::Table { name, .. } = &mut factor {
                name.clone_from(&table.name);
            }
            let is_plain =
                truncate.table_names.len() == 1 && truncate.partitions.is_none() && !truncate.if_exists;
            let written = table.name.clone();
            let meant = Meant { name, written, factor, selection: None, assignments: None, is_plain };
            return Ok(Some(meant));
        }
    }
    Ok(None)
}

async fn planned(meant: Meant<'_>, leading: Leading, visible: &Visible, names: &Names) -> Result<Recognised> {
    let Meant { name, written, factor, selection, assignments, is_plain } = meant;
    let touched = match assignments {
        Some(assignments) => Touched::updating(change::assigned_names(assignments)?),
        None => Touched { deletes: true, ..Touched::default() },
    };
    let act = if touched.deletes { TAKE } else { PUT };
    let rewrite = DatabaseRewrite { name, touched };
    rewrite.check(&names.access)?;
    names.parts.databases.check_writable(&rewrite.name.catalog)?;
    if !is_plain {
        return Err(Error::unsupported(format!(
            "rows of `{}`, which is in another database, are changed by themselves alone",
            rewrite.name
        ))
        .with_hint("name them with WHERE, without USING, FROM, joins, RETURNING, ORDER BY and LIMIT"));
    }
    let table = external_database::rewritable(&rewrite.name, names).await?;
    let values = assigned(assignments.unwrap_or_default(), &table.schema(), &rewrite.name)?;
    let table = with_plain_types(table, |column| values.contains_key(column)).map_err(classify)?;
    let schema = table.schema();
    let (_, relation, alias) = change::retarget_factor(&factor)?;
    let is_meant = match selection {
        Some(condition) => SqlExpr::IsTrue(Box::new(SqlExpr::Nested(Box::new(condition.clone())))),
        None => read_expression("TRUE")?,
    };
    let mut query = change::template()?;
    let select = change::select_of(&mut query)?;
    select.projection = vec![named(where_meant(&is_meant, &read_expression(&act.to_string())?)?, ACT)];
    let all = schema.fields().iter().map(|field| field.name());
    select.projection.extend(all.map(|column| named(change::column(&alias, column), column)));
    for (column, value) in &values {
        select.projection.push(named(where_meant(&is_meant, value)?, &format!("{NEW}{column}")));
    }
    select.from = vec![TableWithJoins { relation, joins: Vec::new() }];
    leading.before(&mut query, &written)?;
    let mut statement = Statement::Query(query);
    not_in::aware(&mut statement)?;
    let state = visible.with_target(table).state();
    let plan = plan::logical(&state, Parsed::Statement(Box::new(statement))).await.map_err(classify)?;
    plan::allowed::check_size(&plan)?;
    merge::check_stable(&plan).map_err(|error| {
        error.with_message("rows of another database are not changed by functions like random(), that give another value each time")
    })?;
    let updated = values.into_keys().collect();
    let rows = become_rows(plan, &schema, &updated).map_err(classify)?;
    let rows = bowshot_types::casts::settled(rows, state.config_options()).map_err(classify)?;
    Ok(Recognised::Write(Box::new(Write::DatabaseRewrite(rewrite)), rows))
}

fn named(expr: SqlExpr, name: &str) -> SelectItem {
    SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) }
}

/// What is assigned to which column.
fn assigned(
    assignments: &[Assignment],
    schema: &SchemaRef,
    table: &EntryName,
) -> Result<BTreeMap<String, SqlExpr>> {
    let mut values = BTreeMap::new();
    for (target, value) in tuple_assignment::split(assignments)? {
        let column = ident(&last(&target)?);
        if schema.field_with_name(&column).is_err() || row_lineage::is_hidden(&column) {
            return Err(Error::not_found(format!("`{table}` has no column `{column}`"))
                .with_reason(Reason::UndefinedColumn));
        }
        let value = change::value_or_default(&value, None)?;
        if values.insert(column.clone(), value).is_some() {
            return Err(Error::invalid(format!("column `{column}` is assigned twice"))
                .with_reason(Reason::DuplicateColumn));
        }
    }
    Ok(values)
}

/// A value that is computed for the rows that are meant alone: what fails for another row is no fault.
fn where_meant(is_meant: &SqlExpr, value: &SqlExpr) -> Result<SqlExpr> {
    let mut case = read_expression("CASE WHEN TRUE THEN NULL END")?;
    let SqlExpr::Case { conditions, .. } = &mut case else {
        return Err(Error::internal("a template was parsed as something else"));
    };
    for when in conditions {
        when.condition.clone_from(is_meant);
        when.result.clone_from(value);
    }
    Ok(case)
}

/// What happens to each row of the table, and what its columns become.
pub(super) fn become_rows(
    plan: LogicalPlan,
    schema: &SchemaRef,
    updated: &BTreeSet<String>,
) -> datafusion::error::Result<LogicalPlan> {
    let mut columns = vec![lit(false).alias(IS_NEW), plain(ACT).alias(ACT)];
    for field in schema.fields() {
        let name = field.name();
        let new = match updated.contains(name) {
            true => Some(cast(plain(&format!("{NEW}{name}")), field.data_type().clone())),
            // That of the statement, whose number is not known yet.
            false => (name == LAST_CHANGE).then(|| lit(ScalarValue::Int64(None))),
        };
        columns.push(match new {
            Some(new) => when(plain(ACT).eq(lit(PUT)), new).otherwise(plain(name))?.alias(name),
            None => plain(name).alias(name),
        });
    }
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

/// The table with some columns in types whose nested fields have no numbers: values that are computed have none, and types that differ
/// in them are different ones. Who takes the rows casts them back.
pub(super) fn with_plain_types(
    table: Arc<dyn TableProvider>,
    is_meant: impl Fn(&str) -> bool,
) -> datafusion::error::Result<Arc<dyn TableProvider>> {
    let schema = table.schema();
    let is_cast = |field: &Field| field.data_type().is_nested() && is_meant(field.name());
    if !schema.fields().iter().any(|field| is_cast(field)) {
        return Ok(table);
    }
    let column = |field: &FieldRef| match is_cast(field) {
        true => {
            cast(plain(field.name()), external_database::plain_type(field.data_type())).alias(field.name())
        }
        false => plain(field.name()),
    };
    let columns: Vec<Expr> = schema.fields().iter().map(column).collect();
    let name = TableReference::partial(CHANGE_SCHEMA, TARGET);
    let rows = LogicalPlanBuilder::scan(name, provider_as_source(table), None)?.project(columns)?.build()?;
    Ok(Arc::new(ViewTable::new(rows, None)))
}

pub(super) fn plain(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

/// The query over one file in the place of the table.
///
/// # Errors
/// `Conflict` for a file whose table has other columns by now.
pub(crate) fn over_file(plan: &LogicalPlan, file: &Arc<dyn TableProvider>) -> Result<LogicalPlan> {
    let mut is_same = true;
    let replaced = plan.clone().transform_up(|node| match node {
        LogicalPlan::TableScan(scan)
            if scan.table_name.table() == TARGET && scan.table_name.schema() == Some(CHANGE_SCHEMA) =>
        {
            is_same &= scan.source.schema() == file.schema();
            let source = provider_as_source(Arc::clone(file));
            Ok(Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })))
        }
        other => Ok(Transformed::no(other)),
    });
    match is_same {
        true => replaced.data().map_err(classify),
        false => Err(Error::new(
            ErrorKind::Conflict,
            "the columns of the table have changed since the statement was planned",
        )
        .with_hint("run the statement again")),
    }
}

/// What gives the rows of the source, if the statement is a MERGE whose source has a name.
///
/// # Errors
/// None that is expected.
pub(crate) fn source_of(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let mut found = None;
    let looked_for = plan.apply(|node| match node {
        LogicalPlan::SubqueryAlias(alias) if alias.alias.table() == SOURCE_ROWS => {
            found = Some(alias.input.as_ref().clone());
            Ok(TreeNodeRecursion::Stop)
        }
        _ => Ok(TreeNodeRecursion::Continue),
    });
    looked_for.map_err(classify)?;
    Ok(found)
}

/// The query over the rows of a table in the place of the source.
///
/// # Errors
/// None that is expected.
pub(crate) fn over_source(plan: LogicalPlan, rows: &Arc<dyn TableProvider>) -> Result<LogicalPlan> {
    let replaced = plan.transform_down(|node| match node {
        LogicalPlan::SubqueryAlias(alias) if alias.alias.table() == SOURCE_ROWS => {
            let rows = provider_as_source(Arc::clone(rows));
            let scan = LogicalPlanBuilder::scan(alias.alias, rows, None)?.build()?;
            Ok(Transformed::new(scan, true, TreeNodeRecursion::Jump))
        }
        other => Ok(Transformed::no(other)),
    });
    replaced.data().map_err(classify)
}

/// What happens to the rows of a file that do not stay as they are.
///
/// # Errors
/// None that is expected.
pub(crate) fn acts(plan: LogicalPlan) -> Result<LogicalPlan> {
    acting(plan, ACT)
}

/// Their places in the file, of a table that has them: see [`ROW_PLACE`].
///
/// # Errors
/// When it has none.
pub(crate) fn acting_places(plan: LogicalPlan) -> Result<LogicalPlan> {
    acting(plan, ROW_PLACE)
}

fn acting(plan: LogicalPlan, column: &str) -> Result<LogicalPlan> {
    let found = LogicalPlanBuilder::from(plan)
        .filter(Expr::Not(Box::new(plain(IS_NEW))).and(plain(ACT).is_not_null()));
    let found = found.and_then(|found| found.project([plain(column)])?.build());
    found.map_err(classify)
}

/// The rows of a file that stay and become others, as they are then.
///
/// # Errors
/// None that is expected.
pub(crate) fn rows_put(plan: LogicalPlan) -> Result<LogicalPlan> {
    columns_where(plan, Expr::Not(Box::new(plain(IS_NEW))).and(plain(ACT).eq(lit(PUT))))
}

/// The rows that a file has afterwards.
///
/// # Errors
/// None that is expected.
pub(crate) fn rows_after(plan: LogicalPlan) -> Result<LogicalPlan> {
    let stays = plain(ACT).is_null().or(plain(ACT).not_eq(lit(TAKE)));
    columns_where(plan, Expr::Not(Box::new(plain(IS_NEW))).and(stays))
}

/// The rows that are added, of the query over the whole table.
///
/// # Errors
/// None that is expected.
pub(crate) fn new_rows(plan: LogicalPlan) -> Result<LogicalPlan> {
    columns_where(plan, plain(IS_NEW))
}

fn columns_where(plan: LogicalPlan, condition: Expr) -> Result<LogicalPlan> {
    let fields = plan.schema().fields().iter().map(|field| field.name().as_str());
    let columns: Vec<Expr> =
        fields.filter(|name| ![IS_NEW, ACT, ROW_PLACE].contains(name)).map(plain).collect();
    let rows = LogicalPlanBuilder::from(plan).filter(condition);
    rows.and_then(|rows| rows.project(columns)?.build()).map_err(classify)
}
