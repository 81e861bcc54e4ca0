//! Reads the messages of DoPut from the request body. Each long body gets memory of its exact size, into which frames
//! are copied once; the generated code would copy it again for alignment.

use crate::request_body::RequestBody;
use arrow_flight::FlightData;
use bytes::{Buf, Bytes};
use http_body::Body;
use hyper::body::Incoming;
use parking_lot::Mutex;
use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use tokio::task::coop::consume_budget;
use tonic::Status;

/// gRPC prefix: a flag and a length of four bytes.
const PREFIX_BYTES: usize = 5;
const BODY_FIELD: u32 = 1000;
/// Shorter bodies are read with the other fields.
const LONG_BODY: usize = 1 << 10;
/// Bytes that are taken at once of a message whose body has not begun: so few that copying them twice does not matter.
const HEAD_BYTES: usize = 4 << 10;

#[derive(Debug)]
pub(crate) struct Messages<B = Incoming> {
    body: RequestBody<B>,
    frame: Bytes,
    prefix: Vec<u8>,
    coming: Option<Coming>,
    longest: usize,
    broken: bool,
}

#[derive(Debug, Default)]
struct Coming {
    /// Missing bytes.
    left: usize,
    /// All of it but a long body.
    fields: Vec<u8>,
    /// Offset of the next field in `fields`.
    scanned: usize,
    long_body: Option<LongBody>,
}

#[derive(Debug)]
struct LongBody {
    bytes: Vec<u8>,
    length: usize,
}

impl<B> Messages<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::error::Error,
{
    /// Messages of at most so many bytes.
    pub(crate) fn new(body: B, longest: usize) -> Self {
        let (frame, prefix) = (Bytes::new(), Vec::with_capacity(PREFIX_BYTES));
        Self { body: RequestBody::new(body), frame, prefix, coming: None, longest, broken: false }
    }

    /// The next message; `None` when the client has ended the stream.
    ///
    /// # Errors
    /// Those of [`RequestBody`], and the codes of the generated code: `OutOfRange` for a message that is too long, `Internal`
    /// for one that cannot be read. After an error there is nothing but errors.
    pub(crate) async fn next(&mut self) -> Result<Option<FlightData>, Status> {
        // One frame may contain many short messages.
        consume_budget().await;
        if self.broken {
            return Err(Status::internal("the messages before could not be read"));
        }
        let next = self.whole().await;
        self.broken = next.is_err();
        next
    }

    async fn whole(&mut self) -> Result<Option<FlightData>, Status> {
        loop {
            if let Some(message) = self.advance()? {
                return Ok(Some(message));
            }
            let frame = poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await;
            let Some(frame) = frame.transpose()? else { return Ok(None) };
            if let Ok(data) = frame.into_data() {
                self.frame = data;
            }
        }
    }

    /// Reads the frame; gives a message if it ends in there.
    fn advance(&mut self) -> Result<Option<FlightData>, Status> {
        loop {
            let coming = match &mut self.coming {
                Some(coming) => coming,
                None => {
                    let missing = PREFIX_BYTES - self.prefix.len();
                    self.prefix.extend_from_slice(&self.frame.split_to(missing.min(self.frame.len())));
                    if self.prefix.len() < PREFIX_BYTES {
                        return Ok(None);
                    }
                    let left = length(&self.prefix, self.longest)?;
                    self.prefix.clear();
                    self.coming.insert(Coming { left, ..Coming::default() })
                }
            };
            if coming.left > 0 && self.frame.is_empty() {
                return Ok(None);
            }
            coming.take(&mut self.frame);
            if coming.left == 0 {
                return self.coming.take().map(Coming::decode).transpose();
            }
        }
    }
}

fn length(mut prefix: &[u8], longest: usize) -> Result<usize, Status> {
    match prefix.get_u8() {
        0 => {}
        // Requests that name an encoding are refused before anything of them is read.
        1 => return Err(Status::internal("a compressed message in a request that names no encoding")),
        flag => return Err(Status::internal(format!("{flag} is no flag of a message"))),
    }
    let length = usize::try_from(prefix.get_u32()).unwrap_or(usize::MAX);
    if length > longest {
        let text = format!("a message has {length} bytes, the limit is {longest} bytes");
        return Err(Status::out_of_range(text));
    }
    Ok(length)
}

impl Coming {
    fn take(&mut self, frame: &mut Bytes) {
        let there = self.left.min(frame.len());
        let missing = self.long_body.as_ref().map_or(0, |body| body.length - body.bytes.len());
        let taken = match &mut self.long_body {
            Some(body) if missing > 0 => {
                let taken = frame.split_to(there.min(missing));
                body.bytes.extend_from_slice(&taken);
                taken.len()
            }
            _ => {
                let taken = frame.split_to(there.min(HEAD_BYTES));
                self.fields.extend_from_slice(&taken);
                taken.len()
            }
        };
        self.left -= taken;
        if self.long_body.is_none() {
            self.find_body();
        }
    }

    /// Skips complete fields, and allocates a long body that begins after them.
    fn find_body(&mut self) {
        while let Some(mut rest) = self.fields.get(self.scanned..).filter(|rest| !rest.is_empty()) {
            let before = rest.len();
            // The decoder handles other, malformed and incomplete fields.
            let Ok((field, WireType::LengthDelimited)) = decode_key(&mut rest) else { return };
            let Ok(length) = decode_varint(&mut rest) else { return };
            let begin = self.scanned + before - rest.len();
            let (there, come) = (usize::try_from(length).unwrap_or(usize::MAX), rest.len());
            if field == BODY_FIELD && there >= LONG_BODY {
                if there <= come + self.left {
                    self.begin_body(begin, there);
                }
                return;
            }
            if there > come {
                return;
            }
            self.scanned = begin + there;
        }
    }

