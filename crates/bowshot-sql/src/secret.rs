//! Statements about credentials of sources:
//!
//! ```text
//! CREATE [OR REPLACE] [PERSISTENT] SECRET [IF NOT EXISTS] name (TYPE s3, SCOPE 's3://bucket/prefix', KEY_ID '…', SECRET '…')
//! DROP [PERSISTENT] SECRET [IF EXISTS] name
//! ```
//!
//! Which keys there are is not decided here.

use crate::statement_tokens::{StatementTokens, expect_end, name_of as name, take_word as word};
use bowshot_api::{Error, ErrorKind, Result, Secret};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// Keys of one statement.
const MAX_KEYS: usize = 64;
/// CREATE SECRET or DROP SECRET. Names are as written where they are quoted, else in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretStatement {
    Create { name: String, replace: bool, if_not_exists: bool, options: Vec<(String, Secret)> },
    Drop { name: String, if_exists: bool },
}

/// Whether the words up to SECRET stand here.
pub(crate) fn begins(words: &StatementTokens<'_>) -> bool {
    let is_create = words.is_at(0, "create");
    let mut at = if is_create && words.is_at(1, "or") && words.is_at(2, "replace") { 3 } else { 1 };
    if ["temporary", "temp", "persistent"].iter().any(|word| words.is_at(at, word)) {
        at += 1;
    }
    (is_create || words.is_at(0, "drop")) && words.is_at(at, "secret")
}

/// Reads a statement that [begins](begins) so.
///
/// # Errors
/// `Syntax` for one that is not complete. What it says never repeats a text of the statement, which may be a value.
pub(crate) fn read(mut words: StatementTokens<'_>) -> Result<SecretStatement> {
    let parser = &mut words.parser;
    let is_create = word(parser, "create");
    if !is_create {
        parser.advance_token();
    }
    let replace = is_create && parser.parse_keywords(&[Keyword::OR, Keyword::REPLACE]);
    if word(parser, "temporary") || word(parser, "temp") {
        return Err(Error::unsupported("temporary secrets are not supported")
            .with_hint("leave TEMPORARY out; without a data folder secrets end with the server"));
    }
    let _ = word(parser, "persistent");
    parser.advance_token();
    let read = if is_create { create(parser, replace) } else { dropped(parser) };
    let read = read.and_then(|statement| expect_end(parser).map(|()| statement));
    read.map_err(|_| unknown())
}

/// What is told of a statement that cannot be read, and may have values in it.
pub(crate) fn unknown() -> Error {
    Error::new(ErrorKind::Syntax, "this form of a statement about secrets is not known").with_hint(
        "write `CREATE SECRET name (TYPE s3, SCOPE 's3://bucket/prefix', KEY_ID '…', SECRET '…')`, with OR REPLACE or IF NOT EXISTS \
         where needed, or `DROP SECRET name`",
    )
}

type Parsed<T> = std::result::Result<T, ParserError>;

fn create(parser: &mut Parser<'_>, replace: bool) -> Parsed<SecretStatement> {
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    if replace && if_not_exists {
        return Err(unexpected());
    }
    let name = name(&parser.parse_identifier()?);
    parser.expect_token(&Token::LParen)?;
    let mut options: Vec<(String, Secret)> = Vec::new();
    loop {
        let key = parser.parse_identifier()?.value.to_ascii_lowercase();
        let value = value(parser)?;
        if options.len() >= MAX_KEYS || options.iter().any(|(known, _)| *known == key) {
            return Err(unexpected());
        }
        options.push((key, Secret::new(value)));
        if parser.consume_token(&Token::RParen) {
            return Ok(SecretStatement::Create { name, replace, if_not_exists, options });
        }
        parser.expect_token(&Token::Comma)?;
    }
}

/// A text, a number or a word; a key alone is true.
fn value(parser: &mut Parser<'_>) -> Parsed<String> {
    if let Token::DollarQuotedString(text) = &parser.peek_token_ref().token {
        let text = text.value.clone();
        parser.advance_token();
        return Ok(text);
    }
    Ok(match &parser.peek_token_ref().token {
        Token::Comma | Token::RParen => "true".to_owned(),
        Token::Number(..) => parser.parse_number_value()?.value.to_string(),
        Token::Word(_) => parser.parse_identifier()?.value,
        _ => parser.parse_literal_string()?,
    })
}

fn dropped(parser: &mut Parser<'_>) -> Parsed<SecretStatement> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    Ok(SecretStatement::Drop { name: name(&parser.parse_identifier()?), if_exists })
}

fn unexpected() -> ParserError {
    ParserError::ParserError("not expected".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Statement;
    use crate::parse::read_one;

    fn read(sql: &str) -> Result<Option<SecretStatement>, ErrorKind> {
        let read = read_one(sql).map_err(|error| {
            assert!(!format!("{error} {error:?}").contains("hush"), "{error:?}");
            error.kind()
        });
        match read? {
            Statement::Secret(statement) => Ok(Some(statement)),
            _ => Ok(None),
        }
    }

    #[test]
    fn what_is_wrong_is_told_without_the_text() {
        for wrong in [
            "CREATE SECRET",
            "CREATE SECRET (TYPE s3, SECRET 'hush')",
            "CREATE SECRET x TYPE s3 SECRET 'hush'",
            "CREATE SECRET x (SECRET 'hush",
            "CREATE SECRET x (SECRET 'hush' 'hush')",
            "CREATE SECRET x (SECRET 'hush', SECRET 'hush')",
            "CREATE SECRET x (SECRET hush/hush)",
            "CREATE SECRET x (SECRET 'hush') hush",
            "CREATE OR REPLACE SECRET IF NOT EXISTS x (SECRET 'hush')",
            "DROP SECRET",
            "DROP SECRET a, b",
            "DROP SECRET a b",
        ] {
            assert_eq!(read(wrong), Err(ErrorKind::Syntax), "{wrong}");
        }
        assert_eq!(read("CREATE TEMPORARY SECRET x (SECRET 'hush')"), Err(ErrorKind::Unsupported));
    }
}
