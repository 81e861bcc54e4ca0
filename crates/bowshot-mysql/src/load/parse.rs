//! Parses `LOAD DATA LOCAL INFILE` (MySQL manual, "LOAD DATA Statement").

use crate::status::Failure;
use crate::tokens::{Kind, Token, Tokens, quoted_name, tokens};
use std::iter::Peekable;

/// Longest terminator, in bytes.
const MAX_TERMINATOR: usize = 64;

/// The parsed statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Load {
    /// The name of the file, as the statement has it.
    pub(super) file: String,
    /// The parts of the table's name.
    pub(super) table: Vec<String>,
    /// The columns of the fields; none means all.
    pub(super) columns: Vec<String>,
    pub(super) format: Format,
    /// Records to skip at the beginning.
    pub(super) skipped: u64,
}

/// How fields and lines end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Format {
    pub(super) field_end: Vec<u8>,
    pub(super) enclosed: Option<u8>,
    pub(super) escape: Option<u8>,
    pub(super) line_start: Vec<u8>,
    pub(super) line_end: Vec<u8>,
}

impl Default for Format {
    fn default() -> Self {
        Self {
            field_end: b"\t".to_vec(),
            enclosed: None,
            escape: Some(b'\\'),
            line_start: Vec::new(),
            line_end: b"\n".to_vec(),
        }
    }
}

impl Load {
    /// Parses a statement that begins with `LOAD DATA`.
    ///
    /// # Errors
    /// 1064 for a statement that is not valid, 1235 for unsupported clauses.
    pub(crate) fn parse(sql: &str) -> Result<Self, Failure> {
        let mut words = Words(tokens(sql).peekable());
        words.expect("load")?;
        words.expect("data")?;
        _ = words.take("low_priority") || words.take("concurrent");
        if !words.take("local") {
            return Err(Failure::unsupported("LOAD DATA reads files of the client alone")
                .with_hint("say LOAD DATA LOCAL INFILE, or COPY … FROM for a file in the exchange folder"));
        }
        words.expect("infile")?;
        let file = words.text()?;
        if words.take("replace") {
            return Err(Failure::unsupported("REPLACE is not supported in LOAD DATA")
                .with_hint("load into another table, and use INSERT OR REPLACE … SELECT"));
        }
        if words.take("ignore") {
            return Err(Failure::unsupported(
                "IGNORE is not supported in LOAD DATA: rows that do not fit are errors",
            )
            .with_hint("load into another table, and use INSERT OR IGNORE … SELECT"));
        }
        words.expect("into")?;
        words.expect("table")?;
        let table = words.path()?;
        character_set(&mut words)?;
        let format = format(&mut words)?;
        let skipped = skipped(&mut words)?;
        let columns = words.columns()?;
        match words.0.next() {
            None => Ok(Self { file, table, columns, format, skipped }),
            Some(token) if token.is("set") => Err(Failure::unsupported("SET is not supported in LOAD DATA")
                .with_hint("load into another table, and compute with INSERT … SELECT")),
            Some(token) => Err(syntax(&format!("`{}` was not expected", token.text))),
        }
    }

    /// A query that has the columns.
    pub(super) fn query(&self) -> String {
        let quoted = |names: &[String], between: &str| {
            names.iter().map(|name| quoted_name(name)).collect::<Vec<_>>().join(between)
        };
        let columns = if self.columns.is_empty() { "*".to_owned() } else { quoted(&self.columns, ", ") };
        format!("SELECT {columns} FROM {}", quoted(&self.table, "."))
    }
}

fn syntax(what: &str) -> Failure {
    Failure::syntax(format!("syntax error: {what} in LOAD DATA")).with_hint(
        "LOAD DATA LOCAL INFILE 'file' INTO TABLE t [CHARACTER SET utf8mb4] [FIELDS …] [LINES …] [IGNORE n LINES] [(columns)]",
    )
}

struct Words<'a>(Peekable<Tokens<'a>>);

impl Words<'_> {
    fn take(&mut self, word: &str) -> bool {
        self.0.next_if(|token| token.is(word)).is_some()
    }

    fn expect(&mut self, word: &str) -> Result<(), Failure> {
        if self.take(word) { Ok(()) } else { Err(syntax(&format!("{} is missing", word.to_uppercase()))) }
    }

    fn symbol(&mut self, symbol: char) -> bool {
        self.0.next_if(|token| token.is_symbol(symbol)).is_some()
    }

    fn text(&mut self) -> Result<String, Failure> {
        self.0.next().and_then(|token| token.string()).ok_or_else(|| syntax("a text in quotes is missing"))
    }

    fn name(&mut self) -> Result<String, Failure> {
        match self.0.next() {
            Some(Token { kind: Kind::Variable, .. }) => {
                Err(Failure::unsupported("variables are not supported in LOAD DATA")
                    .with_hint("load into another table that has all columns of the file"))
            }
            token => token.and_then(|token| token.name()).ok_or_else(|| syntax("a name is missing")),
        }
    }

    fn path(&mut self) -> Result<Vec<String>, Failure> {
        let mut parts = vec![self.name()?];
        while parts.len() < 3 && self.symbol('.') {
            parts.push(self.name()?);
        }
        Ok(parts)
    }

    fn columns(&mut self) -> Result<Vec<String>, Failure> {
        let mut columns = Vec::new();
        if !self.symbol('(') || self.symbol(')') {
            return Ok(columns);
        }
        loop {
            columns.push(self.name()?);
            if self.symbol(')') {
                return Ok(columns);
            }
            if !self.symbol(',') {
                return Err(syntax("`,` or `)` is missing"));
            }
        }
    }
}

