//! `CREATE EXTERNAL TABLE name [(columns)] STORED AS format LOCATION 'place' [OPTIONS (…)]`, of which the parser knows a few formats
//! and no options as others write them. It comes as a CREATE TABLE whose location carries the files as they are asked for, as
//! the name of a table does in a query ([`crate::rewrite::files`]).

use crate::rewrite::{FileOption, NamedFiles};
use crate::template::meaning;
use sqlparser::ast::Statement;
use sqlparser::ast::helpers::stmt_create_table::CreateTableBuilder;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

type Parsed<T> = Result<T, ParserError>;

/// What formats are called, and what we call them.
const FORMATS: [(&str, &str); 16] = [
    ("csv", "csv"),
    ("tsv", "csv"),
    ("parquet", "parquet"),
    ("json", "json"),
    ("ndjson", "json"),
    ("jsonl", "json"),
    ("jsonfile", "json"),
    ("arrow", "arrow"),
    ("ipc", "arrow"),
    ("feather", "arrow"),
    ("avro", "avro"),
    ("orc", "orc"),
    ("xlsx", "xlsx"),
    ("excel", "xlsx"),
    ("text", "text"),
    ("textfile", "text"),
];

/// What others call options, and what we do.
const OPTIONS: [(&str, &str); 4] =
    [("has_header", "header"), ("delimiter", "delim"), ("separator", "delim"), ("null_value", "nullstr")];

/// The statement, if it is one of these.
pub(crate) fn parse(parser: &mut Parser<'_>) -> Option<Parsed<Statement>> {
    let begun = |words: &[Keyword]| {
        let stands = |(at, wanted): (usize, &Keyword)| matches!(&parser.peek_nth_token_ref(at).token, Token::Word(word) if word.keyword == *wanted);
        words.iter().enumerate().all(stands).then_some(words.len())
    };
    let plain = begun(&[Keyword::CREATE, Keyword::EXTERNAL, Keyword::TABLE]);
    let replace = begun(&[Keyword::CREATE, Keyword::OR, Keyword::REPLACE, Keyword::EXTERNAL, Keyword::TABLE]);
    let length = plain.or(replace)?;
    (0..length).for_each(|_| parser.advance_token());
    Some(table(parser, replace.is_some()))
}

fn table(parser: &mut Parser<'_>, or_replace: bool) -> Parsed<Statement> {
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let name = parser.parse_object_name(false)?;
    let columns = match parser.peek_token_ref().token {
        Token::LParen => Some(parser.parse_parenthesized(|parser| parser.parse_comma_separated(column))?),
        _ => None,
    };
    let (mut format, mut location, mut options) = (None, None, None);
    loop {
        if parser.parse_keywords(&[Keyword::STORED, Keyword::AS]) {
            once(&mut format, format_named(&text(parser)?)?, "STORED AS")?;
        } else if parser.parse_keyword(Keyword::LOCATION) {
            once(&mut location, text(parser)?, "LOCATION")?;
        } else if parser.parse_keyword(Keyword::OPTIONS) {
            once(&mut options, parser.parse_parenthesized(pairs)?, "OPTIONS")?;
        } else if parser.parse_keywords(&[Keyword::PARTITIONED, Keyword::BY]) {
            return Err(refused("folders `key=value` are columns without PARTITIONED BY: leave it out"));
        } else {
            break;
        }
    }
    let location = location.ok_or_else(|| refused("it has no LOCATION"))?;
    let format = format.ok_or_else(|| refused("it does not say what the files are STORED AS"))?;
    let mut options = options.unwrap_or_default();
    if let Some(columns) = columns {
        options.insert(0, ("columns".to_owned(), FileOption::Map(columns)));
    }
    let mut names: Vec<&str> = options.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    let twice = names.windows(2).find_map(|pair| match pair {
        [one, other] if one == other => Some(*one),
        _ => None,
    });
    if let Some(name) = twice {
        return Err(refused(&format!("`{name}` is said twice")));
    }
    let files = NamedFiles { format, paths: vec![location], options };
    let carried = files.name().map_err(|error| refused(error.message()))?;
    let table = CreateTableBuilder::new(name)
        .or_replace(or_replace)
        .if_not_exists(if_not_exists)
        .external(true)
        .location(Some(carried));
    Ok(Statement::CreateTable(table.build()))
}

