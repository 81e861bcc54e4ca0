//! Expressions over the plan outside, with what stands for each subquery in them.

use super::comparison::Comparison;
use super::forms::{Outside, uncorrelated};
use super::plans;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, not_impl_err};
use datafusion::logical_expr::expr::{SetQuantifier, Sort as SortExpr};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator, not};
use std::sync::Arc;

/// What becomes of an expression's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Rows stay for which it is true, and only for those: unknown is as good as false.
    Condition,
    /// It is looked at.
    Value,
}

impl Outside<'_> {
    /// Expressions over this plan, under their names.
    pub(super) fn values(&mut self, exprs: Vec<Expr>) -> Result<Vec<Expr>> {
        exprs.into_iter().map(|expr| plans::renamed(expr, |expr| self.value(expr))).collect()
    }

    pub(super) fn keys(&mut self, keys: Vec<SortExpr>) -> Result<Vec<SortExpr>> {
        keys.into_iter()
            .map(|key| {
                let expr = self.value(key.expr.clone())?;
                Ok(key.with_expr(expr))
            })
            .collect()
    }

    pub(super) fn value(&mut self, expr: Expr) -> Result<Expr> {
        self.used(expr, Use::Value)
    }

    /// A condition of all rows; nothing is left of it where a join takes it in.
    pub(super) fn condition(&mut self, expr: Expr) -> Result<Option<Expr>> {
        match expr {
            Expr::Exists(exists) => {
                let kept = self.keep_where_exists(&exists.subquery.subquery, exists.negated)?;
                if kept { Ok(None) } else { self.used(Expr::Exists(exists), Use::Condition).map(Some) }
            }
            Expr::Not(inner) if plans::is_subquery(&inner) => match negated(*inner) {
                Expr::Not(inner) => self.used(Expr::Not(inner), Use::Condition).map(Some),
                expr => self.condition(expr),
            },
            Expr::InSubquery(_) | Expr::SetComparison(_) => {
                let Some((mut comparison, negated)) = comparison(&expr) else {
                    return self.used(expr, Use::Condition).map(Some);
                };
                comparison.value = self.value(comparison.value)?;
                if self.keep_where(&comparison, negated)? {
                    return Ok(None);
                }
                self.compared(&comparison, negated, Use::Condition).map(Some)
            }
            other => self.used(other, Use::Condition).map(Some),
        }
    }

    fn used(&mut self, expr: Expr, by: Use) -> Result<Expr> {
        if !plans::contains_subquery(&expr)? {
            return Ok(expr);
        }
        if plans::is_subquery(&expr) {
            if let Some((_, same)) = self.known.iter().find(|(known, _)| *known == expr) {
                return Ok(same.clone());
            }
            let same = self.subquery(expr.clone(), by)?;
            if by == Use::Value {
                self.known.push((expr, same.clone()));
            }
            return Ok(same);
        }
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
                let (left, right) = (self.used(*left, by)?, self.used(*right, by)?);
                Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
            }
            Expr::Not(inner) if plans::is_subquery(&inner) => match negated(*inner) {
                Expr::Not(inner) => Ok(not(self.used(*inner, Use::Value)?)),
                expr => self.used(expr, by),
            },
            other => {
                let map = |part: Expr| Ok(Transformed::yes(self.used(part, Use::Value)?));
                other.map_children(map).data()
            }
        }
    }

    fn subquery(&mut self, expr: Expr, by: Use) -> Result<Expr> {
        match &expr {
            Expr::Exists(exists) => {
                let there = self.exists(&exists.subquery.subquery)?;
                Ok(if exists.negated { not(there) } else { there })
            }
            Expr::ScalarSubquery(subquery) if subquery.outer_ref_columns.is_empty() => {
                Ok(uncorrelated(LogicalPlan::clone(&subquery.subquery)))
            }
            Expr::ScalarSubquery(subquery) => self.scalar(&subquery.subquery),
            _ => match comparison(&expr) {
                Some((mut comparison, negated)) => {
                    comparison.value = self.value(comparison.value)?;
                    self.compared(&comparison, negated, by)
                }
                None => not_impl_err!("the subquery `{expr}` is not supported"),
            },
        }
    }

    fn compared(&mut self, comparison: &Comparison, negated: bool, by: Use) -> Result<Expr> {
        if by == Use::Condition && !negated {
            return self.any_is_true(comparison);
        }
        self.any(comparison, negated)
    }
}

/// NOT of a subquery as another subquery.
pub(super) fn without_not(expr: Expr) -> Expr {
    match expr {
        Expr::Not(inner) if plans::is_subquery(&inner) => negated(*inner),
        other => other,
    }
}

/// The negation of a subquery as another one; as it is, where there is none.
fn negated(expr: Expr) -> Expr {
    match expr {
        Expr::Exists(mut exists) => {
            exists.negated = !exists.negated;
            Expr::Exists(exists)
        }
        Expr::InSubquery(mut inside) => {
            inside.negated = !inside.negated;
            Expr::InSubquery(inside)
        }
        Expr::SetComparison(mut comparison) => match comparison.op.negate() {
            Some(op) => {
                comparison.op = op;
                comparison.quantifier = match comparison.quantifier {
                    SetQuantifier::Any => SetQuantifier::All,
                    SetQuantifier::All => SetQuantifier::Any,
                };
                Expr::SetComparison(comparison)
            }
            None => not(Expr::SetComparison(comparison)),
        },
        other => not(other),
    }
}

/// IN, ANY and ALL as comparisons with any row, or as the negation of one: what is true of all rows is false of none.
fn comparison(expr: &Expr) -> Option<(Comparison, bool)> {
    let (value, op, query, negated) = match expr {
        Expr::InSubquery(inside) => (&inside.expr, Operator::Eq, &inside.subquery, inside.negated),
        Expr::SetComparison(of) => match of.quantifier {
            SetQuantifier::Any => (&of.expr, of.op, &of.subquery, false),
            SetQuantifier::All => (&of.expr, of.op.negate()?, &of.subquery, true),
        },
        _ => return None,
    };
    let comparison = Comparison { value: Expr::clone(value), op, query: Arc::clone(&query.subquery) };
    Some((comparison, negated))
}
