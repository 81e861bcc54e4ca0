//! The TLS handshake, if the client begins one and the server has a certificate, and a write timeout for stalled
//! clients.

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

/// Timeout of each step before HTTP.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// Begins each record of a handshake of TLS (RFC 8446, section 5.1); no request of HTTP begins so.
const TLS_HANDSHAKE: u8 = 22;
/// How clients and servers call the protocols of HTTP when they agree on one (RFC 7301, section 6).
pub(crate) const HTTP2: &[u8] = b"h2";
pub(crate) const HTTP1: &[u8] = b"http/1.1";

/// Bytes of a client.
pub(crate) type Stream = WithWriteTimeout<Either<TcpStream, TlsStream<TcpStream>>>;

#[derive(Debug)]
pub(crate) struct Transport {
    pub(crate) is_encrypted: bool,
    /// Whether client and server have agreed on HTTP/2, which they do by TLS.
    pub(crate) is_http2: bool,
    pub(crate) certificate: Option<Arc<ClientCertificate>>,
}

/// Accepts a connection; `None` if the client leaves or speaks another protocol.
pub(crate) async fn arrive(
    stream: TcpStream,
    tls: Option<&TlsAcceptor>,
    patience: Duration,
) -> Option<(Stream, Transport)> {
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
    let transport = match &stream {
        Either::Left(_) => Transport { is_encrypted: false, is_http2: false, certificate: None },
        Either::Right(encrypted) => {
            let agreed = encrypted.get_ref().1;
            let shown = agreed.peer_certificates().unwrap_or_default();
            let certificate = ClientCertificate::shown(shown.iter().map(AsRef::as_ref));
            Transport { is_encrypted: true, is_http2: agreed.alpn_protocol() == Some(HTTP2), certificate }
        }
    };
    Some((WithWriteTimeout::new(stream, patience), transport))
}

#[derive(Debug)]
pub(crate) struct WithWriteTimeout<S> {
    stream: S,
    /// Zero means no limit.
    patience: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> WithWriteTimeout<S> {
    fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, stalled: None }
    }

    fn check_timeout<T>(&mut self, written: Poll<Result<T>>, context: &mut Context<'_>) -> Poll<Result<T>> {
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

impl<S: AsyncRead + Unpin> AsyncRead for WithWriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WithWriteTimeout<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.check_timeout(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.check_timeout(written, context)
    }

    bowshot_api::delegate! { stream: fn is_write_vectored(&self) -> bool; }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.check_timeout(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
