//! What the operator says of other databases.

use crate::lakes::LakeSettings;
use crate::place::Place;
use bowshot_api::{CallerToken, Error, Result, Secret};
use bowshot_lakehouse::iceberg::IcebergSettings;
use bowshot_object_store::secrets::{KeptSecret, Secrets};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// Connections that are open at once to a database that says nothing else.
const DEFAULT_POOL: usize = 4;
/// Most connections to one database.
const MAX_POOL: usize = 64;

/// Of what kind a database is: which driver it has, and how its SQL is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// PostgreSQL 12 and later.
    Postgres,
    /// A file of SQLite.
    Sqlite,
    /// A file of DuckDB.
    DuckDb,
    /// A server that speaks Flight SQL.
    FlightSql,
    /// MySQL 5.7 and later, and MariaDB.
    Mysql,
}

/// What becomes of dates that are no days, such as `0000-00-00`, which MySQL keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ZeroDates {
    Error,
    Null,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Postgres, Self::Sqlite, Self::DuckDb, Self::FlightSql, Self::Mysql];

    /// As the operator writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
            Self::DuckDb => "duckdb",
            Self::FlightSql => "flightsql",
            Self::Mysql => "mysql",
        }
    }

    /// # Errors
    /// `Invalid` for a word that is none.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.to_ascii_lowercase();
        let known = match text.as_str() {
            "postgresql" => Some(Self::Postgres),
            "mariadb" => Some(Self::Mysql),
            _ => Self::ALL.into_iter().find(|kind| kind.name() == text),
        };
        known.ok_or_else(|| {
            Error::invalid("this kind of database is not known").with_hint(
                "the kinds are postgres, mysql, sqlite, duckdb, flightsql and ducklake, and iceberg in the configuration file",
            )
        })
    }
}

/// Where a password is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PasswordPlace {
    File(PathBuf),
    Variable(String),
}

/// One database.
#[derive(Debug, Clone)]
pub struct DatabaseSettings {
    /// What it is called here.
    pub name: String,
    pub(crate) kind: Kind,
    /// Path of the driver; that of its kind when `None`.
    pub(crate) driver: Option<PathBuf>,
    pub(crate) place: Place,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
    password_place: Option<PasswordPlace>,
    /// The secret that is named for them.
    pub(crate) secret: Option<String>,
    /// The secret that they come from.
    pub(crate) lent: Option<Arc<KeptSecret>>,
    /// Schemas whose tables are seen; all when empty.
    pub(crate) schemas: Vec<String>,
    /// The catalog of a Flight SQL server.
    pub(crate) catalog: Option<String>,
    pub(crate) read_only: bool,
    pub(crate) pool: usize,
    /// Longest wait for a connection, from the network.
    pub(crate) connect_timeout: Duration,
    /// Longest wait for an answer, for the next rows, and for a connection that others have.
    pub(crate) timeout: Duration,
    /// How long is believed what a database has said of its tables.
    pub(crate) cache_ttl: Duration,
    /// Whether large tables are read over several connections.
    pub(crate) parallel: bool,
    pub(crate) zero_dates: ZeroDates,
    /// Whether it is asked with the token by which the caller has logged in, and with nothing else.
    pub(crate) forward_token: bool,
    /// That token, as long as its caller holds it.
    pub(crate) bearer: Option<Weak<CallerToken>>,
    /// The token that the driver was opened with, which it may still quote when the caller has let go of it.
    pub(crate) shown: OnceLock<Secret>,
}

/// What is said of all databases.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The databases of the configuration.
    pub databases: Vec<DatabaseSettings>,
    /// The lakes of the configuration.
    pub lakes: Vec<LakeSettings>,
    /// Catalogs of Iceberg tables among them.
    pub catalogs: Vec<IcebergSettings>,
    /// Places of databases that admins may attach.
    pub attach: Vec<String>,
    /// Drivers by kind, for databases that name none.
    pub drivers: BTreeMap<Kind, PathBuf>,
    /// Credentials that admins have given in SQL, for databases that are attached.
    pub secrets: Option<Arc<Secrets>>,
}

