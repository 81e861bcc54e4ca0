//! Errors in this protocol: the SQLSTATE of their reason or kind (`bowshot_api::Error::sqlstate`), and their position in the
//! text.

use bowshot_api::{Error, Notice, Position};
use bowshot_rowwire::{ProtocolError, client_message};

/// An error as the client gets it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// Position in the statement.
    pub(crate) place: Option<Position>,
    /// Position in the client's text, in characters from 1 on.
    pub(crate) position: Option<usize>,
}

/// Why a message was not answered as it should have been.
pub(crate) type ConnectionError = bowshot_rowwire::ConnectionError<Failure>;

/// Shorthand for this crate.
pub(crate) type Result<T, E = ConnectionError> = std::result::Result<T, E>;

impl Failure {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, place: None, position: None }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The error as the end of the connection.
    pub(crate) fn fatal(self) -> ConnectionError {
        ConnectionError::Fatal(Box::new(self))
    }

    /// A violation of the protocol.
    pub(crate) fn protocol(message: impl Into<String>) -> Self {
        Self::new("08P01", message)
    }
}

impl ProtocolError for Failure {
    fn cancelled() -> Self {
        Self::new("57014", "canceling statement due to user request")
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
        Self {
            code: error.sqlstate(),
            message: client_message(&error),
            hint: error.hint().map(str::to_owned),
            place: error.position(),
            position: None,
        }
    }
}

/// Says where in the client's text the statement begins, so that the client gets the position of the error.
pub(crate) fn with_position(mut error: ConnectionError, statement: &str, before: usize) -> ConnectionError {
    if let ConnectionError::Statement(failure) = &mut error {
        // One that has a position already stands in a part of the statement.
        let at = failure.position.or_else(|| failure.place.and_then(|place| place.within(statement)));
        failure.position = at.map(|at| at + before);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowshot_api::Reason;

    #[test]
    fn errors_have_the_code_of_their_reason_and_their_place_in_the_whole_text() {
        let place = Position { line: 2, column: 1 };
        let error = Error::not_found("table `a` not found").with_reason(Reason::UndefinedTable);
        let error = with_position(ConnectionError::from(error.with_position(place)), "SELECT *\nFROM a", 10);
        let ConnectionError::Statement(failure) = error else { panic!("{error:?}") };
        assert_eq!((failure.code, failure.position), ("42P01", Some(20)));
    }
}
