//! gRPC-Web calls of browsers, over connections of another front end that authenticates them. `tonic-web` implements
//! the protocol; here are the supported calls, sessions, and response bodies that share the memory of arrays.
//!
//! A call belongs to the session of its header `x-bowshot-session`, else to that of its connection and caller.
//! Cookies are neither read nor set: browsers send them unasked.

use crate::Profile;
use crate::call_layer::{Call, one_message, refused, rpc, unknown, watched};
use crate::caller::{Caller, SESSION_HEADER};
use crate::connection::{Connection, Shared};
use crate::connection_limiter::EvictionHandle;
use crate::metrics;
use crate::response_body::{Observed, Payload};
use crate::status::refuse;
use bowshot_api::{Error, Principal, Result, Server};
use bowshot_ipc::Rope;
use bytes::{Buf, Bytes};
use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use std::convert::Infallible;
use std::io::IoSlice;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::time::sleep;
use tonic::Status;
use tonic_web::GrpcWebLayer;
use tower::{Layer, Service};

/// Calls whose request is a stream.
const STREAMING: [&str; 3] = ["Handshake", "DoPut", "DoExchange"];
/// Pieces of a message that are smaller go out together; each is a chunk of HTTP/1.1, with a line of its own.
const SMALL_PIECE: usize = 4 << 10;
/// As many pieces are gathered at most.
const GATHERED: usize = 32;
/// The types of a gRPC-Web request (gRPC-Web protocol, "Content-Type").
const CONTENT_TYPES: [&str; 4] = [
    "application/grpc-web",
    "application/grpc-web+proto",
    "application/grpc-web-text",
    "application/grpc-web-text+proto",
];

/// State of all gRPC-Web connections of a front end.
#[derive(Debug, Clone)]
pub struct Web(Arc<Shared>);

impl Web {
    /// The Flight SQL service for browsers.
    pub fn new(server: Arc<dyn Server>, profile: Profile) -> Self {
        metrics::register();
        Self(Arc::new(Shared::new(server, profile)))
    }

    pub fn connection(&self, address: IpAddr) -> WebConnection {
        let connection = Connection::new(Arc::clone(&self.0), address, EvictionHandle::default());
        WebConnection(Arc::new(connection))
    }
}

/// One connection that carries gRPC-Web, and the sessions that live and die with it.
#[derive(Debug, Clone)]
pub struct WebConnection(Arc<Connection>);

impl WebConnection {
    /// Answers a call, or rejects it with the error of its authentication.
    pub async fn call<B>(&self, caller: Result<Principal>, request: Request<B>) -> Response<tonic::body::Body>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        if !is_web(request.headers()) {
            return wrong_type();
        }
        let connection = Arc::clone(&self.0);
        let is_http1 = request.version() < Version::HTTP_2;
        let request = request.map(|body| Told { body, is_http1, is_over: false });
        let answered =
            GrpcWebLayer::new().layer(Calls { connection, caller: Some(caller) }).call(request).await;
        match answered {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    /// Closes the sessions without a name.
    pub async fn end(&self) {
        self.0.end().await;
    }
}

/// Whether the content type is gRPC-Web. `tonic-web` passes others through over HTTP/2.
fn is_web(headers: &HeaderMap) -> bool {
    let given = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    given.is_some_and(|given| CONTENT_TYPES.iter().any(|known| known.as_bytes() == given))
}

fn wrong_type() -> Response<tonic::body::Body> {
    const TEXT: &str = "gRPC-Web has the content type application/grpc-web+proto or application/grpc-web-text+proto; \
                        gRPC itself is answered at the address of Flight SQL\n";
    let mut response = Response::new(tonic::body::Body::new(Full::new(Bytes::from_static(TEXT.as_bytes()))));
    *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

/// The service behind `tonic-web`, for one call.
struct Calls {
    connection: Arc<Connection>,
    caller: Option<Result<Principal>>,
}

impl Service<Request<tonic::body::Body>> for Calls {
    type Response = Response<Pieces>;
    type Error = Infallible;
    type Future = BoxFuture<'static, std::result::Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<tonic::body::Body>) -> Self::Future {
        let connection = Arc::clone(&self.connection);
        let caller = self.caller.take().unwrap_or_else(|| Err(Error::internal("a call was made twice")));
        async move {
            let work = |request, call| while_used(&connection, answer(&connection, caller, request, call));
            let response = watched(request, work).await;
            Ok(response.map(|body| Pieces::new(body, connection)))
        }
        .boxed()
    }
}

async fn answer(
    connection: &Arc<Connection>,
    caller: Result<Principal>,
    request: Request<tonic::body::Body>,
    call: Call,
) -> Response<Payload> {
    let method = call.method;
    if call.is_unknown() {
        return refused(unknown(request.uri().path()));
    }
    let caller = caller
        .and_then(|known| Caller::known(Arc::clone(connection), known, request.headers(), call.deadline));
    let caller = match caller {
        Ok(caller) => Arc::new(caller),
        Err(error) => return refused(refuse(error)),
    };
    if STREAMING.contains(&method) {
        return refused(refuse(needs_a_stream(method)));
    }
    let echoed = caller.profile().echo(request.headers());
    let mut response = one_message(&caller, rpc(connection), request, method).await;
    let opened = caller.session_id().and_then(|session| HeaderValue::try_from(session.to_string()).ok());
    if let Some(session) = opened {
        response.headers_mut().insert(SESSION_HEADER, session);
    }
    response.headers_mut().extend(echoed);
    response
}

fn needs_a_stream(method: &str) -> Error {
    let hint = match method {
        "Handshake" => "send credentials in the header `authorization` of each call",
        "DoPut" => "run statements with GetFlightInfo, or send rows to `PUT` or `POST /v1/tables/{name}`",
        _ => "use a client of Flight itself",
    };
    Error::unsupported(format!("gRPC-Web cannot carry `{method}`, whose request is a stream of messages"))
        .with_hint(hint)
}

/// Lets a call be answered, while the sessions of its connection do not count as idle.
async fn while_used<T>(connection: &Connection, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = sleep(touch_interval(connection)) => connection.touch(),
        }
    }
}

