//! What a request for SQL says: a text, or a JSON object with the text, values of its parameters, and options.

use crate::form::Form;
use crate::status::{Failure, Result};
use crate::upload;
use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, COOKIE, ORIGIN, REFERER};
use axum::http::{HeaderMap, StatusCode};
use bowshot_api::{Error, ErrorKind, Limits, OptionValue};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Values in one order. Each takes many times as much memory as text.
const MAX_VALUES: usize = 100_000;

/// The type of what pages send by their forms.
const FORM: &str = "application/x-www-form-urlencoded";

/// Options by name; `None` resets one to its default.
pub(crate) type Options = Vec<(String, Option<OptionValue>)>;

/// What to run.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Order {
    pub(crate) sql: String,
    pub(crate) parameters: Parameters,
    pub(crate) options: Options,
}

/// Values of the parameters of a statement.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Parameters {
    #[default]
    None,
    /// Of `$1`, `$2`, … or `?`.
    Numbered(Vec<Value>),
    /// Of `$name`.
    Named(Map<String, Value>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    sql: String,
    #[serde(default)]
    parameters: Parameters,
    #[serde(default)]
    options: Map<String, Value>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct WrittenOptions {
    #[serde(default)]
    options: Map<String, Value>,
}

impl Order {
    /// Reads the order off the body of a request.
    ///
    /// # Errors
    /// 413 for a body that is too long, 415 for another type, 400 for one that is not what its type says.
    pub(crate) async fn read(request: Request, limits: &Limits) -> Result<Self> {
        let (parts, body) = request.into_parts();
        let is_json = match media_type(&parts.headers).as_deref() {
            Some("application/json") => true,
            Some("text/plain" | "application/sql") => false,
            // What `curl -d` says of every text, and what says nothing.
            None | Some(FORM) if !is_of_browser(&parts.headers) => false,
            other => return Err(unknown_type(other)),
        };
        let limit = (limits.max_sql_bytes, "limits.max_sql_bytes");
        let bytes = upload::whole(&parts.headers, body, limit).await?;
        if is_json {
            return Self::from_json(&bytes).map_err(Failure::from);
        }
        let sql = String::from_utf8(bytes).map_err(|_| Error::invalid("the statement is not UTF-8 text"))?;
        Ok(Self { sql, ..Self::default() })
    }

    fn from_json(bytes: &[u8]) -> bowshot_api::Result<Self> {
        check_values(bytes)?;
        let Written { sql, parameters, options } = serde_json::from_slice(bytes).map_err(|error| {
            Error::invalid(format!("the body is no order: {error}"))
                .with_hint("send {\"sql\": text, \"parameters\": array, \"options\": object}")
        })?;
        Ok(Self { sql, parameters, options: read_options(options)? })
    }
}

/// The options of a session that is to be made; an empty body has none.
///
/// # Errors
/// As [`Order::read`].
pub(crate) async fn session_options(request: Request, limits: &Limits) -> Result<Options> {
    let (parts, body) = request.into_parts();
    let limit = (limits.max_sql_bytes, "limits.max_sql_bytes");
    let bytes = upload::whole(&parts.headers, body, limit).await?;
    if bytes.is_empty() {
        return Ok(Options::new());
    }
    match media_type(&parts.headers).as_deref() {
        Some("application/json") => {}
        other => return Err(unknown_type(other)),
    }
    check_values(&bytes)?;
    let WrittenOptions { options } = serde_json::from_slice(&bytes).map_err(|error| {
        Error::invalid(format!("the body has no options: {error}")).with_hint("send {\"options\": object}")
    })?;
    Ok(read_options(options)?)
}

/// Refuses JSON of more values than there can be a use for, before they take memory.
fn check_values(bytes: &[u8]) -> bowshot_api::Result<()> {
    let (mut values, mut in_text, mut is_escaped) = (0_usize, false, false);
    for byte in bytes {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_text,
            b'"' => in_text = !in_text,
            b',' | b'[' | b'{' if !in_text => values += 1,
            _ => {}
        }
    }
    if values <= MAX_VALUES {
        return Ok(());
    }
    Err(Error::new(ErrorKind::LimitReached, format!("the order has more than {MAX_VALUES} values"))
        .with_hint("send the rows to `/v1/tables/{name}`"))
}

