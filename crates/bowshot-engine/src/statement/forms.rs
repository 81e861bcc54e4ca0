//! Forms of statements and types that the parser does not know, spelled as it knows them. Only what stands in the text is
//! looked at; what is not recognised goes on to the parser as it is, which then says what it did not expect.

use crate::statement::{composed_types, table_hints};
use bowshot_api::{Error, Result};
use bowshot_sql::Offsets;
use datafusion::sql::sqlparser::dialect::Dialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use std::borrow::Cow;
use std::collections::HashMap;

/// Stands in the place of the columns of `INSERT … BY NAME`.
pub(crate) const BY_NAME: &str = "__bowshot_by_name";
/// Stands in the place of the query of REFRESH.
pub(crate) const REFRESH: &str = "__bowshot_refresh";
/// Names a condition that holds the clauses of a CREATE TABLE which the parser does not know.
pub(crate) const CLAUSES: &str = "__bowshot_clauses";
/// Schema of the tables that stand for rows while a change is planned (`bowshot_api::catalog_names`): no user reads them by name.
const CHANGE: &str = "__bowshot_change";
/// Bytes at the beginning of a statement in which its form is looked for: values may be many.
const HEAD: usize = 1 << 10;

/// What begins our own names.
const RESERVED: &str = "__bowshot_";

/// The text in a form that the parser knows.
///
/// # Errors
/// `Invalid` for a name that only such a form has.
pub(crate) fn known<'sql>(sql: &'sql str, dialect: &dyn Dialect) -> Result<Cow<'sql, str>> {
    check_names(sql, dialect)?;
    let [first, second] = bowshot_sql::first_words(sql);
    let defines = matches!(first.as_str(), "create" | "alter");
    let own = matches!((first.as_str(), second.as_str()), ("refresh", "materialized") | ("replace", "into"))
        || first == "drop" && mentions(sql, &["force"]);
    let (types, named, calls) = (defines || mentions_type(sql), mentions_by_name(sql), mentions_predict(sql));
    if !(own || types || named || calls) {
        return Ok(Cow::Borrowed(sql));
    }
    let Some(text) = Text::of(sql, dialect) else { return Ok(Cow::Borrowed(sql)) };
    let mut edits = match (first.as_str(), second.as_str()) {
        ("refresh", _) => refresh(&text),
        ("replace", _) => replace(&text),
        ("drop", _) => forced(&text),
        ("create", _) => Some(table_hints::edits(&text)),
        ("alter", "view" | "materialized") => renamed_view(&text),
        _ => None,
    }
    .unwrap_or_default();
    if types {
        edits.extend(composed_types::edits(&text, defines));
    }
    if named {
        edits.extend(by_name(&text).unwrap_or_default());
    }
    if calls {
        edits.extend(predicted(&text));
    }
    Ok(if edits.is_empty() { Cow::Borrowed(sql) } else { Cow::Owned(edited(sql, edits)) })
}

/// Refuses names that stand for something else in the forms that the parser gets.
fn check_names(sql: &str, dialect: &dyn Dialect) -> Result<()> {
    let is_reserved = |part: &[u8]| part.eq_ignore_ascii_case(RESERVED.as_bytes());
    if !sql.as_bytes().windows(RESERVED.len()).any(is_reserved) {
        return Ok(());
    }
    // What is none for the tokenizer is none for the parser.
    let tokens = Tokenizer::new(dialect, sql).tokenize().unwrap_or_default();
    let words = tokens.iter().filter_map(|token| match token {
        Token::Word(word) => Some(word.value.as_str()),
        _ => None,
    });
    let mut before = "";
    for word in words {
        let begins = word.as_bytes().get(..RESERVED.len()).is_some_and(is_reserved);
        let is_form = [BY_NAME, REFRESH, CLAUSES, CHANGE].iter().any(|form| word.eq_ignore_ascii_case(form));
        if is_form || begins && before.eq_ignore_ascii_case("constraint") {
            return Err(Error::invalid(format!("`{word}` is a reserved name"))
                .with_hint(format!("choose a name that does not begin with `{RESERVED}`")));
        }
        before = word;
    }
    Ok(())
}

/// Whether a word may stand at the beginning of the text.
fn mentions(sql: &str, words: &[&str]) -> bool {
    let mut end = sql.len().min(HEAD);
    while !sql.is_char_boundary(end) {
        end -= 1;
    }
    let head = sql.get(..end).unwrap_or(sql).to_ascii_lowercase();
    words.iter().any(|word| head.contains(word))
}

/// Whether the name of a type of several parts may stand somewhere, with a bracket behind it.
fn mentions_type(sql: &str) -> bool {
    const NAMES: [&[u8]; 5] = [b"struct", b"map", b"list", b"array", b"row"];
    let bytes = sql.as_bytes();
    let named = |at: usize| {
        let before = bytes.get(..at).unwrap_or_default().trim_ascii_end();
        let ends = |name: &[u8]| {
            let from = before.len().checked_sub(name.len());
            from.and_then(|from| before.get(from..)).is_some_and(|end| end.eq_ignore_ascii_case(name))
        };
        before.last().is_some_and(u8::is_ascii_alphabetic) && NAMES.into_iter().any(ends)
    };
    let mut brackets = bytes.iter().enumerate().filter(|(_, byte)| matches!(byte, b'(' | b'<'));
    brackets.any(|(at, _)| named(at))
}

