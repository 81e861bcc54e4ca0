//! The bytes of one connection, in both directions. What comes is read packet by packet, and memory grows with what has come,
//! never by a length that was said. What goes out gathers here and is written when enough is there.
//!
//! A message is one packet, or several if it has 16 MiB or more; each has its number, which goes on over question and
//! answer (MySQL Source Code Documentation, "MySQL Packets").

use crate::body::Body;
use crate::compression::Compression;
use crate::status::{Failure, Result, Trouble};
use bowshot_api::{ClientCertificate, Limits};
use bytes::{Buf, BufMut, BytesMut};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;

/// A connection, encrypted or not.
type Stream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// Content of a packet; one that is full is followed by another one of the same message.
const FULL: usize = 0xff_ffff;
/// Bytes that gather before they are written.
const FLUSH_BYTES: usize = 64 << 10;
/// Bytes that one read takes at least.
const READ_BYTES: usize = 16 << 10;
/// Bytes that a client may send ahead of its answers.
const AHEAD_BYTES: usize = 64 << 10;
/// Buffers that have grown beyond this are given back.
const KEPT_BYTES: usize = 1 << 20;
/// Messages without a text or values of the user.
const SHORT_MESSAGE: usize = 64 << 10;
/// What a message has around its text.
const OVERHEAD: usize = 1 << 20;

/// How long the messages of a client may be.
#[derive(Debug, Clone, Copy)]
struct Longest {
    text: usize,
    values: usize,
    short: usize,
}

impl Longest {
    /// Before anybody knows who is calling.
    const STRANGER: Self = Self { text: SHORT_MESSAGE, values: SHORT_MESSAGE, short: SHORT_MESSAGE };

    /// Within the limits of the server.
    fn of(limits: &Limits) -> Self {
        let values = limits.max_message_bytes;
        let text = limits.max_sql_bytes.saturating_add(OVERHEAD).min(values);
        Self { text, values, short: SHORT_MESSAGE }
    }

    /// By the first byte: texts of statements, values of parameters, and all the rest.
    fn allowed(self, command: u8) -> usize {
        match command {
            0x03 | 0x16 => self.text,
            0x17 | 0x18 => self.values,
            _ => self.short,
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: Stream,
    inbound: BytesMut,
    outbound: BytesMut,
    /// What goes out as it is: parts that are compressed, and what stood before them.
    sending: BytesMut,
    compression: Option<Compression>,
    /// The number of the next packet, whoever sends it.
    number: u8,
    longest: Longest,
    /// How long a client may leave what is there for it; none is for ever.
    patience: Option<Duration>,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            stream: Either::Left(stream),
            inbound: BytesMut::new(),
            outbound: BytesMut::new(),
            sending: BytesMut::new(),
            compression: None,
            number: 0,
            longest: Longest::STRANGER,
            patience: Some(Duration::from_secs(10)),
        }
    }

    /// What the client has shown when it agreed on TLS.
    pub(crate) fn certificate(&self) -> Option<Arc<ClientCertificate>> {
        let Either::Right(encrypted) = &self.stream else { return None };
        let shown = encrypted.get_ref().1.peer_certificates()?;
        ClientCertificate::shown(shown.iter().map(AsRef::as_ref))
    }

    /// The caller is known: its messages may be as long as the server's limits say.
    pub(crate) fn is_known(&mut self, limits: &Limits) {
        self.longest = Longest::of(limits);
        self.patience = (!limits.reader_timeout.is_zero()).then_some(limits.reader_timeout);
    }

