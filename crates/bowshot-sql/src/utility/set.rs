//! `SET` and `RESET` in the forms of PostgreSQL, MySQL and DuckDB.

use super::session;
use crate::statement::Statement;
use crate::statement_tokens::StatementTokens;
use crate::utility::session::{Assignment, SessionStatement};
use bowshot_api::{Error, Result};
use sqlparser::tokenizer::Token;

/// Reads a statement that begins with SET.
pub(super) fn read(mut words: StatementTokens<'_>) -> Result<Statement> {
    words.take("set");
    set(&mut words).map(session)
}

/// Reads a statement that begins with RESET.
pub(super) fn read_reset(mut words: StatementTokens<'_>) -> Result<Statement> {
    words.take("reset");
    reset(words).map(session)
}

fn reset(mut words: StatementTokens<'_>) -> Result<SessionStatement> {
    let _ = words.take_any(&["session", "local"]);
    if words.take("all") {
        words.end()?;
        return Ok(SessionStatement::ResetAll);
    }
    if words.take_any(&["role", "authorization"]) {
        words.end()?;
        return Ok(SessionStatement::Nothing);
    }
    let name = name(&mut words)?;
    words.end()?;
    Ok(SessionStatement::Set(vec![Assignment { name, value: None }]))
}

fn set(words: &mut StatementTokens<'_>) -> Result<SessionStatement> {
    if words.take("global") || words.take("persist") {
        return Err(Error::unsupported("SET GLOBAL is not supported")
            .with_hint("SET GLOBAL is not supported: settings of the server are in its configuration"));
    }
    if words.take_any(&["variable", "var"])
        || matches!(words.peek().as_deref(), Some(word) if is_user_variable(word))
    {
        return Err(user_variables());
    }
    let local = words.take("local");
    let session = !local && words.take("session");
    if let Some(special) = special(words, session)? {
        words.end()?;
        return Ok(if local { as_local(special) } else { special });
    }
    let assignments = assignments(words)?;
    words.end()?;
    Ok(if local { SessionStatement::SetLocal(assignments) } else { SessionStatement::Set(assignments) })
}

fn as_local(statement: SessionStatement) -> SessionStatement {
    match statement {
        SessionStatement::Set(assignments) => SessionStatement::SetLocal(assignments),
        other => other,
    }
}

/// The forms that have words instead of a name and an equals sign.
fn special(words: &mut StatementTokens<'_>, session: bool) -> Result<Option<SessionStatement>> {
    let one = |name: &str, value: Option<String>| {
        SessionStatement::Set(vec![Assignment { name: name.to_owned(), value }])
    };
    if words.take_all(&["time", "zone"]) {
        return Ok(Some(one("time_zone", zone(words)?)));
    }
    if words.take("names") {
        return Ok(Some(names(words)?));
    }
    if words.take_all(&["character", "set"]) || words.take("charset") {
        let value = value(words)?;
        return Ok(Some(one("character_set_client", value)));
    }
    if words.peek().as_deref() == Some("schema") && !is_assignment(words, 1) {
        words.take("schema");
        return Ok(Some(one("schema", value(words)?)));
    }
    if words.take("role") || (session && words.take("authorization")) {
        return match value(words)?.map(|role| role.to_ascii_lowercase()).as_deref() {
            None | Some("none") => Ok(Some(SessionStatement::Nothing)),
            Some(_) => Err(Error::unsupported("the user of a session cannot be changed")
                .with_hint("connect as the other user")),
        };
    }
    if words.take("constraints") {
        words.skip_to_end();
        return Ok(Some(SessionStatement::Nothing));
    }
    let characteristics = session && words.take_all(&["characteristics", "as"]);
    if words.take("transaction") {
        let statement = transaction(words, characteristics)?;
        return Ok(Some(if session { statement } else { as_local(statement) }));
    }
    Ok(None)
}

