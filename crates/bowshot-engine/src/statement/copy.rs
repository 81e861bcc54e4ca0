//! `COPY … TO`, `COPY … FROM` and `INSERT INTO FILES (…)` as text. The parser below knows other forms of them, with other
//! options, so these are read here, token by token.

use datafusion::sql::sqlparser::ast::{Ident, ObjectName, Query};
use datafusion::sql::sqlparser::dialect::Dialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{IsOptional, Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

/// A statement that moves rows between tables and a file.
#[derive(Debug, Clone)]
pub(crate) struct CopyStatement {
    pub(crate) direction: Direction,
    pub(crate) path: String,
    /// Names in lower case. A name alone has no value.
    pub(crate) options: Vec<(String, Option<String>)>,
}

#[derive(Debug, Clone)]
pub(crate) enum Direction {
    /// A table, or some of its columns, into a file.
    TableOut { table: ObjectName, columns: Vec<Ident> },
    /// The rows of a query into a file.
    QueryOut(Box<Query>),
    /// A file into a table, or into some of its columns.
    In { table: ObjectName, columns: Vec<Ident> },
}

/// `None` for every other statement.
pub(crate) fn parse(
    sql: &str,
    dialect: &dyn Dialect,
    recursion_limit: usize,
) -> Result<Option<CopyStatement>, ParserError> {
    if !may_copy(sql) {
        return Ok(None);
    }
    let mut parser = Parser::new(dialect).with_recursion_limit(recursion_limit).try_with_sql(sql)?;
    let statement = if parser.parse_keyword(Keyword::COPY) {
        copy(&mut parser)?
    } else if is_insert_into_files(&mut parser) {
        insert_into_files(&mut parser)?
    } else {
        return Ok(None);
    };
    let _ = parser.consume_token(&Token::SemiColon);
    parser.expect_token(&Token::EOF)?;
    Ok(Some(statement))
}

/// Spares all other statements a second look at their tokens.
fn may_copy(sql: &str) -> bool {
    let has = |word: &str| {
        sql.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
    };
    has("copy") || has("files")
}

fn copy(parser: &mut Parser<'_>) -> Result<CopyStatement, ParserError> {
    let direction = if parser.consume_token(&Token::LParen) {
        let query = parser.parse_query()?;
        parser.expect_token(&Token::RParen)?;
        parser.expect_keyword(Keyword::TO)?;
        Direction::QueryOut(query)
    } else {
        let table = parser.parse_object_name(false)?;
        let columns = parser.parse_parenthesized_column_list(IsOptional::Optional, false)?;
        match parser.expect_one_of_keywords(&[Keyword::TO, Keyword::FROM])? {
            Keyword::TO => Direction::TableOut { table, columns },
            _ => Direction::In { table, columns },
        }
    };
    let path = parser.parse_literal_string()?;
    let with = parser.parse_keyword(Keyword::WITH);
    let options = if with || parser.peek_token() == Token::LParen { options(parser)? } else { Vec::new() };
    Ok(CopyStatement { direction, path, options })
}

/// A table may be called `files`: what follows it tells.
fn is_insert_into_files(parser: &mut Parser<'_>) -> bool {
    let [insert, into, files, open, _, equals] = parser.peek_tokens();
    let is = |token: &Token, word: &str| matches!(token, Token::Word(found) if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word));
    is(&insert, "insert")
        && is(&into, "into")
        && is(&files, "files")
        && open == Token::LParen
        && matches!(equals, Token::Eq | Token::DoubleEq)
}

fn insert_into_files(parser: &mut Parser<'_>) -> Result<CopyStatement, ParserError> {
    for _ in 0..3 {
        parser.next_token();
    }
    let mut options = options(parser)?;
    let at = options.iter().position(|(name, value)| name == "path" && value.is_some());
    let path = at.and_then(|at| options.remove(at).1);
    let path = path.ok_or_else(|| {
        ParserError::ParserError("FILES takes a path: `FILES ('path' = '…', 'format' = '…')`".to_owned())
    })?;
    let query = parser.parse_query()?;
    Ok(CopyStatement { direction: Direction::QueryOut(query), path, options })
}

/// `(FORMAT csv, HEADER, 'delimiter' = ';')`
fn options(parser: &mut Parser<'_>) -> Result<Vec<(String, Option<String>)>, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let mut options = Vec::new();
    loop {
        let name = match parser.next_token().token {
            Token::Word(word) => word.value,
            Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => text,
            other => return Err(ParserError::ParserError(format!("expected an option, found: {other}"))),
        };
        let _ = parser.consume_token(&Token::Eq);
        let value = match parser.peek_token().token {
            Token::Word(word) => Some(word.value),
            Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) | Token::Number(text, _) => {
                Some(text)
            }
            _ => None,
        };
        if value.is_some() {
            parser.next_token();
        }
        options.push((name.to_ascii_lowercase(), value));
        if !parser.consume_token(&Token::Comma) {
            parser.expect_token(&Token::RParen)?;
            return Ok(options);
        }
    }
}
