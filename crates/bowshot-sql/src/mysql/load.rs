//! Parses `LOAD DATA LOCAL INFILE` (MySQL manual, "LOAD DATA Statement").

use super::{quoted_name, tokens};
use crate::source_tokens::{SourceToken, SourceTokens};
use bowshot_api::{Error, ErrorKind, Result};
use sqlparser::tokenizer::Token;

/// Longest terminator, in bytes.
const MAX_TERMINATOR: usize = 64;

/// `LOAD DATA LOCAL INFILE`, as the statement has it: whether the values fit is for who loads the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadStatement {
    /// The name of the file.
    pub file: String,
    /// The parts of the table's name.
    pub table: Vec<String>,
    /// The columns of the fields; none means all.
    pub columns: Vec<String>,
    /// `CHARACTER SET name`
    pub character_set: Option<String>,
    /// `FIELDS TERMINATED BY`
    pub field_end: String,
    /// `ENCLOSED BY`
    pub enclosed: String,
    /// `ESCAPED BY`
    pub escape: String,
    /// `LINES STARTING BY`
    pub line_start: String,
    /// `LINES TERMINATED BY`
    pub line_end: String,
    /// Records to skip at the beginning.
    pub skipped: u64,
}

impl LoadStatement {
    /// Parses a statement that begins with `LOAD DATA`.
    pub(super) fn parse(sql: &str) -> Result<Self> {
        let mut words = tokens(sql);
        expect(&mut words, "load")?;
        expect(&mut words, "data")?;
        _ = words.take_word("low_priority") || words.take_word("concurrent");
        if !words.take_word("local") {
            return Err(Error::unsupported("LOAD DATA reads files of the client only").with_hint(
                "write LOAD DATA LOCAL INFILE, or COPY … FROM for a file in the exchange folder",
            ));
        }
        expect(&mut words, "infile")?;
        let file = text(&mut words)?;
        if words.take_word("replace") {
            return Err(Error::unsupported("REPLACE is not supported in LOAD DATA")
                .with_hint("load into another table, and use INSERT OR REPLACE … SELECT"));
        }
        if words.take_word("ignore") {
            return Err(Error::unsupported(
                "IGNORE is not supported in LOAD DATA: rows that do not fit are errors",
            )
            .with_hint("load into another table, and use INSERT OR IGNORE … SELECT"));
        }
        expect(&mut words, "into")?;
        expect(&mut words, "table")?;
        let mut load = Self {
            file,
            table: path(&mut words)?,
            columns: Vec::new(),
            character_set: character_set(&mut words)?,
            field_end: "\t".to_owned(),
            enclosed: String::new(),
            escape: "\\".to_owned(),
            line_start: String::new(),
            line_end: "\n".to_owned(),
            skipped: 0,
        };
        format(&mut words, &mut load)?;
        load.skipped = skipped(&mut words)?;
        load.columns = columns(&mut words)?;
        match words.next() {
            None => Ok(load),
            Some(token) if token.is("set") => Err(Error::unsupported("SET is not supported in LOAD DATA")
                .with_hint("load into another table, and compute with INSERT … SELECT")),
            Some(token) => Err(syntax(&format!("`{}` was not expected", token.text))),
        }
    }

    /// A query that has the columns.
    pub fn query(&self) -> String {
        let quoted = |names: &[String], between: &str| {
            names.iter().map(|name| quoted_name(name)).collect::<Vec<_>>().join(between)
        };
        let columns = if self.columns.is_empty() { "*".to_owned() } else { quoted(&self.columns, ", ") };
        format!("SELECT {columns} FROM {}", quoted(&self.table, "."))
    }
}

fn syntax(what: &str) -> Error {
    Error::new(ErrorKind::Syntax, format!("syntax error: {what} in LOAD DATA")).with_hint(
        "LOAD DATA LOCAL INFILE 'file' INTO TABLE t [CHARACTER SET utf8mb4] [FIELDS …] [LINES …] [IGNORE n LINES] [(columns)]",
    )
}

fn expect(words: &mut SourceTokens<'_>, word: &str) -> Result<()> {
    if words.take_word(word) { Ok(()) } else { Err(syntax(&format!("{} is missing", word.to_uppercase()))) }
}

fn text(words: &mut SourceTokens<'_>) -> Result<String> {
    words
        .next()
        .and_then(|token| token.string().map(str::to_owned))
        .ok_or_else(|| syntax("a text in quotes is missing"))
}

fn text_behind_by(words: &mut SourceTokens<'_>) -> Result<String> {
    expect(words, "by")?;
    text(words)
}

fn name(words: &mut SourceTokens<'_>) -> Result<String> {
    match words.next() {
        Some(token) if token.is_variable() => {
            Err(Error::unsupported("variables are not supported in LOAD DATA")
                .with_hint("load into another table that has all columns of the file"))
        }
        token => token.and_then(|token| token.name()).ok_or_else(|| syntax("a name is missing")),
    }
}

fn path(words: &mut SourceTokens<'_>) -> Result<Vec<String>> {
    let mut parts = vec![name(words)?];
    while parts.len() < 3 && words.take_token(&Token::Period) {
        parts.push(name(words)?);
    }
    Ok(parts)
}

