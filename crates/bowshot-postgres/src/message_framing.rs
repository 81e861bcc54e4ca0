//! Framing: reads the bytes of a connection message by message, and buffers what is sent. Memory grows with the bytes that
//! have come, never by a length that a client says.

use crate::frontend_messages::Message;
use crate::status::{ConnectionError, Failure, Result};
use bowshot_api::{ClientCertificate, Limits};
use bowshot_rowwire::connection::wait_for;
use bowshot_rowwire::ingest::Client;
use bowshot_rowwire::{MessageLimits, Socket, Stream};
use bytes::{Buf, BytesMut};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How long answers wait for the work of the next statement, to go out with its answer.
const FLUSH_AFTER: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub(crate) struct Wire {
    socket: Socket,
    inbound: BytesMut,
    outbound: BytesMut,
    longest: MessageLimits,
}

impl Wire {
    pub(crate) fn new(stream: Stream) -> Self {
        Self {
            socket: Socket::new(stream),
            inbound: BytesMut::new(),
            outbound: BytesMut::new(),
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

    /// The next message; `None` when the client has closed the connection between two messages. Cancelling it loses nothing.
    pub(crate) async fn message(&mut self) -> Result<Option<Message>> {
        loop {
            if let Some((tag, body)) = frame(&mut self.inbound, self.longest)? {
                return Message::parse(tag, body).map(Some).map_err(Failure::fatal);
            }
            if self.inbound.is_empty() && self.inbound.capacity() > Socket::MAX_IDLE_BUFFER {
                self.inbound = BytesMut::new();
            }
            if !self.read().await? {
                return if self.inbound.is_empty() { Ok(None) } else { Err(ConnectionError::Closed) };
            }
        }
    }

    async fn read(&mut self) -> Result<bool> {
        Ok(self.socket.read(&mut self.inbound).await?)
    }

    /// Waits for the next message, and returns its tag; `None` when the client has closed the connection.
    pub(crate) async fn wait_for_tag(&mut self) -> Result<Option<u8>> {
        while self.inbound.is_empty() {
            if !self.read().await? {
                return Ok(None);
            }
        }
        Ok(self.inbound.first().copied())
    }

    /// The buffer of what is sent.
    pub(crate) fn out(&mut self) -> &mut BytesMut {
        &mut self.outbound
    }

    /// Waits for work of the server, until the statement is cancelled or the client has gone. Answers to statements before it do not
    /// wait long for this one: it may wait for what their client does next.
    pub(crate) async fn wait_for<T>(
        &mut self,
        work: impl Future<Output = bowshot_api::Result<T>>,
        cancel: &CancellationToken,
    ) -> Result<T> {
        let closed = async {
            if self.outbound.has_remaining() {
                sleep(FLUSH_AFTER).await;
                _ = self.flush().await;
            }
            self.wait_closed().await;
        };
        wait_for(work, cancel, closed).await
    }

    /// Writes the buffer before the next message is awaited. Where that has come, and the buffer is not full, its answer goes along.
    pub(crate) async fn flush_before_next(&mut self) -> Result<()> {
        let is_full = self.outbound.len() >= Socket::FLUSH_BYTES;
        if is_full || !has_frame(&self.inbound) { self.flush().await } else { Ok(()) }
    }

    /// Writes the buffer if it is full enough. A cancelled statement leaves whole messages in it.
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
        while self.outbound.has_remaining() {
            self.socket.write(&mut self.outbound).await?;
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
        self.socket.wait_closed(&mut self.inbound).await;
    }
}

fn allowed(longest: MessageLimits, tag: u8) -> usize {
    match tag {
        b'Q' | b'P' => longest.text,
        b'B' | b'd' | b'F' => longest.values,
        _ => longest.short,
    }
}

/// Whether the next message has come whole.
fn has_frame(inbound: &[u8]) -> bool {
    let Some(([_tag, length @ ..], _)) = inbound.split_first_chunk::<5>() else { return false };
    usize::try_from(i32::from_be_bytes(*length)).is_ok_and(|length| inbound.len() > length)
}

/// Takes a whole message off the buffer, if there is one: its tag and its content.
fn frame(inbound: &mut BytesMut, longest: MessageLimits) -> Result<Option<(u8, BytesMut)>> {
    let Some((head, _)) = inbound.split_first_chunk::<5>() else { return Ok(None) };
    let [tag, length @ ..] = *head;
    let Some(length) = usize::try_from(i32::from_be_bytes(length)).ok().and_then(|all| all.checked_sub(4))
    else {
        return Err(Failure::protocol("protocol violation: invalid message length").fatal());
    };
    let limit = allowed(longest, tag);
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
    use tokio::net::{TcpListener, TcpStream};
    use tokio_util::either::Either;

    #[tokio::test]
    async fn answers_go_out_together_with_that_of_a_message_that_has_come() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let mut wire = Wire::new(Either::Left(listener.accept().await.unwrap().0));
        let sync = b"S\0\0\0\x04".as_slice();
        for (inbound, bytes, waits) in
            [(sync, 9, true), (b"S\0\0\0", 9, false), (b"", 9, false), (sync, Socket::FLUSH_BYTES, false)]
        {
            wire.inbound = BytesMut::from(inbound);
            wire.out().resize(bytes, 0);
            wire.flush_before_next().await.unwrap();
            assert_eq!(wire.outbound.has_remaining(), waits, "{inbound:?} {bytes}");
        }
    }

    fn framed(bytes: &[u8]) -> Result<Option<(u8, BytesMut)>> {
        frame(&mut BytesMut::from(bytes), MessageLimits { text: 100, values: 1000, short: 100 })
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
            assert!(matches!(framed(bytes), Err(ConnectionError::Fatal(_))), "{bytes:?}");
        }
        assert!(matches!(framed(b"B\0\0\x01\0"), Ok(None)));
    }
}