    /// What follows is compressed, in both directions.
    pub(crate) fn compress(&mut self, compression: Option<Compression>) {
        let Some(mut compression) = compression else { return };
        self.sending.unsplit(self.outbound.split());
        compression.arrived().unsplit(self.inbound.split());
        self.compression = Some(compression);
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self.stream, Either::Right(_))
    }

    /// Goes on over TLS. What came before the handshake of TLS, unread, is refused: it could be from anybody on the way.
    pub(crate) async fn encrypt(self, tls: &TlsAcceptor) -> Result<Self> {
        let Either::Left(stream) = self.stream else { return Err(Trouble::Gone) };
        if !self.inbound.is_empty() {
            tracing::debug!("a client went on in the clear after it had asked for TLS");
            return Err(Trouble::Gone);
        }
        match tls.accept(stream).await {
            Ok(stream) => Ok(Self { stream: Either::Right(Box::new(stream)), ..self }),
            Err(error) => {
                // Clients that do not trust the certificate: nothing that an operator must know.
                tracing::debug!(%error, "a client did not agree on TLS");
                Err(Trouble::Gone)
            }
        }
    }

    /// The first message of a client, of which no byte further is read: what follows may be TLS.
    pub(crate) async fn first_message(&mut self) -> Result<Option<Body>> {
        loop {
            if let Some(message) = self.whole(self.longest)? {
                return Ok(Some(message));
            }
            let missing = match self.inbound.first_chunk::<4>() {
                None => 4 - self.inbound.len(),
                // That it is not too long has been looked at.
                Some(head) => (4 + length(*head)).saturating_sub(self.inbound.len()),
            };
            let mut part = (&mut self.stream).take(missing as u64);
            if part.read_buf(&mut self.inbound).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// The next command, with which the numbers begin again; `None` when the client has ended between two. Cancelling it
    /// loses nothing.
    pub(crate) async fn command(&mut self) -> Result<Option<Body>> {
        self.begin();
        self.message().await
    }

    /// The numbers begin again: with a command, and with what a client is told that has asked nothing, which it knows by that.
    pub(crate) fn begin(&mut self) {
        self.number = 0;
        if let Some(compression) = &mut self.compression {
            compression.begin();
        }
    }

    /// The next message of a conversation. Cancelling it loses nothing.
    pub(crate) async fn message(&mut self) -> Result<Option<Body>> {
        self.next(self.longest).await
    }

    /// The next packet of a file, which is as long as values of parameters may be. Cancelling it loses nothing.
    pub(crate) async fn data(&mut self) -> Result<Option<Body>> {
        let Longest { values, .. } = self.longest;
        self.next(Longest { text: values, values, short: values }).await
    }

    async fn next(&mut self, longest: Longest) -> Result<Option<Body>> {
        loop {
            if let Some(message) = self.whole(longest)? {
                return Ok(Some(message));
            }
            if let Some(compression) = &mut self.compression
                && compression.unpack_next(&mut self.inbound)?
            {
                continue;
            }
            if self.inbound.is_empty() && self.inbound.capacity() > KEPT_BYTES {
                self.inbound = BytesMut::new();
            }
            if !self.read().await? {
                let is_cut = !self.inbound.is_empty()
                    || !arriving(&mut self.compression, &mut self.inbound).is_empty();
                return if is_cut { Err(Trouble::Gone) } else { Ok(None) };
            }
        }
    }

    fn whole(&mut self, longest: Longest) -> Result<Option<Body>> {
        let Some((message, next)) = take(&mut self.inbound, self.number, longest)? else {
            return Ok(None);
        };
        self.number = next;
        Ok(Some(Body::new(message)))
    }

    async fn read(&mut self) -> Result<bool> {
        let into = arriving(&mut self.compression, &mut self.inbound);
        into.reserve(READ_BYTES);
        Ok(self.stream.read_buf(into).await? > 0)
    }

    /// Waits until the client has gone. What it sends meanwhile is kept, up to a limit beyond which nobody looks.
    pub(crate) async fn gone(&mut self) {
        loop {
            if arriving(&mut self.compression, &mut self.inbound).len() >= AHEAD_BYTES {
                pending::<()>().await;
            }
            if !matches!(self.read().await, Ok(true)) {
                return;
            }
        }
    }

    /// Adds a message to what goes out.
    ///
    /// # Errors
    /// Those of `body`; nothing of it is left then.
    pub(crate) fn try_put(
        &mut self,
        body: impl FnOnce(&mut BytesMut) -> std::result::Result<(), Failure>,
    ) -> std::result::Result<(), Failure> {
        let before = self.outbound.len();
        self.outbound.put_u32(0);
        let written = body(&mut self.outbound);
        if written.is_err() {
            self.outbound.truncate(before);
            return written;
        }
        let length = self.outbound.len() - before - 4;
        if length < FULL {
            let head = head(length, self.number);
            if let Some(place) = self.outbound.get_mut(before..before + 4) {
                place.copy_from_slice(&head);
            }
            self.number = self.number.wrapping_add(1);
        } else {
            self.cut(before);
        }
        Ok(())
    }

    /// A message of several packets.
    fn cut(&mut self, before: usize) {
        let body = self.outbound.split_off(before).split_off(4);
        let mut rest: &[u8] = &body;
        loop {
            let (part, after) = rest.split_at(rest.len().min(FULL));
            self.outbound.put_slice(&head(part.len(), self.number));
            self.outbound.put_slice(part);
            self.number = self.number.wrapping_add(1);
            rest = after;
            if part.len() < FULL {
                return;
            }
        }
    }

    /// As [`Wire::try_put`], of what always fits.
    pub(crate) fn put(&mut self, body: impl FnOnce(&mut BytesMut)) {
        let put = self.try_put(|out| {
            body(out);
            Ok(())
        });
        debug_assert!(put.is_ok());
    }

    /// Writes what has gathered, if that is enough to be worth it. A cancelled statement leaves whole packets for later.
    pub(crate) async fn flush_some(&mut self, cancel: &CancellationToken) -> Result<()> {
        if self.outbound.len() < FLUSH_BYTES {
            return Ok(());
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => Ok(()),
            flushed = self.flush() => flushed,
        }
    }

    /// Writes all that has gathered. Cancelling it loses nothing.
    pub(crate) async fn flush(&mut self) -> Result<()> {
        while self.sending.has_remaining() || self.outbound.has_remaining() {
            if let Some(compression) = self.compression.as_mut().filter(|_| self.sending.is_empty()) {
                compression.pack(&mut self.outbound, &mut self.sending)?;
            }
            let out = if self.sending.is_empty() { &mut self.outbound } else { &mut self.sending };
            let written = self.stream.write_buf(out);
            let written = match self.patience {
                Some(patience) => timeout(patience, written).await.map_err(|_| Trouble::Gone)?,
                None => written.await,
            };
            if written? == 0 {
                return Err(Trouble::Gone);
            }
        }
        if self.outbound.capacity() > KEPT_BYTES {
            self.outbound = BytesMut::new();
        }
        self.stream.flush().await?;
        Ok(())
    }

    /// Ends the connection in order.
    pub(crate) async fn end(mut self) {
        let ended = async {
            self.flush().await?;
            self.stream.shutdown().await.map_err(Trouble::from)
        };
        _ = timeout(Duration::from_secs(5), ended).await;
    }
}

/// Where bytes of the connection are put.
fn arriving<'a>(compression: &'a mut Option<Compression>, inbound: &'a mut BytesMut) -> &'a mut BytesMut {
    match compression {
        Some(compression) => compression.arrived(),
        None => inbound,
    }
}

fn length([low, middle, high, _]: [u8; 4]) -> usize {
    usize::from(low) | usize::from(middle) << 8 | usize::from(high) << 16
}

fn head(length: usize, number: u8) -> [u8; 4] {
    let [low, middle, high, ..] = length.to_le_bytes();
    [low, middle, high, number]
}

/// Takes a whole message off the bytes, if there is one, and gives the number of the next packet.
fn take(inbound: &mut BytesMut, number: u8, longest: Longest) -> Result<Option<(BytesMut, u8)>> {
    let (mut at, mut total, mut next) = (0, 0, number);
    let limit = inbound.get(4).map_or(longest.short, |command| longest.allowed(*command));
    loop {
        let Some((head, _)) = inbound.get(at..).and_then(|rest| rest.split_first_chunk::<4>()) else {
            return Ok(None);
        };
        if head[3] != next {
            return Err(Failure::new(1156, "08S01", "got packets out of order").fatal());
        }
        let length = length(*head);
        if length > 0 && at == 0 && inbound.len() < 5 {
            return Ok(None);
        }
        total += length;
        if total > limit {
            let message = format!("a message is longer than the limit of {limit} bytes");
            return Err(Failure::new(1153, "08S01", message)
                .with_hint("send less at once, or raise `limits.max_message_bytes` or `limits.max_sql_bytes`")
                .fatal());
        }
        at += 4 + length;
        next = next.wrapping_add(1);
        if inbound.len() < at {
            return Ok(None);
        }
        if length < FULL {
            break;
        }
    }
    if total < FULL {
        inbound.advance(4);
        return Ok(Some((inbound.split_to(total), next)));
    }
    let mut packets = inbound.split_to(at);
    let mut message = BytesMut::with_capacity(total);
    while let Some(head) = packets.first_chunk::<4>() {
        let part = length(*head);
        packets.advance(4);
        message.extend_from_slice(&packets.split_to(part));
    }
    Ok(Some((message, next)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Longest = Longest { text: 100, values: 40 << 20, short: 10 };

    fn taken(bytes: &[u8]) -> Result<Option<(BytesMut, u8)>> {
        take(&mut BytesMut::from(bytes), 0, LONGEST)
    }

    #[test]
    fn packets_come_whole_or_not_at_all() {
        for part in [b"".as_ref(), b"\x01\0\0", b"\x03\0\0\0", b"\x03\0\0\0\x03a"] {
            assert!(matches!(taken(part), Ok(None)), "{part:?}");
        }
        let (message, next) = taken(b"\x03\0\0\0\x03abcd").unwrap().unwrap();
        assert_eq!((message.as_ref(), next), (b"\x03ab".as_ref(), 1));
        let (message, _) = taken(b"\0\0\0\0").unwrap().unwrap();
        assert!(message.is_empty());
    }

    #[test]
    fn numbers_and_lengths_that_cannot_be_are_refused_before_anything_is_kept() {
        for bytes in
            [b"\x01\0\0\x01\x0e".as_ref(), b"\x65\0\0\0\x03", b"\x0b\0\0\0\x0e", b"\xff\xff\xff\0\x03"]
        {
            assert!(matches!(taken(bytes), Err(Trouble::Fatal(_))), "{bytes:?}");
        }
    }

    #[test]
    fn long_messages_are_put_together() {
        for (more, size) in [(0, FULL), (7, FULL + 7), (FULL, 2 * FULL)] {
            let mut bytes = BytesMut::from(head(FULL, 0).as_slice());
            bytes.put_bytes(0x17, FULL);
            bytes.put_slice(&head(more, 1));
            bytes.put_bytes(0x17, more);
            if more == FULL {
                assert!(matches!(take(&mut bytes.clone(), 0, LONGEST), Ok(None)));
                bytes.put_slice(&head(0, 2));
            }
            bytes.put_u8(b'x');
            let (message, _) = take(&mut bytes, 0, LONGEST).unwrap().unwrap();
            assert_eq!((message.len(), bytes.as_ref()), (size, b"x".as_ref()));
        }
    }
}
