//! Who is calling: credentials as they arrive in headers and handshakes, in every form that clients use.
//!
//! | form | where |
//! |---|---|
//! | HTTP Basic, padded or not | header `authorization`, on the handshake or on any call |
//! | Bearer token | header `authorization`, or `auth-token-bin` of clients with the older handshake |
//! | `BasicAuth` message | payload of the first handshake message |
//! | nothing, or `Bearer None` | anonymous: the server below decides whether that is enough |
//!
//! This file only reads; [`Server::authenticate`](bowshot_api::Server::authenticate) decides.

use crate::connection::Connection;
use crate::status::{framing, refuse};
use arrow_flight::{BasicAuth, HandshakeRequest, HandshakeResponse};
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bowshot_api::{Credentials, Error, ErrorKind, Principal, Result, Secret};
use bytes::Bytes;
use http::HeaderMap;
use prost::Message;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::{Response, Status, Streaming};

/// Header of the older handshake's token.
const TOKEN_HEADER: &str = "auth-token-bin";
/// How long a handshake without header may take to send its first message.
const FIRST_MESSAGE_TIMEOUT: Duration = Duration::from_secs(5);

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Reads the credentials in a call's headers.
pub(crate) fn credentials(headers: &HeaderMap) -> Result<Credentials> {
    if let Some(value) = headers.get(http::header::AUTHORIZATION) {
        let text = value.to_str().map_err(|_| malformed("the authorization header is not text"))?;
        return authorization(text.trim());
    }
    let Some(value) = headers.get(TOKEN_HEADER) else { return Ok(Credentials::Anonymous) };
    let token = BASE64.decode(value.as_bytes()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    token.map(bearer).ok_or_else(|| malformed("the token header is not base64 of a text"))
}

fn authorization(text: &str) -> Result<Credentials> {
    let (scheme, value) = text.split_once(' ').unwrap_or((text, ""));
    let value = value.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        Ok(bearer(value.to_owned()))
    } else if scheme.eq_ignore_ascii_case("basic") {
        let text = BASE64.decode(value).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let text = text.ok_or_else(|| malformed("the basic credentials are not base64 of a text"))?;
        let (user, password) =
            text.split_once(':').ok_or_else(|| malformed("the basic credentials have no colon"))?;
        Ok(Credentials::Password { user: user.to_owned(), password: Secret::new(password) })
    } else {
        Err(malformed("unknown authorization scheme"))
    }
}

/// Some clients write the word `None` where they have no token.
fn bearer(token: String) -> Credentials {
    if token.is_empty() || token == "None" {
        Credentials::Anonymous
    } else {
        Credentials::Bearer(Secret::new(token))
    }
}

fn malformed(message: &str) -> Error {
    Error::new(ErrorKind::Unauthenticated, message)
        .with_hint("send `authorization: Bearer <token>` or `authorization: Basic <base64 of user:password>`")
}

/// A poisoned lock still guards whole entries: every change is one call on the collection.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Authenticates a call; returns the bearer token too, since it may name a session.
pub(crate) async fn authenticate(
    connection: &Connection,
    headers: &HeaderMap,
) -> Result<(Principal, Option<Secret>)> {
    let credentials = credentials(headers)?;
    let token = match &credentials {
        Credentials::Bearer(token) => Some(token.clone()),
        Credentials::Anonymous | Credentials::Password { .. } => None,
    };
    let header = headers.get(http::header::AUTHORIZATION).or_else(|| headers.get(TOKEN_HEADER));
    let header = header.map(http::HeaderValue::as_bytes).unwrap_or_default();
    let (known, epoch) = (connection.known_callers(), connection.users_epoch());
    if let Some(principal) = known.find(header, epoch, Instant::now()) {
        return Ok((principal, token));
    }
    let principal = connection.authenticate(&credentials).await?;
    known.keep(header, &principal, epoch, Instant::now());
    Ok((principal, token))
}

/// The stream of handshake answers: always exactly one.
pub(crate) type HandshakeStream =
    futures::stream::Iter<std::vec::IntoIter<std::result::Result<HandshakeResponse, Status>>>;

