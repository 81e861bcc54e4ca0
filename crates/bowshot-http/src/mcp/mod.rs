//! `POST /mcp`: the Model Context Protocol for agents (Streamable HTTP without sessions, one JSON answer for each
//! request). Never: a statement that does more than read, a result without a limit.

mod rows;
mod tools;

use crate::Context;
use crate::caller::Caller;
use crate::request_body;
use crate::sql_request::{check_values, media_type};
use crate::status::{Failure, Result};
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bowshot_api::{About, Error, ErrorKind};
use serde_json::{Map, Value, json};

/// Supported versions of the protocol, the newest first.
const VERSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];
/// The header with the version of a request.
const VERSION: &str = "mcp-protocol-version";

// Codes of JSON-RPC 2.0 (section 5.1), and of MCP for a version.
const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
const UNSUPPORTED_VERSION: i32 = -32022;

const INSTRUCTIONS: &str = "Read-only SQL over the tables of this server, under the rights of the user who is logged in. \
     Begin with `list_tables`, look at columns with `describe_table`, and run one statement at a time with `query`.";

/// An error of JSON-RPC. Errors of statements are results of their tool.
#[derive(Debug)]
struct RpcError {
    code: i32,
    message: String,
    data: Option<Value>,
}

impl RpcError {
    fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The answer to a request; `id` is null where that is unknown.
    fn answer(self, id: &Value) -> String {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = self.data {
            error["data"] = data;
        }
        json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()
    }
}

#[derive(Debug)]
enum Message {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    /// A notification, or an answer to a request that this server never sends.
    Unanswered,
}

pub(crate) async fn answer(
    State(context): State<Context>,
    caller: Caller,
    request: Request,
) -> Result<Response> {
    if !context.choices.mcp {
        return Err(off().into());
    }
    let (parts, body) = request.into_parts();
    if media_type(&parts.headers).as_deref() != Some("application/json") {
        let error =
            Error::unsupported("the request is not JSON").with_hint("send `content-type: application/json`");
        return Err(Failure::with_status(error, StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    let limit = (context.server.limits().max_sql_bytes, "limits.max_sql_bytes");
    let bytes = request_body::whole(&parts.headers, body, limit).await?;
    check_values(&bytes)?;
    let message = check_version(&parts.headers).and_then(|()| read_message(&bytes));
    let (id, method, params) = match message {
        Ok(Message::Request { id, method, params }) => (id, method, params),
        Ok(Message::Unanswered) => return Ok(StatusCode::ACCEPTED.into_response()),
        Err(error) => return Ok(json(StatusCode::BAD_REQUEST, error.answer(&Value::Null))),
    };
    let answer = match Box::pin(run(caller, &method, params)).await {
        Ok(result) => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}"),
        Err(error) => error.answer(&id),
    };
    Ok(json(StatusCode::OK, answer))
}

fn off() -> Error {
    Error::new(ErrorKind::Denied, "the Model Context Protocol is off on this server").with_hint(
        "the operator sets `http_mcp` to `auto` or `on`; where other machines reach the server, it also needs users",
    )
}

fn json(status: StatusCode, body: String) -> Response {
    (status, [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")], body).into_response()
}

/// Refuses versions that are not supported; clients send one from the second request on.
fn check_version(headers: &HeaderMap) -> Result<(), RpcError> {
    let Some(version) = headers.get(VERSION) else { return Ok(()) };
    if VERSIONS.iter().any(|known| known.as_bytes() == version.as_bytes()) {
        return Ok(());
    }
    let requested = String::from_utf8_lossy(version.as_bytes());
    Err(RpcError {
        code: UNSUPPORTED_VERSION,
        message: format!("unsupported protocol version: expected one of {}", VERSIONS.join(", ")),
        data: Some(json!({ "supported": VERSIONS, "requested": requested })),
    })
}

fn read_message(bytes: &[u8]) -> Result<Message, RpcError> {
    let invalid = |reason: &str| RpcError::new(INVALID_REQUEST, format!("invalid request: {reason}"));
    let read = serde_json::from_slice(bytes)
        .map_err(|error| RpcError::new(PARSE_ERROR, format!("the request is not JSON: {error}")))?;
    let Value::Object(mut fields) = read else { return Err(invalid("expected one JSON-RPC message")) };
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid("`jsonrpc` must be \"2.0\""));
    }
    let params = fields.remove("params").unwrap_or_else(|| Value::Object(Map::new()));
    match (fields.remove("method"), fields.remove("id")) {
        (Some(Value::String(method)), Some(id @ (Value::String(_) | Value::Number(_)))) => {
            Ok(Message::Request { id, method, params })
        }
        (Some(Value::String(_)), None) => Ok(Message::Unanswered),
        (None, Some(_)) if fields.contains_key("result") || fields.contains_key("error") => {
            Ok(Message::Unanswered)
        }
        (Some(Value::String(_)), Some(_)) => Err(invalid("`id` must be a string or a number")),
        _ => Err(invalid("`method` must be a string")),
    }
}

/// The result of a request, as JSON.
async fn run(caller: Caller, method: &str, params: Value) -> Result<String, RpcError> {
    match method {
        "initialize" => Ok(initialize(caller.context.server.about(), &params)),
        "ping" => Ok("{}".to_owned()),
        "tools/list" => Ok(tools::LIST.to_owned()),
        "tools/call" => tools::call(caller, params).await,
        _ => {
            let method: String = method.chars().take(100).collect();
            Err(RpcError::new(METHOD_NOT_FOUND, format!("method `{method}` is not supported")))
        }
    }
}

/// The version of the client, if it is supported, and what this server can do.
fn initialize(about: &About, params: &Value) -> String {
    let wanted = params.get("protocolVersion").and_then(Value::as_str);
    let [newest, ..] = VERSIONS;
    let version = VERSIONS.into_iter().find(|version| wanted == Some(*version)).unwrap_or(newest);
    json!({
        "protocolVersion": version,
        "capabilities": { "tools": {} },
        "serverInfo": { "name": about.name, "version": about.version },
        "instructions": INSTRUCTIONS,
    })
    .to_string()
}
