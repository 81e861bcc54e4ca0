//! Machine-readable error details in gRPC's rich error model (`google.rpc.Status` with an `ErrorInfo`, header
//! `grpc-status-details-bin`): reason or kind, `sqlstate`, and `line` and `column` if known.

use bowshot_api::{Error, Reason};
use bytes::Bytes;
use prost::Message;
use std::collections::HashMap;
use tonic::Code;

/// Whose reasons they are.
const DOMAIN: &str = "bowshot";
const URL: &str = "type.googleapis.com/google.rpc.ErrorInfo";
/// Longest message that is repeated in the details. Java clients read at most 8 KiB of headers, of which the message
/// may take half.
const MAX_MESSAGE_BYTES: usize = 1 << 10;

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, prost::Message)]
struct RichStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<prost_types::Any>,
}

/// `google.rpc.ErrorInfo`.
#[derive(Clone, PartialEq, prost::Message)]
struct ErrorInfo {
    #[prost(string, tag = "1")]
    reason: String,
    #[prost(string, tag = "2")]
    domain: String,
    #[prost(map = "string, string", tag = "3")]
    metadata: HashMap<String, String>,
}

/// The details of an error; `None` if they would not fit.
pub(crate) fn encode(error: &Error, code: Code, message: &str) -> Option<Bytes> {
    if message.len() > MAX_MESSAGE_BYTES {
        return None;
    }
    let mut metadata = HashMap::from([("sqlstate".to_owned(), error.sqlstate().to_owned())]);
    if let Some(position) = error.position() {
        metadata.insert("line".to_owned(), position.line.to_string());
        metadata.insert("column".to_owned(), position.column.to_string());
    }
    let reason = error.reason().map_or(error.kind().name(), Reason::name).to_uppercase();
    let info = ErrorInfo { reason, domain: DOMAIN.to_owned(), metadata };
    let any = prost_types::Any { type_url: URL.to_owned(), value: info.encode_to_vec() };
    let status = RichStatus { code: i32::from(code), message: message.to_owned(), details: vec![any] };
    Some(status.encode_to_vec().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowshot_api::Position;

    #[test]
    fn details_tell_reason_state_and_place() {
        let error = Error::not_found("table `a` not found")
            .with_reason(Reason::UndefinedTable)
            .with_position(Position { line: 1, column: 8 });
        let details = encode(&error, Code::NotFound, error.message()).expect("details");
        let status = RichStatus::decode(details).expect("a status");
        assert_eq!((status.code, status.message.as_str()), (5, error.message()));
        let info = ErrorInfo::decode(status.details[0].value.as_slice()).expect("an info");
        assert_eq!((info.reason.as_str(), info.domain.as_str()), ("UNDEFINED_TABLE", "bowshot"));
        let said = |name: &str| info.metadata.get(name).map(String::as_str);
        assert_eq!((said("sqlstate"), said("line"), said("column")), (Some("42P01"), Some("1"), Some("8")));
        assert_eq!(encode(&error, Code::NotFound, &"x".repeat(4000)), None);
    }
}
