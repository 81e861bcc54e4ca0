//! Comparisons with patterns: SIMILAR TO and GLOB as regular expressions, and these as PostgreSQL means them.

use crate::literal;
use crate::template;
use bowshot_api::{Error, Result};
use sqlparser::ast::{BinaryOperator, Expr, Value};

const BACKSLASH: char = '\\';

/// `substring(a FROM '(x)y')`: what the first group of an expression finds, or all of it where it has no group.
pub(super) fn part(expr: &Expr, pattern: &Expr) -> Result<Option<Expr>> {
    if literal::text(pattern).is_none() {
        return Ok(None);
    }
    let found = template::expression("array_element(regexp_match(x, p), 1)", &[("x", expr), ("p", pattern)])?;
    Ok(Some(found))
}

/// `a GLOB 'x*'`: the pattern as a regular expression over the whole text.
pub(super) fn glob(expr: &Expr, pattern: &Expr) -> Result<Expr> {
    let Some(text) = literal::text(pattern) else {
        return Err(Error::unsupported("GLOB needs a literal pattern")
            .with_hint("compare with a regular expression: `a ~ pattern`"));
    };
    let pattern = Expr::value(Value::SingleQuotedString(of_glob(text)));
    Ok(Expr::Nested(Box::new(template::expression("x ~ p", &[("x", expr), ("p", &pattern)])?)))
}

/// `a ~ 'x.y'`: in PostgreSQL, a point is the end of a line too. What the planner's operator cannot find is left to a function.
/// `None` for what it finds as it stands.
pub(super) fn regular_expression(expr: &Expr, op: &BinaryOperator, pattern: &Expr) -> Result<Option<Expr>> {
    let (flags, negated) = match op {
        BinaryOperator::PGRegexMatch => ("", false),
        BinaryOperator::PGRegexIMatch => ("i", false),
        BinaryOperator::PGRegexNotMatch => ("", true),
        BinaryOperator::PGRegexNotIMatch => ("i", true),
        _ => return Ok(None),
    };
    let text = match literal::text(pattern) {
        Some(text) if !text.contains('.') && is_plain(text) => return Ok(None),
        Some(text) if is_plain(text) => {
            let pattern = Expr::value(Value::SingleQuotedString(format!("(?s){text}")));
            let (left, right) = (Box::new(expr.clone()), Box::new(pattern));
            return Ok(Some(Expr::Nested(Box::new(Expr::BinaryOp { left, op: op.clone(), right }))));
        }
        _ if negated => format!("NOT regexp_like(x, p, '{flags}')"),
        _ => format!("regexp_like(x, p, '{flags}')"),
    };
    let found = template::expression(&text, &[("x", expr), ("p", pattern)])?;
    Ok(Some(Expr::Nested(Box::new(found))))
}

/// Whether an expression has no look-around, no back-references and no escapes that only PostgreSQL has.
fn is_plain(pattern: &str) -> bool {
    const OWN: [&str; 7] = ["(?=", "(?!", "(?<", "[[:<:]]", "[[:>:]]", "***", "(?s)"];
    let mut escaped = pattern.split('\\').skip(1).filter_map(|rest| rest.chars().next());
    !OWN.iter().any(|own| pattern.contains(own))
        && !escaped.any(|next| matches!(next, 'm' | 'M' | 'y' | 'Y' | 'Z' | '1'..='9'))
}

fn of_glob(pattern: &str) -> String {
    let mut regular = String::from("^(?s:");
    let (mut characters, mut in_set) = (pattern.chars().peekable(), false);
    while let Some(character) = characters.next() {
        match character {
            ']' if in_set => {
                in_set = false;
                regular.push(']');
            }
            '\\' => {
                let literal = characters.next().unwrap_or(BACKSLASH);
                push_literal(&mut regular, literal);
            }
            other if in_set => regular.push(other),
            '[' => {
                in_set = true;
                regular.push('[');
                if characters.next_if(|next| *next == '!').is_some() {
                    regular.push('^');
                }
            }
            '*' => regular.push_str(".*"),
            '?' => regular.push('.'),
            other => push_literal(&mut regular, other),
        }
    }
    regular.push_str(")$");
    regular
}

fn push_literal(regular: &mut String, character: char) {
    if character.is_ascii_punctuation() {
        regular.push(BACKSLASH);
    }
    regular.push(character);
}

/// `a SIMILAR TO p`: the pattern as a regular expression over the whole text (PostgreSQL's manual, 9.7.2).
pub(super) fn similar(expr: &Expr, pattern: &Expr, escape: Option<&Value>, negated: bool) -> Result<Expr> {
    let escape = match escape {
        None => Some('\\'),
        Some(Value::SingleQuotedString(text)) if text.chars().count() <= 1 => text.chars().next(),
        Some(other) => {
            return Err(
                Error::invalid(format!("`{other}` is no escape character")).with_hint("name one character")
            );
        }
    };
    let text = match literal::literal(pattern) {
        Some(Value::SingleQuotedString(text)) => text,
        Some(Value::Null) => return Ok(Expr::value(Value::Null)),
        _ => {
            return Err(Error::unsupported("SIMILAR TO needs a literal pattern")
                .with_hint("compare with a regular expression: `a ~ pattern`"));
        }
    };
    let pattern = Expr::value(Value::SingleQuotedString(regular(text, escape)));
    let text = if negated { "x !~ p" } else { "x ~ p" };
    Ok(Expr::Nested(Box::new(template::expression(text, &[("x", expr), ("p", &pattern)])?)))
}

fn regular(pattern: &str, escape: Option<char>) -> String {
    let mut regular = String::from("^(?s:");
    let (mut characters, mut in_set) = (pattern.chars(), false);
    while let Some(character) = characters.next() {
        match character {
            _ if Some(character) == escape => {
                let literal = characters.next().unwrap_or(character);
                if !literal.is_alphanumeric() {
                    regular.push('\\');
                }
                regular.push(literal);
            }
            '[' | ']' => {
                in_set = character == '[';
                regular.push(character);
            }
            other if in_set => regular.push(other),
            '%' => regular.push_str(".*"),
            '_' => regular.push('.'),
            '.' | '^' | '$' | '\\' => regular.extend(['\\', character]),
            other => regular.push(other),
        }
    }
    regular.push_str(")$");
    regular
}
