//! Texts of MySQL before and after they are statements: comments with code in them, raw bytes, and quotes.

use super::tokens;
use crate::dialect::{Dialect, DialectName};
use crate::sqlparser_statement::parse_expression;
use crate::template::meaning;
use crate::walk::Tree;
use bowshot_api::Result;
use sqlparser::ast::{DataType, Expr, Ident, Value, ValueWithSpan, VisitorMut};
use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::ops::ControlFlow;

/// A text as a string of SQL, in one line: clients read what `SHOW CREATE TABLE` gives line by line.
pub fn quoted_text(text: &str) -> String {
    format!("'{}'", escaped(text).replace('\'', "''"))
}

fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('\0', "\\0");
    text.replace('\n', "\\n").replace('\r', "\\r")
}

/// A default, as tables keep it, as MySQL writes it: what is more than a value or a call stands in parentheses.
pub fn default_text(kept: &str) -> Result<String> {
    let expr = rewritten(kept)?;
    Ok(match expr {
        Expr::Value(_) | Expr::UnaryOp { .. } | Expr::Nested(_) | Expr::Function(_) => expr.to_string(),
        expr => format!("({expr})"),
    })
}

/// A condition or a computed value over columns, as tables keep it, as MySQL writes it.
pub fn expression_text(kept: &str) -> Result<String> {
    Ok(rewritten(kept)?.to_string())
}

fn rewritten(kept: &str) -> Result<Expr> {
    let mut expr = parse_expression(kept, Dialect::new(DialectName::Ansi))?;
    let ControlFlow::Continue(()) = expr.walk(&mut InMySql);
    Ok(expr)
}

/// The number of `CAST((3) AS BIGINT)`: so a number of MySQL is kept, which has 64 bits.
fn wide_number(expr: &Expr) -> Option<Expr> {
    let Expr::Cast { expr, data_type: DataType::BigInt(None), .. } = expr else { return None };
    let number = if let Expr::Nested(inner) = expr.as_ref() { inner } else { expr };
    let is_number = matches!(number.as_ref(), Expr::Value(value) if matches!(value.value, Value::Number(..)));
    is_number.then(|| number.as_ref().clone())
}

/// Names in backticks, numbers as they were written, and texts whose backslashes are doubled.
struct InMySql;