/// A column: its name and its type.
fn column(parser: &mut Parser<'_>) -> Parsed<(String, String)> {
    let name = meaning(&parser.parse_identifier()?);
    let data_type = parser.parse_data_type()?.to_string();
    match parser.peek_token_ref().token {
        Token::Comma | Token::RParen => Ok((name, data_type)),
        _ => Err(refused(&format!("column `{name}` has a name and a type: nothing else is known of files"))),
    }
}

fn format_named(name: &str) -> Parsed<String> {
    let known = FORMATS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    known.map(|(_, format)| (*format).to_owned()).ok_or_else(|| {
        refused(&format!(
            "format `{name}` is not known: there are CSV, JSON, PARQUET, ARROW, AVRO, ORC, XLSX and TEXT"
        ))
    })
}

/// `'name' 'value', …`, also with words, `=`, and dots in names.
fn pairs(parser: &mut Parser<'_>) -> Parsed<Vec<(String, FileOption)>> {
    parser.parse_comma_separated(|parser| {
        let mut name = text(parser)?;
        while parser.consume_token(&Token::Period) {
            name = text(parser)?;
        }
        // `format.has_header` is `header`.
        let last = name.rsplit('.').next().unwrap_or(&name).to_lowercase();
        let known = OPTIONS.iter().find(|(theirs, _)| *theirs == last);
        let name = known.map_or(last.clone(), |(_, ours)| (*ours).to_owned());
        if name == "format" {
            return Err(refused("what the format is, STORED AS says"));
        }
        let _ = parser.consume_token(&Token::Eq);
        Ok((name, value(parser)?))
    })
}

fn value(parser: &mut Parser<'_>) -> Parsed<FileOption> {
    if parser.consume_token(&Token::LBracket) {
        let items = parser.parse_comma_separated(text)?;
        parser.expect_token(&Token::RBracket)?;
        return Ok(FileOption::List(items));
    }
    if parser.consume_token(&Token::LBrace) {
        let items = parser.parse_comma_separated(|parser| {
            let key = text(parser)?;
            parser.expect_token(&Token::Colon)?;
            Ok((key, text(parser)?))
        })?;
        parser.expect_token(&Token::RBrace)?;
        return Ok(FileOption::Map(items));
    }
    text(parser).map(FileOption::Text)
}

/// A text, a number or a word.
fn text(parser: &mut Parser<'_>) -> Parsed<String> {
    let found = parser.next_token();
    match found.token {
        Token::SingleQuotedString(text)
        | Token::DoubleQuotedString(text)
        | Token::EscapedStringLiteral(text)
        | Token::NationalStringLiteral(text) => Ok(text),
        Token::Word(word) => Ok(word.value),
        Token::Number(number, _) => Ok(number),
        Token::Minus => text(parser).map(|number| format!("-{number}")),
        _ => parser.expected("a text, a number or a word", found),
    }
}

fn once<T>(place: &mut Option<T>, value: T, what: &str) -> Parsed<()> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(refused(&format!("{what} comes twice"))),
    }
}

fn refused(what: &str) -> ParserError {
    ParserError::ParserError(format!(
        "this CREATE EXTERNAL TABLE cannot be read: {what}. Write CREATE EXTERNAL TABLE orders STORED AS CSV \
         LOCATION 'orders/*.csv' OPTIONS ('header' 'true')"
    ))
}

#[cfg(test)]
mod tests {
    use crate::rewrite::{FileOption, NamedFiles, files};
    use crate::{Dialect, DialectName, Parsed, parse};
    use sqlparser::ast::Statement;

