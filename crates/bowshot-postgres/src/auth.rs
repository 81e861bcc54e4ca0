//! Who is calling. A password is proven by SCRAM-SHA-256 (PostgreSQL manual, "SASL Authentication"), where its verifier was
//! made together with its hash. Where there is none, and for tokens, the only question is for the password itself. That one
//! is asked where nobody else can read it: over TLS, from this machine, or where the operator says that it may be.

use crate::backend::authentication;
use crate::message::{Body, Message};
use crate::status::{Failure, Result, Trouble};
use crate::wire::Wire;
use bowshot_api::{Credentials, ErrorKind, PasswordExchange, Principal, Secret, Server};
use bytes::{Buf, Bytes};
use std::net::IpAddr;

/// AuthenticationCleartextPassword.
const CLEARTEXT_PASSWORD: i32 = 3;
/// AuthenticationSASL, AuthenticationSASLContinue, AuthenticationSASLFinal.
const SASL: i32 = 10;
const SASL_CONTINUE: i32 = 11;
const SASL_FINAL: i32 = 12;
/// AuthenticationOk.
const OK: i32 = 0;
/// The one mechanism: channel binding is not offered.
const MECHANISM: &str = "SCRAM-SHA-256";

/// Where a caller comes from, as far as it matters to its password.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Road {
    pub(crate) address: IpAddr,
    /// Whether nobody but the two ends can read what is sent.
    pub(crate) is_private: bool,
}

/// Finds out who is calling: whoever it is, if the server has no users; else by certificate, or by the proof of a password, or by itself.
pub(crate) async fn authenticate(
    wire: &mut Wire,
    server: &dyn Server,
    user: &str,
    road: Road,
) -> Result<Principal> {
    let from = Some(road.address);
    let principal = match server.authenticate_from(&Credentials::Anonymous, from).await {
        Ok(principal) => principal,
        Err(error) if error.kind() == ErrorKind::Unauthenticated => {
            if let Some(principal) = certified(wire, server, user, from).await? {
                principal
            } else if let Some(exchange) = server.prove_password(user, from) {
                prove(wire, exchange).await?
            } else {
                let password = ask(wire, road).await?;
                let credentials = Credentials::Password { user: user.to_owned(), password };
                server.authenticate_from(&credentials, from).await.map_err(refused)?
            }
        }
        Err(error) => return Err(refused(error)),
    };
    authentication(wire.out(), OK, &[]);
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

fn refused(error: bowshot_api::Error) -> Trouble {
    Failure::from(error).fatal()
}

/// Carries the messages of an exchange.
async fn prove(wire: &mut Wire, mut exchange: Box<dyn PasswordExchange>) -> Result<Principal> {
    authentication(wire.out(), SASL, format!("{MECHANISM}\0\0").as_bytes());
    let mut begun = Body(answer(wire).await?);
    let mechanism = body_text(&mut begun)?;
    if mechanism != MECHANISM {
        return Err(Failure::protocol("client selected an invalid SASL authentication mechanism").fatal());
    }
    let length = begun.0.try_get_i32().ok().and_then(|length| usize::try_from(length).ok());
    if length != Some(begun.0.len()) {
        return Err(Failure::protocol("malformed SASL message").fatal());
    }
    let challenge = exchange.challenge(&begun.0).map_err(unproven)?;
    authentication(wire.out(), SASL_CONTINUE, challenge.as_bytes());
    let last = answer(wire).await?;
    let (principal, proof) = exchange.finish(&last).await.map_err(unproven)?;
    authentication(wire.out(), SASL_FINAL, proof.as_bytes());
    Ok(principal)
}

fn body_text(body: &mut Body) -> Result<String> {
    body.text().map_err(Failure::fatal)
}

fn unproven(error: bowshot_api::Error) -> Trouble {
    match error.kind() {
        ErrorKind::Invalid => Failure { code: "08P01", ..Failure::from(error) }.fatal(),
        _ => refused(error),
    }
}

/// Sends what has gathered, and waits for what the client says to it.
async fn answer(wire: &mut Wire) -> Result<Bytes> {
    wire.flush().await?;
    match wire.message().await? {
        Some(Message::Password(bytes)) => Ok(bytes),
        Some(_) => Err(Failure::protocol("expected password response").fatal()),
        None => Err(Trouble::Gone),
    }
}

async fn ask(wire: &mut Wire, road: Road) -> Result<Secret> {
    if !road.is_private {
        let message = "this server asks for a password, and this connection is not encrypted";
        return Err(Failure::new("28000", message)
            .with_hint(
                "the operator sets `tls.certificate` and `tls.key`, or, where the network is trusted, `pg_cleartext`",
            )
            .fatal());
    }
    authentication(wire.out(), CLEARTEXT_PASSWORD, &[]);
    let mut body = Body(answer(wire).await?);
    let password = body_text(&mut body)?;
    if !body.0.is_empty() {
        return Err(Failure::protocol("invalid password packet").fatal());
    }
    if password.is_empty() {
        return Err(Failure::new("28P01", "empty password returned by client").fatal());
    }
    Ok(Secret::new(password))
}
