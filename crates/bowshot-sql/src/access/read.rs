//! From the text of a statement about access to what it says.

mod owner;

use super::{AccessStatement, Expiry, Object, Privilege, UserChange};
use crate::statement_tokens::{StatementTokens, expect_end, is_word, name_of, take_word as word};
use crate::syntax_error::syntax_error;
use bowshot_api::{Error, ErrorKind, Result, Secret};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;
use std::time::Duration;

/// Names in one list.
const MAX_NAMES: usize = 1_000;

type Parsed<T> = std::result::Result<T, ParserError>;
/// Privileges with their columns; none: all.
type Privileges = Vec<(Privilege, Vec<String>)>;

/// Whether a statement about access begins here.
pub(crate) fn begins(words: &StatementTokens<'_>) -> bool {
    kind(words).is_some()
}

/// Reads a statement that [begins](begins) so.
pub(crate) fn read(mut words: StatementTokens<'_>) -> Result<AccessStatement> {
    let Some((kind, taken)) = kind(&words) else { return Err(words.unexpected()) };
    let parser = &mut words.parser;
    (0..taken).for_each(|_| parser.advance_token());
    let statement = statement(parser, kind).and_then(|statement| expect_end(parser).map(|()| statement));
    statement.map_err(|error| {
        let told = syntax_error(&error);
        // The text may hold a password: no part of it is told again.
        let message = if matches!(kind, Kind::User | Kind::AlterUser) {
            "this form of CREATE or ALTER USER is not known"
        } else {
            told.message()
        };
        Error::new(ErrorKind::Syntax, message).with_hint(kind.form())
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Role,
    User,
    DropRole,
    DropUser,
    AlterUser,
    Grant,
    Revoke,
    RowPolicy,
    Mask,
    DropRowPolicy,
    DropMask,
    Token,
    DropToken,
    Defaults,
    Owner,
}

impl Kind {
    fn form(self) -> &'static str {
        match self {
            Self::Role => "write `CREATE ROLE name`",
            Self::User | Self::AlterUser => {
                "write `CREATE USER name PASSWORD 'text'`, with ADMIN and SET attribute = 'value' behind it where needed"
            }
            Self::DropRole => "write `DROP ROLE name`",
            Self::DropUser => "write `DROP USER name`",
            Self::Grant => {
                "write `GRANT SELECT ON table TO role`, with `WITH GRANT OPTION` behind it where needed, `GRANT ALL ON SCHEMA name TO role`, `GRANT EXECUTE ON MODEL name TO role` or `GRANT role TO user`"
            }
            Self::Revoke => {
                "write `REVOKE SELECT ON table FROM role`, with CASCADE behind it where needed, or `REVOKE role FROM user`"
            }
            Self::Owner => "write `ALTER TABLE name OWNER TO role`",
            Self::RowPolicy => "write `CREATE ROW POLICY name ON table FOR role USING (condition)`",
            Self::Mask => {
                "write `CREATE MASK name ON table (column) FOR role USING (redact)`; masks are redact, hash, null, partial(first, last) and expressions"
            }
            Self::DropRowPolicy => "write `DROP ROW POLICY name ON table`",
            Self::DropMask => "write `DROP MASK name ON table`",
            Self::Token => {
                "write `CREATE TOKEN name EXPIRES '30 days'`, in minutes, hours, days or weeks, or NEVER"
            }
            Self::DropToken => "write `DROP TOKEN name`",
            Self::Defaults => {
                "write `ALTER DEFAULT PRIVILEGES FOR USER name IN SCHEMA name GRANT SELECT ON TABLES TO role`, or REVOKE … FROM"
            }
        }
    }
}

/// Which statement begins here, and how many words say so.
fn kind(words: &StatementTokens<'_>) -> Option<(Kind, usize)> {
    let [first, second, third] = [0, 1, 2].map(|n| words.peek_nth(n).unwrap_or_default());
    Some(match (first.as_str(), second.as_str(), third.as_str()) {
        ("grant", ..) => (Kind::Grant, 1),
        ("revoke", ..) => (Kind::Revoke, 1),
        ("create", "role", _) => (Kind::Role, 2),
        ("create", "user", _) => (Kind::User, 2),
        ("alter", "user", _) => (Kind::AlterUser, 2),
        ("alter", "default", "privileges") => (Kind::Defaults, 3),
        ("drop", "role", _) => (Kind::DropRole, 2),
        ("drop", "user", _) => (Kind::DropUser, 2),
        ("create", "row", "policy") => (Kind::RowPolicy, 3),
        ("drop", "row", "policy") => (Kind::DropRowPolicy, 3),
        ("create", "mask", _) => (Kind::Mask, 2),
        ("drop", "mask", _) => (Kind::DropMask, 2),
        ("create", "token", _) => (Kind::Token, 2),
        ("drop", "token", _) => (Kind::DropToken, 2),
        ("alter", ..) if owner::is_said(words) => (Kind::Owner, 1),
        _ => return None,
    })
}

fn statement(parser: &mut Parser<'_>, kind: Kind) -> Parsed<AccessStatement> {
    match kind {
        Kind::Owner => owner::owner(parser),
        Kind::Role => {
            let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
            Ok(AccessStatement::CreateRole { if_not_exists, name: grantee(parser)? })
        }
        Kind::DropRole | Kind::DropUser => {
            let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
            Ok(AccessStatement::DropGrantee {
                user: kind == Kind::DropUser,
                name: grantee(parser)?,
                if_exists,
            })
        }
        Kind::User | Kind::AlterUser => user(parser, kind),
        Kind::Grant | Kind::Revoke => rights(parser, kind == Kind::Grant),
        Kind::RowPolicy | Kind::Mask => policy(parser, kind == Kind::Mask),
        Kind::Defaults => defaults(parser),
        Kind::Token => token(parser),
        Kind::DropToken => {
            let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
            let name = name_of(&parser.parse_identifier()?);
            Ok(AccessStatement::DropToken { name, user: for_user(parser)?, if_exists })
        }
        Kind::DropRowPolicy | Kind::DropMask => {
            let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
            let name = name_of(&parser.parse_identifier()?);
            parser.expect_keyword(Keyword::ON)?;
            let table = parser.parse_object_name(false)?;
            Ok(AccessStatement::DropPolicy { mask: kind == Kind::DropMask, name, table, if_exists })
        }
    }
}

fn user(parser: &mut Parser<'_>, kind: Kind) -> Parsed<AccessStatement> {
    let if_missing =
        kind == Kind::User && parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let change = match (kind, if_missing) {
        (Kind::AlterUser, _) => UserChange::Alter,
        (_, true) => UserChange::CreateIfMissing,
        _ => UserChange::Create,
    };
    let name = grantee(parser)?;
    let (mut password, mut admin, mut attributes) = (None, None, Vec::new());
    let _ = parser.parse_keyword(Keyword::WITH);
    loop {
        if word(parser, "password") {
            password = Some(Secret::new(parser.parse_literal_string()?));
        } else if word(parser, "identified") {
            parser.expect_keyword(Keyword::BY)?;
            password = Some(Secret::new(parser.parse_literal_string()?));
        } else if word(parser, "admin") || word(parser, "superuser") {
            admin = Some(true);
        } else if word(parser, "noadmin") || word(parser, "nosuperuser") {
            admin = Some(false);
        } else if parser.parse_keyword(Keyword::SET) {
            attributes.extend(parser.parse_comma_separated(|parser| {
                let name = name_of(&parser.parse_identifier()?);
                parser.expect_token(&Token::Eq)?;
                Ok((name, Some(parser.parse_literal_string()?)))
            })?);
        } else if word(parser, "reset") {
            let gone = parser.parse_comma_separated(Parser::parse_identifier)?;
            attributes.extend(gone.iter().map(|name| (name_of(name), None)));
        } else {
            return Ok(AccessStatement::User { name, change, password, admin, attributes });
        }
    }
}

fn token(parser: &mut Parser<'_>) -> Parsed<AccessStatement> {
    let name = name_of(&parser.parse_identifier()?);
    let user = for_user(parser)?;
    let expires = if !word(parser, "expires") {
        Expiry::Usual
    } else if word(parser, "never") {
        Expiry::Never
    } else {
        let _ = parser.parse_keyword(Keyword::IN);
        let text = parser.parse_literal_string()?;
        let time = duration(&text).ok_or_else(|| ParserError::ParserError(format!("`{text}` is no time")))?;
        Expiry::After(time)
    };
    Ok(AccessStatement::CreateToken { name, user, expires })
}

fn for_user(parser: &mut Parser<'_>) -> Parsed<Option<String>> {
    if parser.parse_keyword(Keyword::FOR) { grantee(parser).map(Some) } else { Ok(None) }
}

/// `30 days`, and its like.
fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = text.trim().split_once(' ')?;
    let seconds = match unit.trim().trim_end_matches('s') {
        "minute" => 60,
        "hour" => 60 * 60,
        "day" => 24 * 60 * 60,
        "week" => 7 * 24 * 60 * 60,
        _ => return None,
    };
    let number: u64 = number.parse().ok().filter(|number| (1..=1_000_000).contains(number))?;
    Some(Duration::from_secs(number * seconds))
}

