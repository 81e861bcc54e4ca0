//! The socket of a connection, encrypted or not. Memory grows with the bytes that have come, never by a length that a client
//! says; a client that does not read loses its connection.

use bowshot_api::{ClientCertificate, Limits};
use bytes::BytesMut;
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

/// A connection, encrypted or not.
pub type Stream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// Bytes that one read takes at least.
const READ_BYTES: usize = 16 << 10;
/// Bytes that a client may send before its statement is answered.
const MAX_PIPELINED_BYTES: usize = 64 << 10;
/// Longest message without a statement or values.
const SHORT_MESSAGE: usize = 64 << 10;
/// Bytes of a message beside its statement.
const OVERHEAD: usize = 1 << 20;
/// How long a client may leave bytes unread before it has authenticated.
const LOGIN_WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest messages that a client may send, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct MessageLimits {
    /// With a statement.
    pub text: usize,
    /// With values.
    pub values: usize,
    /// Of all others.
    pub short: usize,
}

impl MessageLimits {
    /// Before the client has authenticated.
    pub const LOGIN: Self = Self { text: SHORT_MESSAGE, values: SHORT_MESSAGE, short: SHORT_MESSAGE };

    /// Of a client that has authenticated.
    pub fn new(limits: &Limits) -> Self {
        let values = limits.max_message_bytes;
        let text = limits.max_sql_bytes.saturating_add(OVERHEAD).min(values);
        Self { text, values, short: SHORT_MESSAGE }
    }
}

/// The socket of one connection, with limits on buffers and time.
#[derive(Debug)]
pub struct Socket {
    stream: Stream,
    /// How long a client may leave bytes unread; `None` is without limit.
    write_timeout: Option<Duration>,
}

impl Socket {
    /// Bytes that gather in a buffer before they are written.
    pub const FLUSH_BYTES: usize = 64 << 10;
    /// Buffers that have grown beyond this are given back.
    pub const MAX_IDLE_BUFFER: usize = 1 << 20;
    /// How long the last bytes of a connection may take.
    pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

    /// A connection whose client has not authenticated.
    pub fn new(stream: Stream) -> Self {
        Self { stream, write_timeout: Some(LOGIN_WRITE_TIMEOUT) }
    }

    /// The client has authenticated: it has the time to read that the server's limits give.
    pub fn set_limits(&mut self, limits: &Limits) {
        self.write_timeout = (!limits.reader_timeout.is_zero()).then_some(limits.reader_timeout);
    }

    /// Whether the connection is encrypted.
    pub fn is_encrypted(&self) -> bool {
        matches!(self.stream, Either::Right(_))
    }

    /// The certificate that the client has sent in the handshake of TLS.
    pub fn certificate(&self) -> Option<Arc<ClientCertificate>> {
        let Either::Right(encrypted) = &self.stream else { return None };
        let chain = encrypted.get_ref().1.peer_certificates()?;
        ClientCertificate::shown(chain.iter().map(AsRef::as_ref))
    }

    /// Goes on over TLS; `None` if that fails.
    pub async fn encrypt(self, tls: &TlsAcceptor) -> Option<Self> {
        let Either::Left(stream) = self.stream else { return None };
        Some(Self { stream: accept_tls(stream, tls).await?, ..self })
    }

    /// Reads what has come, and says whether there was anything. Cancelling it loses nothing.
    pub async fn read(&mut self, into: &mut BytesMut) -> io::Result<bool> {
        into.reserve(READ_BYTES);
        Ok(self.stream.read_buf(into).await? > 0)
    }

    /// Reads at most `count` bytes, and says whether there were any.
    pub async fn read_at_most(&mut self, count: usize, into: &mut BytesMut) -> io::Result<bool> {
        Ok((&mut self.stream).take(count as u64).read_buf(into).await? > 0)
    }

    /// Waits until the client has gone. What it sends meanwhile goes into the buffer, up to a limit beyond which nothing is read.
    pub async fn wait_closed(&mut self, into: &mut BytesMut) {
        loop {
            if into.len() >= MAX_PIPELINED_BYTES {
                pending::<()>().await;
            }
            if !matches!(self.read(into).await, Ok(true)) {
                return;
            }
        }
    }

    /// Writes some of the bytes and takes them off the buffer. Cancelling it loses nothing.
    ///
    /// # Errors
    /// When the connection is broken, or the client does not read in time.
    pub async fn write(&mut self, out: &mut BytesMut) -> io::Result<()> {
        let written = self.stream.write_buf(out);
        let written = match self.write_timeout {
            Some(limit) => timeout(limit, written).await?,
            None => written.await,
        };
        match written? {
            0 => Err(io::ErrorKind::WriteZero.into()),
            _ => Ok(()),
        }
    }

    /// Hands what has been written to the operating system, and gives back an empty buffer that has grown large.
    pub async fn flush(&mut self, out: &mut BytesMut) -> io::Result<()> {
        if out.capacity() > Self::MAX_IDLE_BUFFER {
            *out = BytesMut::new();
        }
        self.stream.flush().await
    }

    /// Closes the connection in order.
    pub async fn shut_down(&mut self) -> io::Result<()> {
        self.stream.shutdown().await
    }
}

/// The handshake of TLS; `None` if it fails.
pub async fn accept_tls(stream: TcpStream, tls: &TlsAcceptor) -> Option<Stream> {
    match tls.accept(stream).await {
        Ok(stream) => Some(Either::Right(Box::new(stream))),
        Err(error) => {
            // Clients that do not trust the certificate: nothing that an operator must know.
            tracing::debug!(%error, "a client did not agree on TLS");
            None
        }
    }
}
