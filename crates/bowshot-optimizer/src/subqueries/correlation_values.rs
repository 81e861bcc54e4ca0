//! The values that a subquery takes from outside: each combination of them once.

use super::Names;
use super::plans::{self, Pairs};
use crate::expressions::any_expression;
use crate::materialized_cte::ComputedOnce;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result, TableReference, not_impl_err};
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Distinct, Expr, JoinType, LogicalPlan, TableScan};
use std::sync::Arc;

/// What a domain is called in plans.
const OUTER: &str = "__outer";
/// What its columns are called: otherwise than those of all others, since one may be made beside another one.
const COLUMN: &str = "__c";

/// The distinct values of some columns outside.
#[derive(Debug, Clone)]
pub(super) struct Domain {
    /// Gives them.
    pub(super) plan: LogicalPlan,
    /// Columns as the subquery refers to them, each with the one that stands for it.
    inward: Vec<(Column, Column)>,
    pub(super) columns: Vec<Column>,
    /// Recursions by their names, with the columns of their rows: those of the recursion, then those of the plan.
    recursions: Vec<(String, SchemaRef)>,
}

impl Domain {
    /// The values of these columns, which the subquery refers to, in the rows of a plan; with the pairs that find the values
    /// of a row again.
    pub(super) fn of(input: &LogicalPlan, references: &[Column], names: &Names) -> Result<(Self, Pairs)> {
        let (name, stem) = (names.next(OUTER), names.next(COLUMN));
        let relation = TableReference::bare(name.as_str());
        let (mut pairs, mut inward, mut exprs) = (Pairs::new(), Vec::new(), Vec::new());
        for reference in references {
            let outer = input.schema().qualified_field(input.schema().index_of_column(reference)?);
            let outer = Column::from(outer);
            if let Some((_, own)) = pairs.iter().find(|(column, _)| *column == outer) {
                inward.push((reference.clone(), own.clone()));
                continue;
            }
            let own = Column::new(Some(relation.clone()), format!("{stem}_{}", pairs.len() + 1));
            exprs.push(Expr::Column(outer.clone()).alias(own.name.as_str()));
            inward.push((reference.clone(), own.clone()));
            pairs.push((outer, own));
        }
        let values = plans::project(again(input.clone())?, exprs)?;
        let values = LogicalPlan::Distinct(Distinct::All(Arc::new(values)));
        let columns = pairs.iter().map(|(_, own)| own.clone()).collect();
        let plan = plans::alias(values, &name)?;
        Ok((Self { plan, inward, columns, recursions: Vec::new() }, pairs))
    }

    /// The rows of a plan as they are, for subqueries that take each by itself; with the pairs of old and new columns.
    pub(super) fn rows(input: LogicalPlan, references: &[Column], names: &Names) -> Result<(Self, Pairs)> {
        let (name, stem) = (names.next(OUTER), names.next(COLUMN));
        let relation = TableReference::bare(name.as_str());
        let mut pairs = Pairs::new();
        for outer in input.schema().columns() {
            let own = Column::new(Some(relation.clone()), format!("{stem}_{}", pairs.len() + 1));
            pairs.push((outer, own));
        }
        let mut inward = Vec::new();
        for reference in references {
            if let Some((_, own)) = pairs.get(input.schema().index_of_column(reference)?) {
                inward.push((reference.clone(), own.clone()));
            }
        }
        let exprs = pairs.iter().map(|(outer, own)| Expr::Column(outer.clone()).alias(own.name.as_str()));
        let plan = plans::alias(plans::project(input, exprs.collect())?, &name)?;
        let columns = pairs.iter().map(|(_, own)| own.clone()).collect();
        Ok((Self { plan, inward, columns, recursions: Vec::new() }, pairs))
    }

    /// The same values under another name, for the other side of a join, with the pairs that keep both together.
    pub(super) fn twin(&self, names: &Names) -> Result<(Self, Pairs)> {
        let name = names.next(OUTER);
        let relation = TableReference::bare(name.as_str());
        let other = |column: &Column| Column::new(Some(relation.clone()), column.name.as_str());
        let pairs: Pairs = self.columns.iter().map(|column| (column.clone(), other(column))).collect();
        let twin = Self {
            plan: plans::alias(self.plan.clone(), &name)?,
            inward: self.inward.iter().map(|(outer, own)| (outer.clone(), other(own))).collect(),
            columns: self.columns.iter().map(other).collect(),
            recursions: self.recursions.clone(),
        };
        Ok((twin, pairs))
    }

    pub(super) fn exprs(&self) -> Vec<Expr> {
        self.columns.iter().cloned().map(Expr::Column).collect()
    }

    fn own(&self, column: &Column) -> Option<&Column> {
        self.inward.iter().find_map(|(outer, own)| (outer == column).then_some(own))
    }

    pub(super) fn in_expression(&self, expr: &Expr) -> Result<bool> {
        expr.exists(|expr| {
            Ok(matches!(expr, Expr::OuterReferenceColumn(_, column) if self.own(column).is_some()))
        })
    }