fn rights(parser: &mut Parser<'_>, give: bool) -> Parsed<AccessStatement> {
    // `REVOKE GRANT OPTION FOR …`, unless a role has that name.
    let option_alone = !give
        && is_word(parser, "grant")
        && parser.parse_keywords(&[Keyword::GRANT, Keyword::OPTION, Keyword::FOR]);
    let Some((privileges, object)) = rights_on(parser)? else {
        if option_alone {
            return parser.expected("a privilege", parser.peek_token());
        }
        let _ = parser.parse_keyword(Keyword::ROLE);
        let roles = names(parser)?;
        return Ok(AccessStatement::Membership { give, roles, members: others(parser, give)? });
    };
    let grantees = others(parser, give)?;
    let option =
        option_alone || give && parser.parse_keywords(&[Keyword::WITH, Keyword::GRANT, Keyword::OPTION]);
    let cascade = !give && parser.parse_keyword(Keyword::CASCADE);
    if !give && !cascade {
        let _ = parser.parse_keyword(Keyword::RESTRICT);
    }
    Ok(AccessStatement::Rights { give, privileges, object, grantees, option, cascade })
}

/// `what ON object`; `None` for roles.
fn rights_on(parser: &mut Parser<'_>) -> Parsed<Option<(Privileges, Object)>> {
    if is_word(parser, "execute")
        && matches!(&parser.peek_nth_token_ref(1).token, Token::Word(next) if next.keyword == Keyword::ON)
    {
        parser.advance_token();
        parser.advance_token();
        if !word(parser, "model") {
            return parser.expected("MODEL: nothing else is executed", parser.peek_token());
        }
        let model = Object::Model(parser.parse_object_name(false)?);
        return Ok(Some((vec![(Privilege::Select, Vec::new())], model)));
    }
    let Some(privileges) = privileges(parser)? else { return Ok(None) };
    parser.expect_keyword(Keyword::ON)?;
    let object = object(parser)?;
    let privileges = match &object {
        Object::Model(_) => of_model(privileges)?,
        Object::Schema(_) | Object::Catalog(_)
            if privileges.iter().any(|(_, columns)| !columns.is_empty()) =>
        {
            return Err(ParserError::ParserError("rights on columns need a table".to_owned()));
        }
        _ => privileges,
    };
    Ok(Some((privileges, object)))
}

