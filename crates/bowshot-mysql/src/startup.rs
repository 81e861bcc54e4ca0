//! From a connection to a session: greeting, encryption, user, and the options that a session of MySQL begins with.

use crate::auth::{self, Road};
use crate::cancel::Number;
use crate::handshake::{Challenge, Hello, greeting, wants_encryption};
use crate::lex::quoted_name;
use crate::status::{Failure, Result, Trouble};
use crate::wire::Wire;
use bowshot_api::{ErrorKind, OptionValue, Principal, Request, Server, Session};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// A client that has said who it is.
pub(crate) struct Guest {
    pub(crate) wire: Wire,
    pub(crate) hello: Hello,
    pub(crate) challenge: Challenge,
}

/// Greets a client, lets it encrypt, and hears who it is; `None` if it has gone, or speaks something else.
///
/// # Errors
/// With what the client can be told on, if it can be told.
pub(crate) async fn greet(
    mut wire: Wire,
    number: &Number,
    tls: Option<&TlsAcceptor>,
) -> std::result::Result<Option<Guest>, (Wire, Trouble)> {
    let challenge = Challenge::new();
    wire.put(|out| greeting(out, number.id, &challenge, tls.is_some()));
    let first = async {
        wire.flush().await?;
        wire.first_message().await
    };
    let mut message = match first.await {
        Ok(Some(message)) => message,
        Ok(None) => return Ok(None),
        Err(trouble) => return Err((wire, trouble)),
    };
    if let Some(tls) = tls {
        if !wants_encryption(&message) {
            return Err((wire, in_the_clear()));
        }
        let Ok(encrypted) = wire.encrypt(tls).await else { return Ok(None) };
        wire = encrypted;
        message = match wire.message().await {
            Ok(Some(message)) => message,
            Ok(None) => return Ok(None),
            Err(trouble) => return Err((wire, trouble)),
        };
    }
    match Hello::parse(message) {
        Ok(hello) => Ok(Some(Guest { wire, hello, challenge })),
        Err(failure) => Err((wire, failure.fatal())),
    }
}

fn in_the_clear() -> Trouble {
    Failure::new(3159, "HY000", "this server speaks TLS only, and this connection is not encrypted")
        .with_hint(
            "connect with `--ssl-mode=REQUIRED` (of MariaDB's clients: `--ssl`) or what your client calls it",
        )
        .fatal()
}

/// Authenticates a caller and opens its session.
pub(crate) async fn begin(
    guest: &mut Guest,
    server: &Arc<dyn Server>,
    road: Road,
) -> Result<Arc<dyn Session>> {
    let Guest { wire, hello, challenge } = guest;
    let principal = auth::authenticate(wire, server.as_ref(), (hello, challenge), road).await?;
    let session = open(server, &principal, hello.database.as_deref()).await?;
    name_program(session.as_ref(), hello).await;
    Ok(session)
}

/// A new session of a caller.
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

/// Makes a schema the one of names that do not say theirs.
pub(crate) async fn use_database(session: &dyn Session, name: &str) -> std::result::Result<(), Failure> {
    let used = session.update(&Request::sql(format!("USE {}", quoted_name(name)))).await;
    used.map(drop).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure { code: (1049, "42000"), ..Failure::from(error) },
        _ => error.into(),
    })
}

/// Keeps the name of the client's program for whoever asks; one that cannot be kept is no reason to refuse the client.
pub(crate) async fn name_program(session: &dyn Session, hello: &Hello) {
    let Some(program) = &hello.program else { return };
    let value = Some(OptionValue::String(program.clone()));
    if let Err(error) = session.set_option("application_name", value).await {
        tracing::debug!(%error, "the name of a client's program was not kept");
    }
}
