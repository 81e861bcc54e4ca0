//! From a socket to a stream of bytes: TLS, if the client begins with it and the server has a certificate, and an end for
//! clients that take nothing any more.

use bowshot_api::ClientCertificate;
use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

/// How long a client may take for each step before HTTP.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// Begins each record of a handshake of TLS (RFC 8446, section 5.1); no request of HTTP begins so.
const TLS_HANDSHAKE: u8 = 22;
/// How clients and servers call the protocols of HTTP when they agree on one (RFC 7301, section 6).
pub(crate) const HTTP2: &[u8] = b"h2";
pub(crate) const HTTP1: &[u8] = b"http/1.1";

/// Bytes of a client.
pub(crate) type Stream = Patient<Either<TcpStream, TlsStream<TcpStream>>>;

/// How a client has come.
#[derive(Debug)]
pub(crate) struct Road {
    pub(crate) is_encrypted: bool,
    /// Whether client and server have agreed on HTTP/2, which they do by TLS.
    pub(crate) is_http2: bool,
    /// What the client has shown when it agreed on TLS.
    pub(crate) certificate: Option<Arc<ClientCertificate>>,
}

/// A stream for HTTP, and how it has come. `None` for clients that go away or speak something else.
pub(crate) async fn arrive(
    stream: TcpStream,
    tls: Option<&TlsAcceptor>,
    patience: Duration,
) -> Option<(Stream, Road)> {
    let mut first = [0];
    let peeked = timeout(STEP_TIMEOUT, stream.peek(&mut first)).await.ok()?.ok()?;
    let stream = match (peeked, first, tls) {
        (1, [TLS_HANDSHAKE], Some(tls)) => {
            let accepted = timeout(STEP_TIMEOUT, tls.accept(stream)).await.ok()?;
            Either::Right(accepted.inspect_err(|error| tracing::debug!(%error, "no TLS")).ok()?)
        }
        (1, [TLS_HANDSHAKE], None) | (0, ..) => return None,
        _ => Either::Left(stream),
    };
    let road = match &stream {
        Either::Left(_) => Road { is_encrypted: false, is_http2: false, certificate: None },
        Either::Right(encrypted) => {
            let agreed = encrypted.get_ref().1;
            let shown = agreed.peer_certificates().unwrap_or_default();
            let certificate = ClientCertificate::shown(shown.iter().map(AsRef::as_ref));
            Road { is_encrypted: true, is_http2: agreed.alpn_protocol() == Some(HTTP2), certificate }
        }
    };
    Some((Patient::new(stream, patience), road))
}

/// A stream that breaks when its other end takes no byte for a while.
#[derive(Debug)]
pub(crate) struct Patient<S> {
    stream: S,
    /// Zero means no limit.
    patience: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, stalled: None }
    }

    /// What became of a write, or that it has waited for too long.
    fn judge<T>(&mut self, written: Poll<Result<T>>, context: &mut Context<'_>) -> Poll<Result<T>> {
        if written.is_ready() || self.patience.is_zero() {
            self.stalled = None;
            return written;
        }
        let patience = self.patience;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(stalled.as_mut().poll(context));
        stalled.as_mut().reset(Instant::now() + patience);
        Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the client takes no more bytes")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.judge(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.judge(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
