//! Handles every call of a connection, in front of the generated service: authenticates, sets the deadline, answers
//! DoGet and DoExchange, passes other calls on, adds the session cookie, contains panics, and records metrics.
//! gRPC-Web calls enter from `grpc_web.rs`.

use crate::caller::Caller;
use crate::connection::Connection;
use crate::messages::{Messages, Unread};
use crate::request_body::RequestBody;
use crate::response_body::{Observation, Observed, Payload};
use crate::service::FlightSql;
use crate::status::{framing, refuse};
use crate::{cookie, exchange, stream};
use arrow_flight::flight_service_server::FlightServiceServer;
use bowshot_api::{Error, ErrorKind, TRACEPARENT, call_span};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tonic::Status;
use tower::Service;
use tracing::Instrument;

/// The calls of the protocol, as metrics name them.
const METHODS: &[&str] = bowshot_api::words! {
    Handshake ListFlights GetFlightInfo PollFlightInfo GetSchema DoGet DoPut DoExchange DoAction
    ListActions
};
const SERVICE: &str = "/arrow.flight.protocol.FlightService/";
/// Metrics label of unknown methods.
const UNKNOWN: &str = "unknown";
/// Size and time limits of a handshake, before authentication.
const HANDSHAKE_BYTES: usize = 64 << 10;
const HANDSHAKE_TIME: Duration = Duration::from_secs(30);
/// Allowance for a request beyond its statement.
const OVERHEAD: usize = 1 << 20;
/// Timeout of a request other than an upload.
const REQUEST_TIME: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    /// The name that metrics give it.
    pub(crate) method: &'static str,
    /// Deadline of the response head.
    pub(crate) deadline: Option<Instant>,
}

impl Call {
    fn from_request<B>(request: &Request<B>) -> Self {
        let timeout = timeout(request.headers());
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        Self { method: method(request.uri().path()), deadline }
    }

    pub(crate) fn is_unknown(self) -> bool {
        self.method == UNKNOWN
    }
}

#[derive(Debug, Clone)]
pub(crate) struct CallLayer {
    connection: Arc<Connection>,
    rpc: FlightServiceServer<FlightSql>,
}

pub(crate) fn rpc(connection: &Connection) -> FlightServiceServer<FlightSql> {
    FlightServiceServer::new(FlightSql)
        .max_decoding_message_size(connection.server().limits().max_message_bytes)
}

impl CallLayer {
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        let rpc = rpc(&connection);
        Self { connection, rpc }
    }

    async fn answer(self, mut request: Request<Incoming>, call: Call) -> Response<Payload> {
        let Self { connection, mut rpc } = self;
        let Call { method, deadline } = call;
        if call.is_unknown() {
            // Without authentication: the same answer for all callers.
            return refused(unknown(request.uri().path()));
        }
        if method == "Handshake" {
            // It brings its credentials along.
            request.extensions_mut().insert(connection);
            let small = |body| RequestBody::short(body, HANDSHAKE_BYTES, HANDSHAKE_TIME);
            return passed(rpc.call(request.map(small)).await);
        }
        let caller = match Caller::identify(connection, request.headers(), deadline).await {
            Ok(caller) => Arc::new(caller),
            Err(error) => return refused(refuse(error)),
        };
        let echoed = caller.profile().echo(request.headers());
        let announced = caller.same_host(request.headers());
        let mut response = if method == "DoExchange" {
            let messages = Messages::new(request.into_body(), caller.server().limits().max_message_bytes);
            match exchange::exchange(&caller, messages).await {
                Ok(response) => response.map(|body| Payload::Batches(Box::new(body))),
                Err(status) => refused(status),
            }
        } else if method == "DoPut" {
            request.extensions_mut().insert(Arc::clone(&caller));
            let longest = caller.server().limits().max_message_bytes;
            let (mut parts, body) = request.into_parts();
            parts.extensions.insert(Unread::new(Messages::new(body, longest)));
            passed(rpc.call(Request::from_parts(parts, tonic::body::Body::empty())).await)
        } else {
            one_message(&caller, rpc, request, method).await
        };
        if let Some(value) = caller.session_id().and_then(cookie::write) {
            response.headers_mut().insert(http::header::SET_COOKIE, value);
        }
        response.headers_mut().extend(echoed);
        response.headers_mut().extend(announced);
        response
    }
}