    /// Whether a plan refers to its values, or reads rows that carry them.
    pub(super) fn in_plan(&self, plan: &LogicalPlan) -> Result<bool> {
        plan.exists(|node| match node {
            LogicalPlan::TableScan(scan) if self.carried_by(scan).is_some() => Ok(true),
            node => any_expression(node, |expr| self.in_expression(expr)),
        })
    }

    /// The same for the steps of a recursion, whose rows carry its values.
    pub(super) fn within_recursion(&self, name: &str, rows: SchemaRef) -> Self {
        let mut domain = self.clone();
        domain.recursions.push((name.to_owned(), rows));
        domain
    }

    /// The columns of the rows of the step before, if it is those that are read.
    pub(super) fn carried_by(&self, scan: &TableScan) -> Option<&SchemaRef> {
        if !source_as_provider(&scan.source).is_ok_and(|table| table.is::<CteWorkTable>()) {
            return None;
        }
        let recursion = self.recursions.iter().find(|(name, _)| name == scan.table_name.table());
        recursion.map(|(_, rows)| rows)
    }

    /// An expression over its columns instead of those outside.
    pub(super) fn bound(&self, expr: Expr) -> Result<Expr> {
        let bind = |expr: Expr| match &expr {
            Expr::OuterReferenceColumn(_, column) => Ok(match self.own(column) {
                Some(own) => Transformed::yes(Expr::Column(own.clone())),
                None => Transformed::no(expr),
            }),
            _ => Ok(Transformed::no(expr)),
        };
        expr.transform(bind).data()
    }

    /// An expression over its columns instead of those that it stands for, within subqueries too.
    pub(super) fn moved(&self, expr: Expr) -> Result<Expr> {
        expr.transform_down(|mut expr| {
            if let Expr::Column(column) = &expr {
                return Ok(match self.own(column) {
                    Some(own) => Transformed::yes(Expr::Column(own.clone())),
                    None => Transformed::no(expr),
                });
            }
            let Some(subquery) = plans::subquery(&mut expr) else { return Ok(Transformed::no(expr)) };
            let plan = LogicalPlan::clone(&subquery.subquery);
            let plan =
                plan.transform_down(|node| node.map_expressions(|expr| self.redirected(expr))).data()?;
            subquery.outer_ref_columns = plan.all_out_ref_exprs();
            subquery.subquery = Arc::new(plan);
            Ok(Transformed::yes(expr))
        })
        .data()
    }

    fn redirected(&self, expr: Expr) -> Result<Transformed<Expr>> {
        expr.transform(|expr| match expr {
            Expr::OuterReferenceColumn(field, column) => {
                let to = self.own(&column).cloned().unwrap_or(column);
                Ok(Transformed::yes(Expr::OuterReferenceColumn(field, to)))
            }
            other => Ok(Transformed::no(other)),
        })
    }

    /// The same, under the name that it has had.
    pub(super) fn bound_by_name(&self, expr: Expr) -> Result<Expr> {
        plans::renamed(expr, |expr| self.bound(expr))
    }
}

/// A plan whose rows hold at least the values of the rows of another one, whenever it runs: that one runs twice, and what chance
/// decides would be decided differently, but for what is computed once.
fn again(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = steady(plan)?;
    let mut by_chance = false;
    plan.apply(|node| {
        if ComputedOnce::is(node) {
            return Ok(TreeNodeRecursion::Jump);
        }
        by_chance |= any_expression(node, |expr| Ok(expr.is_volatile()))?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    if by_chance {
        return not_impl_err!(
            "a correlated subquery over rows that depend on a volatile function such as random() is not supported"
        );
    }
    Ok(plan)
}

fn steady(plan: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Limit(limit) => steady(Arc::unwrap_or_clone(limit.input)),
        LogicalPlan::Sort(sort) => steady(Arc::unwrap_or_clone(sort.input)),
        LogicalPlan::Filter(filter) if filter.predicate.is_volatile() => {
            steady(Arc::unwrap_or_clone(filter.input))
        }
        LogicalPlan::Filter(mut filter) => {
            filter.input = Arc::new(steady(Arc::unwrap_or_clone(filter.input))?);
            Ok(LogicalPlan::Filter(filter))
        }
        LogicalPlan::Projection(mut projection) => {
            projection.input = Arc::new(steady(Arc::unwrap_or_clone(projection.input))?);
            Ok(LogicalPlan::Projection(projection))
        }
        LogicalPlan::SubqueryAlias(mut alias) => {
            alias.input = Arc::new(steady(Arc::unwrap_or_clone(alias.input))?);
            Ok(LogicalPlan::SubqueryAlias(alias))
        }
        LogicalPlan::Join(mut join) if matches!(join.join_type, JoinType::Inner | JoinType::Left) => {
            join.left = Arc::new(steady(Arc::unwrap_or_clone(join.left))?);
            if join.join_type == JoinType::Inner {
                join.right = Arc::new(steady(Arc::unwrap_or_clone(join.right))?);
            }
            Ok(LogicalPlan::Join(join))
        }
        other => Ok(other),
    }
}