    /// Moves the received part of a body into its own memory.
    fn begin_body(&mut self, begin: usize, length: usize) {
        let mut bytes = Vec::with_capacity(length);
        let come = self.fields.split_off(begin);
        self.fields.truncate(self.scanned);
        let (body, behind) = come.split_at(come.len().min(length));
        bytes.extend_from_slice(body);
        self.fields.extend_from_slice(behind);
        self.long_body = Some(LongBody { bytes, length });
    }

    fn decode(self) -> Result<FlightData, Status> {
        let mut data = FlightData::decode(Bytes::from(self.fields))
            .map_err(|error| Status::internal(error.to_string()))?;
        if let Some(body) = self.long_body
            && data.data_body.is_empty()
        {
            data.data_body = body.bytes.into();
        }
        Ok(data)
    }
}

/// Passes messages around the generated code.
#[derive(Debug, Clone)]
pub(crate) struct Unread(Arc<Mutex<Option<Messages>>>);

impl Unread {
    pub(crate) fn new(messages: Messages) -> Self {
        Self(Arc::new(Mutex::new(Some(messages))))
    }

    pub(crate) fn take(&self) -> Option<Messages> {
        self.0.lock().take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::framed;
    use futures::FutureExt;
    use http_body::Frame;
    use http_body_util::StreamBody;
    use std::convert::Infallible;
    use tonic::Code;

    fn data(number: u8, body: usize) -> FlightData {
        FlightData {
            data_header: vec![number; 7 + 3000 * usize::from(number)].into(),
            data_body: vec![number; body].into(),
            ..FlightData::default()
        }
    }

    /// Fields in an unusual order, with an unknown field and a second body.
    fn odd(body: usize) -> (Vec<u8>, FlightData) {
        let part = |data: FlightData| data.encode_to_vec();
        let unknown = [0xfa, 0x7f, 2, 1, 2];
        let message = [
            part(FlightData { data_body: vec![9; body + 5].into(), ..FlightData::default() }),
            unknown.to_vec(),
            part(FlightData { data_body: vec![8; body].into(), ..FlightData::default() }),
            part(FlightData { app_metadata: vec![7; 5000].into(), ..FlightData::default() }),
        ];
        let message = message.concat();
        let expected = FlightData::decode(&message[..]).expect("message");
        (message, expected)
    }

    #[test]
    fn fields_may_come_in_any_order() {
        for body in [0, 1, 1018, 1024, 50_000] {
            let (message, expected) = odd(body);
            let bytes = framed(message);
            for frame in [1, 1000, 1 << 20] {
                let read = messages(&bytes, frame, 1 << 20).next().now_or_never().expect("ready");
                if body > 0 {
                    assert_eq!(read.expect("message").expect("one"), expected, "{body}");
                }
            }
        }
    }

    fn messages(
        bytes: &[u8],
        frame: usize,
        longest: usize,
    ) -> Messages<impl Body<Data = Bytes, Error = Infallible> + Unpin> {
        let frames: Vec<_> =
            bytes.chunks(frame).map(|part| Ok(Frame::data(Bytes::copy_from_slice(part)))).collect();
        Messages::new(
            Ended(StreamBody::new(futures::stream::iter(frames)), bytes.len().div_ceil(frame)),
            longest,
        )
    }

    /// A body with `is_end_stream`, as Hyper's.
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
        let bytes: Vec<u8> = sent.iter().flat_map(|data| framed(data.encode_to_vec())).collect();
        for frame in [1, 2, 5, 6, 100, 16_384, 1 << 20] {
            let mut messages = messages(&bytes, frame, 1 << 20);
            for expected in &sent {
                let message =
                    messages.next().now_or_never().expect("ready").expect("message").expect("one more");
                assert_eq!(&message, expected, "{frame}");
                let aligned = message.data_body.as_ptr().addr().is_multiple_of(8);
                assert!(aligned || message.data_body.len() < LONG_BODY, "{frame}");
            }
            assert!(messages.next().now_or_never().expect("ready").expect("end").is_none());
        }
    }

    #[test]
    fn messages_that_are_refused() {
        let long = framed(data(1, 1000).encode_to_vec());
        for (bytes, longest, expected) in [
            (&long[..], 900, Code::OutOfRange),
            (&long[..500], 5000, Code::Internal),
            (&b"\x01\0\0\0\x01x"[..], 900, Code::Internal),
            (&b"\x02\0\0\0\x01x"[..], 900, Code::Internal),
            (&b"\0\0\0\0\x02\xff\xff"[..], 900, Code::Internal),
            (&b"\0\xff\xff\xff\xff"[..], 900, Code::OutOfRange),
            // A body that is longer than its message.
            (&b"\0\0\0\0\x06\xc2\x3e\xff\xff\x03x"[..], 900, Code::Internal),
        ] {
            let mut messages = messages(bytes, 64, longest);
            let refused = messages.next().now_or_never().expect("ready");
            assert!(messages.next().now_or_never().expect("ready").is_err(), "nothing comes behind an error");
            assert_eq!(refused.expect_err("refused").code(), expected, "{:?}", &bytes[..5]);
        }
    }
}
