//! Credentials in headers, and the handshake in every form that clients use: with a header, or with a `BasicAuth`
//! payload. [`Server::authenticate_from`](bowshot_api::Server::authenticate_from) checks them.

use crate::connection::Connection;
use crate::status::{framing, refuse};
use arrow_flight::{BasicAuth, HandshakeRequest, HandshakeResponse};
use bowshot_api::{Credentials, Error, ErrorKind, Principal, Result, Secret};
use bytes::Bytes;
use http::HeaderMap;
use prost::Message;
use std::time::Duration;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::{Response, Status, Streaming};

/// Header of the older handshake's token.
const TOKEN_HEADER: &str = "auth-token-bin";
/// How long a handshake without header may take to send its first message.
const FIRST_MESSAGE_TIMEOUT: Duration = Duration::from_secs(5);

/// Reads the credentials in a call's headers.
pub(crate) fn credentials(headers: &HeaderMap) -> Result<Credentials> {
    match (headers.get(http::header::AUTHORIZATION), headers.get(TOKEN_HEADER)) {
        (Some(value), _) => Credentials::in_authorization(value.as_bytes()),
        (None, Some(value)) => Credentials::in_token_header(value.as_bytes()),
        (None, None) => Ok(Credentials::Anonymous),
    }
}

/// Authenticates a call; returns the bearer token too, since it may name a session.
pub(crate) async fn authenticate(
    connection: &Connection,
    headers: &HeaderMap,
) -> Result<(Principal, Option<Secret>)> {
    let credentials = credentials(headers)?;
    let token = match &credentials {
        Credentials::Bearer(token) => Some(token.clone()),
        Credentials::Anonymous | Credentials::Password { .. } | Credentials::Certificate { .. } => None,
    };
    let header = headers.get(http::header::AUTHORIZATION).or_else(|| headers.get(TOKEN_HEADER));
    let header = header.map(http::HeaderValue::as_bytes).unwrap_or_default();
    let credentials = credentials.or_certificate(connection.certificate());
    let principal = connection.identify((header, &credentials)).await?;
    Ok((principal, token))
}

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
    let credentials = credentials.or_certificate(connection.certificate());
    let with_payload = matches!(credentials, Credentials::Password { .. })
        && !headers.contains_key(http::header::AUTHORIZATION);
    let principal = connection.authenticate(&credentials).await.map_err(refuse)?;
    let token = match credentials {
        Credentials::Bearer(token) => token,
        Credentials::Anonymous | Credentials::Password { .. } | Credentials::Certificate { .. } => {
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

/// Credentials from the first message; none in time means anonymous, as without a handshake.
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
    let auth = BasicAuth::decode(payload).map_err(|error| {
        Error::new(ErrorKind::Unauthenticated, "the handshake payload is not a BasicAuth message")
            .with_hint("send user and password in the header `authorization`")
            .with_source(error)
    })?;
    Ok(Credentials::Password { user: auth.username, password: Secret::new(auth.password) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_header_comes_first() {
        let mut headers = HeaderMap::new();
        assert!(matches!(credentials(&headers), Ok(Credentials::Anonymous)));
        headers.insert(TOKEN_HEADER, "YWJj".parse().unwrap());
        assert!(matches!(credentials(&headers), Ok(Credentials::Bearer(token)) if token.expose() == "abc"));
        headers.insert("authorization", "Basic YWRhOnB3".parse().unwrap());
        assert!(matches!(credentials(&headers), Ok(Credentials::Password { user, .. }) if user == "ada"));
    }

    #[test]
    fn payload_of_the_older_handshake() {
        let payload = BasicAuth { username: "ada".into(), password: "pw".into() }.encode_to_vec();
        let Credentials::Password { user, password } = basic_auth(&payload).unwrap() else { panic!() };
        assert_eq!((user.as_str(), password.expose()), ("ada", "pw"));
        assert_eq!(basic_auth(b"\xff\xff").unwrap_err().kind(), ErrorKind::Unauthenticated);
    }
}
