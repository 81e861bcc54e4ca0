//! Where a database is: an address without credentials, or a file.

use crate::kind::Kind;
use bowshot_api::{Error, Result};
use std::fmt;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};

/// Allowed parameters of an address: none is a secret, or overrides a setting.
const POSTGRES_PARAMETERS: &[&str] = bowshot_api::words! {
    sslmode sslrootcert application_name target_session_attrs client_encoding channel_binding
};

/// Allowed parameters of an address of MySQL.
const MYSQL_PARAMETERS: [&str; 2] = ["sslmode", "sslrootcert"];
/// The default port of MySQL.
const MYSQL_PORT: u16 = 3306;

/// Whether a connection is encrypted, and whether the server is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tls {
    No,
    /// Encrypted, with any server.
    Unverified,
    /// Encrypted, with a server whose certificate is valid for its name.
    Verified,
}

/// The address or file of a database. Its text contains no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Location {
    /// Scheme, host with port, the path with its slash, and the parameters.
    Address {
        scheme: &'static str,
        host: String,
        path: String,
        parameters: String,
    },
    File(PathBuf),
}

impl Location {
    /// The kind of database that an address names, if it does.
    pub(crate) fn kind(uri: &str) -> Option<Kind> {
        let (scheme, _) = uri.split_once(':')?;
        match scheme.to_ascii_lowercase().as_str() {
            "postgres" | "postgresql" => Some(Kind::Postgres),
            "sqlite" => Some(Kind::Sqlite),
            "duckdb" => Some(Kind::DuckDb),
            "grpc" | "grpc+tcp" | "grpc+tls" | "flightsql" => Some(Kind::FlightSql),
            "mysql" | "mariadb" => Some(Kind::Mysql),
            _ => None,
        }
    }

    /// Splits an address into one without user, and the user. A password stays in the address, which is then refused.
    pub(crate) fn without_user(uri: &str) -> (String, Option<String>) {
        let parts = uri.split_once("://").and_then(|(scheme, rest)| {
            let (user, behind) = rest.split_once('@')?;
            let plain = |c: char| c.is_ascii_alphanumeric() || "-._~%".contains(c);
            let user = (!user.is_empty() && user.chars().all(plain)).then(|| percent_decode(user))??;
            let user = (!user.contains(':')).then_some(user)?;
            Some((format!("{scheme}://{behind}"), user))
        });
        match parts {
            Some((uri, user)) => (uri, Some(user)),
            None => (uri.to_owned(), None),
        }
    }

    /// # Errors
    /// `Invalid` for an address of another kind, or with credentials. The message does not repeat the address.
    pub(crate) fn parse(kind: Kind, uri: &str, base: Option<&Path>) -> Result<Self> {
        if uri.chars().any(char::is_control) {
            return Err(Error::invalid("it must not contain control characters"));
        }
        match kind {
            Kind::Sqlite | Kind::DuckDb => file(kind, uri, base),
            Kind::Postgres => address(&[("postgres", "postgresql"), ("postgresql", "postgresql")], uri),
            Kind::FlightSql => {
                address(&[("grpc", "grpc"), ("grpc+tcp", "grpc+tcp"), ("grpc+tls", "grpc+tls")], uri)
            }
            Kind::Mysql => mysql(address(&[("mysql", "mysql"), ("mariadb", "mysql")], uri)?),
        }
    }

    /// Whether it is at or below an allowed location.
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

    /// Whether the connection is private: over TLS, or within this machine.
    pub(crate) fn is_private(&self) -> bool {
        let Self::Address { scheme, .. } = self else { return true };
        *scheme == "grpc+tls" || self.is_here()
    }

    /// Whether it is on this machine.
    fn is_here(&self) -> bool {
        let Self::Address { host, .. } = self else { return true };
        let (name, _) = split_port(host);
        let here = name.parse().is_ok_and(|address: IpAddr| address.is_loopback());
        here || name == "localhost"
    }

    /// Host and port of a MySQL server.
    pub(crate) fn host_and_port(&self) -> Option<(String, u16)> {
        let Self::Address { host, .. } = self else { return None };
        let (name, port) = split_port(host);
        let port = port.map_or(Some(MYSQL_PORT), |port| port.parse::<u16>().ok().filter(|port| *port > 0))?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        (!name.is_empty() && name.chars().all(plain)).then(|| (name.to_owned(), port))
    }

    /// The schema in the path of an address.
    pub(crate) fn schema(&self) -> Option<String> {
        let Self::Address { path, .. } = self else { return None };
        percent_decode(path.trim_matches('/')).filter(|schema| !schema.is_empty())
    }

