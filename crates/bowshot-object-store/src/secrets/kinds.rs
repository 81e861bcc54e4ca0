//! What secrets there are: of which sources, with which keys, and what their values may be.

use crate::remote::{Scheme, StoreScope};
use bowshot_api::{Error, ErrorKind, Result, Secret};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of all values of a secret. A note has a limit of its own.
const MAX_BYTES: usize = 32 << 10;
const MAX_SCOPE_BYTES: usize = 2 << 10;
const MAX_NAME_CHARS: usize = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretKind {
    /// S3 and what speaks its protocol.
    S3,
    Gcs,
    /// Azure Blob Storage and Data Lake.
    Azure,
    Http,
    Postgres,
    MySql,
    /// Servers that speak Flight SQL.
    FlightSql,
}

/// A key of a secret: as it is kept, as it may be written too, and of which kinds of sources it is.
struct Key {
    name: &'static str,
    also: &'static [&'static str],
    kinds: &'static [SecretKind],
}

const STORES: &[SecretKind] = &[SecretKind::S3, SecretKind::Gcs, SecretKind::Azure];
const DATABASES: &[SecretKind] = &[SecretKind::Postgres, SecretKind::MySql, SecretKind::FlightSql];

const fn key(name: &'static str, also: &'static [&'static str], kinds: &'static [SecretKind]) -> Key {
    Key { name, also, kinds }
}

/// All keys but TYPE and SCOPE, by the names that `[[object_store.places]]` and `[[databases]]` have for them.
const KEYS: [Key; 15] = [
    key("access_key_id", &["key_id"], &[SecretKind::S3]),
    key("secret_access_key", &["secret"], &[SecretKind::S3]),
    key("session_token", &[], &[SecretKind::S3]),
    key("region", &[], &[SecretKind::S3]),
    key("virtual_hosted", &[], &[SecretKind::S3]),
    key("url_style", &[], &[SecretKind::S3]),
    key("endpoint", &[], STORES),
    key("anonymous", &[], STORES),
    key("service_account", &[], &[SecretKind::Gcs]),
    key("account", &["account_name"], &[SecretKind::Azure]),
    key("account_key", &[], &[SecretKind::Azure]),
    key("sas_token", &[], &[SecretKind::Azure]),
    key("bearer_token", &[], &[SecretKind::Azure, SecretKind::Http]),
    key("user", &["username"], DATABASES),
    key("password", &[], DATABASES),
];

/// A secret that fits together, not yet sealed. It prints without its values.
#[derive(Debug, Clone)]
pub struct NewSecret {
    pub name: String,
    pub(super) kind: SecretKind,
    pub(super) scope: Option<String>,
    pub(super) values: BTreeMap<String, Secret>,
}

impl SecretKind {
    const ALL: [Self; 7] =
        [Self::S3, Self::Gcs, Self::Azure, Self::Http, Self::Postgres, Self::MySql, Self::FlightSql];

    pub fn name(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Gcs => "gcs",
            Self::Azure => "azure",
            Self::Http => "http",
            Self::Postgres => "postgres",
            Self::MySql => "mysql",
            Self::FlightSql => "flightsql",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        let named = Self::ALL.into_iter().find(|kind| kind.name() == text);
        named.or(match text.as_str() {
            "gs" => Some(Self::Gcs),
            "az" => Some(Self::Azure),
            "https" => Some(Self::Http),
            "postgresql" => Some(Self::Postgres),
            "mariadb" => Some(Self::MySql),
            _ => None,
        })
    }

    pub fn scheme(self) -> Option<Scheme> {
        match self {
            Self::S3 => Some(Scheme::S3),
            Self::Gcs => Some(Scheme::Google),
            Self::Azure => Some(Scheme::Azure),
            Self::Http => Some(Scheme::Web),
            Self::Postgres | Self::MySql | Self::FlightSql => None,
        }
    }

    /// What an address of such a database begins with.
    fn database_schemes(self) -> &'static [&'static str] {
        match self {
            Self::Postgres => &["postgres", "postgresql"],
            Self::MySql => &["mysql", "mariadb"],
            Self::FlightSql => &["grpc", "grpc+tcp", "grpc+tls", "flightsql"],
            Self::S3 | Self::Gcs | Self::Azure | Self::Http => &[],
        }
    }

    fn keys(self) -> String {
        let keys = KEYS.iter().filter(|key| key.kinds.contains(&self));
        let names = keys.map(|key| match key.name {
            "access_key_id" => "KEY_ID".to_owned(),
            "secret_access_key" => "SECRET".to_owned(),
            name => name.to_uppercase(),
        });
        ["TYPE".to_owned(), "SCOPE".to_owned()].into_iter().chain(names).collect::<Vec<_>>().join(", ")
    }
}

