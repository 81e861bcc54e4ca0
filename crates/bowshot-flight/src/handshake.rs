//! The first bytes of a connection: TLS, if the server has a certificate, and the HTTP/2 preface. Clients of other
//! protocols get a hint, in their protocol where possible.

use crate::prefixed_io::PrefixedIo;
use bowshot_api::ClientCertificate;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

/// Timeout of each step: first bytes, TLS handshake, HTTP/2 preface.
const GREETING_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may take to hear that it is wrong here.
const FAREWELL_TIME: Duration = Duration::from_secs(5);
/// Encrypted bytes that wait for the socket, for each connection whose client does not read. With the 64 KiB that rustls
/// takes by itself, a client with large frames costs a system call for every four records.
const TLS_SEND_BUFFER: usize = 256 << 10;
/// Encrypted bytes that are read at once. rustls by itself reads 4 KiB: four times for each record of an upload.
const TLS_RECEIVE_BUFFER: usize = 64 << 10;
/// Begins each record of a handshake (RFC 8446, section 5.1).
const TLS_HANDSHAKE: u8 = 22;
/// A fatal alert, `protocol_version` (RFC 8446, section 6): TLS is not spoken here.
const NO_TLS: [u8; 7] = [21, 3, 3, 0, 2, 2, 70];
const GREETING: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const NOT_GRPC: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n\
    this port speaks Arrow Flight SQL (gRPC over HTTP/2); use an ADBC, JDBC or ODBC driver for Flight SQL\n";

/// A connection, encrypted or not.
pub(crate) type Wire = Either<TcpStream, PrefixedIo<Encrypted>>;

pub(crate) fn certificate(wire: &Wire) -> Option<Arc<ClientCertificate>> {
    let Either::Right(encrypted) = wire else { return None };
    let shown = encrypted.connection().get_ref().1.peer_certificates()?;
    ClientCertificate::shown(shown.iter().map(AsRef::as_ref))
}

type Encrypted = TlsStream<BufReader<TcpStream>>;

/// A client that speaks HTTP/2.
pub(crate) enum Handshake {
    /// Encrypted as configured.
    Ready(Wire),
    /// Without encryption, although the server has a certificate.
    InTheClear(Wire),
}

/// Waits until the client has begun to speak HTTP/2, over TLS with `tls`; `None` if it does not.
pub(crate) async fn arrive(stream: TcpStream, tls: Option<TlsAcceptor>) -> Option<Handshake> {
    let Ok(Ok(greeting)) = timeout(GREETING_TIMEOUT, greeting(&stream)).await else {
        tracing::debug!("a client said nothing");
        return None;
    };
    match (greeting, tls) {
        (Greeting::Http2, None) => Some(Handshake::Ready(Either::Left(stream))),
        (Greeting::Http2, Some(_)) => Some(Handshake::InTheClear(Either::Left(stream))),
        (Greeting::Tls, Some(tls)) => encrypted(stream, &tls).await.map(Either::Right).map(Handshake::Ready),
        (Greeting::Tls, None) => {
            tracing::debug!("a client tried TLS, and this server has no certificate");
            // Read its bytes: closing a socket with unread bytes discards what was sent.
            let _ = stream.try_read(&mut [0; 16 << 10]);
            farewell(stream, &NO_TLS).await;
            None
        }
        (Greeting::Http1, _) => {
            farewell(stream, NOT_GRPC).await;
            None
        }
        (Greeting::Other, _) => {
            tracing::debug!("a client did not begin to speak HTTP/2");
            None
        }
    }
}

/// Errors are ignored: the client may have left.
async fn farewell(mut stream: impl AsyncWrite + Unpin, text: &[u8]) {
    let told = async {
        stream.write_all(text).await?;
        stream.shutdown().await
    };
    let _ = timeout(FAREWELL_TIME, told).await;
}

async fn encrypted(stream: TcpStream, tls: &TlsAcceptor) -> Option<PrefixedIo<Encrypted>> {
    let stream = BufReader::with_capacity(TLS_RECEIVE_BUFFER, stream);
    let handshake = tls.accept_with(stream, |connection| connection.set_buffer_limit(Some(TLS_SEND_BUFFER)));
    let mut stream = match timeout(GREETING_TIMEOUT, handshake).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            // Port scanners and clients without trust in the certificate: not worth a warning.
            tracing::debug!(%error, "a client did not agree on TLS");
            return None;
        }
        Err(_) => {
            tracing::debug!("a client took too long to agree on TLS");
            return None;
        }
    };
    // HTTP/2 waits for its preface forever, and would hold the permit of a silent client.
    match timeout(GREETING_TIMEOUT, is_greeting(&mut stream)).await {
        Ok(Ok(true)) => Some(PrefixedIo::new(GREETING, stream)),
        Ok(Ok(false)) => {
            farewell(stream, NOT_GRPC).await;
            None
        }
        Ok(Err(_)) | Err(_) => {
            tracing::debug!("a client did not begin to speak HTTP/2 over TLS");
            None
        }
    }
}

/// Reads as many bytes as the greeting of HTTP/2 has, or up to the first that is another one.
async fn is_greeting(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<bool> {
    for expected in GREETING {
        if stream.read_u8().await? != *expected {
            return Ok(false);
        }
    }
    Ok(true)
}

enum Greeting {
    Http2,
    Http1,
    Tls,
    Other,
}

async fn greeting(stream: &TcpStream) -> io::Result<Greeting> {
    let mut seen = [0; GREETING.len()];
    loop {
        let count = stream.peek(&mut seen).await?;
        let bytes = seen.get(..count).unwrap_or_default();
        if bytes == GREETING {
            return Ok(Greeting::Http2);
        }
        match bytes.first() {
            None => return Ok(Greeting::Other),
            Some(&TLS_HANDSHAKE) => return Ok(Greeting::Tls),
            Some(_) => {}
        }
        if !GREETING.starts_with(bytes) {
            let is_text = bytes.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
            return Ok(if is_text { Greeting::Http1 } else { Greeting::Other });
        }
        // A greeting in pieces: rare, and the bytes that are there keep the socket readable.
        sleep(Duration::from_millis(10)).await;
    }
}
