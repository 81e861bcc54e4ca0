//! Logins that prove a password without showing it.

use crate::{Principal, Result};
use async_trait::async_trait;
use std::fmt;

/// One exchange of SCRAM-SHA-256 (RFC 5802, RFC 7677): two messages of the client, two answers. It holds what is known of the
/// password, so that a front end only carries messages.
#[async_trait]
pub trait PasswordExchange: Send + std::fmt::Debug {
    /// Answers the client's first message.
    ///
    /// # Errors
    /// `Invalid` for one that does not follow the protocol.
    fn challenge(&mut self, first: &[u8]) -> Result<String>;

    /// Checks the client's last message; gives who it is, and the server's proof.
    ///
    /// # Errors
    /// `Unauthenticated` for a wrong password and for a user that is not there, in the same words and the same time;
    /// `Invalid` for what does not follow the protocol.
    async fn finish(&mut self, last: &[u8]) -> Result<(Principal, String)>;
}

/// What a client shows in place of its password, as `caching_sha2_password` of MySQL has it:
/// `SHA256(password) XOR SHA256(SHA256(SHA256(password)) || challenge)`. It says something only to a server that knows
/// `SHA256(SHA256(password))`.
#[derive(Clone)]
pub struct Scramble {
    /// What the server has sent: random, and another one for each connection.
    pub challenge: Vec<u8>,
    /// What the client has made of it.
    pub shown: Vec<u8>,
}

impl fmt::Debug for Scramble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scramble")
    }
}
