//! Protocol messages that the generated module of `arrow-flight` lacks or hides, after Flight.proto and
//! FlightSql.proto: session options, prepared statements with `is_update`, and the end of a savepoint.

use bytes::Bytes;
use std::collections::HashMap;

/// The type URL under which [`ActionCreatePreparedStatementResult`] travels.
pub(crate) const PREPARED_RESULT_URL: &str =
    "type.googleapis.com/arrow.flight.protocol.sql.ActionCreatePreparedStatementResult";

/// Value of a session option; without a value it asks to reset the option.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SessionOptionValue {
    #[prost(oneof = "session_option_value::OptionValue", tags = "1, 2, 3, 4, 5")]
    pub(crate) option_value: Option<session_option_value::OptionValue>,
}

pub(crate) mod session_option_value {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct StringListValue {
        #[prost(string, repeated, tag = "1")]
        pub(crate) values: Vec<String>,
    }

    #[expect(clippy::enum_variant_names, reason = "the protocol's own names")]
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub(crate) enum OptionValue {
        #[prost(string, tag = "1")]
        StringValue(String),
        #[prost(bool, tag = "2")]
        BoolValue(bool),
        #[prost(sfixed64, tag = "3")]
        Int64Value(i64),
        #[prost(double, tag = "4")]
        DoubleValue(f64),
        #[prost(message, tag = "5")]
        StringListValue(StringListValue),
    }
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SetSessionOptionsRequest {
    #[prost(map = "string, message", tag = "1")]
    pub(crate) session_options: HashMap<String, SessionOptionValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SetSessionOptionsResult {
    #[prost(map = "string, message", tag = "1")]
    pub(crate) errors: HashMap<String, SetSessionOptionError>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SetSessionOptionError {
    #[prost(enumeration = "SetSessionOptionErrorValue", tag = "1")]
    pub(crate) value: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum SetSessionOptionErrorValue {
    Unspecified = 0,
    InvalidName = 1,
    InvalidValue = 2,
    Error = 3,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GetSessionOptionsRequest {}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GetSessionOptionsResult {
    #[prost(map = "string, message", tag = "1")]
    pub(crate) session_options: HashMap<String, SessionOptionValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CloseSessionRequest {}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CloseSessionResult {
    #[prost(enumeration = "CloseSessionStatus", tag = "1")]
    pub(crate) status: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum CloseSessionStatus {
    Unspecified = 0,
    Closed = 1,
    Closing = 2,
    NotCloseable = 3,
}

/// Result of the action `CreatePreparedStatement`, with the field that tells updates from queries.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ActionCreatePreparedStatementResult {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) prepared_statement_handle: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) dataset_schema: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) parameter_schema: Bytes,
    #[prost(bool, optional, tag = "4")]
    pub(crate) is_update: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum EndSavepoint {
    Unspecified = 0,
    Release = 1,
    Rollback = 2,
}
