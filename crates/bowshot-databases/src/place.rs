//! Where a database is: an address without credentials, or a file.

use crate::settings::{DatabaseSettings, Kind};
use bowshot_api::{Error, Result};
use std::fmt;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};

/// Parameters of an address that may be there, since they hold no secret and change nothing that is decided elsewhere.
const POSTGRES_PARAMETERS: [&str; 6] = [
    "sslmode",
    "sslrootcert",
    "application_name",
    "target_session_attrs",
    "client_encoding",
    "channel_binding",
];

/// See the module. What it shows holds no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// Scheme, host with port, and what stands behind it, from the slash on.
    Address {
        scheme: &'static str,
        host: String,
        path: String,
        parameters: String,
    },
    File(PathBuf),
}

impl Place {
    /// Of which kind an address is, as far as it says so.
    pub(crate) fn kind(uri: &str) -> Option<Kind> {
        let (scheme, _) = uri.split_once(':')?;
        match scheme.to_ascii_lowercase().as_str() {
            "postgres" | "postgresql" => Some(Kind::Postgres),
            "sqlite" => Some(Kind::Sqlite),
            "duckdb" => Some(Kind::DuckDb),
            "grpc" | "grpc+tcp" | "grpc+tls" | "flightsql" => Some(Kind::FlightSql),
            _ => None,
        }
    }

    /// # Errors
    /// `Invalid` for what is no address of such a database, or has credentials in it. The address is not repeated.
    pub(crate) fn parse(kind: Kind, uri: &str, base: Option<&Path>) -> Result<Self> {
        if uri.chars().any(char::is_control) {
            return Err(Error::invalid("it has control characters"));
        }
        match kind {
            Kind::Sqlite | Kind::DuckDb => file(kind, uri, base),
            Kind::Postgres => address(&[("postgres", "postgresql"), ("postgresql", "postgresql")], uri),
            Kind::FlightSql => {
                address(&[("grpc", "grpc"), ("grpc+tcp", "grpc+tcp"), ("grpc+tls", "grpc+tls")], uri)
            }
        }
    }

    /// Whether it is at or below a place that was opened.
    pub(crate) fn is_within(&self, opened: &Self) -> bool {
        match (self, opened) {
            (Self::File(file), Self::File(opened)) => file.starts_with(opened),
            (
                Self::Address { scheme, host, path, .. },
                Self::Address { scheme: opened_scheme, host: opened_host, path: opened_path, .. },
            ) => {
                let whole = opened_path.trim_end_matches('/');
                let below =
                    path.strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
                scheme == opened_scheme && host == opened_host && below
            }
            _ => false,
        }
    }

