//! Settings of one database, from the configuration or from ATTACH.

use crate::config_values::{Values, beside, check_name, wrong};
use crate::kind::{Kind, ZeroDates};
use crate::location::Location;
use bowshot_api::{CallerToken, Error, Result, Secret};
use bowshot_object_store::duration;
use bowshot_object_store::secrets::KeptSecret;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// Default size of a pool.
const DEFAULT_POOL: usize = 4;
const MAX_POOL: usize = 64;

/// Keys of the configuration that ATTACH has too.
const COMMON_KEYS: &[&str] = bowshot_api::words! {
    schemas catalog read_only pool connect_timeout timeout cache_ttl parallel zero_dates forward_token
};

/// Where a password is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PasswordSource {
    File(PathBuf),
    Variable(String),
}

#[derive(Debug, Clone)]
pub struct DatabaseSettings {
    /// Its name in SQL.
    pub name: String,
    pub(crate) kind: Kind,
    pub(crate) driver: Option<PathBuf>,
    pub(crate) place: Location,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
    password_source: Option<PasswordSource>,
    /// The name of the secret with its credentials.
    pub(crate) secret: Option<String>,
    /// The secret that its credentials were read from.
    pub(crate) opened_secret: Option<Arc<KeptSecret>>,
    /// Visible schemas; all when empty.
    pub(crate) schemas: Vec<String>,
    /// The catalog of a Flight SQL server.
    pub(crate) catalog: Option<String>,
    pub(crate) read_only: bool,
    pub(crate) pool: usize,
    /// Longest wait for a new connection.
    pub(crate) connect_timeout: Duration,
    /// Longest wait for an answer, for the next rows, and for a connection of the pool.
    pub(crate) timeout: Duration,
    /// How long metadata of tables is cached.
    pub(crate) cache_ttl: Duration,
    /// Whether large tables are read over several connections.
    pub(crate) parallel: bool,
    pub(crate) zero_dates: ZeroDates,
    /// Whether it gets the token of the caller instead of credentials.
    pub(crate) forward_token: bool,
    /// That token, as long as the caller's session lives.
    pub(crate) bearer: Option<Weak<CallerToken>>,
    /// The token that the driver was opened with, which it may quote after the session has ended.
    pub(crate) used_token: OnceLock<Secret>,
}

impl DatabaseSettings {
    /// Reads an entry of `[[databases]]`. Paths are relative to `base`.
    ///
    /// # Errors
    /// `Invalid`, naming the database and the key.
    pub fn read(values: &BTreeMap<String, Vec<String>>, base: Option<&Path>) -> Result<Self> {
        const KEYS: [&str; 7] = ["name", "kind", "driver", "uri", "user", "password_file", "password_env"];
        let values = Values(values);
        let name = values.needed("name", "?")?;
        values.check(&[&KEYS[..], COMMON_KEYS].concat(), &name)?;
        let kind =
            Kind::parse(&values.needed("kind", &name)?).map_err(|error| within(&name, "kind", &error))?;
        let (uri, user) = Location::without_user(&values.needed("uri", &name)?);
        let place = Location::parse(kind, &uri, base).map_err(|error| within(&name, "uri", &error))?;
        let mut settings = Self::new(name, kind, place);
        settings.user = user;
        settings.read_common_options(&values)?;
        let name = settings.name.clone();
        settings.driver = values.one("driver", &name)?.map(|path| beside(&path, base));
        let file = values.one("password_file", &name)?.map(|path| PasswordSource::File(beside(&path, base)));
        let variable = values.one("password_env", &name)?.map(PasswordSource::Variable);
        if file.is_some() && variable.is_some() {
            return Err(wrong(&name, "password_file", "`password_env` is set too"));
        }
        settings.password_source = file.or(variable);
        settings.check_user()?;
        settings.check_forwarding()?;
        Ok(settings)
    }

    /// Settings from ATTACH.
    ///
    /// # Errors
    /// `Invalid`, naming the key.
    pub(crate) fn attached(name: &str, uri: &str, values: &BTreeMap<String, Vec<String>>) -> Result<Self> {
        let values = Values(values);
        let own = ["type", "user", "password", "secret"];
        values.check(&[&own[..], COMMON_KEYS].concat(), name)?;
        let kind = match values.one("type", name)? {
            Some(kind) => Kind::parse(&kind).map_err(|error| within(name, "type", &error))?,
            None => Location::kind(uri).ok_or_else(|| wrong(name, "type", "it is missing"))?,
        };
        let (uri, user) = Location::without_user(uri);
        let place = Location::parse(kind, &uri, None).map_err(|error| within(name, "uri", &error))?;
        let mut settings = Self::new(name.to_owned(), kind, place);
        settings.user = user;
        settings.read_common_options(&values)?;
        settings.password = values.one("password", name)?.map(Secret::new);
        settings.secret = values.one("secret", name)?;
        if settings.secret.is_some() && (settings.user.is_some() || settings.password.is_some()) {
            return Err(wrong(name, "secret", "`user` or `password` is set too"));
        }
        settings.check_forwarding()?;
        Ok(settings)
    }

    fn new(name: String, kind: Kind, place: Location) -> Self {
        Self {
            name,
            kind,
            driver: None,
            place,
            user: None,
            password: None,
            password_source: None,
            secret: None,
            opened_secret: None,
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
            used_token: OnceLock::new(),
        }
    }