/// The type that a request says of its body, if it says one.
fn media_type(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media = text.map(|text| text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    media.filter(|media| !media.is_empty())
}

/// Whether a browser may have sent a request, on behalf of any page: those say so. A form of a page is the one thing that no
/// preflight asks for, so that its type says nothing of what the page's user meant.
fn is_of_browser(headers: &HeaderMap) -> bool {
    [ORIGIN.as_str(), REFERER.as_str(), COOKIE.as_str(), "sec-fetch-site", "sec-fetch-mode"]
        .iter()
        .any(|name| headers.contains_key(*name))
}

fn unknown_type(media: Option<&str>) -> Failure {
    let mut hint = "send text/plain, application/sql or application/json".to_owned();
    if media.is_some_and(|media| Form::of_media_type(media).is_some()) {
        hint.push_str("; rows go to `/v1/tables/{name}`");
    }
    let message = match media {
        None => "the request does not say the type of its body (`content-type`)".to_owned(),
        Some(FORM) => format!("a request of type `{FORM}` is not read from a browser"),
        Some(media) => format!("a request of type `{media}` is not read here"),
    };
    Failure::with_status(Error::unsupported(message).with_hint(hint), StatusCode::UNSUPPORTED_MEDIA_TYPE)
}

fn read_options(written: Map<String, Value>) -> bowshot_api::Result<Options> {
    let read = written.into_iter().map(|(name, value)| {
        let value = option(&name, value)?;
        Ok((name, value))
    });
    read.collect()
}

fn option(name: &str, value: Value) -> bowshot_api::Result<Option<OptionValue>> {
    let refused = || {
        Error::invalid(format!("the option `{name}` has a value of no use"))
            .with_hint("send a text, a number, a truth value, a list of texts, or null for its default")
    };
    Ok(Some(match value {
        Value::Null => return Ok(None),
        Value::Bool(value) => OptionValue::Bool(value),
        Value::String(value) => OptionValue::String(value),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => OptionValue::Int64(whole),
            (None, Some(real)) => OptionValue::Double(real),
            (None, None) => return Err(refused()),
        },
        Value::Array(values) => {
            let texts = values.into_iter().map(|value| match value {
                Value::String(text) => Some(text),
                _ => None,
            });
            OptionValue::StringList(texts.collect::<Option<_>>().ok_or_else(refused)?)
        }
        Value::Object(_) => return Err(refused()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> String {
        Order::from_json(body.as_bytes()).unwrap_err().message().to_owned()
    }

    #[test]
    fn orders() {
        let order = Order::from_json(br#"{"sql": "SELECT 1"}"#).unwrap();
        assert_eq!(order, Order { sql: "SELECT 1".to_owned(), ..Order::default() });
        let order = Order::from_json(
            br#"{"sql": "x", "parameters": [1, "a", null], "options": {"a": 1, "b": null, "c": ["d"]}}"#,
        );
        let order = order.unwrap();
        assert_eq!(order.parameters, Parameters::Numbered(vec![1.into(), "a".into(), Value::Null]));
        assert_eq!(
            order.options,
            [
                ("a".to_owned(), Some(OptionValue::Int64(1))),
                ("b".to_owned(), None),
                ("c".to_owned(), Some(OptionValue::StringList(vec!["d".to_owned()]))),
            ]
        );
        let order = Order::from_json(br#"{"sql": "x", "parameters": null}"#).unwrap();
        assert_eq!(order.parameters, Parameters::None);
    }

    #[test]
    fn what_is_no_order() {
        for body in ["", "{", "[]", "{}", r#"{"sql": 1}"#, r#"{"sql": "x", "paramters": []}"#, "\u{1}"] {
            assert!(refused(body).starts_with("the body is no order"), "{body}");
        }
        assert!(refused(r#"{"sql": "x", "parameters": 1}"#).starts_with("the body is no order"));
        assert_eq!(refused(r#"{"sql": "x", "options": {"a": {}}}"#), "the option `a` has a value of no use");
        let deep = format!(r#"{{"sql": "x", "parameters": [{}]}}"#, "[".repeat(90_000));
        assert!(refused(&deep).starts_with("the body is no order"));
        let long = format!(
            r#"{{"sql": "{}", "parameters": [0{}]}}"#,
            "\\\",[{".repeat(100_000),
            ",0".repeat(100_000)
        );
        assert_eq!(refused(&long), "the order has more than 100000 values");
        let text = format!(r#"{{"sql": "{}"}}"#, "\\\",[{".repeat(100_000));
        assert_eq!(Order::from_json(text.as_bytes()).unwrap().sql.len(), 400_000);
    }
}