/// Answers a handshake of any form with a bearer token in the header `authorization`.
///
/// With credentials in the headers the answer does not wait for a message: some clients send one only after the
/// answer's head has come.
pub(crate) async fn handshake(
    connection: &Connection,
    headers: &HeaderMap,
    messages: Streaming<HandshakeRequest>,
) -> std::result::Result<Response<HandshakeStream>, Status> {
    let mut credentials = credentials(headers).map_err(refuse)?;
    let mut payload = Bytes::new();
    if matches!(credentials, Credentials::Anonymous) && !headers.contains_key(http::header::AUTHORIZATION) {
        credentials = from_payload(messages).await?;
    }
    let with_payload = matches!(credentials, Credentials::Password { .. })
        && !headers.contains_key(http::header::AUTHORIZATION);
    let principal = connection.authenticate(&credentials).await.map_err(refuse)?;
    let token = match credentials {
        Credentials::Bearer(token) => token,
        Credentials::Anonymous | Credentials::Password { .. } => {
            connection.issue_token(&principal).map_err(refuse)?
        }
    };
    if with_payload {
        payload = Bytes::from(token.expose().to_owned());
    }
    let answer = HandshakeResponse { protocol_version: 0, payload };
    let mut response = Response::new(futures::stream::iter(vec![Ok(answer)]));
    let value: MetadataValue<Ascii> = format!("Bearer {}", token.expose())
        .parse()
        .map_err(|_| refuse(Error::internal("an issued token does not fit a header")))?;
    response.metadata_mut().insert("authorization", value);
    Ok(response)
}

/// Credentials from the first message; a client that sends none in time is anonymous, which it would be without the
/// handshake too.
async fn from_payload(mut messages: Streaming<HandshakeRequest>) -> std::result::Result<Credentials, Status> {
    let Ok(first) = tokio::time::timeout(FIRST_MESSAGE_TIMEOUT, messages.message()).await else {
        return Ok(Credentials::Anonymous);
    };
    match first.map_err(framing)? {
        Some(request) if !request.payload.is_empty() => basic_auth(&request.payload).map_err(refuse),
        _ => Ok(Credentials::Anonymous),
    }
}

fn basic_auth(payload: &[u8]) -> Result<Credentials> {
    let auth = BasicAuth::decode(payload)
        .map_err(|error| malformed("the handshake payload is no BasicAuth message").with_source(error))?;
    Ok(Credentials::Password { user: auth.username, password: Secret::new(auth.password) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &'static str, value: &str) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        match credentials(&headers) {
            Ok(Credentials::Anonymous) => "anonymous".to_owned(),
            Ok(Credentials::Password { user, password }) => format!("{user}/{}", password.expose()),
            Ok(Credentials::Bearer(token)) => format!("token {}", token.expose()),
            Err(error) => format!("{:?}: {}", error.kind(), error.message()),
        }
    }

    #[test]
    fn every_form_of_header() {
        for (name, value, expected) in [
            ("authorization", "Basic YWRhOnB3", "ada/pw"),
            ("authorization", "Basic YWRhOnB3cA==", "ada/pwp"),
            ("authorization", "Basic YWRhOnB3cA", "ada/pwp"),
            ("authorization", "basic YWRhOmE6Yg==", "ada/a:b"),
            ("authorization", "Bearer abc", "token abc"),
            ("authorization", "bearer  abc ", "token abc"),
            ("authorization", "Bearer None", "anonymous"),
            ("authorization", "Bearer", "anonymous"),
            ("auth-token-bin", "YWJj", "token abc"),
            ("authorization", "Basic YWRh", "Unauthenticated: the basic credentials have no colon"),
            ("authorization", "Basic ?", "Unauthenticated: the basic credentials are not base64 of a text"),
            ("authorization", "Negotiate x", "Unauthenticated: unknown authorization scheme"),
            ("authorization", "", "Unauthenticated: unknown authorization scheme"),
            ("auth-token-bin", "/w==", "Unauthenticated: the token header is not base64 of a text"),
        ] {
            assert_eq!(read(name, value), expected, "{name}: {value}");
        }
        assert!(matches!(credentials(&HeaderMap::new()), Ok(Credentials::Anonymous)));
    }

    #[test]
    fn payload_of_the_older_handshake() {
        let payload = BasicAuth { username: "ada".into(), password: "pw".into() }.encode_to_vec();
        let Credentials::Password { user, password } = basic_auth(&payload).unwrap() else { panic!() };
        assert_eq!((user.as_str(), password.expose()), ("ada", "pw"));
        assert_eq!(basic_auth(b"\xff\xff").unwrap_err().kind(), ErrorKind::Unauthenticated);
    }
}