/// Values of keys, as the configuration file or ATTACH has them.
pub(crate) struct Values<'a>(pub(crate) &'a BTreeMap<String, Vec<String>>);

impl DatabaseSettings {
    /// Reads an entry of `[[databases]]`. Paths are relative to `base`.
    ///
    /// # Errors
    /// `Invalid`, naming the database and the key.
    pub fn read(values: &BTreeMap<String, Vec<String>>, base: Option<&Path>) -> Result<Self> {
        const KEYS: [&str; 17] = [
            "name",
            "kind",
            "driver",
            "uri",
            "user",
            "password_file",
            "password_env",
            "schemas",
            "catalog",
            "read_only",
            "pool",
            "connect_timeout",
            "timeout",
            "cache_ttl",
            "parallel",
            "zero_dates",
            "forward_token",
        ];
        let values = Values(values);
        let name = values.needed("name", "?")?;
        values.check(&KEYS, &name)?;
        let kind =
            Kind::parse(&values.needed("kind", &name)?).map_err(|error| within(&name, "kind", &error))?;
        let (uri, user) = Place::without_user(&values.needed("uri", &name)?);
        let place = Place::parse(kind, &uri, base).map_err(|error| within(&name, "uri", &error))?;
        let mut settings = Self::new(name, kind, place);
        settings.user = user;
        settings.common(&values)?;
        let name = settings.name.clone();
        settings.driver = values.one("driver", &name)?.map(|path| beside(&path, base));
        let file = values.one("password_file", &name)?.map(|path| PasswordPlace::File(beside(&path, base)));
        let variable = values.one("password_env", &name)?.map(PasswordPlace::Variable);
        if file.is_some() && variable.is_some() {
            return Err(wrong(&name, "password_file", "there is `password_env` too"));
        }
        settings.password_place = file.or(variable);
        settings.check_user()?;
        settings.check_forwarding()?;
        Ok(settings)
    }

    /// One that ATTACH opens.
    ///
    /// # Errors
    /// `Invalid`, naming the key.
    pub(crate) fn attached(name: &str, uri: &str, values: &BTreeMap<String, Vec<String>>) -> Result<Self> {
        const KEYS: [&str; 14] = [
            "type",
            "user",
            "password",
            "secret",
            "schemas",
            "catalog",
            "read_only",
            "pool",
            "connect_timeout",
            "timeout",
            "cache_ttl",
            "parallel",
            "zero_dates",
            "forward_token",
        ];
        let values = Values(values);
        values.check(&KEYS, name)?;
        let kind = match values.one("type", name)? {
            Some(kind) => Kind::parse(&kind).map_err(|error| within(name, "type", &error))?,
            None => Place::kind(uri).ok_or_else(|| wrong(name, "type", "it is missing"))?,
        };
        let (uri, user) = Place::without_user(uri);
        let place = Place::parse(kind, &uri, None).map_err(|error| within(name, "uri", &error))?;
        let mut settings = Self::new(name.to_owned(), kind, place);
        settings.user = user;
        settings.common(&values)?;
        settings.password = values.one("password", name)?.map(Secret::new);
        settings.secret = values.one("secret", name)?;
        if settings.secret.is_some() && (settings.user.is_some() || settings.password.is_some()) {
            return Err(wrong(name, "secret", "there is `user` or `password` too"));
        }
        settings.check_forwarding()?;
        Ok(settings)
    }

    fn new(name: String, kind: Kind, place: Place) -> Self {
        Self {
            name,
            kind,
            driver: None,
            place,
            user: None,
            password: None,
            password_place: None,
            secret: None,
            lent: None,
            schemas: Vec::new(),
            catalog: None,
            read_only: true,
            pool: DEFAULT_POOL,
            connect_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(60),
            cache_ttl: Duration::from_secs(30),
            parallel: true,
            zero_dates: ZeroDates::Error,
            forward_token: false,
            bearer: None,
            shown: OnceLock::new(),
        }
    }

