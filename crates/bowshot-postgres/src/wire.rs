//! The bytes of one connection, in both directions. What comes is read message by message, and memory grows with what has
//! come, never by a length that was said. What goes out gathers here and is written when enough is there.

use crate::message::Message;
use crate::status::{Failure, Result, Trouble};
use bowshot_api::{ClientCertificate, Limits};
use bytes::{Buf, BytesMut};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;

/// A connection, encrypted or not.
pub(crate) type Stream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// Bytes that gather before they are written.
pub(crate) const FLUSH_BYTES: usize = 64 << 10;
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
pub(crate) struct Longest {
    text: usize,
    values: usize,
}

impl Longest {
    /// Before anybody knows who is calling.
    pub(crate) const STRANGER: Self = Self { text: SHORT_MESSAGE, values: SHORT_MESSAGE };

    /// Within the limits of the server.
    pub(crate) fn of(limits: &Limits) -> Self {
        let values = limits.max_message_bytes;
        Self { text: limits.max_sql_bytes.saturating_add(OVERHEAD).min(values), values }
    }

    fn allowed(self, tag: u8) -> usize {
        match tag {
            b'Q' | b'P' => self.text,
            b'B' | b'd' | b'F' => self.values,
            _ => SHORT_MESSAGE,
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: Stream,
    inbound: BytesMut,
    outbound: BytesMut,
    longest: Longest,
    /// How long a client may leave what is there for it; none is for ever.
    patience: Option<Duration>,
}

impl Wire {
    pub(crate) fn new(stream: Stream) -> Self {
        Self {
            stream,
            inbound: BytesMut::new(),
            outbound: BytesMut::new(),
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

    /// The next message; `None` when the client has ended between two messages. Cancelling it loses nothing.
    pub(crate) async fn message(&mut self) -> Result<Option<Message>> {
        loop {
            if let Some((tag, body)) = frame(&mut self.inbound, self.longest)? {
                return Message::parse(tag, body).map(Some).map_err(Failure::fatal);
            }
            if self.inbound.is_empty() && self.inbound.capacity() > KEPT_BYTES {
                self.inbound = BytesMut::new();
            }
            if !self.read().await? {
                return if self.inbound.is_empty() { Ok(None) } else { Err(Trouble::Gone) };
            }
        }
    }

    async fn read(&mut self) -> Result<bool> {
        self.inbound.reserve(READ_BYTES);
        Ok(self.stream.read_buf(&mut self.inbound).await? > 0)
    }

    /// Whether the next message is there already, and which.
    pub(crate) fn next_tag(&self) -> Option<u8> {
        self.inbound.first().copied()
    }

    /// Waits until the next message begins, and tells which; `None` when the client has ended.
    pub(crate) async fn upcoming_tag(&mut self) -> Result<Option<u8>> {
        while self.inbound.is_empty() {
            if !self.read().await? {
                return Ok(None);
            }
        }
        Ok(self.next_tag())
    }

    /// Waits until the client has gone. What it sends meanwhile is kept, up to a limit beyond which nobody looks.
    pub(crate) async fn gone(&mut self) {
        loop {
            if self.inbound.len() >= AHEAD_BYTES {
                pending::<()>().await;
            }
            if !matches!(self.read().await, Ok(true)) {
                return;
            }
        }
    }

    /// What goes out gathers here.
    pub(crate) fn out(&mut self) -> &mut BytesMut {
        &mut self.outbound
    }

    /// Writes what has gathered, if that is enough to be worth it. A cancelled statement leaves whole messages for later.
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
        while self.outbound.has_remaining() {
            let written = self.stream.write_buf(&mut self.outbound);
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

/// Takes a whole message off the bytes, if there is one: its tag and its content.
fn frame(inbound: &mut BytesMut, longest: Longest) -> Result<Option<(u8, BytesMut)>> {
    let Some((head, _)) = inbound.split_first_chunk::<5>() else { return Ok(None) };
    let [tag, length @ ..] = *head;
    let Some(length) = usize::try_from(i32::from_be_bytes(length)).ok().and_then(|all| all.checked_sub(4))
    else {
        return Err(Failure::protocol("a message says a length that it cannot have").fatal());
    };
    let limit = longest.allowed(tag);
    if length > limit {
        let message = format!("a message of {length} bytes is longer than the limit of {limit}");
        return Err(Failure::new("54000", message)
            .with_hint("send less at once, or raise `limits.max_message_bytes` or `limits.max_sql_bytes`")
            .fatal());
    }
    if inbound.len() < 5 + length {
        return Ok(None);
    }
    inbound.advance(5);
    Ok(Some((tag, inbound.split_to(length))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(bytes: &[u8]) -> Result<Option<(u8, BytesMut)>> {
        frame(&mut BytesMut::from(bytes), Longest { text: 100, values: 1000 })
    }

    #[test]
    fn frames_come_whole_or_not_at_all() {
        assert!(matches!(framed(b""), Ok(None)));
        assert!(matches!(framed(b"Q\0\0\0"), Ok(None)));
        assert!(matches!(framed(b"Q\0\0\0\x08abc"), Ok(None)));
        let (tag, body) = framed(b"Q\0\0\0\x07abcd").unwrap().unwrap();
        assert_eq!((tag, body.as_ref()), (b'Q', b"abc".as_ref()));
    }

    #[test]
    fn lengths_that_cannot_be_are_refused_before_anything_is_kept() {
        for bytes in [b"Q\0\0\0\x03", b"Q\xff\xff\xff\xff", b"Q\x7f\xff\xff\xff", b"X\0\x10\0\0"] {
            assert!(matches!(framed(bytes), Err(Trouble::Fatal(_))), "{bytes:?}");
        }
        assert!(matches!(framed(b"B\0\0\x01\0"), Ok(None)));
    }
}
