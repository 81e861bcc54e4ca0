//! `CREATE EXTERNAL TABLE name STORED AS format LOCATION 'path' OPTIONS (…)` as a view over the files that it names, which is
//! kept in the catalog as all views are: `CREATE VIEW name AS SELECT * FROM read_csv('path', …)`.

use crate::tokens::{is_blank, keyword, word};
use bowshot_api::{Error, Result};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::iter::Peekable;
use std::vec::IntoIter;

/// Formats, the functions that read them, and the endings of their files.
const FORMATS: [(&str, &str, &str); 9] = [
    ("csv", "read_csv", "csv"),
    ("parquet", "read_parquet", "parquet"),
    ("json", "read_json", "json"),
    ("ndjson", "read_json", "json"),
    ("arrow", "read_arrow", "arrow"),
    ("avro", "read_avro", "avro"),
    ("orc", "read_orc", "orc"),
    ("xlsx", "read_xlsx", "xlsx"),
    ("text", "read_lines", "txt"),
];

/// What others call options, and what we do.
const OPTIONS: [(&str, &str); 3] =
    [("has_header", "header"), ("delimiter", "delim"), ("null_value", "nullstr")];

/// The statements with external tables as views.
pub(crate) fn as_views(tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    if !tokens.iter().any(|token| keyword(&token.token) == Keyword::EXTERNAL) {
        return Ok(tokens);
    }
    let mut kept = Vec::with_capacity(tokens.len());
    for statement in tokens.split_inclusive(|token| token.token == Token::SemiColon) {
        match external(statement)? {
            Some(view) => kept.extend(view),
            None => kept.extend_from_slice(statement),
        }
    }
    Ok(kept)
}

/// What a statement says of an external table.
#[derive(Default)]
struct External {
    replace: bool,
    if_not_exists: bool,
    name: Vec<TokenWithSpan>,
    format: Option<String>,
    location: Option<String>,
    options: Vec<(String, String)>,
}

type Rest = Peekable<IntoIter<TokenWithSpan>>;

fn external(statement: &[TokenWithSpan]) -> Result<Option<Vec<TokenWithSpan>>> {
    let words: Vec<TokenWithSpan> =
        statement.iter().filter(|token| !is_blank(&token.token)).cloned().collect();
    let kinds: Vec<Keyword> = words.iter().take(5).map(|token| keyword(&token.token)).collect();
    let (replace, begins) = match kinds.as_slice() {
        [Keyword::CREATE, Keyword::EXTERNAL, Keyword::TABLE, ..] => (false, 3),
        [Keyword::CREATE, Keyword::OR, Keyword::REPLACE, Keyword::EXTERNAL, Keyword::TABLE] => (true, 5),
        _ => return Ok(None),
    };
    let end = words.last().filter(|token| token.token == Token::SemiColon).cloned();
    let mut rest = words.into_iter().skip(begins).collect::<Vec<_>>().into_iter().peekable();
    let external = External { replace, ..External::read(&mut rest)? };
    let mut view = external.view()?;
    view.extend(end);
    Ok(Some(view))
}

impl External {
    fn read(rest: &mut Rest) -> Result<Self> {
        let mut external = Self::default();
        if next_is(rest, &[Keyword::IF, Keyword::NOT, Keyword::EXISTS]) {
            external.if_not_exists = true;
        }
        while let Some(token) = rest.next_if(|token| is_of_name(&token.token)) {
            external.name.push(token);
        }
        if rest.peek().is_some_and(|token| token.token == Token::LParen) {
            return Err(refused("columns of an external table are those of its files").with_hint(
                "leave the list of columns out; `OPTIONS ('names' 'a,b')` names those of files without a header",
            ));
        }
        while let Some(token) = rest.next() {
            match keyword(&token.token) {
                Keyword::STORED if next_is(rest, &[Keyword::AS]) => external.format = Some(text(rest)?),
                Keyword::LOCATION => external.location = Some(text(rest)?),
                Keyword::OPTIONS => external.options = pairs(rest)?,
                // Folders named `key=value` are columns anyway.
                Keyword::PARTITIONED if next_is(rest, &[Keyword::BY]) => {
                    while rest.next().is_some_and(|token| token.token != Token::RParen) {}
                }
                _ if token.token == Token::SemiColon => break,
                _ => return Err(refused(&format!("`{}` is not known here", token.token))),
            }
        }
        Ok(external)
    }

    fn view(self) -> Result<Vec<TokenWithSpan>> {
        let location = self.location.ok_or_else(|| refused("it has no LOCATION"))?;
        let (function, ending) = match &self.format {
            None => ("read_files", "*"),
            Some(format) => {
                let known = FORMATS.iter().find(|(name, ..)| format.eq_ignore_ascii_case(name));
                let known = known.ok_or_else(|| refused(&format!("format `{format}` is not known")))?;
                (known.1, known.2)
            }
        };
        let mut view = vec![word("CREATE", Keyword::CREATE)];
        if self.replace {
            view.extend([word("OR", Keyword::OR), word("REPLACE", Keyword::REPLACE)]);
        }
        view.push(word("VIEW", Keyword::VIEW));
        if self.if_not_exists {
            view.extend([
                word("IF", Keyword::IF),
                word("NOT", Keyword::NOT),
                word("EXISTS", Keyword::EXISTS),
            ]);
        }
        let mut view: Vec<_> = view.into_iter().map(TokenWithSpan::wrap).collect();
        view.extend(self.name);
        let mut query = vec![
            word("AS", Keyword::AS),
            word("SELECT", Keyword::SELECT),
            Token::Mul,
            word("FROM", Keyword::FROM),
            word(function, Keyword::NoKeyword),
            Token::LParen,
            Token::SingleQuotedString(files_of(location, ending)),
        ];
        for (name, value) in self.options {
            let value = Token::SingleQuotedString(value);
            query.extend([Token::Comma, word(&name, Keyword::NoKeyword), Token::Eq, value]);
        }
        query.push(Token::RParen);
        view.extend(query.into_iter().map(TokenWithSpan::wrap));
        Ok(view)
    }
}

