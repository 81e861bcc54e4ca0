//! Statements about credentials of sources:
//!
//! ```text
//! CREATE [OR REPLACE] [PERSISTENT] SECRET [IF NOT EXISTS] name (TYPE s3, SCOPE 's3://bucket/prefix', KEY_ID '…', SECRET '…')
//! DROP [PERSISTENT] SECRET [IF EXISTS] name
//! ```
//!
//! Which keys there are is not decided here.

use crate::words::first_words;
use bowshot_api::{Error, ErrorKind, Result, Secret};
use sqlparser::ast::Ident;
use sqlparser::dialect::Dialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// Keys of one statement.
const MAX_KEYS: usize = 64;
/// See the module. Names are as written where they are quoted, else in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretStatement {
    /// `CREATE SECRET`
    Create {
        /// Name.
        name: String,
        /// Whether one that is there is replaced.
        replace: bool,
        /// Whether one that is there stays.
        keep: bool,
        /// Keys in lower case with their values.
        options: Vec<(String, Secret)>,
    },
    /// `DROP SECRET`
    Drop {
        /// Name.
        name: String,
        /// Whether it may be missing.
        if_exists: bool,
    },
}

/// The statement, if the text is one of these.
///
/// # Errors
/// `Syntax` for one that is not complete. What it says never repeats a text of the statement, which may be a value.
pub fn secret_statement(sql: &str, dialect: &dyn Dialect) -> Result<Option<SecretStatement>> {
    let [first, second] = first_words(sql);
    let may_be = match first.as_str() {
        "create" => ["secret", "or", "persistent", "temporary", "temp"].contains(&second.as_str()),
        "drop" => ["secret", "persistent", "temporary"].contains(&second.as_str()),
        _ => false,
    };
    if !may_be {
        return Ok(None);
    }
    // A text that is none for the tokenizer is none of these, unless it says that it is one.
    let Ok(mut parser) = Parser::new(dialect).try_with_sql(sql) else {
        return if second == "secret" { Err(unknown()) } else { Ok(None) };
    };
    let Some(begun) = begun(&mut parser) else { return Ok(None) };
    if begun.temporary {
        return Err(Error::unsupported("a secret is kept until it is dropped: there are no temporary ones")
            .with_hint("leave TEMPORARY out; without a data folder secrets end with the server"));
    }
    let read = match begun.create {
        true => create(&mut parser, begun.replace),
        false => dropped(&mut parser),
    };
    let read = read.and_then(|statement| {
        let _ = parser.consume_token(&Token::SemiColon);
        parser.expect_token(&Token::EOF)?;
        Ok(statement)
    });
    read.map(Some).map_err(|_| unknown())
}

fn unknown() -> Error {
    Error::new(ErrorKind::Syntax, "this form of a statement about secrets is not known").with_hint(
        "write `CREATE SECRET name (TYPE s3, SCOPE 's3://bucket/prefix', KEY_ID '…', SECRET '…')`, with OR REPLACE or IF NOT EXISTS \
         where needed, or `DROP SECRET name`",
    )
}

/// What the first words say.
struct Begun {
    create: bool,
    replace: bool,
    temporary: bool,
}

/// The words up to SECRET, taken; `None` for other statements.
fn begun(parser: &mut Parser<'_>) -> Option<Begun> {
    let create = word(parser, "create");
    if !create && !word(parser, "drop") {
        return None;
    }
    let replace = create && parser.parse_keywords(&[Keyword::OR, Keyword::REPLACE]);
    let temporary = word(parser, "temporary") || word(parser, "temp");
    if !temporary {
        let _ = word(parser, "persistent");
    }
    word(parser, "secret").then_some(Begun { create, replace, temporary })
}

type Parsed<T> = std::result::Result<T, ParserError>;

fn create(parser: &mut Parser<'_>, replace: bool) -> Parsed<SecretStatement> {
    let keep = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    if replace && keep {
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
            return Ok(SecretStatement::Create { name, replace, keep, options });
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

fn name(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_ascii_lowercase() }
}

/// Takes a word if it is there.
fn word(parser: &mut Parser<'_>, wanted: &str) -> bool {
    let there = matches!(&parser.peek_token_ref().token, Token::Word(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted));
    if there {
        parser.advance_token();
    }
    there
}

fn unexpected() -> ParserError {
    ParserError::ParserError("not expected".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlparser::dialect::{GenericDialect, MySqlDialect};

    fn read(sql: &str) -> Result<Option<SecretStatement>, ErrorKind> {
        secret_statement(sql, &GenericDialect {}).map_err(|error| {
            assert!(!format!("{error} {error:?}").contains("hush"), "{error:?}");
            error.kind()
        })
    }

    #[test]
    fn statements_are_read_and_others_left_alone() {
        let sql = "CREATE OR REPLACE SECRET Lake (TYPE s3, SCOPE 's3://b/p', KEY_ID AKIA, secret 'it''s', ANONYMOUS);";
        let Ok(Some(SecretStatement::Create { name, replace: true, keep: false, options })) = read(sql)
        else {
            panic!("{sql}")
        };
        assert_eq!(name, "lake");
        let options: Vec<(&str, &str)> =
            options.iter().map(|(key, value)| (key.as_str(), value.expose())).collect();
        let expected = [
            ("type", "s3"),
            ("scope", "s3://b/p"),
            ("key_id", "AKIA"),
            ("secret", "it's"),
            ("anonymous", "true"),
        ];
        assert_eq!(options, expected);
        let kept = read("create persistent secret if not exists \"Lake\" (type http)");
        assert!(matches!(kept, Ok(Some(SecretStatement::Create { name, keep: true, .. })) if name == "Lake"));
        let gone = SecretStatement::Drop { name: "lake".to_owned(), if_exists: true };
        assert_eq!(read("/* c */ DROP -- c\n SECRET IF EXISTS LAKE;"), Ok(Some(gone)));
        for other in
            ["SELECT secret FROM t", "CREATE OR REPLACE TABLE secret (a INT)", "DROP TABLE secret", ""]
        {
            assert_eq!(read(other), Ok(None), "{other}");
        }
        let quoted = "CREATE SECRET x (TYPE s3, SECRET \"hush\")";
        assert!(matches!(secret_statement(quoted, &MySqlDialect {}), Ok(Some(_))));
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
