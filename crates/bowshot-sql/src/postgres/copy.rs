//! COPY from and to the connection (PostgreSQL manual, "COPY"); COPY with files goes to the session.

use super::{lower_name, tokens};
use crate::source_tokens::{SourceToken, SourceTokens};
use bowshot_api::{Error, ErrorKind, Reason, Result};
use sqlparser::tokenizer::Token;

/// A COPY over the connection.
#[derive(Debug, Clone, PartialEq)]
pub struct CopyStatement {
    pub direction: CopyDirection,
    /// The options, with their defaults.
    pub options: CopyOptions,
}

#[derive(Debug, Clone, PartialEq)]
pub enum CopyDirection {
    /// The rows of a query to the client.
    Out(String),
    /// Rows of the client into a table.
    In(CopyTable),
}

/// A table and its columns; none means all.
#[derive(Debug, Clone, PartialEq)]
pub struct CopyTable {
    /// One to three names.
    pub path: Vec<String>,
    /// The names of the columns.
    pub columns: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyForm {
    /// Values between tabs, with escapes.
    Text,
    /// Values between commas, in quotes where they need them.
    Csv,
    /// Values as in binary results.
    Binary,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CopyOptions {
    pub form: CopyForm,
    /// What stands between values.
    pub delimiter: u8,
    /// What stands for NULL.
    pub null: String,
    /// Whether the first line has the names of the columns.
    pub header: bool,
    /// What stands around values of CSV.
    pub quote: u8,
    /// What stands before a quote in a value of CSV.
    pub escape: u8,
}

impl CopyTable {
    /// The query for all rows.
    pub fn query(&self) -> String {
        let quoted = |names: &[String], between: &str| -> String {
            let quoted = names.iter().map(|name| format!("\"{}\"", name.replace('"', "\"\"")));
            quoted.collect::<Vec<_>>().join(between)
        };
        let columns = if self.columns.is_empty() { "*".to_owned() } else { quoted(&self.columns, ", ") };
        format!("SELECT {columns} FROM {}", quoted(&self.path, "."))
    }
}

fn syntax(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Syntax, message).with_hint(
        "COPY table [(columns)] | (query) TO STDOUT, or COPY table [(columns)] FROM STDIN, then options",
    )
}

fn name(rest: &mut SourceTokens<'_>) -> Result<String> {
    let token = rest.next();
    token.as_ref().and_then(lower_name).ok_or_else(|| syntax("COPY: a name is missing"))
}

fn names(rest: &mut SourceTokens<'_>) -> Result<Vec<String>> {
    let mut names = vec![name(rest)?];
    while rest.take_token(&Token::Comma) {
        names.push(name(rest)?);
    }
    if rest.take_token(&Token::RParen) { Ok(names) } else { Err(syntax("COPY: a bracket is not closed")) }
}

fn string(rest: &mut SourceTokens<'_>) -> Result<String> {
    rest.take_word("AS");
    rest.next()
        .and_then(|token| token.string().map(str::to_owned))
        .ok_or_else(|| syntax("COPY: a string is missing"))
}

/// Without a value it is true.
fn is_on(rest: &mut SourceTokens<'_>) -> bool {
    let is_value = |token: &SourceToken<'_>| {
        ["true", "on", "match", "false", "off"].iter().any(|word| token.is(word)) || token.is_number()
    };
    match rest.next_if(is_value) {
        Some(token) => !(token.is("false") || token.is("off") || token.text == "0"),
        None => true,
    }
}

