//! Framing: reads the bytes of a connection packet by packet, and buffers what is sent. Memory grows with the bytes that have
//! come, never by a length that a client says.
//!
//! A message is one packet, or several if it has 16 MiB or more. Sequence numbers continue from the command to its answer
//! (MySQL Source Code Documentation, "MySQL Packets").

use crate::compression::Compression;
use crate::payload::Payload;
use crate::status::{ConnectionError, Failure, Result};
use bowshot_api::{ClientCertificate, Limits};
use bowshot_rowwire::connection::wait_for;
use bowshot_rowwire::ingest::Client;
use bowshot_rowwire::{MessageLimits, Socket};
use bytes::{Buf, BufMut, BytesMut};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;

/// The most content of a packet; a full one is followed by another one of the same message.
const FULL: usize = 0xff_ffff;

/// Reads and writes the packets of one connection.
#[derive(Debug)]
pub(crate) struct Wire {
    socket: Socket,
    inbound: BytesMut,
    outbound: BytesMut,
    /// Bytes to be sent as they are: compressed frames, and what preceded them.
    sending: BytesMut,
    compression: Option<Compression>,
    /// The sequence number of the next packet, of either end.
    number: u8,
    longest: MessageLimits,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            socket: Socket::new(Either::Left(stream)),
            inbound: BytesMut::new(),
            outbound: BytesMut::new(),
            sending: BytesMut::new(),
            compression: None,
            number: 0,
            longest: MessageLimits::LOGIN,
        }
    }

    /// The certificate that the client has sent in the handshake of TLS.
    pub(crate) fn certificate(&self) -> Option<Arc<ClientCertificate>> {
        self.socket.certificate()
    }

    /// The client has authenticated: its messages may be as long as the server's limits say.
    pub(crate) fn set_limits(&mut self, limits: &Limits) {
        self.longest = MessageLimits::new(limits);
        self.socket.set_limits(limits);
    }

    /// Compresses both directions from here on.
    pub(crate) fn compress(&mut self, compression: Option<Compression>) {
        let Some(mut compression) = compression else { return };
        self.sending.unsplit(self.outbound.split());
        compression.arrived().unsplit(self.inbound.split());
        self.compression = Some(compression);
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.socket.is_encrypted()
    }

    /// Continues over TLS. Bytes before its handshake are refused: an attacker on the network could have injected them.
    pub(crate) async fn encrypt(self, tls: &TlsAcceptor) -> Result<Self> {
        if !self.inbound.is_empty() {
            tracing::debug!("a client went on in the clear after it had asked for TLS");
            return Err(ConnectionError::Closed);
        }
        let socket = self.socket.encrypt(tls).await.ok_or(ConnectionError::Closed)?;
        Ok(Self { socket, ..self })
    }

    /// The first message of a client. Not one byte more is read, since TLS may follow.
    pub(crate) async fn first_message(&mut self) -> Result<Option<Payload>> {
        loop {
            if let Some(message) = self.whole(self.longest)? {
                return Ok(Some(message));
            }
            let missing = match self.inbound.first_chunk::<4>() {
                None => 4 - self.inbound.len(),
                // Its length has been checked.
                Some(head) => (4 + length(*head)).saturating_sub(self.inbound.len()),
            };
            if !self.socket.read_at_most(missing, &mut self.inbound).await? {
                return Ok(None);
            }
        }
    }

    /// The next command, which resets the sequence number; `None` when the client has closed the connection between two.
    /// Cancelling it loses nothing.
    pub(crate) async fn command(&mut self) -> Result<Option<Payload>> {
        self.begin();
        self.message().await
    }

    /// Resets the sequence number: for a command, and for an error without one, which clients recognise by it.
    pub(crate) fn begin(&mut self) {
        self.number = 0;
        if let Some(compression) = &mut self.compression {
            compression.begin();
        }
    }

    /// The next message of a conversation. Cancelling it loses nothing.
    pub(crate) async fn message(&mut self) -> Result<Option<Payload>> {
        self.next(self.longest).await
    }

    /// The next packet of a file, with the limit of parameter values. Cancelling it loses nothing.
    pub(crate) async fn data(&mut self) -> Result<Option<Payload>> {
        let MessageLimits { values, .. } = self.longest;
        self.next(MessageLimits { text: values, values, short: values }).await
    }

    async fn next(&mut self, longest: MessageLimits) -> Result<Option<Payload>> {
        loop {
            if let Some(message) = self.whole(longest)? {
                return Ok(Some(message));
            }
            if let Some(compression) = &mut self.compression
                && compression.unpack_next(&mut self.inbound)?
            {
                continue;
            }
            if self.inbound.is_empty() && self.inbound.capacity() > Socket::MAX_IDLE_BUFFER {
                self.inbound = BytesMut::new();
            }
            if !self.read().await? {
                let is_cut = !self.inbound.is_empty()
                    || !arriving(&mut self.compression, &mut self.inbound).is_empty();
                return if is_cut { Err(ConnectionError::Closed) } else { Ok(None) };
            }
        }
    }

    fn whole(&mut self, longest: MessageLimits) -> Result<Option<Payload>> {
        let Some((message, next)) = take(&mut self.inbound, self.number, longest)? else {
            return Ok(None);
        };
        self.number = next;
        Ok(Some(Payload::new(message)))
    }

    async fn read(&mut self) -> Result<bool> {
        let into = arriving(&mut self.compression, &mut self.inbound);
        Ok(self.socket.read(into).await?)
    }

    /// Adds a message to the buffer.
    ///
    /// # Errors
    /// Those of `body`; nothing stays in the buffer then.
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

    /// As [`Wire::try_put`], for a body that cannot fail.
    pub(crate) fn put(&mut self, body: impl FnOnce(&mut BytesMut)) {
        let put = self.try_put(|out| {
            body(out);
            Ok(())
        });
        debug_assert!(put.is_ok());
    }

    /// Waits for work of the server, until the statement is cancelled or the client has gone.
    pub(crate) async fn wait_for<T>(
        &mut self,
        work: impl Future<Output = bowshot_api::Result<T>>,
        cancel: &CancellationToken,
    ) -> Result<T> {
        wait_for(work, cancel, self.wait_closed()).await
    }

    /// Writes the buffer if it is full enough. A cancelled statement leaves whole packets in it.
    pub(crate) async fn flush_if_full(&mut self, cancel: &CancellationToken) -> Result<()> {
        if self.outbound.len() < Socket::FLUSH_BYTES {
            return Ok(());
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => Ok(()),
            flushed = self.flush() => flushed,
        }
    }

    /// Writes the whole buffer. Cancelling it loses nothing.
    pub(crate) async fn flush(&mut self) -> Result<()> {
        while self.sending.has_remaining() || self.outbound.has_remaining() {
            if let Some(compression) = self.compression.as_mut().filter(|_| self.sending.is_empty()) {
                compression.pack(&mut self.outbound, &mut self.sending)?;
            }
            let out = if self.sending.is_empty() { &mut self.outbound } else { &mut self.sending };
            self.socket.write(out).await?;
        }
        Ok(self.socket.flush(&mut self.outbound).await?)
    }

    /// Ends the connection in order.
    pub(crate) async fn end(mut self) {
        let ended = async {
            self.flush().await?;
            self.socket.shut_down().await.map_err(ConnectionError::from)
        };
        _ = timeout(Socket::SHUTDOWN_TIMEOUT, ended).await;
    }
}