fn columns(words: &mut SourceTokens<'_>) -> Result<Vec<String>> {
    let mut columns = Vec::new();
    if !words.take_token(&Token::LParen) || words.take_token(&Token::RParen) {
        return Ok(columns);
    }
    loop {
        columns.push(name(words)?);
        if words.take_token(&Token::RParen) {
            return Ok(columns);
        }
        if !words.take_token(&Token::Comma) {
            return Err(syntax("`,` or `)` is missing"));
        }
    }
}

fn character_set(words: &mut SourceTokens<'_>) -> Result<Option<String>> {
    if !words.take_word("character") {
        return Ok(None);
    }
    expect(words, "set")?;
    name(words).map(Some)
}

fn format(words: &mut SourceTokens<'_>, load: &mut LoadStatement) -> Result<()> {
    if words.take_word("fields") || words.take_word("columns") {
        loop {
            if words.take_word("terminated") {
                load.field_end = text_behind_by(words)?;
            } else if words.take_word("optionally") {
                expect(words, "enclosed")?;
                load.enclosed = text_behind_by(words)?;
            } else if words.take_word("enclosed") {
                load.enclosed = text_behind_by(words)?;
            } else if words.take_word("escaped") {
                load.escape = text_behind_by(words)?;
            } else {
                break;
            }
        }
    }
    if words.take_word("lines") {
        loop {
            if words.take_word("terminated") {
                load.line_end = text_behind_by(words)?;
            } else if words.take_word("starting") {
                load.line_start = text_behind_by(words)?;
            } else {
                break;
            }
        }
    }
    if load.field_end.is_empty() || load.line_end.is_empty() {
        return Err(Error::unsupported("rows of fixed width are not supported in LOAD DATA").with_hint(
            "say what ends fields and lines: FIELDS TERMINATED BY '\\t' LINES TERMINATED BY '\\n'",
        ));
    }
    if load.field_end.len().max(load.line_end.len()) > MAX_TERMINATOR {
        let message = format!("what ends fields and lines has at most {MAX_TERMINATOR} bytes");
        return Err(Error::new(ErrorKind::Syntax, message));
    }
    Ok(())
}

fn skipped(words: &mut SourceTokens<'_>) -> Result<u64> {
    if !words.take_word("ignore") {
        return Ok(0);
    }
    let number = words.next().filter(SourceToken::is_number);
    let number =
        number.and_then(|token| token.text.parse().ok()).ok_or_else(|| syntax("a number is missing"))?;
    if words.take_word("lines") || words.take_word("rows") {
        Ok(number)
    } else {
        Err(syntax("LINES is missing"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_read() {
        let plain = LoadStatement::parse("LOAD DATA LOCAL INFILE '/tmp/a.txt' INTO TABLE t").unwrap();
        assert_eq!((plain.file.as_str(), plain.skipped), ("/tmp/a.txt", 0));
        assert_eq!((plain.field_end.as_str(), plain.line_end.as_str()), ("\t", "\n"));
        assert_eq!(plain.query(), "SELECT * FROM `t`");
        let full = LoadStatement::parse(
            "load data concurrent local infile \"a\" into table d.`t` character set utf8mb4 columns terminated by ',' \
             optionally enclosed by '\"' escaped by '' lines starting by '>' terminated by '\\r\\n' ignore 2 rows (a, `b c`)",
        )
        .unwrap();
        assert_eq!(full.query(), "SELECT `a`, `b c` FROM `d`.`t`");
        let expected = LoadStatement {
            file: "a".to_owned(),
            table: vec!["d".to_owned(), "t".to_owned()],
            columns: vec!["a".to_owned(), "b c".to_owned()],
            character_set: Some("utf8mb4".to_owned()),
            field_end: ",".to_owned(),
            enclosed: "\"".to_owned(),
            escape: String::new(),
            line_start: ">".to_owned(),
            line_end: "\r\n".to_owned(),
            skipped: 2,
        };
        assert_eq!(full, expected);
    }

    #[test]
    fn what_is_not_there_is_refused() {
        for (sql, kind) in [
            ("LOAD DATA INFILE 'a' INTO TABLE t", ErrorKind::Unsupported),
            ("LOAD DATA LOCAL INFILE 'a' REPLACE INTO TABLE t", ErrorKind::Unsupported),
            ("LOAD DATA LOCAL INFILE 'a' IGNORE INTO TABLE t", ErrorKind::Unsupported),
            ("LOAD DATA LOCAL INFILE 'a' INTO TABLE t (a, @b)", ErrorKind::Unsupported),
            ("LOAD DATA LOCAL INFILE 'a' INTO TABLE t (a) SET b = 1", ErrorKind::Unsupported),
            ("LOAD DATA LOCAL INFILE 'a' INTO TABLE t FIELDS TERMINATED BY ''", ErrorKind::Unsupported),
            ("LOAD DATA LOCAL INFILE a INTO TABLE t", ErrorKind::Syntax),
            ("LOAD DATA LOCAL INFILE 'a' INTO TABLE t IGNORE x LINES", ErrorKind::Syntax),
            ("LOAD DATA LOCAL INFILE 'a' INTO TABLE t (a", ErrorKind::Syntax),
            ("LOAD DATA LOCAL INFILE 'a' INTO TABLE t FOR", ErrorKind::Syntax),
        ] {
            assert_eq!(LoadStatement::parse(sql).unwrap_err().kind(), kind, "{sql}");
        }
    }
}
