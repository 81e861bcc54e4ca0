//! How errors look in this protocol: a number of MySQL's and a SQLSTATE for each kind, finer ones where the message tells what
//! it is about (MySQL manual, "Server Error Message Reference").

use bowshot_api::{Error, ErrorKind, QueryId};
use std::io;

/// The number of an error and its SQLSTATE.
pub(crate) type Code = (u16, &'static str);

/// What a client is told of an error.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// Why a command was not answered as it should have been.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The statement failed; the connection goes on.
    Failed(Box<Failure>),
    /// The connection ends, and the client is told why.
    Fatal(Box<Failure>),
    /// There is nobody to tell.
    Gone,
}

/// Shorthand for this crate.
pub(crate) type Result<T, E = Trouble> = std::result::Result<T, E>;

impl Failure {
    pub(crate) fn new(number: u16, state: &'static str, message: impl Into<String>) -> Self {
        Self { code: (number, state), message: message.into(), hint: None }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The same as the end of the connection.
    pub(crate) fn fatal(self) -> Trouble {
        Trouble::Fatal(Box::new(self))
    }

    /// A statement that is not understood here.
    pub(crate) fn syntax(message: impl Into<String>) -> Self {
        Self::new(1064, "42000", message)
    }

    /// What MySQL has and Bowshot has not.
    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(1235, "42000", message)
    }

    /// Message and hint in one.
    pub(crate) fn text(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}; {hint}", self.message),
            None => self.message.clone(),
        }
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Failed(Box::new(failure))
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Failure::from(error).into()
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        tracing::debug!(%error, "a connection broke");
        Self::Gone
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = code(&error);
        let message = match error.kind() {
            ErrorKind::Internal => {
                let request = QueryId::random();
                tracing::error!(%request, error = %chain(&error), "internal error");
                format!("internal error (request {request})")
            }
            ErrorKind::Corrupt => {
                tracing::error!(error = %chain(&error), "stored data cannot be read");
                error.message().to_owned()
            }
            _ => error.message().to_owned(),
        };
        Self { code, message, hint: error.hint().map(str::to_owned) }
    }
}

/// An error with all its causes, for the log.
fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// The number and the SQLSTATE of an error.
pub(crate) fn code(error: &Error) -> Code {
    let message = error.message();
    match error.kind() {
        ErrorKind::Syntax => (1064, "42000"),
        ErrorKind::Invalid => look_up(INVALID, message).unwrap_or((1105, "HY000")),
        ErrorKind::NotFound => look_up(NOT_FOUND, message).unwrap_or((1105, "HY000")),
        ErrorKind::AlreadyExists => look_up(EXISTS, message).unwrap_or((1050, "42S01")),
        ErrorKind::Unauthenticated => (1045, "28000"),
        ErrorKind::Denied => (1142, "42000"),
        ErrorKind::Unsupported => (1235, "42000"),
        ErrorKind::Conflict => (1213, "40001"),
        ErrorKind::LimitReached => (1226, "42000"),
        ErrorKind::Timeout => (3024, "HY000"),
        ErrorKind::Cancelled => (1317, "70100"),
        ErrorKind::Unavailable => (1053, "08S01"),
        ErrorKind::Corrupt | ErrorKind::Internal => (1105, "HY000"),
    }
}

/// Words of a message, and the code that they mean; the first row that fits counts.
type Row = (&'static [&'static str], Code);

