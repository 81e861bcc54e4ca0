//! Comparisons of rows and with lists of patterns: `(a, b) = (1, 2)`, `(a, b) IN (…)`, `a LIKE ANY ('x%', 'y%')`,
//! `a = ANY (list)`.

use crate::template;
use crate::walk::Tree;
use bowshot_api::{Error, Result};
use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Query, Value, VisitorMut,
};
use std::ops::ControlFlow;

pub(super) fn rewrite(statement: &mut impl Tree) -> Result<()> {
    match statement.walk(&mut Conditions) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Conditions;

impl VisitorMut for Conditions {
    type Break = Error;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        let rewritten = match &*expr {
            Expr::BinaryOp { left, op, right } => match row_with_query(left, op, right) {
                Ok(None) => rows(left, op, right),
                compared => compared,
            },
            Expr::InList { expr, list, negated } => row_in_list(expr, list, *negated),
            Expr::InSubquery { expr, subquery, negated } => row_in_query(expr, subquery, *negated),
            Expr::Like { any, pattern, .. } | Expr::ILike { any, pattern, .. } => {
                several_patterns(expr, *any, pattern)
            }
            Expr::AnyOp { left, compare_op, right, .. } => {
                with_list("quantified_any", left, compare_op, right)
            }
            Expr::AllOp { left, compare_op, right } => with_list("quantified_all", left, compare_op, right),
            _ => Ok(None),
        };
        match rewritten {
            Ok(Some(rewritten)) => *expr = Expr::Nested(Box::new(rewritten)),
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}

fn row(expr: &Expr) -> Option<&[Expr]> {
    match expr {
        Expr::Tuple(fields) if fields.len() > 1 => Some(fields),
        Expr::Nested(inner) => row(inner),
        Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("row") => None,
        _ => None,
    }
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

fn bracketed(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

fn all_of(conditions: impl IntoIterator<Item = Expr>, op: BinaryOperator) -> Option<Expr> {
    conditions.into_iter().reduce(|left, right| binary(left, op.clone(), right))
}

fn equal(left: &[Expr], right: &[Expr]) -> Result<Expr> {
    if left.len() != right.len() {
        return Err(Error::invalid(format!(
            "a row of {} is compared with one of {}",
            left.len(),
            right.len()
        ))
        .with_hint("give both sides the same number of values"));
    }
    let pairs = left.iter().zip(right);
    let fields = pairs.map(|(left, right)| binary(left.clone(), BinaryOperator::Eq, right.clone()));
    all_of(fields, BinaryOperator::And).ok_or_else(|| Error::invalid("a row is empty"))
}

/// Field by field, from the left.
fn rows(left: &Expr, op: &BinaryOperator, right: &Expr) -> Result<Option<Expr>> {
    let (Some(left), Some(right)) = (row(left), row(right)) else { return Ok(None) };
    let same = equal(left, right)?;
    Ok(match op {
        BinaryOperator::Eq => Some(same),
        BinaryOperator::NotEq => {
            let not = sqlparser::ast::UnaryOperator::Not;
            Some(Expr::UnaryOp { op: not, expr: Box::new(bracketed(same)) })
        }
        BinaryOperator::Lt | BinaryOperator::LtEq | BinaryOperator::Gt | BinaryOperator::GtEq => {
            Some(ordered(left, op, right))
        }
        _ => None,
    })
}

/// `(a, b) < (c, d)` is `a < c OR a = c AND b < d`.
fn ordered(left: &[Expr], op: &BinaryOperator, right: &[Expr]) -> Expr {
    let strict = match op {
        BinaryOperator::LtEq => BinaryOperator::Lt,
        BinaryOperator::GtEq => BinaryOperator::Gt,
        other => other.clone(),
    };
    let mut result: Option<Expr> = None;
    for (left, right) in left.iter().zip(right).rev() {
        result = Some(match result {
            None => binary(left.clone(), op.clone(), right.clone()),
            Some(rest) => {
                let first = binary(left.clone(), strict.clone(), right.clone());
                let same = binary(left.clone(), BinaryOperator::Eq, right.clone());
                binary(first, BinaryOperator::Or, binary(same, BinaryOperator::And, bracketed(rest)))
            }
        });
    }
    result.unwrap_or_else(|| Expr::value(Value::Null))
}

fn row_in_list(value: &Expr, list: &[Expr], negated: bool) -> Result<Option<Expr>> {
    let Some(left) = row(value) else { return Ok(None) };
    let tests = list.iter().map(|item| match row(item) {
        Some(right) => equal(left, right).map(bracketed),
        None => Err(Error::invalid(format!("a row is compared with `{item}`"))),
    });
    let tests = tests.collect::<Result<Vec<_>>>()?;
    let any = all_of(tests, BinaryOperator::Or).map(bracketed);
    Ok(any.map(|any| match negated {
        true => Expr::UnaryOp { op: sqlparser::ast::UnaryOperator::Not, expr: Box::new(any) },
        false => any,
    }))
}

/// `(a, b) = (query)` is a query that compares the fields: unknown without a row, and an error with more than one.
fn row_with_query(left: &Expr, op: &BinaryOperator, right: &Expr) -> Result<Option<Expr>> {
    let (fields, query, is_left) = match (row(left), query_of(right), query_of(left), row(right)) {
        (Some(fields), Some(query), ..) => (fields, query, true),
        (_, _, Some(query), Some(fields)) => (fields, query, false),
        _ => return Ok(None),
    };
    let columns: Vec<String> = (0..fields.len()).map(|at| format!("__field_{at}")).collect();
    let names = columns.iter().map(|name| template::expression(&format!("__row.{name}"), &[]));
    let (written, read) = (Expr::Tuple(fields.to_vec()), Expr::Tuple(names.collect::<Result<_>>()?));
    let compared = if is_left { rows(&written, op, &read)? } else { rows(&read, op, &written)? };
    let Some(compared) = compared else { return Ok(None) };
    let text = format!("(SELECT __compared FROM (SELECT 1) AS __row ({}))", columns.join(", "));
    let mut expr = template::expression(&text, &[("__compared", &compared)])?;
    let ControlFlow::Continue(()) = expr.walk(&mut Rows(query));
    Ok(Some(expr))
}

fn query_of(expr: &Expr) -> Option<&Query> {
    match expr {
        Expr::Subquery(query) => Some(query),
        Expr::Nested(inner) => query_of(inner),
        _ => None,
    }
}

/// `(a, b) IN (query)`: yes, unknown or no, as the fields say.
fn row_in_query(value: &Expr, query: &Query, negated: bool) -> Result<Option<Expr>> {
    let Some(left) = row(value) else { return Ok(None) };
    let columns: Vec<String> = (0..left.len()).map(|at| format!("__field_{at}")).collect();
    let tests: Vec<String> = columns.iter().map(|name| format!("__row.{name} = __value_{name}")).collect();
    let holes: Vec<String> = columns.iter().map(|name| format!("__value_{name}")).collect();
    let (test, named) = (tests.join(" AND "), columns.join(", "));
    let (yes, no) = if negated { ("FALSE", "TRUE") } else { ("TRUE", "FALSE") };
    let text = format!(
        "CASE WHEN EXISTS (SELECT 1 FROM (SELECT 1) AS __row ({named}) WHERE {test}) THEN {yes} \
         WHEN EXISTS (SELECT 1 FROM (SELECT 1) AS __row ({named}) WHERE ({test}) IS NULL) THEN NULL ELSE {no} END"
    );
    let filled: Vec<(&str, &Expr)> = holes.iter().map(String::as_str).zip(left).collect();
    let mut expr = template::expression(&text, &filled)?;
    let ControlFlow::Continue(()) = expr.walk(&mut Rows(query));
    Ok(Some(expr))
}

/// Puts a query in the place of the one that stands for it, and does not look into it: such a condition within it has been
/// rewritten, and has rows of its own.
struct Rows<'a>(&'a Query);

impl VisitorMut for Rows<'_> {
    type Break = std::convert::Infallible;

    fn post_visit_table_factor(
        &mut self,
        factor: &mut sqlparser::ast::TableFactor,
    ) -> ControlFlow<Self::Break> {
        if let sqlparser::ast::TableFactor::Derived { subquery, alias: Some(alias), .. } = factor
            && alias.name.value == "__row"
            && subquery.to_string() == "SELECT 1"
        {
            **subquery = self.0.clone();
        }
        ControlFlow::Continue(())
    }
}

/// `LIKE ANY (…)` is one LIKE or another, `LIKE ALL (…)` one and another. `NOT LIKE ANY ('a', 'b')` is neither; with an array,
/// which is PostgreSQL's form, not all of them.
fn several_patterns(expr: &Expr, any: bool, pattern: &Expr) -> Result<Option<Expr>> {
    let list = match pattern {
        Expr::Function(function) if !any && is_all(function) => all_of_list(function),
        _ if !any => return Ok(None),
        Expr::Tuple(patterns) => Some((patterns.iter().collect(), false)),
        Expr::Nested(one) => Some(listed(one)),
        Expr::Array(_) => Some(listed(pattern)),
        _ => None,
    };
    let Some((patterns, is_array)) = list else {
        return Err(Error::unsupported("LIKE ANY and LIKE ALL take a list of patterns in brackets"));
    };
    let mut negation = false;
    let tests = patterns.into_iter().map(|one| {
        let mut test = expr.clone();
        if let Expr::Like { any, pattern, negated, .. } | Expr::ILike { any, pattern, negated, .. } =
            &mut test
        {
            *any = false;
            **pattern = one.clone();
            negation = *negated;
        }
        test
    });
    let tests: Vec<Expr> = tests.collect();
    let op = if any && (!negation || is_array) { BinaryOperator::Or } else { BinaryOperator::And };
    Ok(all_of(tests, op))
}

/// The patterns in brackets, and whether they are those of an array.
fn listed(expr: &Expr) -> (Vec<&Expr>, bool) {
    match expr {
        Expr::Array(array) => (array.elem.iter().collect(), true),
        other => (vec![other], false),
    }
}

fn is_all(function: &Function) -> bool {
    function.over.is_none() && function.name.to_string().eq_ignore_ascii_case("all")
}

/// The patterns of `ALL (…)`, which the parser takes for a call.
fn all_of_list(function: &Function) -> Option<(Vec<&Expr>, bool)> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let patterns = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(pattern)) => Some(pattern),
        _ => None,
    });
    match patterns.collect::<Option<Vec<_>>>()?.as_slice() {
        [Expr::Array(array)] => Some((array.elem.iter().collect(), true)),
        patterns => Some((patterns.to_vec(), false)),
    }
}

/// `a = ANY (list)` with a list in the place of a query: a function that knows three answers.
fn with_list(function: &str, left: &Expr, op: &BinaryOperator, right: &Expr) -> Result<Option<Expr>> {
    let mut list = right;
    while let Expr::Nested(inner) = list {
        list = inner;
    }
    if matches!(list, Expr::Subquery(_)) {
        return Ok(None);
    }
    let op = Expr::value(Value::SingleQuotedString(op.to_string()));
    template::expression(&format!("{function}(o, v, l)"), &[("o", &op), ("v", left), ("l", list)]).map(Some)
}
