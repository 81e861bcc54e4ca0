//! Parses SQL requests: a text, or a JSON object with the text, parameters and options.

use crate::media_type::Format;
use crate::request_body;
use crate::status::{Failure, Result};
use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, COOKIE, ORIGIN, REFERER};
use axum::http::{HeaderMap, StatusCode};
use bowshot_api::{Error, ErrorKind, Limits, OptionValue};
use serde::Deserialize;
use serde_json::{Map, Value};

/// JSON values of one request. Each takes many times the memory of its text.
const MAX_VALUES: usize = 100_000;

/// Content type of HTML forms.
const FORM: &str = "application/x-www-form-urlencoded";

/// Session options by name; `None` resets one.
pub(crate) type SessionOptions = Vec<(String, Option<OptionValue>)>;

#[derive(Debug, Default, PartialEq)]
pub(crate) struct SqlRequest {
    pub(crate) sql: String,
    pub(crate) parameters: Parameters,
    pub(crate) options: SessionOptions,
}

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
struct RequestBody {
    sql: String,
    #[serde(default)]
    parameters: Parameters,
    #[serde(default)]
    options: Map<String, Value>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RequestOptions {
    #[serde(default)]
    options: Map<String, Value>,
}

impl SqlRequest {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// 413 for a body that is too long, 415 for another type, 400 for one that is not what its type says.
    pub(crate) async fn read(request: Request, limits: &Limits) -> Result<Self> {
        let (parts, body) = request.into_parts();
        let is_json = match media_type(&parts.headers).as_deref() {
            Some("application/json") => true,
            Some("text/plain" | "application/sql") => false,
            // `curl -d` sends every text as a form.
            None | Some(FORM) if !is_of_browser(&parts.headers) => false,
            other => return Err(unknown_type(other)),
        };
        let limit = (limits.max_sql_bytes, "limits.max_sql_bytes");
        let bytes = request_body::whole(&parts.headers, body, limit).await?;
        if is_json {
            return Self::from_json(&bytes).map_err(Failure::from);
        }
        let sql = String::from_utf8(bytes).map_err(|_| Error::invalid("the statement is not UTF-8 text"))?;
        Ok(Self { sql, ..Self::default() })
    }

