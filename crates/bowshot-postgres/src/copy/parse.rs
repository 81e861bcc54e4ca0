//! Parses COPY from and to the connection; COPY with files goes to the session.

use super::{Form, Options};
use crate::status::Failure;
use crate::tokens::{Kind, Token, Tokens, tokens};

/// A COPY over the connection.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CopyStatement {
    pub(super) direction: Direction,
    pub(super) options: Options,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Direction {
    /// Sends the rows of a query to the client.
    Out(String),
    /// Adds rows of the client to a table.
    In(Table),
}

/// A table and its columns; none means all.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Table {
    /// One to three names.
    pub(super) path: Vec<String>,
    pub(super) columns: Vec<String>,
}

impl Table {
    /// The query for all rows.
    pub(super) fn query(&self) -> String {
        let quoted = |names: &[String], between: &str| -> String {
            let quoted = names.iter().map(|name| format!("\"{}\"", name.replace('"', "\"\"")));
            quoted.collect::<Vec<_>>().join(between)
        };
        let columns = if self.columns.is_empty() { "*".to_owned() } else { quoted(&self.columns, ", ") };
        format!("SELECT {columns} FROM {}", quoted(&self.path, "."))
    }
}

fn syntax(message: impl Into<String>) -> Failure {
    Failure::new("42601", message).with_hint(
        "COPY table [(columns)] | (query) TO STDOUT, or COPY table [(columns)] FROM STDIN, then options",
    )
}

/// The tokens of the rest of a statement.
struct Rest<'a> {
    sql: &'a str,
    tokens: std::iter::Peekable<Tokens<'a>>,
}

impl<'a> Rest<'a> {
    fn next_is(&mut self, word: &str) -> bool {
        self.tokens.next_if(|token| token.is(word)).is_some()
    }

    fn next_symbol(&mut self, symbol: char) -> bool {
        self.tokens.next_if(|token| token.kind == Kind::Symbol(symbol)).is_some()
    }

    fn name(&mut self) -> Result<String, Failure> {
        self.tokens.next().and_then(|token| token.name()).ok_or_else(|| syntax("COPY: a name is missing"))
    }

    fn names(&mut self) -> Result<Vec<String>, Failure> {
        let mut names = vec![self.name()?];
        while self.next_symbol(',') {
            names.push(self.name()?);
        }
        if self.next_symbol(')') { Ok(names) } else { Err(syntax("COPY: a bracket is not closed")) }
    }

    /// The content of brackets, after the opening one.
    fn bracketed(&mut self) -> Option<&'a str> {
        let start = self.tokens.peek()?.range().start;
        let mut depth = 1_usize;
        for token in self.tokens.by_ref() {
            match token.kind {
                Kind::Symbol('(') => depth += 1,
                Kind::Symbol(')') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return self.sql.get(start..token.range().start);
            }
        }
        None
    }
}

impl CopyStatement {
    /// Parses a COPY; `None` for one with files.
    ///
    /// # Errors
    /// For a COPY over the connection that is not valid.
    pub(crate) fn parse(sql: &str) -> Result<Option<Self>, Failure> {
        if !is_over_connection(sql) {
            return Ok(None);
        }
        let mut rest = Rest { sql, tokens: tokens(sql).peekable() };
        rest.next_is("COPY");
        // `COPY BINARY t …` of PostgreSQL before 7.3 is still read by PostgreSQL.
        let binary = rest.next_is("BINARY");
        let (query, table) = if rest.next_symbol('(') {
            let query = rest.bracketed().ok_or_else(|| syntax("COPY: a bracket is not closed"))?;
            (Some(query.trim().to_owned()), None)
        } else {
            (None, Some(table(&mut rest)?))
        };
        let direction = if rest.next_is("TO") {
            Direction::Out(query.or(table.map(|table| table.query())).unwrap_or_default())
        } else {
            rest.next_is("FROM");
            Direction::In(table.ok_or_else(|| syntax("COPY FROM needs a table"))?)
        };
        rest.tokens.next();
        let options = options(&mut rest, binary)?;
        Ok(Some(Self { direction, options }))
    }
}