/// Whether `BY NAME` may stand somewhere.
fn mentions_by_name(sql: &str) -> bool {
    let before = |at: usize| sql.get(..at).unwrap_or_default().trim_end();
    let ends = |text: &str| {
        let by = text.len().checked_sub(2).and_then(|from| text.get(from..));
        by.is_some_and(|by| by.eq_ignore_ascii_case("by"))
    };
    let mut words = sql.as_bytes().windows(4).enumerate();
    words.any(|(at, word)| word.eq_ignore_ascii_case(b"name") && ends(before(at)))
}

fn mentions_predict(sql: &str) -> bool {
    sql.len() < 64 * HEAD && sql.as_bytes().windows(7).any(|part| part.eq_ignore_ascii_case(b"predict"))
}

/// What takes the place of some bytes.
pub(crate) type Edit = (std::ops::Range<usize>, String);

fn edited(sql: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|(range, _)| range.start);
    let mut text = String::with_capacity(sql.len());
    let mut copied = 0;
    for (range, replacement) in edits {
        if range.start < copied {
            continue;
        }
        text.push_str(sql.get(copied..range.start).unwrap_or_default());
        text.push_str(&replacement);
        copied = range.end;
    }
    text.push_str(sql.get(copied..).unwrap_or_default());
    text
}

/// A statement as tokens, without space and comments.
pub(crate) struct Text<'sql> {
    pub(crate) sql: &'sql str,
    tokens: Vec<(Token, usize)>,
    /// For each token that opens a parenthesis which is closed, the place behind that.
    closed: HashMap<usize, usize>,
}

impl<'sql> Text<'sql> {
    fn of(sql: &'sql str, dialect: &dyn Dialect) -> Option<Self> {
        let tokens = Tokenizer::new(dialect, sql).tokenize_with_location().ok()?;
        let mut offsets = Offsets::new(sql);
        let mut found = Vec::with_capacity(tokens.len() / 2);
        for token in tokens {
            if matches!(token.token, Token::Whitespace(_) | Token::EOF) {
                continue;
            }
            let start = offsets.of(token.span.start)?;
            // Within `/*! … */` the tokenizer tells other places.
            let end = start + length(sql.get(start..)?, &token.token)?;
            found.push((token.token, start, end));
        }
        let tokens: Vec<_> = found.into_iter().map(|(token, start, _)| (token, start)).collect();
        let closed = closed(&tokens);
        Some(Self { sql, tokens, closed })
    }

    pub(crate) fn len(&self) -> usize {
        self.tokens.len()
    }

    pub(crate) fn token(&self, at: usize) -> Option<&Token> {
        self.tokens.get(at).map(|(token, _)| token)
    }

    pub(crate) fn start(&self, at: usize) -> usize {
        self.tokens.get(at).map_or(self.sql.len(), |(_, start)| *start)
    }

    /// The word there in upper case; nothing for what is quoted, or no word.
    pub(crate) fn word(&self, at: usize) -> String {
        match self.token(at) {
            Some(Token::Word(word)) if word.quote_style.is_none() => word.value.to_ascii_uppercase(),
            _ => String::new(),
        }
    }

    pub(crate) fn words(&self, at: usize, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(index, word)| self.word(at + index) == *word)
    }

    /// The place behind the parenthesis that closes the one that is there.
    pub(crate) fn behind(&self, open: usize) -> Option<usize> {
        self.closed.get(&open).copied()
    }

    /// The place behind a name of one or more parts.
    fn behind_name(&self, at: usize) -> usize {
        let mut at = at + 1;
        while matches!(self.token(at), Some(Token::Period)) {
            at += 2;
        }
        at
    }
}

/// The places of the parentheses that are closed, with those behind what closes them.
fn closed(tokens: &[(Token, usize)]) -> HashMap<usize, usize> {
    let (mut open, mut closed) = (Vec::new(), HashMap::new());
    for (at, (token, _)) in tokens.iter().enumerate() {
        match token {
            Token::LParen => open.push(at),
            Token::RParen => {
                closed.extend(open.pop().map(|began| (began, at + 1)));
            }
            _ => {}
        }
    }
    closed
}

/// Only that a token stands where it says.
fn length(rest: &str, token: &Token) -> Option<usize> {
    let first = token.to_string().chars().next()?;
    rest.starts_with(|c: char| c.eq_ignore_ascii_case(&first) || !c.is_alphanumeric()).then_some(1)
}