    fn from_json(bytes: &[u8]) -> bowshot_api::Result<Self> {
        check_values(bytes)?;
        let RequestBody { sql, parameters, options } = serde_json::from_slice(bytes).map_err(|error| {
            Error::invalid(format!("invalid request body: {error}"))
                .with_hint("send {\"sql\": text, \"parameters\": array, \"options\": object}")
        })?;
        Ok(Self { sql, parameters, options: read_options(options)? })
    }
}

/// The options of a new session; an empty body has none.
pub(crate) async fn session_options(request: Request, limits: &Limits) -> Result<SessionOptions> {
    let (parts, body) = request.into_parts();
    let limit = (limits.max_sql_bytes, "limits.max_sql_bytes");
    let bytes = request_body::whole(&parts.headers, body, limit).await?;
    if bytes.is_empty() {
        return Ok(SessionOptions::new());
    }
    match media_type(&parts.headers).as_deref() {
        Some("application/json") => {}
        other => return Err(unknown_type(other)),
    }
    check_values(&bytes)?;
    let RequestOptions { options } = serde_json::from_slice(&bytes).map_err(|error| {
        Error::invalid(format!("the body has no options: {error}")).with_hint("send {\"options\": object}")
    })?;
    Ok(read_options(options)?)
}

/// Limits the values of a JSON body before parsing it.
pub(crate) fn check_values(bytes: &[u8]) -> bowshot_api::Result<()> {
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
    Err(Error::new(ErrorKind::LimitReached, format!("the request has more than {MAX_VALUES} values"))
        .with_hint("send the rows to `/v1/tables/{name}`"))
}

pub(crate) fn media_type(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media = text.map(|text| text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    media.filter(|media| !media.is_empty())
}

/// Whether a browser may have sent the request. Browsers send forms across origins without a preflight, so a form
/// from one does not show the user's intent.
fn is_of_browser(headers: &HeaderMap) -> bool {
    [ORIGIN.as_str(), REFERER.as_str(), COOKIE.as_str(), "sec-fetch-site", "sec-fetch-mode"]
        .iter()
        .any(|name| headers.contains_key(*name))
}

fn unknown_type(media: Option<&str>) -> Failure {
    let mut hint = "send text/plain, application/sql or application/json".to_owned();
    if media.is_some_and(|media| Format::from_media_type(media).is_some()) {
        hint.push_str("; rows go to `/v1/tables/{name}`");
    }
    let message = match media {
        None => "the request has no `content-type`".to_owned(),
        Some(FORM) => format!("content type `{FORM}` is not accepted from a browser"),
        Some(media) => format!("unsupported content type `{media}`"),
    };
    Failure::with_status(Error::unsupported(message).with_hint(hint), StatusCode::UNSUPPORTED_MEDIA_TYPE)
}

fn read_options(written: Map<String, Value>) -> bowshot_api::Result<SessionOptions> {
    let read = written.into_iter().map(|(name, value)| {
        let value = option(&name, value)?;
        Ok((name, value))
    });
    read.collect()
}

fn option(name: &str, value: Value) -> bowshot_api::Result<Option<OptionValue>> {
    let refused = || {
        Error::invalid(format!("invalid value for option `{name}`"))
            .with_hint("expected a string, a number, a boolean, a list of strings, or null for its default")
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
        SqlRequest::from_json(body.as_bytes()).unwrap_err().message().to_owned()
    }

    #[test]
    fn orders() {
        let request = SqlRequest::from_json(br#"{"sql": "SELECT 1"}"#).unwrap();
        assert_eq!(request, SqlRequest { sql: "SELECT 1".to_owned(), ..SqlRequest::default() });
        let request = SqlRequest::from_json(
            br#"{"sql": "x", "parameters": [1, "a", null], "options": {"a": 1, "b": null, "c": ["d"]}}"#,
        );
        let request = request.unwrap();
        assert_eq!(request.parameters, Parameters::Numbered(vec![1.into(), "a".into(), Value::Null]));
        assert_eq!(
            request.options,
            [
                ("a".to_owned(), Some(OptionValue::Int64(1))),
                ("b".to_owned(), None),
                ("c".to_owned(), Some(OptionValue::StringList(vec!["d".to_owned()]))),
            ]
        );
        let request = SqlRequest::from_json(br#"{"sql": "x", "parameters": null}"#).unwrap();
        assert_eq!(request.parameters, Parameters::None);
    }

    #[test]
    fn what_is_no_order() {
        for body in ["", "{", "[]", "{}", r#"{"sql": 1}"#, r#"{"sql": "x", "paramters": []}"#, "\u{1}"] {
            assert!(refused(body).starts_with("invalid request body"), "{body}");
        }
        assert!(refused(r#"{"sql": "x", "parameters": 1}"#).starts_with("invalid request body"));
        assert_eq!(refused(r#"{"sql": "x", "options": {"a": {}}}"#), "invalid value for option `a`");
        let deep = format!(r#"{{"sql": "x", "parameters": [{}]}}"#, "[".repeat(90_000));
        assert!(refused(&deep).starts_with("invalid request body"));
        let long = format!(
            r#"{{"sql": "{}", "parameters": [0{}]}}"#,
            "\\\",[{".repeat(100_000),
            ",0".repeat(100_000)
        );
        assert_eq!(refused(&long), "the request has more than 100000 values");
        let text = format!(r#"{{"sql": "{}"}}"#, "\\\",[{".repeat(100_000));
        assert_eq!(SqlRequest::from_json(text.as_bytes()).unwrap().sql.len(), 400_000);
    }
}