fn defaults(parser: &mut Parser<'_>) -> Parsed<AccessStatement> {
    let users = if parser.parse_keyword(Keyword::FOR) { names(parser)? } else { Vec::new() };
    let schemas = if parser.parse_keywords(&[Keyword::IN, Keyword::SCHEMA]) {
        parser.parse_comma_separated(|parser| parser.parse_object_name(false))?
    } else {
        Vec::new()
    };
    let give = parser.parse_one_of_keywords(&[Keyword::GRANT, Keyword::REVOKE]);
    let Some(give) = give else { return parser.expected("GRANT or REVOKE", parser.peek_token()) };
    let give = give == Keyword::GRANT;
    let Some(privileges) = privileges(parser)? else {
        return parser.expected("a privilege", parser.peek_token());
    };
    if privileges.iter().any(|(_, columns)| !columns.is_empty()) {
        return Err(ParserError::ParserError("default privileges cannot name columns".to_owned()));
    }
    parser.expect_keyword(Keyword::ON)?;
    parser.expect_keyword(Keyword::TABLES)?;
    let grantees = others(parser, give)?;
    let privileges = privileges.into_iter().map(|(privilege, _)| privilege).collect();
    Ok(AccessStatement::DefaultRights { give, privileges, users, schemas, grantees })
}

/// What is given or taken; `None` for roles.
fn privileges(parser: &mut Parser<'_>) -> Parsed<Option<Privileges>> {
    if parser.parse_keyword(Keyword::ALL) {
        let _ = parser.parse_keyword(Keyword::PRIVILEGES);
        return Ok(Some(Privilege::ALL.into_iter().map(|privilege| (privilege, Vec::new())).collect()));
    }
    let mut found = Vec::new();
    loop {
        let privilege = Privilege::ALL.into_iter().find(|privilege| {
            // A role may have the name of one.
            is_word(parser, privilege.as_str())
                && (!found.is_empty() || !matches!(parser.peek_nth_token_ref(1).token, Token::Word(ref next) if next.keyword == Keyword::TO || next.keyword == Keyword::FROM))
        });
        let Some(privilege) = privilege else {
            return if found.is_empty() {
                Ok(None)
            } else {
                parser.expected("a privilege", parser.peek_token())
            };
        };
        parser.advance_token();
        let columns = match parser.consume_token(&Token::LParen) {
            true if matches!(privilege, Privilege::Select | Privilege::Insert | Privilege::Update) => {
                let columns = parser.parse_comma_separated(Parser::parse_identifier)?;
                parser.expect_token(&Token::RParen)?;
                columns.iter().map(name_of).collect()
            }
            true => {
                let message = "only SELECT, INSERT and UPDATE are granted on columns";
                return Err(ParserError::ParserError(message.to_owned()));
            }
            false => Vec::new(),
        };
        found.push((privilege, columns));
        if !parser.consume_token(&Token::Comma) {
            return Ok(Some(found));
        }
    }
}

