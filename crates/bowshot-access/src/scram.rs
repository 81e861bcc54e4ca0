//! SCRAM-SHA-256 (RFC 5802, RFC 7677) against a verifier created with the Argon2 hash. Channel binding is not
//! offered; clients that require it are refused.
//!
//! Unknown users get a salt that depends on the name only, the same amount of work, and a refusal at the end.

use crate::Error;
use aws_lc_rs::{hmac, pbkdf2};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowshot_api::Secret;
use sha2::{Digest, Sha256};
use std::fmt;
use std::num::NonZeroU32;
use subtle::ConstantTimeEq;

/// The mechanism, as verifiers and the protocol name it.
const MECHANISM: &str = "SCRAM-SHA-256";
/// Iterations of a new verifier: the cost of each login, and of each guess with a stolen verifier.
const ROUNDS: u32 = 16_384;
/// Accepted iterations: fewer than RFC 7677 requires are weak, more are slow for clients.
const ALLOWED_ROUNDS: std::ops::RangeInclusive<u32> = 4_096..=10_000_000;
/// Bytes of a new salt.
const SALT_BYTES: usize = 16;
/// Longest message and nonce of a client.
const MAX_MESSAGE_BYTES: usize = 4_096;
/// Random bytes that the server adds to a client's nonce.
const NONCE_BYTES: usize = 18;

type Digest32 = [u8; 32];

/// A SCRAM verifier, in PostgreSQL's text format.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Verifier {
    rounds: NonZeroU32,
    salt: Vec<u8>,
    stored_key: Digest32,
    server_key: Digest32,
}

bowshot_api::debug_fields!(Verifier {});

impl fmt::Display for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [salt, stored, server] =
            [self.salt.as_slice(), &self.stored_key, &self.server_key].map(|bytes| STANDARD.encode(bytes));
        write!(f, "{MECHANISM}${}:{salt}${stored}:{server}", self.rounds)
    }
}

impl Verifier {
    /// A verifier of a password, with a random salt.
    pub(crate) fn from_password(password: &Secret) -> Result<Self, Error> {
        let mut salt = vec![0_u8; SALT_BYTES];
        getrandom::fill(&mut salt).map_err(Error::NoRandomness)?;
        let rounds = NonZeroU32::new(ROUNDS).unwrap_or(NonZeroU32::MIN);
        Ok(Self::salted(password, salt, rounds))
    }

    fn salted(password: &Secret, salt: Vec<u8>, rounds: NonZeroU32) -> Self {
        let salted = salted_password(password, &salt, rounds);
        let client_key = sign(&salted, b"Client Key");
        let stored_key = Sha256::digest(client_key).into();
        Self { rounds, salt, stored_key, server_key: sign(&salted, b"Server Key") }
    }

    /// Parses a verifier; `None` if it is malformed or its iteration count is out of bounds.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(MECHANISM)?.strip_prefix('$')?;
        let (work, keys) = rest.split_once('$')?;
        let ((rounds, salt), (stored, server)) = (work.split_once(':')?, keys.split_once(':')?);
        let rounds: u32 = rounds.parse().ok().filter(|rounds| ALLOWED_ROUNDS.contains(rounds))?;
        let salt = STANDARD.decode(salt).ok().filter(|salt| !salt.is_empty() && salt.len() <= 256)?;
        Some(Self {
            rounds: NonZeroU32::new(rounds)?,
            salt,
            stored_key: STANDARD.decode(stored).ok()?.try_into().ok()?,
            server_key: STANDARD.decode(server).ok()?.try_into().ok()?,
        })
    }

    /// A stand-in for the verifier of an unknown user: the same work, a salt that depends on the name, random keys.
    pub(crate) fn stand_in(&self, user: &str) -> Self {
        let derived = |purpose: &str| sign(&self.server_key, format!("{purpose} of {user}").as_bytes());
        let salt = derived("salt").into_iter().cycle().take(self.salt.len()).collect();
        let (stored_key, server_key) = (derived("stored key"), derived("server key"));
        Self { rounds: self.rounds, salt, stored_key, server_key }
    }
}

fn salted_password(password: &Secret, salt: &[u8], rounds: NonZeroU32) -> Digest32 {
    // Clients use unpreparable passwords unchanged, too.
    let prepared = stringprep::saslprep(password.expose());
    let prepared = prepared.as_deref().unwrap_or(password.expose());
    let mut salted = Digest32::default();
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, salt, prepared.as_bytes(), &mut salted);
    salted
}

fn sign(key: &[u8], text: &[u8]) -> Digest32 {
    let mut signature = Digest32::default();
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text);
    signature.copy_from_slice(tag.as_ref());
    signature
}

/// Protocol errors of a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// It does not speak the protocol, or something of it that is not offered.
    Message(&'static str),
    Password,
}

