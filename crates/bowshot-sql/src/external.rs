//! `CREATE EXTERNAL TABLE name [(columns)] STORED AS format LOCATION 'place' [OPTIONS (…)]` and the other clauses of `DataFusion`,
//! of which the parser knows a few formats and no options as others write them. It comes as a CREATE TABLE whose location
//! carries the files as they are asked for, as the name of a table does in a query ([`crate::rewrite::files`]).

use crate::rewrite::{FileOption, NamedFiles};
use crate::template::meaning;
use sqlparser::ast::helpers::stmt_create_table::CreateTableBuilder;
use sqlparser::ast::{CommentDef, Statement};
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
const OPTIONS: [(&str, &str); 9] = [
    ("has_header", "header"),
    ("delimiter", "delim"),
    ("separator", "delim"),
    ("null_value", "nullstr"),
    ("file_compression_type", "compression"),
    ("newlines_in_values", "quoted_newlines"),
    ("schema_infer_max_rec", "sample_size"),
    ("truncated_rows", "null_padding"),
    ("datetime_format", "timestampformat"),
];

/// What stands before the options with which others reach object stores.
const STORES: [&str; 8] = ["aws", "s3", "gcp", "gcs", "google", "azure", "az", "oss"];

/// The types of columns that folders `key=value` give, as an option has them.
const FOLDER_TYPES: &str = "hive_types";
/// The type of one that is found out.
const FOUND: &str = "auto";

/// The statement, if it is one of these.
pub(crate) fn parse(parser: &mut Parser<'_>) -> Option<Parsed<Statement>> {
    let begun = |words: &[Keyword]| {
        let stands = |(at, wanted): (usize, &Keyword)| matches!(&parser.peek_nth_token_ref(at).token, Token::Word(word) if word.keyword == *wanted);
        words.iter().enumerate().all(stands).then_some(words.len())
    };
    if begun(&[Keyword::DROP, Keyword::EXTERNAL, Keyword::TABLE]).is_some() {
        return Some(Err(ParserError::ParserError(
            "external tables are dropped as others are, and their files stay: write DROP TABLE orders"
                .to_owned(),
        )));
    }
    if begun(&[Keyword::CREATE, Keyword::UNBOUNDED, Keyword::EXTERNAL, Keyword::TABLE]).is_some() {
        return Some(Err(refused("UNBOUNDED is not supported: leave it out")));
    }
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
        Token::LParen => parser.parse_parenthesized(|parser| parser.parse_comma_separated(column))?,
        _ => Vec::new(),
    };
    let clauses = Clauses::read(parser)?;
    let location = clauses.location.ok_or_else(|| refused("it has no LOCATION"))?;
    let mut options = columns_and_folders(columns, clauses.folders.unwrap_or_default())?;
    options.extend(clauses.options.unwrap_or_default());
    options.extend(clauses.said);
    let mut names: Vec<&str> = options.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    let twice = names.windows(2).find_map(|pair| match pair {
        [one, other] if one == other => Some(*one),
        _ => None,
    });
    if let Some(name) = twice {
        return Err(refused(&format!("`{name}` is given twice")));
    }
    let files = NamedFiles { format: clauses.format.unwrap_or_default(), paths: vec![location], options };
    let carried = files.name().map_err(|error| refused(error.message()))?;
    let table = CreateTableBuilder::new(name)
        .or_replace(or_replace)
        .if_not_exists(if_not_exists)
        .external(true)
        .comment_after_column_def(clauses.comment.map(CommentDef::WithEq))
        .location(Some(carried));
    Ok(Statement::CreateTable(table.build()))
}

/// What stands behind the name and the columns, in any order.
#[derive(Default)]
struct Clauses {
    /// Empty where the names of the files say it.
    format: Option<String>,
    location: Option<String>,
    options: Option<Vec<(String, FileOption)>>,
    /// Options that have a clause of their own.
    said: Vec<(String, FileOption)>,
    /// Columns of which folders have the values, some with a type.
    folders: Option<Vec<(String, Option<String>)>>,
    comment: Option<String>,
}

impl Clauses {
    fn read(parser: &mut Parser<'_>) -> Parsed<Self> {
        let mut clauses = Self::default();
        while clauses.next(parser)? {}
        match parser.peek_token_ref().token {
            Token::EOF | Token::SemiColon => Ok(clauses),
            _ => parser.expected_ref(
                "STORED AS, LOCATION, OPTIONS, PARTITIONED BY, WITH HEADER ROW, DELIMITER, COMPRESSION TYPE, COMMENT or the end of the statement",
                parser.peek_token_ref(),
            ),
        }
    }

