//! Comparisons with patterns: LIKE with another escape character than the planner's, SIMILAR TO and GLOB as regular
//! expressions.

use crate::template;
use bowshot_api::{Error, Result};
use sqlparser::ast::{Expr, Value};

/// The escape character that the planner knows.
const BACKSLASH: char = '\\';

/// `a LIKE p ESCAPE '!'` with a backslash in its place; `None` if it has that already.
///
/// # Errors
/// `Invalid` for more than one character.
pub(super) fn with_backslash(like: &Expr, pattern: &Expr, escape: &Value) -> Result<Option<Expr>> {
    let escape = match escape {
        Value::SingleQuotedString(text) if text.chars().count() <= 1 => text.chars().next(),
        Value::SingleQuotedString(_) => {
            return Err(
                Error::invalid(format!("{escape} is no escape character")).with_hint("name one character")
            );
        }
        _ => return Ok(None),
    };
    if escape == Some(BACKSLASH) {
        return Ok(None);
    }
    let spelled = match text_of(pattern) {
        Some(text) => Expr::value(Value::SingleQuotedString(escaped(text, escape))),
        None => escaped_later(pattern, escape)?,
    };
    let mut like = like.clone();
    if let Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } = &mut like {
        **pattern = spelled;
        *escape_char = None;
    }
    Ok(Some(like))
}

fn text_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Nested(inner) => text_of(inner),
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

fn escaped(pattern: &str, escape: Option<char>) -> String {
    let mut spelled = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        let (literal, character) = match characters.clone().next() {
            Some(next) if Some(character) == escape => {
                characters.next();
                (true, next)
            }
            _ => (false, character),
        };
        if character == BACKSLASH || literal && matches!(character, '%' | '_') {
            spelled.push(BACKSLASH);
        }
        spelled.push(character);
    }
    spelled
}

/// The same for a pattern that is computed. Characters that no text has stand for what was escaped.
fn escaped_later(pattern: &Expr, escape: Option<char>) -> Result<Expr> {
    let mut replaced = Expr::Nested(Box::new(pattern.clone()));
    let mut replace = |from: &str, to: &str| -> Result<()> {
        let text = |text: &str| Expr::value(Value::SingleQuotedString(text.to_owned()));
        let holes = [("__text", &replaced.clone()), ("__from", &text(from)), ("__to", &text(to))];
        replaced = template::expression("replace(__text, __from, __to)", &holes)?;
        Ok(())
    };
    let Some(escape) = escape else {
        replace("\\", "\\\\")?;
        return Ok(replaced);
    };
    let own = if matches!(escape, '%' | '_') { format!("\\{escape}") } else { escape.to_string() };
    replace(&format!("{escape}{escape}"), "\u{1}")?;
    replace(&format!("{escape}%"), "\u{2}")?;
    replace(&format!("{escape}_"), "\u{3}")?;
    replace(&escape.to_string(), "")?;
    replace("\\", "\\\\")?;
    replace("\u{1}", &own)?;
    replace("\u{2}", "\\%")?;
    replace("\u{3}", "\\_")?;
    Ok(replaced)
}

/// `a GLOB 'x*'`: the pattern as a regular expression over the whole text.
pub(super) fn glob(expr: &Expr, pattern: &Expr) -> Result<Expr> {
    let Some(text) = text_of(pattern) else {
        return Err(Error::unsupported("GLOB takes a pattern that is written out")
            .with_hint("compare with a regular expression: `a ~ pattern`"));
    };
    let pattern = Expr::value(Value::SingleQuotedString(of_glob(text)));
    Ok(Expr::Nested(Box::new(template::expression("x ~ p", &[("x", expr), ("p", &pattern)])?)))
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
    let text = match pattern {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            Value::Null => return Ok(Expr::value(Value::Null)),
            _ => None,
        },
        _ => None,
    };
    let Some(text) = text else {
        return Err(Error::unsupported("SIMILAR TO takes a pattern that is written out")
            .with_hint("compare with a regular expression: `a ~ pattern`"));
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

#[cfg(test)]
mod tests {
    use super::{escaped, of_glob, regular};

    #[test]
    fn patterns_are_regular_expressions() {
        for (pattern, expected) in [
            ("a%", "^(?s:a.*)$"),
            ("%(b|d)_", "^(?s:.*(b|d).)$"),
            ("a.b", "^(?s:a\\.b)$"),
            ("[a-c%]+", "^(?s:[a-c%]+)$"),
            ("100\\%", "^(?s:100\\%)$"),
        ] {
            assert_eq!(regular(pattern, Some('\\')), expected);
        }
    }

    #[test]
    fn patterns_are_escaped_with_a_backslash() {
        for (pattern, escape, expected) in [
            ("a!%b", Some('!'), "a\\%b"),
            ("a!!b", Some('!'), "a!b"),
            ("a\\b%", Some('!'), "a\\\\b%"),
            ("a\\%", None, "a\\\\%"),
            ("a%%", Some('%'), "a\\%"),
            ("a!", Some('!'), "a!"),
        ] {
            assert_eq!(escaped(pattern, escape), expected);
        }
    }

    #[test]
    fn globs_are_regular_expressions() {
        for (pattern, expected) in [
            ("a*", "^(?s:a.*)$"),
            ("?.b", "^(?s:.\\.b)$"),
            ("[!a-c]x", "^(?s:[^a-c]x)$"),
            ("\\*", "^(?s:\\*)$"),
        ] {
            assert_eq!(of_glob(pattern), expected);
        }
    }
}
