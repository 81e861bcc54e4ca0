//! One call over HTTP/2, sent as told and read to its end: status, message, payload.

use bytes::{BufMut, Bytes, BytesMut};
use h2::client::SendRequest;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Method, Request};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// A call that takes longer hangs.
const DEADLINE: Duration = Duration::from_secs(60);
/// How long a half-closed call is left open.
const PATIENCE: Duration = Duration::from_millis(20);
/// Payload that is kept; the rest of an answer is read and dropped.
const KEPT_BYTES: usize = 64 << 10;
/// Payload after which the client walks away: nobody reads all of a cross join.
const READ_BYTES: usize = 4 << 20;
/// Window of the client, per stream and connection.
const WINDOW: u32 = 1 << 20;

/// How the client ends its side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// As it should.
    Proper,
    /// It never says that it is done, waits a little and resets the stream.
    HalfOpen,
    /// It resets the stream after the first piece of the answer.
    Reset,
    /// It closes the TCP connection after the first piece of the answer.
    Cut,
}

/// What to send.
#[derive(Debug, Clone)]
pub struct Call {
    /// HTTP method; POST in gRPC.
    pub method: Method,
    pub path: String,
    /// Headers beyond `te` and `content-type`, and instead of them where the names are the same.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body, framed already.
    pub body: Bytes,
    /// How it ends.
    pub ending: Ending,
}

impl Call {
    /// A proper call of a Flight method with one message for each payload.
    pub fn flight<P: AsRef<[u8]>>(method: &str, payloads: &[P]) -> Self {
        let mut body = BytesMut::new();
        for payload in payloads {
            frame(&mut body, payload.as_ref());
        }
        Self {
            method: Method::POST,
            path: format!("/arrow.flight.protocol.FlightService/{method}"),
            headers: Vec::new(),
            body: body.freeze(),
            ending: Ending::Proper,
        }
    }

    /// The same call with one more header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// The same call with another ending.
    #[must_use]
    pub fn ending(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }

    fn request(&self) -> Option<Request<()>> {
        let mut request =
            Request::builder().method(self.method.clone()).uri(format!("http://fuzz{}", self.path));
        let set = |name: &str| self.headers.iter().any(|(set, _)| set == name);
        if !set("content-type") {
            request = request.header("content-type", "application/grpc");
        }
        if !set("te") {
            request = request.header("te", "trailers");
        }
        for (name, value) in &self.headers {
            request = request.header(name.as_str(), value.as_slice());
        }
        request.body(()).ok()
    }
}

/// Adds one gRPC message to a body.
pub fn frame(body: &mut BytesMut, payload: &[u8]) {
    body.put_u8(0);
    body.put_u32(u32::try_from(payload.len()).unwrap_or(u32::MAX));
    body.put_slice(payload);
}

/// How a call came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The server ended the call with a gRPC status.
    Status { code: i32, message: String },
    /// The server answered plain HTTP without a gRPC status.
    Http(u16),
    /// The server reset the stream.
    Reset(String),
    /// The client ended the call as the case wanted.
    Left,
    /// No answer within the deadline.
    Hung,
    /// The connection is gone although nobody cut it.
    Lost(String),
    /// The client library refuses to send such a request.
    Unsendable,
}

/// Answer and the first bytes of the payload.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub answer: Answer,
    /// Response body, as far as kept.
    pub body: Bytes,
    /// `set-cookie` values.
    pub cookies: Vec<String>,
}

impl Outcome {
    fn bare(answer: Answer) -> Self {
        Self { answer, body: Bytes::new(), cookies: Vec::new() }
    }

    /// The first message of a good answer.
    pub fn message(&self) -> Option<Bytes> {
        if !matches!(self.answer, Answer::Status { code: 0, .. }) || self.body.len() < 5 {
            return None;
        }
        let length = u32::from_be_bytes(self.body[1..5].try_into().ok()?) as usize;
        (self.body.len() >= 5 + length).then(|| self.body.slice(5..5 + length))
    }
}

