//! Errors of drivers. Drivers quote addresses, statements and values: a message is cut to one line, without passwords and the statement.
//! Messages that may contain values have a kind that is hidden where a table has policies.

use crate::location::spellings;
use crate::settings::DatabaseSettings;
use adbc_core::error::{Error as AdbcError, Status};
use bowshot_api::{Error, ErrorKind};
use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;

/// Longest message of a driver, in characters.
const MAX_CHARS: usize = 400;

#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabaseError {
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    #[error("refused the login")]
    LoginRefused,
    #[error("did not answer within {0}")]
    Timeout(String),
    #[error("is busy: all {0} connections of its pool are in use")]
    Busy(usize),
    #[error("rejected a statement: {0}")]
    Statement(String),
    #[error("sent an unexpected answer: {0}")]
    Unexpected(String),
    #[error("{0}")]
    Value(String),
    #[error("has no usable driver: {0}")]
    Driver(String),
    #[error("was cancelled")]
    Cancelled,
}

impl DatabaseError {
    /// The public error, with the name of the database.
    pub(crate) fn into_public(self, settings: &DatabaseSettings) -> Error {
        let (kind, hint) = match &self {
            Self::Unreachable(_) => {
                (ErrorKind::Unavailable, "its tables are available again when it is; no restart is needed")
            }
            Self::LoginRefused if settings.forward_token => (
                ErrorKind::Unavailable,
                "it is queried with the token of your login, which it did not accept",
            ),
            Self::LoginRefused if settings.opened_secret.is_some() => (
                ErrorKind::Unavailable,
                "an administrator can replace its secret with CREATE OR REPLACE SECRET",
            ),
            Self::LoginRefused => (ErrorKind::Unavailable, "the operator can set `user` and its password"),
            Self::Timeout(_) => {
                (ErrorKind::Timeout, "the operator can raise `timeout` and `connect_timeout` of the database")
            }
            Self::Busy(_) => {
                (ErrorKind::Unavailable, "the operator can raise `pool` and `timeout` of the database")
            }
            Self::Statement(_) => (ErrorKind::Invalid, "EXPLAIN shows the statement that is sent"),
            Self::Unexpected(_) => {
                (ErrorKind::Conflict, "the table may have changed just now: run the statement again")
            }
            Self::Value(_) => {
                (ErrorKind::Invalid, "leave the column out, or read a view that gives other values")
            }
            Self::Driver(_) => {
                (ErrorKind::Unavailable, "the operator can set `driver` to the path of the shared library")
            }
            Self::Cancelled => (ErrorKind::Cancelled, "run the statement again"),
        };
        Error::new(kind, format!("the database `{}` {self}", settings.name)).with_hint(hint)
    }

    /// An error while a driver connects.
    pub(crate) fn from_connect(error: &AdbcError, settings: &DatabaseSettings) -> Self {
        let message = redact(&error.message, settings);
        match (error.status, state(error).as_str()) {
            (Status::Unauthenticated | Status::Unauthorized, _) | (_, "28P01" | "28000") => {
                Self::LoginRefused
            }
            // PostgreSQL's library returns no code while it connects.
            _ if message.contains("password authentication failed") => Self::LoginRefused,
            (Status::Timeout, _) => Self::Timeout("its limit for connecting".to_owned()),
            _ => Self::Unreachable(message),
        }
    }

    /// An error while a statement runs.
    pub(crate) fn from_statement(error: &AdbcError, settings: &DatabaseSettings) -> Self {
        let (message, state) = (redact(&error.message, settings), state(error));
        // The code decides if there is one: messages may contain values.
        let lost = if state.is_empty() {
            is_lost(&message)
        } else {
            state.starts_with("57P") || state.starts_with("08")
        };
        if lost {
            return Self::Unreachable(message);
        }
        match error.status {
            Status::Cancelled => Self::Cancelled,
            Status::Timeout => Self::Timeout("its own limit for statements".to_owned()),
            Status::Unauthenticated | Status::Unauthorized => Self::LoginRefused,
            _ if state == "57014" => Self::Timeout("its own limit for statements".to_owned()),
            _ => Self::Statement(message),
        }
    }

