//! Credentials as they arrive in the header `authorization`: HTTP Basic, or a bearer token of the configuration or of a
//! handshake over Flight. This file only reads; [`Server::authenticate_from`](bowshot_api::Server::authenticate_from) decides.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bowshot_api::{Credentials, Error, ErrorKind, Principal, Result, Secret};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a checked header is good without a new check, so that a revoked one does not live with the connection.
const CACHE_TIME: Duration = Duration::from_secs(60);
/// Different callers that one connection's cache keeps; a proxy may carry several.
const CACHE_ENTRIES: usize = 8;

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

/// Headers that one connection has shown and that were good, so that a password is not hashed for each request.
#[derive(Default)]
pub(crate) struct Cache(Mutex<Vec<Known>>);

struct Known {
    header: Vec<u8>,
    principal: Principal,
    until: Instant,
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cache")
    }
}

impl Cache {
    pub(crate) fn find(&self, header: &[u8], now: Instant) -> Option<Principal> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|entry| entry.until > now);
        known.iter().find(|entry| entry.header == header).map(|entry| entry.principal.clone())
    }

    pub(crate) fn keep(&self, header: &[u8], principal: &Principal, now: Instant) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= CACHE_ENTRIES {
            known.remove(0);
        }
        known.push(Known { header: header.to_vec(), principal: principal.clone(), until: now + CACHE_TIME });
    }
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

    #[test]
    fn the_cache_forgets() {
        let cache = Cache::default();
        let now = Instant::now();
        cache.keep(b"a", &Principal::user("ada"), now);
        assert_eq!(cache.find(b"a", now), Some(Principal::user("ada")));
        assert_eq!(cache.find(b"b", now), None);
        assert_eq!(cache.find(b"a", now + CACHE_TIME), None);
    }
}
