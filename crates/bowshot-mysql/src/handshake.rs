//! The packets of the "Connection Phase": the server's greeting, the client's request for encryption, and its handshake
//! response.

use crate::capability::{
    AUTOCOMMIT, CONNECT_ATTRS, CONNECT_WITH_DB, OFFERED, PLUGIN_AUTH, PLUGIN_AUTH_LENENC, PROTOCOL_41, SSL,
    ZSTD,
};
use crate::payload::{Payload, text};
use crate::server_packets::UTF8MB4;
use crate::status::Failure;
use bowshot_api::QueryId;
use bytes::{BufMut, Bytes, BytesMut};

/// The version of the protocol.
const PROTOCOL: u8 = 10;
/// The version of MySQL whose protocol and variables clients may expect.
pub(crate) const SERVER_VERSION: &str = concat!("8.0.36-Bowshot-", env!("CARGO_PKG_VERSION"));
/// The default authentication plugin.
pub(crate) const CACHING_SHA2: &str = "caching_sha2_password";
/// Bytes of a challenge.
const CHALLENGE: usize = 20;
/// Bytes of the fixed part of a handshake response, which is all of a request for encryption.
const HEAD: usize = 32;

/// The random challenge of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Challenge(Vec<u8>);

impl Challenge {
    /// Random printable characters: a zero byte would end them.
    pub(crate) fn new() -> Self {
        let random = || {
            let id = QueryId::random();
            // The first four bytes are random, and so are the last four.
            let [a, b, c, d, .., w, x, y, z] = *id.as_bytes();
            [a, b, c, d, w, x, y, z]
        };
        let bytes = std::iter::repeat_with(random).flatten();
        Self(bytes.take(CHALLENGE).map(|byte| byte % 94 + 33).collect())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The first packet of the server ("Protocol::HandshakeV10").
pub(crate) fn greeting(out: &mut BytesMut, connection: u32, challenge: &Challenge, is_encrypting: bool) {
    let capabilities = if is_encrypting { OFFERED | SSL } else { OFFERED };
    let [low, more, high, highest] = capabilities.to_le_bytes();
    let (first, rest) = challenge.0.split_at(8);
    out.put_u8(PROTOCOL);
    out.put_slice(SERVER_VERSION.as_bytes());
    out.put_u8(0);
    out.put_u32_le(connection);
    out.put_slice(first);
    out.put_slice(&[0, low, more, UTF8MB4.to_le_bytes()[0]]);
    out.put_u16_le(AUTOCOMMIT);
    out.put_slice(&[high, highest, CHALLENGE as u8 + 1]);
    out.put_bytes(0, 10);
    out.put_slice(rest);
    out.put_u8(0);
    out.put_slice(CACHING_SHA2.as_bytes());
    out.put_u8(0);
}

/// The handshake response of a client.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct HandshakeResponse {
    pub(crate) capabilities: u32,
    pub(crate) user: String,
    /// The scramble that its plugin has made of the challenge.
    pub(crate) answer: Bytes,
    pub(crate) plugin: Option<String>,
    pub(crate) database: Option<String>,
    /// The name of the client's program.
    pub(crate) program: Option<String>,
    /// The level of Zstandard compression.
    pub(crate) zstd_level: u8,
}

/// Whether the first message of a client asks for encryption.
pub(crate) fn wants_encryption(message: &Payload) -> bool {
    let mut message = message.clone();
    let capabilities = message.int().unwrap_or(0);
    capabilities & SSL != 0 && message.rest().len() == HEAD - 4
}

impl HandshakeResponse {
    /// "Protocol::HandshakeResponse41"
    pub(crate) fn parse(mut body: Payload) -> Result<Self, Failure> {
        let capabilities = body.int()?;
        if capabilities & PROTOCOL_41 == 0 || capabilities & PLUGIN_AUTH == 0 {
            let message = "client does not support authentication protocol requested by server";
            return Err(Failure::new(1251, "08004", message).with_hint("use a client of MySQL 5.6 or newer"));
        }
        // Longest packet, character set, and nothing.
        body.bytes(HEAD - 4)?;
        let user = body.zero_ended_text()?;
        let answer = if capabilities & PLUGIN_AUTH_LENENC != 0 {
            body.counted()?
        } else {
            let length = usize::from(body.byte()?);
            body.bytes(length)?
        };
        let database = if capabilities & CONNECT_WITH_DB != 0 { Some(body.zero_ended_text()?) } else { None };
        let plugin = Some(body.zero_ended_text()?);
        let program = if capabilities & CONNECT_ATTRS != 0 { program(&mut body)? } else { None };
        let zstd_level = if capabilities & ZSTD != 0 && !body.is_empty() { body.byte()? } else { 0 };
        let database = database.filter(|name| !name.is_empty());
        let capabilities = capabilities & (OFFERED | SSL);
        Ok(Self { capabilities, user, answer, plugin, database, program, zstd_level })
    }