impl CopyStatement {
    /// Parses a COPY; `None` for one with files.
    pub(super) fn parse(sql: &str) -> Result<Option<Self>> {
        if !is_over_connection(sql) {
            return Ok(None);
        }
        let mut rest = tokens(sql);
        rest.take_word("COPY");
        // `COPY BINARY t …` of PostgreSQL before 7.3 is still read by PostgreSQL.
        let binary = rest.take_word("BINARY");
        let (query, table) = if rest.take_token(&Token::LParen) {
            let query = rest.bracketed().ok_or_else(|| syntax("COPY: a bracket is not closed"))?;
            (Some(query.trim().to_owned()), None)
        } else {
            (None, Some(table(&mut rest)?))
        };
        let direction = if rest.take_word("TO") {
            CopyDirection::Out(query.or(table.map(|table| table.query())).unwrap_or_default())
        } else {
            rest.take_word("FROM");
            CopyDirection::In(table.ok_or_else(|| syntax("COPY FROM needs a table"))?)
        };
        rest.next();
        let options = options(&mut rest, binary)?;
        Ok(Some(Self { direction, options }))
    }
}

/// Whether `TO STDOUT` or `FROM STDIN` stands outside of brackets.
fn is_over_connection(sql: &str) -> bool {
    let mut depth = 0_i64;
    let mut last: Option<SourceToken<'_>> = None;
    for token in tokens(sql) {
        depth += token.depth();
        let after = |word: &str| last.as_ref().is_some_and(|last| last.is(word));
        if depth == 0 && (after("TO") && token.is("STDOUT") || after("FROM") && token.is("STDIN")) {
            return true;
        }
        last = Some(token);
    }
    false
}

fn table(rest: &mut SourceTokens<'_>) -> Result<CopyTable> {
    let mut path = vec![name(rest)?];
    while rest.take_token(&Token::Period) {
        path.push(name(rest)?);
    }
    if path.len() > 3 {
        return Err(syntax("COPY: a table has three names at most"));
    }
    let columns = if rest.take_token(&Token::LParen) { names(rest)? } else { Vec::new() };
    Ok(CopyTable { path, columns })
}

/// The options as written, before defaults are filled in.
#[derive(Default)]
struct Said {
    form: Option<CopyForm>,
    delimiter: Option<String>,
    null: Option<String>,
    header: bool,
    quote: Option<String>,
    escape: Option<String>,
}

fn options(rest: &mut SourceTokens<'_>, binary: bool) -> Result<CopyOptions> {
    let mut said = Said { form: binary.then_some(CopyForm::Binary), ..Said::default() };
    rest.take_word("WITH");
    if rest.take_token(&Token::LParen) {
        loop {
            option(rest, &mut said)?;
            if !rest.take_token(&Token::Comma) {
                break;
            }
        }
        if !rest.take_token(&Token::RParen) {
            return Err(syntax("COPY: a bracket is not closed"));
        }
    } else {
        while rest.peek().is_some() {
            option(rest, &mut said)?;
        }
    }
    if rest.take_word("WHERE") {
        return Err(
            Error::unsupported("COPY FROM has no WHERE here").with_hint("copy into a temporary table")
        );
    }
    if let Some(more) = rest.next() {
        return Err(syntax(format!("COPY: `{}` is not understood", more.text)));
    }
    said.complete()
}

/// One option, in either of the two forms of PostgreSQL.
fn option(rest: &mut SourceTokens<'_>, said: &mut Said) -> Result<()> {
    let name = name(rest)?;
    match name.as_str() {
        "format" => {
            let format =
                rest.next().and_then(|token| token.name().or_else(|| token.string().map(str::to_owned)));
            said.form = Some(match format.as_deref().map(str::to_ascii_lowercase).as_deref() {
                Some("text") => CopyForm::Text,
                Some("csv") => CopyForm::Csv,
                Some("binary") => CopyForm::Binary,
                _ => return Err(invalid("the format of COPY is text, csv or binary")),
            });
        }
        "csv" => said.form = Some(CopyForm::Csv),
        "binary" => said.form = Some(CopyForm::Binary),
        "delimiter" | "delimiters" => said.delimiter = Some(string(rest)?),
        "null" => said.null = Some(string(rest)?),
        "quote" => said.quote = Some(string(rest)?),
        "escape" => said.escape = Some(string(rest)?),
        "header" => said.header = is_on(rest),
        "freeze" => drop(is_on(rest)),
        "encoding" => {
            let encoding = string(rest)?.to_ascii_uppercase().replace('-', "");
            if encoding != "UTF8" {
                return Err(Error::unsupported("the encoding of COPY is UTF8"));
            }
        }
        other => return Err(Error::unsupported(format!("the option `{other}` of COPY is not supported"))),
    }
    Ok(())
}