impl VisitorMut for InMySql {
    type Break = Infallible;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Some(number) = wide_number(expr) {
            *expr = number;
        }
        let names = match expr {
            Expr::Identifier(name) => std::slice::from_mut(name),
            Expr::CompoundIdentifier(names) => names.as_mut_slice(),
            _ => return ControlFlow::Continue(()),
        };
        for name in names {
            *name = Ident::with_quote('`', meaning(name));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<Infallible> {
        if let Value::SingleQuotedString(text) = &mut value.value {
            *text = escaped(text);
        }
        ControlFlow::Continue(())
    }
}

/// A name in backticks.
pub fn quoted_name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// The text with the content of `/*! … */` as code, unless it is for a newer version than that of the server (MySQL manual,
/// "Comments"). Positions stay the same.
pub fn executable<'a>(sql: &'a str, server_version: &str) -> Cow<'a, str> {
    if !sql.contains("/*!") {
        return Cow::Borrowed(sql);
    }
    let version = version_number(server_version);
    let (mut out, mut copied) = (String::with_capacity(sql.len()), 0);
    for comment in tokens(sql).with_comments().filter(|token| token.text.starts_with("/*!")) {
        let place = comment.range();
        out.push_str(sql.get(copied..place.start).unwrap_or_default());
        out.push_str(&uncommented(comment.text, version));
        copied = place.end;
    }
    out.push_str(sql.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

/// The content of one such comment, or as many blanks.
fn uncommented(comment: &str, server_version: u32) -> String {
    let inner = comment.strip_prefix("/*!").unwrap_or(comment);
    let inner = inner.strip_suffix("*/").unwrap_or(inner);
    let digits = inner.len() - inner.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let is_version = matches!(digits, 5 | 6);
    let version = inner.get(..digits).unwrap_or_default();
    if is_version && version.parse().is_ok_and(|version: u32| version > server_version) {
        return " ".repeat(comment.len());
    }
    let code = if is_version { inner.get(digits..).unwrap_or_default() } else { inner };
    let before = if is_version { "/*!".len() + digits } else { "/*!".len() };
    let after = comment.len().saturating_sub(before + code.len());
    format!("{}{code}{}", " ".repeat(before), " ".repeat(after))
}

/// `80036` for 8.0.36.
fn version_number(text: &str) -> u32 {
    let mut parts = text.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    next() * 10_000 + next() * 100 + next()
}

/// The statement with `X'…'` for binary strings `_binary'…'`, in which drivers send raw bytes (MySQL manual, "Character Set
/// Introducers"), so that it is valid UTF-8.
pub fn without_raw_bytes(sql: &[u8]) -> Cow<'_, [u8]> {
    const INTRODUCER: &str = "_binary";
    let has_any = sql.windows(INTRODUCER.len()).any(|part| part.eq_ignore_ascii_case(INTRODUCER.as_bytes()));
    if !has_any {
        return Cow::Borrowed(sql);
    }
    // Each byte is one character, so that a string may have any of them.
    let text: String = sql.iter().copied().map(char::from).collect();
    let (mut out, mut copied) = (String::with_capacity(text.len()), 0);
    let mut tokens = tokens(&text);
    while let Some(token) = tokens.next() {
        if !token.is(INTRODUCER) {
            continue;
        }
        let Some(literal) = tokens.next_if(|next| next.string().is_some()) else { continue };
        out.push_str(text.get(copied..token.range().start).unwrap_or_default());
        out.push_str("X'");
        for byte in unescaped(literal.text) {
            let _ = write!(out, "{byte:02X}");
        }
        out.push('\'');
        copied = literal.range().end;
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(out.chars().filter_map(|character| u8::try_from(character).ok()).collect())
}

/// The bytes of a string in quotes whose characters are bytes.
fn unescaped(literal: &str) -> Vec<u8> {
    let mut bytes = literal.chars().filter_map(|character| u8::try_from(character).ok());
    let (quote, _) = (bytes.next(), bytes.next_back());
    let mut out = Vec::new();
    while let Some(byte) = bytes.next() {
        out.extend(match byte {
            b'\\' => bytes.next().map(unescape_byte),
            doubled if Some(doubled) == quote => bytes.next(),
            other => Some(other),
        });
    }
    out
}

/// The byte that a backslash and this byte stand for (MySQL manual, "String Literals").
pub fn unescape_byte(escaped: u8) -> u8 {
    match escaped {
        b'0' => 0,
        b'b' => 8,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'Z' => 0x1a,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::statement_spans;

    #[test]
    fn strings_and_names_are_written_as_they_are_read() {
        for text in ["it's", r"\", "ä`", "two\nlines\r\n", "\0"] {
            let (written, named) = (quoted_text(text), quoted_name(text));
            assert_eq!(tokens(&written).next().unwrap().string(), Some(text));
            assert_eq!(tokens(&named).next().and_then(|token| token.name()).as_deref(), Some(text));
        }
    }

    #[test]
    fn expressions_are_written_with_mysqls_quotes() {
        for (kept, expected) in [
            (r#""A" > 0 AND b = 'it''s'"#, "`A` > 0 AND `b` = 'it''s'"),
            ("B IS NULL", "`b` IS NULL"),
            ("a = '\\'", r"`a` = '\\'"),
            ("t.a + 1", "`t`.`a` + 1"),
        ] {
            assert_eq!(expression_text(kept).unwrap(), expected, "{kept}");
        }
        for (kept, expected) in [
            ("'x'", "'x'"),
            ("-1", "-1"),
            ("(3 * 5)", "(3 * 5)"),
            ("now()", "now()"),
            ("CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP"),
            ("3 + 5", "(3 + 5)"),
            ("(CAST((3) AS BIGINT) * CAST(a AS BIGINT))", "(3 * CAST(`a` AS BIGINT))"),
        ] {
            assert_eq!(default_text(kept).unwrap(), expected, "{kept}");
        }
        assert!(default_text("1 +").is_err());
    }

    #[test]
    fn comments_for_us_are_none() {
        let words = |sql: &str| tokens(sql).map(|token| token.text.to_owned()).collect::<Vec<_>>();
        for (sql, expected) in [
            ("/*!40101 SET NAMES utf8 */", "SET NAMES utf8"),
            ("create table t (a int) /*! engine=x */", "create table t (a int)  engine=x"),
            ("a /*!99999 b */ c", "a  c"),
            ("'/*!40101 x */' /* y */ -- /*! z */", "'/*!40101 x */' /* y */"),
            ("a /*! b", "a b"),
        ] {
            let found = executable(sql, "8.0.36-bowshot");
            assert_eq!(words(&found), words(expected), "{sql}: {found}");
            assert_eq!(found.len(), sql.len());
        }
    }

    #[test]
    fn texts_of_all_sorts_are_read_to_their_end() {
        let parts = [
            "'", "\"", "`", "\\", "/*", "/*!", "*/", "-- ", "#", "\n", ";", "@@", "@", "a", "ä", "0", " ",
            "80036", "99999", "(", ")", "SET", "KILL", "=", ",", "_utf8", "concat", "\0", "€",
        ];
        let mut random = 1_u64;
        for _ in 0..20_000 {
            let mut sql = String::new();
            for _ in 0..random % 13 {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                sql.push_str(parts[usize::try_from(random >> 33).unwrap() % parts.len()]);
            }
            random = random.wrapping_add(1);
            let read = executable(&sql, "8.0.36");
            assert_eq!(read.len(), sql.len(), "{sql}");
            for place in statement_spans(&read, DialectName::MySql) {
                let statement = read.get(place).expect("a place between letters");
                assert!(tokens(statement).all(|token| !token.text.is_empty()), "{sql}");
                _ = super::super::Statement::parse(statement);
            }
        }
    }

    #[test]
    fn bytes_become_digits_and_the_rest_stays() {
        for (sql, expected) in [
            (b"SELECT 1".as_ref(), b"SELECT 1".as_ref()),
            (b"SELECT _binary'\0\xff\\''''", b"SELECT X'00FF2727'"),
            (b"SELECT _BINARY \"a\\0\"\"\", 'x'", b"SELECT X'610022', 'x'"),
            (
                b"SELECT '_binary''x', `_binary'`, a_binary'x'",
                b"SELECT '_binary''x', `_binary'`, a_binary'x'",
            ),
            (b"/* _binary'x' */ -- _binary'y'\nSELECT 1", b"/* _binary'x' */ -- _binary'y'\nSELECT 1"),
            (b"SELECT '\\'_binary', _binary'a'", b"SELECT '\\'_binary', X'61'"),
            (b"SELECT _binary'a", b"SELECT _binary'a"),
            (b"SELECT _binary", b"SELECT _binary"),
            (b"SELECT _binary'", b"SELECT _binary'"),
        ] {
            let found = without_raw_bytes(sql);
            assert_eq!(found.as_ref(), expected, "{}", String::from_utf8_lossy(sql));
        }
    }
}