impl Client for Wire {
    async fn wait_closed(&mut self) {
        let into = arriving(&mut self.compression, &mut self.inbound);
        self.socket.wait_closed(into).await;
    }
}

/// The buffer for received bytes.
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

/// By the first byte: statements, values of parameters, and everything else.
fn allowed(longest: MessageLimits, command: u8) -> usize {
    match command {
        0x03 | 0x16 => longest.text,
        0x17 | 0x18 => longest.values,
        _ => longest.short,
    }
}

/// Takes a whole message off the buffer, if there is one, and returns the next sequence number.
fn take(inbound: &mut BytesMut, number: u8, longest: MessageLimits) -> Result<Option<(BytesMut, u8)>> {
    let (mut at, mut total, mut next) = (0, 0, number);
    let limit = inbound.get(4).map_or(longest.short, |command| allowed(longest, *command));
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

    const LIMITS: MessageLimits = MessageLimits { text: 100, values: 40 << 20, short: 10 };

    fn taken(bytes: &[u8]) -> Result<Option<(BytesMut, u8)>> {
        take(&mut BytesMut::from(bytes), 0, LIMITS)
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
            assert!(matches!(taken(bytes), Err(ConnectionError::Fatal(_))), "{bytes:?}");
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
                assert!(matches!(take(&mut bytes.clone(), 0, LIMITS), Ok(None)));
                bytes.put_slice(&head(0, 2));
            }
            bytes.put_u8(b'x');
            let (message, _) = take(&mut bytes, 0, LIMITS).unwrap().unwrap();
            assert_eq!((message.len(), bytes.as_ref()), (size, b"x".as_ref()));
        }
    }
}
