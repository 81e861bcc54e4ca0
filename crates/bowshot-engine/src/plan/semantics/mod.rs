//! What a parsed statement means, where DataFusion's planner would read something else without a word: numbers with an
//! exponent, `GROUP BY … WITH ROLLUP`, and columns that `FULL JOIN … USING` has from either side.

mod natural;
mod using;

use bowshot_api::{Error, Result};
use bowshot_sql::Tree;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, CastKind, DataType, ExactNumberInfo, Expr, GroupByExpr, GroupByWithModifier, Query, Select,
    SetExpr, Value, VisitorMut,
};
use std::ops::ControlFlow;

pub(crate) use natural::with_natural_columns;

/// The statement in words that are read as they are meant.
///
/// # Errors
/// `Unsupported` for what cannot be said in such words.
pub(crate) fn unambiguous(mut statement: Statement) -> Result<Statement> {
    in_statement(&mut statement)?;
    Ok(statement)
}

fn in_statement(statement: &mut Statement) -> Result<()> {
    match statement {
        Statement::Statement(statement) => in_sql(statement),
        Statement::Explain(explain) => in_statement(&mut explain.statement),
        Statement::CopyTo(_) | Statement::CreateExternalTable(_) | Statement::Reset(_) => Ok(()),
    }
}

fn in_sql(statement: &mut ast::Statement) -> Result<()> {
    statement.try_walk(&mut Meaning)
}

struct Meaning;

impl VisitorMut for Meaning {
    type Break = Error;

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let order = query.order_by.as_mut();
        // The order is that of this query's rows only where it is no set operation of several.
        let done = match query.body.as_mut() {
            SetExpr::Select(select) => using::spelled_out(select, order),
            other => in_set(other),
        };
        done.map_or_else(ControlFlow::Break, ControlFlow::Continue)
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        grouped(select).map_or_else(ControlFlow::Break, ControlFlow::Continue)
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Expr::Value(value) = expr
            && let Value::Number(number, _) = &value.value
            && let Some(text) = approximate(number)
        {
            *expr = Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(Expr::Value(Value::SingleQuotedString(text).with_span(value.span))),
                data_type: DataType::Double(ExactNumberInfo::None),
                array: false,
                format: None,
            };
        }
        ControlFlow::Continue(())
    }
}

fn in_set(set: &mut SetExpr) -> Result<()> {
    match set {
        SetExpr::Select(select) => using::spelled_out(select, None),
        SetExpr::SetOperation { left, right, .. } => {
            in_set(left)?;
            in_set(right)
        }
        _ => Ok(()),
    }
}

/// A number with an exponent: it is a floating-point number in SQL, and others are exact.
fn approximate(number: &impl ToString) -> Option<String> {
    let text = number.to_string();
    let exponent = text.contains(['e', 'E']) && !text.starts_with("0x") && !text.starts_with("0X");
    exponent.then(|| text.replace('_', ""))
}

/// `GROUP BY a, b WITH ROLLUP` is `GROUP BY ROLLUP (a, b)`.
fn grouped(select: &mut Select) -> Result<()> {
    let modifiers = match &select.group_by {
        GroupByExpr::Expressions(_, modifiers) | GroupByExpr::All(modifiers) => modifiers.as_slice(),
    };
    let sets: fn(Vec<Vec<Expr>>) -> Expr = match modifiers {
        [] => return Ok(()),
        [GroupByWithModifier::Rollup] => Expr::Rollup,
        [GroupByWithModifier::Cube] => Expr::Cube,
        _ => {
            return Err(Error::unsupported("`GROUP BY` takes `WITH ROLLUP` or `WITH CUBE`, and one of them")
                .with_hint("write `GROUP BY GROUPING SETS (…)`"));
        }
    };
    match &mut select.group_by {
        GroupByExpr::Expressions(expressions, modifiers) => {
            let all = std::mem::take(expressions).into_iter().map(|expression| vec![expression]).collect();
            *expressions = vec![sets(all)];
            modifiers.clear();
            Ok(())
        }
        GroupByExpr::All(_) => Err(Error::unsupported("`GROUP BY ALL` takes no `WITH ROLLUP`")
            .with_hint("name the columns: `GROUP BY ROLLUP (…)`")),
    }
}
