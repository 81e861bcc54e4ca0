//! The messages of OTLP's trace service, written by hand after the files `collector/trace/v1/trace_service.proto`,
//! `trace/v1/trace.proto`, `common/v1/common.proto` and `resource/v1/resource.proto` of opentelemetry-proto 1.10
//! (<https://github.com/open-telemetry/opentelemetry-proto>). What is never set is not here: links, states of traces, schema
//! addresses, numbers of what was left out, values of other kinds.

use prost::{Enumeration, Message, Oneof};

/// Messages: their fields, each with its encoding and its number.
macro_rules! messages {
    ($($(#[$about:meta])* $name:ident { $($(#[$note:meta])* $field:ident: $value:ty = ($($encoding:tt)*),)* })*) => {$(
        $(#[$about])*
        #[derive(Clone, PartialEq, Message)]
        pub(super) struct $name {
            $($(#[$note])* #[prost($($encoding)*)] pub(super) $field: $value,)*
        }
    )*};
}

messages! {
    /// What is sent.
    ExportTraceServiceRequest {
        resource_spans: Vec<ResourceSpans> = (message, repeated, tag = "1"),
    }

    /// What is answered.
    ExportTraceServiceResponse {
        partial_success: Option<ExportTracePartialSuccess> = (message, optional, tag = "1"),
    }

    /// What of it was not taken.
    ExportTracePartialSuccess {
        rejected_spans: i64 = (int64, tag = "1"),
        error_message: String = (string, tag = "2"),
    }

    /// Spans of one process.
    ResourceSpans {
        resource: Option<Resource> = (message, optional, tag = "1"),
        scope_spans: Vec<ScopeSpans> = (message, repeated, tag = "2"),
    }

    /// A process.
    Resource {
        attributes: Vec<KeyValue> = (message, repeated, tag = "1"),
    }

    /// Spans that one library has made.
    ScopeSpans {
        scope: Option<InstrumentationScope> = (message, optional, tag = "1"),
        spans: Vec<Span> = (message, repeated, tag = "2"),
    }

    /// A library that makes spans.
    InstrumentationScope {
        name: String = (string, tag = "1"),
        version: String = (string, tag = "2"),
    }

    /// A piece of work. The fields are in the order of the protocol's text, not of their numbers.
    Span {
        trace_id: Vec<u8> = (bytes = "vec", tag = "1"),
        span_id: Vec<u8> = (bytes = "vec", tag = "2"),
        /// Empty: there is none.
        parent_span_id: Vec<u8> = (bytes = "vec", tag = "4"),
        flags: u32 = (fixed32, tag = "16"),
        name: String = (string, tag = "5"),
        kind: i32 = (enumeration = "SpanKind", tag = "6"),
        start_time_unix_nano: u64 = (fixed64, tag = "7"),
        end_time_unix_nano: u64 = (fixed64, tag = "8"),
        attributes: Vec<KeyValue> = (message, repeated, tag = "9"),
        events: Vec<Event> = (message, repeated, tag = "11"),
        status: Option<Status> = (message, optional, tag = "15"),
    }

    /// What happened at one time of a span.
    Event {
        time_unix_nano: u64 = (fixed64, tag = "1"),
        name: String = (string, tag = "2"),
        attributes: Vec<KeyValue> = (message, repeated, tag = "3"),
    }

    /// How a span has ended.
    Status {
        message: String = (string, tag = "2"),
        code: i32 = (enumeration = "StatusCode", tag = "3"),
    }

    /// An attribute.
    KeyValue {
        key: String = (string, tag = "1"),
        value: Option<AnyValue> = (message, optional, tag = "2"),
    }

    /// The value of an attribute.
    AnyValue {
        value: Option<Value> = (oneof = "Value", tags = "1, 2, 3, 4"),
    }
}

/// See [`AnyValue`].
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Value {
    #[prost(string, tag = "1")]
    String(String),
    #[prost(bool, tag = "2")]
    Bool(bool),
    #[prost(int64, tag = "3")]
    Int(i64),
    #[prost(double, tag = "4")]
    Double(f64),
}

/// Which side of a call a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(super) enum SpanKind {
    Unspecified = 0,
    Internal = 1,
    Server = 2,
}

/// Whether a span has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(super) enum StatusCode {
    Unset = 0,
    Ok = 1,
    Error = 2,
}

impl KeyValue {
    pub(super) fn new(key: &str, value: Value) -> Self {
        Self { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
    }

    pub(super) fn text(key: &str, value: &str) -> Self {
        Self::new(key, Value::String(value.to_owned()))
    }
}