    /// Reads the keys that are common to the configuration and ATTACH.
    fn read_common_options(&mut self, values: &Values<'_>) -> Result<()> {
        let name = self.name.clone();
        check_name(&name)?;
        let user = values.one("user", &name)?;
        if user.is_some() && self.user.is_some() {
            return Err(wrong(&name, "user", "the address contains a user too"));
        }
        self.user = user.or_else(|| self.user.take());
        self.schemas = values.many("schemas");
        self.read_mysql_options(values)?;
        self.catalog = values.one("catalog", &name)?;
        if self.catalog.is_some() && self.kind != Kind::FlightSql {
            return Err(wrong(&name, "catalog", "this kind of database has no catalogs"));
        }
        self.read_only = values.truth("read_only", &name)?.unwrap_or(self.read_only);
        self.parallel = values.truth("parallel", &name)?.unwrap_or(self.parallel);
        self.forward_token = values.truth("forward_token", &name)?.unwrap_or(self.forward_token);
        if let Some(text) = values.one("pool", &name)? {
            let pool = text.parse().ok().filter(|pool| (1..=MAX_POOL).contains(pool));
            self.pool = pool.ok_or_else(|| wrong(&name, "pool", "expected a number from 1 to 64"))?;
        }
        for (key, place) in [
            ("connect_timeout", &mut self.connect_timeout),
            ("timeout", &mut self.timeout),
            ("cache_ttl", &mut self.cache_ttl),
        ] {
            if let Some(text) = values.one(key, &name)? {
                *place = duration(&text)
                    .ok_or_else(|| wrong(&name, key, "expected a duration such as `500ms`, `30s` or `5m`"))?;
            }
        }
        if self.connect_timeout.is_zero() || self.timeout.is_zero() {
            return Err(wrong(&name, "timeout", "expected more than 0"));
        }
        Ok(())
    }

    /// Reads the keys of MySQL. A schema in the address is the only visible one.
    fn read_mysql_options(&mut self, values: &Values<'_>) -> Result<()> {
        let name = self.name.clone();
        let dates = values.one("zero_dates", &name)?;
        if self.kind != Kind::Mysql {
            return match dates {
                None => Ok(()),
                Some(_) => Err(wrong(&name, "zero_dates", "`zero_dates` is for MySQL only")),
            };
        }
        self.zero_dates = match dates.as_deref() {
            None | Some("error") => ZeroDates::Error,
            Some("null") => ZeroDates::Null,
            Some(_) => return Err(wrong(&name, "zero_dates", "expected `error` or `null`")),
        };
        if let Some(schema) = self.place.schema() {
            if self.schemas.iter().any(|other| *other != schema) {
                return Err(wrong(&name, "schemas", "its address has another schema"));
            }
            self.schemas = vec![schema];
        }
        Ok(())
    }

    /// Checks that there is a user where one is required.
    pub(crate) fn check_user(&self) -> Result<()> {
        match self.kind == Kind::Mysql && self.user.is_none() {
            true => Err(wrong(&self.name, "user", "it is missing")),
            false => Ok(()),
        }
    }

    /// Tokens are only sent to Flight SQL servers, over private connections, and without other credentials.
    fn check_forwarding(&self) -> Result<()> {
        if !self.forward_token {
            return Ok(());
        }
        let wrong = |reason: &str| Err(wrong(&self.name, "forward_token", reason));
        if self.kind != Kind::FlightSql {
            return wrong("tokens are not supported for this kind of database");
        }
        if !self.place.is_private() {
            return wrong("tokens are sent over `grpc+tls://` or to this machine only");
        }
        let shown = self.password.is_some() || self.password_source.is_some() || self.secret.is_some();
        if self.user.is_some() || shown {
            return wrong("`user` or a password is set too");
        }
        Ok(())
    }

    /// The settings for one caller.
    pub(crate) fn for_caller(&self, token: &Arc<CallerToken>) -> Self {
        Self { bearer: Some(Arc::downgrade(token)), ..self.clone() }
    }

    /// The token of the caller, if there is one and its session lives.
    pub(crate) fn token(&self) -> Option<Secret> {
        self.bearer.as_ref().and_then(Weak::upgrade)?.token()
    }

    /// Reads the password from its file or variable.
    ///
    /// # Errors
    /// `Invalid` when there is none.
    pub(crate) fn with_password(mut self) -> Result<Self> {
        let read = match &self.password_source {
            None => return Ok(self),
            Some(PasswordSource::File(path)) => std::fs::read_to_string(path)
                .map(|text| text.trim_end_matches(['\r', '\n']).to_owned())
                .map_err(|error| {
                    wrong(&self.name, "password_file", &format!("`{}`: {error}", path.display()))
                })?,
            Some(PasswordSource::Variable(variable)) => std::env::var(variable).map_err(|_| {
                wrong(&self.name, "password_env", &format!("the variable `{variable}` is not set"))
            })?,
        };
        self.password = Some(Secret::new(read));
        Ok(self)
    }
}

fn within(name: &str, key: &str, error: &Error) -> Error {
    let message = wrong(name, key, error.message());
    match error.hint() {
        Some(hint) => message.with_hint(hint.to_owned()),
        None => message,
    }
}

#[cfg(test)]
mod tests;