const INVALID: &[Row] = &[
    (&["duplicate key"], (1062, "23000")),
    (&["unique"], (1062, "23000")),
    (&["primary key", "twice"], (1062, "23000")),
    (&["null", "not null"], (1048, "23000")),
    (&["null", "must not"], (1048, "23000")),
    (&["check constraint"], (3819, "HY000")),
    (&["divi", "zero"], (1365, "22012")),
    (&["overflow"], (1690, "22003")),
    (&["out of range"], (1264, "22003")),
    (&["more than one row"], (1242, "21000")),
    (&["column", "not found"], (1054, "42S22")),
    (&["column", "does not exist"], (1054, "42S22")),
    (&["column", "ambiguous"], (1052, "23000")),
    (&["function", "not found"], (1305, "42000")),
    (&["function", "does not exist"], (1305, "42000")),
    (&["table", "not found"], (1146, "42S02")),
    (&["transaction is open already"], (1568, "25001")),
    (&["no transaction"], (1305, "42000")),
    (&["read only"], (1792, "25006")),
    (&["parameters, but"], (1210, "HY000")),
    (&["group by"], (1055, "42000")),
    (&["timestamp"], (1292, "22007")),
    (&["no value of type"], (1292, "22007")),
    (&["cannot cast"], (1292, "22007")),
    (&["cannot be cast"], (1292, "22007")),
    (&["cannot be used as"], (1292, "22007")),
    (&["cannot be read as"], (1292, "22007")),
];

const NOT_FOUND: &[Row] = &[
    (&["table"], (1146, "42S02")),
    (&["view"], (1146, "42S02")),
    (&["column"], (1054, "42S22")),
    (&["function"], (1305, "42000")),
    (&["prepared statement"], (1243, "HY000")),
    (&["savepoint"], (1305, "42000")),
    (&["schema"], (1049, "42000")),
    (&["catalog"], (1049, "42000")),
    (&["option"], (1193, "HY000")),
    (&["session"], (1094, "HY000")),
    (&["query"], (1094, "HY000")),
];

const EXISTS: &[Row] = &[
    (&["primary key", "twice"], (1062, "23000")),
    (&["unique"], (1062, "23000")),
    (&["schema"], (1007, "HY000")),
    (&["catalog"], (1007, "HY000")),
    (&["column"], (1060, "42S21")),
    (&["table"], (1050, "42S01")),
    (&["view"], (1050, "42S01")),
];

/// The code of the first row all of whose words are in the message, outside of names in backticks and of the place in the text.
fn look_up(rows: &[Row], message: &str) -> Option<Code> {
    let message = message.rsplit_once(" at line ").map_or(message, |(message, _)| message);
    let text: String = message.split('`').step_by(2).collect::<Vec<_>>().join(" ").to_ascii_lowercase();
    rows.iter().find(|(words, _)| words.iter().all(|word| text.contains(word))).map(|(_, code)| *code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_number_and_a_state() {
        for kind in ErrorKind::ALL {
            let (number, state) = code(&Error::new(kind, "x"));
            assert!(number >= 1000 && state.len() == 5, "{kind:?}");
        }
    }

    #[test]
    fn messages_make_codes_finer_and_names_do_not() {
        for (kind, message, expected) in [
            (ErrorKind::NotFound, "table `schema` not found", 1146),
            (ErrorKind::NotFound, "schema `table` not found", 1049),
            (ErrorKind::Invalid, "divide by zero", 1365),
            (ErrorKind::Invalid, "column `a` does not exist at line 1, column 8", 1054),
            (ErrorKind::Invalid, "function `f` does not exist at line 1, column 8", 1305),
            (ErrorKind::AlreadyExists, "table `a` exists", 1050),
            (ErrorKind::AlreadyExists, "table `t` would have the primary key (a) = (2) twice", 1062),
            (ErrorKind::AlreadyExists, "schema `table` exists", 1007),
            (ErrorKind::Invalid, "duplicate key", 1062),
            (ErrorKind::Invalid, "`overflow` makes no sense", 1105),
            (ErrorKind::Timeout, "too slow", 3024),
        ] {
            assert_eq!(code(&Error::new(kind, message)).0, expected, "{message}");
        }
    }

    #[test]
    fn internal_errors_keep_their_internals() {
        let failure = Failure::from(Error::internal("slot 7 is empty"));
        assert!(failure.message.starts_with("internal error (request "), "{}", failure.message);
    }
}
