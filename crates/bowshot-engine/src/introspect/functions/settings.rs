//! `current_setting`.

use super::{Call, TEXT, Told, text};
use crate::introspect::listing::external;
use bowshot_api::Error;
use datafusion::error::Result;
use datafusion::scalar::ScalarValue;

pub(super) static FUNCTIONS: &[Told] =
    &[Told { name: "current_setting", arguments: (1, 2), returns: TEXT, value: current_setting }];

fn current_setting(call: &Call<'_>) -> Result<ScalarValue> {
    let Some(name) = call.text(0) else { return Ok(ScalarValue::Utf8(None)) };
    let found = match call.facts.client.get() {
        Some(client) => client.setting(&name),
        None => Err(Error::not_found(format!("session option `{name}` not found"))),
    };
    match found {
        Ok(setting) => text(setting.value),
        Err(_) if call.truth(1) == Some(true) => Ok(ScalarValue::Utf8(None)),
        Err(error) => Err(external(error)),
    }
}