/// All files below a folder; one file or a pattern is what it is.
fn files_of(location: String, ending: &str) -> String {
    match location.strip_suffix('/') {
        Some(folder) => format!("{folder}/**/*.{ending}"),
        None => location,
    }
}

fn is_of_name(token: &Token) -> bool {
    match token {
        Token::Period | Token::DoubleQuotedString(_) => true,
        Token::Word(word) => !matches!(
            (word.quote_style, word.keyword),
            (None, Keyword::STORED | Keyword::LOCATION | Keyword::OPTIONS | Keyword::PARTITIONED)
        ),
        _ => false,
    }
}

/// Takes these words, if they are the next ones; the first decides.
fn next_is(rest: &mut Rest, words: &[Keyword]) -> bool {
    words.iter().all(|wanted| rest.next_if(|token| keyword(&token.token) == *wanted).is_some())
}

/// A text, or a word.
fn text(rest: &mut Rest) -> Result<String> {
    match rest.next().map(|token| token.token) {
        Some(Token::SingleQuotedString(text) | Token::DoubleQuotedString(text)) => Ok(text),
        Some(Token::Word(word)) => Ok(word.value),
        Some(Token::Number(number, _)) => Ok(number),
        other => {
            let found = other.map_or_else(|| "the end".to_owned(), |token| format!("`{token}`"));
            Err(refused(&format!("a text was expected, and not {found}")))
        }
    }
}

/// `('name' 'value', …)`, also with dots in names and `=` between the two.
fn pairs(rest: &mut Rest) -> Result<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    let open = rest.next_if(|token| token.token == Token::LParen);
    if open.is_none() {
        return Err(refused("options stand in brackets"));
    }
    while rest.next_if(|token| token.token == Token::RParen).is_none() {
        let mut name = text(rest)?;
        while rest.next_if(|token| token.token == Token::Period).is_some() {
            name = text(rest)?;
        }
        rest.next_if(|token| token.token == Token::Eq);
        let value = text(rest)?;
        pairs.push((option_name(&name), value));
        rest.next_if(|token| token.token == Token::Comma);
    }
    Ok(pairs)
}

/// `format.has_header` is `header`.
fn option_name(name: &str) -> String {
    let name = name.rsplit('.').next().unwrap_or(name).to_lowercase();
    let known = OPTIONS.iter().find(|(theirs, _)| *theirs == name);
    known.map_or(name.clone(), |(_, ours)| (*ours).to_owned())
}

fn refused(what: &str) -> Error {
    Error::unsupported(format!("this CREATE EXTERNAL TABLE is not supported: {what}")).with_hint(
        "write CREATE EXTERNAL TABLE name STORED AS CSV LOCATION 'orders/*.csv' OPTIONS ('header' 'true')",
    )
}

#[cfg(test)]
mod tests {
    use super::as_views;
    use sqlparser::dialect::GenericDialect;
    use sqlparser::tokenizer::Tokenizer;

    fn view(sql: &str) -> Result<String, String> {
        let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location().unwrap();
        let words: Vec<String> = match as_views(tokens) {
            Ok(tokens) => tokens.iter().map(|token| token.token.to_string()).collect(),
            Err(error) => return Err(error.to_string()),
        };
        Ok(words.join(" "))
    }

    #[test]
    fn external_tables_are_views_over_their_files() {
        for (sql, expected) in [
            (
                "CREATE EXTERNAL TABLE a.b STORED AS CSV LOCATION 'x/' OPTIONS ('format.has_header' 'false', delimiter ';');",
                "CREATE VIEW a . b AS SELECT * FROM read_csv ( 'x/**/*.csv' , header = 'false' , delim = ';' ) ;",
            ),
            (
                "create or replace external table t location 'x.orc'",
                "CREATE OR REPLACE VIEW t AS SELECT * FROM read_files ( 'x.orc' )",
            ),
            (
                "CREATE EXTERNAL TABLE IF NOT EXISTS \"T\" STORED AS PARQUET PARTITIONED BY (y, m) LOCATION 'p/*'",
                "CREATE VIEW IF NOT EXISTS \"T\" AS SELECT * FROM read_parquet ( 'p/*' )",
            ),
        ] {
            assert_eq!(view(sql).unwrap(), expected, "{sql}");
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for (sql, part) in [
            ("CREATE EXTERNAL TABLE t (a INT) STORED AS CSV LOCATION 'x'", "columns of an external table"),
            ("CREATE EXTERNAL TABLE t STORED AS CSV", "no LOCATION"),
            ("CREATE EXTERNAL TABLE t STORED AS DELTA LOCATION 'x'", "`DELTA` is not known"),
            ("CREATE EXTERNAL TABLE t LOCATION 'x' WITH ORDER (a)", "`WITH` is not known"),
        ] {
            let error = view(sql).unwrap_err();
            assert!(error.contains(part), "{sql}: {error}");
        }
    }
}
