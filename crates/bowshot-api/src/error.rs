//! The error type of the server API. Each crate converts its own errors into it; each front end maps [`ErrorKind`],
//! and [`Reason`] where its protocol is finer, to its own codes in one exhaustive match (`status.rs`).

use crate::reason::codes;
use crate::{Position, Reason};
use std::fmt;
use std::fmt::Write as _;

/// Result of the server API.
pub type Result<T, E = Error> = std::result::Result<T, E>;

codes! {
    /// Kinds of errors, by what the caller should do.
    pub enum ErrorKind {
        /// The text is not valid SQL: correct the statement.
        Syntax("syntax", "42601"),
        /// The statement or a value is invalid (types, counts, unknown column): correct the request.
        Invalid("invalid", "42000"),
        /// A named object does not exist: correct the name or create it.
        NotFound("not_found", "42704"),
        /// An object of that name exists: choose another name.
        AlreadyExists("already_exists", "42710"),
        /// Missing or wrong credentials: authenticate again.
        Unauthenticated("unauthenticated", "28P01"),
        /// The caller lacks the access right: ask for a grant. Never reveals whether the object exists.
        Denied("denied", "42501"),
        /// Bowshot does not support this: use what the hint names.
        Unsupported("unsupported", "0A000"),
        /// Another writer was first: run the transaction again.
        Conflict("conflict", "40001"),
        /// A configured limit was reached: ask for less, or raise the limit in the hint.
        LimitReached("limit_reached", "53400"),
        /// The deadline passed: raise the timeout or ask for less.
        Timeout("timeout", "57014"),
        /// The query was cancelled.
        Cancelled("cancelled", "57014"),
        /// The server is draining or a source cannot be reached: try again later.
        Unavailable("unavailable", "57P03"),
        /// Stored data cannot be read: repair or replace the named file.
        Corrupt("corrupt", "XX001"),
        /// A defect in Bowshot: report it with the query id.
        Internal("internal", "XX000"),
    }
}

impl ErrorKind {
    /// Whether the unchanged request may succeed later.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::Conflict | Self::Unavailable => true,
            Self::Syntax
            | Self::Invalid
            | Self::NotFound
            | Self::AlreadyExists
            | Self::Unauthenticated
            | Self::Denied
            | Self::Unsupported
            | Self::LimitReached
            | Self::Timeout
            | Self::Cancelled
            | Self::Corrupt
            | Self::Internal => false,
        }
    }
}

/// An error with a kind, a message for the user, and a hint that names the next action.
///
/// ```
/// use bowshot_api::{Error, ErrorKind};
/// let error = Error::new(ErrorKind::NotFound, "table `lineitm` not found").with_hint("did you mean `lineitem`?");
/// assert_eq!(error.to_string(), "table `lineitm` not found; did you mean `lineitem`?");
/// ```
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    reason: Option<Reason>,
    position: Option<Position>,
    message: String,
    hint: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error without hint or source. Messages: lower case, no final dot, names in backticks.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, reason: None, position: None, message: message.into(), hint: None, source: None }
    }

    /// Replaces the message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Adds the detailed reason.
    #[must_use]
    pub fn with_reason(mut self, reason: Reason) -> Self {
        self.reason = Some(reason);
        self
    }

    /// Adds the position in the statement; the message names it too.
    #[must_use]
    pub fn with_position(mut self, position: Position) -> Self {
        let _ = write!(self.message, " at line {}, column {}", position.line, position.column);
        self.position = Some(position);
        self
    }

    /// Adds the next action for the caller.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the cause for the log; clients do not see it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// [`ErrorKind::Invalid`] in short.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// [`ErrorKind::NotFound`] in short.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// [`ErrorKind::Unsupported`] in short.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// [`ErrorKind::Internal`] in short.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// The kind, which determines the code in each protocol.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The detailed reason, if known.
    pub fn reason(&self) -> Option<Reason> {
        self.reason
    }

    /// The SQLSTATE of the reason, or else of the kind.
    pub fn sqlstate(&self) -> &'static str {
        self.reason.map_or_else(|| self.kind.sqlstate(), Reason::sqlstate)
    }

    /// The position in the statement, if known.
    pub fn position(&self) -> Option<Position> {
        self.position
    }

    /// The message without the hint.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The next action, if known.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// A copy without the source, for another reader of the same failure.
    pub fn duplicate(&self) -> Self {
        Self {
            kind: self.kind,
            reason: self.reason,
            position: self.position,
            message: self.message.clone(),
            hint: self.hint.clone(),
            source: None,
        }
    }

    /// The error with all its causes, for the log.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            let _ = write!(text, ": {cause}");
            source = cause.source();
        }
        text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hint {
            Some(hint) => write!(f, "{}; {hint}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