/// Rights on a model: to ask it, however that is called, and all that its owner may do.
fn of_model(privileges: Privileges) -> Parsed<Privileges> {
    let all = privileges.len() == Privilege::ALL.len();
    let mut found = Privileges::new();
    for (privilege, columns) in privileges {
        let right = match privilege {
            _ if !columns.is_empty() => {
                return Err(ParserError::ParserError("a model has no columns".to_owned()));
            }
            Privilege::Usage | Privilege::Select => Privilege::Select,
            Privilege::Own => Privilege::Own,
            _ if all => continue,
            other => {
                let other = other.as_str();
                return Err(ParserError::ParserError(format!("{other} is not a right on a model")));
            }
        };
        if !found.iter().any(|(there, _)| *there == right) {
            found.push((right, columns));
        }
    }
    Ok(found)
}

fn object(parser: &mut Parser<'_>) -> Parsed<Object> {
    // A table may have this name: `GRANT SELECT ON model TO r`.
    if is_word(parser, "model")
        && matches!(&parser.peek_nth_token_ref(1).token, Token::Word(next) if !matches!(next.keyword, Keyword::TO | Keyword::FROM))
    {
        parser.advance_token();
        return Ok(Object::Model(parser.parse_object_name(false)?));
    }
    if parser.parse_keyword(Keyword::SCHEMA) {
        return Ok(Object::Schema(parser.parse_object_name(false)?));
    }
    if parser.parse_keyword(Keyword::CATALOG) || parser.parse_keyword(Keyword::DATABASE) {
        return Ok(Object::Catalog(parser.parse_object_name(false)?));
    }
    if parser.parse_keywords(&[Keyword::ALL, Keyword::TABLES, Keyword::IN, Keyword::SCHEMA]) {
        return Ok(Object::Schema(parser.parse_object_name(false)?));
    }
    let _ = parser.parse_keyword(Keyword::TABLE) || parser.parse_keyword(Keyword::VIEW);
    Ok(Object::Table(parser.parse_object_name(false)?))
}

/// `TO r, …` or `FROM r, …`
fn others(parser: &mut Parser<'_>, give: bool) -> Parsed<Vec<String>> {
    parser.expect_keyword(if give { Keyword::TO } else { Keyword::FROM })?;
    names(parser)
}

fn names(parser: &mut Parser<'_>) -> Parsed<Vec<String>> {
    let names = parser.parse_comma_separated(|parser| {
        // `TO ROLE r`, unless that is its name.
        if matches!(&parser.peek_nth_token_ref(1).token, Token::Word(_))
            && (is_word(parser, "role") || is_word(parser, "user"))
            && !matches!(&parser.peek_nth_token_ref(1).token, Token::Word(next) if matches!(next.keyword, Keyword::TO | Keyword::FROM | Keyword::USING | Keyword::IN | Keyword::GRANT | Keyword::REVOKE | Keyword::WITH | Keyword::CASCADE | Keyword::RESTRICT))
        {
            parser.advance_token();
        }
        grantee(parser)
    })?;
    if names.len() > MAX_NAMES {
        return Err(ParserError::ParserError(format!("more than {MAX_NAMES} names")));
    }
    Ok(names)
}

fn policy(parser: &mut Parser<'_>, mask: bool) -> Parsed<AccessStatement> {
    let name = name_of(&parser.parse_identifier()?);
    parser.expect_keyword(Keyword::ON)?;
    let table = parser.parse_object_name(false)?;
    let column = if mask {
        parser.expect_token(&Token::LParen)?;
        let column = name_of(&parser.parse_identifier()?);
        parser.expect_token(&Token::RParen)?;
        Some(column)
    } else {
        None
    };
    let roles = if parser.parse_keyword(Keyword::FOR) { names(parser)? } else { Vec::new() };
    parser.expect_keyword(Keyword::USING)?;
    parser.expect_token(&Token::LParen)?;
    let using = Box::new(parser.parse_expr()?);
    parser.expect_token(&Token::RParen)?;
    Ok(AccessStatement::CreatePolicy { name, table, column, roles, using })
}

/// The name of a role or user, which may stand in quotes of any kind, as clients write it.
fn grantee(parser: &mut Parser<'_>) -> Parsed<String> {
    let name = match &parser.peek_token_ref().token {
        Token::SingleQuotedString(name) => name.clone(),
        _ => return Ok(name_of(&parser.parse_identifier()?)),
    };
    parser.advance_token();
    Ok(name)
}

#[cfg(test)]
mod tests;
