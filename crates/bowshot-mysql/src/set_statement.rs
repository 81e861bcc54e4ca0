//! Parses `SET` in the forms of MySQL (MySQL manual, "SET Syntax for Variable Assignment").

use crate::status::Failure;
use crate::tokens::{Kind, Token, Tokens, tokens};
use crate::user_variables::user_name;
use crate::variables::bare;

/// One assignment of a SET.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Assignment {
    Variable(String, Value),
    /// `SET @name = …`
    User(String, Value),
    /// `SET NAMES`, `SET CHARACTER SET`, with a collation or without; `None` for DEFAULT.
    Names(Option<String>, Option<String>),
    /// `SET SESSION TRANSACTION READ ONLY` or `READ WRITE`.
    ReadOnly(bool),
}

/// An assigned value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Default,
    Null,
    Text(String),
    Number(String),
    /// The value of another variable.
    Variable(String),
    /// The value of a user variable.
    User(String),
    /// `CONCAT(…)`
    Joined(Vec<Value>),
}

/// How deep CONCAT may be nested.
const DEEPEST: usize = 8;

/// The tokens of the statement.
struct Words<'a> {
    rest: std::iter::Peekable<Tokens<'a>>,
    /// The depth within CONCAT.
    depth: usize,
}

fn syntax(near: Option<Token<'_>>) -> Failure {
    let near = near.map_or("the end", |token| token.text);
    Failure::syntax(format!("syntax error: `{near}` was not expected in SET"))
}

/// Parses a SET.
///
/// # Errors
/// For a SET that is not valid, and for global variables.
pub(crate) fn parse(sql: &str) -> Result<Vec<Assignment>, Failure> {
    let mut tokens = tokens(sql);
    tokens.next();
    let mut words = Words { rest: tokens.peekable(), depth: 0 };
    let mut found = Vec::new();
    loop {
        words.assignments(&mut found)?;
        match words.rest.next() {
            None => return Ok(found),
            Some(comma) if comma.is_symbol(',') => {}
            other => return Err(syntax(other)),
        }
    }
}

impl<'a> Words<'a> {
    fn take(&mut self, word: &str) -> bool {
        self.rest.next_if(|token| token.is(word)).is_some()
    }

    fn take_symbol(&mut self, symbol: char) -> bool {
        self.rest.next_if(|token| token.is_symbol(symbol)).is_some()
    }

    fn assignments(&mut self, found: &mut Vec<Assignment>) -> Result<(), Failure> {
        if self.take("global") || self.take("persist") {
            return Err(of_the_server());
        }
        let is_session = self.take("session") || self.take("local");
        if self.take("names") {
            let names = self.name_or_default()?;
            let collation = if self.take("collate") { self.name_or_default()? } else { None };
            found.push(Assignment::Names(names, collation));
            return Ok(());
        }
        if self.take("charset") {
            found.push(Assignment::Names(self.name_or_default()?, None));
            return Ok(());
        }
        let first = self.rest.next();
        if first.is_some_and(|token| token.is("character")) && self.take("set") {
            found.push(Assignment::Names(self.name_or_default()?, None));
            return Ok(());
        }
        if first.is_some_and(|token| token.is("transaction")) {
            // SESSION sets it for later transactions.
            let level = if is_session { "default_transaction_isolation" } else { "transaction_isolation" };
            return self.transaction(level, found);
        }
        let own = first.filter(|token| token.kind == Kind::Variable && !token.text.starts_with("@@"));
        let name = own.map_or_else(|| name(first), |token| Ok(user_name(token.text)))?;
        let is_assigned = self.take_symbol('=') || (self.take_symbol(':') && self.take_symbol('='));
        if !is_assigned {
            return Err(syntax(self.rest.peek().copied()));
        }
        if name.starts_with("session_track_") {
            // Session tracking is a capability that is not offered: the setting has no effect.
            self.skip_value();
            return Ok(());
        }
        let value = self.value()?;
        found.push(match own {
            Some(_) => Assignment::User(name, value),
            None => Assignment::Variable(name, value),
        });
        Ok(())
    }

