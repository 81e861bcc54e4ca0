//! Columns of the catalog of types `int2vector` and `oidvector`: their elements are counted from 0, those of lists from 1.

use super::column;
use crate::calls::{argument, arguments};
use crate::template;
use sqlparser::ast::{
    AccessExpr, BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, Ident, ObjectName, Subscript,
    TableFactor, Value,
};

const VECTORS: [&str; 5] = ["indclass", "indcollation", "indkey", "indoption", "proargtypes"];

fn is_vector(name: &str) -> bool {
    VECTORS.iter().any(|vector| name.eq_ignore_ascii_case(vector))
}

/// `indkey[0]` is the first element.
pub(super) fn subscript(root: &Expr, access_chain: &mut [AccessExpr]) {
    let mut last = column(root);
    for access in access_chain {
        match access {
            AccessExpr::Dot(Expr::Identifier(name)) => last = Some(name.value.clone()),
            AccessExpr::Subscript(Subscript::Index { index }) => {
                if last.take().is_some_and(|name| is_vector(&name)) {
                    let place = Expr::Nested(Box::new(index.clone()));
                    *index = with_one(place, BinaryOperator::Plus);
                }
            }
            _ => last = None,
        }
    }
}

fn with_one(expr: Expr, op: BinaryOperator) -> Expr {
    let one = Expr::value(Value::Number("1".to_owned(), false));
    Expr::BinaryOp { left: Box::new(expr), op, right: Box::new(one) }
}

/// `generate_subscripts(indkey, 1)` in a list of columns.
pub(super) fn places(function: &Function) -> Option<Expr> {
    let is_call = function.name.to_string().eq_ignore_ascii_case("generate_subscripts");
    let of = *arguments(function)?.first()?;
    if !is_call || !column(of).is_some_and(|name| is_vector(&name)) {
        return None;
    }
    let places = with_one(Expr::Function(function.clone()), BinaryOperator::Minus);
    Some(Expr::Nested(Box::new(places)))
}

/// The same in FROM, where it is `generate_series(0, cardinality(indkey) - 1)`.
pub(super) fn places_in_from(factor: &mut TableFactor) {
    let (name, args) = match factor {
        TableFactor::Table { name, args: Some(arguments), .. } => (name, &mut arguments.args),
        TableFactor::Function { name, args, .. } => (name, args),
        _ => return,
    };
    let is_call = name.to_string().to_ascii_lowercase();
    if is_call.strip_prefix("pg_catalog.").unwrap_or(&is_call) != "generate_subscripts" {
        return;
    }
    let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(of))) = args.first() else { return };
    if !column(of).is_some_and(|name| is_vector(&name)) {
        return;
    }
    let Ok(last) = template::expression("CAST(cardinality(l) AS BIGINT) - 1", &[("l", of)]) else { return };
    let first = Expr::value(Value::Number("0".to_owned(), false));
    *name = ObjectName::from(vec![Ident::new("generate_series")]);
    *args = [first, last].map(argument).into();
}
