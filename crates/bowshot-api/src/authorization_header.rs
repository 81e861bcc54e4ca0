//! Parses credentials from request headers, in every form that clients send. [`Server`](crate::Server) checks them.
//!
//! | form | where |
//! |---|---|
//! | HTTP Basic, padded or not | header `authorization` |
//! | bearer token | header `authorization`, or `auth-token-bin` of Flight's older handshake, in base64 |
//! | nothing, or `Bearer None` | anonymous: the server decides whether that is enough |

use crate::{Credentials, Error, ErrorKind, Result, Secret};
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl Credentials {
    /// Reads the value of a header `authorization`.
    ///
    /// # Errors
    /// `Unauthenticated` for one that is neither Basic nor Bearer.
    ///
    /// ```
    /// use bowshot_api::Credentials;
    /// assert!(matches!(Credentials::in_authorization(b"Bearer abc"), Ok(Credentials::Bearer(_))));
    /// ```
    pub fn in_authorization(value: &[u8]) -> Result<Self> {
        let text = std::str::from_utf8(value).ok().filter(|text| !text.contains(char::is_control));
        let text = text.ok_or_else(|| malformed("the authorization header is not text"))?.trim();
        let (scheme, value) = text.split_once(' ').unwrap_or((text, ""));
        let value = value.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            return Ok(Self::bearer(value.to_owned()));
        }
        if !scheme.eq_ignore_ascii_case("basic") {
            return Err(malformed("unknown authorization scheme"));
        }
        let text = decoded(value.as_bytes());
        let text = text.ok_or_else(|| malformed("the basic credentials are not base64 of a text"))?;
        let (user, password) =
            text.split_once(':').ok_or_else(|| malformed("the basic credentials have no colon"))?;
        Ok(Self::Password { user: user.to_owned(), password: Secret::new(password) })
    }

    /// Reads the value of a header that holds a token alone, in base64.
    ///
    /// # Errors
    /// `Unauthenticated` for one that is no base64 of a text.
    pub fn in_token_header(value: &[u8]) -> Result<Self> {
        let token = decoded(value).ok_or_else(|| malformed("the token header is not base64 of a text"))?;
        Ok(Self::bearer(token))
    }

    /// Some clients write the word `None` where they have no token.
    fn bearer(token: String) -> Self {
        if token.is_empty() || token == "None" { Self::Anonymous } else { Self::Bearer(Secret::new(token)) }
    }
}

fn decoded(value: &[u8]) -> Option<String> {
    BASE64.decode(value).ok().and_then(|bytes| String::from_utf8(bytes).ok())
}

fn malformed(message: &str) -> Error {
    Error::new(ErrorKind::Unauthenticated, message)
        .with_hint("send `authorization: Bearer <token>` or `authorization: Basic <base64 of user:password>`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(read: Result<Credentials>) -> String {
        match read {
            Ok(Credentials::Anonymous) => "anonymous".to_owned(),
            Ok(Credentials::Password { user, password }) => format!("{user}/{}", password.expose()),
            Ok(Credentials::Bearer(token)) => format!("token {}", token.expose()),
            Ok(Credentials::Certificate { .. }) => "no header holds a certificate".to_owned(),
            Err(error) => format!("{:?}: {}", error.kind(), error.message()),
        }
    }

    #[test]
    fn every_form_of_header() {
        for (value, expected) in [
            ("Basic YWRhOnB3", "ada/pw"),
            ("Basic YWRhOnB3cA==", "ada/pwp"),
            ("Basic YWRhOnB3cA", "ada/pwp"),
            ("basic YWRhOmE6Yg==", "ada/a:b"),
            ("Bearer abc", "token abc"),
            ("bearer  abc ", "token abc"),
            ("Bearer None", "anonymous"),
            ("Bearer", "anonymous"),
            ("Basic YWRh", "Unauthenticated: the basic credentials have no colon"),
            ("Basic ?", "Unauthenticated: the basic credentials are not base64 of a text"),
            ("Negotiate x", "Unauthenticated: unknown authorization scheme"),
            ("", "Unauthenticated: unknown authorization scheme"),
        ] {
            assert_eq!(shown(Credentials::in_authorization(value.as_bytes())), expected, "{value}");
        }
        let binary = "Unauthenticated: the authorization header is not text";
        assert_eq!(shown(Credentials::in_authorization(b"Bearer \xff")), binary);
        assert_eq!(shown(Credentials::in_token_header(b"YWJj")), "token abc");
        let wrong = "Unauthenticated: the token header is not base64 of a text";
        assert_eq!(shown(Credentials::in_token_header(b"/w==")), wrong);
    }
}