    fn read(sql: &str, dialect: DialectName) -> Result<(String, NamedFiles), String> {
        let mut parsed = parse(sql, Dialect::new(dialect), 50).map_err(|error| error.to_string())?;
        let Some(Parsed::Statement(statement)) = parsed.pop() else { return Err("no statement".to_owned()) };
        let Statement::CreateTable(create) = *statement else { return Err("no table".to_owned()) };
        assert!(create.external);
        let kind = match (create.or_replace, create.if_not_exists) {
            (true, _) => "replaces ",
            (_, true) => "keeps ",
            _ => "",
        };
        Ok((format!("{kind}{}", create.name), files(&create.location.unwrap()).unwrap()))
    }

    fn told(value: &str) -> FileOption {
        FileOption::Text(value.to_owned())
    }

    fn pairs(pairs: &[(&str, &str)]) -> FileOption {
        FileOption::Map(pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn what_is_said_of_files_is_carried() {
        let of = |format: &str, path: &str, options: Vec<(&str, FileOption)>| NamedFiles {
            format: format.to_owned(),
            paths: vec![path.to_owned()],
            options: options.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        };
        for (sql, name, files) in [
            (
                "CREATE EXTERNAL TABLE a.b STORED AS CSV LOCATION 'x/' OPTIONS ('format.has_header' 'false', delimiter ';');",
                "a.b",
                of("csv", "x/", vec![("header", told("false")), ("delim", told(";"))]),
            ),
            (
                "create or replace external table t (\"A\" int, B decimal(10,2)) location 'x.json' stored as ndjson",
                "replaces t",
                of("json", "x.json", vec![("columns", pairs(&[("A", "INT"), ("b", "DECIMAL(10,2)")]))]),
            ),
            (
                "CREATE EXTERNAL TABLE IF NOT EXISTS \"T\" STORED AS PARQUET LOCATION 's3://b/p/*'",
                "keeps \"T\"",
                of("parquet", "s3://b/p/*", vec![]),
            ),
            (
                "CREATE EXTERNAL TABLE t STORED AS 'xlsx' LOCATION 'b.xlsx' OPTIONS (sheet = 'x', skip 2, header true, \
                 sample_size -1, names ['a', 'b'], types = {'a': 'INT'})",
                "t",
                of(
                    "xlsx",
                    "b.xlsx",
                    vec![
                        ("sheet", told("x")),
                        ("skip", told("2")),
                        ("header", told("true")),
                        ("sample_size", told("-1")),
                        ("names", FileOption::List(vec!["a".into(), "b".into()])),
                        ("types", pairs(&[("a", "INT")])),
                    ],
                ),
            ),
        ] {
            for dialect in [DialectName::Ansi, DialectName::Postgres] {
                assert_eq!(read(sql, dialect).unwrap(), (name.to_owned(), files.clone()), "{sql}");
            }
        }
        let mysql = "CREATE EXTERNAL TABLE `t` STORED AS CSV LOCATION \"x.csv\"";
        assert_eq!(read(mysql, DialectName::MySql).unwrap(), ("`t`".to_owned(), of("csv", "x.csv", vec![])));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for (sql, part) in [
            ("CREATE EXTERNAL TABLE t (a INT NOT NULL) STORED AS CSV LOCATION 'x'", "a name and a type"),
            ("CREATE EXTERNAL TABLE t STORED AS CSV", "no LOCATION"),
            ("CREATE EXTERNAL TABLE t LOCATION 'x'", "STORED AS"),
            ("CREATE EXTERNAL TABLE t STORED AS DELTA LOCATION 'x'", "`DELTA` is not known"),
            ("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'x' LOCATION 'y'", "comes twice"),
            (
                "CREATE EXTERNAL TABLE t (a INT) STORED AS CSV LOCATION 'x' OPTIONS (columns {'a': 'INT'})",
                "said twice",
            ),
            ("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'x' OPTIONS (format json)", "STORED AS says"),
            (
                "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'x' PARTITIONED BY (y)",
                "without PARTITIONED BY",
            ),
            ("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'x' WITH ORDER (a)", "the end of the statement"),
            ("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'x\u{1e}y'", "control characters"),
        ] {
            let error = read(sql, DialectName::Ansi).unwrap_err();
            assert!(error.contains(part), "{sql}: {error}");
        }
    }
}
