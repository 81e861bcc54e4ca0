//! What the operator says of a catalog: an entry of `[[databases]]` whose kind is `iceberg`.

use super::allowed_locations::Place;
use super::names::parts;
use bowshot_api::{Error, Result, Secret};
use bowshot_object_store::{duration, secret};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use url::Url;

const KEYS: [&str; 16] = [
    "name",
    "kind",
    "uri",
    "warehouse",
    "token",
    "client_id",
    "client_secret",
    "scope",
    "token_uri",
    "credentials",
    "places",
    "schemas",
    "read_only",
    "certificate_authority",
    "timeout",
    "cache_ttl",
];

/// How often it is asked what a table is now.
const CACHE_TTL: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub struct IcebergSettings {
    pub name: String,
    pub(super) uri: Url,
    pub(super) warehouse: Option<String>,
    pub(super) login: Login,
    /// Whether files are read with credentials that the catalog gives.
    pub(super) is_vended: bool,
    pub(super) places: Vec<Place>,
    /// Namespaces whose tables are seen; all of the first level when empty.
    pub(super) schemas: Vec<String>,
    pub(super) read_only: bool,
    pub(super) authority: Option<PathBuf>,
    pub(super) timeout: Option<Duration>,
    pub(super) cache_ttl: Duration,
}

/// How the server proves who it is.
#[derive(Debug, Clone)]
pub(super) enum Login {
    Nobody,
    Token(SecretPlace),
    /// OAuth 2 client credentials.
    Client {
        id: SecretPlace,
        secret: SecretPlace,
        scope: String,
        uri: Option<Url>,
    },
}

/// Where a secret is: `env:NAME` or `file:PATH`.
#[derive(Debug, Clone)]
pub(super) struct SecretPlace(String);

impl SecretPlace {
    pub(super) fn read(&self) -> std::result::Result<Secret, String> {
        secret(&self.0).map(Secret::new)
    }
}

impl IcebergSettings {
    /// Whether an entry of `[[databases]]` is one of a catalog.
    pub fn is_meant(values: &BTreeMap<String, Vec<String>>) -> bool {
        matches!(values.get("kind").map(Vec::as_slice), Some([kind]) if kind.eq_ignore_ascii_case("iceberg"))
    }

    /// Reads an entry. Paths are relative to `base`.
    pub fn read(values: &BTreeMap<String, Vec<String>>, base: Option<&Path>) -> Result<Self> {
        let entry =
            Entry { values, name: values.get("name").and_then(|it| it.first()).cloned().unwrap_or_default() };
        entry.check()?;
        let uri = entry.url("uri")?.ok_or_else(|| entry.wrong("uri", "it is missing"))?;
        let warehouse = entry.one("warehouse")?;
        let is_vended = match entry.one("credentials")?.as_deref() {
            None | Some("own") => false,
            Some("vended") => true,
            Some(_) => return Err(entry.wrong("credentials", "expected `own` or `vended`")),
        };
        let read_only = match entry.one("read_only")?.as_deref() {
            None | Some("true") => true,
            Some("false") => false,
            Some(_) => return Err(entry.wrong("read_only", "expected `true` or `false`")),
        };
        let timeout = entry.duration("timeout")?;
        if timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(entry.wrong("timeout", "expected more than 0"));
        }
        let authority = entry.one("certificate_authority")?;
        let authority =
            authority.map(|path| base.map_or_else(|| PathBuf::from(&path), |base| base.join(&path)));
        Ok(Self {
            login: entry.login()?,
            places: entry.places(warehouse.as_deref())?,
            schemas: entry.schemas()?,
            cache_ttl: entry.duration("cache_ttl")?.unwrap_or(CACHE_TTL),
            name: entry.name,
            uri,
            warehouse,
            is_vended,
            read_only,
            authority,
            timeout,
        })
    }
}

struct Entry<'a> {
    values: &'a BTreeMap<String, Vec<String>>,
    name: String,
}

