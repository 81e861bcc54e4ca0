//! Session options and the end of a session, by the core Flight actions.

use crate::caller::Caller;
use crate::proto::session_option_value::{OptionValue as Wire, StringListValue};
use crate::proto::{
    CloseSessionResult, CloseSessionStatus, GetSessionOptionsResult, SessionOptionValue,
    SetSessionOptionError, SetSessionOptionErrorValue, SetSessionOptionsRequest, SetSessionOptionsResult,
};
use bowshot_api::{Error, ErrorKind, OptionValue, Result};
use std::collections::HashMap;

/// Sets each option by itself; the answer names those that failed.
pub(crate) async fn set(
    caller: &Caller,
    request: SetSessionOptionsRequest,
) -> Result<SetSessionOptionsResult> {
    let session = caller.session_or_new().await?;
    let mut errors = HashMap::new();
    for (name, value) in request.session_options {
        if let Err(error) = session.set_option(&name, value.option_value.map(from_wire)).await {
            tracing::debug!(%error, "a session option was refused");
            errors.insert(name, SetSessionOptionError { value: reason(error.kind()) as i32 });
        }
    }
    Ok(SetSessionOptionsResult { errors })
}

pub(crate) async fn get(caller: &Caller) -> Result<GetSessionOptionsResult> {
    let options = caller.session().await?.options();
    let session_options = options
        .into_iter()
        .map(|(name, value)| (name, SessionOptionValue { option_value: Some(to_wire(value)) }))
        .collect();
    Ok(GetSessionOptionsResult { session_options })
}

pub(crate) async fn close(caller: &Caller) -> Result<CloseSessionResult> {
    let session = caller.open_session().await?.ok_or_else(|| {
        Error::not_found("session not found")
            .with_hint("there is nothing to close; the next query opens a session")
    })?;
    session.close().await;
    Ok(CloseSessionResult { status: CloseSessionStatus::Closed as i32 })
}

fn reason(kind: ErrorKind) -> SetSessionOptionErrorValue {
    match kind {
        ErrorKind::NotFound => SetSessionOptionErrorValue::InvalidName,
        ErrorKind::Invalid | ErrorKind::Syntax | ErrorKind::Unsupported | ErrorKind::LimitReached => {
            SetSessionOptionErrorValue::InvalidValue
        }
        ErrorKind::AlreadyExists
        | ErrorKind::Unauthenticated
        | ErrorKind::Denied
        | ErrorKind::Conflict
        | ErrorKind::Timeout
        | ErrorKind::Cancelled
        | ErrorKind::Unavailable
        | ErrorKind::Corrupt
        | ErrorKind::Internal => SetSessionOptionErrorValue::Error,
    }
}

fn from_wire(value: Wire) -> OptionValue {
    match value {
        Wire::StringValue(text) => OptionValue::String(text),
        Wire::BoolValue(truth) => OptionValue::Bool(truth),
        Wire::Int64Value(number) => OptionValue::Int64(number),
        Wire::DoubleValue(number) => OptionValue::Double(number),
        Wire::StringListValue(list) => OptionValue::StringList(list.values),
    }
}

pub(crate) fn to_wire(value: OptionValue) -> Wire {
    match value {
        OptionValue::String(text) => Wire::StringValue(text),
        OptionValue::Bool(truth) => Wire::BoolValue(truth),
        OptionValue::Int64(number) => Wire::Int64Value(number),
        OptionValue::Double(number) => Wire::DoubleValue(number),
        OptionValue::StringList(values) => Wire::StringListValue(StringListValue { values }),
    }
}