/// The level of a transaction, or of those to come.
fn transaction(words: &mut StatementTokens<'_>, characteristics: bool) -> Result<SessionStatement> {
    let name = if characteristics { "default_transaction_isolation" } else { "transaction_isolation" };
    let mut statement = SessionStatement::Nothing;
    while !words.at_end() {
        if words.take_all(&["isolation", "level"]) {
            let level = if words.take("serializable") {
                "serializable"
            } else if words.take_all(&["repeatable", "read"]) {
                "repeatable read"
            } else if words.take_all(&["read", "committed"]) {
                "read committed"
            } else if words.take_all(&["read", "uncommitted"]) {
                "read uncommitted"
            } else {
                return Err(words.unexpected());
            };
            let assignment = Assignment { name: name.to_owned(), value: Some(level.to_owned()) };
            statement = SessionStatement::Set(vec![assignment]);
        } else if words.take_all(&["read", "only"]) {
            return Err(Error::unsupported("a transaction that has begun cannot become read-only")
                .with_hint("begin it with `BEGIN READ ONLY`"));
        } else if !(words.take_all(&["read", "write"])
            || words.take_all(&["not", "deferrable"])
            || words.take("deferrable"))
        {
            return Err(words.unexpected());
        }
        let _ = words.take_token(&Token::Comma);
    }
    Ok(statement)
}

/// `SET NAMES utf8mb4 [COLLATE …]`
fn names(words: &mut StatementTokens<'_>) -> Result<SessionStatement> {
    let value = value(words)?;
    let names =
        ["character_set_client", "character_set_connection", "character_set_results", "client_encoding"];
    let mut assignments: Vec<Assignment> =
        names.into_iter().map(|name| Assignment { name: name.to_owned(), value: value.clone() }).collect();
    if words.take("collate") {
        assignments.push(Assignment { name: "collation_connection".to_owned(), value: self::value(words)? });
    }
    Ok(SessionStatement::Set(assignments))
}

/// A zone by its name, or by its distance in hours; `None` for the one of a new session.
fn zone(words: &mut StatementTokens<'_>) -> Result<Option<String>> {
    let _ = words.take_token(&Token::Eq) || words.take("to");
    if words.take_any(&["local", "default"]) {
        return Ok(None);
    }
    if words.take("interval") {
        let distance = words.string().ok_or_else(|| words.unexpected())?;
        let _ = words.take_all(&["hour", "to", "minute"]);
        return Ok(Some(distance));
    }
    let Some(text) = value(words)? else { return Ok(None) };
    Ok(Some(match text.parse::<f64>() {
        Ok(hours) if hours.abs() < 24.0 => {
            let minutes = (hours.abs() * 60.0).round() as u32;
            let sign = if hours < 0.0 { '-' } else { '+' };
            format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
        }
        _ => text,
    }))
}

fn assignments(words: &mut StatementTokens<'_>) -> Result<Vec<Assignment>> {
    let mut assignments = Vec::new();
    loop {
        let name = name(words)?;
        if !(words.take_token(&Token::Eq) || words.take_token(&Token::Assignment) || words.take("to")) {
            return Err(words.unexpected().with_hint("write `SET name = value`"));
        }
        let is_path = name.eq_ignore_ascii_case("search_path");
        let value = if is_path { search_path(words)? } else { list(words)? };
        assignments.push(Assignment { name, value });
        if !words.take_token(&Token::Comma) {
            return Ok(assignments);
        }
    }
}

/// One value or several.
fn list(words: &mut StatementTokens<'_>) -> Result<Option<String>> {
    let mut list = value(words)?;
    while take_comma(words) {
        let more = value(words)?;
        list = Some([list, more].into_iter().flatten().collect::<Vec<_>>().join(", "));
    }
    Ok(list)
}

/// The names of schemas. A text is one name, whatever is in it.
fn search_path(words: &mut StatementTokens<'_>) -> Result<Option<String>> {
    if words.take("default") {
        return Ok(None);
    }
    let mut names = Vec::new();
    loop {
        names.push(match words.string() {
            Some(name) => name,
            None => words.single()?,
        });
        if !take_comma(words) {
            return Ok(Some(join_path(&names)));
        }
    }
}

