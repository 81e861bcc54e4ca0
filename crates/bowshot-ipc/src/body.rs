//! The body of a DoGet response: the schema, the batches as they come, then gRPC trailers. Dropping it drops the stream of batches, which
//! stops the query. Compression, and trimming of views and similar types, run on the blocking pool, never on the thread of the socket.

use crate::batch::Slices;
use crate::encode::Encoder;
use crate::error::{Error, Result};
use crate::frame::Message;
use crate::large_message::{Primer, Taken, Turn};
use crate::rope::Rope;
use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use futures::Stream;
use futures::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::{Body, Frame};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::task::JoinHandle;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// Bytes of an encoded message, about. Clients allow 8 kilobytes for all headers together.
const MAX_MESSAGE: usize = 4096;

/// A code and a message for the trailers; 0 is success.
type Status = (u32, String);

/// Where the encoder is.
enum Work {
    Here(Box<Encoder>),
    Away(JoinHandle<(Box<Encoder>, Result<Vec<Message>>)>),
    Gone,
}

/// A result as the body of a gRPC response that streams `FlightData`.
pub struct FlightBody {
    batches: Primer<Status>,
    refuse: Box<dyn Fn(Error) -> Status + Send>,
    work: Work,
    slices: Option<Slices>,
    /// While the large message is on its way to the socket.
    large: Option<Turn>,
    frames: VecDeque<Rope>,
    trailers: Option<Status>,
    finished: bool,
}

impl FlightBody {
    /// A body that sends the encoder's schema, then `batches`; `status` gives the gRPC code and the message of an error.
    pub fn new<S, E>(batches: S, mut encoder: Encoder, status: fn(E) -> (u32, String)) -> Self
    where
        S: Stream<Item = Result<RecordBatch, E>> + Send + 'static,
        E: From<Error> + 'static,
    {
        let schema = encoder.schema_message();
        let batches = batches.map(move |batch| batch.map_err(status)).boxed();
        let mut body = Self {
            batches: Primer::new(batches, encoder.schema(), encoder.large_message()),
            refuse: Box::new(move |error| status(E::from(error))),
            work: Work::Here(Box::new(encoder)),
            slices: None,
            large: None,
            frames: VecDeque::new(),
            trailers: None,
            finished: false,
        };
        body.take(schema.map(|message| vec![message]));
        body
    }

    /// Queues the frames of encoded messages, or the end after an error.
    fn take(&mut self, messages: Result<Vec<Message>>) {
        match messages {
            Ok(messages) => {
                self.frames.extend(messages.into_iter().map(|message| Rope::new(message.into_frames())));
            }
            Err(error) => self.fail((self.refuse)(error)),
        }
    }

    /// Ends the stream after the frames that are queued already.
    fn fail(&mut self, status: Status) {
        self.trailers = Some(status);
        self.work = Work::Gone;
        self.slices = None;
        // The query stops now and not when the client has read the rest.
        self.batches.end();
    }

    /// Encodes the next slice, or asks for the next batch. Ready means that something changed.
    fn poll_advance(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Work::Away(task) = &mut self.work {
            match ready!(Pin::new(task).poll(cx)) {
                Ok((encoder, messages)) => {
                    self.work = Work::Here(encoder);
                    self.take(messages);
                }
                Err(error) => self.take(Err(Error::Stopped(error))),
            }
            return Poll::Ready(());
        }
        if let Some(slice) = self.slices.as_mut().and_then(Iterator::next) {
            let slow = matches!(&self.work, Work::Here(encoder) if encoder.slow);
            self.encode(move |encoder| encoder.encode_slice(&slice), slow);
            return Poll::Ready(());
        }
        self.slices = None;
        // The socket has taken the last message.
        if let Some(turn) = self.large.take() {
            turn.sent();
        }
        match ready!(self.batches.poll_next(cx)) {
            Some(Ok(Taken::Batch(batch))) => {
                let Work::Here(encoder) = &self.work else { return Poll::Ready(()) };
                match encoder.slices(batch) {
                    Ok(slices) => self.slices = Some(slices),
                    Err(error) => self.take(Err(error)),
                }
            }
            Some(Ok(Taken::Large(batches, turn))) => {
                self.large = Some(turn);
                self.encode(move |encoder| encoder.encode_joined(&batches), true);
            }
            Some(Err(status)) => self.fail(status),
            None => self.fail((0, String::new())),
        }
        Poll::Ready(())
    }

    /// Has the encoder make messages, on another thread if that is slow.
    fn encode(
        &mut self,
        make: impl FnOnce(&mut Encoder) -> Result<Vec<Message>> + Send + 'static,
        slow: bool,
    ) {
        let Work::Here(mut encoder) = std::mem::replace(&mut self.work, Work::Gone) else { return };
        if slow {
            self.work = Work::Away(tokio::task::spawn_blocking(move || {
                let messages = make(&mut encoder);
                (encoder, messages)
            }));
        } else {
            let messages = make(&mut encoder);
            self.work = Work::Here(encoder);
            self.take(messages);
        }
    }
}

impl Body for FlightBody {
    type Data = Rope;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Rope>, Infallible>>> {
        loop {
            if let Some(message) = self.frames.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(message))));
            }
            if let Some(status) = self.trailers.take() {
                self.finished = true;
                return Poll::Ready(Some(Ok(Frame::trailers(trailers(&status)))));
            }
            if self.finished {
                return Poll::Ready(None);
            }
            ready!(self.poll_advance(cx));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.finished
    }
}

bowshot_api::debug_fields!(FlightBody { finished });

fn trailers((code, message): &Status) -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(2);
    trailers.insert(GRPC_STATUS, HeaderValue::from(*code));
    if !message.is_empty()
        && let Ok(message) = HeaderValue::from_maybe_shared(Bytes::from(percent_encode(message)))
    {
        trailers.insert(GRPC_MESSAGE, message);
    }
    trailers
}

/// gRPC's encoding of status messages: all but printable ASCII becomes `%XX`; long messages end early, with three dots.
fn percent_encode(message: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut encoded = String::with_capacity(message.len());
    let mut bytes = [0; 4];
    for character in message.chars() {
        if encoded.len() > MAX_MESSAGE {
            encoded.push_str("...");
            break;
        }
        for byte in character.encode_utf8(&mut bytes).bytes() {
            match byte {
                b' '..=b'~' if byte != b'%' => encoded.push(char::from(byte)),
                _ => {
                    encoded.push('%');
                    encoded.push(char::from(DIGITS[usize::from(byte >> 4)]));
                    encoded.push(char::from(DIGITS[usize::from(byte & 15)]));
                }
            }
        }
    }
    encoded
}
