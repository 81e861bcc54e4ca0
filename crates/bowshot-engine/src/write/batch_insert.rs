//! Many rows of parameters for one INSERT, as one query: planning each row by itself takes longer than all the rest.

use crate::error::classify;
use crate::plan::parameters;
use crate::plan::planned_statement::Planned;
use crate::write::Write;
use bowshot_api::Result;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::MemTable;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Values, col};
use std::sync::Arc;

/// The query that gives the rows of `INSERT … VALUES (one row)` for all rows of parameters; `None` for statements that are
/// more than that, whose rows depend on one another.
pub(crate) fn all_at_once(
    write: &Write,
    planned: &Planned,
    rows: &[RecordBatch],
) -> Result<Option<LogicalPlan>> {
    // One row of values needs no query.
    let is_single = rows.iter().map(RecordBatch::num_rows).sum::<usize>() < 2;
    if is_single || !matches!(write, Write::Insert(_)) || !is_one_row(planned.plan())? {
        return Ok(None);
    }
    let rows = rows.iter().filter(|batch| batch.num_rows() > 0);
    let cast = rows.map(|batch| parameters::columns(planned.plan(), planned.parameters(), batch));
    let cast: Vec<RecordBatch> = cast.collect::<Result<_>>()?;
    let Some(schema) = cast.first().map(RecordBatch::schema) else { return Ok(None) };
    let table = Arc::new(MemTable::try_new(schema, vec![cast]).map_err(classify)?);
    let replaced = planned.plan().clone().transform_up(|node| match node {
        LogicalPlan::Values(values) => {
            let source = provider_as_source(Arc::clone(&table) as Arc<_>);
            let scan = LogicalPlanBuilder::scan("__bowshot_parameters", source, None)?;
            Ok(Transformed::yes(scan.project(in_place_of(values)?)?.build()?))
        }
        other => Ok(Transformed::no(other)),
    });
    replaced.data().map(Some).map_err(classify)
}

/// Whether the plan is projections over one row of values.
fn is_one_row(plan: &LogicalPlan) -> Result<bool> {
    let mut rows = None;
    let mut other = false;
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::Values(values) => rows = Some(values.values.len()),
            LogicalPlan::Projection(_) => {}
            _ => other = true,
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .map_err(classify)?;
    Ok(rows == Some(1) && !other)
}

/// The one row of values, its parameters read from the columns of the same names.
fn in_place_of(values: Values) -> datafusion::common::Result<Vec<Expr>> {
    let names = values.schema.columns();
    let row = values.values.into_iter().next().unwrap_or_default();
    let read = row.into_iter().zip(names).map(|(expr, name)| {
        let read = expr.transform(|expr| match expr {
            Expr::Placeholder(placeholder) => {
                let column = col(format!("\"{}\"", placeholder.id.replace('"', "\"\"")));
                Ok(Transformed::yes(column))
            }
            other => Ok(Transformed::no(other)),
        });
        Ok(read.data()?.alias(name.name))
    });
    read.collect()
}