fn invalid(message: &str) -> Error {
    Error::invalid(message).with_reason(Reason::InvalidValue)
}

impl Said {
    fn complete(self) -> Result<CopyOptions> {
        let form = self.form.unwrap_or(CopyForm::Text);
        let (delimiter, null) = match form {
            CopyForm::Csv => (",", ""),
            CopyForm::Text | CopyForm::Binary => ("\t", "\\N"),
        };
        let quote = byte("quote", self.quote.as_deref().unwrap_or("\""))?;
        let escape = self.escape.as_deref().map_or(Ok(quote), |escape| byte("escape", escape))?;
        let delimiter = byte("delimiter", self.delimiter.as_deref().unwrap_or(delimiter))?;
        if matches!(delimiter, b'\n' | b'\r' | b'\\') || form == CopyForm::Csv && delimiter == quote {
            return Err(invalid("COPY delimiter cannot be newline, backslash or the quote"));
        }
        let null = self.null.unwrap_or_else(|| null.to_owned());
        Ok(CopyOptions { form, delimiter, null, header: self.header, quote, escape })
    }
}

fn byte(what: &str, text: &str) -> Result<u8> {
    match text.as_bytes() {
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err(Error::unsupported(format!("COPY {what} must be a single one-byte character"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(sql: &str) -> CopyStatement {
        CopyStatement::parse(sql).unwrap().unwrap()
    }

    fn options(text: &str) -> CopyOptions {
        parse(&format!("copy t from stdin {text}")).options
    }

    #[test]
    fn statements_are_read() {
        let table = CopyTable { path: vec!["t".into()], columns: vec!["a".into()] };
        for (sql, expected) in [
            ("COPY t TO STDOUT", CopyDirection::Out("SELECT * FROM \"t\"".into())),
            (
                "copy S.\"T\" (a, \"B\"\"\") to stdout with csv header",
                CopyDirection::Out("SELECT \"a\", \"B\"\"\" FROM \"s\".\"T\"".into()),
            ),
            (
                "COPY (select ')' from (t)) TO STDOUT (FORMAT 'binary')",
                CopyDirection::Out("select ')' from (t)".into()),
            ),
            ("copy t(a) from stdin", CopyDirection::In(table)),
        ] {
            assert_eq!(parse(sql).direction, expected, "{sql}");
        }
        assert!(CopyStatement::parse("copy t to 'file.csv'").unwrap().is_none());
        for sql in [
            "copy (select 1) from stdin",
            "copy t from stdin (colour 'red')",
            "copy t from stdin csv delimiter ',,'",
            "copy t from stdin where a > 1",
        ] {
            assert!(CopyStatement::parse(sql).is_err(), "{sql}");
        }
    }

    #[test]
    fn options_have_two_forms() {
        let csv = options("(format csv, delimiter ';', null 'n', header true, quote '''', escape E'\\\\')");
        let expected = CopyOptions {
            form: CopyForm::Csv,
            delimiter: b';',
            null: "n".into(),
            header: true,
            quote: b'\'',
            escape: b'\\',
        };
        assert_eq!(csv, expected);
        assert_eq!(
            options("with csv header delimiter as ';' null as 'n' quote as '''' escape as '\\'"),
            expected
        );
        assert_eq!(options("binary").form, CopyForm::Binary);
        assert_eq!(options("delimiter E'\\t'"), options(""));
        assert_eq!(options("(header off, encoding 'utf-8')"), options(""));
    }
}
