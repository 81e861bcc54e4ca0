//! Parses a token. Its content is untrusted until the signature is checked.

use super::keys::Algorithm;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Longest token.
const MAX_BYTES: usize = 16 << 10;

#[derive(Debug)]
pub(super) struct Unverified<'a> {
    pub(super) algorithm: Algorithm,
    pub(super) kid: Option<String>,
    /// The signed part.
    pub(super) signed: &'a [u8],
    pub(super) signature: Vec<u8>,
    pub(super) claims: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    crit: Option<Value>,
}

/// Whether a text has three parts, of which the first begins as a JSON object does.
pub(super) fn has_form(text: &str) -> bool {
    text.starts_with("eyJ") && text.bytes().filter(|byte| *byte == b'.').count() == 2
}

impl<'a> Unverified<'a> {
    /// # Errors
    /// The reason why it is no token that could be checked.
    pub(super) fn read(text: &'a str) -> Result<Self, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("it has more than {MAX_BYTES} bytes"));
        }
        let (signed, signature) = text.rsplit_once('.').ok_or("it has no signature")?;
        let (header, claims) = signed.split_once('.').ok_or("it has no claims")?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| "a part is not base64".to_owned());
        let header: Header = serde_json::from_slice(&decode(header)?)
            .map_err(|error| format!("its header cannot be read: {error}"))?;
        let algorithm = Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == header.alg);
        let algorithm = algorithm.ok_or("its algorithm has no public key")?;
        if header.crit.is_some() {
            return Err("its header has extensions that are not known here".to_owned());
        }
        let kind = header.typ.unwrap_or_else(|| "JWT".to_owned()).to_ascii_lowercase();
        if !matches!(kind.trim_start_matches("application/"), "jwt" | "at+jwt") {
            // Other kinds of tokens are signed with the same keys.
            return Err("it is a token of another kind".to_owned());
        }
        let claims = serde_json::from_slice(&decode(claims)?)
            .map_err(|error| format!("its claims cannot be read: {error}"))?;
        let signature = decode(signature)?;
        Ok(Self { algorithm, kid: header.kid, signed: signed.as_bytes(), signature, claims })
    }

    /// The claimed issuer.
    pub(super) fn issuer(&self) -> Option<&str> {
        self.claims.get("iss")?.as_str()
    }
}
