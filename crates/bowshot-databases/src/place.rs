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

/// Those of an address of MySQL.
const MYSQL_PARAMETERS: [&str; 2] = ["sslmode", "sslrootcert"];
/// The port of a server of MySQL that names none.
const MYSQL_PORT: u16 = 3306;

/// Whether what is sent is encrypted, and whether it is looked at who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tls {
    No,
    /// By whoever answers.
    Unverified,
    /// By a server whose certificate has its name, and whom an authority vouches for.
    Verified,
}

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
            "mysql" | "mariadb" => Some(Kind::Mysql),
            _ => None,
        }
    }

    /// An address without the user in it, and that user. A password is not looked for: it stays, and is refused.
    pub(crate) fn without_user(uri: &str) -> (String, Option<String>) {
        let parts = uri.split_once("://").and_then(|(scheme, rest)| {
            let (user, behind) = rest.split_once('@')?;
            let plain = |c: char| c.is_ascii_alphanumeric() || "-._~%".contains(c);
            let user = (!user.is_empty() && user.chars().all(plain)).then(|| decoded(user))??;
            let user = (!user.contains(':')).then_some(user)?;
            Some((format!("{scheme}://{behind}"), user))
        });
        match parts {
            Some((uri, user)) => (uri, Some(user)),
            None => (uri.to_owned(), None),
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
            Kind::Mysql => mysql(address(&[("mysql", "mysql"), ("mariadb", "mysql")], uri)?),
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
        let Self::Address { scheme, .. } = self else { return true };
        *scheme == "grpc+tls" || self.is_here()
    }

    /// Whether it is on this machine.
    fn is_here(&self) -> bool {
        let Self::Address { host, .. } = self else { return true };
        let (name, _) = parted(host);
        let here = name.parse().is_ok_and(|address: IpAddr| address.is_loopback());
        here || name == "localhost"
    }

    /// Host and port of a server of MySQL.
    pub(crate) fn host_and_port(&self) -> Option<(String, u16)> {
        let Self::Address { host, .. } = self else { return None };
        let (name, port) = parted(host);
        let port = port.map_or(Some(MYSQL_PORT), |port| port.parse::<u16>().ok().filter(|port| *port > 0))?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        (!name.is_empty() && name.chars().all(plain)).then(|| (name.to_owned(), port))
    }

    /// The one schema that an address names behind its host.
    pub(crate) fn schema(&self) -> Option<String> {
        let Self::Address { path, .. } = self else { return None };
        decoded(path.trim_matches('/')).filter(|schema| !schema.is_empty())
    }

    /// A parameter behind the question mark.
    pub(crate) fn parameter(&self, name: &str) -> Option<String> {
        let Self::Address { parameters, .. } = self else { return None };
        let mut pairs = parameters.split('&').filter_map(|parameter| parameter.split_once('='));
        pairs.find(|(key, _)| *key == name).and_then(|(_, value)| decoded(value))
    }

    /// How a server of MySQL is reached: without TLS on this machine, and else with a certificate, if nothing else is said.
    pub(crate) fn tls(&self) -> Tls {
        match self.parameter("sslmode").as_deref() {
            Some("disable") => Tls::No,
            Some("require") => Tls::Unverified,
            None if self.parameter("sslrootcert").is_none() && self.is_here() => Tls::No,
            Some(_) | None => Tls::Verified,
        }
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
        let known: &[&str] = match scheme {
            "postgresql" => &POSTGRES_PARAMETERS,
            "mysql" => &MYSQL_PARAMETERS,
            _ => &[],
        };
        if !known.contains(&name) {
            return Err(not("it has a parameter that is not known").with_hint(format!(
                "PostgreSQL's are {}, MySQL's {}",
                POSTGRES_PARAMETERS.join(", "),
                MYSQL_PARAMETERS.join(" and ")
            )));
        }
    }
    let host = host.to_ascii_lowercase();
    Ok(Place::Address { scheme, host, path: path.to_owned(), parameters: parameters.to_owned() })
}

/// An address of MySQL, if it is one that can be asked.
fn mysql(place: Place) -> Result<Place> {
    if place.host_and_port().is_none() {
        return Err(Error::invalid("its host and port are not understood"));
    }
    if let Place::Address { path, .. } = &place
        && (path.trim_matches('/').contains('/') || decoded(path).is_none())
    {
        return Err(Error::invalid("what stands behind its host is no schema"));
    }
    if let Place::Address { parameters, .. } = &place {
        let names = parameters.split('&').filter(|parameter| !parameter.is_empty());
        let mut names: Vec<&str> =
            names.map(|parameter| parameter.split('=').next().unwrap_or_default()).collect();
        let known = names.iter().all(|name| place.parameter(name).is_some_and(|value| !value.is_empty()));
        names.sort_unstable();
        if !known || names.windows(2).any(|pair| matches!(pair, [one, other] if one == other)) {
            return Err(Error::invalid("its parameters have one value each"));
        }
    }
    match place.parameter("sslmode").as_deref() {
        None | Some("disable" | "require" | "verify-full") => {}
        Some(_) => {
            return Err(Error::invalid("its `sslmode` is not known").with_hint(
                "it is `disable`, `require` (TLS with whoever answers) or `verify-full` (and its certificate has to be good)",
            ));
        }
    }
    let authority = place.parameter("sslrootcert");
    if authority.as_deref().is_some_and(|path| !Path::new(path).is_absolute()) {
        return Err(Error::invalid("its `sslrootcert` has to begin with `/`"));
    }
    if authority.is_some() && place.tls() != Tls::Verified {
        return Err(Error::invalid("its `sslrootcert` is not looked at with this `sslmode`")
            .with_hint("write `sslmode=verify-full`"));
    }
    Ok(place)
}

/// The name or address of a host, and its port, if there is one.
fn parted(host: &str) -> (&str, Option<&str>) {
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, behind)) => (name, behind.strip_prefix(':')),
        None => host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port))),
    }
}

/// `%41` as the byte that it is.
fn decoded(text: &str) -> Option<String> {
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
            assert!(Place::parse(Kind::Mysql, uri, None).is_err(), "{uri}");
        }
        for uri in ["", "/a/../b", ":memory:", "file:/a?mode=rwc", "/a?x", "sqlite://", "/a%2e"] {
            assert!(Place::parse(Kind::Sqlite, uri, None).is_err(), "{uri}");
        }
    }

    #[test]
    fn an_address_of_mysql_says_where_and_how() {
        let my = |uri: &str| Place::parse(Kind::Mysql, uri, None).unwrap();
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
        let without = |uri: &str| Place::without_user(uri);
        assert_eq!(without("mysql://u%40x@h/d"), ("mysql://h/d".to_owned(), Some("u@x".to_owned())));
        for uri in ["mysql://u:p@h/d", "mysql://u%3Ap@h/d", "mysql://@h/d", "/a@b", "mysql://h/d"] {
            assert_eq!(without(uri), (uri.to_owned(), None), "{uri}");
        }
    }
}
