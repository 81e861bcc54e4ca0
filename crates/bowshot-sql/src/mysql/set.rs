//! Parses `SET` in the forms of MySQL (MySQL manual, "SET Syntax for Variable Assignment").

use super::values::{system_name, user_name};
use super::{syntax, tokens};
use crate::source_tokens::{SourceToken, SourceTokens};
use bowshot_api::{Error, Result};
use sqlparser::tokenizer::Token;

/// One assignment of a SET.
#[derive(Debug, Clone, PartialEq)]
pub enum Assignment {
    /// `SET name = …`
    Variable(String, AssignedValue),
    /// `SET @name = …`
    User(String, AssignedValue),
    /// `SET NAMES`, `SET CHARACTER SET`, with a collation or without; `None` for DEFAULT.
    Names(Option<String>, Option<String>),
    /// `SET SESSION TRANSACTION READ ONLY` or `READ WRITE`.
    ReadOnly(bool),
}

#[derive(Debug, Clone, PartialEq)]
pub enum AssignedValue {
    /// `DEFAULT`
    Default,
    /// `NULL`
    Null,
    /// A string or a word.
    Text(String),
    /// A number with its sign.
    Number(String),
    /// The value of another variable.
    Variable(String),
    /// The value of a user variable.
    User(String),
    /// `CONCAT(…)`
    Joined(Vec<AssignedValue>),
}

/// How deep CONCAT may be nested.
const DEEPEST: usize = 8;

/// The tokens of the statement.
struct Words<'a> {
    rest: SourceTokens<'a>,
    /// The depth within CONCAT.
    depth: usize,
}

fn unexpected(near: Option<&SourceToken<'_>>) -> Error {
    let near = near.map_or("the end", |token| token.text);
    syntax(format!("syntax error: `{near}` was not expected in SET"))
}

/// Parses a SET.
pub(super) fn parse(sql: &str) -> Result<Vec<Assignment>> {
    let mut words = Words { rest: tokens(sql), depth: 0 };
    words.rest.next();
    let mut found = Vec::new();
    loop {
        words.assignments(&mut found)?;
        match words.rest.next() {
            None => return Ok(found),
            Some(comma) if comma.token == Token::Comma => {}
            other => return Err(unexpected(other.as_ref())),
        }
    }
}

