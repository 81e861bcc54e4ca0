//! `x IN (query)` below OR, NOT and the like.
//!
//! DataFusion 55.2 makes a mark join of it, which says "no" where SQL says "unknown": when `x` is null, or when it is not
//! found and the query gives a null. Below a NOT the "no" becomes a "yes", and a DELETE takes rows that it must not. Here the
//! three answers are spelled out with EXISTS, which knows only two. At the top of a condition, and under AND there, unknown
//! and no are the same, and DataFusion's joins are right.

use crate::write::change;
use bowshot_api::Result;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Query, VisitMut, VisitorMut};
use std::ops::ControlFlow;

/// A condition in which every such test is null-aware.
pub(crate) fn aware(condition: &mut Expr) -> Result<()> {
    match condition {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            aware(left)?;
            aware(right)
        }
        Expr::Nested(inner) => aware(inner),
        Expr::InSubquery { .. } => Ok(()),
        other => match other.visit(&mut Spell { depth: 0 }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        },
    }
}

struct Spell {
    /// Queries around the expression: the conditions of those are planned by themselves.
    depth: usize,
}

impl VisitorMut for Spell {
    type Break = bowshot_api::Error;

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<Self::Break> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<Self::Break> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        let Expr::InSubquery { expr: value, subquery, negated } = &*expr else {
            return ControlFlow::Continue(());
        };
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        match spelled_out(value, subquery, *negated) {
            Ok(spelled) => {
                *expr = spelled;
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }
}

fn spelled_out(value: &Expr, query: &Query, negated: bool) -> Result<Expr> {
    let (found, not_found) = if negated { ("FALSE", "TRUE") } else { ("TRUE", "FALSE") };
    let among = format!(
        "SELECT 1 FROM ({query}) AS __bowshot_in (__bowshot_value) WHERE __bowshot_in.__bowshot_value"
    );
    change::expression(&format!(
        "(CASE WHEN EXISTS ({among} = ({value})) THEN {found} \
         WHEN EXISTS ({among} IS NULL) THEN NULL \
         WHEN ({value}) IS NULL AND EXISTS ({query}) THEN NULL \
         ELSE {not_found} END)"
    ))
}

#[cfg(test)]
mod tests {
    use super::aware;
    use crate::write::change::expression;

    #[test]
    fn only_what_is_below_something_else_is_spelled_out() {
        for (sql, spelled) in [
            ("a IN (SELECT k FROM u)", false),
            ("a NOT IN (SELECT k FROM u) AND (b = 1 AND a IN (SELECT k FROM u))", false),
            ("NOT (a IN (SELECT k FROM u))", true),
            ("b = 1 AND (a = 2 OR a IN (SELECT k FROM u))", true),
            ("EXISTS (SELECT 1 FROM u WHERE NOT (u.k IN (SELECT v FROM w)))", false),
        ] {
            let mut condition = expression(sql).expect("an expression");
            aware(&mut condition).expect("can be spelled out");
            assert_eq!(condition.to_string().contains("CASE"), spelled, "{condition}");
        }
    }
}