fn touch_interval(connection: &Connection) -> Duration {
    (connection.server().limits().session_timeout / 4).max(Duration::from_secs(1))
}

/// A request body with an explicit end. HTTP/1.1 reports truncation, HTTP/2 may not.
#[derive(Debug)]
struct Told<B> {
    body: B,
    is_http1: bool,
    is_over: bool,
}

impl<B: Body + Unpin> Body for Told<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<B::Data>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        self.is_over = frame.is_none() && self.is_http1;
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.body.is_end_stream()
    }

    bowshot_api::delegate! { body: fn size_hint(&self) -> SizeHint; }
}

/// A response body in chunks: `tonic-web` would copy chunks of several buffers.
#[derive(Debug)]
struct Pieces {
    body: Observed,
    /// The rest of the current frame.
    rope: Rope,
    connection: Arc<Connection>,
    touched: Instant,
}

impl Pieces {
    fn new(body: Observed, connection: Arc<Connection>) -> Self {
        Self { body, rope: Rope::default(), connection, touched: Instant::now() }
    }

    /// The sessions of a connection are used while a result is read, however long that takes.
    fn touch(&mut self) {
        if self.touched.elapsed() >= touch_interval(&self.connection) {
            self.connection.touch();
            self.touched = Instant::now();
        }
    }
}

/// The next bytes of a rope that has some: a large piece as it is, small ones together.
fn next_piece(rope: &mut Rope) -> Bytes {
    let mut slices = [IoSlice::new(&[]); GATHERED];
    let count = rope.chunks_vectored(&mut slices);
    let lengths = slices.iter().take(count).map(|slice| slice.len());
    let small: usize = lengths.take_while(|length| *length < SMALL_PIECE).sum();
    let length = if small > 0 { small } else { rope.chunk().len() };
    rope.copy_to_bytes(length)
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, Status>>> {
        self.touch();
        loop {
            if self.rope.has_remaining() {
                return Poll::Ready(Some(Ok(Frame::data(next_piece(&mut self.rope)))));
            }
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(rope) => self.rope = rope,
                    Err(other) => {
                        // Trailers have no data, and keep their form.
                        return Poll::Ready(Some(Ok(
                            other.map_data(|mut rope| rope.copy_to_bytes(rope.remaining()))
                        )));
                    }
                },
                Some(Err(status)) => return Poll::Ready(Some(Err(status))),
                None => return Poll::Ready(None),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        !self.rope.has_remaining() && self.body.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_pieces_go_out_as_they_are_and_small_ones_together() {
        let large = Bytes::from(vec![7; SMALL_PIECE]);
        let pieces = [&b"ab"[..], b"c"].map(Bytes::from_static).into_iter();
        let pieces = pieces.chain([large.clone(), Bytes::from_static(b"d")]);
        let mut rope = Rope::new(pieces.collect());
        assert_eq!(next_piece(&mut rope), "abc");
        let taken = next_piece(&mut rope);
        assert_eq!((taken.len(), taken.as_ptr()), (SMALL_PIECE, large.as_ptr()));
        assert_eq!(next_piece(&mut rope), "d");
        assert!(!rope.has_remaining());
    }
}
