//! What went wrong in a driver, as it may be told.
//!
//! Drivers quote addresses, statements and values. What is told is their message without passwords and without the statement,
//! cut to one line. Messages that may have values in them are of a kind that a guard over a table with policies keeps to
//! itself.

use crate::place::spellings;
use crate::settings::DatabaseSettings;
use adbc_core::error::{Error as AdbcError, Status};
use bowshot_api::{Error, ErrorKind};
use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;

/// Longest message of a driver that is told, in characters.
const MAX_CHARS: usize = 400;

/// What the server tells apart.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    #[error("does not take the credentials that it was given")]
    Refused,
    #[error("did not answer within {0}")]
    Late(String),
    #[error("is busy: all {0} connections of its pool are taken")]
    Busy(usize),
    #[error("has refused a statement: {0}")]
    Statement(String),
    #[error("has given what was not expected: {0}")]
    Unexpected(String),
    #[error("{0}")]
    Value(String),
    #[error("has no driver that can be used: {0}")]
    Driver(String),
    #[error("was cancelled")]
    Cancelled,
}

impl Fault {
    /// The error with the name of its database.
    pub(crate) fn of(self, settings: &DatabaseSettings) -> Error {
        let (kind, hint) = match &self {
            Self::Unreachable(_) => {
                (ErrorKind::Unavailable, "its tables are back when it is; nothing has to be restarted")
            }
            Self::Refused if settings.forward_token => (
                ErrorKind::Unavailable,
                "it is asked with the token by which you have logged in, which it does not take",
            ),
            Self::Refused if settings.lent.is_some() => (
                ErrorKind::Unavailable,
                "an administrator makes the secret that it was opened with anew, with CREATE OR REPLACE SECRET",
            ),
            Self::Refused => {
                (ErrorKind::Unavailable, "the operator names `user` and the place of its password")
            }
            Self::Late(_) => {
                (ErrorKind::Timeout, "the operator can raise `timeout` and `connect_timeout` of the database")
            }
            Self::Busy(_) => {
                (ErrorKind::Unavailable, "the operator can raise `pool` and `timeout` of the database")
            }
            Self::Statement(_) => (ErrorKind::Invalid, "EXPLAIN shows what the database is asked"),
            Self::Unexpected(_) => {
                (ErrorKind::Conflict, "the table may have changed just now: run the statement again")
            }
            Self::Value(_) => {
                (ErrorKind::Invalid, "leave the column out, or read a view that gives other values")
            }
            Self::Driver(_) => {
                (ErrorKind::Unavailable, "the operator names the shared library with `driver`")
            }
            Self::Cancelled => (ErrorKind::Cancelled, "run the statement again"),
        };
        Error::new(kind, format!("the database `{}` {self}", settings.name)).with_hint(hint)
    }

    /// Of what a driver says while it connects.
    pub(crate) fn connecting(error: &AdbcError, settings: &DatabaseSettings) -> Self {
        let told = told(&error.message, settings);
        match (error.status, state(error).as_str()) {
            (Status::Unauthenticated | Status::Unauthorized, _) | (_, "28P01" | "28000") => Self::Refused,
            // PostgreSQL's library gives no code while it connects.
            _ if told.contains("password authentication failed") => Self::Refused,
            (Status::Timeout, _) => Self::Late("its time for connecting".to_owned()),
            _ => Self::Unreachable(told),
        }
    }

    /// Of what a driver says while a statement runs.
    pub(crate) fn running(error: &AdbcError, settings: &DatabaseSettings) -> Self {
        let (told, state) = (told(&error.message, settings), state(error));
        // Where there is a code, it decides: messages may have values in them.
        let lost = if state.is_empty() {
            is_lost(&told)
        } else {
            state.starts_with("57P") || state.starts_with("08")
        };
        if lost {
            return Self::Unreachable(told);
        }
        match error.status {
            Status::Cancelled => Self::Cancelled,
            Status::Timeout => Self::Late("its own time for statements".to_owned()),
            Status::Unauthenticated | Status::Unauthorized => Self::Refused,
            _ if state == "57014" => Self::Late("its own time for statements".to_owned()),
            _ => Self::Statement(told),
        }
    }

    /// Of what a driver says while rows come.
    pub(crate) fn reading(error: &ArrowError, settings: &DatabaseSettings) -> Self {
        let told = told(&error.to_string(), settings);
        if is_lost(&told) {
            return Self::Unreachable(told);
        }
        if told.contains("Type mismatch") {
            return Self::Value(
                "has a value of another type than its column is declared with, and SQLite keeps both"
                    .to_owned(),
            );
        }
        Self::Statement(told)
    }
}

/// The error of a database, for DataFusion.
pub(crate) fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn state(error: &AdbcError) -> String {
    let bytes: Vec<u8> = error.sqlstate.iter().map(|byte| byte.to_ne_bytes()[0]).collect();
    String::from_utf8_lossy(&bytes).trim_matches('\0').to_owned()
}

/// Whether a connection is gone, by what libraries say then.
fn is_lost(told: &str) -> bool {
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
    .any(|sign| told.contains(sign))
}

/// A message of a driver without secrets, on one line.
pub(crate) fn told(message: &str, settings: &DatabaseSettings) -> String {
    let message = ["Query was:", "\nLINE "]
        .iter()
        .fold(message, |message, sign| message.split(sign).next().unwrap_or_default());
    let mut told: String = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = settings.shown.get().cloned();
    for password in settings.password.clone().into_iter().chain(settings.token()).chain(shown) {
        for spelling in spellings(password.expose()).iter().filter(|spelling| !spelling.is_empty()) {
            told = told.replace(spelling.as_str(), "***");
        }
    }
    // An address with somebody in it is nothing but one with a password.
    if let Some(at) = told.find("://")
        && told
            .get(at..)
            .is_some_and(|rest| rest.split_whitespace().next().is_some_and(|word| word.contains('@')))
    {
        return "its driver does not take the address".to_owned();
    }
    match told.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", told.get(..end).unwrap_or_default()),
        None => told,
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
        assert_eq!(told("bad p w%d and p%20w%25d\n here", &settings), "bad *** and *** here");
        assert_eq!(told("ERROR: x\n\nQuery was: COPY (SELECT 'hidden')", &settings), "ERROR: x");
        assert_eq!(told("invalid postgres://u:x@h/d", &settings), "its driver does not take the address");
        assert!(told(&"ä".repeat(1_000), &settings).chars().count() <= MAX_CHARS + 1);
    }

    #[test]
    fn a_token_is_hidden_after_its_caller_has_gone() {
        let settings = DatabaseSettings::attached("pg", "postgres://h/d", &BTreeMap::new()).unwrap();
        let token = CallerToken::new(Secret::new("first.token"));
        let settings = settings.of_caller(&token);
        settings.shown.get_or_init(|| Secret::new("first.token"));
        token.take_over(&CallerToken::new(Secret::new("second.token")));
        assert_eq!(told("bad first.token, second.token", &settings), "bad ***, ***");
        token.forget();
        assert_eq!(told("bad first.token", &settings), "bad ***");
    }
}
