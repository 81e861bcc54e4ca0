//! Frames on the Unix socket: one byte for the kind, four for the length of the rest (little-endian), the rest. A
//! file descriptor is sent with the first byte of its frame.

use bowshot_api::{Error, ErrorKind, Result};
use bowshot_ipc::shared::{receive, send};
use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::time::timeout;

/// Frames of clients.
pub(crate) const GET: u8 = 1;
pub(crate) const TAKEN: u8 = 2;
pub(crate) const RELEASE: u8 = 3;
pub(crate) const PUT: u8 = 4;
/// Both sides.
pub(crate) const MEMORY: u8 = 5;
pub(crate) const DONE: u8 = 6;
/// Frames of the server, in addition to `TAKEN` and `MEMORY`.
pub(crate) const HELLO: u8 = 16;
pub(crate) const SCHEMA: u8 = 17;
pub(crate) const BYTES: u8 = 18;
pub(crate) const RESULT: u8 = 19;
pub(crate) const END: u8 = 20;

/// Kind and length.
const HEAD: usize = 5;
/// Bytes that are read at once.
const READ: usize = 64 << 10;
/// Descriptors that may wait for their frames.
const DESCRIPTORS: usize = 8;
/// Headers of one call.
const HEADERS: u16 = 256;

#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) payload: Bytes,
    /// That of a [`MEMORY`].
    pub(crate) descriptor: Option<OwnedFd>,
}

/// The sending half.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: UnixStream,
    /// Write timeout; zero for none.
    patience: Duration,
    /// Frames to send with the next one.
    held: Mutex<Vec<Bytes>>,
}

impl Wire {
    pub(crate) fn new(stream: UnixStream, patience: Duration) -> Self {
        Self { stream, patience, held: Mutex::default() }
    }

    pub(crate) fn peer(&self) -> io::Result<u32> {
        self.stream.peer_cred().map(|peer| peer.uid())
    }

    /// Buffers a frame to send it with the next one, in one write.
    pub(crate) fn hold(&self, kind: u8, pieces: &[Bytes]) -> io::Result<()> {
        let head = head(kind, pieces)?;
        let mut held = self.held.lock();
        held.push(head);
        held.extend_from_slice(pieces);
        Ok(())
    }

    /// Whether frames are buffered.
    pub(crate) fn holds(&self) -> bool {
        !self.held.lock().is_empty()
    }

    pub(crate) async fn flush(&self) -> io::Result<()> {
        let held = std::mem::take(&mut *self.held.lock());
        self.write(&held, None).await
    }

    /// Sends buffered frames, then a frame with an optional descriptor.
    pub(crate) async fn send(
        &self,
        kind: u8,
        pieces: &[Bytes],
        descriptor: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        if descriptor.is_some() {
            // A descriptor is attached to the first byte of a write.
            self.flush().await?;
        }
        self.hold(kind, pieces)?;
        let held = std::mem::take(&mut *self.held.lock());
        self.write(&held, descriptor).await
    }

    async fn write(&self, pieces: &[Bytes], mut descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let pieces = pieces.iter().filter(|piece| !piece.is_empty());
        let mut slices: Vec<IoSlice<'_>> = pieces.map(|piece| IoSlice::new(piece)).collect();
        let mut left = slices.as_mut_slice();
        while !left.is_empty() {
            let (pieces, stream) = (&*left, &self.stream);
            let sending = stream.async_io(Interest::WRITABLE, || send(stream.as_fd(), pieces, descriptor));
            let sent = match self.patience.is_zero() {
                true => sending.await?,
                false => timeout(self.patience, sending).await??,
            };
            descriptor = None;
            IoSlice::advance_slices(&mut left, sent);
        }
        Ok(())
    }
}

fn head(kind: u8, pieces: &[Bytes]) -> io::Result<Bytes> {
    let length: usize = pieces.iter().map(Bytes::len).sum();
    let length = u32::try_from(length).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let [a, b, c, d] = length.to_le_bytes();
    Ok(Bytes::copy_from_slice(&[kind, a, b, c, d]))
}

/// The receiving half.
#[derive(Debug)]
pub(crate) struct Frames {
    wire: Arc<Wire>,
    longest: usize,
    buffer: BytesMut,
    place: Vec<u8>,
    descriptors: VecDeque<OwnedFd>,
}

impl Frames {
    /// Frames of at most so many bytes.
    pub(crate) fn new(wire: Arc<Wire>, longest: usize) -> Self {
        Self { wire, longest, buffer: BytesMut::new(), place: vec![0; READ], descriptors: VecDeque::new() }
    }

