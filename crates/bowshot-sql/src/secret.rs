//! Statements about credentials of sources, and what logs may have of their texts:
//!
//! ```text
//! CREATE [OR REPLACE] [PERSISTENT] SECRET [IF NOT EXISTS] name (TYPE s3, SCOPE 's3://bucket/prefix', KEY_ID '…', SECRET '…')
//! DROP [PERSISTENT] SECRET [IF EXISTS] name
//! ```
//!
//! Which keys there are is not decided here.

use crate::words::{first_word, first_words};
use bowshot_api::{Error, ErrorKind, Result, Secret};
use sqlparser::ast::Ident;
use sqlparser::dialect::Dialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// Keys of one statement.
const MAX_KEYS: usize = 64;
/// Words behind which a value stands that no log has.
const VALUES: [&str; 10] = [
    "secret",
    "key_id",
    "access_key_id",
    "secret_access_key",
    "session_token",
    "account_key",
    "sas_token",
    "bearer_token",
    "service_account",
    "connection_string",
];
/// What logs have in the place of a text that cannot be told apart.
pub(crate) const HIDDEN: &str = "CREATE SECRET …";

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

/// What logs may have of a text that makes a secret; `None` for all others. A statement that is well formed keeps its words up to the
/// name.
pub(crate) fn creation(sql: &str) -> Option<&str> {
    if !may_make_secret(sql) {
        return None;
    }
    let [first, _] = first_words(sql);
    let begins = creations(sql).next().filter(|_| first == "create");
    Some(begins.and_then(makes_secret).unwrap_or(HIDDEN))
}

/// Whether a text has values of a secret in it, or may have some.
pub fn holds_values(sql: &str) -> bool {
    creation(sql).is_some() || has_value(sql)
}

/// What follows each CREATE of a text, with that word.
fn creations(sql: &str) -> impl Iterator<Item = &str> {
    const WORD: &[u8] = b"create";
    let found = sql.as_bytes().windows(WORD.len()).enumerate();
    let found = found.filter(|(_, part)| part.eq_ignore_ascii_case(WORD));
    found.filter_map(move |(at, _)| sql.get(at..))
}

/// Whether a CREATE of the text makes a secret. What is read behind one may hold others, behind which the same is read again: a text
/// whose bytes are looked at many times is no statement of anyone, and is not told either.
fn may_make_secret(sql: &str) -> bool {
    const MOST_LOOKS: usize = 16;
    let most = sql.len().saturating_mul(MOST_LOOKS);
    let mut looked = 0_usize;
    creations(sql).any(|rest| match up_to_secret(rest) {
        Ok(()) => true,
        Err(after) => {
            looked = looked.saturating_add(rest.len().saturating_sub(after.len()));
            looked > most
        }
    })
}

/// The words up to the name where they make a secret, or what stands for them where anything else is among them.
fn makes_secret(rest: &str) -> Option<&str> {
    up_to_secret(rest).is_ok().then(|| told(rest).unwrap_or(HIDDEN))
}

/// Whether the words make a secret; if not, what follows those that were read.
fn up_to_secret(rest: &str) -> Result<(), &str> {
    const BEFORE: [&str; 6] = ["create", "or", "replace", "persistent", "temporary", "temp"];
    let mut after = rest;
    loop {
        let (word, next) = first_word(after);
        if word.eq_ignore_ascii_case("secret") {
            return Ok(());
        }
        if !BEFORE.iter().any(|before| word.eq_ignore_ascii_case(before)) {
            return Err(next);
        }
        after = next;
    }
}

/// `CREATE SECRET name`, if nothing but words and space stands before the parenthesis.
fn told(rest: &str) -> Option<&str> {
    const MOST_BYTES: usize = 256;
    let (told, _) = rest.split_once('(')?;
    let plain =
        told.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte.is_ascii_whitespace());
    let told = told.trim_end();
    let words: Vec<String> = told.split_ascii_whitespace().map(str::to_ascii_lowercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let named = match words.as_slice() {
        ["create", rest @ ..] => rest,
        _ => return None,
    };
    let named = named.strip_prefix(&["or", "replace"]).unwrap_or(named);
    let named = named.strip_prefix(&["persistent"]).unwrap_or(named).strip_prefix(&["secret"])?;
    let named = named.strip_prefix(&["if", "not", "exists"]).unwrap_or(named);
    (plain && told.len() <= MOST_BYTES && named.len() == 1).then_some(told)
}