/// Handles a call with a single request message.
pub(crate) async fn one_message<B>(
    caller: &Arc<Caller>,
    mut rpc: FlightServiceServer<FlightSql>,
    mut request: Request<B>,
    method: &'static str,
) -> Response<Payload>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    if method == "DoGet" {
        return match stream::do_get(caller, request.into_body()).await {
            Ok(response) => response.map(|body| Payload::Batches(Box::new(body))),
            Err(status) => refused(status),
        };
    }
    request.extensions_mut().insert(Arc::clone(caller));
    let limits = caller.server().limits();
    let longest = limits.max_sql_bytes.saturating_add(OVERHEAD).min(limits.max_message_bytes);
    let short = |body| RequestBody::short(body, longest, REQUEST_TIME);
    passed(rpc.call(request.map(short)).await)
}

/// Lets a call be answered until its deadline. A panic is an error of that call alone, and the answer is accounted for when it
/// has been sent.
pub(crate) async fn watched<B, A>(
    request: Request<B>,
    answer: impl FnOnce(Request<B>, Call) -> A,
) -> Response<Observed>
where
    A: Future<Output = Response<Payload>>,
{
    let call = Call::from_request(&request);
    let observation = Observation::begin(call.method);
    let parent = request.headers().get(TRACEPARENT).and_then(|name| name.to_str().ok());
    let span = call_span("flight", call.method, parent);
    let answer = AssertUnwindSafe(Box::pin(answer(request, call).instrument(span))).catch_unwind();
    let outcome = match call.deadline {
        Some(deadline) => tokio::time::timeout_at(deadline.into(), answer).await,
        None => Ok(answer.await),
    };
    let response = match outcome {
        Ok(Ok(response)) => response,
        Ok(Err(_panic)) => refused(panicked()),
        Err(_elapsed) => refused(refuse(
            Error::new(ErrorKind::Timeout, "the deadline passed before the answer was ready")
                .with_hint("allow more time, or start the statement with PollFlightInfo"),
        )),
    };
    observation.watch(response)
}

impl hyper::service::Service<Request<Incoming>> for CallLayer {
    type Response = Response<Observed>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let call_layer = self.clone();
        watched(request, |request, call| call_layer.answer(request, call)).map(Ok).boxed()
    }
}

/// The error for a panic, which the panic hook has logged.
pub(crate) fn panicked() -> Status {
    refuse(Error::internal("a call panicked"))
}

/// The generated service would return the code only.
pub(crate) fn unknown(path: &str) -> Status {
    refuse(
        Error::unsupported(format!("`{path}` is not a call of this server"))
            .with_hint("the server speaks arrow.flight.protocol.FlightService, which Flight SQL clients use"),
    )
}

/// The generated service's answer.
fn passed(result: Result<Response<tonic::body::Body>, Infallible>) -> Response<Payload> {
    let response = match result {
        Ok(response) => response,
        Err(never) => match never {},
    };
    match response.extensions().get::<Status>() {
        Some(status) => refused(framing(status.clone())),
        None => response.map(Payload::Rpc),
    }
}

pub(crate) fn refused(status: Status) -> Response<Payload> {
    status.into_http::<tonic::body::Body>().map(Payload::Rpc)
}

fn method(path: &str) -> &'static str {
    let name = path.strip_prefix(SERVICE).unwrap_or_default();
    METHODS.iter().copied().find(|method| *method == name).unwrap_or(UNKNOWN)
}

/// The client's timeout; malformed ones are ignored, as gRPC servers do.
pub(crate) fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let unit = text.chars().last()?;
    let number = text.strip_suffix(unit)?;
    if number.is_empty() || number.len() > 8 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = number.parse().ok()?;
    match unit {
        'H' => Some(Duration::from_secs(number * 3_600)),
        'M' => Some(Duration::from_secs(number * 60)),
        'S' => Some(Duration::from_secs(number)),
        'm' => Some(Duration::from_millis(number)),
        'u' => Some(Duration::from_micros(number)),
        'n' => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_as_grpc_writes_them() {
        for (text, expected) in [
            ("1S", Some(Duration::from_secs(1))),
            ("99999999H", Some(Duration::from_secs(99_999_999 * 3_600))),
            ("5M", Some(Duration::from_secs(300))),
            ("20m", Some(Duration::from_millis(20))),
            ("20u", Some(Duration::from_micros(20))),
            ("20n", Some(Duration::from_nanos(20))),
            ("", None),
            ("S", None),
            ("-1S", None),
            ("1.5S", None),
            ("123456789S", None),
            ("10", None),
            ("10x", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-timeout", text.parse().unwrap());
            assert_eq!(timeout(&headers), expected, "{text:?}");
        }
    }

    #[test]
    fn methods_have_names() {
        assert_eq!(method("/arrow.flight.protocol.FlightService/DoGet"), "DoGet");
        assert_eq!(method("/arrow.flight.protocol.FlightService/DoGetX"), UNKNOWN);
        assert_eq!(method("/DoGet"), UNKNOWN);
        assert_eq!(method(""), UNKNOWN);
    }
}