    /// An error while rows are read.
    pub(crate) fn from_rows(error: &ArrowError, settings: &DatabaseSettings) -> Self {
        let message = redact(&error.to_string(), settings);
        if is_lost(&message) {
            return Self::Unreachable(message);
        }
        if message.contains("Type mismatch") {
            return Self::Value("has a value of another type than its column is declared with".to_owned());
        }
        Self::Statement(message)
    }
}

pub(crate) fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn state(error: &AdbcError) -> String {
    let bytes: Vec<u8> = error.sqlstate.iter().map(|byte| byte.to_ne_bytes()[0]).collect();
    String::from_utf8_lossy(&bytes).trim_matches('\0').to_owned()
}

/// Whether a message says that the connection is lost.
fn is_lost(message: &str) -> bool {
    [
        "server closed the connection",
        "connection to server",
        "no connection to the server",
        "terminating connection",
        "could not receive data from server",
        "SSL connection has been closed",
        "connection refused",
        "Connection refused",
        "Connection reset",
        "connection reset",
        "error reading from server",
        "transport is closing",
        "Unavailable",
        "the database system is",
    ]
    .iter()
    .any(|sign| message.contains(sign))
}

/// A message of a driver without secrets and statement, on one line.
pub(crate) fn redact(message: &str, settings: &DatabaseSettings) -> String {
    let message = ["Query was:", "\nLINE "]
        .iter()
        .fold(message, |message, sign| message.split(sign).next().unwrap_or_default());
    let mut message: String = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = settings.used_token.get().cloned();
    for password in settings.password.clone().into_iter().chain(settings.token()).chain(shown) {
        for spelling in spellings(password.expose()).iter().filter(|spelling| !spelling.is_empty()) {
            message = message.replace(spelling.as_str(), "***");
        }
    }
    // An address with a user may contain a password.
    if let Some(at) = message.find("://")
        && message
            .get(at..)
            .is_some_and(|rest| rest.split_whitespace().next().is_some_and(|word| word.contains('@')))
    {
        return "its driver does not take the address".to_owned();
    }
    match message.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", message.get(..end).unwrap_or_default()),
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowshot_api::{CallerToken, Secret};
    use std::collections::BTreeMap;

    #[test]
    fn what_is_told_has_no_secret_and_no_statement_in_it() {
        let values = BTreeMap::from([("password".to_owned(), vec!["p w%d".to_owned()])]);
        let settings = DatabaseSettings::attached("pg", "postgres://h/d", &values).unwrap();
        assert_eq!(redact("bad p w%d and p%20w%25d\n here", &settings), "bad *** and *** here");
        assert_eq!(redact("ERROR: x\n\nQuery was: COPY (SELECT 'hidden')", &settings), "ERROR: x");
        assert_eq!(redact("invalid postgres://u:x@h/d", &settings), "its driver does not take the address");
        assert!(redact(&"ä".repeat(1_000), &settings).chars().count() <= MAX_CHARS + 1);
    }

    #[test]
    fn a_token_is_hidden_after_its_caller_has_gone() {
        let settings = DatabaseSettings::attached("pg", "postgres://h/d", &BTreeMap::new()).unwrap();
        let token = CallerToken::new(Secret::new("first.token"));
        let settings = settings.for_caller(&token);
        settings.used_token.get_or_init(|| Secret::new("first.token"));
        token.take_over(&CallerToken::new(Secret::new("second.token")));
        assert_eq!(redact("bad first.token, second.token", &settings), "bad ***, ***");
        token.forget();
        assert_eq!(redact("bad first.token", &settings), "bad ***");
    }
}