    /// Reads one, if one comes.
    fn next(&mut self, parser: &mut Parser<'_>) -> Parsed<bool> {
        let mut say = |name: &str, value: String| self.said.push((name.to_owned(), FileOption::Text(value)));
        if parser.parse_keywords(&[Keyword::STORED, Keyword::AS]) {
            once(&mut self.format, format_named(&text(parser)?)?, "STORED AS")?;
        } else if parser.parse_keyword(Keyword::LOCATION) {
            once(&mut self.location, text(parser)?, "LOCATION")?;
        } else if parser.parse_keyword(Keyword::OPTIONS) {
            once(&mut self.options, parser.parse_parenthesized(pairs)?, "OPTIONS")?;
        } else if parser.parse_keywords(&[Keyword::PARTITIONED, Keyword::BY]) {
            let folders = parser.parse_parenthesized(|parser| parser.parse_comma_separated(folder))?;
            once(&mut self.folders, folders, "PARTITIONED BY")?;
        } else if parser.parse_keyword(Keyword::COMMENT) {
            let _ = parser.consume_token(&Token::Eq);
            once(&mut self.comment, text(parser)?, "COMMENT")?;
        } else if parser.parse_keywords(&[Keyword::WITH, Keyword::HEADER, Keyword::ROW]) {
            say("header", "true".to_owned());
        } else if parser.parse_keyword(Keyword::DELIMITER) {
            say("delim", text(parser)?);
        } else if parser.parse_keywords(&[Keyword::COMPRESSION, Keyword::TYPE]) {
            say("compression", text(parser)?);
        } else if parser.parse_keywords(&[Keyword::WITH, Keyword::ORDER]) {
            return Err(refused("WITH ORDER is not supported: leave it out, and write ORDER BY in queries"));
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}

/// A column: its name and its type.
fn column(parser: &mut Parser<'_>) -> Parsed<(String, String)> {
    let name = meaning(&parser.parse_identifier()?);
    let data_type = parser.parse_data_type()?.to_string();
    match parser.peek_token_ref().token {
        Token::Comma | Token::RParen => Ok((name, data_type)),
        _ => Err(refused(&format!("column `{name}` of a table of files can only have a name and a type"))),
    }
}

/// A column of folders: its name, and its type if that is not said among the columns.
fn folder(parser: &mut Parser<'_>) -> Parsed<(String, Option<String>)> {
    match parser.peek_nth_token_ref(1).token {
        Token::Comma | Token::RParen => Ok((meaning(&parser.parse_identifier()?), None)),
        _ => column(parser).map(|(name, data_type)| (name, Some(data_type))),
    }
}

/// The options that say which columns there are: those of the files, and those of folders, whose types may stand among the
/// others.
fn columns_and_folders(
    mut columns: Vec<(String, String)>,
    folders: Vec<(String, Option<String>)>,
) -> Parsed<Vec<(String, FileOption)>> {
    let mut types = Vec::new();
    for (name, said) in folders {
        let listed =
            columns.iter().position(|(column, _)| *column == name).map(|place| columns.remove(place).1);
        let data_type = match (said, listed) {
            (Some(_), Some(_)) => return Err(refused(&format!("the type of `{name}` is given twice"))),
            (one, other) => one.or(other),
        };
        types.push((name, data_type.unwrap_or_else(|| FOUND.to_owned())));
    }
    let options =
        [("columns", columns), (FOLDER_TYPES, types)].into_iter().filter(|(_, pairs)| !pairs.is_empty());
    Ok(options.map(|(name, pairs)| (name.to_owned(), FileOption::Map(pairs))).collect())
}

fn format_named(name: &str) -> Parsed<String> {
    let known = FORMATS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    known.map(|(_, format)| (*format).to_owned()).ok_or_else(|| {
        refused(&format!(
            "unknown format `{name}`: expected CSV, JSON, PARQUET, ARROW, AVRO, ORC, XLSX or TEXT"
        ))
    })
}

/// `'name' 'value', …`, also with words, `=`, and dots in names.
fn pairs(parser: &mut Parser<'_>) -> Parsed<Vec<(String, FileOption)>> {
    parser.parse_comma_separated(|parser| {
        let mut name = text(parser)?.to_lowercase();
        while parser.consume_token(&Token::Period) {
            name = format!("{name}.{}", text(parser)?.to_lowercase());
        }
        if let Some((first, _)) = name.split_once('.')
            && STORES.contains(&first)
        {
            return Err(refused(&format!(
                "option `{name}` of object stores is not supported: the operator sets locations and \
                 credentials (`object_store.read`)"
            )));
        }
        // `format.has_header` is `header`.
        let last = name.rsplit('.').next().unwrap_or(&name).to_owned();
        let known = OPTIONS.iter().find(|(theirs, _)| *theirs == last);
        let name = known.map_or(last.clone(), |(_, ours)| (*ours).to_owned());
        if name == "format" {
            return Err(refused("the format is given by STORED AS"));
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
        "invalid CREATE EXTERNAL TABLE: {what}. Write CREATE EXTERNAL TABLE orders STORED AS CSV LOCATION \
         'orders/*.csv' OPTIONS ('header' 'true')"
    ))
}
