//! How errors look in this protocol: one SQLSTATE for each kind, a finer one where the message tells what it is about
//! (PostgreSQL manual, appendix "PostgreSQL Error Codes"), and the place in the text where it is known.

use bowshot_api::{Error, ErrorKind, QueryId};
use std::io;

/// What a client is told of an error.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// Place in the text that the client has sent, in characters from 1 on.
    pub(crate) position: Option<usize>,
}

/// Why a message was not answered as it should have been.
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
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, position: None }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The same as the end of the connection.
    pub(crate) fn fatal(self) -> Trouble {
        Trouble::Fatal(Box::new(self))
    }

    /// A message that the protocol does not have, or not here.
    pub(crate) fn protocol(message: impl Into<String>) -> Self {
        Self::new("08P01", message)
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
        Self { code, message, hint: error.hint().map(str::to_owned), position: None }
    }
}

impl Trouble {
    /// Says where in the client's text the statement begins, so that the place of an error can be told.
    pub(crate) fn placed(mut self, statement: &str, before: usize) -> Self {
        if let Self::Failed(failure) = &mut self {
            // One that is placed already stands in a part of the statement.
            let at = failure.position.or_else(|| place(&failure.message, statement));
            failure.position = at.map(|at| at + before);
        }
        self
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

/// The SQLSTATE of an error.
pub(crate) fn code(error: &Error) -> &'static str {
    let message = error.message();
    match error.kind() {
        ErrorKind::Syntax => "42601",
        ErrorKind::Invalid => invalid(message),
        ErrorKind::NotFound => not_found(message),
        ErrorKind::AlreadyExists => already_exists(message),
        ErrorKind::Unauthenticated => "28P01",
        ErrorKind::Denied => "42501",
        ErrorKind::Unsupported => "0A000",
        ErrorKind::Conflict => "40001",
        ErrorKind::LimitReached => "53400",
        ErrorKind::Timeout | ErrorKind::Cancelled => "57014",
        ErrorKind::Unavailable => "57P03",
        ErrorKind::Corrupt => "XX001",
        ErrorKind::Internal => "XX000",
    }
}

/// Words of a message, and the code that they mean; the first row that fits counts.
type Row = (&'static [&'static str], &'static str);

const INVALID: &[Row] = &[
    (&["duplicate key"], "23505"),
    (&["unique"], "23505"),
    (&["primary key", "twice"], "23505"),
    (&["null", "not null"], "23502"),
    (&["null", "must not"], "23502"),
    (&["check constraint"], "23514"),
    (&["divi", "by zero"], "22012"),
    (&["divi", "zero"], "22012"),
    (&["overflow"], "22003"),
    (&["out of range"], "22003"),
    (&["more than one row"], "21000"),
    (&["column", "not found"], "42703"),
    (&["column", "does not exist"], "42703"),
    (&["column", "ambiguous"], "42702"),
    (&["function", "not found"], "42883"),
    (&["function", "does not exist"], "42883"),
    (&["transaction is open already"], "25001"),
    (&["no transaction"], "25P01"),
    (&["read only"], "25006"),
    (&["parameters, but"], "08P01"),
    (&["group by"], "42803"),
    (&["timestamp"], "22007"),
    (&["cannot cast"], "22P02"),
    (&["cannot be cast"], "22P02"),
    (&["cannot be used as"], "22P02"),
    (&["cannot be read as"], "22P02"),
];

const NOT_FOUND: &[Row] = &[
    (&["table"], "42P01"),
    (&["view"], "42P01"),
    (&["column"], "42703"),
    (&["function"], "42883"),
    (&["prepared statement"], "26000"),
    (&["savepoint"], "3B001"),
    (&["transaction"], "25P01"),
    (&["schema"], "3F000"),
    (&["catalog"], "3D000"),
];

const EXISTS: &[Row] = &[
    (&["primary key", "twice"], "23505"),
    (&["unique"], "23505"),
    (&["prepared statement"], "42P05"),
    (&["schema"], "42P06"),
    (&["catalog"], "42P04"),
    (&["column"], "42701"),
    (&["table"], "42P07"),
    (&["view"], "42P07"),
];

fn invalid(message: &str) -> &'static str {
    look_up(INVALID, message).unwrap_or("42000")
}

fn not_found(message: &str) -> &'static str {
    look_up(NOT_FOUND, message).unwrap_or("42704")
}

fn already_exists(message: &str) -> &'static str {
    look_up(EXISTS, message).unwrap_or("42710")
}

/// The code of the first row all of whose words are in the message, outside of names in backticks.
fn look_up(rows: &[Row], message: &str) -> Option<&'static str> {
    let text: String = message.split('`').step_by(2).collect::<Vec<_>>().join(" ").to_ascii_lowercase();
    rows.iter().find(|(words, _)| words.iter().all(|word| text.contains(word))).map(|(_, code)| *code)
}

/// The place that `… at line 2, column 8` names, in characters from 1 on.
fn place(message: &str, statement: &str) -> Option<usize> {
    let (_, place) = message.rsplit_once(" at line ")?;
    let (line, column) = place.split_once(", column ")?;
    let line: usize = line.parse().ok()?;
    let digits = column.split(|c: char| !c.is_ascii_digit()).next()?;
    let column: usize = digits.parse().ok()?;
    let before: usize =
        statement.split('\n').take(line.checked_sub(1)?).map(|line| line.chars().count() + 1).sum();
    (before + column <= statement.chars().count() + 1).then_some(before + column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_code_of_five() {
        for kind in ErrorKind::ALL {
            assert_eq!(code(&Error::new(kind, "x")).len(), 5);
        }
    }

    #[test]
    fn messages_make_codes_finer_and_names_do_not() {
        for (kind, message, expected) in [
            (ErrorKind::NotFound, "table `schema` not found", "42P01"),
            (ErrorKind::NotFound, "schema `table` not found", "3F000"),
            (ErrorKind::Invalid, "divide by zero", "22012"),
            (ErrorKind::Invalid, "column `a` not found", "42703"),
            (ErrorKind::Invalid, "column `a.b` does not exist at line 1, column 8", "42703"),
            (ErrorKind::AlreadyExists, "table `a` exists", "42P07"),
            (ErrorKind::AlreadyExists, "table `t` would have the primary key (a) = (2) twice", "23505"),
            (ErrorKind::Invalid, "`overflow` makes no sense", "42000"),
        ] {
            assert_eq!(code(&Error::new(kind, message)), expected, "{message}");
        }
    }

    #[test]
    fn places_count_characters_over_lines() {
        assert_eq!(place("syntax error: x at line 1, column 8", "SELECT FROM"), Some(8));
        assert_eq!(place("syntax error: x at line 2, column 3", "ä\nab c"), Some(5));
        assert_eq!(place("syntax error: x at line 9, column 3", "a"), None);
        assert_eq!(place("syntax error: x", "a"), None);
        assert_eq!(place("x at line 0, column 3", "a"), None);
    }

    #[test]
    fn internal_errors_keep_their_internals() {
        let failure = Failure::from(Error::internal("slot 7 is empty"));
        assert!(failure.message.starts_with("internal error (request "), "{}", failure.message);
    }
}