impl Words<'_> {
    fn unexpected(&mut self) -> Error {
        unexpected(self.rest.peek())
    }

    fn assignments(&mut self, found: &mut Vec<Assignment>) -> Result<()> {
        if self.rest.take_word("global") || self.rest.take_word("persist") {
            return Err(of_the_server());
        }
        let is_session = self.rest.take_word("session") || self.rest.take_word("local");
        if self.rest.take_word("names") {
            let names = self.name_or_default()?;
            let collation = if self.rest.take_word("collate") { self.name_or_default()? } else { None };
            found.push(Assignment::Names(names, collation));
            return Ok(());
        }
        if self.rest.take_word("charset") {
            found.push(Assignment::Names(self.name_or_default()?, None));
            return Ok(());
        }
        let first = self.rest.next();
        let first_is = |word: &str| first.as_ref().is_some_and(|token| token.is(word));
        if first_is("character") && self.rest.take_word("set") {
            found.push(Assignment::Names(self.name_or_default()?, None));
            return Ok(());
        }
        if first_is("transaction") {
            // SESSION sets it for later transactions.
            let level = if is_session { "default_transaction_isolation" } else { "transaction_isolation" };
            return self.transaction(level, found);
        }
        let Some(first) = first else { return Err(unexpected(None)) };
        let is_user = first.is_variable() && !first.text.starts_with("@@");
        let name = if is_user { user_name(first.text) } else { name(&first)? };
        if !self.rest.take_token(&Token::Eq) && !self.rest.take_token(&Token::Assignment) {
            return Err(self.unexpected());
        }
        if name.starts_with("session_track_") {
            // Session tracking is a capability that is not offered: the setting has no effect.
            self.skip_value();
            return Ok(());
        }
        let value = self.value()?;
        found.push(if is_user { Assignment::User(name, value) } else { Assignment::Variable(name, value) });
        Ok(())
    }

    /// Skips a value, up to the comma before the next assignment.
    fn skip_value(&mut self) {
        let mut depth = 0_i64;
        while let Some(token) = self.rest.next_if(|token| depth > 0 || token.token != Token::Comma) {
            depth += token.depth();
        }
    }

    fn name_or_default(&mut self) -> Result<Option<String>> {
        match self.rest.next() {
            Some(token) if token.is("default") => Ok(None),
            Some(token) => {
                let name = token.string().map(str::to_owned).or_else(|| token.name());
                name.map(Some).ok_or_else(|| unexpected(Some(&token)))
            }
            None => Err(unexpected(None)),
        }
    }

    /// `ISOLATION LEVEL …`, `READ ONLY`, `READ WRITE`, and a comma between them.
    fn transaction(&mut self, variable: &str, found: &mut Vec<Assignment>) -> Result<()> {
        loop {
            if self.rest.take_word("isolation") && self.rest.take_word("level") {
                let mut level = String::new();
                while let Some(word) = self.rest.next_if(SourceToken::is_word) {
                    level.push_str(if level.is_empty() { "" } else { " " });
                    level.push_str(&word.text.to_ascii_lowercase());
                }
                found.push(Assignment::Variable(variable.to_owned(), AssignedValue::Text(level)));
            } else if self.rest.take_word("read") {
                let read_only = self.rest.take_word("only");
                if !read_only && !self.rest.take_word("write") {
                    return Err(self.unexpected());
                }
                found.push(Assignment::ReadOnly(read_only));
            } else {
                return Err(self.unexpected());
            }
            if !self.rest.take_token(&Token::Comma) {
                return Ok(());
            }
        }
    }

    fn value(&mut self) -> Result<AssignedValue> {
        let sign = if self.rest.take_token(&Token::Minus) { "-" } else { "" };
        let Some(token) = self.rest.next() else { return Err(unexpected(None)) };
        Ok(match token.string() {
            Some(text) => AssignedValue::Text(text.to_owned()),
            None if token.is_number() => AssignedValue::Number(format!("{sign}{}", token.text)),
            None if token.text.starts_with("@@") => AssignedValue::Variable(system_name(token.text)),
            None if token.is_variable() => AssignedValue::User(user_name(token.text)),
            None if token.is("default") => AssignedValue::Default,
            None if token.is("null") => AssignedValue::Null,
            None if token.is("concat") && self.rest.take_token(&Token::LParen) => {
                AssignedValue::Joined(self.parts()?)
            }
            None => {
                let name = token.name().ok_or_else(|| unexpected(Some(&token)))?;
                AssignedValue::Text(self.word(name))
            }
        })
    }

    fn parts(&mut self) -> Result<Vec<AssignedValue>> {
        if self.depth == DEEPEST {
            return Err(syntax("syntax error: CONCAT is nested too deep"));
        }
        self.depth += 1;
        let mut parts = vec![self.value()?];
        while self.rest.take_token(&Token::Comma) {
            parts.push(self.value()?);
        }
        self.depth -= 1;
        if self.rest.take_token(&Token::RParen) { Ok(parts) } else { Err(self.unexpected()) }
    }

    /// A word with its hyphens, such as `READ-COMMITTED`.
    fn word(&mut self, mut text: String) -> String {
        while self.rest.take_token(&Token::Minus) {
            text.push('-');
            text.push_str(&self.rest.next().and_then(|next| next.name()).unwrap_or_default());
        }
        text
    }
}

/// The name of a variable before the equals sign.
fn name(token: &SourceToken<'_>) -> Result<String> {
    if token.text.starts_with("@@") {
        let text = token.text.to_ascii_lowercase();
        if text.starts_with("@@global.") || text.starts_with("@@persist") {
            return Err(of_the_server());
        }
        return Ok(system_name(&text));
    }
    token.name().map(|name| name.to_ascii_lowercase()).ok_or_else(|| unexpected(Some(token)))
}

fn of_the_server() -> Error {
    Error::unsupported("SET GLOBAL is not supported")
        .with_hint("SET GLOBAL is not supported: settings of the server are in its configuration")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowshot_api::ErrorKind;

    #[test]
    fn what_is_no_assignment_is_refused() {
        for (sql, kind) in [
            ("SET", ErrorKind::Syntax),
            ("SET a", ErrorKind::Syntax),
            ("SET a =", ErrorKind::Syntax),
            ("SET a = 1,", ErrorKind::Syntax),
            ("SET a = 1 b", ErrorKind::Syntax),
            ("SET a = CONCAT('x'", ErrorKind::Syntax),
            (&format!("SET a = {}", "CONCAT(".repeat(100_000)), ErrorKind::Syntax),
            ("SET TRANSACTION", ErrorKind::Syntax),
            ("SET @x = f(1)", ErrorKind::Syntax),
            ("SET @x", ErrorKind::Syntax),
            ("SET GLOBAL a = 1", ErrorKind::Unsupported),
            ("SET @@global.a = 1", ErrorKind::Unsupported),
        ] {
            assert_eq!(parse(sql).unwrap_err().kind(), kind, "{sql}");
        }
    }
}