/// Whether a text stands right behind one of the words for values, however the rest of it is spelled.
pub(crate) fn has_value(sql: &str) -> bool {
    let is_quote = |byte: &u8| matches!(byte, b'\'' | b'"' | b'$');
    sql.bytes().enumerate().filter(|(_, byte)| is_quote(byte)).any(|(at, _)| {
        let before = sql.get(..at).unwrap_or_default();
        // `E'…'` and `N'…'`
        let spaced = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric());
        [before, spaced].into_iter().any(|before| {
            // Without space between, it is the quote at the end of a text.
            let word = before.trim_end();
            word.len() < before.len() && VALUES.iter().any(|value| ends_with_word(word, value))
        })
    })
}

fn ends_with_word(text: &str, word: &str) -> bool {
    let Some(start) = text.len().checked_sub(word.len()) else { return false };
    let bytes = text.as_bytes();
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    bytes.get(start..).is_some_and(|end| end.eq_ignore_ascii_case(word.as_bytes()))
        && !start.checked_sub(1).and_then(|at| bytes.get(at)).is_some_and(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::without_passwords;
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

    #[test]
    fn logs_have_no_value() {
        for sql in [
            "CREATE SECRET x (TYPE s3, KEY_ID 'hush', SECRET 'hush')",
            "create or replace persistent secret if not exists x (type s3, key_id hush)",
            "CREATE /* c */ SECRET x (TYPE s3, KEY_ID hush)",
            "CREATE -- c\nSECRET x (KEY_ID hush)",
            "CREATE SECRET x hush (TYPE s3)",
            "CREATE SECRET hush",
            "CREATE SECRET 'hush' (",
            "SELECT 1; CREATE SECRET x (KEY_ID hush)",
            "EXPLAIN CREATE SECRET x (SECRET hush)",
            "PREPARE p AS CREATE SECRET x (SECRET hush)",
            "CRATE SECRT x (TYPE s3, SECRET 'hush')",
            "CRATE SECRT x (TYPE s3, SECRET E'hush')",
            "CRATE SECRT x (TYPE azure, account_key\n\"hush\")",
            "CRATE SECRT x (TYPE gcs, SERVICE_ACCOUNT $$hush$$)",
        ] {
            assert!(!without_passwords(sql).contains("hush"), "{sql}");
        }
        let told = [
            ("CREATE SECRET lake (TYPE s3, SECRET 'x')", "CREATE SECRET lake"),
            ("CREATE OR REPLACE SECRET lake(SECRET 'x')", "CREATE OR REPLACE SECRET lake"),
            ("CREATE SECRET \"Lake\" (SECRET 'x')", HIDDEN),
            ("CREATE SECRET pg (TYPE postgres, USER 'u', PASSWORD 'x')", "CREATE SECRET pg"),
        ];
        for (sql, expected) in told {
            assert_eq!(without_passwords(sql), expected);
        }
        for sql in [
            "SELECT * FROM system.secrets",
            "CREATE TABLE secret (a INT)",
            "SELECT a AS secret FROM t",
            "DROP SECRET lake",
            "SELECT 'secret' AS a, 'my secret', 'x'",
            "SELECT a FROM t WHERE secret = 'x' AND key_id = $1",
        ] {
            assert_eq!(without_passwords(sql), sql);
        }
    }

    #[test]
    fn long_texts_are_read_a_few_times() {
        for part in ["create ", "create/*", "create/**/", "create--", "create"] {
            assert_eq!(without_passwords(&part.repeat(100_000)), HIDDEN, "{part}");
            assert_eq!(
                without_passwords(&format!("{} secret x (KEY_ID hush)", part.repeat(100_000))),
                HIDDEN
            );
        }
        for part in
            ["CREATE TABLE t (a INT);", "-- create\nCREATE OR REPLACE /* create one */ TABLE secret (a INT);"]
        {
            let script = part.repeat(20_000);
            assert!(without_passwords(&script) == script, "{part}");
        }
    }
}
