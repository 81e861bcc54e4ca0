//! Authentication: by SCRAM-SHA-256 (PostgreSQL manual, "SASL Authentication") where the user has a verifier. Others, and
//! tokens, send the password itself, which is accepted over TLS, from this machine, or where the operator allows it.

use crate::backend_messages::authentication;
use crate::frontend_messages::{Body, Message};
use crate::message_framing::Wire;
use crate::status::{ConnectionError, Failure, Result};
use bowshot_api::{Credentials, ErrorKind, PasswordExchange, Principal, Secret, Server};
use bowshot_rowwire::connection::authenticate_certificate;
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
/// The only mechanism: channel binding is not offered.
const MECHANISM: &str = "SCRAM-SHA-256";

/// Where a connection comes from, which decides whether a password may be sent over it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) address: IpAddr,
    /// Whether a password may be sent as it is.
    pub(crate) is_private: bool,
}

/// Authenticates the client: without users as anonymous, else by certificate, SCRAM or password.
pub(crate) async fn authenticate(
    wire: &mut Wire,
    server: &dyn Server,
    user: &str,
    origin: Origin,
) -> Result<Principal> {
    let from = Some(origin.address);
    let principal = match server.authenticate_from(&Credentials::Anonymous, from).await {
        Ok(principal) => principal,
        Err(error) if error.kind() == ErrorKind::Unauthenticated => {
            if let Some(principal) =
                authenticate_certificate(server, wire.certificate(), user, origin.address)
                    .await
                    .map_err(refused)?
            {
                principal
            } else if let Some(exchange) = server.prove_password(user, from) {
                prove(wire, exchange).await?
            } else {
                let password = ask(wire, origin).await?;
                let credentials = Credentials::Password { user: user.to_owned(), password };
                server.authenticate_from(&credentials, from).await.map_err(refused)?
            }
        }
        Err(error) => return Err(refused(error)),
    };
    authentication(wire.out(), OK, &[]);
    Ok(principal)
}

fn refused(error: bowshot_api::Error) -> ConnectionError {
    Failure::from(error).fatal()
}

/// Passes the messages of SCRAM on.
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

fn unproven(error: bowshot_api::Error) -> ConnectionError {
    match error.kind() {
        ErrorKind::Invalid => Failure { code: "08P01", ..Failure::from(error) }.fatal(),
        _ => refused(error),
    }
}

/// Sends the request and waits for the client's answer.
async fn answer(wire: &mut Wire) -> Result<Bytes> {
    wire.flush().await?;
    match wire.message().await? {
        Some(Message::Password(bytes)) => Ok(bytes),
        Some(_) => Err(Failure::protocol("expected password response").fatal()),
        None => Err(ConnectionError::Closed),
    }
}

async fn ask(wire: &mut Wire, origin: Origin) -> Result<Secret> {
    if !origin.is_private {
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
