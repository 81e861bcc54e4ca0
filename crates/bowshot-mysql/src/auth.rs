//! Who is calling. Accounts hold Argon2 hashes, of which no plugin of MySQL can make anything, so that the question is for the
//! password itself: within TLS as `caching_sha2_password` asks for it when it knows a user no further ("Caching_sha2_password
//! information"), else as `mysql_clear_password` does, from this machine or where the operator says that it may be. For a while
//! after that, what the plugin makes of the password and the challenge is enough, as that plugin has it. It is looked at only
//! where the password itself could be asked for: who listens could find out weak ones from it.
//!
//! The public key of a server is no way round TLS: it comes over the same connection, from whoever is on the way.

use crate::handshake::{CACHING_SHA2, Challenge, Hello};
use crate::status::{Failure, Result, Trouble};
use crate::wire::Wire;
use bowshot_api::{Credentials, Error, ErrorKind, Principal, Scramble, Secret, Server};
use bytes::{BufMut, Bytes};
use std::net::IpAddr;

/// The password as it is.
const CLEAR: &str = "mysql_clear_password";
/// "AuthSwitchRequest"
const SWITCH: u8 = 0xfe;
/// "AuthMoreData" of caching_sha2_password: what has come is enough.
const FAST_AUTHENTICATION_SUCCESS: &[u8] = &[1, 3];
/// "AuthMoreData" of caching_sha2_password: the password itself is needed.
const PERFORM_FULL_AUTHENTICATION: &[u8] = &[1, 4];

/// Where a caller comes from, as far as it matters to its password.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Road {
    pub(crate) address: IpAddr,
    /// Whether passwords may come over a connection that is not encrypted.
    pub(crate) cleartext: bool,
    /// The way in that the client has taken.
    pub(crate) entrance: Entrance,
}

/// Where a client has come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entrance {
    pub(crate) port: u16,
    pub(crate) is_encrypted: bool,
}

impl Road {
    /// Whether nobody else hears what is said, or the operator does not mind.
    fn is_private(self, wire: &Wire) -> bool {
        wire.is_encrypted() || self.cleartext || self.address.to_canonical().is_loopback()
    }
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
    if !road.is_private(wire) {
        let message = "this server asks for a password, and this connection is not encrypted";
        return Err(Failure::new(3159, "HY000", message)
            .with_hint(
                "the operator sets `tls.certificate` and `tls.key`, or, where the network is trusted, `mysql_cleartext`",
            )
            .fatal());
    }
    let shown = scrambled(wire, hello, challenge).await?;
    if let Some(shown) = &shown {
        let scramble = Scramble { challenge: challenge.bytes().to_vec(), shown: shown.to_vec() };
        if let Some(principal) = server.recognise(&hello.user, &scramble, from) {
            wire.put(|out| out.put_slice(FAST_AUTHENTICATION_SUCCESS));
            return Ok(principal);
        }
    }
    let password = ask(wire, shown).await?;
    let password = password.strip_suffix(b"\0").unwrap_or(&password);
    if password.is_empty() {
        return Err(denied(&hello.user, "using password: NO").fatal());
    }
    // No account has one that is no text.
    let password = std::str::from_utf8(password)
        .map_err(|_| denied(&hello.user, "passwords are UTF-8, and this one is not").fatal())?;
    let password = Secret::new(password);
    let credentials = Credentials::Password { user: hello.user.clone(), password: password.clone() };
    let principal = server.authenticate_from(&credentials, from).await.map_err(refused)?;
    server.expect_scrambles(&hello.user, &password);
    Ok(principal)
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

/// What the right plugin has made of the challenge. `None` where a client has begun with another one, and is to be asked for its
/// password by a third: it may be told only once to take another.
async fn scrambled(wire: &mut Wire, hello: &Hello, challenge: &Challenge) -> Result<Option<Bytes>> {
    if hello.plugin.as_deref() == Some(CACHING_SHA2) {
        return Ok(Some(hello.answer.clone()));
    }
    if wire.is_encrypted() {
        return switch(wire, CACHING_SHA2, challenge.bytes()).await.map(Some);
    }
    Ok(None)
}

/// The password itself. What the plugin has made of the challenge still tells whether there is one.
async fn ask(wire: &mut Wire, shown: Option<Bytes>) -> Result<Bytes> {
    if !wire.is_encrypted() {
        return switch(wire, CLEAR, &[]).await;
    }
    if shown.is_none_or(|shown| matches!(shown.as_ref(), [] | [0])) {
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
