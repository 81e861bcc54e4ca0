//! `current_setting` and `set_config`.

use crate::functions::{Call, FunctionSpec, TEXT, spec, text};
use crate::listing::external;
use bowshot_api::{Error, Reason};
use datafusion::error::Result;
use datafusion::scalar::ScalarValue;

pub(crate) static FUNCTIONS: &[FunctionSpec] = &[spec("current_setting", (1, 2), TEXT, current_setting)];

/// Functions that change something, each time that they are called.
pub(crate) static CHANGING: &[FunctionSpec] = &[spec("set_config", (3, 3), TEXT, set_config)];

fn current_setting(call: &Call<'_>) -> Result<ScalarValue> {
    let Some(name) = call.text(0) else { return Ok(ScalarValue::Utf8(None)) };
    let found = match call.facts.client.get() {
        Some(client) => client.setting(&name),
        None => Err(Error::not_found(format!("session option `{name}` not found"))
            .with_reason(Reason::UndefinedOption)),
    };
    match found {
        Ok(setting) => text(setting.value),
        Err(_) if call.truth(1) == Some(true) => Ok(ScalarValue::Utf8(None)),
        Err(error) => Err(external(error)),
    }
}

/// As `SET`, or as `SET LOCAL` if the last argument says so; null is the value of a new session.
fn set_config(call: &Call<'_>) -> Result<ScalarValue> {
    let Some(name) = call.text(0) else {
        return Err(external(Error::invalid("`set_config` takes the name of a setting")));
    };
    let unknown = || {
        Error::not_found(format!("session option `{name}` not found")).with_reason(Reason::UndefinedOption)
    };
    let client = call.facts.client.get().ok_or_else(unknown).map_err(external)?;
    client.set(&name, call.text(1).as_deref(), call.truth(2) == Some(true)).map_err(external)?;
    text(client.setting(&name).map_err(external)?.value)
}
