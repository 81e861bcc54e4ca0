//! How errors reach a connection: as the answer to a statement, or as its end.

use bowshot_api::{Error, ErrorKind, QueryId};
use std::fmt;
use std::io;

/// The error message of a protocol, with its codes.
pub trait ProtocolError: From<Error> + fmt::Debug + Send + Sync + 'static {
    /// The error of a statement that its client has cancelled.
    fn cancelled() -> Self;
}

/// Why a message was not answered as it should have been.
#[derive(Debug)]
pub enum ConnectionError<F> {
    /// The statement failed; the connection goes on.
    Statement(Box<F>),
    /// The connection ends, and the client is told why.
    Fatal(Box<F>),
    /// The client has gone: there is nobody to tell.
    Closed,
}

impl<F: ProtocolError> From<F> for ConnectionError<F> {
    fn from(failure: F) -> Self {
        Self::Statement(Box::new(failure))
    }
}

impl<F: ProtocolError> From<Error> for ConnectionError<F> {
    fn from(error: Error) -> Self {
        F::from(error).into()
    }
}

impl<F: ProtocolError> From<io::Error> for ConnectionError<F> {
    fn from(error: io::Error) -> Self {
        tracing::debug!(%error, "a connection broke");
        Self::Closed
    }
}

/// The message of an error for a client. Internal errors go to the log, and the client gets their number.
pub fn client_message(error: &Error) -> String {
    match error.kind() {
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_do_not_see_internal_messages() {
        let message = client_message(&Error::internal("slot 7 is empty"));
        assert!(message.starts_with("internal error (request "), "{message}");
        assert_eq!(client_message(&Error::invalid("no such column")), "no such column");
    }
}