impl NewSecret {
    /// Checks what a statement says of a secret. `endpoints` are those that the operator has named.
    ///
    /// # Errors
    /// `Invalid`, naming the key that cannot be used, but never what it says; `Denied` for an endpoint that is not the operator's.
    pub(super) fn read(
        name: String,
        options: Vec<(String, Secret)>,
        endpoints: &BTreeSet<String>,
    ) -> Result<Self> {
        check_name(&name)?;
        let mut values = BTreeMap::new();
        for (at, (key, value)) in options.into_iter().enumerate() {
            let known = KEYS.iter().find(|known| known.name == key || known.also.contains(&key.as_str()));
            let key = match (known, key.as_str()) {
                (Some(known), _) => known.name,
                (None, "type") => "type",
                (None, "scope") => "scope",
                (None, "provider") if value.expose().eq_ignore_ascii_case("config") => continue,
                (None, "provider") => {
                    return Err(wrong("PROVIDER", "expected `config`").with_hint(
                        "where no secret matches an address, credentials of the environment, profiles and machine are used",
                    ));
                }
                // What is no key may be a value at the wrong place.
                (None, _) => return Err(unknown_key(at, values.get("type"))),
            };
            if values.insert(key.to_owned(), value).is_some() {
                return Err(wrong(&key.to_uppercase(), "it is set twice"));
            }
        }
        let kind = kind_of(&mut values)?;
        let scope = values.remove("scope").map(|scope| scope.expose().trim().to_owned());
        check_scope(kind, scope.as_deref())?;
        let foreign =
            |key: &&String| !KEYS.iter().any(|known| known.name == **key && known.kinds.contains(&kind));
        if let Some(key) = values.keys().find(foreign) {
            return Err(wrong(
                &key.to_uppercase(),
                &format!("a secret of type {} has no such key", kind.name()),
            )
            .with_hint(format!("the keys are {}", kind.keys())));
        }
        check_values(&mut values)?;
        check_whole(kind, &values)?;
        if let Some(endpoint) = values.get("endpoint")
            && !endpoints.contains(endpoint.expose().trim_end_matches('/'))
        {
            // Whoever gives credentials does not say where the server goes with them.
            let error = Error::new(ErrorKind::Denied, "the ENDPOINT of the secret is not allowed");
            return Err(error.with_hint(
                "the operator can allow endpoints with the setting `object_store.endpoints`, or as `endpoint` in `[[object_store.places]]`",
            ));
        }
        Ok(Self { name, kind, scope, values })
    }
}

fn check_name(name: &str) -> Result<()> {
    let fits =
        !name.is_empty() && name.chars().count() <= MAX_NAME_CHARS && !name.chars().any(char::is_control);
    if fits {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "invalid name of a secret: expected 1 to {MAX_NAME_CHARS} characters, no control characters"
    )))
}

fn wrong(key: &str, reason: &str) -> Error {
    Error::invalid(format!("{key} of the secret cannot be used: {reason}"))
}

fn unknown_key(at: usize, kind: Option<&Secret>) -> Error {
    let kind = kind.and_then(|kind| SecretKind::parse(kind.expose()));
    let keys = kind.map_or_else(|| "TYPE, SCOPE and those of the type".to_owned(), SecretKind::keys);
    Error::invalid(format!("unknown key {} of the secret", at.saturating_add(1)))
        .with_hint(format!("the keys are {keys}"))
}

fn kind_of(values: &mut BTreeMap<String, Secret>) -> Result<SecretKind> {
    let all = || SecretKind::ALL.map(SecretKind::name).join(", ");
    let kind = values.remove("type").ok_or_else(|| {
        wrong("TYPE", "it is missing").with_hint(format!("write `TYPE s3`; the types are {}", all()))
    })?;
    SecretKind::parse(kind.expose())
        .ok_or_else(|| wrong("TYPE", "unknown type").with_hint(format!("the types are {}", all())))
}

/// Where credentials go, an address says, or a kind of stores. What is at that address is nobody's to say here.
fn check_scope(kind: SecretKind, scope: Option<&str>) -> Result<()> {
    let Some(scope) = scope else {
        return match kind {
            // A token is good for whoever gets it.
            SecretKind::Http => Err(wrong("SCOPE", "it is missing")
                .with_hint("set the server that gets the token: SCOPE 'https://example.org/files'")),
            _ => Ok(()),
        };
    };
    if scope.len() > MAX_SCOPE_BYTES {
        return Err(wrong("SCOPE", "it is too long"));
    }
    let Some(scheme) = kind.scheme() else { return check_database(kind, scope) };
    let place = StoreScope::parse(scope).map_err(|reason| wrong("SCOPE", &reason))?;
    if !place.is_of(scheme) {
        return Err(wrong("SCOPE", &format!("it is not an address of type {}", kind.name())));
    }
    if place.is_overheard() {
        return Err(
            wrong("SCOPE", "tokens are sent over encrypted connections only").with_hint("write `https://`")
        );
    }
    Ok(())
}

