//! `FROM t FOR VERSION AS OF 3` and `FROM t FOR TIMESTAMP AS OF '…'`: the parser does not know them for all dialects. The
//! text is rewritten before it is parsed: the table's name gets a mark that [`crate::catalog`] understands.

use crate::plan::{Offsets, stands_at};
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_storage::tables::durable::AsOf;
use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use datafusion::sql::sqlparser::dialect::Dialect;
use datafusion::sql::sqlparser::keywords::{Keyword, RESERVED_FOR_IDENTIFIER, RESERVED_FOR_TABLE_ALIAS};
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use std::borrow::Cow;

/// Before the version, which a `:` ends.
const VERSION_MARK: &str = "__bowshot_version:";
/// Before the time in microseconds since 1970, which a `:` ends.
const TIME_MARK: &str = "__bowshot_time:";

/// The name of a table and which state of it is meant, of a name that [`rewrite`] has made.
pub(crate) fn marked(name: &str) -> Option<(&str, AsOf)> {
    if let Some(rest) = name.strip_prefix(VERSION_MARK) {
        let (version, name) = rest.split_once(':')?;
        return Some((name, AsOf::Version(version.parse().ok()?)));
    }
    let (time, name) = name.strip_prefix(TIME_MARK)?.split_once(':')?;
    Some((name, AsOf::Time(DateTime::from_timestamp_micros(time.parse().ok()?)?)))
}

/// The text with marked names; unchanged if it names no earlier state.
///
/// # Errors
/// `Syntax` for a version that is no number, and a time that is none.
pub(crate) fn rewrite<'sql>(sql: &'sql str, dialect: &dyn Dialect) -> Result<Cow<'sql, str>> {
    let mentioned = sql.to_ascii_uppercase();
    if !mentioned.contains("VERSION") && !mentioned.contains("TIMESTAMP") {
        return Ok(Cow::Borrowed(sql));
    }
    // What cannot be read is the parser's to complain of.
    let Ok(tokens) = Tokenizer::new(dialect, sql).tokenize_with_location() else {
        return Ok(Cow::Borrowed(sql));
    };
    let mut offsets = Offsets::new(sql);
    let starts: Vec<usize> = tokens.iter().filter_map(|token| offsets.of(token.span.start)).collect();
    if starts.len() != tokens.len() {
        return Ok(Cow::Borrowed(sql));
    }
    let tokens: Vec<Token> = tokens.into_iter().map(|token| token.token).collect();
    // Where a token ends the next one begins: blanks are tokens too.
    let end = |at: usize| starts.get(at + 1).copied().unwrap_or(sql.len());
    // All else stays as it was written: a literal that is printed anew may be another one.
    let (mut text, mut copied) = (String::with_capacity(sql.len() + 64), 0);
    for at in 0..tokens.len() {
        let Some(found) = find(&tokens, at)? else { continue };
        let (Some(name), Some(clause)) = (starts.get(found.name), starts.get(found.clause.start)) else {
            continue;
        };
        let stands = |at: usize| {
            let place = starts.get(at).zip(tokens.get(at));
            place.is_some_and(|(start, token)| stands_at(sql, *start, token))
        };
        if !stands(found.name) || !stands(found.clause.start) {
            continue;
        }
        text.push_str(sql.get(copied..*name).unwrap_or_default());
        text.push_str(&quoted(&format!("{}{}", found.mark, found.table)));
        text.push_str(sql.get(end(found.name)..*clause).unwrap_or_default());
        if !has_alias(&tokens, found.clause.end) {
            text.push_str(&format!("AS {}", quoted(&found.table)));
        }
        copied = end(found.clause.end - 1);
    }
    text.push_str(sql.get(copied..).unwrap_or_default());
    Ok(if copied == 0 { Cow::Borrowed(sql) } else { Cow::Owned(text) })
}

struct Found {
    /// Place of the last part of the table's name, and what it says.
    name: usize,
    table: String,
    /// Places from the first word of the clause to after its value.
    clause: std::ops::Range<usize>,
    mark: String,
}

/// The clause whose word `VERSION` or `TIMESTAMP` is at a place.
fn find(tokens: &[Token], at: usize) -> Result<Option<Found>> {
    let Some(Keyword::VERSION | Keyword::TIMESTAMP) = keyword(tokens.get(at)) else { return Ok(None) };
    let is = |at: &usize, word: Keyword| keyword(tokens.get(*at)) == Some(word);
    let of = next(tokens, at).filter(|at| is(at, Keyword::AS)).and_then(|at| next(tokens, at));
    let Some(of) = of.filter(|at| is(at, Keyword::OF)) else { return Ok(None) };
    let Some(before) = previous(tokens, at) else { return Ok(None) };
    let first = if is(&before, Keyword::FOR) { before } else { at };
    let Some(name) = previous(tokens, first) else { return Ok(None) };
    let Some(Token::Word(word)) = tokens.get(name) else { return Ok(None) };
    // `SELECT version AS of FROM t` has a keyword before it, which is no name.
    if word.quote_style.is_none() && RESERVED_FOR_IDENTIFIER.contains(&word.keyword) {
        return Ok(None);
    }
    if word.quote_style.is_none() && word.keyword == Keyword::SELECT {
        return Ok(None);
    }
    let table = if word.quote_style.is_some() { word.value.clone() } else { word.value.to_ascii_lowercase() };
    let value = next(tokens, of).unwrap_or(of);
    let mark = mark(keyword(tokens.get(at)), tokens.get(value))?;
    Ok(Some(Found { name, table, clause: first..value + 1, mark }))
}

