//! Pieces of statements that are put into others: written as text, with names in the place of what comes in.

use crate::internal_sql::{read_expression, read_query};
use crate::walk::Tree;
use bowshot_api::{Error, ErrorKind, Result};
use sqlparser::ast::{Expr, Ident, Query};
use std::collections::HashMap;
use std::fmt::Display;

/// Text of the copies that one form is put into: a few times what a long statement has, so that they take memory of that order.
const MAX_COPIED_BYTES: usize = 16_000_000;
/// Parts of a form whose tree is as deep as they are many: as many operators as one expression may be written with.
const MAX_PARTS: usize = 1_000;

/// An expression in which the names of `holes` stand for other expressions.
pub(crate) fn expression(text: &str, holes: &[(&str, &Expr)]) -> Result<Expr> {
    let mut expr = read_expression(text)?;
    fill(&mut expr, holes);
    Ok(expr)
}

/// A query in which the names of `holes` stand for expressions.
pub(crate) fn query(text: &str, holes: &[(&str, &Expr)]) -> Result<Box<Query>> {
    let mut query = read_query(text)?;
    fill(query.as_mut(), holes);
    Ok(query)
}

/// Refuses what is copied so often that a short statement becomes one that no memory holds.
pub(crate) fn check_copies(written: &impl Display, times: usize) -> Result<()> {
    let bytes = written.to_string().len();
    if bytes.saturating_mul(times) <= MAX_COPIED_BYTES {
        return Ok(());
    }
    let message = format!(
        "an expression of {bytes} bytes would be copied {times} times, and copies are limited to \
         {MAX_COPIED_BYTES} bytes"
    );
    Err(Error::new(ErrorKind::LimitReached, message)
        .with_hint("compute it in an inner query; join a table of values in the place of a long list"))
}

/// Refuses forms that would become trees too deep to walk over.
pub(crate) fn check_parts(what: &str, parts: usize) -> Result<()> {
    if parts <= MAX_PARTS {
        return Ok(());
    }
    let message = format!("{what} expands to an expression of {parts} levels, and the limit is {MAX_PARTS}");
    Err(Error::new(ErrorKind::LimitReached, message)
        .with_hint("name fewer values, or join a table of values in their place"))
}

/// A name in quotes, which stays as it is.
pub(crate) fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

/// What a name means: unquoted ones are taken in lower case.
pub(crate) fn meaning(ident: &Ident) -> String {
    if ident.quote_style.is_none() { ident.value.to_lowercase() } else { ident.value.clone() }
}

fn fill(piece: &mut impl Tree, holes: &[(&str, &Expr)]) {
    let holes: HashMap<&str, &Expr> = holes.iter().copied().collect();
    piece.change_expressions(|expr| {
        if let Expr::Identifier(name) = expr
            && let Some(filling) = holes.get(name.value.as_str())
        {
            *expr = Expr::Nested(Box::new((*filling).clone()));
        }
    });
}
