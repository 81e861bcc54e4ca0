//! Logins that prove a password without sending it.

use crate::{Principal, Result};
use async_trait::async_trait;

/// One exchange of SCRAM-SHA-256 (RFC 5802, RFC 7677): two client messages, two answers. It holds the verifier, so
/// that front ends only carry messages.
#[async_trait]
pub trait PasswordExchange: Send + std::fmt::Debug {
    /// Answers the client's first message.
    ///
    /// # Errors
    /// `Invalid` for one that does not follow the protocol.
    fn challenge(&mut self, first: &[u8]) -> Result<String>;

    /// Checks the client's last message; returns the principal and the server's proof.
    ///
    /// # Errors
    /// `Unauthenticated` for a wrong password and for a user that is not there, in the same words and the same time;
    /// `Invalid` for what does not follow the protocol.
    async fn finish(&mut self, last: &[u8]) -> Result<(Principal, String)>;
}

/// A scrambled password of MySQL's `caching_sha2_password`: `SHA256(password) XOR SHA256(SHA256(SHA256(password)) ||
/// challenge)`. It can be checked only with `SHA256(SHA256(password))`.
#[derive(Clone)]
pub struct Scramble {
    /// The server's random challenge, different for each connection.
    pub challenge: Vec<u8>,
    /// The client's answer.
    pub shown: Vec<u8>,
}

crate::debug_fields!(Scramble {});
