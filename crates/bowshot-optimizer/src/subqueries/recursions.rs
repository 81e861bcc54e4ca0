//! The dependent join over recursive queries: one recursion for all combinations of the values, which its rows carry from step to
//! step.

use super::correlation_values::Domain;
use super::dependent::Dependent;
use super::plans;
use datafusion::arrow::datatypes::Schema;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column, Result, not_impl_err};
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, RecursiveQuery, TableScan};
use std::sync::Arc;

pub(super) fn dependent(of: &Dependent<'_>, node: RecursiveQuery) -> Result<LogicalPlan> {
    let columns = node.static_term.schema().columns();
    let first = carrying(of.input(node.static_term)?, columns, of.domain)?;
    let fields = first.schema().fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    let rows = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let domain = of.domain.within_recursion(&node.name, rows);
    let columns = node.recursive_term.schema().columns();
    let next = Dependent { domain: &domain, names: of.names }.input(node.recursive_term)?;
    let next = carrying(next, columns, of.domain)?;
    check_steps(&next, &domain)?;
    let query = RecursiveQuery::try_new(node.name, Arc::new(first), Arc::new(next), node.is_distinct)?;
    let query = LogicalPlan::RecursiveQuery(query);
    let names = node.schema.columns().into_iter().chain(of.domain.columns.iter().cloned());
    let columns = query.schema().columns().into_iter().map(Expr::Column);
    let exprs = columns.zip(names).map(|(expr, name)| plans::named(expr, name.relation, &name.name));
    let exprs = exprs.collect();
    plans::project(query, exprs)
}

/// The columns of a term, then those of the domain.
fn carrying(rows: LogicalPlan, columns: Vec<Column>, domain: &Domain) -> Result<LogicalPlan> {
    plans::project(rows, columns.into_iter().map(Expr::Column).chain(domain.exprs()).collect())
}

/// The rows of the step before, with the values that they carry.
pub(super) fn step_before(of: &Dependent<'_>, node: &TableScan) -> Result<LogicalPlan> {
    let Some(rows) = of.domain.carried_by(node).filter(|_| node.projection.is_none()) else {
        return not_impl_err!("a table that refers to columns outside is not supported");
    };
    let name = &node.table_name;
    let source = provider_as_source(Arc::new(CteWorkTable::new(name.table(), Arc::clone(rows))));
    let scan = LogicalPlanBuilder::scan(name.clone(), source, None)?.build()?;
    let columns = node.projected_schema.columns().into_iter().map(Expr::Column);
    let values = of.domain.columns.iter().map(|column| {
        let carried = Expr::Column(Column::new(Some(name.clone()), column.name.as_str()));
        plans::named(carried, column.relation.clone(), &column.name)
    });
    plans::project(scan, columns.chain(values).collect())
}

/// Fails where a subquery that has stayed one reads the rows of the step before.
fn check_steps(step: &LogicalPlan, domain: &Domain) -> Result<()> {
    let mut is_stale = false;
    step.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(rows) = domain.carried_by(scan)
        {
            is_stale |= scan.source.schema().fields().len() != rows.fields().len();
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    if is_stale {
        return not_impl_err!(
            "a subquery over the rows of a recursion that refers to columns outside is not supported"
        );
    }
    Ok(())
}