    /// The value of a parameter.
    pub(crate) fn parameter(&self, name: &str) -> Option<String> {
        let Self::Address { parameters, .. } = self else { return None };
        let mut pairs = parameters.split('&').filter_map(|parameter| parameter.split_once('='));
        pairs.find(|(key, _)| *key == name).and_then(|(_, value)| percent_decode(value))
    }

    /// How TLS is used with MySQL. The default is none on this machine, else a verified certificate.
    pub(crate) fn tls(&self) -> Tls {
        match self.parameter("sslmode").as_deref() {
            Some("disable") => Tls::No,
            Some("require") => Tls::Unverified,
            None if self.parameter("sslrootcert").is_none() && self.is_here() => Tls::No,
            Some(_) | None => Tls::Verified,
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address { scheme, host, path, .. } => write!(f, "{scheme}://{host}{path}"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

fn address(schemes: &[(&str, &'static str)], uri: &str) -> Result<Location> {
    let not = |reason: &str| Error::invalid(reason.to_owned());
    let (scheme, rest) = uri.split_once("://").ok_or_else(|| not("expected an address with `://`"))?;
    let scheme = scheme.to_ascii_lowercase();
    let scheme = schemes.iter().find(|(written, _)| *written == scheme).map(|(_, scheme)| *scheme);
    let scheme = scheme.ok_or_else(|| not("its scheme is not one of this kind of database"))?;
    let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    if host.contains('@') {
        return Err(not("an address must not contain credentials")
            .with_hint("set `user` and the password in their own keys"));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~:[]%,".contains(c);
    if host.is_empty() || !host.chars().all(plain) {
        return Err(not("invalid host"));
    }
    let plain = |c: char| c.is_alphanumeric() || "-._~/%+ ".contains(c);
    if !path.chars().all(plain) || path.split('/').any(|part| part == "..") {
        return Err(not("what stands behind invalid host"));
    }
    for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
        let name = parameter.split_once('=').map_or(parameter, |(name, _)| name);
        let known: &[&str] = match scheme {
            "postgresql" => POSTGRES_PARAMETERS,
            "mysql" => &MYSQL_PARAMETERS,
            _ => &[],
        };
        if !known.contains(&name) {
            return Err(not("unknown parameter").with_hint(format!(
                "PostgreSQL's are {}, MySQL's {}",
                POSTGRES_PARAMETERS.join(", "),
                MYSQL_PARAMETERS.join(" and ")
            )));
        }
    }
    let host = host.to_ascii_lowercase();
    Ok(Location::Address { scheme, host, path: path.to_owned(), parameters: parameters.to_owned() })
}

/// Checks an address of MySQL.
fn mysql(place: Location) -> Result<Location> {
    if place.host_and_port().is_none() {
        return Err(Error::invalid("invalid host or port"));
    }
    if let Location::Address { path, .. } = &place
        && (path.trim_matches('/').contains('/') || percent_decode(path).is_none())
    {
        return Err(Error::invalid("invalid schema after its host"));
    }
    if let Location::Address { parameters, .. } = &place {
        let names = parameters.split('&').filter(|parameter| !parameter.is_empty());
        let mut names: Vec<&str> =
            names.map(|parameter| parameter.split('=').next().unwrap_or_default()).collect();
        let known = names.iter().all(|name| place.parameter(name).is_some_and(|value| !value.is_empty()));
        names.sort_unstable();
        if !known || names.windows(2).any(|pair| matches!(pair, [one, other] if one == other)) {
            return Err(Error::invalid("expected one value for each parameter"));
        }
    }
    match place.parameter("sslmode").as_deref() {
        None | Some("disable" | "require" | "verify-full") => {}
        Some(_) => {
            return Err(Error::invalid("unknown `sslmode`").with_hint(
                "expected `disable`, `require` (TLS without a check of the certificate) or `verify-full`",
            ));
        }
    }
    let authority = place.parameter("sslrootcert");
    if authority.as_deref().is_some_and(|path| !Path::new(path).is_absolute()) {
        return Err(Error::invalid("its `sslrootcert` must be an absolute path"));
    }
    if authority.is_some() && place.tls() != Tls::Verified {
        return Err(Error::invalid("its `sslrootcert` has no effect with this `sslmode`")
            .with_hint("write `sslmode=verify-full`"));
    }
    Ok(place)
}

/// Splits a host into its name or address, and its port.
fn split_port(host: &str) -> (&str, Option<&str>) {
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, behind)) => (name, behind.strip_prefix(':')),
        None => host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port))),
    }
}

