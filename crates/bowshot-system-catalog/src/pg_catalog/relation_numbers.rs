//! `relname = 't'` says which numbers relations have. The optimiser takes a condition on numbers over to what is joined by them, so
//! that a query for the columns of one table makes no rows for those of all others.

use crate::lazy_table::LazyTable;
use crate::pg_catalog::classes;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Filter, LogicalPlan, Operator, TableScan, lit};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// Relations up to which their numbers are written out.
const MOST: usize = 100;

/// Adds `oid IN (…)` beside conditions that name relations of `pg_class`. Has to stand before conditions are pushed down.
#[derive(Debug)]
pub struct RelationNumbers;

impl OptimizerRule for RelationNumbers {
    fn name(&self) -> &'static str {
        "relation_numbers"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(filter) = &plan else { return Ok(Transformed::no(plan)) };
        match numbers_of_named(filter) {
            Some(numbers) => {
                let predicate = filter.predicate.clone().and(numbers);
                let filter = Filter::try_new(predicate, Arc::clone(&filter.input))?;
                Ok(Transformed::yes(LogicalPlan::Filter(filter)))
            }
            None => Ok(Transformed::no(plan)),
        }
    }
}

fn numbers_of_named(filter: &Filter) -> Option<Expr> {
    let conditions = split_conjunction(&filter.predicate);
    conditions.iter().find_map(|named| numbers(named, &conditions, &filter.input))
}

/// The condition on numbers that follows from one of the conditions, if there is none yet.
fn numbers(named: &Expr, conditions: &[&Expr], input: &LogicalPlan) -> Option<Expr> {
    let (column, names) = equal_texts(named).filter(|(column, _)| column.name == "relname")?;
    let oid = Column::new(column.relation.clone(), "oid");
    let is_there = |condition: &&Expr| {
        let columns = condition.column_refs();
        let compares = matches!(condition, Expr::InList(_) | Expr::BinaryExpr(_));
        compares && columns.len() == 1 && columns.contains(&oid)
    };
    if !input.schema().has_column(&oid) || conditions.iter().any(is_there) {
        return None;
    }
    let provider = source_as_provider(&scan(input, column)?.source).ok()?;
    let table = provider.downcast_ref::<LazyTable>().filter(|table| table.is("pg_class"))?;
    let found = classes::numbers(table.visible(), &names);
    // What nothing is called stays as it is: there is nothing to be saved by a list without numbers.
    let is_short = !found.is_empty() && found.len() <= MOST;
    is_short.then(|| Expr::Column(oid).in_list(found.into_iter().map(lit).collect(), false))
}

/// A column, and the texts of which it has one.
fn equal_texts(condition: &Expr) -> Option<(&Column, Vec<&str>)> {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            match (left.as_ref(), right.as_ref()) {
                (Expr::Column(column), value) | (value, Expr::Column(column)) => {
                    Some((column, vec![written(value)?]))
                }
                _ => None,
            }
        }
        Expr::InList(InList { expr, list, negated: false }) => match expr.as_ref() {
            Expr::Column(column) => Some((column, list.iter().map(written).collect::<Option<_>>()?)),
            _ => None,
        },
        _ => None,
    }
}

fn written(value: &Expr) -> Option<&str> {
    match value {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        // Drivers write `'t'::VARCHAR`; constants are folded only after this rule.
        Expr::Cast(cast) if cast.field.data_type().is_string() && cast.field.metadata().is_empty() => {
            written(&cast.expr)
        }
        _ => None,
    }
}

/// The scan that a column of a plan comes from as it is.
fn scan<'p>(plan: &'p LogicalPlan, column: &Column) -> Option<&'p TableScan> {
    match plan {
        LogicalPlan::TableScan(found) if column.relation.as_ref() == Some(&found.table_name) => Some(found),
        LogicalPlan::SubqueryAlias(alias) if column.relation.as_ref() == Some(&alias.alias) => {
            match alias.input.as_ref() {
                LogicalPlan::TableScan(found) => Some(found),
                _ => None,
            }
        }
        LogicalPlan::Filter(filter) => scan(&filter.input, column),
        LogicalPlan::Join(join) => {
            let side = [&join.left, &join.right].into_iter().find(|side| side.schema().has_column(column))?;
            scan(side, column)
        }
        _ => None,
    }
}
