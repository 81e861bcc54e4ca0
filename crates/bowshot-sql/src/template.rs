//! Pieces of statements that are put into others: written as text, with names in the place of what comes in.

use crate::walk::Tree;
use bowshot_api::{Error, Result};
use sqlparser::ast::{Expr, Ident, Query, Statement, VisitorMut};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;
use std::ops::ControlFlow;

/// An expression in which the names of `holes` stand for other expressions.
///
/// # Errors
/// `Internal` for a text that is no expression: they are all ours.
pub(crate) fn expression(text: &str, holes: &[(&str, &Expr)]) -> Result<Expr> {
    let parsed =
        Parser::new(&GenericDialect {}).try_with_sql(text).and_then(|mut parser| parser.parse_expr());
    let mut expr = parsed.map_err(|error| Error::internal(format!("`{text}` is no expression: {error}")))?;
    fill(&mut expr, holes);
    Ok(expr)
}

/// A query in which the names of `holes` stand for expressions.
///
/// # Errors
/// `Internal`, as above.
pub(crate) fn query(text: &str, holes: &[(&str, &Expr)]) -> Result<Box<Query>> {
    let parsed = Parser::parse_sql(&GenericDialect {}, text);
    let mut parsed = parsed.map_err(|error| Error::internal(format!("`{text}` is no query: {error}")))?;
    match parsed.pop() {
        Some(Statement::Query(mut query)) => {
            fill(query.as_mut(), holes);
            Ok(query)
        }
        _ => Err(Error::internal(format!("`{text}` is no query"))),
    }
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
    let ControlFlow::Continue(()) = piece.walk(&mut Fill(holes));
}

struct Fill<'a>(&'a [(&'a str, &'a Expr)]);

impl VisitorMut for Fill<'_> {
    type Break = std::convert::Infallible;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if let Expr::Identifier(name) = expr
            && let Some((_, filling)) = self.0.iter().find(|(hole, _)| *hole == name.value)
        {
            *expr = Expr::Nested(Box::new((*filling).clone()));
        }
        ControlFlow::Continue(())
    }
}
