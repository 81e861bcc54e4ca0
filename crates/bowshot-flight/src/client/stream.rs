//! Reads DoGet from HTTP/2 frames: splits gRPC messages and copies each data body once, into memory aligned for
//! Arrow. The generated client would copy into a buffer that is aligned by chance only.

use super::{Error, Result};
use arrow::buffer::{Buffer, MutableBuffer};
use arrow_flight::Ticket;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, Request, header};
use http_body_util::{BodyExt, Full};
use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use std::collections::VecDeque;
use std::future::poll_fn;
use tonic::body::Body;
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tower::Service;

const DO_GET: &str = "/arrow.flight.protocol.FlightService/DoGet";
/// The compression flag and the length before each gRPC message.
const PREFIX_BYTES: usize = 5;
/// Longest message.
const MAX_MESSAGE_BYTES: usize = 1 << 30;
/// Alignment of Arrow buffers.
const ALIGNMENT: usize = 64;

/// The fields of `FlightData` that carry Arrow data.
#[derive(Debug, Default)]
pub(super) struct FlightMessage {
    pub(super) header: Bytes,
    pub(super) body: Bytes,
}

/// Messages as they arrive.
#[derive(Debug)]
pub(super) struct Messages {
    body: Body,
    chunks: Chunks,
}

impl Messages {
    /// Sends the request; returns when the head of the response is there.
    pub(super) async fn open(
        mut channel: Channel,
        request: tonic::Request<Ticket>,
    ) -> Result<(MetadataMap, Self)> {
        let request = http_request(request);
        poll_fn(|context| channel.poll_ready(context)).await.map_err(broken)?;
        let (head, body) = channel.call(request).await.map_err(broken)?.into_parts();
        check_status(&head.headers)?;
        if head.status != http::StatusCode::OK {
            return Err(Error::Protocol("the answer to DoGet is no gRPC"));
        }
        Ok((MetadataMap::from_headers(head.headers), Self { body, chunks: Chunks::default() }))
    }

    /// The next message; `None` at a successful end.
    pub(super) async fn next(&mut self) -> Result<Option<FlightMessage>> {
        loop {
            if let Some(message) = self.chunks.take_message()? {
                return Ok(Some(message));
            }
            match self.body.frame().await.transpose()?.map(http_body::Frame::into_data) {
                Some(Ok(data)) => self.chunks.push(data),
                Some(Err(frame)) => return self.end(frame.into_trailers().ok().as_ref()),
                None => return self.end(None),
            }
        }
    }

    fn end(&self, trailers: Option<&HeaderMap>) -> Result<Option<FlightMessage>> {
        let trailers = trailers.ok_or(Error::Protocol("a stream broke off"))?;
        check_status(trailers)?;
        if self.chunks.remaining() > 0 {
            return Err(Error::Protocol("a stream ended inside a message"));
        }
        Ok(None)
    }
}

fn http_request(request: tonic::Request<Ticket>) -> Request<Body> {
    let (metadata, _, ticket) = request.into_parts();
    let mut message = BytesMut::with_capacity(PREFIX_BYTES + ticket.encoded_len());
    message.put_u8(0);
    // A ticket of 4 GiB would have been refused long before.
    message.put_u32(u32::try_from(ticket.encoded_len()).unwrap_or(u32::MAX));
    message.put_slice(&ticket.encode_to_vec());
    let mut request = Request::new(Body::new(Full::new(message.freeze())));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = http::Uri::from_static(DO_GET);
    *request.headers_mut() = metadata.into_headers();
    request.headers_mut().insert(header::TE, HeaderValue::from_static("trailers"));
    request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    request
}

fn broken(error: tonic::transport::Error) -> Error {
    Status::from_error(Box::new(error)).into()
}

/// Reads the status from trailers, or from the head if there is nothing else.
fn check_status(headers: &HeaderMap) -> Result<()> {
    match Status::from_header_map(headers) {
        Some(status) if status.code() != Code::Ok => Err(status.into()),
        _ => Ok(()),
    }
}

/// Received frames.
#[derive(Debug, Default)]
struct Chunks {
    frames: VecDeque<Bytes>,
    remaining: usize,
    wanted: Option<usize>,
}

impl Chunks {
    fn push(&mut self, frame: Bytes) {
        if !frame.is_empty() {
            self.remaining += frame.len();
            self.frames.push_back(frame);
        }
    }

    fn take_message(&mut self) -> Result<Option<FlightMessage>> {
        if self.wanted.is_none() && self.remaining >= PREFIX_BYTES {
            if self.get_u8() != 0 {
                return Err(Error::Protocol("a compressed message, which was not asked for"));
            }
            let length = usize::try_from(self.get_u32()).unwrap_or(usize::MAX);
            if length > MAX_MESSAGE_BYTES {
                return Err(Error::Protocol("a message of more than 1 GiB"));
            }
            self.wanted = Some(length);
        }
        match self.wanted {
            Some(length) if length <= self.remaining => {
                self.wanted = None;
                read_message(&mut self.take(length)).map(Some)
            }
            _ => Ok(None),
        }
    }
}

