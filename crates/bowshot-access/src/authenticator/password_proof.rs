//! One SCRAM-SHA-256 login.

use super::refused;
use crate::scram::{Exchange, Verifier, Wrong, random_nonce};
use bowshot_api::{Error, ErrorKind, Principal, Result};

/// The server's side of one SCRAM-SHA-256 login. Two messages of the client, two answers.
#[derive(Debug)]
pub struct PasswordProof {
    user: String,
    exchange: Exchange,
    /// Whether the user exists; else a stand-in is used, and the login fails.
    own: bool,
}

impl PasswordProof {
    pub(super) fn new(user: &str, verifier: Verifier, own: bool) -> Self {
        Self { user: user.to_owned(), exchange: Exchange::new(verifier), own }
    }

    /// Whose password is proven.
    pub fn user(&self) -> &str {
        &self.user
    }

    pub(super) fn is_of(&self, verifier: &Verifier) -> bool {
        self.exchange.verifier() == verifier
    }

    /// Answers the client's first message.
    ///
    /// # Errors
    /// `Invalid` for one that does not follow the protocol, or asks for what is not offered.
    pub fn challenge(&mut self, first: &[u8]) -> Result<String> {
        let random = random_nonce().map_err(Error::from)?;
        self.exchange.challenge(first, &random).map_err(wrong)
    }

    /// Checks the client's last message; returns the principal and the server's proof.
    ///
    /// # Errors
    /// `Unauthenticated` for a wrong password and for a user that is not there; `Invalid` as above.
    pub fn finish(&mut self, last: &[u8]) -> Result<(Principal, String)> {
        let answer = self.exchange.finish(last).map_err(wrong)?;
        if self.own { Ok((Principal::user(self.user.as_str()), answer)) } else { Err(refused()) }
    }
}

fn wrong(wrong: Wrong) -> Error {
    match wrong {
        Wrong::Password => refused(),
        Wrong::Message(reason) => {
            Error::new(ErrorKind::Invalid, format!("malformed SCRAM message: {reason}"))
                .with_hint("log in by SCRAM-SHA-256 without channel binding: `channel_binding=disable`")
        }
    }
}