    /// "COM_CHANGE_USER", without its first byte, from a client with these capabilities.
    pub(crate) fn parse_change(mut body: Payload, capabilities: u32) -> Result<Self, Failure> {
        let user = body.zero_ended_text()?;
        let length = usize::from(body.byte()?);
        let answer = body.bytes(length)?;
        let database = Some(body.zero_ended_text()?).filter(|name| !name.is_empty());
        let mut response =
            Self { capabilities, user, answer, plugin: None, database, program: None, zstd_level: 0 };
        if !body.is_empty() {
            // The character set.
            body.short()?;
            response.plugin = Some(body.zero_ended_text()?);
            response.program = program(&mut body)?;
        }
        Ok(response)
    }
}

/// The connection attribute `program_name`; a client may omit the attributes although it supports them.
fn program(body: &mut Payload) -> Result<Option<String>, Failure> {
    if body.is_empty() {
        return Ok(None);
    }
    let attributes = body.counted()?;
    let mut attributes = Payload::new(BytesMut::from(attributes));
    let mut program = None;
    while !attributes.is_empty() {
        let (name, value) = (attributes.counted()?, attributes.counted()?);
        if name.as_ref() == b"program_name" {
            program = Some(text(&value)?);
        }
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(capabilities: u32, rest: &[u8]) -> Result<HandshakeResponse, Failure> {
        let mut body = BytesMut::new();
        body.put_u32_le(capabilities);
        body.put_bytes(0, HEAD - 4);
        body.put_slice(rest);
        HandshakeResponse::parse(Payload::new(body))
    }

    #[test]
    fn clients_say_who_they_are() {
        let all = PROTOCOL_41 | PLUGIN_AUTH | PLUGIN_AUTH_LENENC | CONNECT_WITH_DB | CONNECT_ATTRS;
        let rest = b"ada\0\x02xyd\0plug\0\x10\x0cprogram_name\x02me";
        let found = response(all, rest).unwrap();
        assert_eq!((found.user.as_str(), found.answer.as_ref()), ("ada", b"xy".as_ref()));
        assert_eq!(
            (found.database.as_deref(), found.plugin.as_deref(), found.program.as_deref()),
            (Some("d"), Some("plug"), Some("me"))
        );
        for cut in 0..rest.len() {
            // Attributes alone may be left away.
            assert_eq!(response(all, &rest[..cut]).is_ok(), cut == 14, "{cut}");
        }
        let few = response(PROTOCOL_41 | PLUGIN_AUTH, b"ada\0\x02xyplug\0").unwrap();
        assert_eq!((few.database, few.program), (None, None));
        assert!(response(0, rest).is_err());
        assert!(response(all, b"\xff\0\0d\0plug\0").is_err());
    }

    #[test]
    fn requests_for_encryption_are_short() {
        let request = |bytes: &[u8]| wants_encryption(&Payload::new(BytesMut::from(bytes)));
        let mut bytes = [0; HEAD];
        assert!(!request(&bytes));
        bytes[1] = 8;
        assert!(request(&bytes));
        assert!(!request(&bytes[..31]) && !request(b"") && !request(&[8; 33]));
    }

    #[test]
    fn challenges_differ_and_have_no_zeros() {
        let (one, other) = (Challenge::new(), Challenge::new());
        assert_ne!(one.0, other.0);
        assert_eq!(one.0.len(), CHALLENGE);
        assert!(one.0.iter().all(|byte| (33..127).contains(byte)));
    }
}
