//! MERGE into a table in another database that has its rows in files. One query gives what becomes of each row of the table, and runs
//! over each file; another one gives the rows that are new, and runs over the whole table. Both are one plan.

use crate::catalog::Visible;
use crate::catalog::names::Names;
use crate::databases::row_lineage::is_hidden;
use crate::error::classify;
use crate::plan;
use crate::write::change::{self, ADDRESS};
use crate::write::external_database::definition;
use crate::write::external_rewrite::{
    DatabaseRewrite, IS_NEW, NEW, SOURCE_ROWS, become_rows, plain, with_plain_types,
};
use crate::write::merge::{self, ACT, PUT};
use crate::write::recognise::{Leading, Recognised};
use crate::write::{Write, external_database, not_in};
use bowshot_api::{Error, Reason, Result};
use bowshot_sql::read_query;
use bowshot_tables::EntryName;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::ScalarValue;
use datafusion::datasource::ViewTable;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, cast, lit};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    Merge, MergeClause, MergeClauseKind, ObjectName, Query, Statement, TableFactor,
};
use std::sync::Arc;

/// A MERGE of a table of another database; `None` for every other statement.
pub(super) async fn recognise(
    statement: &Statement,
    leading: &mut Leading,
    visible: &Visible,
    names: &Names,
) -> Result<Option<Recognised>> {
    let Statement::Merge(merge) = statement else { return Ok(None) };
    let (written, ..) = change::retarget_factor(&merge.table)?;
    let name = names.resolve(&written)?;
    if !names.parts.databases.has_definitions(&name.catalog) {
        return Ok(None);
    }
    Box::pin(planned(merge, (name, &written), leading.take_out(), (visible, names))).await.map(Some)
}

async fn planned(
    merge: &Merge,
    (name, written): (EntryName, &ObjectName),
    leading: Leading,
    (visible, names): (&Visible, &Names),
) -> Result<Recognised> {
    // Which columns there are shows in what is wrong with a statement.
    names.access.check_merged(&name)?;
    let table = external_database::rewritable(&name, names).await?;
    let table = with_plain_types(table, |_| true).map_err(classify)?;
    let schema = table.schema();
    let seen = Arc::new(definition(schema.fields().iter().filter(|field| !is_hidden(field.name()))));
    let rewrite = DatabaseRewrite { name, touched: merge::touched(merge, &seen)? };
    rewrite.check(&names.access)?;
    names.parts.databases.check_writable(&rewrite.name.catalog)?;
    if let Some(column) = rewrite.touched.updates.iter().flatten().find(|column| is_hidden(column)) {
        return Err(Error::not_found(format!("`{}` has no column `{column}`", rewrite.name))
            .with_reason(Reason::UndefinedColumn));
    }
    if merge.output.is_some() {
        return Err(Error::unsupported(format!(
            "MERGE into `{}`, which is in another database, returns no rows",
            rewrite.name
        ))
        .with_hint("leave RETURNING out, and read the rows afterwards"));
    }
    let is_of_new = |kind: &MergeClauseKind| {
        matches!(kind, MergeClauseKind::NotMatched | MergeClauseKind::NotMatchedByTarget)
    };
    let (of_new, of_old): (Vec<MergeClause>, Vec<MergeClause>) =
        merge.clauses.iter().cloned().partition(|clause| is_of_new(&clause.clause_kind));
    let merge = with_named_source(merge)?;
    let [of_new, of_old] = [of_new, of_old].map(|clauses| Merge { clauses, ..merge.clone() });
    let mut plans = Vec::with_capacity(2);
    if !of_old.clauses.is_empty() {
        let mut query = merge::row_changes(&of_old, &definition(schema.fields().iter()), NEW)?;
        leading.clone().before(&mut query, written)?;
        // Which row of a file it is, counts: another run may number them otherwise.
        let visible = addressed(Arc::clone(&table), "row_number() OVER ()", visible).await?;
        let rows = logical(query, &visible).await?;
        let updated = rewrite.touched.updates.clone().unwrap_or_default();
        plans.push(become_rows(rows, &schema, &updated).map_err(classify)?);
    }
    if !of_new.clauses.is_empty() {
        let (_, mut query) = merge::merge(&of_new, |_| Ok(seen))?;
        leading.before(&mut query, written)?;
        let visible = addressed(table, "1", visible).await?;
        plans.push(added(logical(query, &visible).await?, &schema).map_err(classify)?);
    }
    let both = plans.into_iter().try_fold(None, |both: Option<LogicalPlan>, plan| match both {
        Some(first) => LogicalPlanBuilder::from(first).union(plan)?.build().map(Some),
        None => Ok(Some(plan)),
    });
    let rows = both.map_err(classify)?.ok_or_else(|| Error::invalid("MERGE has no WHEN clause"))?;
    plan::allowed::check_size(&rows)?;
    merge::check_stable(&rows)?;
    let rows = bowshot_types::casts::settled(rows, visible.state().config_options()).map_err(classify)?;
    Ok(Recognised::Write(Box::new(Write::DatabaseRewrite(rewrite)), rows))
}

/// The same with the source under a name by which its rows are found in the plan, and computed once for all files. One without a name
/// stays as it is.
fn with_named_source(merge: &Merge) -> Result<Merge> {
    let named = match &merge.source {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            Some(&alias.name)
        }
        TableFactor::Table { name, alias: None, .. } => match name.0.as_slice() {
            [only] => only.as_ident(),
            _ => None,
        },
        _ => None,
    };
    let Some(name) = named else { return Ok(merge.clone()) };
    let source = &merge.source;
    let mut query = read_query(&format!(
        "SELECT 1 FROM (SELECT * FROM (SELECT * FROM {source}) AS \"{SOURCE_ROWS}\") AS {name}"
    ))?;
    let relation = change::select_of(&mut query)?.from.pop().map(|table| table.relation);
    let source = relation.ok_or_else(|| Error::internal("a source of MERGE was parsed as something else"))?;
    Ok(Merge { source, ..merge.clone() })
}

/// The same with a table to be changed whose rows have addresses.
async fn addressed(table: Arc<dyn TableProvider>, address: &str, visible: &Visible) -> Result<Visible> {
    let query = read_query(&format!("SELECT {address} AS \"{ADDRESS}\", * FROM {}", change::target_name()))?;
    let rows = logical(query, &visible.with_target(table)).await?;
    Ok(visible.with_target(Arc::new(ViewTable::new(rows, None))))
}

async fn logical(query: Box<Query>, visible: &Visible) -> Result<LogicalPlan> {
    let mut statement = Statement::Query(query);
    not_in::aware(&mut statement)?;
    let statement = Parsed::Statement(Box::new(statement));
    plan::logical(&visible.state(), statement).await.map_err(classify)
}

/// The rows that are new, beside which [`become_rows`] has the others.
fn added(plan: LogicalPlan, schema: &SchemaRef) -> datafusion::error::Result<LogicalPlan> {
    let mut columns = vec![lit(true).alias(IS_NEW), lit(PUT).alias(ACT)];
    for field in schema.fields() {
        let value = if is_hidden(field.name()) { lit(ScalarValue::Null) } else { plain(field.name()) };
        columns.push(cast(value, field.data_type().clone()).alias(field.name()));
    }
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}