    /// Skips a value, up to the comma before the next assignment.
    fn skip_value(&mut self) {
        let mut depth = 0_i64;
        while let Some(token) = self.rest.next_if(|token| depth > 0 || !token.is_symbol(',')) {
            depth += i64::from(token.is_symbol('(')) - i64::from(token.is_symbol(')'));
        }
    }

    fn name_or_default(&mut self) -> Result<Option<String>, Failure> {
        let token = self.rest.next();
        match token {
            Some(token) if token.is("default") => Ok(None),
            Some(token) => {
                token.string().or_else(|| token.name()).map(Some).ok_or_else(|| syntax(Some(token)))
            }
            None => Err(syntax(None)),
        }
    }

    /// `ISOLATION LEVEL …`, `READ ONLY`, `READ WRITE`, and a comma between them.
    fn transaction(&mut self, variable: &str, found: &mut Vec<Assignment>) -> Result<(), Failure> {
        loop {
            if self.take("isolation") && self.take("level") {
                let mut level = String::new();
                while let Some(word) = self.rest.next_if(|token| token.kind == Kind::Word) {
                    level.push_str(if level.is_empty() { "" } else { " " });
                    level.push_str(&word.text.to_ascii_lowercase());
                }
                found.push(Assignment::Variable(variable.to_owned(), Value::Text(level)));
            } else if self.take("read") {
                let read_only = self.take("only");
                if !read_only && !self.take("write") {
                    return Err(syntax(self.rest.peek().copied()));
                }
                found.push(Assignment::ReadOnly(read_only));
            } else {
                return Err(syntax(self.rest.peek().copied()));
            }
            if !self.take_symbol(',') {
                return Ok(());
            }
        }
    }

    fn value(&mut self) -> Result<Value, Failure> {
        let sign = if self.take_symbol('-') { "-" } else { "" };
        let Some(token) = self.rest.next() else { return Err(syntax(None)) };
        Ok(match token.kind {
            Kind::Text => Value::Text(token.string().unwrap_or_default()),
            Kind::Number => Value::Number(format!("{sign}{}", token.text)),
            Kind::Variable if token.text.starts_with("@@") => Value::Variable(bare(token.text)),
            Kind::Variable => Value::User(user_name(token.text)),
            Kind::Word if token.is("default") => Value::Default,
            Kind::Word if token.is("null") => Value::Null,
            Kind::Word if token.is("concat") && self.take_symbol('(') => Value::Joined(self.parts()?),
            Kind::Word | Kind::Quoted => Value::Text(self.word(token)),
            Kind::Symbol(_) => return Err(syntax(Some(token))),
        })
    }

    fn parts(&mut self) -> Result<Vec<Value>, Failure> {
        if self.depth == DEEPEST {
            return Err(Failure::syntax("syntax error: CONCAT stands too deep in itself"));
        }
        self.depth += 1;
        let mut parts = vec![self.value()?];
        while self.take_symbol(',') {
            parts.push(self.value()?);
        }
        self.depth -= 1;
        if self.take_symbol(')') { Ok(parts) } else { Err(syntax(self.rest.peek().copied())) }
    }

    /// A word with its hyphens, such as `READ-COMMITTED`.
    fn word(&mut self, first: Token<'a>) -> String {
        let mut text = first.name().unwrap_or_default();
        while self.take_symbol('-') {
            text.push('-');
            text.push_str(&self.rest.next().and_then(|next| next.name()).unwrap_or_default());
        }
        text
    }
}

/// The name of a variable before the equals sign.
fn name(token: Option<Token<'_>>) -> Result<String, Failure> {
    let Some(token) = token else { return Err(syntax(None)) };
    match token.kind {
        Kind::Variable if token.text.starts_with("@@") => {
            let text = token.text.to_ascii_lowercase();
            if text.starts_with("@@global.") || text.starts_with("@@persist") {
                return Err(of_the_server());
            }
            Ok(bare(&text))
        }
        Kind::Word | Kind::Quoted => Ok(token.name().unwrap_or_default().to_ascii_lowercase()),
        _ => Err(syntax(Some(token))),
    }
}

