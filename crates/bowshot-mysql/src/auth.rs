//! Who is calling. Accounts hold Argon2 hashes, of which no plugin of MySQL can make anything, so that the only question is for
//! the password itself: within TLS as `caching_sha2_password` asks for it when it knows a user no further ("Caching_sha2_password
//! information"), else as `mysql_clear_password` does, from this machine or where the operator says that it may be.
//!
//! The public key of a server is no way round TLS: it comes over the same connection, from whoever is on the way.

use crate::handshake::{CACHING_SHA2, Challenge, Hello};
use crate::status::{Failure, Result, Trouble};
use crate::wire::Wire;
use bowshot_api::{Credentials, Error, ErrorKind, Principal, Secret, Server};
use bytes::{BufMut, Bytes};
use std::net::IpAddr;

/// The password as it is.
const CLEAR: &str = "mysql_clear_password";
/// "AuthSwitchRequest"
const SWITCH: u8 = 0xfe;
/// "AuthMoreData" of caching_sha2_password: the password itself is needed.
const PERFORM_FULL_AUTHENTICATION: &[u8] = &[1, 4];

/// Where a caller comes from, as far as it matters to its password.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Road {
    pub(crate) address: IpAddr,
    /// Whether passwords may come over a connection that is not encrypted.
    pub(crate) cleartext: bool,
}

/// Finds out who is calling: whoever it is, if the server has no users; else by certificate or password.
pub(crate) async fn authenticate(
    wire: &mut Wire,
    server: &dyn Server,
    (hello, challenge): (&Hello, &Challenge),
    road: Road,
) -> Result<Principal> {
    let from = Some(road.address);
    match server.authenticate_from(&Credentials::Anonymous, from).await {
        Ok(principal) => return Ok(principal),
        Err(error) if error.kind() == ErrorKind::Unauthenticated => {}
        Err(error) => return Err(refused(error)),
    }
    if let Some(principal) = certified(wire, server, &hello.user, from).await? {
        return Ok(principal);
    }
    let password = if wire.is_encrypted() {
        within_tls(wire, hello, challenge).await?
    } else if road.cleartext || road.address.to_canonical().is_loopback() {
        switch(wire, CLEAR, &[]).await?
    } else {
        let message = "this server asks for a password, and this connection is not encrypted";
        return Err(Failure::new(3159, "HY000", message)
            .with_hint(
                "the operator sets `tls.certificate` and `tls.key`, or, where the network is trusted, `mysql_cleartext`",
            )
            .fatal());
    };
    let password = password.strip_suffix(b"\0").unwrap_or(&password);
    if password.is_empty() {
        return Err(denied(&hello.user, "using password: NO").fatal());
    }
    // No account has one that is no text.
    let password = std::str::from_utf8(password)
        .map_err(|_| denied(&hello.user, "passwords are UTF-8, and this one is not").fatal())?;
    let password = Secret::new(password);
    let credentials = Credentials::Password { user: hello.user.clone(), password };
    server.authenticate_from(&credentials, from).await.map_err(refused)
}

/// Who shows a certificate of the user that it says it is; others have to say more.
async fn certified(
    wire: &Wire,
    server: &dyn Server,
    user: &str,
    from: Option<IpAddr>,
) -> Result<Option<Principal>> {
    let Some(certificate) = wire.certificate() else { return Ok(None) };
    let shown = Credentials::Certificate { certificate, user: Some(user.to_owned()) };
    match server.authenticate_from(&shown, from).await {
        Ok(principal) => Ok(Some(principal)),
        Err(error) if error.kind() == ErrorKind::Unauthenticated => {
            tracing::debug!(%error, "a client with a certificate is asked for a password");
            Ok(None)
        }
        Err(error) => Err(refused(error)),
    }
}

fn denied(user: &str, why: &str) -> Failure {
    Failure::new(1045, "28000", format!("access denied for user `{user}` ({why})"))
}

fn refused(error: Error) -> Trouble {
    Failure::from(error).fatal()
}

/// What a client answers with its own plugin, or with the right one, only tells whether it has a password.
async fn within_tls(wire: &mut Wire, hello: &Hello, challenge: &Challenge) -> Result<Bytes> {
    let answer = if hello.plugin.as_deref() == Some(CACHING_SHA2) {
        hello.answer.clone()
    } else {
        switch(wire, CACHING_SHA2, challenge.bytes()).await?
    };
    if matches!(answer.as_ref(), [] | [0]) {
        return Ok(Bytes::new());
    }
    wire.put(|out| out.put_slice(PERFORM_FULL_AUTHENTICATION));
    reply(wire).await
}

/// Asks with another plugin than the client has begun with.
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
        None => Err(Trouble::Gone),
    }
}
