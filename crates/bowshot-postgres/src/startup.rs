//! Opens the session of a client: authentication, options of the start-up packet, and the messages before the first
//! statement.

use crate::auth::{self, Origin};
use crate::backend_messages::{self, TransactionState};
use crate::cancel::CancelKey;
use crate::handshake::Startup;
use crate::message_framing::Wire;
use crate::parameter_status::ParameterStatus;
use crate::status::{Failure, Result};
use bowshot_api::{Error, ErrorKind, OptionValue, Server, Session};
use std::sync::Arc;

/// The version of PostgreSQL whose protocol and catalog clients may expect.
pub(crate) const SERVER_VERSION: &str = "16.0";
/// The supported minor version of the protocol.
const MINOR: i32 = 0;

/// Authenticates a client and opens its session.
pub(crate) async fn begin(
    wire: &mut Wire,
    server: &Arc<dyn Server>,
    startup: &Startup,
    (origin, key): (Origin, &CancelKey),
) -> Result<(Arc<dyn Session>, ParameterStatus)> {
    let Some(user) = startup.get("user").filter(|user| !user.is_empty()) else {
        return Err(Failure::new("28000", "no PostgreSQL user name specified in startup packet").fatal());
    };
    let unknown: Vec<String> = startup
        .parameters
        .iter()
        .map(|(name, _)| name)
        .filter(|name| name.starts_with("_pq_."))
        .cloned()
        .collect();
    if startup.minor > MINOR || !unknown.is_empty() {
        backend_messages::negotiate_version(wire.out(), &unknown);
    }
    let principal = auth::authenticate(wire, server.as_ref(), user, origin).await?;
    let session = server.open_session(&principal).await.map_err(|error| Failure::from(error).fatal())?;
    // What `pg_backend_pid()` gives is what the client knows.
    session.set_number(key.process);
    let startup_options = match set_up(session.as_ref(), startup, user).await {
        Ok(startup_options) => startup_options,
        Err(failure) => {
            session.close().await;
            return Err(failure.fatal());
        }
    };
    wire.set_limits(server.limits());
    let out = wire.out();
    let parameters = ParameterStatus::new(session.as_ref(), startup_options);
    parameters.send_all(out);
    let name = if principal.authenticated { &principal.name } else { user };
    backend_messages::parameter_status(out, "session_authorization", name);
    backend_messages::backend_key_data(out, key.process, key.secret);
    backend_messages::ready(out, TransactionState::Idle);
    Ok((session, parameters))
}

/// Sets the options of a new session, and returns them. An option that cannot be set ends the connection.
async fn set_up(
    session: &dyn Session,
    startup: &Startup,
    user: &str,
) -> Result<Vec<(String, String)>, Failure> {
    let mut wanted = vec![("dialect".to_owned(), "postgres".to_owned())];
    if let Some(database) = startup.get("database").filter(|name| !name.is_empty()) {
        let catalog = find_catalog(session, database, user).await?;
        wanted.extend(catalog.map(|catalog| ("catalog".to_owned(), catalog)));
    }
    for (name, value) in &startup.parameters {
        match name.as_str() {
            "user" | "database" => {}
            "replication" if matches!(value.as_str(), "false" | "off" | "no" | "0") => {}
            "replication" => return Err(Failure::new("0A000", "replication is not supported")),
            "options" => wanted.extend(parse_options(value)?),
            "client_encoding" => check_encoding(value)?,
            name if name.starts_with("_pq_.") => {}
            name => wanted.push((name.to_owned(), value.clone())),
        }
    }
    for (name, value) in &wanted {
        set(session, name, value).await?;
    }
    Ok(wanted)
}

/// Compares letters and digits, as PostgreSQL does: asyncpg sends `'utf-8'` with its quotes.
fn check_encoding(value: &str) -> Result<(), Failure> {
    let name: String = value.chars().filter(char::is_ascii_alphanumeric).collect();
    match name.to_ascii_lowercase().as_str() {
        "utf8" | "unicode" => Ok(()),
        _ => Err(Failure::new(
            "22023",
            format!("invalid value for parameter \"client_encoding\": \"{value}\""),
        )
        .with_hint("texts are UTF8")),
    }
}

pub(crate) async fn set(session: &dyn Session, name: &str, value: &str) -> Result<(), Failure> {
    let done = session.set_option(name, Some(OptionValue::String(value.to_owned()))).await;
    done.map_err(|error: Error| match error.kind() {
        ErrorKind::NotFound => {
            Failure::new("42704", format!("unrecognized configuration parameter \"{name}\""))
        }
        ErrorKind::Invalid => Failure { code: "22023", ..Failure::from(error) },
        _ => error.into(),
    })
}

/// The catalog that a client names as its database. Without a setting, clients ask for the name of the user or for
/// `postgres`: if no such catalog exists, the default is meant.
async fn find_catalog(session: &dyn Session, database: &str, user: &str) -> Result<Option<String>, Failure> {
    let catalogs = session.catalogs().await?;
    if catalogs.iter().any(|catalog| catalog == database) {
        return Ok(Some(database.to_owned()));
    }
    if database == user || database == "postgres" {
        return Ok(None);
    }
    Err(Failure::new("3D000", format!("database \"{database}\" does not exist"))
        .with_hint(format!("the catalogs of this server are: {}", catalogs.join(", "))))
}

/// The assignments of `-c name=value`, `-cname=value` and `--name=value`, where a backslash escapes a blank.
fn parse_options(options: &str) -> Result<Vec<(String, String)>, Failure> {
    let mut words = words(options).into_iter();
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        let assignment = match (word.strip_prefix("--"), word.strip_prefix("-c")) {
            (Some(long), _) => Some(long.to_owned()),
            (None, Some("")) => words.next(),
            (None, Some(short)) => Some(short.to_owned()),
            (None, None) => None,
        };
        match assignment.as_deref().and_then(|text| text.split_once('=')) {
            Some((name, value)) => found.push((name.replace('-', "_"), value.to_owned())),
            None => return Err(Failure::new("42601", format!("invalid command-line option: {word}"))),
        }
    }
    Ok(found)
}

fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (character, words.last_mut()) {
            ('\\', Some(word)) => word.extend(characters.next()),
            (blank, Some(word)) if blank.is_whitespace() => {
                if !word.is_empty() {
                    words.push(String::new());
                }
            }
            (other, Some(word)) => word.push(other),
            (_, None) => {}
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_utf8() {
        for (name, good) in
            [("UTF8", true), ("'utf-8'", true), ("unicode", true), ("LATIN1", false), ("", false)]
        {
            assert_eq!(check_encoding(name).is_ok(), good, "{name}");
        }
    }

    #[test]
    fn switches_are_assignments() {
        let found = parse_options(r"-c a=1  -cb=2 --c-d=x\ y -c e=f=g").unwrap();
        let expected = [("a", "1"), ("b", "2"), ("c_d", "x y"), ("e", "f=g")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert!(parse_options("-c").is_err());
        assert!(parse_options("-x").is_err());
        assert!(parse_options("-c a").is_err());
    }
}
