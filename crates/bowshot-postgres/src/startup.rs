//! From a caller to a session: its options by the parameters of the start-up, and what the client is told before its first
//! statement.

use crate::arrival::Startup;
use crate::auth::{self, Road};
use crate::backend::{self, TransactionState};
use crate::cancel::Key;
use crate::reported::Reported;
use crate::status::{Failure, Result};
use crate::wire::Wire;
use bowshot_api::{Error, ErrorKind, OptionValue, Server, Session};
use std::sync::Arc;

/// The version of PostgreSQL whose protocol and catalog clients may expect.
pub(crate) const SERVER_VERSION: &str = "16.0";
/// The minor version of the protocol that is spoken.
const MINOR: i32 = 0;

/// Authenticates a caller and opens its session.
pub(crate) async fn begin(
    wire: &mut Wire,
    server: &Arc<dyn Server>,
    startup: &Startup,
    (road, key): (Road, &Key),
) -> Result<(Arc<dyn Session>, Reported)> {
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
        backend::negotiate_version(wire.out(), &unknown);
    }
    let principal = auth::authenticate(wire, server.as_ref(), user, road).await?;
    let session = server.open_session(&principal).await.map_err(|error| Failure::from(error).fatal())?;
    let begun_with = match set_up(session.as_ref(), startup, user).await {
        Ok(begun_with) => begun_with,
        Err(failure) => {
            session.close().await;
            return Err(failure.fatal());
        }
    };
    wire.is_known(server.limits());
    let out = wire.out();
    let reported = Reported::new(session.as_ref(), begun_with);
    reported.tell(out);
    let name = if principal.authenticated { &principal.name } else { user };
    backend::parameter_status(out, "session_authorization", name);
    backend::key_data(out, key.process, key.secret);
    backend::ready(out, TransactionState::Idle);
    Ok((session, reported))
}

/// Sets the options of a new session, and tells which; what cannot be had ends it.
async fn set_up(
    session: &dyn Session,
    startup: &Startup,
    user: &str,
) -> Result<Vec<(String, String)>, Failure> {
    let mut wanted = vec![("dialect".to_owned(), "postgres".to_owned())];
    if let Some(database) = startup.get("database").filter(|name| !name.is_empty()) {
        let catalog = choose(session, database, user).await?;
        wanted.extend(catalog.map(|catalog| ("catalog".to_owned(), catalog)));
    }
    for (name, value) in &startup.parameters {
        match name.as_str() {
            "user" | "database" => {}
            "replication" if matches!(value.as_str(), "false" | "off" | "no" | "0") => {}
            "replication" => return Err(Failure::new("0A000", "replication is not supported")),
            "options" => wanted.extend(switches(value)?),
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

/// Names of encodings are compared by their letters and digits, as in PostgreSQL; asyncpg sends `'utf-8'` with its quotes.
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

/// The catalog that a client calls its database. Clients that are told none ask for one with the name of the user, or for
/// `postgres`: where there is none of that name, they mean the default.
async fn choose(session: &dyn Session, database: &str, user: &str) -> Result<Option<String>, Failure> {
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

/// The assignments of `-c name=value`, `-cname=value` and `--name=value`, in which a backslash keeps a blank.
fn switches(options: &str) -> Result<Vec<(String, String)>, Failure> {
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
        let found = switches(r"-c a=1  -cb=2 --c-d=x\ y -c e=f=g").unwrap();
        let expected = [("a", "1"), ("b", "2"), ("c_d", "x y"), ("e", "f=g")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert!(switches("-c").is_err());
        assert!(switches("-x").is_err());
        assert!(switches("-c a").is_err());
    }
}