fn check_database(kind: SecretKind, scope: &str) -> Result<()> {
    let not = |reason: &str| Err(wrong("SCOPE", reason));
    let schemes = kind.database_schemes();
    let Some((scheme, rest)) = scope.split_once("://") else {
        return not(&format!("expected an address that begins with `{}://`", schemes.join("://` or `")));
    };
    if !schemes.contains(&scheme.to_ascii_lowercase().as_str()) {
        return not(&format!("expected an address that begins with `{}://`", schemes.join("://` or `")));
    }
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    if host.is_empty()
        || rest.contains(['@', '?', '#'])
        || rest.chars().any(|c| c.is_control() || c.is_whitespace())
    {
        return not("expected a host, a port and at most a database");
    }
    if path.split('/').any(|part| part == "." || part == "..") {
        return not("its parts must not be `.` or `..`");
    }
    Ok(())
}

/// What goes into headers and names of hosts has nothing in it that means something else there.
fn check_values(values: &mut BTreeMap<String, Secret>) -> Result<()> {
    let bytes: usize = values.values().map(|value| value.expose().len()).sum();
    if bytes > MAX_BYTES {
        return Err(Error::new(
            ErrorKind::LimitReached,
            format!("a secret must not exceed {MAX_BYTES} bytes"),
        ));
    }
    if let Some(style) = values.remove("url_style") {
        let hosted = match style.expose().to_ascii_lowercase().as_str() {
            "path" => "false",
            "vhost" => "true",
            _ => return Err(wrong("URL_STYLE", "expected `path` or `vhost`")),
        };
        if values.insert("virtual_hosted".to_owned(), Secret::new(hosted)).is_some() {
            return Err(wrong("URL_STYLE", "VIRTUAL_HOSTED is set too"));
        }
    }
    for (key, value) in values.iter() {
        let text = value.expose();
        let fits = match key.as_str() {
            _ if text.is_empty() => Err("it is empty"),
            "service_account" => check_service_account(text),
            _ if text.chars().any(char::is_control) => Err("it has control characters"),
            "region" if !of(text, |c| c.is_ascii_alphanumeric() || c == '-', 64) => {
                Err("expected letters, digits and `-`")
            }
            "account" if !of(text, |c| c.is_ascii_lowercase() || c.is_ascii_digit(), 24) => {
                Err("expected at most 24 lower-case letters and digits")
            }
            "anonymous" | "virtual_hosted" if !matches!(text, "true" | "false") => {
                Err("expected `true` or `false`")
            }
            "endpoint" if !text.starts_with("https://") && !text.starts_with("http://") => {
                Err("expected `https://` or `http://`")
            }
            "access_key_id" | "session_token" | "bearer_token"
                if !text.bytes().all(|byte| byte.is_ascii_graphic()) =>
            {
                Err("it has invalid characters")
            }
            _ => Ok(()),
        };
        fits.map_err(|reason| wrong(&key.to_uppercase(), reason))?;
    }
    Ok(())
}

fn of(text: &str, fits: impl Fn(char) -> bool, most: usize) -> bool {
    text.len() <= most && text.chars().all(fits)
}

/// The file of a service account may say where the store is, and that no token is asked for: that is not for it to say.
fn check_service_account(text: &str) -> std::result::Result<(), &'static str> {
    const NEEDED: [&str; 3] = ["client_email", "private_key", "private_key_id"];
    let Ok(serde_json::Value::Object(account)) = serde_json::from_str(text) else {
        return Err("expected the JSON key of a service account");
    };
    if !NEEDED.iter().all(|key| account.get(*key).is_some_and(serde_json::Value::is_string)) {
        return Err("it lacks `client_email`, `private_key` or `private_key_id`");
    }
    if account.contains_key("gcs_base_url") || account.contains_key("disable_oauth") {
        return Err("`gcs_base_url` and `disable_oauth` in it are refused");
    }
    Ok(())
}

/// Whether there is what somebody can be let in with.
fn check_whole(kind: SecretKind, values: &BTreeMap<String, Secret>) -> Result<()> {
    let has = |key: &str| values.contains_key(key);
    let one_of = |keys: &[&str]| keys.iter().filter(|key| has(key)).count();
    let anonymous = values.get("anonymous").is_some_and(|value| value.expose() == "true");
    let (fits, needed) = match kind {
        SecretKind::S3 => (
            if anonymous {
                one_of(&["access_key_id", "secret_access_key", "session_token"]) == 0
            } else {
                has("access_key_id") && has("secret_access_key")
            },
            "KEY_ID and SECRET, or ANONYMOUS alone",
        ),
        SecretKind::Gcs => (has("service_account") != anonymous, "SERVICE_ACCOUNT, or ANONYMOUS alone"),
        SecretKind::Azure => (
            one_of(&["account_key", "sas_token", "bearer_token"]) == usize::from(!anonymous),
            "one of ACCOUNT_KEY, SAS_TOKEN and BEARER_TOKEN, or ANONYMOUS alone",
        ),
        SecretKind::Http => (has("bearer_token"), "BEARER_TOKEN"),
        SecretKind::Postgres | SecretKind::MySql | SecretKind::FlightSql => {
            (has("user") || has("password"), "USER and PASSWORD")
        }
    };
    if fits {
        Ok(())
    } else {
        Err(Error::invalid(format!("a secret of type {} needs {needed}", kind.name())))
    }
}