fn character_set(words: &mut Words<'_>) -> Result<(), Failure> {
    if !words.take("character") {
        return Ok(());
    }
    words.expect("set")?;
    let name = words.name()?.to_ascii_lowercase();
    if matches!(name.as_str(), "utf8" | "utf8mb3" | "utf8mb4" | "binary") {
        return Ok(());
    }
    Err(Failure::new(1115, "42000", format!("unknown character set: '{name}'"))
        .with_hint("texts are UTF-8: write the file again in it"))
}

fn format(words: &mut Words<'_>) -> Result<Format, Failure> {
    let mut format = Format::default();
    if words.take("fields") || words.take("columns") {
        loop {
            if words.take("terminated") {
                format.field_end = terminator(words)?;
            } else if words.take("optionally") {
                words.expect("enclosed")?;
                format.enclosed = character(words)?;
            } else if words.take("enclosed") {
                format.enclosed = character(words)?;
            } else if words.take("escaped") {
                format.escape = character(words)?;
            } else {
                break;
            }
        }
    }
    if words.take("lines") {
        loop {
            if words.take("terminated") {
                format.line_end = terminator(words)?;
            } else if words.take("starting") {
                words.expect("by")?;
                format.line_start = words.text()?.into_bytes();
            } else {
                break;
            }
        }
    }
    if format.field_end.is_empty() || format.line_end.is_empty() {
        return Err(Failure::unsupported("rows of fixed width are not supported in LOAD DATA").with_hint(
            "say what ends fields and lines: FIELDS TERMINATED BY '\\t' LINES TERMINATED BY '\\n'",
        ));
    }
    Ok(format)
}

fn terminator(words: &mut Words<'_>) -> Result<Vec<u8>, Failure> {
    words.expect("by")?;
    let text = words.text()?;
    if text.len() > MAX_TERMINATOR {
        return Err(Failure::syntax(format!(
            "what ends fields and lines has at most {MAX_TERMINATOR} bytes"
        )));
    }
    Ok(text.into_bytes())
}

/// One byte, or none.
fn character(words: &mut Words<'_>) -> Result<Option<u8>, Failure> {
    words.expect("by")?;
    match words.text()?.as_bytes() {
        [] => Ok(None),
        [byte] => Ok(Some(*byte)),
        _ => Err(Failure::new(1083, "42000", "field separator argument is not what is expected")
            .with_hint("ENCLOSED BY and ESCAPED BY take one character or none")),
    }
}

fn skipped(words: &mut Words<'_>) -> Result<u64, Failure> {
    if !words.take("ignore") {
        return Ok(0);
    }
    let number = words.0.next().filter(|token| token.kind == Kind::Number);
    let number =
        number.and_then(|token| token.text.parse().ok()).ok_or_else(|| syntax("a number is missing"))?;
    if words.take("lines") || words.take("rows") { Ok(number) } else { Err(syntax("LINES is missing")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_read() {
        let plain = Load::parse("LOAD DATA LOCAL INFILE '/tmp/a.txt' INTO TABLE t").unwrap();
        assert_eq!(
            (plain.file.as_str(), &plain.format, plain.skipped),
            ("/tmp/a.txt", &Format::default(), 0)
        );
        assert_eq!(plain.query(), "SELECT * FROM `t`");
        let full = Load::parse(
            "load data concurrent local infile \"a\" into table d.`t` character set utf8mb4 columns terminated by ',' \
             optionally enclosed by '\"' escaped by '' lines starting by '>' terminated by '\\r\\n' ignore 2 rows (a, `b c`)",
        )
        .unwrap();
        assert_eq!(full.query(), "SELECT `a`, `b c` FROM `d`.`t`");
        let expected = Format {
            field_end: b",".to_vec(),
            enclosed: Some(b'"'),
            escape: None,
            line_start: b">".to_vec(),
            line_end: b"\r\n".to_vec(),
        };
        assert_eq!((full.format, full.skipped), (expected, 2));
    }

    #[test]
    fn what_is_not_there_is_refused() {
        for (sql, number) in [
            ("LOAD DATA INFILE 'a' INTO TABLE t", 1235),
            ("LOAD DATA LOCAL INFILE 'a' REPLACE INTO TABLE t", 1235),
            ("LOAD DATA LOCAL INFILE 'a' IGNORE INTO TABLE t", 1235),
            ("LOAD DATA LOCAL INFILE 'a' INTO TABLE t (a, @b)", 1235),
            ("LOAD DATA LOCAL INFILE 'a' INTO TABLE t (a) SET b = 1", 1235),
            ("LOAD DATA LOCAL INFILE 'a' INTO TABLE t FIELDS TERMINATED BY ''", 1235),
            ("LOAD DATA LOCAL INFILE 'a' INTO TABLE t CHARACTER SET latin1", 1115),
            ("LOAD DATA LOCAL INFILE 'a' INTO TABLE t FIELDS ENCLOSED BY 'ab'", 1083),
            ("LOAD DATA LOCAL INFILE a INTO TABLE t", 1064),
            ("LOAD DATA LOCAL INFILE 'a' INTO TABLE t IGNORE x LINES", 1064),
            ("LOAD DATA LOCAL INFILE 'a' INTO TABLE t (a", 1064),
            ("LOAD DATA LOCAL INFILE 'a' INTO TABLE t FOR", 1064),
        ] {
            assert_eq!(Load::parse(sql).expect_err(sql).code.0, number, "{sql}");
        }
    }
}