fn mark(kind: Option<Keyword>, value: Option<&Token>) -> Result<String> {
    let shown = || value.map(ToString::to_string).unwrap_or_default();
    match (kind, value) {
        (Some(Keyword::VERSION), Some(Token::Number(number, _))) => {
            let version: u64 = number.parse().map_err(|_| not_a_version(number))?;
            Ok(format!("{VERSION_MARK}{version}:"))
        }
        (Some(Keyword::VERSION), _) => Err(not_a_version(&shown())),
        (_, Some(Token::SingleQuotedString(text))) => {
            Ok(format!("{TIME_MARK}{}:", time(text)?.timestamp_micros()))
        }
        _ => Err(not_a_time(&shown())),
    }
}

/// Whether a name for the table stands at a place or after blanks there.
fn has_alias(tokens: &[Token], at: usize) -> bool {
    match next(tokens, at - 1).and_then(|at| tokens.get(at)) {
        Some(Token::Word(word)) => {
            word.quote_style.is_some()
                || word.keyword == Keyword::AS
                || !RESERVED_FOR_TABLE_ALIAS.contains(&word.keyword)
        }
        _ => false,
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn keyword(token: Option<&Token>) -> Option<Keyword> {
    match token {
        Some(Token::Word(word)) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

pub(crate) fn next(tokens: &[Token], at: usize) -> Option<usize> {
    (at + 1..tokens.len()).find(|at| !matches!(tokens.get(*at), Some(Token::Whitespace(_))))
}

pub(crate) fn previous(tokens: &[Token], at: usize) -> Option<usize> {
    (0..at).rev().find(|at| !matches!(tokens.get(*at), Some(Token::Whitespace(_))))
}

/// A time with a zone, else in UTC; a date is its first moment.
fn time(text: &str) -> Result<DateTime<Utc>> {
    if let Ok(time) = DateTime::parse_from_rfc3339(&text.replacen(' ', "T", 1)) {
        return Ok(time.to_utc());
    }
    for format in ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M"] {
        if let Ok(time) = NaiveDateTime::parse_from_str(text, format) {
            return Ok(time.and_utc());
        }
    }
    let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().and_then(|day| day.and_hms_opt(0, 0, 0));
    day.map(|day| day.and_utc()).ok_or_else(|| not_a_time(text))
}

fn not_a_version(text: &str) -> Error {
    Error::new(ErrorKind::Syntax, format!("`{text}` is no version of a table"))
        .with_hint("write a number, as in `FOR VERSION AS OF 3`")
}

fn not_a_time(text: &str) -> Error {
    Error::new(ErrorKind::Syntax, format!("`{text}` is no point in time"))
        .with_hint("write `FOR TIMESTAMP AS OF '2026-01-31 12:00:00'`, in UTC or with a zone as `+01:00`")
}

#[cfg(test)]
mod tests {
    use super::{AsOf, marked, rewrite};
    use datafusion::sql::sqlparser::dialect::GenericDialect;

    #[test]
    fn names_are_marked_and_columns_keep_their_table() {
        for (sql, expected) in [
            ("SELECT 1", "SELECT 1"),
            ("SELECT version AS of_it FROM t", "SELECT version AS of_it FROM t"),
            ("SELECT version AS of FROM t", "SELECT version AS of FROM t"),
            ("SELECT * FROM T FOR VERSION AS OF 3", "SELECT * FROM \"__bowshot_version:3:t\" AS \"t\""),
            (
                "SELECT * FROM a.\"B\" version as of 3 x JOIN u ON true",
                "SELECT * FROM a.\"__bowshot_version:3:B\"  x JOIN u ON true",
            ),
            (
                "SELECT * FROM t FOR VERSION AS OF 1 data JOIN t VERSION AS OF 2 ON true",
                "SELECT * FROM \"__bowshot_version:1:t\"  data JOIN \"__bowshot_version:2:t\" AS \"t\" ON true",
            ),
            (
                "SELECT * FROM \"q\"\"u\" FOR VERSION AS OF 1 WHERE name = 'x'' OR true --' AND e = E'it\\'s'",
                "SELECT * FROM \"__bowshot_version:1:q\"\"u\" AS \"q\"\"u\" WHERE name = 'x'' OR true --' AND e = E'it\\'s'",
            ),
            (
                "SELECT * FROM t FOR TIMESTAMP AS OF '1970-01-01 00:00:01' WHERE 'VERSION AS OF' = ''",
                "SELECT * FROM \"__bowshot_time:1000000:t\" AS \"t\" WHERE 'VERSION AS OF' = ''",
            ),
        ] {
            assert_eq!(rewrite(sql, &GenericDialect {}).expect("is read"), expected);
        }
        assert!(rewrite("SELECT * FROM t FOR VERSION AS OF -1", &GenericDialect {}).is_err());
        assert!(rewrite("SELECT * FROM t FOR TIMESTAMP AS OF 'soon'", &GenericDialect {}).is_err());
        assert_eq!(marked("__bowshot_version:3:a:b"), Some(("a:b", AsOf::Version(3))));
        assert_eq!(marked("t"), None);
    }
}