/// `predict('m', TABLE t)`: a query in the place of the table.
fn predicted(text: &Text<'_>) -> Vec<Edit> {
    let called = |at: &usize| {
        matches!(text.word(*at).as_str(), "PREDICT" | "PREDICT_PROBA")
            && matches!(text.token(at + 1), Some(Token::LParen))
            && matches!(text.token(at + 3), Some(Token::Comma))
            && text.word(at + 4) == "TABLE"
    };
    let edit = |at: usize| {
        let end = text.behind_name(at + 5);
        let name = text.sql.get(text.start(at + 5)..text.start(end))?.trim();
        matches!(text.token(end), Some(Token::RParen))
            .then(|| (text.start(at + 4)..text.start(end), format!("(SELECT * FROM {name})")))
    };
    (0..text.len()).filter(called).filter_map(edit).collect()
}

/// `REFRESH MATERIALIZED VIEW v`
fn refresh(text: &Text<'_>) -> Option<Vec<Edit>> {
    if !text.words(0, &["REFRESH", "MATERIALIZED", "VIEW"]) {
        return None;
    }
    let name = if text.word(3) == "CONCURRENTLY" { 4 } else { 3 };
    let mut end = text.behind_name(name);
    let named = text.sql.get(text.start(name)..text.start(end))?.trim().trim_end_matches(';');
    if text.words(end, &["WITH", "DATA"]) {
        end += 2;
    }
    if matches!(text.token(end), Some(Token::SemiColon)) {
        end += 1;
    }
    (end >= text.len())
        .then(|| vec![(0..text.sql.len(), format!("INSERT OVERWRITE TABLE {named} SELECT {REFRESH}"))])
}

/// `ALTER [MATERIALIZED] VIEW v RENAME TO w`, as of a table.
fn renamed_view(text: &Text<'_>) -> Option<Vec<Edit>> {
    let view = (1..3).find(|at| text.word(*at) == "VIEW")?;
    let name = if text.words(view + 1, &["IF", "EXISTS"]) { view + 3 } else { view + 1 };
    let is_renamed = text.words(text.behind_name(name), &["RENAME", "TO"]);
    is_renamed.then(|| vec![(text.start(1)..text.start(view + 1), "TABLE ".to_owned())])
}

/// `INSERT INTO t BY NAME …`, perhaps behind EXPLAIN or WITH.
fn by_name(text: &Text<'_>) -> Option<Vec<Edit>> {
    let insert = (0..text.len()).find(|at| text.word(*at) == "INSERT")?;
    let into = (insert + 1..insert + 4).find(|at| text.word(*at) == "INTO")?;
    let by = text.behind_name(into + 1);
    text.words(by, &["BY", "NAME"])
        .then(|| vec![(text.start(by)..text.start(by + 2), format!("({BY_NAME}) "))])
}

/// `REPLACE INTO t …`, which not every dialect has.
fn replace(text: &Text<'_>) -> Option<Vec<Edit>> {
    text.words(0, &["REPLACE", "INTO"])
        .then(|| vec![(text.start(0)..text.start(1), "INSERT OR REPLACE ".to_owned())])
}

/// `DROP DATABASE d FORCE`: with all that is in it; what is dropped is gone at once in any case.
fn forced(text: &Text<'_>) -> Option<Vec<Edit>> {
    let last = (0..text.len()).rev().find(|at| !matches!(text.token(*at), Some(Token::SemiColon)))?;
    let kind = (1..4)
        .find(|at| matches!(text.word(*at).as_str(), "TABLE" | "VIEW" | "DATABASE" | "SCHEMA" | "CATALOG"))?;
    // Something may be called so: it is no name behind all of them.
    let mut behind =
        text.behind_name(if text.words(kind + 1, &["IF", "EXISTS"]) { kind + 3 } else { kind + 1 });
    while matches!(text.token(behind), Some(Token::Comma)) {
        behind = text.behind_name(behind + 1);
    }
    if behind != last || text.word(last) != "FORCE" {
        return None;
    }
    let within = matches!(text.word(kind).as_str(), "DATABASE" | "SCHEMA");
    let instead = if within { "CASCADE" } else { "" };
    Some(vec![(text.start(last)..text.start(last) + "FORCE".len(), instead.to_owned())])
}

#[cfg(test)]
mod tests {
    use super::known;
    use datafusion::sql::sqlparser::dialect::GenericDialect;

    #[test]
    fn names_of_our_own_are_refused() {
        for sql in [
            "CREATE TABLE t (a INT, CONSTRAINT __bowshot_clauses CHECK (a > 1))",
            "CREATE TABLE t (a INT, CONSTRAINT \"__Bowshot_Other\" CHECK (a > 1))",
            "ALTER TABLE t ADD CONSTRAINT __bowshot_clauses CHECK ('x')",
            "INSERT INTO t (__bowshot_by_name) SELECT 1",
            "INSERT OVERWRITE TABLE t SELECT __bowshot_refresh",
            "INSERT INTO t SELECT a FROM \"__Bowshot_Change\".\"target\"",
        ] {
            assert!(known(sql, &GenericDialect {}).is_err(), "{sql}");
        }
        let text = "SELECT '__bowshot_clauses', __bowshot_x FROM t -- CONSTRAINT __bowshot_y";
        assert!(known(text, &GenericDialect {}).is_ok());
    }
}
