//! `x IN (query)` below NOT and the like.
//!
//! DataFusion 55.2 makes a mark join of a test that is not at the top of a condition, which says "no" where SQL says
//! "unknown": when `x` is null, or when it is not found and the query gives a null. Below a NOT the "no" becomes a "yes", and
//! a DELETE takes rows that it must not. Here the three answers are spelled out with EXISTS, which knows only two. Where
//! nothing turns a "no" into a "yes" (under AND and OR alone) unknown and no are the same, and nothing needs to be done.

use bowshot_api::{Error, ErrorKind, Result};
use bowshot_sql::Tree;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Query, SetExpr, Statement};

/// Tests that are spelled out in one statement: each becomes three joins.
const MAX_TESTS: usize = 16;

/// The statement with null-aware tests in the conditions of all its queries.
pub(crate) fn aware(statement: &mut Statement) -> Result<()> {
    let mut tests = 0;
    // Queries come from the outside in, so that those which spelling out has copied come too.
    statement.try_change_queries(|query| in_set(query.body.as_mut(), &mut tests))
}

fn in_set(set: &mut SetExpr, tests: &mut usize) -> Result<()> {
    match set {
        SetExpr::Select(select) => match &mut select.selection {
            Some(condition) => in_condition(condition, tests),
            None => Ok(()),
        },
        SetExpr::SetOperation { left, right, .. } => {
            in_set(left, tests)?;
            in_set(right, tests)
        }
        _ => Ok(()),
    }
}

fn in_condition(condition: &mut Expr, tests: &mut usize) -> Result<()> {
    match condition {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            in_condition(left, tests)?;
            in_condition(right, tests)
        }
        Expr::Nested(inner) => in_condition(inner, tests),
        // DataFusion's join for it knows nulls.
        Expr::InSubquery { .. } => Ok(()),
        other => below_or(other, tests),
    }
}

/// Where unknown still counts as no, but mark joins are made.
fn below_or(condition: &mut Expr, tests: &mut usize) -> Result<()> {
    match condition {
        Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
            below_or(left, tests)?;
            below_or(right, tests)
        }
        Expr::Nested(inner) => below_or(inner, tests),
        Expr::InSubquery { negated: false, .. } => Ok(()),
        // The conditions of queries around the expression get their own turn.
        other => other.try_change_own_expressions(|expr| {
            let Expr::InSubquery { expr: value, subquery, negated } = &*expr else { return Ok(()) };
            *tests += 1;
            if *tests > MAX_TESTS {
                return Err(too_many());
            }
            *expr = spelled_out(value, subquery, *negated)?;
            Ok(())
        }),
    }
}

fn too_many() -> Error {
    Error::new(
        ErrorKind::LimitReached,
        format!("more than {MAX_TESTS} tests `IN (query)` stand below OR or NOT"),
    )
    .with_hint("join the queries with UNION ALL into one test")
}

fn spelled_out(value: &Expr, query: &Query, negated: bool) -> Result<Expr> {
    let (found, not_found) = if negated { ("FALSE", "TRUE") } else { ("TRUE", "FALSE") };
    let among = format!(
        "SELECT 1 FROM ({query}) AS __bowshot_in (__bowshot_value) WHERE __bowshot_in.__bowshot_value"
    );
    bowshot_sql::read_expression(&format!(
        "(CASE WHEN EXISTS ({among} = ({value})) THEN {found} \
         WHEN EXISTS ({among} IS NULL) THEN NULL \
         WHEN ({value}) IS NULL AND EXISTS ({query}) THEN NULL \
         ELSE {not_found} END)"
    ))
}

#[cfg(test)]
mod tests {
    use super::aware;

    #[test]
    fn their_number_is_limited() {
        let many = vec!["NOT (a IN (SELECT k FROM u))"; 17].join(" OR ");
        let sql = format!("SELECT 1 FROM t WHERE {many}");
        let mut statement = bowshot_sql::read_statement(&sql).expect("parses");
        assert!(aware(&mut statement).is_err());
    }
}
