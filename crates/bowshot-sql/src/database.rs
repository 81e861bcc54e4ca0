//! Statements about other databases: `ATTACH 'postgres://host/db' AS name (TYPE postgres, USER 'u', PASSWORD 'p')`, or with
//! `SECRET name` in the place of user and password, and `DETACH name`.

use crate::words::{begins_with, first_words};
use bowshot_api::{Error, ErrorKind, Result};
use sqlparser::ast::Ident;
use sqlparser::dialect::Dialect;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;
use std::fmt;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseStatement {
    /// Opens a database.
    Attach(Attachment),
    /// Leaves it.
    Detach {
        /// Its name here.
        name: String,
        /// Whether it may be unknown.
        if_exists: bool,
    },
}

/// A database to be opened.
#[derive(Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Where it is.
    pub uri: String,
    /// What it is called here.
    pub name: String,
    /// Whether one of this name may be there.
    pub keep: bool,
    /// Keys in lower case with their values.
    pub options: Vec<(String, String)>,
}

impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Address and options may hold a password.
        f.debug_struct("Attachment").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The statement, if the text is one of these.
///
/// # Errors
/// `Syntax` for one that is not complete. What it says never repeats a text of the statement, which may be a password.
pub fn database_statement(sql: &str, dialect: &dyn Dialect) -> Result<Option<DatabaseStatement>> {
    let [first, _] = first_words(sql);
    if (first != "attach" && first != "detach") || !begins_with(sql, &first, dialect) {
        return Ok(None);
    }
    parse(sql, dialect, first == "attach").map(Some).map_err(|_| {
        Error::new(ErrorKind::Syntax, "syntax error in a statement about another database").with_hint(
            "write `ATTACH 'postgres://host/database' AS name (TYPE postgres, USER '…', PASSWORD '…')` or `DETACH name`",
        )
    })
}

type Parsed<T> = std::result::Result<T, ParserError>;

fn parse(sql: &str, dialect: &dyn Dialect, attaches: bool) -> Parsed<DatabaseStatement> {
    let mut parser = Parser::new(dialect).try_with_sql(sql)?;
    parser.next_token();
    word(&mut parser, "database");
    let statement = if attaches {
        let keep = three(&mut parser, ["if", "not", "exists"])?;
        let uri = parser.parse_literal_string()?;
        expect(&mut parser, "as")?;
        let name = name(&parser.parse_identifier()?);
        let options = if parser.consume_token(&Token::LParen) { options(&mut parser)? } else { Vec::new() };
        DatabaseStatement::Attach(Attachment { uri, name, keep, options })
    } else {
        let if_exists = three(&mut parser, ["if", "exists", ""])?;
        DatabaseStatement::Detach { name: name(&parser.parse_identifier()?), if_exists }
    };
    let _ = parser.consume_token(&Token::SemiColon);
    match parser.next_token().token {
        Token::EOF => Ok(statement),
        _ => Err(unexpected()),
    }
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

fn name(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_ascii_lowercase() }
}

/// Takes a word if it is there.
fn word(parser: &mut Parser<'_>, wanted: &str) -> bool {
    let there = matches!(&parser.peek_token_ref().token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted));
    if there {
        parser.next_token();
    }
    there
}

fn expect(parser: &mut Parser<'_>, wanted: &str) -> Parsed<()> {
    if word(parser, wanted) { Ok(()) } else { Err(unexpected()) }
}

/// Takes words that stand together or not at all.
fn three(parser: &mut Parser<'_>, [first, second, third]: [&str; 3]) -> Parsed<bool> {
    if !word(parser, first) {
        return Ok(false);
    }
    expect(parser, second)?;
    if !third.is_empty() {
        expect(parser, third)?;
    }
    Ok(true)
}

fn unexpected() -> ParserError {
    ParserError::ParserError("not expected".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlparser::dialect::GenericDialect;

    fn read(sql: &str) -> Result<Option<DatabaseStatement>, ErrorKind> {
        database_statement(sql, &GenericDialect {}).map_err(|error| error.kind())
    }

    #[test]
    fn attach_and_detach_are_recognised_and_others_are_left_alone() {
        let statement =
            read("ATTACH 'postgres://h/d' AS \"Pg\" (TYPE postgres, USER 'u''s', READ_ONLY, POOL 3);");
        let Ok(Some(DatabaseStatement::Attach(attached))) = statement else { panic!("{statement:?}") };
        assert_eq!(
            (attached.uri.as_str(), attached.name.as_str(), attached.keep),
            ("postgres://h/d", "Pg", false)
        );
        let options = [("type", "postgres"), ("user", "u's"), ("read_only", "true"), ("pool", "3")];
        let options: Vec<_> = options.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        assert_eq!(attached.options, options);
        let gone = DatabaseStatement::Detach { name: "pg".to_owned(), if_exists: true };
        assert_eq!(read("detach database if exists PG"), Ok(Some(gone)));
        assert_eq!(read("SELECT 1"), Ok(None));
        for wrong in ["ATTACH", "ATTACH 'x'", "ATTACH 'x' AS y (", "ATTACH 'x' AS y (a 1, a 2)", "DETACH a b"]
        {
            assert_eq!(read(wrong), Err(ErrorKind::Syntax), "{wrong}");
        }
    }

    #[test]
    fn what_went_wrong_never_shows_a_password() {
        let error = database_statement("ATTACH 'x' AS y (PASSWORD 'hush' 'hush')", &GenericDialect {});
        assert!(!format!("{error:?}").contains("hush"));
        let attached = database_statement("ATTACH 'a://u:hush@h' AS y (PASSWORD 'hush')", &GenericDialect {});
        assert!(!format!("{attached:?}").contains("hush"));
    }
}
