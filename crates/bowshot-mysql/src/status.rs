//! Errors in this protocol: MySQL's error number and SQLSTATE for each kind and reason (MySQL manual, "Server Error Message
//! Reference").

use bowshot_api::{Error, ErrorKind, Reason};
use bowshot_rowwire::{ProtocolError, client_message};

/// The number of an error and its SQLSTATE.
pub(crate) type Code = (u16, &'static str);

/// An error as the client gets it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// Why a command was not answered as it should have been.
pub(crate) type ConnectionError = bowshot_rowwire::ConnectionError<Failure>;

/// Shorthand for this crate.
pub(crate) type Result<T, E = ConnectionError> = std::result::Result<T, E>;

impl Failure {
    pub(crate) fn new(number: u16, state: &'static str, message: impl Into<String>) -> Self {
        Self { code: (number, state), message: message.into(), hint: None }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The error as the end of the connection.
    pub(crate) fn fatal(self) -> ConnectionError {
        ConnectionError::Fatal(Box::new(self))
    }

    /// A syntax error.
    pub(crate) fn syntax(message: impl Into<String>) -> Self {
        Self::new(1064, "42000", message)
    }

    /// A feature of MySQL that is not supported.
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

impl ProtocolError for Failure {
    fn cancelled() -> Self {
        Self::new(1317, "70100", "query execution was interrupted")
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { code: code(&error), message: client_message(&error), hint: error.hint().map(str::to_owned) }
    }
}

/// The number and the SQLSTATE of an error.
pub(crate) fn code(error: &Error) -> Code {
    error.reason().map_or_else(|| of_kind(error.kind()), of_reason)
}

fn of_kind(kind: ErrorKind) -> Code {
    match kind {
        ErrorKind::Syntax => (1064, "42000"),
        ErrorKind::AlreadyExists => (1050, "42S01"),
        ErrorKind::Unauthenticated => (1045, "28000"),
        ErrorKind::Denied => (1142, "42000"),
        ErrorKind::Unsupported => (1235, "42000"),
        ErrorKind::Conflict => (1213, "40001"),
        ErrorKind::LimitReached => (1226, "42000"),
        ErrorKind::Timeout => (3024, "HY000"),
        ErrorKind::Cancelled => (1317, "70100"),
        ErrorKind::Unavailable => (1053, "08S01"),
        ErrorKind::Invalid | ErrorKind::NotFound | ErrorKind::Corrupt | ErrorKind::Internal => UNKNOWN,
    }
}

/// ER_UNKNOWN_ERROR: MySQL has no number for it.
const UNKNOWN: Code = (1105, "HY000");

fn of_reason(reason: Reason) -> Code {
    match reason {
        Reason::UndefinedTable => (1146, "42S02"),
        Reason::UndefinedColumn => (1054, "42S22"),
        Reason::UndefinedFunction | Reason::UndefinedSavepoint | Reason::NoTransaction => (1305, "42000"),
        Reason::UndefinedSchema | Reason::UndefinedCatalog => (1049, "42000"),
        Reason::UndefinedStatement => (1243, "HY000"),
        Reason::UndefinedCursor => (1324, "42000"),
        Reason::DuplicateCursor => (1333, "42000"),
        Reason::UndefinedOption => (1193, "HY000"),
        Reason::UndefinedQuery => (1094, "HY000"),
        Reason::UndefinedFile => (29, "HY000"),
        Reason::DuplicateTable => (1050, "42S01"),
        Reason::DuplicateColumn => (1060, "42S21"),
        Reason::DuplicateSchema | Reason::DuplicateCatalog => (1007, "HY000"),
        Reason::DuplicateAlias => (1066, "42000"),
        Reason::DuplicateFile => (1086, "HY000"),
        Reason::AmbiguousColumn => (1052, "23000"),
        Reason::UniqueViolation => (1062, "23000"),
        Reason::NotNullViolation => (1048, "23000"),
        Reason::CheckViolation => (3819, "HY000"),
        Reason::CardinalityViolation => (1242, "21000"),
        Reason::DivisionByZero => (1365, "22012"),
        Reason::OutOfRange => (1690, "22003"),
        Reason::SequenceLimit => (1467, "HY000"),
        Reason::DatetimeOutOfRange => (1441, "22008"),
        Reason::InvalidText | Reason::InvalidDatetime | Reason::CannotCoerce => (1292, "22007"),
        Reason::ValueTooLong => (1406, "22001"),
        Reason::GeneratedAlways => (3105, "HY000"),
        Reason::InvalidPattern => (1139, "42000"),
        Reason::InvalidValue => (1231, "42000"),
        Reason::Grouping => (1055, "42000"),
        Reason::WrongObject => (1347, "HY000"),
        Reason::DependentObjects => (1010, "HY000"),
        Reason::ActiveTransaction => (1568, "25001"),
        Reason::ReadOnlyTransaction => (1792, "25006"),
        Reason::Deadlock => (1213, "40001"),
        Reason::LockNotAvailable => (1205, "HY000"),
        Reason::WrongParameters => (1210, "HY000"),
        Reason::TooComplex => (1436, "HY000"),
        Reason::InsufficientResources => (1041, "HY000"),
        Reason::UndefinedOperator
        | Reason::DuplicateStatement
        | Reason::DatatypeMismatch
        | Reason::WrongState => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documentation of all reasons.
    const PAGE: &str = include_str!("../../../docs/reference/errors.md");

    #[test]
    fn every_kind_has_a_number_and_a_state() {
        for kind in ErrorKind::ALL {
            let (number, state) = code(&Error::new(kind, "x"));
            assert!(number >= 1000 && state.len() == 5, "{kind:?}");
        }
    }

    #[test]
    fn every_reason_has_a_number_and_a_state() {
        for reason in Reason::ALL {
            let (number, state) = code(&Error::invalid("x").with_reason(reason));
            assert!(number > 0 && state.len() == 5, "{reason:?}");
            let row = format!("| `{}` | {} | {number} {state} |", reason.name(), reason.sqlstate());
            assert!(PAGE.contains(&row), "docs/reference/errors.md lacks `{row}`");
        }
        assert_eq!(code(&Error::not_found("x").with_reason(Reason::UndefinedTable)), (1146, "42S02"));
    }
}
