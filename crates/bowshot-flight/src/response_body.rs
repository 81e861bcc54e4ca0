//! Wraps every response body: records the end of the call, and turns a panic into an error.

use crate::call_layer::panicked;
use crate::metrics;
use bowshot_ipc::{FlightBody, Rope};
use bytes::Buf;
use http::{HeaderMap, Response};
use http_body::{Body, Frame, SizeHint};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;
use tonic::{Code, Status};

/// An answer from the generated service, or a result stream.
#[derive(Debug)]
pub(crate) enum Payload {
    Rpc(tonic::body::Body),
    Batches(Box<FlightBody>),
    Ended,
}

impl Payload {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Rope>, Status>>> {
        match self {
            Self::Rpc(body) => Pin::new(body).poll_frame(cx).map_ok(|frame| frame.map_data(Rope::from)),
            Self::Batches(body) => Pin::new(body.as_mut()).poll_frame(cx).map_err(|never| match never {}),
            Self::Ended => Poll::Ready(None),
        }
    }
}

/// Accounts for one call when it is dropped, whether its answer was sent or not.
#[derive(Debug)]
pub(crate) struct Observation {
    method: &'static str,
    begun: Instant,
    /// Unknown until the trailers; a call that is dropped before was cancelled by its client.
    code: Option<Code>,
}

impl Observation {
    pub(crate) fn begin(method: &'static str) -> Self {
        Self { method, begun: Instant::now(), code: None }
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn end(mut self, code: Code) {
        self.code = Some(code);
    }

    pub(crate) fn watch(mut self, response: Response<Payload>) -> Response<Observed> {
        self.note(response.headers());
        response.map(|payload| {
            let stream = matches!(payload, Payload::Batches(_)).then(OpenStream::new);
            Observed { payload, observation: self, stream }
        })
    }

    fn note(&mut self, headers: &HeaderMap) {
        if let Some(code) = headers.get("grpc-status") {
            self.code = Some(Code::from_bytes(code.as_bytes()));
        }
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        metrics::finished(self.method, self.code.unwrap_or(Code::Cancelled), self.begun.elapsed());
    }
}

#[derive(Debug)]
struct OpenStream {
    sent_bytes: ::metrics::Counter,
    _counted: metrics::Counted,
}

impl OpenStream {
    fn new() -> Self {
        let counted = metrics::Counted::new(metrics::open_streams());
        Self { sent_bytes: metrics::sent_bytes(), _counted: counted }
    }
}

#[derive(Debug)]
pub(crate) struct Observed {
    payload: Payload,
    observation: Observation,
    stream: Option<OpenStream>,
}

impl Observed {
    fn end(&mut self, status: &Status) -> Poll<Option<Result<Frame<Rope>, Status>>> {
        self.payload = Payload::Ended;
        let mut trailers = HeaderMap::new();
        if let Err(status) = status.add_header(&mut trailers) {
            return Poll::Ready(Some(Err(status)));
        }
        self.observation.note(&trailers);
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }
}

impl Body for Observed {
    type Data = Rope;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Rope>, Status>>> {
        let this = &mut *self;
        match catch_unwind(AssertUnwindSafe(|| this.payload.poll(cx))) {
            Ok(Poll::Ready(Some(Ok(frame)))) => {
                if let Some(data) = frame.data_ref() {
                    if let Some(stream) = &this.stream {
                        stream.sent_bytes.increment(data.remaining() as u64);
                    }
                } else if let Some(trailers) = frame.trailers_ref() {
                    this.observation.note(trailers);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Ok(Poll::Ready(Some(Err(status)))) => this.end(&status),
            Ok(other) => other,
            Err(_panic) => this.end(&panicked()),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.payload {
            Payload::Rpc(body) => body.is_end_stream(),
            Payload::Batches(body) => body.is_end_stream(),
            Payload::Ended => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.payload {
            Payload::Rpc(body) => body.size_hint(),
            Payload::Batches(_) | Payload::Ended => SizeHint::default(),
        }
    }
}