/// One HTTP/2 connection.
pub struct Connection {
    sender: SendRequest<Bytes>,
    driver: JoinHandle<Result<(), h2::Error>>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    pub async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = h2::client::Builder::new()
            .initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .handshake(stream)
            .await?;
        let driver = tokio::spawn(connection);
        Ok(Self { sender: sender.ready().await?, driver })
    }

    /// Whether it can still carry calls.
    pub fn is_usable(&self) -> bool {
        !self.driver.is_finished()
    }

    /// Sends a call and reads its answer, within the deadline.
    pub async fn send(&mut self, call: &Call) -> Outcome {
        let Some(request) = call.request() else { return Outcome::bare(Answer::Unsendable) };
        match tokio::time::timeout(DEADLINE, Box::pin(self.exchange(request, call))).await {
            Ok(outcome) => outcome,
            Err(_) => Outcome::bare(Answer::Hung),
        }
    }

    async fn exchange(&mut self, request: Request<()>, call: &Call) -> Outcome {
        match self.sender.clone().ready().await {
            Ok(sender) => self.sender = sender,
            Err(error) => return Outcome::bare(failed(&error)),
        }
        let bodyless = call.body.is_empty() && call.ending == Ending::Proper;
        let (response, body) = match self.sender.send_request(request, bodyless) {
            Ok(started) => started,
            Err(error) if error.is_io() || error.is_go_away() => return Outcome::bare(failed(&error)),
            Err(_) => return Outcome::bare(Answer::Unsendable),
        };
        let mut sending = (!bodyless).then(|| Sending::new(body, call));
        if call.ending == Ending::HalfOpen {
            // The stream must stay open on our side: `sending` lives until the end of this block.
            let answered = tokio::time::timeout(PATIENCE, async {
                if let Some(sending) = &mut sending {
                    sending.all().await;
                }
                response.await
            })
            .await;
            return match answered {
                Ok(Ok(response)) => read_open(response).await,
                Ok(Err(error)) => Outcome::bare(failed(&error)),
                Err(_) => Outcome::bare(Answer::Left),
            };
        }
        let answered = match &mut sending {
            None => response.await,
            // Like a real client: what the server answers early ends the sending.
            Some(sending) => {
                tokio::pin!(response);
                tokio::select! {
                    biased;
                    answered = &mut response => answered,
                    () = sending.all() => response.await,
                }
            }
        };
        match answered {
            Ok(response) => self.read(response, call.ending).await,
            Err(error) => Outcome::bare(failed(&error)),
        }
    }

    async fn read(&mut self, response: http::Response<RecvStream>, ending: Ending) -> Outcome {
        let (head, mut body) = response.into_parts();
        let cookies = cookies(&head.headers);
        if let Some((code, message)) = status(&head.headers) {
            return Outcome { answer: Answer::Status { code, message }, body: Bytes::new(), cookies };
        }
        let (mut kept, mut size) = (BytesMut::new(), 0);
        while let Some(piece) = body.data().await {
            let piece = match piece {
                Ok(piece) => piece,
                Err(error) => return Outcome { answer: failed(&error), body: kept.freeze(), cookies },
            };
            let _ = body.flow_control().release_capacity(piece.len());
            size += piece.len();
            if kept.len() < KEPT_BYTES {
                kept.extend_from_slice(&piece);
            }
            match ending {
                Ending::Cut => {
                    self.driver.abort();
                    return Outcome { answer: Answer::Left, body: kept.freeze(), cookies };
                }
                Ending::Reset => return Outcome { answer: Answer::Left, body: kept.freeze(), cookies },
                _ if size > READ_BYTES => {
                    return Outcome { answer: Answer::Left, body: kept.freeze(), cookies };
                }
                _ => {}
            }
        }
        let answer = match body.trailers().await {
            Ok(trailers) => match trailers.as_ref().and_then(status) {
                Some((code, message)) => Answer::Status { code, message },
                None => Answer::Http(head.status.as_u16()),
            },
            Err(error) => failed(&error),
        };
        Outcome { answer, body: kept.freeze(), cookies }
    }
}

/// A half-open call may get its head at once and the rest never: only the head counts.
async fn read_open(response: http::Response<RecvStream>) -> Outcome {
    let cookies = cookies(response.headers());
    let answer = match status(response.headers()) {
        Some((code, message)) => Answer::Status { code, message },
        None => Answer::Left,
    };
    Outcome { answer, body: Bytes::new(), cookies }
}

struct Sending {
    stream: SendStream<Bytes>,
    left: Bytes,
    ends: bool,
}

impl Sending {
    fn new(stream: SendStream<Bytes>, call: &Call) -> Self {
        Self { stream, left: call.body.clone(), ends: call.ending != Ending::HalfOpen }
    }

    async fn all(&mut self) {
        while !self.left.is_empty() {
            self.stream.reserve_capacity(self.left.len());
            let granted = std::future::poll_fn(|cx| self.stream.poll_capacity(cx)).await;
            let Some(Ok(granted)) = granted else { return };
            let piece = self.left.split_to(granted.min(self.left.len()));
            let last = self.left.is_empty() && self.ends;
            if self.stream.send_data(piece, last).is_err() {
                return;
            }
        }
    }
}

fn cookies(headers: &HeaderMap) -> Vec<String> {
    let text = |value: &http::HeaderValue| value.to_str().ok().map(str::to_owned);
    headers.get_all("set-cookie").iter().filter_map(text).collect()
}

fn status(headers: &HeaderMap) -> Option<(i32, String)> {
    let code = headers.get("grpc-status")?.to_str().ok()?.parse().ok()?;
    let message =
        headers.get("grpc-message").map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    Some((code, message.unwrap_or_default()))
}

fn failed(error: &h2::Error) -> Answer {
    match error.reason() {
        Some(reason) if error.is_reset() => Answer::Reset(format!("{reason:?}")),
        _ => Answer::Lost(error.to_string()),
    }
}