    /// The keys that both ways have.
    fn common(&mut self, values: &Values<'_>) -> Result<()> {
        let name = self.name.clone();
        check_name(&name)?;
        let user = values.one("user", &name)?;
        if user.is_some() && self.user.is_some() {
            return Err(wrong(&name, "user", "there is one in the address too"));
        }
        self.user = user.or_else(|| self.user.take());
        self.schemas = values.many("schemas");
        self.of_mysql(values)?;
        self.catalog = values.one("catalog", &name)?;
        if self.catalog.is_some() && self.kind != Kind::FlightSql {
            return Err(wrong(&name, "catalog", "databases of this kind have none"));
        }
        self.read_only = values.truth("read_only", &name)?.unwrap_or(self.read_only);
        self.parallel = values.truth("parallel", &name)?.unwrap_or(self.parallel);
        self.forward_token = values.truth("forward_token", &name)?.unwrap_or(self.forward_token);
        if let Some(text) = values.one("pool", &name)? {
            let pool = text.parse().ok().filter(|pool| (1..=MAX_POOL).contains(pool));
            self.pool = pool.ok_or_else(|| wrong(&name, "pool", "it is a number from 1 to 64"))?;
        }
        for (key, place) in [
            ("connect_timeout", &mut self.connect_timeout),
            ("timeout", &mut self.timeout),
            ("cache_ttl", &mut self.cache_ttl),
        ] {
            if let Some(text) = values.one(key, &name)? {
                *place = duration(&text)
                    .ok_or_else(|| wrong(&name, key, "it is a time such as `500ms`, `30s` or `5m`"))?;
            }
        }
        if self.connect_timeout.is_zero() || self.timeout.is_zero() {
            return Err(wrong(&name, "timeout", "it is longer than nothing"));
        }
        Ok(())
    }

    /// What only MySQL has: a schema in the address is the only one that is seen.
    fn of_mysql(&mut self, values: &Values<'_>) -> Result<()> {
        let name = self.name.clone();
        let dates = values.one("zero_dates", &name)?;
        if self.kind != Kind::Mysql {
            return match dates {
                None => Ok(()),
                Some(_) => Err(wrong(&name, "zero_dates", "databases of this kind have no such dates")),
            };
        }
        self.zero_dates = match dates.as_deref() {
            None | Some("error") => ZeroDates::Error,
            Some("null") => ZeroDates::Null,
            Some(_) => return Err(wrong(&name, "zero_dates", "it is `error` or `null`")),
        };
        if let Some(schema) = self.place.schema() {
            if self.schemas.iter().any(|other| *other != schema) {
                return Err(wrong(&name, "schemas", "its address names another one"));
            }
            self.schemas = vec![schema];
        }
        Ok(())
    }

    /// Checks, when all that says so has been read, that somebody logs in where somebody has to.
    pub(crate) fn check_user(&self) -> Result<()> {
        match self.kind == Kind::Mysql && self.user.is_none() {
            true => Err(wrong(&self.name, "user", "it is missing")),
            false => Ok(()),
        }
    }

    /// A token goes to servers that can take it, over ways on which nobody reads it, and is the only thing that is shown there.
    fn check_forwarding(&self) -> Result<()> {
        if !self.forward_token {
            return Ok(());
        }
        let wrong = |reason: &str| Err(wrong(&self.name, "forward_token", reason));
        if self.kind != Kind::FlightSql {
            return wrong("databases of this kind take no tokens");
        }
        if !self.place.is_private() {
            return wrong("tokens go over `grpc+tls://`, or to this machine");
        }
        let shown = self.password.is_some() || self.password_place.is_some() || self.secret.is_some();
        if self.user.is_some() || shown {
            return wrong("there is `user` or a password too");
        }
        Ok(())
    }

