//! Credentials as they arrive in the header `authorization`: HTTP Basic, or a bearer token of the configuration or of a
//! handshake over Flight. This file only reads; [`Server::authenticate_from`](bowshot_api::Server::authenticate_from) decides.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bowshot_api::{Credentials, Error, ErrorKind, Result, Secret};

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Reads the credentials of a request.
pub(crate) fn credentials(headers: &HeaderMap) -> Result<Credentials> {
    let Some(value) = headers.get(AUTHORIZATION) else { return Ok(Credentials::Anonymous) };
    let text = value.to_str().map_err(|_| malformed("the authorization header is not text"))?.trim();
    let (scheme, value) = text.split_once(' ').unwrap_or((text, ""));
    let value = value.trim();
    if scheme.eq_ignore_ascii_case("bearer") && !value.is_empty() {
        return Ok(Credentials::Bearer(Secret::new(value)));
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(malformed("unknown authorization scheme"));
    }
    let text = BASE64.decode(value).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.ok_or_else(|| malformed("the basic credentials are not base64 of a text"))?;
    let (user, password) =
        text.split_once(':').ok_or_else(|| malformed("the basic credentials have no colon"))?;
    Ok(Credentials::Password { user: user.to_owned(), password: Secret::new(password) })
}

fn malformed(message: &str) -> Error {
    Error::new(ErrorKind::Unauthenticated, message)
        .with_hint("send `authorization: Bearer <token>` or `authorization: Basic <base64 of user:password>`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, value.parse().unwrap());
        match credentials(&headers) {
            Ok(Credentials::Anonymous) => "anonymous".to_owned(),
            Ok(Credentials::Password { user, password }) => format!("{user}/{}", password.expose()),
            Ok(Credentials::Bearer(token)) => format!("token {}", token.expose()),
            Err(error) => format!("{:?}: {}", error.kind(), error.message()),
        }
    }

    #[test]
    fn every_form_of_header() {
        for (value, expected) in [
            ("Basic YWRhOnB3", "ada/pw"),
            ("basic YWRhOnB3cA", "ada/pwp"),
            ("Basic YWRhOmE6Yg==", "ada/a:b"),
            ("Bearer abc", "token abc"),
            ("bearer  abc ", "token abc"),
            ("Bearer", "Unauthenticated: unknown authorization scheme"),
            ("Basic YWRh", "Unauthenticated: the basic credentials have no colon"),
            ("Basic ?", "Unauthenticated: the basic credentials are not base64 of a text"),
            ("Negotiate x", "Unauthenticated: unknown authorization scheme"),
            ("", "Unauthenticated: unknown authorization scheme"),
        ] {
            assert_eq!(read(value), expected, "{value}");
        }
        assert!(matches!(credentials(&HeaderMap::new()), Ok(Credentials::Anonymous)));
    }
}