impl Entry<'_> {
    fn check(&self) -> Result<()> {
        let name = &self.name;
        if name.is_empty() || name.len() > 128 || name.chars().any(char::is_control) {
            return Err(Error::invalid("invalid name of a database: expected 1 to 128 characters"));
        }
        match self.values.keys().find(|key| !KEYS.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => {
                Err(self.wrong(key, "unknown key").with_hint(format!("the keys are {}", KEYS.join(", "))))
            }
        }
    }

    fn wrong(&self, key: &str, reason: &str) -> Error {
        Error::invalid(format!("`{key}` of the database `{}` cannot be used: {reason}", self.name))
    }

    fn one(&self, key: &str) -> Result<Option<String>> {
        match self.values.get(key).map(Vec::as_slice) {
            None => Ok(None),
            Some([one]) => Ok(Some(one.clone())),
            Some(_) => Err(self.wrong(key, "expected one value")),
        }
    }

    fn many(&self, key: &str) -> Vec<String> {
        let values = self.values.get(key).map(Vec::as_slice).unwrap_or_default();
        let parts = values.iter().flat_map(|text| text.split(','));
        parts.map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
    }

    fn schemas(&self) -> Result<Vec<String>> {
        let schemas = self.many("schemas");
        match schemas.iter().all(|schema| parts(schema).is_some()) {
            true => Ok(schemas),
            false => Err(self
                .wrong("schemas", "invalid name of a namespace")
                .with_hint("separate its parts with dots: `a.b`")),
        }
    }

    fn secret(&self, key: &str) -> Result<Option<SecretPlace>> {
        match self.one(key)? {
            None => Ok(None),
            Some(place) if place.starts_with("env:") || place.starts_with("file:") => {
                Ok(Some(SecretPlace(place)))
            }
            Some(_) => Err(self
                .wrong(key, "expected a reference to a secret, not the secret itself")
                .with_hint("write `env:NAME` for an environment variable, or `file:PATH`")),
        }
    }

    /// An address without credentials. It is not repeated.
    fn url(&self, key: &str) -> Result<Option<Url>> {
        let Some(text) = self.one(key)? else { return Ok(None) };
        let url = Url::parse(&text).map_err(|_| self.wrong(key, "invalid URL"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(self.wrong(key, "expected `https://` or `http://`"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(self.wrong(key, "a URL must not contain credentials"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(self.wrong(key, "a URL must not contain `?` or `#`"));
        }
        Ok(Some(url))
    }

    fn duration(&self, key: &str) -> Result<Option<Duration>> {
        let Some(text) = self.one(key)? else { return Ok(None) };
        let wrong = || self.wrong(key, "expected a duration such as `500ms`, `30s` or `5m`");
        duration(&text).map(Some).ok_or_else(wrong)
    }

    fn login(&self) -> Result<Login> {
        let (token, id, secret) =
            (self.secret("token")?, self.secret("client_id")?, self.secret("client_secret")?);
        let (scope, uri) = (self.one("scope")?, self.url("token_uri")?);
        match (token, id, secret) {
            (None, Some(id), Some(secret)) => {
                Ok(Login::Client { id, secret, scope: scope.unwrap_or_else(|| "catalog".to_owned()), uri })
            }
            (None, Some(_), None) => Err(self.wrong("client_id", "`client_secret` is missing")),
            (None, None, Some(_)) => Err(self.wrong("client_secret", "`client_id` is missing")),
            (Some(_), Some(_), _) | (Some(_), _, Some(_)) => {
                Err(self.wrong("token", "`client_id` or `client_secret` is set too"))
            }
            (_, None, None) if scope.is_some() || uri.is_some() => {
                Err(self.wrong("scope", "`scope` and `token_uri` need `client_id` and `client_secret`"))
            }
            (Some(token), None, None) => Ok(Login::Token(token)),
            (None, None, None) => Ok(Login::Nobody),
        }
    }

    /// The places of the operator, else the warehouse, where that is one.
    fn places(&self, warehouse: Option<&str>) -> Result<Vec<Place>> {
        let named = self.many("places");
        if named.is_empty() {
            let place = warehouse.and_then(Place::parse);
            return place.map(|place| vec![place]).ok_or_else(|| {
                self.wrong("places", "it is missing, and the warehouse is not the address of a bucket")
                    .with_hint("set the allowed locations of tables: `places = [\"s3://bucket/prefix\"]`")
            });
        }
        let parse = |text: &String| {
            Place::parse(text).ok_or_else(|| {
                self.wrong("places", "expected a bucket or an absolute path")
                    .with_hint("write `s3://bucket/prefix`, `gs://…`, `az://…` or an absolute path")
            })
        };
        named.iter().map(parse).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, Vec<String>> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), vec![(*value).to_owned()])).collect()
    }

    #[test]
    fn an_entry_is_understood_as_a_whole_or_refused() {
        let base = [
            ("name", "lake"),
            ("kind", "iceberg"),
            ("uri", "http://h:1/api"),
            ("warehouse", "s3://bucket/w"),
        ];
        assert!(IcebergSettings::is_meant(&values(&base)));
        let good = IcebergSettings::read(&values(&base), None).unwrap();
        assert!(
            good.read_only
                && !good.is_vended
                && good.places.len() == 1
                && matches!(good.login, Login::Nobody)
        );
        for (key, value) in [
            ("uri", "ftp://h/x"),
            ("uri", "http://u:p@h/x"),
            ("uri", "http://h/x?token=y"),
            ("uri", "h"),
            ("token", "hunter2"),
            ("client_id", "env:X"),
            ("client_secret", "env:X"),
            ("scope", "x"),
            ("credentials", "all"),
            ("read_only", "no"),
            ("places", "somewhere"),
            ("warehouse", "w"),
            ("timeout", "0s"),
            ("cache_ttl", "soon"),
            ("schemas", "a,b..c"),
            ("schemas", "a\tb"),
            ("pasword", "x"),
            ("name", ""),
        ] {
            let mut pairs = base.to_vec();
            pairs.retain(|(known, _)| *known != key);
            pairs.push((key, value));
            let error = IcebergSettings::read(&values(&pairs), None).unwrap_err();
            assert!(!format!("{error:?}").contains("hunter2"), "{key}={value}");
        }
        let mut both = base.to_vec();
        both.extend([("token", "env:A"), ("client_id", "env:B"), ("client_secret", "env:C")]);
        assert!(IcebergSettings::read(&values(&both), None).is_err());
        both.retain(|(key, _)| *key != "token");
        assert!(matches!(IcebergSettings::read(&values(&both), None).unwrap().login, Login::Client { .. }));
    }
}
