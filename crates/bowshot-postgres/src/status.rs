//! How errors look in this protocol: the SQLSTATE of their reason or kind (`bowshot_api::Error::sqlstate`), and the place in the
//! text where it is known.

use bowshot_api::{Error, ErrorKind, Notice, Position, QueryId};
use std::io;

/// What a client is told of an error.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// Place in the statement.
    pub(crate) place: Option<Position>,
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
        Self { code, message: message.into(), hint: None, place: None, position: None }
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

impl From<&Notice> for Failure {
    fn from(notice: &Notice) -> Self {
        let code = match notice {
            Notice::Exists("schema", _) => "42P06",
            Notice::Exists("catalog", _) => "42P04",
            Notice::Exists(..) => "42P07",
            Notice::NoIndexes | Notice::ForeignKeysNotEnforced | Notice::Missing(..) => "00000",
        };
        let failure = Self::new(code, notice.message());
        match notice.hint() {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = match error.kind() {
            ErrorKind::Internal => {
                let request = QueryId::random();
                tracing::error!(%request, error = %error.chain(), "internal error");
                format!("internal error (request {request})")
            }
            ErrorKind::Corrupt => {
                tracing::error!(error = %error.chain(), "stored data cannot be read");
                error.message().to_owned()
            }
            _ => error.message().to_owned(),
        };
        Self {
            code: error.sqlstate(),
            message,
            hint: error.hint().map(str::to_owned),
            place: error.position(),
            position: None,
        }
    }
}

impl Trouble {
    /// Says where in the client's text the statement begins, so that the place of an error can be told.
    pub(crate) fn placed(mut self, statement: &str, before: usize) -> Self {
        if let Self::Failed(failure) = &mut self {
            // One that is placed already stands in a part of the statement.
            let at = failure.position.or_else(|| failure.place.and_then(|place| place.within(statement)));
            failure.position = at.map(|at| at + before);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowshot_api::Reason;

    #[test]
    fn errors_have_the_code_of_their_reason_and_their_place_in_the_whole_text() {
        let place = Position { line: 2, column: 1 };
        let error = Error::not_found("table `a` not found").with_reason(Reason::UndefinedTable);
        let trouble = Trouble::from(error.with_position(place)).placed("SELECT *\nFROM a", 10);
        let Trouble::Failed(failure) = trouble else { panic!("{trouble:?}") };
        assert_eq!((failure.code, failure.position), ("42P01", Some(20)));
    }

    #[test]
    fn internal_errors_keep_their_internals() {
        let failure = Failure::from(Error::internal("slot 7 is empty"));
        assert!(failure.message.starts_with("internal error (request "), "{}", failure.message);
    }
}
