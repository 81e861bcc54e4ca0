//! The messages of a DoPut, read off the body of its request.
//!
//! The generated code would gather every message in a buffer that is enlarged while the message comes in, and hand out a part
//! of that, which begins anywhere and is copied once more to be aligned. Here a message waits in the frames that it came in,
//! and its data are copied once, into memory of exactly their size.

use crate::request_body::RequestBody;
use arrow_flight::FlightData;
use bowshot_ipc::Rope;
use bytes::{Buf, Bytes};
use http_body::Body;
use hyper::body::Incoming;
use prost::Message;
use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use tonic::Status;

/// Bytes of what stands before each message: a flag and a length.
const PREFIX_BYTES: usize = 5;
/// Frames below this are short.
const SCRAP_BYTES: usize = 1 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct Messages<B = Incoming> {
    body: RequestBody<B>,
    /// What has come and was not read.
    come: Rope,
    /// Short frames behind that, put together: a piece for each would take many times its bytes.
    scraps: Vec<u8>,
    /// The length of the message that is coming, if its prefix was read.
    length: Option<usize>,
    longest: usize,
}

impl<B> Messages<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::error::Error,
{
    /// Messages of at most so many bytes.
    pub(crate) fn new(body: B, longest: usize) -> Self {
        Self {
            body: RequestBody::new(body),
            come: Rope::default(),
            scraps: Vec::new(),
            length: None,
            longest,
        }
    }

    /// The next message; `None` when the client has ended the stream.
    ///
    /// # Errors
    /// Those of [`RequestBody`], and the codes of the generated code: `OutOfRange` for a message that is too long, `Internal`
    /// for one that cannot be read.
    pub(crate) async fn next(&mut self) -> Result<Option<FlightData>, Status> {
        loop {
            if let Some(message) = self.whole()? {
                return Ok(Some(message));
            }
            let frame = poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await;
            let Some(frame) = frame.transpose()? else { return Ok(None) };
            if let Ok(data) = frame.into_data() {
                self.take_in(data);
            }
        }
    }

    fn take_in(&mut self, data: Bytes) {
        if data.len() >= SCRAP_BYTES {
            self.unite_scraps();
            self.come.push(data);
        } else {
            self.scraps.extend_from_slice(&data);
        }
    }

    fn unite_scraps(&mut self) {
        if !self.scraps.is_empty() {
            self.come.push(mem::take(&mut self.scraps).into());
        }
    }

    fn has_come(&self, bytes: usize) -> bool {
        self.come.remaining() + self.scraps.len() >= bytes
    }

    /// The message in front, if all of it has come.
    fn whole(&mut self) -> Result<Option<FlightData>, Status> {
        let length = match self.length {
            Some(length) => length,
            None if !self.has_come(PREFIX_BYTES) => return Ok(None),
            None => {
                self.unite_scraps();
                *self.length.insert(prefix(&mut self.come, self.longest)?)
            }
        };
        if !self.has_come(length) {
            return Ok(None);
        }
        self.unite_scraps();
        self.length = None;
        let mut message = (&mut self.come).take(length);
        let read = FlightData::decode(&mut message).map_err(|error| Status::internal(error.to_string()))?;
        Ok(Some(read))
    }
}

/// Reads the flag and the length before a message.
fn prefix(come: &mut Rope, longest: usize) -> Result<usize, Status> {
    match come.get_u8() {
        0 => {}
        // Requests that name an encoding are refused before anything of them is read.
        1 => return Err(Status::internal("a compressed message in a request that names no encoding")),
        flag => return Err(Status::internal(format!("{flag} is no flag of a message"))),
    }
    let length = usize::try_from(come.get_u32()).unwrap_or(usize::MAX);
    if length > longest {
        let text = format!("a message has {length} bytes, the limit is {longest} bytes");
        return Err(Status::out_of_range(text));
    }
    Ok(length)
}