/// The list of these names as PostgreSQL writes it.
pub fn join_path(names: &[String]) -> String {
    names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")
}

fn quoted(name: &str) -> String {
    let begins = name.chars().next().is_some_and(|first| first.is_ascii_lowercase() || first == '_');
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if begins && name.chars().all(is_part) {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

/// Takes a comma that goes on with a list, as PostgreSQL has it, and not with the next assignment, as MySQL has it.
fn take_comma(words: &mut StatementTokens<'_>) -> bool {
    !is_assignment(words, 2) && words.take_token(&Token::Comma)
}

/// Whether an equals sign comes so many tokens later.
fn is_assignment(words: &StatementTokens<'_>, at: usize) -> bool {
    words.nth_is(at, &Token::Eq)
        || words.nth_is(at, &Token::Assignment)
        || words.peek_nth(at).as_deref() == Some("to")
}

/// A name with its dots; MySQL's `@@session.` is what is meant anyway.
fn name(words: &mut StatementTokens<'_>) -> Result<String> {
    let mut name = match words.token() {
        Token::Word(word) if word.value.starts_with("@@") => word.value.trim_start_matches('@').to_owned(),
        Token::Word(word) if is_user_variable(&word.value) => return Err(user_variables()),
        Token::Word(word) => word.value,
        Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => text,
        Token::AtSign => return Err(user_variables()),
        _ => return Err(words.unexpected().with_hint("write `SET name = value`")),
    };
    while words.take_token(&Token::Period) {
        name.push('.');
        name.push_str(&words.single()?);
    }
    let lower = name.to_ascii_lowercase();
    if lower.starts_with("global.") {
        return Err(Error::unsupported("SET GLOBAL is not supported")
            .with_hint("SET GLOBAL is not supported: settings of the server are in its configuration"));
    }
    for scope in ["session.", "local."] {
        if lower.starts_with(scope) {
            return Ok(name.get(scope.len()..).unwrap_or_default().to_owned());
        }
    }
    Ok(name)
}

/// A text, a word or a number; `None` for DEFAULT.
fn value(words: &mut StatementTokens<'_>) -> Result<Option<String>> {
    if let Some(text) = words.string() {
        return Ok(Some(text));
    }
    let sign = if words.take_token(&Token::Minus) {
        "-"
    } else {
        let _ = words.take_token(&Token::Plus);
        ""
    };
    match words.token() {
        Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("default") => {
            Ok(None)
        }
        Token::Word(word) if word.value.starts_with('@') => Err(user_variables()),
        Token::Word(word) => {
            let mut text = word.value;
            // Words with hyphens and dots, such as `en_US.UTF-8` and `utf-8`.
            while (words.is(&Token::Minus) || words.is(&Token::Period) || words.is(&Token::Div))
                && !words.nth_is(1, &Token::EOF)
            {
                text.push_str(&words.token().to_string());
                text.push_str(&words.token().to_string());
            }
            Ok(Some(text))
        }
        Token::Number(number, _) => {
            // `10MB` and `5s` come as a number and a word.
            let unit = match words.peek() {
                Some(unit)
                    if ["us", "ms", "s", "min", "h", "d", "kb", "mb", "gb", "tb"]
                        .contains(&unit.as_str()) =>
                {
                    words.token();
                    unit
                }
                _ => String::new(),
            };
            Ok(Some(format!("{sign}{number}{unit}")))
        }
        _ => Err(Error::new(
            bowshot_api::ErrorKind::Syntax,
            "syntax error: SET takes a text, a word or a number",
        )
        .with_hint("write `SET name = value`")),
    }
}

fn is_user_variable(word: &str) -> bool {
    word.starts_with('@') && !word.starts_with("@@")
}

fn user_variables() -> Error {
    Error::unsupported("variables of a session are not supported")
        .with_hint("pass values as parameters of a prepared statement")
}
