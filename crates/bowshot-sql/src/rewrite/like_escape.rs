//! `a LIKE p ESCAPE '!'`. The planner knows the backslash alone, so a pattern that is written out gets backslashes, and another
//! one goes to a function.

use crate::literal::{literal, text};
use crate::template;
use bowshot_api::{Error, Result};
use sqlparser::ast::{Expr, Value};

/// `None` where there is no ESCAPE.
pub(super) fn escaped(like: &Expr) -> Result<Option<Expr>> {
    let (Expr::Like { negated, expr, pattern, escape_char: Some(escape), .. }
    | Expr::ILike { negated, expr, pattern, escape_char: Some(escape), .. }) = like
    else {
        return Ok(None);
    };
    let escape = character(&escape.value)?;
    if let Some(known) = written(pattern) {
        let backslashed = known.map(|pattern| backslashed(pattern, escape)).transpose()?;
        return Ok(Some(with_pattern(like, backslashed)));
    }
    if escape == Some('\\') {
        return Ok(Some(with_pattern(like, None)));
    }
    let escape = Expr::value(Value::SingleQuotedString(escape.map(String::from).unwrap_or_default()));
    let call = match like {
        Expr::Like { .. } => "like_escape(x, p, e)",
        _ => "ilike_escape(x, p, e)",
    };
    let text = if *negated { format!("NOT {call}") } else { call.to_owned() };
    let holes = [("x", expr.as_ref()), ("p", pattern.as_ref()), ("e", &escape)];
    template::expression(&text, &holes).map(|call| Some(Expr::Nested(Box::new(call))))
}

/// `None` for an empty text: nothing escapes.
fn character(escape: &Value) -> Result<Option<char>> {
    match escape {
        Value::SingleQuotedString(text)
        | Value::DoubleQuotedString(text)
        | Value::EscapedStringLiteral(text)
            if text.chars().count() <= 1 =>
        {
            Ok(text.chars().next())
        }
        other => {
            Err(Error::invalid(format!("`{other}` is no escape character")).with_hint("name one character"))
        }
    }
}

/// The text of a pattern that is written out, within `None` that of NULL.
fn written(pattern: &Expr) -> Option<Option<&str>> {
    match pattern {
        Expr::Nested(inner) => written(inner),
        _ if matches!(literal(pattern), Some(Value::Null)) => Some(None),
        _ => text(pattern).map(Some),
    }
}

/// The pattern with a backslash before each character that stands for itself.
fn backslashed(pattern: &str, escape: Option<char>) -> Result<String> {
    let mut escaped = String::with_capacity(pattern.len() + 2);
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        let literal = if Some(character) == escape {
            characters.next().ok_or_else(|| {
                Error::invalid(format!("the pattern `{pattern}` ends with its escape character"))
            })?
        } else if matches!(character, '%' | '_') {
            escaped.push(character);
            continue;
        } else {
            character
        };
        if matches!(literal, '%' | '_' | '\\') {
            escaped.push('\\');
        }
        escaped.push(literal);
    }
    Ok(escaped)
}

/// The same comparison without ESCAPE, and with another pattern if there is one.
fn with_pattern(like: &Expr, new: Option<String>) -> Expr {
    let mut like = like.clone();
    if let Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } = &mut like {
        *escape_char = None;
        if let Some(new) = new {
            **pattern = Expr::value(Value::SingleQuotedString(new));
        }
    }
    like
}