/// The server's side of one exchange.
#[derive(Debug)]
pub(crate) struct Exchange {
    verifier: Verifier,
    begun: Option<InProgress>,
}

#[derive(Debug)]
struct InProgress {
    /// The expected channel binding of the client.
    binding: String,
    nonce: String,
    /// The client's first message without its header, and the server's.
    transcript: String,
}

impl Exchange {
    pub(crate) fn new(verifier: Verifier) -> Self {
        Self { verifier, begun: None }
    }

    pub(crate) fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    /// Answers the client's first message. `random` extends the nonce.
    pub(crate) fn challenge(&mut self, first: &[u8], random: &str) -> Result<String, Wrong> {
        let first = text(first)?;
        let (header, bare) = gs2(first)?;
        let mut parts = bare.split(',');
        if parts.next().and_then(|part| part.strip_prefix("n=")).is_none() {
            return Err(Wrong::Message("the user name is missing, or a mandatory extension is asked for"));
        }
        let nonce = parts.next().and_then(|part| part.strip_prefix("r=")).filter(|nonce| is_nonce(nonce));
        let nonce = format!("{}{random}", nonce.ok_or(Wrong::Message("the nonce is missing"))?);
        let Verifier { salt, rounds, .. } = &self.verifier;
        let answer = format!("r={nonce},s={},i={rounds}", STANDARD.encode(salt));
        let transcript = format!("{bare},{answer}");
        self.begun = Some(InProgress { binding: STANDARD.encode(header), nonce, transcript });
        Ok(answer)
    }

    /// Checks the client's last message; returns the server's proof. The exchange ends with this.
    pub(crate) fn finish(&mut self, last: &[u8]) -> Result<String, Wrong> {
        let begun = self.begun.take().ok_or(Wrong::Message("the exchange has not begun"))?;
        let last = text(last)?;
        let (unproven, proof) =
            last.rsplit_once(",p=").ok_or(Wrong::Message("the proof of the client is missing"))?;
        let mut parts = unproven.split(',');
        if parts.next().and_then(|part| part.strip_prefix("c=")) != Some(begun.binding.as_str()) {
            return Err(Wrong::Message("the channel binding is not the one of the first message"));
        }
        if parts.next().and_then(|part| part.strip_prefix("r=")) != Some(begun.nonce.as_str()) {
            return Err(Wrong::Message("the nonce is not the one of this exchange"));
        }
        let proof: Digest32 = STANDARD
            .decode(proof)
            .ok()
            .and_then(|proof| proof.try_into().ok())
            .ok_or(Wrong::Message("the proof of the client is not 32 bytes in base64"))?;
        let transcript = format!("{},{unproven}", begun.transcript);
        let signature = sign(&self.verifier.stored_key, transcript.as_bytes());
        let mut client_key = proof;
        client_key.iter_mut().zip(signature).for_each(|(byte, mask)| *byte ^= mask);
        let answer = STANDARD.encode(sign(&self.verifier.server_key, transcript.as_bytes()));
        let stored: Digest32 = Sha256::digest(client_key).into();
        if bool::from(stored.ct_eq(&self.verifier.stored_key)) {
            Ok(format!("v={answer}"))
        } else {
            Err(Wrong::Password)
        }
    }
}

/// The server's part of a nonce.
pub(crate) fn random_nonce() -> Result<String, Error> {
    let mut bytes = [0_u8; NONCE_BYTES];
    getrandom::fill(&mut bytes).map_err(Error::NoRandomness)?;
    Ok(STANDARD.encode(bytes))
}

fn text(message: &[u8]) -> Result<&str, Wrong> {
    let text = std::str::from_utf8(message).ok().filter(|text| text.len() <= MAX_MESSAGE_BYTES);
    text.ok_or(Wrong::Message("a message is not UTF-8 text, or too long"))
}

/// The header of the first message with its commas, and the rest.
fn gs2(first: &str) -> Result<(&str, &str), Wrong> {
    let commas = first.match_indices(',').map(|(at, _)| at).nth(1);
    let Some((header, bare)) = commas.and_then(|at| first.split_at_checked(at + 1)) else {
        return Err(Wrong::Message("the first message has no header"));
    };
    match header.split(',').next() {
        // Clients that support channel binding but see none continue without.
        Some("n" | "y") => {}
        Some(flag) if flag.starts_with("p=") => {
            return Err(Wrong::Message("channel binding is not offered"));
        }
        _ => return Err(Wrong::Message("the first message has no header")),
    }
    if header.len() > 3 {
        return Err(Wrong::Message("logging in as another user is not supported"));
    }
    Ok((header, bare))
}

fn is_nonce(nonce: &str) -> bool {
    !nonce.is_empty()
        && nonce.len() <= MAX_MESSAGE_BYTES / 4
        && nonce.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests;