/// Decodes `%41`; `None` for invalid escapes.
fn percent_decode(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [byte, behind @ ..] = rest {
        rest = match (byte, behind) {
            (b'%', [high, low, behind @ ..]) => {
                let digit =
                    |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                bytes.push(digit(*high)? << 4 | digit(*low)?);
                behind
            }
            (b'%', _) => return None,
            (plain, behind) => {
                bytes.push(*plain);
                behind
            }
        };
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

fn file(kind: Kind, uri: &str, base: Option<&Path>) -> Result<Location> {
    let scheme = format!("{}:", kind.name());
    let path = uri.strip_prefix(&scheme).map_or(uri, |rest| rest.strip_prefix("//").unwrap_or(rest));
    // The libraries of both databases would read these as options.
    if path.is_empty()
        || path.contains(['?', '#', '%'])
        || path.starts_with(':')
        || path.contains("://")
        || path.starts_with("file:")
    {
        return Err(
            Error::invalid("expected the path of a file").with_hint("it must not contain `?`, `#` or `%`")
        );
    }
    let path = base.map_or_else(|| PathBuf::from(path), |base| base.join(path));
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(Error::invalid("a path must not contain `..`"));
    }
    let absolute =
        std::path::absolute(&path).map_err(|error| Error::invalid(format!("invalid path: {error}")))?;
    Ok(Location::File(absolute))
}

/// Encodes all but letters, digits and unreserved characters.
pub(crate) fn percent_encode(text: &str) -> String {
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

/// How a password may be spelled in the message of a driver.
pub(crate) fn spellings(password: &str) -> Vec<String> {
    let encoded = percent_encode(password);
    if encoded == password { vec![encoded] } else { vec![password.to_owned(), encoded] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pg(uri: &str) -> Location {
        Location::parse(Kind::Postgres, uri, None).unwrap()
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
        let sqlite = |uri| Location::parse(Kind::Sqlite, uri, None).unwrap();
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
            assert!(Location::parse(Kind::Postgres, uri, None).is_err(), "{uri}");
        }
        for uri in [
            "mysql://u:p@h/d",
            "mysql://u@h/d",
            "mysql://h/d/e",
            "mysql://h,i/d",
            "mysql://h:0/d",
            "mysql://h:port/d",
            "mysql://h/%ff",
            "mysql://h/%0",
            "mysql://h/d?sslmode",
            "mysql://h/d?sslmode=",
            "mysql://h/d?sslmode=%zz",
            "mysql://h/d?sslmode=disable&sslmode=verify-full",
            "mysql://h/d?sslmode=prefer",
            "mysql://h/d?sslmode=verify-ca",
            "mysql://h/d?sslrootcert=ca.pem",
            "mysql://h/d?sslmode=require&sslrootcert=/ca.pem",
            "mysql://h/d?password=x",
            "mysql://h/d?socket=/x",
            "postgres://h/d",
        ] {
            assert!(Location::parse(Kind::Mysql, uri, None).is_err(), "{uri}");
        }
        for uri in ["", "/a/../b", ":memory:", "file:/a?mode=rwc", "/a?x", "sqlite://", "/a%2e"] {
            assert!(Location::parse(Kind::Sqlite, uri, None).is_err(), "{uri}");
        }
    }

    #[test]
    fn an_address_of_mysql_says_where_and_how() {
        let my = |uri: &str| Location::parse(Kind::Mysql, uri, None).unwrap();
        assert_eq!(my("mysql://DB.local").host_and_port(), Some(("db.local".to_owned(), 3306)));
        assert_eq!(my("mariadb://[::1]:3307/").host_and_port(), Some(("::1".to_owned(), 3307)));
        assert_eq!(my("mysql://h/").schema(), None);
        assert_eq!(my("mysql://h/my%20shop").schema().as_deref(), Some("my shop"));
        assert_eq!(my("mysql://h/d").tls(), Tls::Verified);
        assert_eq!(my("mysql://localhost/d").tls(), Tls::No);
        assert_eq!(my("mysql://[::1]:3307/d").tls(), Tls::No);
        assert_eq!(my("mysql://127.0.0.1/d?sslmode=verify-full").tls(), Tls::Verified);
        assert_eq!(my("mysql://127.0.0.1/d?sslrootcert=/ca.pem").tls(), Tls::Verified);
        assert_eq!(my("mysql://h/d?sslmode=disable").tls(), Tls::No);
        assert_eq!(my("mysql://h/d?sslmode=require").tls(), Tls::Unverified);
        assert!(my("mysql://h:3306/shop").is_within(&my("mariadb://h:3306/")));
        assert!(!my("mysql://h:3306/shop2").is_within(&my("mysql://h:3306/shop")));
        let without = |uri: &str| Location::without_user(uri);
        assert_eq!(without("mysql://u%40x@h/d"), ("mysql://h/d".to_owned(), Some("u@x".to_owned())));
        for uri in ["mysql://u:p@h/d", "mysql://u%3Ap@h/d", "mysql://@h/d", "/a@b", "mysql://h/d"] {
            assert_eq!(without(uri), (uri.to_owned(), None), "{uri}");
        }
    }
}