    /// The next frame; `None` if the client has left between frames. Cancel-safe.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if let Some(frame) = self.cut()? {
                return Ok(Some(frame));
            }
            let (stream, place) = (&self.wire.stream, &mut self.place);
            let reading = stream.async_io(Interest::READABLE, || receive(stream.as_fd(), place));
            let (came, descriptors) = reading.await?;
            if came == 0 {
                return match self.buffer.is_empty() {
                    true => Ok(None),
                    false => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
            self.descriptors.extend(descriptors);
            if self.descriptors.len() > DESCRIPTORS {
                return Err(broken("descriptors that belong to nothing"));
            }
            self.buffer.extend_from_slice(self.place.get(..came).unwrap_or_default());
        }
    }

    /// The first complete frame.
    fn cut(&mut self) -> io::Result<Option<Frame>> {
        let Some((head, rest)) = self.buffer.split_first_chunk::<HEAD>() else { return Ok(None) };
        let [kind, length @ ..] = *head;
        let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
        if length > self.longest {
            return Err(broken("a frame that is too long"));
        }
        if rest.len() < length {
            return Ok(None);
        }
        self.buffer.advance(HEAD);
        let payload = self.buffer.split_to(length).freeze();
        let descriptor = if kind == MEMORY { self.descriptors.pop_front() } else { None };
        if kind == MEMORY && descriptor.is_none() {
            return Err(broken("memory without its descriptor"));
        }
        Ok(Some(Frame { kind, payload, descriptor }))
    }
}

/// A client that does not speak the protocol.
pub(crate) fn broken(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// A call: headers as in Flight, and a body.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Call {
    /// Reads the rest of a frame: the number of headers (two bytes), for each its name and its value with two bytes of length
    /// before them, and the body.
    pub(crate) fn read(mut payload: Bytes) -> Result<Self> {
        let count = number(&mut payload)?;
        if count > HEADERS {
            return Err(Error::new(ErrorKind::LimitReached, format!("more than {HEADERS} headers")));
        }
        let mut headers = HeaderMap::new();
        for _ in 0..count {
            let (name, value) = (text(&mut payload)?, text(&mut payload)?);
            let name = HeaderName::from_bytes(&name).map_err(|_| malformed("a header's name"))?;
            let value = HeaderValue::from_maybe_shared(value).map_err(|_| malformed("a header's value"))?;
            headers.append(name, value);
        }
        Ok(Self { headers, body: payload })
    }
}

fn number(payload: &mut Bytes) -> Result<u16> {
    let number = payload.try_get_u16_le();
    number.map_err(|_| malformed("a length"))
}

fn text(payload: &mut Bytes) -> Result<Bytes> {
    let length = usize::from(number(payload)?);
    if length > payload.len() {
        return Err(malformed("a length"));
    }
    Ok(payload.split_to(length))
}

fn malformed(what: &str) -> Error {
    Error::invalid(format!("malformed call: {what} is none"))
        .with_hint("docs/reference/same-host.md has the form of calls")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(parts: &[(&str, &str)], body: &str) -> Bytes {
        let mut bytes = Vec::from((parts.len() as u16).to_le_bytes());
        for text in parts.iter().flat_map(|(name, value)| [name, value]) {
            bytes.extend((text.len() as u16).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes.extend(body.as_bytes());
        bytes.into()
    }

    #[test]
    fn calls_have_headers_and_a_body() {
        let read = Call::read(call(&[("cookie", "a=b"), ("cookie", "c=d")], "body")).unwrap();
        assert_eq!(read.headers.get_all("cookie").iter().count(), 2);
        assert_eq!(read.body, "body");
        assert!(Call::read(call(&[], "")).unwrap().headers.is_empty());
    }

    #[test]
    fn malformed_calls_are_refused() {
        let whole = call(&[("name", "value")], "");
        for length in 0..whole.len() {
            assert!(Call::read(whole.slice(..length)).is_err(), "{length}");
        }
        for bad in [call(&[("a b", "")], ""), call(&[("", "x")], ""), call(&[("a", "\n")], "")] {
            assert_eq!(Call::read(bad).unwrap_err().kind(), ErrorKind::Invalid);
        }
        let many = Bytes::from_static(&[0xff, 0xff]);
        assert_eq!(Call::read(many).unwrap_err().kind(), ErrorKind::LimitReached);
    }

    #[tokio::test]
    async fn frames_come_whole_however_they_were_cut() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let wire = Arc::new(Wire::new(ours, Duration::ZERO));
        let mut frames = Frames::new(Arc::new(Wire::new(theirs, Duration::ZERO)), 1 << 20);
        let long = Bytes::from(vec![7; 300_000]);
        let sending = {
            let (wire, long) = (Arc::clone(&wire), long.clone());
            tokio::spawn(async move {
                wire.send(RELEASE, &[], None).await.unwrap();
                wire.send(GET, &[Bytes::from_static(b"ab"), long], None).await.unwrap();
            })
        };
        assert!(matches!(frames.next().await, Ok(Some(Frame { kind: RELEASE, .. }))));
        let frame = frames.next().await.unwrap().unwrap();
        assert_eq!((frame.kind, frame.payload.len()), (GET, 300_002));
        sending.await.unwrap();
        drop(wire);
        assert!(frames.next().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn frames_that_are_refused() {
        for bytes in [&[GET, 0xff, 0xff, 0xff, 0xff][..], &[MEMORY, 0, 0, 0, 0], &[GET, 9, 0, 0, 0, 1]] {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let mut frames = Frames::new(Arc::new(Wire::new(theirs, Duration::ZERO)), 100);
            ours.writable().await.unwrap();
            assert_eq!(ours.try_write(bytes).unwrap(), bytes.len());
            drop(ours);
            assert!(frames.next().await.is_err(), "{bytes:?}");
        }
    }
}
