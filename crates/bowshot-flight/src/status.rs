//! gRPC status of errors. Details (`error_details.rs`) carry reason, SQLSTATE and position. Clients see message and
//! hint; of internal errors only a reference, under which the log has the causes.

use crate::error_details;
use bowshot_api::{Error, ErrorKind};
use tonic::{Code, Status};

/// Longest message in bytes after percent-encoding. Java clients read at most 8 KiB of headers.
const MAX_MESSAGE_BYTES: usize = 4 << 10;
const INTERNAL: &str = "internal error";
/// Message for a truncated request.
pub(crate) const CUT_OFF: &str = "the request was cut off";

/// The gRPC code of a kind.
pub(crate) fn code(kind: ErrorKind) -> Code {
    match kind {
        ErrorKind::Syntax | ErrorKind::Invalid => Code::InvalidArgument,
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::AlreadyExists => Code::AlreadyExists,
        ErrorKind::Unauthenticated => Code::Unauthenticated,
        ErrorKind::Denied => Code::PermissionDenied,
        ErrorKind::Unsupported => Code::Unimplemented,
        ErrorKind::Conflict => Code::Aborted,
        ErrorKind::LimitReached => Code::ResourceExhausted,
        ErrorKind::Timeout => Code::DeadlineExceeded,
        ErrorKind::Cancelled => Code::Cancelled,
        ErrorKind::Unavailable => Code::Unavailable,
        ErrorKind::Corrupt => Code::DataLoss,
        ErrorKind::Internal => Code::Internal,
    }
}

/// The status that a client gets. `subject` names the query where there is one, for the log and the reference.
pub(crate) fn status(error: &Error, subject: Option<bowshot_api::QueryId>) -> Status {
    let (code, message) = (code(error.kind()), fit(&text(error, subject)));
    match error_details::encode(error, code, &message) {
        Some(details) => Status::with_details(code, message, details),
        None => Status::new(code, message),
    }
}

/// [`status`] for calls that have no query yet.
pub(crate) fn refuse(error: Error) -> Status {
    status(&error, None)
}

/// The status for a request that the generated code could not read; the crate's own statuses stay as they are.
pub(crate) fn framing(status: Status) -> Status {
    match unreadable(&status) {
        Some(error) => refuse(error),
        None => status,
    }
}

/// Converts the generated code's "internal" status for an unreadable request, which is the caller's fault.
pub(crate) fn unreadable(status: &Status) -> Option<Error> {
    match status.code() {
        Code::Internal if !status.message().starts_with(INTERNAL) => Some(
            Error::invalid(format!("malformed request: {}", status.message()))
                .with_hint("send messages of the type that the call takes"),
        ),
        Code::OutOfRange => Some(
            Error::new(ErrorKind::LimitReached, format!("request too large: {}", status.message()))
                .with_hint("send smaller messages, or raise `limits.max_message_bytes`"),
        ),
        // No kind has this code: it is that of `request_body.rs`.
        Code::Unknown => Some(Error::new(ErrorKind::Cancelled, CUT_OFF)),
        _ => None,
    }
}

fn text(error: &Error, subject: Option<bowshot_api::QueryId>) -> String {
    match error.kind() {
        ErrorKind::Internal => {
            let reference = reference(error, subject);
            format!("{INTERNAL}, {reference}; report it with this reference")
        }
        ErrorKind::Corrupt => {
            let reference = reference(error, subject);
            format!("{error} ({reference})")
        }
        // Clients detect missing tables by these words.
        ErrorKind::NotFound if !says_missing(error.message()) => format!("not found: {error}"),
        ErrorKind::NotFound
        | ErrorKind::Syntax
        | ErrorKind::Invalid
        | ErrorKind::AlreadyExists
        | ErrorKind::Unauthenticated
        | ErrorKind::Denied
        | ErrorKind::Unsupported
        | ErrorKind::Conflict
        | ErrorKind::LimitReached
        | ErrorKind::Timeout
        | ErrorKind::Cancelled
        | ErrorKind::Unavailable => error.to_string(),
    }
}

fn says_missing(message: &str) -> bool {
    message.contains("not found") || message.contains("does not exist")
}

/// Writes the chain of causes to the log and gives the reference to find it by.
fn reference(error: &Error, subject: Option<bowshot_api::QueryId>) -> String {
    let reference = match subject {
        Some(query) => format!("query {query}"),
        None => format!("request {}", uuid::Uuid::new_v4()),
    };
    tracing::error!(reference, kind = ?error.kind(), chain = error.chain(), "a request failed");
    reference
}

/// Cuts a message so that it fits the headers of every client once it is percent-encoded.
fn fit(message: &str) -> String {
    let mut used = 0;
    for (index, c) in message.char_indices() {
        used += if (' '..='~').contains(&c) && c != '%' { 1 } else { 3 * c.len_utf8() };
        if used > MAX_MESSAGE_BYTES {
            let head = message.get(..index).unwrap_or_default();
            return format!("{head}…");
        }
    }
    message.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documentation of error codes.
    const PAGE: &str = include_str!("../../../docs/reference/flight-sql.md");

    #[test]
    fn the_documents_name_the_code_of_every_kind() {
        for kind in ErrorKind::ALL {
            let row = format!("| {kind:?} | {} |", crate::metrics::code_name(code(kind)));
            assert!(PAGE.contains(&row), "docs/reference/flight-sql.md lacks `{row}`");
        }
    }

    #[test]
    fn the_documents_name_every_metric() {
        let head = include_str!("metrics.rs").lines().filter_map(|line| line.strip_prefix("//! "));
        let rows: Vec<&str> = head.filter(|line| line.starts_with("| `bowshot_")).collect();
        assert_eq!(rows.len(), 9);
        for row in rows {
            assert!(PAGE.contains(row), "docs/reference/flight-sql.md lacks `{row}`");
        }
    }

    #[test]
    fn internal_errors_keep_their_internals() {
        let error = Error::internal("slot 7 is empty").with_source(std::io::Error::other("boom"));
        let query = bowshot_api::QueryId::random();
        let message = status(&error, Some(query)).message().to_owned();
        assert!(message.contains(&query.to_string()), "{message}");
        assert!(!message.contains("slot 7") && !message.contains("boom"), "{message}");
        assert_eq!(error.chain(), "slot 7 is empty: boom");
    }

    #[test]
    fn corrupt_data_names_the_file() {
        let error = Error::new(ErrorKind::Corrupt, "file `a.parquet` cannot be read");
        assert!(status(&error, None).message().starts_with("file `a.parquet` cannot be read (request "));
    }

    #[test]
    fn not_found_says_so() {
        assert_eq!(refuse(Error::not_found("no table `x`")).message(), "not found: no table `x`");
        assert_eq!(refuse(Error::not_found("table `x` not found")).message(), "table `x` not found");
    }

    #[test]
    fn unreadable_requests_are_the_callers() {
        for (status, expected) in [
            (Status::internal("Missing request message."), Code::InvalidArgument),
            (Status::out_of_range("too large"), Code::ResourceExhausted),
            (Status::unknown(CUT_OFF), Code::Cancelled),
            (refuse(Error::internal("slot 7 is empty")), Code::Internal),
            (Status::not_found("x"), Code::NotFound),
        ] {
            assert_eq!(framing(status.clone()).code(), expected, "{status:?}");
        }
    }

    #[test]
    fn long_messages_fit_the_headers() {
        let status = refuse(Error::invalid("ü".repeat(100_000)));
        let header = status.into_http::<()>().headers()["grpc-message"].clone();
        assert!(header.len() < 5_000, "{}", header.len());
    }
}