    /// Whether nobody but the server there reads what is sent: over TLS, or within this machine.
    pub(crate) fn is_private(&self) -> bool {
        let Self::Address { scheme, host, .. } = self else { return true };
        let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((name, _)) => name,
            None => host.split_once(':').map_or(host.as_str(), |(name, _)| name),
        };
        let here = name.parse().is_ok_and(|address: IpAddr| address.is_loopback());
        *scheme == "grpc+tls" || here || name == "localhost"
    }

    /// The address that a driver takes, with what it needs to come in. Holds the password.
    pub(crate) fn uri(&self, settings: &DatabaseSettings) -> String {
        let Self::Address { scheme, host, path, parameters } = self else { return String::new() };
        let mut uri = format!("{scheme}://");
        if settings.kind == Kind::Postgres {
            uri.push_str(&settings.user.as_deref().map(encoded).unwrap_or_default());
            if let Some(password) = &settings.password {
                let _ = write!(uri, ":{}", encoded(password.expose()));
            }
            if settings.user.is_some() || settings.password.is_some() {
                uri.push('@');
            }
        }
        let _ = write!(uri, "{host}{path}");
        if settings.kind == Kind::Postgres {
            let seconds = settings.connect_timeout.as_secs().max(2);
            // A connection that nobody answers on ends by itself, so that no thread waits for it for ever.
            let wait = settings.timeout.as_millis().max(1_000);
            let between = if parameters.is_empty() { "" } else { "&" };
            let _ = write!(
                uri,
                "?{parameters}{between}connect_timeout={seconds}&tcp_user_timeout={wait}&keepalives_idle=30"
            );
        }
        uri
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address { scheme, host, path, .. } => write!(f, "{scheme}://{host}{path}"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

fn address(schemes: &[(&str, &'static str)], uri: &str) -> Result<Place> {
    let not = |reason: &str| Error::invalid(reason.to_owned());
    let (scheme, rest) = uri.split_once("://").ok_or_else(|| not("it is no address with `://` in it"))?;
    let scheme = scheme.to_ascii_lowercase();
    let scheme = schemes.iter().find(|(written, _)| *written == scheme).map(|(_, scheme)| *scheme);
    let scheme = scheme.ok_or_else(|| not("its scheme is none of this kind of database"))?;
    let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    if host.contains('@') {
        return Err(not("an address has no credentials in it")
            .with_hint("name `user` and the password's place beside it"));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~:[]%,".contains(c);
    if host.is_empty() || !host.chars().all(plain) {
        return Err(not("its host is not understood"));
    }
    let plain = |c: char| c.is_alphanumeric() || "-._~/%+ ".contains(c);
    if !path.chars().all(plain) || path.split('/').any(|part| part == "..") {
        return Err(not("what stands behind its host is not understood"));
    }
    for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
        let name = parameter.split_once('=').map_or(parameter, |(name, _)| name);
        if scheme != "postgresql" || !POSTGRES_PARAMETERS.contains(&name) {
            return Err(not("it has a parameter that is not known")
                .with_hint(format!("PostgreSQL's are {}", POSTGRES_PARAMETERS.join(", "))));
        }
    }
    let host = host.to_ascii_lowercase();
    Ok(Place::Address { scheme, host, path: path.to_owned(), parameters: parameters.to_owned() })
}

fn file(kind: Kind, uri: &str, base: Option<&Path>) -> Result<Place> {
    let scheme = format!("{}:", kind.name());
    let path = uri.strip_prefix(&scheme).map_or(uri, |rest| rest.strip_prefix("//").unwrap_or(rest));
    // These mean something else to the libraries.
    if path.is_empty()
        || path.contains(['?', '#', '%'])
        || path.starts_with(':')
        || path.contains("://")
        || path.starts_with("file:")
    {
        return Err(Error::invalid("it is no path of a file")
            .with_hint("characters `?`, `#` and `%` cannot be in it"));
    }
    let path = base.map_or_else(|| PathBuf::from(path), |base| base.join(path));
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(Error::invalid("a path has no `..` in it"));
    }
    let absolute = std::path::absolute(&path)
        .map_err(|error| Error::invalid(format!("its path is not understood: {error}")))?;
    Ok(Place::File(absolute))
}

/// All but letters, digits and what is always plain as `%41`.
fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// How a password may stand in the message of a driver.
pub(crate) fn spellings(password: &str) -> Vec<String> {
    let encoded = encoded(password);
    if encoded == password { vec![encoded] } else { vec![password.to_owned(), encoded] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pg(uri: &str) -> Place {
        Place::parse(Kind::Postgres, uri, None).unwrap()
    }

    #[test]
    fn a_place_is_within_another_part_by_part() {
        let opened = pg("postgres://db.local:5432/");
        assert!(pg("postgresql://DB.local:5432/shop").is_within(&opened));
        assert!(!pg("postgres://db.local:5433/shop").is_within(&opened));
        assert!(!pg("postgres://db.local/shop").is_within(&opened));
        let shop = pg("postgres://db.local:5432/shop");
        assert!(pg("postgres://db.local:5432/shop").is_within(&shop));
        assert!(!pg("postgres://db.local:5432/shop2").is_within(&shop));
        let sqlite = |uri| Place::parse(Kind::Sqlite, uri, None).unwrap();
        assert!(sqlite("sqlite:///data/x.db").is_within(&sqlite("/data")));
        assert!(!sqlite("/database/x.db").is_within(&sqlite("/data")));
    }

    #[test]
    fn what_could_mean_something_else_is_refused() {
        for uri in [
            "postgres://u:p@h/d",
            "postgres://h/d?password=x",
            "postgres://h/d?host=other",
            "postgres://h/../d",
            "mysql://h/d",
            "postgres://",
            "postgres://h/d?options=-c%20x",
            "h/d",
        ] {
            assert!(Place::parse(Kind::Postgres, uri, None).is_err(), "{uri}");
        }
        for uri in ["", "/a/../b", ":memory:", "file:/a?mode=rwc", "/a?x", "sqlite://", "/a%2e"] {
            assert!(Place::parse(Kind::Sqlite, uri, None).is_err(), "{uri}");
        }
    }
}
