//! `regclass`, `regtype` and their kind: numbers of things that are shown as names. What a cast to one of them gives depends on
//! where it stands: of a text it is the number, and what else is cast is shown as the name, but for comparisons, which are those
//! of the numbers. For each kind there are two functions: `regclass(x)` gives the number, `regclass_name(x)` the name, and
//! each of them takes both.
//!
//! Functions are known by their names alone, so that `regproc` is a text everywhere.

use super::column;
use super::types::{self, is_number, is_text};
use crate::calls::{arguments, call};
use crate::literal::{is_placeholder, number, text};
use sqlparser::ast::{Array, BinaryOperator, CastKind, DataType, Expr, FunctionArguments, Value};

const KINDS: [&str; 5] = ["regclass", "regnamespace", "regproc", "regrole", "regtype"];

/// Columns that hold the functions of types and of access methods.
const FUNCTIONS: &[&str] = bowshot_api::words! {
    amhandler typanalyze typinput typmodin typmodout typoutput typreceive typsend typsubscript
};

/// What is in the place of a cast to one of them, or from one; `None` for any other cast.
pub(super) fn cast(expr: &Expr) -> Option<Expr> {
    let Expr::Cast { kind, expr: inner, data_type, array, format } = expr else { return None };
    if let Some(object) = types::of_objects(data_type) {
        return Some(of(object, inner));
    }
    if let Some(object) = types::element(data_type).and_then(types::of_objects) {
        return Some(each(object, inner));
    }
    if let Some((object, argument)) = made(inner) {
        if is_number(data_type) {
            return Some(again(kind, &call(object, vec![argument]), data_type));
        }
        if is_text(data_type) {
            let name = Box::new(call(&format!("{object}_name"), vec![argument]));
            let (kind, data_type) = (kind.clone(), data_type.clone());
            return Some(Expr::Cast { kind, expr: name, data_type, array: *array, format: format.clone() });
        }
    }
    let is_function = column(inner).is_some_and(|name| FUNCTIONS.contains(&name.as_str()));
    (is_function && is_number(data_type)).then(|| call("regproc", vec![inner.as_ref().clone()]))
}

fn again(kind: &CastKind, expr: &Expr, data_type: &DataType) -> Expr {
    Expr::Cast {
        kind: kind.clone(),
        expr: Box::new(expr.clone()),
        data_type: data_type.clone(),
        array: false,
        format: None,
    }
}

fn of(object: &str, inner: &Expr) -> Expr {
    // A cast of a cast to a thing is one of the same thing.
    let inner = made(inner).map_or_else(|| inner.clone(), |(_, argument)| argument);
    if object != "regproc" && is_said(&inner) {
        return call(object, vec![inner]);
    }
    call(&format!("{object}_name"), vec![inner])
}

/// Whether it is a text of the statement, or a parameter.
fn is_said(expr: &Expr) -> bool {
    text(expr).is_some() || is_placeholder(expr)
}

/// A list of things as the list of their names.
fn each(object: &str, inner: &Expr) -> Expr {
    match inner {
        Expr::Array(array) => {
            let elem = array.elem.iter().map(|element| of(object, element)).collect();
            Expr::Array(Array { elem, named: array.named })
        }
        other => call(&format!("{object}_names"), vec![other.clone()]),
    }
}

/// The kind and the argument of a call that a cast became.
fn made(expr: &Expr) -> Option<(&'static str, Expr)> {
    match expr {
        Expr::Nested(inner) => made(inner),
        Expr::Function(function) => {
            let [name] = function.name.0.as_slice() else { return None };
            let name = &name.as_ident()?.value;
            let plain = name.strip_suffix("_name").unwrap_or(name);
            let kind = KINDS.iter().find(|kind| **kind == plain)?;
            if !matches!(function.args, FunctionArguments::List(_)) {
                return None;
            }
            match arguments(function)?.as_slice() {
                [argument] => Some((kind, (*argument).clone())),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Both sides of a comparison, as numbers.
pub(super) fn compared(left: &mut Expr, op: &BinaryOperator, right: &mut Expr) {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    if !matches!(op, Eq | NotEq | Gt | GtEq | Lt | LtEq) {
        return;
    }
    with_functions(left, right);
    with_functions(right, left);
    alike(left, right);
    alike(right, left);
}

/// The first as a number, and the second too if it is a text or a parameter.
pub(super) fn alike(first: &mut Expr, second: &mut Expr) {
    let Some((object, argument)) = made(first).filter(|(object, _)| *object != "regproc") else { return };
    *first = call(object, vec![argument]);
    if is_said(second) && text(second).is_none_or(|text| text.parse::<i64>().is_err()) {
        *second = call(object, vec![second.clone()]);
    }
}

/// A column of functions is a text, and PostgreSQL's clients compare it with the number of none, and with the number of a row
/// of `pg_proc`.
fn with_functions(first: &mut Expr, second: &mut Expr) {
    if !column(first).is_some_and(|name| FUNCTIONS.contains(&name.as_str())) {
        return;
    }
    if column(second).as_deref() == Some("oid") {
        *first = call("regproc", vec![first.clone()]);
    }
    if number(second) == Some("0") {
        *second = Expr::value(Value::SingleQuotedString("-".to_owned()));
    }
}
