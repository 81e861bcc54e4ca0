//! Classifies what DataFusion reports into the kinds that cross the door.

pub(crate) mod reasons;
pub(crate) mod wording;

use crate::error::reasons::reason_of;
use crate::error::wording::wording;
use bowshot_api::{Error as ApiError, ErrorKind};
use datafusion::arrow::error::ArrowError;
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;

/// Longest message that leaves the engine.
const MAX_MESSAGE_BYTES: usize = 4 << 10;

/// What can go wrong in the engine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Planning or execution failed.
    #[error(transparent)]
    DataFusion(#[from] DataFusionError),
    /// An Arrow kernel failed outside of DataFusion.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// Already sorted by kind.
    #[error("{0}")]
    Api(ApiError),
    /// No threads to be had.
    #[error("starting the query threads failed")]
    Runtime(#[source] std::io::Error),
}

impl From<ApiError> for Error {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::DataFusion(error) => classify(error),
            Error::Arrow(error) => classify(DataFusionError::from(error)),
            Error::Api(error) => error,
            Error::Runtime(error) => {
                ApiError::new(ErrorKind::Unavailable, "starting the query threads failed").with_source(error)
            }
        }
    }
}

/// Turns a DataFusion error into one of ours. An [`ApiError`] that travelled inside comes out as it went in.
pub fn classify(error: DataFusionError) -> ApiError {
    if let Some(inner) = travelling(&error) {
        return inner.duplicate().with_source(error);
    }
    let (kind, reason, message, hint) = {
        let root = error.find_root();
        let (message, hint) = wording(root);
        let hint = hint.or_else(|| hint_of(root).map(ToOwned::to_owned));
        let kind = kind_of(root);
        (kind, reason_of(root, kind, &message), lined(&message), hint)
    };
    let mapped = ApiError::new(kind, message).with_source(error);
    let mapped = match reason {
        Some(reason) => mapped.with_reason(reason),
        None => mapped,
    };
    match hint {
        Some(hint) => mapped.with_hint(hint),
        None => mapped,
    }
}

/// Errors of our own that passed through DataFusion: storage and the data plane wrap them as external errors.
/// An [`ApiError`] that travels inside.
pub(crate) fn travelling(error: &DataFusionError) -> Option<&ApiError> {
    let mut current: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = current {
        if let Some(found) = error.downcast_ref::<ApiError>() {
            return Some(found);
        }
        if let Some(DataFusionError::External(inner)) = error.downcast_ref::<DataFusionError>()
            && let Some(found) = inner.downcast_ref::<ApiError>()
        {
            return Some(found);
        }
        current = error.source();
    }
    None
}

fn kind_of(root: &DataFusionError) -> ErrorKind {
    match root {
        DataFusionError::SQL(..) => ErrorKind::Syntax,
        DataFusionError::NotImplemented(_) => ErrorKind::Unsupported,
        DataFusionError::ResourcesExhausted(_) => ErrorKind::LimitReached,
        DataFusionError::ParquetError(_) => ErrorKind::Corrupt,
        DataFusionError::ObjectStore(_) | DataFusionError::IoError(_) => ErrorKind::Unavailable,
        DataFusionError::SchemaError(schema, _) => match schema.as_ref() {
            SchemaError::FieldNotFound { .. }
            | SchemaError::AmbiguousReference { .. }
            | SchemaError::DuplicateQualifiedField { .. }
            | SchemaError::DuplicateUnqualifiedField { .. } => ErrorKind::Invalid,
        },
        DataFusionError::Plan(message) if is_missing(message) => ErrorKind::NotFound,
        // Rows of VALUES that are of different lengths.
        DataFusionError::Plan(message) if message.starts_with("Inconsistent data length") => {
            ErrorKind::Syntax
        }
        DataFusionError::Plan(_) | DataFusionError::Configuration(_) | DataFusionError::Execution(_) => {
            ErrorKind::Invalid
        }
        DataFusionError::ArrowError(error, _) => arrow_kind(error),
        DataFusionError::ExecutionJoin(join) if join.is_cancelled() => ErrorKind::Cancelled,
        DataFusionError::Internal(message) if is_users_mistake(message) => ErrorKind::Invalid,
        // Of the errors that come from libraries, these are about the statement.
        DataFusionError::External(error) if is_about_a_pattern(&error.to_string()) => ErrorKind::Invalid,
        _ => ErrorKind::Internal,
    }
}

/// What the library of regular expressions says of one that is wrong, or too large.
pub(crate) fn is_about_a_pattern(message: &str) -> bool {
    message.starts_with("regex parse error") || message.starts_with("Compiled regex exceeds size limit")
}

fn arrow_kind(error: &ArrowError) -> ErrorKind {
    match error {
        ArrowError::NotYetImplemented(_) => ErrorKind::Unsupported,
        ArrowError::MemoryError(_) => ErrorKind::LimitReached,
        ArrowError::ParquetError(_)
        | ArrowError::IpcError(_)
        | ArrowError::JsonError(_)
        | ArrowError::CsvError(_) => ErrorKind::Corrupt,
        ArrowError::IoError(..) => ErrorKind::Unavailable,
        ArrowError::CDataInterface(_) | ArrowError::ExternalError(_) => ErrorKind::Internal,
        _ => ErrorKind::Invalid,
    }
}

/// DataFusion tells a missing table or function by text only.
fn is_missing(message: &str) -> bool {
    message.contains("not found")
        || message.starts_with("No table named")
        || message.contains("failed to resolve schema")
        || message.contains("failed to resolve catalog")
}

/// Planning reports some mistakes of the statement as internal errors; they are not defects of the server.
fn is_users_mistake(message: &str) -> bool {
    message.contains("recursion limit")
        || message.contains("Placeholder")
        || message.contains("type_coercion")
        || message.contains("failed to match any signature")
}

fn lined(text: &str) -> String {
    // Names that carry which state of a table is meant are none that anybody has written.
    let text = bowshot_sql::rewrite::unmarked(text);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    lower_first(shortened(&line).trim_end_matches('.'))
}

/// Values of the data can stand in messages, and messages are kept: they must not be longer than somebody reads.
fn shortened(line: &str) -> String {
    if line.len() <= MAX_MESSAGE_BYTES {
        return line.to_owned();
    }
    let end = (0..=MAX_MESSAGE_BYTES).rev().find(|end| line.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", &line[..end])
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    match (chars.next(), chars.clone().next()) {
        // Keep words such as SQL and UInt8 as they are.
        (Some(first), Some(second)) if first.is_ascii_uppercase() && second.is_ascii_lowercase() => {
            first.to_ascii_lowercase().to_string() + chars.as_str()
        }
        _ => text.to_owned(),
    }
}

fn hint_of(root: &DataFusionError) -> Option<&'static str> {
    match root {
        DataFusionError::ResourcesExhausted(_) => {
            Some("read fewer rows, or raise `limits.query_memory_bytes` in the configuration")
        }
        DataFusionError::Plan(message) if message.contains("table") && is_missing(message) => {
            Some("list the tables with `SHOW TABLES`")
        }
        DataFusionError::ParquetError(_) => Some("replace the file with a valid one"),
        _ => None,
    }
}
