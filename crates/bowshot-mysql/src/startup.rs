//! Opens the session of a client: greeting, encryption, authentication, and the first options.

use crate::auth::{self, Origin};
use crate::cancel::ConnectionId;
use crate::handshake::{Challenge, HandshakeResponse, greeting, wants_encryption};
use crate::packet_framing::Wire;
use crate::status::{ConnectionError, Failure, Result};
use bowshot_api::{ErrorKind, OptionValue, Principal, Request, Server, Session};
use bowshot_sql::mysql::quoted_name;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// A client whose handshake response has come.
pub(crate) struct Login {
    pub(crate) wire: Wire,
    pub(crate) response: HandshakeResponse,
    pub(crate) challenge: Challenge,
}

/// Sends the greeting, encrypts, and reads the handshake response; `None` if the client has gone, or speaks another protocol.
///
/// # Errors
/// With the connection, on which the client gets the error.
pub(crate) async fn greet(
    mut wire: Wire,
    number: &ConnectionId,
    tls: Option<&TlsAcceptor>,
) -> std::result::Result<Option<Login>, (Wire, ConnectionError)> {
    let challenge = Challenge::new();
    wire.put(|out| greeting(out, number.id, &challenge, tls.is_some()));
    let first = async {
        wire.flush().await?;
        wire.first_message().await
    };
    let mut message = match first.await {
        Ok(Some(message)) => message,
        Ok(None) => return Ok(None),
        Err(error) => return Err((wire, error)),
    };
    if let Some(tls) = tls {
        if !wants_encryption(&message) {
            return Err((wire, not_encrypted()));
        }
        let Ok(encrypted) = wire.encrypt(tls).await else { return Ok(None) };
        wire = encrypted;
        message = match wire.message().await {
            Ok(Some(message)) => message,
            Ok(None) => return Ok(None),
            Err(error) => return Err((wire, error)),
        };
    }
    match HandshakeResponse::parse(message) {
        Ok(response) => Ok(Some(Login { wire, response, challenge })),
        Err(failure) => Err((wire, failure.fatal())),
    }
}

fn not_encrypted() -> ConnectionError {
    Failure::new(3159, "HY000", "this server speaks TLS only, and this connection is not encrypted")
        .with_hint(
            "connect with `--ssl-mode=REQUIRED` (of MariaDB's clients: `--ssl`) or what your client calls it",
        )
        .fatal()
}

/// Authenticates a client and opens its session.
pub(crate) async fn begin(
    login: &mut Login,
    server: &Arc<dyn Server>,
    origin: Origin,
) -> Result<Arc<dyn Session>> {
    let Login { wire, response, challenge } = login;
    let principal = auth::authenticate(wire, server.as_ref(), (response, challenge), origin).await?;
    let session = open(server, &principal, response.database.as_deref()).await?;
    name_program(session.as_ref(), response).await;
    Ok(session)
}

/// Opens a session.
pub(crate) async fn open(
    server: &Arc<dyn Server>,
    principal: &Principal,
    database: Option<&str>,
) -> Result<Arc<dyn Session>> {
    let fatal = |error| Failure::from(error).fatal();
    let session = server.open_session(principal).await.map_err(fatal)?;
    let begun = async {
        let dialect = OptionValue::String("mysql".to_owned());
        session.set_option("dialect", Some(dialect)).await?;
        match database {
            Some(name) => use_database(session.as_ref(), name).await,
            None => Ok(()),
        }
    };
    match begun.await {
        Ok(()) => Ok(session),
        Err(failure) => {
            session.close().await;
            Err(failure.fatal())
        }
    }
}

/// Sets the default schema.
pub(crate) async fn use_database(session: &dyn Session, name: &str) -> std::result::Result<(), Failure> {
    let used = session.update(&Request::sql(format!("USE {}", quoted_name(name)))).await;
    used.map(drop).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure { code: (1049, "42000"), ..Failure::from(error) },
        _ => error.into(),
    })
}

/// Sets `application_name` to the name of the client's program. A failure is no reason to refuse the client.
pub(crate) async fn name_program(session: &dyn Session, response: &HandshakeResponse) {
    let Some(program) = &response.program else { return };
    let value = Some(OptionValue::String(program.clone()));
    if let Err(error) = session.set_option("application_name", value).await {
        tracing::debug!(%error, "the name of a client's program was not kept");
    }
}
