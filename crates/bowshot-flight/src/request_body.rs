//! Wraps the body of every request of the generated service: it ends only if the client ended it, after a whole
//! message. Hyper and tonic take some resets, and messages cut off after their length, for a normal end; a client
//! that dies during an upload would have half of its rows written.

use crate::status::{CUT_OFF, refuse};
use bowshot_api::{Error, ErrorKind};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Sleep;
use tonic::Status;

/// A request body in which every end that is not the client's own is an error.
#[derive(Debug)]
pub(crate) struct RequestBody<B> {
    inner: B,
    place: Place,
    broken: bool,
    /// Limits of bytes and time.
    bounds: Option<Bounds>,
}

#[derive(Debug)]
struct Bounds {
    bytes: usize,
    time: Pin<Box<Sleep>>,
}

/// Where in the sequence of messages a body is. Each has a flag and a length of four bytes before it.
#[derive(Debug, Default)]
struct Place {
    /// Received bytes of the prefix.
    prefix: [u8; 5],
    prefix_bytes: usize,
    message_bytes: usize,
}

impl Place {
    fn is_between_messages(&self) -> bool {
        self.prefix_bytes == 0 && self.message_bytes == 0
    }

    fn advance(&mut self, mut data: &[u8]) {
        loop {
            let (_, rest) = data.split_at(self.message_bytes.min(data.len()));
            self.message_bytes -= data.len() - rest.len();
            data = rest;
            let Some(slot) = self.prefix.get_mut(self.prefix_bytes) else { return };
            let Some((byte, rest)) = data.split_first() else { return };
            *slot = *byte;
            data = rest;
            self.prefix_bytes += 1;
            if self.prefix_bytes == self.prefix.len() {
                let [_flag, length @ ..] = self.prefix;
                self.prefix_bytes = 0;
                self.message_bytes = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
            }
        }
    }
}

impl<B> RequestBody<B> {
    pub(crate) fn new(inner: B) -> Self {
        Self { inner, place: Place::default(), broken: false, bounds: None }
    }

    /// A short request body: more bytes or time are refused, so that clients cannot make the server buffer much.
    pub(crate) fn short(inner: B, bytes: usize, time: Duration) -> Self {
        let bounds = Some(Bounds { bytes, time: Box::pin(tokio::time::sleep(time)) });
        Self { bounds, ..Self::new(inner) }
    }

    fn fail(&mut self, status: Status) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.broken = true;
        Poll::Ready(Some(Err(status)))
    }
}

impl<B> Body for RequestBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::error::Error,
{
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.broken {
            return Poll::Ready(None);
        }
        let frame = match Pin::new(&mut self.inner).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => Some(frame),
            Poll::Ready(Some(Err(error))) => {
                tracing::debug!(%error, "a request was cut off");
                return self.fail(cut_off());
            }
            Poll::Ready(None) if !self.inner.is_end_stream() => return self.fail(cut_off()),
            Poll::Ready(None) => None,
            Poll::Pending => match &mut self.bounds {
                Some(bounds) => {
                    ready!(bounds.time.as_mut().poll(cx));
                    return self.fail(refuse(
                        Error::new(ErrorKind::Timeout, "the request did not arrive in time")
                            .with_hint("send it again"),
                    ));
                }
                None => return Poll::Pending,
            },
        };
        if let Some(data) = frame.as_ref().and_then(Frame::data_ref) {
            if let Some(bounds) = &mut self.bounds {
                let Some(left) = bounds.bytes.checked_sub(data.len()) else {
                    return self.fail(refuse(
                        Error::new(ErrorKind::LimitReached, "the request is too large")
                            .with_hint("pass values as parameters, or raise `limits.max_sql_bytes`"),
                    ));
                };
                bounds.bytes = left;
            }
            self.place.advance(data);
        } else if !self.place.is_between_messages() {
            return self.fail(Status::internal("the request ends inside a message"));
        }
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.broken || self.inner.is_end_stream()
    }

    bowshot_api::delegate! { inner: fn size_hint(&self) -> SizeHint; }
}

/// Tonic hides statuses with the code of a cancelled call.
fn cut_off() -> Status {
    Status::unknown(CUT_OFF)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use std::collections::VecDeque;
    use tonic::Code;

    /// Frames, and whether the end after them is the client's.
    struct Scripted(VecDeque<Result<Frame<Bytes>, std::io::Error>>, bool);

    impl Body for Scripted {
        type Data = Bytes;
        type Error = std::io::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
            Poll::Ready(self.0.pop_front())
        }

        fn is_end_stream(&self) -> bool {
            self.0.is_empty() && self.1
        }
    }

    fn data(bytes: &'static [u8]) -> Result<Frame<Bytes>, std::io::Error> {
        Ok(Frame::data(Bytes::from_static(bytes)))
    }

    /// Frames passed, and the code of the error.
    async fn outcome(
        frames: Vec<Result<Frame<Bytes>, std::io::Error>>,
        ended: bool,
    ) -> (usize, Option<Code>) {
        let mut body = RequestBody::new(Scripted(frames.into(), ended));
        let mut count = 0;
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(_) => count += 1,
                Err(status) => {
                    assert!(body.frame().await.is_none());
                    return (count, Some(status.code()));
                }
            }
        }
        (count, None)
    }

    #[tokio::test]
    async fn only_the_client_ends_a_body() {
        let whole = || data(b"\0\0\0\0\x01x");
        assert_eq!(outcome(vec![whole(), whole()], true).await, (2, None));
        assert_eq!(outcome(vec![], true).await, (0, None));
        assert_eq!(outcome(vec![whole()], false).await, (1, Some(Code::Unknown)));
        let reset = || Err(std::io::Error::other("reset"));
        assert_eq!(outcome(vec![whole(), reset(), whole()], true).await, (1, Some(Code::Unknown)));
    }

    #[tokio::test]
    async fn a_short_body_is_short() {
        let frames = vec![data(b"\0\0\0\0\x02ab"), data(b"\0\0\0\0\x02ab")];
        let mut body = RequestBody::short(Scripted(frames.into(), true), 10, Duration::from_secs(60));
        assert!(body.frame().await.unwrap().is_ok());
        assert_eq!(body.frame().await.unwrap().unwrap_err().code(), Code::ResourceExhausted);
        assert!(body.frame().await.is_none());
        let mut slow = RequestBody::short(Silent, 10, Duration::from_millis(1));
        assert_eq!(slow.frame().await.unwrap().unwrap_err().code(), Code::DeadlineExceeded);
    }

    struct Silent;

    impl Body for Silent {
        type Data = Bytes;
        type Error = std::io::Error;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
            Poll::Pending
        }
    }

    #[tokio::test]
    async fn a_body_ends_behind_a_message() {
        let inside = Some(Code::Internal);
        for (frames, expected) in [
            (vec![data(b"\0\0\0\0\x02ab\0\0\0\0\0")], None),
            (vec![data(b"\0\0"), data(b""), data(b"\0\0\x02a"), data(b"b\0\0\0\0\x01c")], None),
            (vec![data(b"\0")], inside),
            (vec![data(b"\0\0\0\0\x02")], inside),
            (vec![data(b"\0\0\0\0\x02a")], inside),
            (vec![data(b"\0\0\0\0\x01ab")], inside),
            (vec![data(b"\0\xff\xff\xff\xffa")], inside),
        ] {
            let count = frames.len();
            assert_eq!(outcome(frames, true).await, (count, expected));
        }
        let trailers = Ok(Frame::trailers(http::HeaderMap::new()));
        assert_eq!(outcome(vec![data(b"\0\0"), trailers], true).await, (1, inside));
    }
}