/// Whether `TO STDOUT` or `FROM STDIN` stands outside of brackets.
fn is_over_connection(sql: &str) -> bool {
    let mut depth = 0_usize;
    let mut last: Option<Token<'_>> = None;
    for token in tokens(sql) {
        match token.kind {
            Kind::Symbol('(') => depth += 1,
            Kind::Symbol(')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        let after = |word: &str| last.is_some_and(|last| last.is(word));
        if depth == 0 && (after("TO") && token.is("STDOUT") || after("FROM") && token.is("STDIN")) {
            return true;
        }
        last = Some(token);
    }
    false
}

fn table(rest: &mut Rest<'_>) -> Result<Table, Failure> {
    let mut path = vec![rest.name()?];
    while rest.next_symbol('.') {
        path.push(rest.name()?);
    }
    if path.len() > 3 {
        return Err(syntax("COPY: a table has three names at most"));
    }
    let columns = if rest.next_symbol('(') { rest.names()? } else { Vec::new() };
    Ok(Table { path, columns })
}

/// The options as written, before defaults are filled in.
#[derive(Default)]
struct Said {
    form: Option<Form>,
    delimiter: Option<String>,
    null: Option<String>,
    header: bool,
    quote: Option<String>,
    escape: Option<String>,
}

fn options(rest: &mut Rest<'_>, binary: bool) -> Result<Options, Failure> {
    let mut said = Said { form: binary.then_some(Form::Binary), ..Said::default() };
    rest.next_is("WITH");
    if rest.next_symbol('(') {
        loop {
            option(rest, &mut said)?;
            if !rest.next_symbol(',') {
                break;
            }
        }
        if !rest.next_symbol(')') {
            return Err(syntax("COPY: a bracket is not closed"));
        }
    } else {
        while rest.tokens.peek().is_some() {
            option(rest, &mut said)?;
        }
    }
    if rest.next_is("WHERE") {
        return Err(
            Failure::new("0A000", "COPY FROM has no WHERE here").with_hint("copy into a temporary table")
        );
    }
    if let Some(more) = rest.tokens.next() {
        return Err(syntax(format!("COPY: `{}` is not understood", more.text)));
    }
    said.complete()
}

/// One option, in either of the two forms of PostgreSQL.
fn option(rest: &mut Rest<'_>, said: &mut Said) -> Result<(), Failure> {
    let name = rest.name()?;
    match name.as_str() {
        "format" => {
            let format = rest.tokens.next().and_then(|token| token.name().or_else(|| token.string()));
            said.form = Some(match format.as_deref().map(str::to_ascii_lowercase).as_deref() {
                Some("text") => Form::Text,
                Some("csv") => Form::Csv,
                Some("binary") => Form::Binary,
                _ => return Err(Failure::new("22023", "the format of COPY is text, csv or binary")),
            });
        }
        "csv" => said.form = Some(Form::Csv),
        "binary" => said.form = Some(Form::Binary),
        "delimiter" | "delimiters" => said.delimiter = Some(string(rest)?),
        "null" => said.null = Some(string(rest)?),
        "quote" => said.quote = Some(string(rest)?),
        "escape" => said.escape = Some(string(rest)?),
        "header" => said.header = is_on(rest),
        "freeze" => drop(is_on(rest)),
        "encoding" => {
            let encoding = string(rest)?.to_ascii_uppercase().replace('-', "");
            if encoding != "UTF8" {
                return Err(Failure::new("0A000", "the encoding of COPY is UTF8"));
            }
        }
        other => return Err(Failure::new("0A000", format!("the option `{other}` of COPY is not supported"))),
    }
    Ok(())
}

fn string(rest: &mut Rest<'_>) -> Result<String, Failure> {
    rest.next_is("AS");
    let text = rest.tokens.next().and_then(|token| token.string());
    text.ok_or_else(|| syntax("COPY: a string is missing"))
}

/// Without a value it is true.
fn is_on(rest: &mut Rest<'_>) -> bool {
    let is_value = |token: &Token<'_>| {
        ["true", "on", "match", "false", "off"].iter().any(|word| token.is(word))
            || token.kind == Kind::Number
    };
    match rest.tokens.next_if(is_value) {
        Some(token) => !(token.is("false") || token.is("off") || token.text == "0"),
        None => true,
    }
}

impl Said {
    fn complete(self) -> Result<Options, Failure> {
        let form = self.form.unwrap_or(Form::Text);
        let (delimiter, null) = match form {
            Form::Csv => (",", ""),
            Form::Text | Form::Binary => ("\t", "\\N"),
        };
        let quote = byte("quote", self.quote.as_deref().unwrap_or("\""))?;
        let escape = self.escape.as_deref().map_or(Ok(quote), |escape| byte("escape", escape))?;
        let delimiter = byte("delimiter", self.delimiter.as_deref().unwrap_or(delimiter))?;
        if matches!(delimiter, b'\n' | b'\r' | b'\\') || form == Form::Csv && delimiter == quote {
            return Err(Failure::new("22023", "COPY delimiter cannot be newline, backslash or the quote"));
        }
        let null = self.null.unwrap_or_else(|| null.to_owned());
        Ok(Options { form, delimiter, null, header: self.header, quote, escape })
    }
}

fn byte(what: &str, text: &str) -> Result<u8, Failure> {
    match text.as_bytes() {
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err(Failure::new("0A000", format!("COPY {what} must be a single one-byte character"))),
    }
}
