//! Statements about other databases: `ATTACH 'postgres://host/db' AS name (TYPE postgres, USER 'u', PASSWORD 'p')`, or with
//! `SECRET name` in the place of user and password, and `DETACH name`.

use crate::statement_tokens::{StatementTokens, expect_end, name_of as name, take_word as word};
use bowshot_api::{Error, ErrorKind, Result};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// ATTACH or DETACH.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseStatement {
    /// Opens a database.
    Attach(Attachment),
    /// Leaves it.
    Detach {
        name: String,
        /// Whether it may be unknown.
        if_exists: bool,
    },
}

/// A database to be opened.
#[derive(Clone, PartialEq, Eq)]
pub struct Attachment {
    pub uri: String,
    pub name: String,
    /// Whether one of this name may be there.
    pub keep: bool,
    pub options: Vec<(String, String)>,
}

// Address and options may hold a password.
bowshot_api::debug_fields!(Attachment { name });

/// Reads a statement that begins with ATTACH or DETACH.
///
/// # Errors
/// `Syntax` for one that is not complete. What it says never repeats a text of the statement, which may be a password.
pub(crate) fn read(mut words: StatementTokens<'_>) -> Result<DatabaseStatement> {
    parse(&mut words.parser).map_err(|_| {
        Error::new(ErrorKind::Syntax, "syntax error in a statement about another database").with_hint(
            "write `ATTACH 'postgres://host/database' AS name (TYPE postgres, USER '…', PASSWORD '…')` or `DETACH name`",
        )
    })
}

type Parsed<T> = std::result::Result<T, ParserError>;

fn parse(parser: &mut Parser<'_>) -> Parsed<DatabaseStatement> {
    let attaches = word(parser, "attach");
    if !attaches {
        parser.advance_token();
    }
    word(parser, "database");
    let statement = if attaches {
        let keep = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
        let uri = parser.parse_literal_string()?;
        parser.expect_keyword(Keyword::AS)?;
        let name = name(&parser.parse_identifier()?);
        let options = if parser.consume_token(&Token::LParen) { options(parser)? } else { Vec::new() };
        DatabaseStatement::Attach(Attachment { uri, name, keep, options })
    } else {
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        DatabaseStatement::Detach { name: name(&parser.parse_identifier()?), if_exists }
    };
    expect_end(parser).map(|()| statement)
}

/// `KEY value, …` up to the closing parenthesis. A key alone is true.
fn options(parser: &mut Parser<'_>) -> Parsed<Vec<(String, String)>> {
    let mut options = Vec::new();
    loop {
        let key = parser.parse_identifier()?.value.to_ascii_lowercase();
        let value = match &parser.peek_token_ref().token {
            Token::Comma | Token::RParen => "true".to_owned(),
            Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) => parser.parse_literal_string()?,
            Token::Number(..) => parser.parse_literal_uint()?.to_string(),
            _ if key == "secret" => name(&parser.parse_identifier()?),
            _ => parser.parse_identifier()?.value,
        };
        if options.iter().any(|(known, _)| *known == key) {
            return Err(unexpected());
        }
        options.push((key, value));
        if parser.consume_token(&Token::RParen) {
            return Ok(options);
        }
        parser.expect_token(&Token::Comma)?;
    }
}

fn unexpected() -> ParserError {
    ParserError::ParserError("not expected".to_owned())
}

#[cfg(test)]
mod tests {
    use crate::parse::read_one;

    #[test]
    fn what_went_wrong_never_shows_a_password() {
        let error = read_one("ATTACH 'x' AS y (PASSWORD 'hush' 'hush')");
        assert!(!format!("{error:?}").contains("hush"));
        let attached = read_one("ATTACH 'a://u:hush@h' AS y (PASSWORD 'hush')");
        assert!(!format!("{attached:?}").contains("hush"));
    }
}
