//! The first packets of a connection (PostgreSQL manual, "Start-up", "SSL Session Encryption"): a request for encryption, a
//! request to cancel, or the start-up of a session.
//!
//! No byte is read beyond a packet: what follows a request for encryption must come through TLS, so that nobody on the
//! network can inject data before it.

use crate::frontend_messages::Body;
use crate::status::{ConnectionError, Failure, Result};
use bowshot_rowwire::{Stream, accept_tls};
use bytes::{Buf, Bytes};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_util::either::Either;

/// Longest first packet in bytes, as in PostgreSQL (`MAX_STARTUP_PACKET_LENGTH`).
const MAX_PACKET: usize = 10_000;
/// Requests before the start-up packet: encryption by GSSAPI, then by TLS.
const MAX_REQUESTS: usize = 4;
/// The first byte of a TLS handshake (RFC 8446, section 5.1).
const TLS_HANDSHAKE: u8 = 22;

const CANCEL: i32 = 80_877_102;
const SSL: i32 = 80_877_103;
const GSSENC: i32 = 80_877_104;
/// The supported major version of the protocol.
const MAJOR: i32 = 3;

/// What a client wants.
pub(crate) enum Handshake {
    Session(Stream, Startup),
    Cancel {
        process: i32,
        secret: i32,
    },
    /// It has gone, or speaks another protocol.
    Closed,
}

/// The start-up packet.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Startup {
    /// The minor version of the protocol that the client asks for.
    pub(crate) minor: i32,
    /// Names and values, in order.
    pub(crate) parameters: Vec<(String, String)>,
}

impl Startup {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Reads the first packets, over TLS if the client asks for it.
///
/// # Errors
/// With the stream, on which the client gets the error.
pub(crate) async fn accept(
    stream: TcpStream,
    tls: Option<&TlsAcceptor>,
) -> std::result::Result<Handshake, (Stream, ConnectionError)> {
    let mut stream: Stream = match direct(stream, tls).await {
        Some(stream) => stream,
        None => return Ok(Handshake::Closed),
    };
    for _ in 0..MAX_REQUESTS {
        let (code, rest) = match packet(&mut stream).await {
            Ok(packet) => packet,
            Err(ConnectionError::Closed) => return Ok(Handshake::Closed),
            Err(error) => return Err((stream, error)),
        };
        match (code, stream) {
            (SSL, Either::Left(plain)) => match negotiate(plain, tls).await {
                Some(negotiated) => stream = negotiated,
                None => return Ok(Handshake::Closed),
            },
            (SSL | GSSENC, mut other) => {
                if other.write_all(b"N").await.is_err() {
                    return Ok(Handshake::Closed);
                }
                stream = other;
            }
            (CANCEL, _) => return Ok(cancel(rest)),
            (version, other) if version >> 16 == MAJOR => {
                return match startup(version & 0xffff, rest) {
                    Ok(startup) => Ok(Handshake::Session(other, startup)),
                    Err(failure) => Err((other, failure.fatal())),
                };
            }
            (version, other) => {
                let message = format!("unsupported frontend protocol {}.{}", version >> 16, version & 0xffff);
                return Err((
                    other,
                    Failure::new("0A000", message).with_hint("this server speaks 3.0").fatal(),
                ));
            }
        }
    }
    Ok(Handshake::Closed)
}

/// TLS without a request before it, as clients of PostgreSQL 17 may begin.
async fn direct(stream: TcpStream, tls: Option<&TlsAcceptor>) -> Option<Stream> {
    let mut first = [0];
    match (stream.peek(&mut first).await, first, tls) {
        (Ok(1), [TLS_HANDSHAKE], Some(tls)) => {
            let stream = accept_tls(stream, tls).await?;
            // Without the name a client of another protocol could be redirected here (PostgreSQL manual, "SSL Session
            // Encryption").
            let Either::Right(encrypted) = &stream else { return None };
            (encrypted.get_ref().1.alpn_protocol() == Some(ALPN)).then_some(stream)
        }
        (Ok(1), [TLS_HANDSHAKE], None) | (Ok(0) | Err(_), ..) => None,
        (Ok(_), ..) => Some(Either::Left(stream)),
    }
}

/// The name of the protocol in TLS (ALPN).
pub(crate) const ALPN: &[u8] = b"postgresql";

/// Answers a request for encryption.
async fn negotiate(mut stream: TcpStream, tls: Option<&TlsAcceptor>) -> Option<Stream> {
    match tls {
        None => stream.write_all(b"N").await.ok().map(|()| Either::Left(stream)),
        Some(tls) => {
            stream.write_all(b"S").await.ok()?;
            accept_tls(stream, tls).await
        }
    }
}

/// A packet: its code and the rest.
async fn packet(stream: &mut Stream) -> Result<(i32, Bytes)> {
    let length = usize::try_from(stream.read_i32().await?).unwrap_or(0);
    if !(8..=MAX_PACKET).contains(&length) {
        return Err(Failure::protocol("invalid length of startup packet").fatal());
    }
    let code = stream.read_i32().await?;
    let mut rest = vec![0; length - 8];
    stream.read_exact(&mut rest).await?;
    Ok((code, Bytes::from(rest)))
}

fn cancel(mut rest: Bytes) -> Handshake {
    match (rest.try_get_i32(), rest.try_get_i32(), rest.has_remaining()) {
        (Ok(process), Ok(secret), false) => Handshake::Cancel { process, secret },
        _ => Handshake::Closed,
    }
}

fn startup(minor: i32, rest: Bytes) -> std::result::Result<Startup, Failure> {
    let mut body = Body(rest);
    let mut parameters = Vec::new();
    loop {
        let name = body.text()?;
        if name.is_empty() {
            break;
        }
        parameters.push((name, body.text()?));
    }
    if body.0.has_remaining() {
        return Err(Failure::protocol("invalid startup packet layout"));
    }
    Ok(Startup { minor, parameters })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &'static [u8]) -> Option<Startup> {
        startup(0, Bytes::from_static(bytes)).ok()
    }

    #[test]
    fn startups_end_with_a_zero() {
        let found = read(b"user\0ada\0database\0d\0\0").unwrap();
        assert_eq!(
            (found.get("user"), found.get("database"), found.get("x")),
            (Some("ada"), Some("d"), None)
        );
        for cut in
            [b"".as_ref(), b"user\0ada\0", b"user\0ada", b"user\0\0", b"user\0ada\0\0x", b"\xff\0a\0\0"]
        {
            assert_eq!(read(cut), None, "{cut:?}");
        }
    }

    #[test]
    fn requests_to_cancel_have_eight_bytes() {
        assert!(matches!(
            cancel(Bytes::from_static(b"\0\0\0\x01\0\0\0\x02")),
            Handshake::Cancel { process: 1, secret: 2 }
        ));
        for bytes in [b"\0\0\0\x01\0\0\0".as_ref(), b"\0\0\0\x01\0\0\0\x02x", b""] {
            assert!(matches!(cancel(Bytes::copy_from_slice(bytes)), Handshake::Closed));
        }
    }
}
