//! What is written out in expressions.

use sqlparser::ast::{Expr, Value};

pub(crate) fn literal(expr: &Expr) -> Option<&Value> {
    match expr {
        Expr::Value(value) => Some(&value.value),
        _ => None,
    }
}

/// The digits of a number.
pub(crate) fn number(expr: &Expr) -> Option<&str> {
    match literal(expr)? {
        Value::Number(digits, _) => Some(digits),
        _ => None,
    }
}

/// A text between single quotes.
pub(crate) fn quoted_text(expr: &Expr) -> Option<&str> {
    match literal(expr)? {
        Value::SingleQuotedString(text) => Some(text),
        _ => None,
    }
}

/// A text with or without escapes, also in parentheses.
pub(crate) fn text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Nested(inner) => text(inner),
        _ => match literal(expr)? {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Some(text),
            _ => None,
        },
    }
}

/// Whether it stands for a value that comes with the statement.
pub(crate) fn is_placeholder(expr: &Expr) -> bool {
    matches!(literal(expr), Some(Value::Placeholder(_)))
}
