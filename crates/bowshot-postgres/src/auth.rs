//! Who is calling. Accounts hold Argon2 hashes, of which SCRAM can make nothing, so that the only question is for the password
//! itself (PostgreSQL manual, "Password Authentication"). It is asked where nobody else can read it: over TLS, from this
//! machine, or where the operator says that it may be.

use crate::backend::authentication;
use crate::message::{Body, Message};
use crate::status::{Failure, Result, Trouble};
use crate::wire::Wire;
use bowshot_api::{Credentials, ErrorKind, Principal, Secret, Server};
use std::net::IpAddr;

/// AuthenticationCleartextPassword.
const CLEARTEXT_PASSWORD: i32 = 3;
/// AuthenticationOk.
const OK: i32 = 0;

/// Where a caller comes from, as far as it matters to its password.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Road {
    pub(crate) address: IpAddr,
    /// Whether nobody but the two ends can read what is sent.
    pub(crate) is_private: bool,
}

/// Finds out who is calling: whoever it is, if the server has no users; else by password.
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
            let password = ask(wire, road).await?;
            let credentials = Credentials::Password { user: user.to_owned(), password };
            server.authenticate_from(&credentials, from).await.map_err(refused)?
        }
        Err(error) => return Err(refused(error)),
    };
    authentication(wire.out(), OK);
    Ok(principal)
}

fn refused(error: bowshot_api::Error) -> Trouble {
    Failure::from(error).fatal()
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
    authentication(wire.out(), CLEARTEXT_PASSWORD);
    wire.flush().await?;
    match wire.message().await? {
        Some(Message::Password(bytes)) => {
            let mut body = Body(bytes);
            let password = body.text().map_err(Failure::fatal)?;
            if !body.0.is_empty() {
                return Err(Failure::protocol("invalid password packet").fatal());
            }
            if password.is_empty() {
                return Err(Failure::new("28P01", "empty password returned by client").fatal());
            }
            Ok(Secret::new(password))
        }
        Some(_) => Err(Failure::protocol("expected password response").fatal()),
        None => Err(Trouble::Gone),
    }
}