    /// The same, asked with the token of one caller.
    pub(crate) fn of_caller(&self, token: &Arc<CallerToken>) -> Self {
        Self { bearer: Some(Arc::downgrade(token)), ..self.clone() }
    }

    /// The token that is shown, if one is, and is still held.
    pub(crate) fn token(&self) -> Option<Secret> {
        self.bearer.as_ref().and_then(Weak::upgrade)?.token()
    }

    /// The password, from where it is.
    ///
    /// # Errors
    /// `Invalid` when it is not there.
    pub(crate) fn with_password(mut self) -> Result<Self> {
        let read = match &self.password_place {
            None => return Ok(self),
            Some(PasswordPlace::File(path)) => std::fs::read_to_string(path)
                .map(|text| text.trim_end_matches(['\r', '\n']).to_owned())
                .map_err(|error| {
                    wrong(&self.name, "password_file", &format!("`{}`: {error}", path.display()))
                })?,
            Some(PasswordPlace::Variable(variable)) => std::env::var(variable).map_err(|_| {
                wrong(&self.name, "password_env", &format!("the variable `{variable}` is not set"))
            })?,
        };
        self.password = Some(Secret::new(read));
        Ok(self)
    }
}

/// Names become parts of names of tables, which people write.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let fits = !name.is_empty() && name.len() <= 128 && !name.chars().any(char::is_control);
    if fits { Ok(()) } else { Err(Error::invalid("a database has a name of 1 to 128 characters")) }
}

pub(crate) fn beside(path: &str, base: Option<&Path>) -> PathBuf {
    match base {
        Some(base) => base.join(path),
        None => PathBuf::from(path),
    }
}

pub(crate) fn wrong(name: &str, key: &str, reason: &str) -> Error {
    Error::invalid(format!("`{key}` of the database `{name}` cannot be used: {reason}"))
}

fn within(name: &str, key: &str, error: &Error) -> Error {
    let told = wrong(name, key, error.message());
    match error.hint() {
        Some(hint) => told.with_hint(hint.to_owned()),
        None => told,
    }
}

impl Values<'_> {
    pub(crate) fn check(&self, keys: &[&str], name: &str) -> Result<()> {
        match self.0.keys().find(|key| !keys.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => {
                Err(wrong(name, key, "it is not known")
                    .with_hint(format!("the keys are {}", keys.join(", "))))
            }
        }
    }

    pub(crate) fn one(&self, key: &str, name: &str) -> Result<Option<String>> {
        match self.0.get(key).map(Vec::as_slice) {
            None => Ok(None),
            Some([one]) => Ok(Some(one.clone())),
            Some(_) => Err(wrong(name, key, "it is one value")),
        }
    }

    pub(crate) fn needed(&self, key: &str, name: &str) -> Result<String> {
        self.one(key, name)?.filter(|text| !text.is_empty()).ok_or_else(|| wrong(name, key, "it is missing"))
    }

    /// Values of a list, or of one text with commas between.
    pub(crate) fn many(&self, key: &str) -> Vec<String> {
        match self.0.get(key).map(Vec::as_slice) {
            None => Vec::new(),
            Some([one]) => {
                one.split(',').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
            }
            Some(several) => several.to_vec(),
        }
    }

    pub(crate) fn truth(&self, key: &str, name: &str) -> Result<Option<bool>> {
        match self.one(key, name)?.map(|text| text.to_ascii_lowercase()).as_deref() {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => Err(wrong(name, key, "it is true or false")),
        }
    }
}

/// A number with `ms`, `s`, `m` or `h` behind it.
fn duration(text: &str) -> Option<Duration> {
    let unit = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(unit)?;
    let number: u64 = number.parse().ok()?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.checked_mul(millis).filter(|millis| *millis <= 86_400_000).map(Duration::from_millis)
}

#[cfg(test)]
mod tests;
