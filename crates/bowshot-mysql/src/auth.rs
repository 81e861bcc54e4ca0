//! Authentication. Accounts have Argon2 hashes, so clients send the password itself: within TLS by full authentication of
//! `caching_sha2_password`, else by `mysql_clear_password`, from this machine or where the operator allows it. For a while
//! after that the scramble of `caching_sha2_password` is enough, where the password could be sent too: it would reveal weak
//! passwords.
//!
//! The server's RSA key is not offered in place of TLS: an attacker on the network could replace it.

use crate::handshake::{CACHING_SHA2, Challenge, HandshakeResponse};
use crate::packet_framing::Wire;
use crate::status::{ConnectionError, Failure, Result};
use bowshot_api::{Credentials, Error, ErrorKind, Principal, Scramble, Secret, Server};
use bowshot_rowwire::connection::{authenticate_certificate, is_private};
use bytes::{BufMut, Bytes};
use std::net::IpAddr;

/// The plugin that sends the password itself.
const CLEAR: &str = "mysql_clear_password";
/// The plugin that every client has, and that needs no library.
const NATIVE: &str = "mysql_native_password";
/// What libmariadb names while it has not loaded the plugin that it was asked for. It takes an OK only after a switch.
const FALLBACK: &str = "dummy_fallback_auth";
/// "AuthSwitchRequest"
const SWITCH: u8 = 0xfe;
/// "AuthMoreData" of caching_sha2_password: the scramble is enough.
const FAST_AUTHENTICATION_SUCCESS: &[u8] = &[1, 3];
/// "AuthMoreData" of caching_sha2_password: the password itself is needed.
const PERFORM_FULL_AUTHENTICATION: &[u8] = &[1, 4];

/// Where a connection comes from, which decides whether a password may be sent over it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) address: IpAddr,
    /// Whether passwords may be sent over a connection that is not encrypted.
    pub(crate) cleartext: bool,
    /// The listener of the connection.
    pub(crate) listen_port: ListenPort,
}

/// A port, and whether its connections are encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListenPort {
    pub(crate) port: u16,
    pub(crate) is_encrypted: bool,
}

impl Origin {
    /// Whether a password may be sent as it is.
    fn is_private(self, wire: &Wire) -> bool {
        is_private(wire.is_encrypted(), self.cleartext, self.address)
    }
}

/// Authenticates the client: without users as anonymous, else by certificate or password.
pub(crate) async fn authenticate(
    wire: &mut Wire,
    server: &dyn Server,
    (response, challenge): (&HandshakeResponse, &Challenge),
    origin: Origin,
) -> Result<Principal> {
    let from = Some(origin.address);
    match server.authenticate_from(&Credentials::Anonymous, from).await {
        Ok(principal) => {
            if response.plugin.as_deref() == Some(FALLBACK) {
                switch(wire, NATIVE, challenge.bytes()).await?;
            }
            return Ok(principal);
        }
        Err(error) if error.kind() == ErrorKind::Unauthenticated => {}
        Err(error) => return Err(refused(error)),
    }
    if let Some(principal) =
        authenticate_certificate(server, wire.certificate(), &response.user, origin.address)
            .await
            .map_err(refused)?
    {
        return Ok(principal);
    }
    if !origin.is_private(wire) {
        let message = "this server asks for a password, and this connection is not encrypted";
        return Err(Failure::new(3159, "HY000", message)
            .with_hint(
                "the operator sets `tls.certificate` and `tls.key`, or, where the network is trusted, `mysql_cleartext`",
            )
            .fatal());
    }
    let scramble = scrambled(wire, response, challenge).await?;
    if let Some(scramble) = &scramble {
        let scramble = Scramble { challenge: challenge.bytes().to_vec(), shown: scramble.to_vec() };
        if let Some(principal) = server.recognise(&response.user, &scramble, from) {
            wire.put(|out| out.put_slice(FAST_AUTHENTICATION_SUCCESS));
            return Ok(principal);
        }
    }
    let password = ask(wire, scramble).await?;
    let password = password.strip_suffix(b"\0").unwrap_or(&password);
    if password.is_empty() {
        return Err(denied(&response.user, "using password: NO").fatal());
    }
    // Passwords of accounts are UTF-8.
    let password = std::str::from_utf8(password)
        .map_err(|_| denied(&response.user, "passwords are UTF-8, and this one is not").fatal())?;
    let password = Secret::new(password);
    let credentials = Credentials::Password { user: response.user.clone(), password: password.clone() };
    let principal = server.authenticate_from(&credentials, from).await.map_err(refused)?;
    server.expect_scrambles(&response.user, &password);
    Ok(principal)
}

fn denied(user: &str, why: &str) -> Failure {
    Failure::new(1045, "28000", format!("access denied for user `{user}` ({why})"))
}

fn refused(error: Error) -> ConnectionError {
    Failure::from(error).fatal()
}

/// The scramble of `caching_sha2_password`. `None` where the client uses another plugin and the connection is not encrypted:
/// a client can be switched only once, and must then switch to `mysql_clear_password`.
async fn scrambled(
    wire: &mut Wire,
    response: &HandshakeResponse,
    challenge: &Challenge,
) -> Result<Option<Bytes>> {
    if response.plugin.as_deref() == Some(CACHING_SHA2) {
        return Ok(Some(response.answer.clone()));
    }
    if wire.is_encrypted() {
        return switch(wire, CACHING_SHA2, challenge.bytes()).await.map(Some);
    }
    Ok(None)
}

/// The password itself. An empty scramble means that there is none.
async fn ask(wire: &mut Wire, scramble: Option<Bytes>) -> Result<Bytes> {
    if !wire.is_encrypted() {
        return switch(wire, CLEAR, &[]).await;
    }
    if scramble.is_none_or(|scramble| matches!(scramble.as_ref(), [] | [0])) {
        return Ok(Bytes::new());
    }
    wire.put(|out| out.put_slice(PERFORM_FULL_AUTHENTICATION));
    reply(wire).await
}

/// Switches the client to another plugin.
async fn switch(wire: &mut Wire, plugin: &str, challenge: &[u8]) -> Result<Bytes> {
    wire.put(|out| {
        out.put_u8(SWITCH);
        out.put_slice(plugin.as_bytes());
        out.put_u8(0);
        if !challenge.is_empty() {
            out.put_slice(challenge);
            out.put_u8(0);
        }
    });
    reply(wire).await
}

async fn reply(wire: &mut Wire) -> Result<Bytes> {
    wire.flush().await?;
    match wire.message().await? {
        Some(mut message) => Ok(message.rest()),
        None => Err(ConnectionError::Closed),
    }
}