fn of_the_server() -> Failure {
    Failure::unsupported("SET GLOBAL is not supported")
        .with_hint("SET is about the session; what is about the server is in its configuration")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str, value: Value) -> Assignment {
        Assignment::Variable(name.to_owned(), value)
    }

    fn text(value: &str) -> Value {
        Value::Text(value.to_owned())
    }

    fn number(value: &str) -> Value {
        Value::Number(value.to_owned())
    }

    #[test]
    fn assignments_of_clients() {
        let names = |name: &str, collation: Option<&str>| {
            Assignment::Names(Some(name.to_owned()), collation.map(str::to_owned))
        };
        for (sql, expected) in [
            ("SET NAMES utf8mb4", vec![names("utf8mb4", None)]),
            (
                "SET NAMES 'utf8mb4' COLLATE 'utf8mb4_general_ci'",
                vec![names("utf8mb4", Some("utf8mb4_general_ci"))],
            ),
            ("SET NAMES default", vec![Assignment::Names(None, None)]),
            ("SET CHARACTER SET utf8", vec![names("utf8", None)]),
            ("SET character_set_results = NULL", vec![variable("character_set_results", Value::Null)]),
            ("SET AUTOCOMMIT = 0", vec![variable("autocommit", number("0"))]),
            ("SET @@session.autocommit = OFF", vec![variable("autocommit", text("OFF"))]),
            ("SET SESSION a := -1, b = 'x'", vec![variable("a", number("-1")), variable("b", text("x"))]),
            ("set sql_select_limit=DEFAULT", vec![variable("sql_select_limit", Value::Default)]),
            (
                "set sql_mode=CONCAT(@@sql_mode,',STRICT')",
                vec![variable(
                    "sql_mode",
                    Value::Joined(vec![Value::Variable("sql_mode".to_owned()), text(",STRICT")]),
                )],
            ),
            (
                "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY",
                vec![
                    variable("default_transaction_isolation", text("read committed")),
                    Assignment::ReadOnly(true),
                ],
            ),
            (
                "set session_track_system_variables=CONCAT('a',IF(LOCATE('*',@@x)>0,'b','')),session_track_schema=1,NAMES utf8mb4",
                vec![names("utf8mb4", None)],
            ),
            ("SET SESSION TRANSACTION READ WRITE", vec![Assignment::ReadOnly(false)]),
            (
                "SET @Old = @@sql_mode, @`b c` := 5, sql_mode = @old",
                vec![
                    Assignment::User("old".to_owned(), Value::Variable("sql_mode".to_owned())),
                    Assignment::User("b c".to_owned(), number("5")),
                    variable("sql_mode", Value::User("old".to_owned())),
                ],
            ),
            ("SET tx_isolation=READ-COMMITTED", vec![variable("tx_isolation", text("READ-COMMITTED"))]),
        ] {
            assert_eq!(parse(sql).unwrap(), expected, "{sql}");
        }
    }

    #[test]
    fn what_is_no_assignment_is_refused() {
        for (sql, code) in [
            ("SET", 1064),
            ("SET a", 1064),
            ("SET a =", 1064),
            ("SET a = 1,", 1064),
            ("SET a = 1 b", 1064),
            ("SET a = CONCAT('x'", 1064),
            (&format!("SET a = {}", "CONCAT(".repeat(100_000)), 1064),
            ("SET TRANSACTION", 1064),
            ("SET @x = f(1)", 1064),
            ("SET @x", 1064),
            ("SET GLOBAL a = 1", 1235),
            ("SET @@global.a = 1", 1235),
        ] {
            assert_eq!(parse(sql).unwrap_err().code.0, code, "{sql}");
        }
    }
}