/// Messages on their way past the generated code, which knows no body but its own.
#[derive(Debug, Clone)]
pub(crate) struct Unread(Arc<Mutex<Option<Messages>>>);

impl Unread {
    pub(crate) fn new(messages: Messages) -> Self {
        Self(Arc::new(Mutex::new(Some(messages))))
    }

    /// The messages, for the first who asks.
    pub(crate) fn take(&self) -> Option<Messages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use http_body::Frame;
    use http_body_util::StreamBody;
    use std::convert::Infallible;
    use tonic::Code;

    fn data(number: u8, body: usize) -> FlightData {
        FlightData {
            data_header: vec![number; 7].into(),
            data_body: vec![number; body].into(),
            ..FlightData::default()
        }
    }

    fn framed(message: &FlightData) -> Vec<u8> {
        let bytes = message.encode_to_vec();
        let mut framed = vec![0];
        framed.extend_from_slice(&u32::try_from(bytes.len()).expect("short").to_be_bytes());
        framed.extend(bytes);
        framed
    }

    fn messages(
        bytes: &[u8],
        frame: usize,
        longest: usize,
    ) -> Messages<impl Body<Data = Bytes, Error = Infallible> + Unpin> {
        let frames: Vec<_> =
            bytes.chunks(frame).map(|part| Ok(Frame::data(Bytes::copy_from_slice(part)))).collect();
        Messages::new(
            Ended(StreamBody::new(futures::stream::iter(frames)), frame_count(bytes, frame)),
            longest,
        )
    }

    fn frame_count(bytes: &[u8], frame: usize) -> usize {
        bytes.len().div_ceil(frame)
    }

    /// A body that knows when it has ended, as those of Hyper do.
    struct Ended<B>(B, usize);

    impl<B: Body + Unpin> Body for Ended<B> {
        type Data = B::Data;
        type Error = B::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<Frame<B::Data>, B::Error>>> {
            let polled = Pin::new(&mut self.0).poll_frame(cx);
            self.1 = self.1.saturating_sub(usize::from(polled.is_ready()));
            polled
        }

        fn is_end_stream(&self) -> bool {
            self.1 == 0
        }
    }

    #[test]
    fn messages_come_whole_however_they_were_cut() {
        let sent: Vec<FlightData> =
            [0, 1, 300, 70_000].iter().enumerate().map(|(number, body)| data(number as u8, *body)).collect();
        let bytes: Vec<u8> = sent.iter().flat_map(framed).collect();
        for frame in [1, 2, 5, 6, 100, 16_384, 1 << 20] {
            let mut messages = messages(&bytes, frame, 1 << 20);
            for expected in &sent {
                let message =
                    messages.next().now_or_never().expect("ready").expect("message").expect("one more");
                assert_eq!(&message, expected, "{frame}");
                let aligned = message.data_body.as_ptr().addr().is_multiple_of(8);
                assert!(aligned || message.data_body.len() < SCRAP_BYTES, "{frame}");
            }
            assert!(messages.next().now_or_never().expect("ready").expect("end").is_none());
        }
    }

    #[test]
    fn messages_that_are_refused() {
        let long = framed(&data(1, 1000));
        for (bytes, longest, expected) in [
            (&long[..], 900, Code::OutOfRange),
            (&long[..500], 2000, Code::Internal),
            (&b"\x01\0\0\0\x01x"[..], 900, Code::Internal),
            (&b"\x02\0\0\0\x01x"[..], 900, Code::Internal),
            (&b"\0\0\0\0\x02\xff\xff"[..], 900, Code::Internal),
            (&b"\0\xff\xff\xff\xff"[..], 900, Code::OutOfRange),
        ] {
            let refused = messages(bytes, 64, longest).next().now_or_never().expect("ready");
            assert_eq!(refused.expect_err("refused").code(), expected, "{:?}", &bytes[..5]);
        }
    }
}