impl Buf for Chunks {
    fn remaining(&self) -> usize {
        self.remaining
    }

    fn chunk(&self) -> &[u8] {
        self.frames.front().map_or(&[], |frame| frame)
    }

    fn advance(&mut self, mut count: usize) {
        self.remaining -= count;
        while let Some(frame) = self.frames.front_mut().filter(|_| count > 0) {
            let step = count.min(frame.len());
            frame.advance(step);
            count -= step;
            if frame.is_empty() {
                self.frames.pop_front();
            }
        }
    }

    fn copy_to_bytes(&mut self, length: usize) -> Bytes {
        match self.frames.front_mut() {
            Some(frame) if frame.len() > length => {
                self.remaining -= length;
                frame.split_to(length)
            }
            _ => {
                let mut bytes = BytesMut::with_capacity(length);
                bytes.put(self.take(length));
                bytes.freeze()
            }
        }
    }
}

fn read_message(message: &mut impl Buf) -> Result<FlightMessage> {
    let mut found = FlightMessage::default();
    while message.has_remaining() {
        let (tag, wire_type) = decode_key(message).map_err(Error::Message)?;
        match (tag, wire_type) {
            (2, WireType::LengthDelimited) => {
                let length = length(message)?;
                found.header = message.copy_to_bytes(length);
            }
            (1000, WireType::LengthDelimited) => {
                let length = length(message)?;
                found.body = aligned(message, length);
            }
            _ => skip_field(wire_type, tag, message, DecodeContext::default()).map_err(Error::Message)?,
        }
    }
    Ok(found)
}

fn length(message: &mut impl Buf) -> Result<usize> {
    let length = usize::try_from(decode_varint(message).map_err(Error::Message)?).unwrap_or(usize::MAX);
    if length > message.remaining() {
        return Err(Error::Protocol("a field is longer than its message"));
    }
    Ok(length)
}

/// The only copy, unless the body is aligned within a single frame.
fn aligned(message: &mut impl Buf, length: usize) -> Bytes {
    let chunk = message.chunk();
    if chunk.len() >= length && chunk.as_ptr().align_offset(ALIGNMENT) == 0 {
        return message.copy_to_bytes(length);
    }
    let mut body = MutableBuffer::with_capacity(length);
    let mut rest = message.take(length);
    while rest.has_remaining() {
        let chunk = rest.chunk();
        body.extend_from_slice(chunk);
        let count = chunk.len();
        rest.advance(count);
    }
    Bytes::from_owner(Body64(body.into()))
}

/// Memory of Arrow as the owner of [`Bytes`].
struct Body64(Buffer);

impl AsRef<[u8]> for Body64 {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_flight::{FlightData, FlightDescriptor};

    fn message() -> FlightData {
        FlightData {
            flight_descriptor: Some(FlightDescriptor::new_cmd("x")),
            data_header: Bytes::from_static(b"header"),
            app_metadata: Bytes::from_static(b"metadata"),
            data_body: (0..=255).cycle().take(100_000).collect(),
        }
    }

    fn frame(message: &FlightData) -> Vec<u8> {
        let mut frame = vec![0];
        frame.put_u32(u32::try_from(message.encoded_len()).unwrap());
        message.encode(&mut frame).unwrap();
        frame
    }

    #[test]
    fn messages_are_put_together_from_frames_of_any_size() {
        let bytes = [frame(&message()), frame(&FlightData::default()), frame(&message())].concat();
        for size in [1, 2, 7, 4_096, 100_037, 1 << 20] {
            let mut chunks = Chunks::default();
            let mut found = Vec::new();
            for piece in bytes.chunks(size) {
                chunks.push(Bytes::copy_from_slice(piece));
                while let Some(message) = chunks.take_message().unwrap() {
                    found.push((message.header, message.body));
                }
            }
            let expected = (message().data_header, message().data_body);
            assert_eq!(found, [expected.clone(), (Bytes::new(), Bytes::new()), expected], "{size}");
            let aligned = |body: &Bytes| body.is_empty() || body.as_ptr().align_offset(ALIGNMENT) == 0;
            assert!(found.iter().all(|(_, body)| aligned(body)));
            assert_eq!((chunks.remaining, chunks.frames.len()), (0, 0));
        }
    }

    #[test]
    fn malformed_messages_are_errors() {
        let overlong = [0, 0, 0, 0, 3, 0x12, 0x7f, 0];
        let compressed = [1, 0, 0, 0, 0];
        let huge = [0, 0xff, 0xff, 0xff, 0xff];
        let unfinished_varint = [0, 0, 0, 0, 1, 0x80];
        for bytes in [&overlong[..], &compressed, &huge, &unfinished_varint] {
            let mut chunks = Chunks::default();
            chunks.push(Bytes::copy_from_slice(bytes));
            assert!(chunks.take_message().is_err(), "{bytes:?}");
        }
    }
}
