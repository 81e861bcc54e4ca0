//! Waiting on a connection: for a statement that its client may cancel, for the next message of an idle client, and for the
//! check of a certificate.

use crate::error::{ConnectionError, ProtocolError};
use bowshot_api::{ClientCertificate, Credentials, Error, ErrorKind, Principal, Server, Session};
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Waits for work of the server, until the statement is cancelled or `closed` says that its client has gone.
///
/// # Errors
/// Those of the work, and that of a cancelled statement.
pub async fn wait_for<T, F: ProtocolError>(
    work: impl Future<Output = bowshot_api::Result<T>>,
    cancel: &CancellationToken,
    closed: impl Future<Output = ()>,
) -> Result<T, ConnectionError<F>> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(F::cancelled().into()),
        done = work => done.map_err(ConnectionError::from),
        () = closed => Err(ConnectionError::Closed),
    }
}

/// Keeps the session of an idle connection from expiring. One that has expired is reported by its next statement.
pub async fn keep_alive(server: &dyn Server, session: &dyn Session) -> Infallible {
    let pause = (server.limits().session_timeout / 4).max(Duration::from_secs(1));
    loop {
        sleep(pause).await;
        _ = server.find_session(session.id(), session.principal());
    }
}

/// Whether a password may be sent over a connection: nobody else can read it, or the operator allows that.
pub fn is_private(is_encrypted: bool, cleartext: bool, address: IpAddr) -> bool {
    is_encrypted || cleartext || address.to_canonical().is_loopback()
}

/// The user whose certificate a client has sent; `None` where it must prove its identity in another way.
pub async fn authenticate_certificate(
    server: &dyn Server,
    certificate: Option<Arc<ClientCertificate>>,
    user: &str,
    address: IpAddr,
) -> Result<Option<Principal>, Error> {
    let Some(certificate) = certificate else { return Ok(None) };
    let credentials = Credentials::Certificate { certificate, user: Some(user.to_owned()) };
    match server.authenticate_from(&credentials, Some(address)).await {
        Ok(principal) => Ok(Some(principal)),
        Err(error) if error.kind() == ErrorKind::Unauthenticated => {
            tracing::debug!(%error, "a client with a certificate is asked for a password");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
