//! SQL of the server itself, such as stored expressions, types and names. It is parsed in dialect `ansi`.

use crate::dialect::{Dialect, DialectName};
use bowshot_api::{Error, Result};
use sqlparser::ast::{DataType, Expr, ObjectName, Query, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

pub fn read_statement(text: &str) -> Result<Statement> {
    read(text, |parser| parser.parse_statement())
        .map_err(|error| Error::internal(format!("`{text}` is no statement: {error}")))
}

pub fn read_query(text: &str) -> Result<Box<Query>> {
    read(text, |parser| parser.parse_query())
        .map_err(|error| Error::internal(format!("`{text}` is no query: {error}")))
}

pub fn read_expression(text: &str) -> Result<Expr> {
    read(text, |parser| parser.parse_expr())
        .map_err(|error| Error::internal(format!("`{text}` is no expression: {error}")))
}

/// A type; `None` for a text that is none.
pub fn read_type(text: &str) -> Option<DataType> {
    read(text, |parser| parser.parse_data_type()).ok()
}

/// A name of one or more parts; `None` for a text that is none.
pub fn read_name(text: &str) -> Option<ObjectName> {
    read(text, |parser| parser.parse_object_name(false)).ok()
}

/// What `PARTITION BY …` or `PARTITIONED BY …` names; `None` for a text that is something else.
pub(crate) fn read_partition(text: &str) -> Option<Expr> {
    let partition = |parser: &mut Parser<'_>| {
        parser.expect_one_of_keywords(&[Keyword::PARTITION, Keyword::PARTITIONED])?;
        parser.expect_keyword_is(Keyword::BY)?;
        parser.parse_expr()
    };
    read(text, partition).ok()
}

fn read<T>(
    text: &str,
    read: impl FnOnce(&mut Parser<'_>) -> std::result::Result<T, ParserError>,
) -> std::result::Result<T, ParserError> {
    let dialect = Dialect::new(DialectName::Ansi);
    let mut parser = Parser::new(&dialect).try_with_sql(text)?;
    let found = read(&mut parser)?;
    parser.expect_token(&Token::EOF)?;
    Ok(found)
}
