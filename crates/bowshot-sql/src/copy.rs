//! `COPY … TO`, `COPY … FROM` and `INSERT INTO FILES (…)`, of which `sqlparser` knows other forms with other options.

use crate::sqlparser_statement::{check, with_sql_tokens};
use crate::statement_tokens::{StatementTokens, expect_end};
use bowshot_api::Result;
use sqlparser::ast::{Ident, ObjectName, Query};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{IsOptional, Parser, ParserError};
use sqlparser::tokenizer::Token;

/// A statement that moves rows between tables and a file.
#[derive(Debug, Clone)]
pub struct CopyStatement {
    pub direction: Direction,
    /// The file.
    pub path: String,
    /// Names in lower case. A name alone has no value.
    pub options: Vec<(String, Option<String>)>,
}

#[derive(Debug, Clone)]
pub enum Direction {
    /// A table, or some of its columns, into a file.
    TableOut { table: ObjectName, columns: Vec<Ident> },
    /// The rows of a query into a file.
    QueryOut(Box<Query>),
    /// A file into a table, or into some of its columns.
    In { table: ObjectName, columns: Vec<Ident> },
}

/// Whether COPY stands here, or `INSERT INTO FILES (path = …)`. A table may be called `files`: what follows it tells.
pub(crate) fn begins(words: &StatementTokens<'_>) -> bool {
    words.is_at(0, "copy")
        || words.is_at(0, "insert")
            && words.is_at(1, "into")
            && words.is_at(2, "files")
            && words.nth_is(3, &Token::LParen)
            && matches!(words.token_at(5), Token::Eq | Token::DoubleEq)
}

/// Reads a statement that [begins](begins) so.
pub(crate) fn read(words: StatementTokens<'_>) -> Result<CopyStatement> {
    let (tokens, text) = words.into_rest();
    let mut copy = with_sql_tokens(tokens, text, |parser| {
        let copy = if parser.parse_keyword(Keyword::COPY) { copy(parser) } else { insert_into_files(parser) };
        copy.and_then(|copy| expect_end(parser).map(|()| copy))
    })?;
    if let Direction::QueryOut(query) = &mut copy.direction {
        check(query.as_mut())?;
    }
    Ok(copy)
}

type Parsed<T> = std::result::Result<T, ParserError>;

fn copy(parser: &mut Parser<'_>) -> Parsed<CopyStatement> {
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

fn insert_into_files(parser: &mut Parser<'_>) -> Parsed<CopyStatement> {
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
pub(crate) fn options(parser: &mut Parser<'_>) -> Parsed<Vec<(String, Option<String>)>> {
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
