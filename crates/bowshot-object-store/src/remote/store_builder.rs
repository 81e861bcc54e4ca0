//! Opens the store of a bucket. Credentials come from the configuration or a secret (`secret_credentials` decides which), then the
//! environment, AWS profiles and instance metadata. No error or log shows them.

use super::options::{PlaceSettings, RemoteOptions};
use super::url::{RemoteUrl, Scheme};
use super::vended::Vended;
use super::{client::Stores, profile, secret_credentials};
use crate::secrets::{KeptSecret, Secrets};
use bowshot_api::{Error, Result, Secret};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::limit::LimitStore;
use object_store::{
    BackoffConfig, Certificate, ClientOptions, HeaderMap, HeaderValue, ObjectStore, RetryConfig,
};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Keys of a place, with how the libraries call them.
const KEYS: [Key; 14] = [
    key(
        "endpoint",
        Kind::Plain,
        [Some("aws_endpoint"), Some("google_base_url"), Some("azure_storage_endpoint")],
    ),
    key("region", Kind::Plain, [Some("aws_region"), None, None]),
    key("virtual_hosted", Kind::Plain, [Some("aws_virtual_hosted_style_request"), None, None]),
    key(
        "anonymous",
        Kind::Plain,
        [Some("aws_skip_signature"), Some("google_skip_signature"), Some("azure_skip_signature")],
    ),
    key("access_key_id", Kind::Secret, [Some("aws_access_key_id"), None, None]),
    key("secret_access_key", Kind::Secret, [Some("aws_secret_access_key"), None, None]),
    key("session_token", Kind::Secret, [Some("aws_session_token"), None, None]),
    key("profile", Kind::Own, [Some(""), None, None]),
    key("service_account", Kind::Plain, [None, Some("google_service_account"), None]),
    key("account", Kind::Plain, [None, None, Some("azure_storage_account_name")]),
    key("account_key", Kind::Secret, [None, None, Some("azure_storage_account_key")]),
    key("sas_token", Kind::Secret, [None, None, Some("azure_storage_sas_key")]),
    key("bearer_token", Kind::Secret, [None, None, Some("azure_storage_token")]),
    key("certificate_authority", Kind::Own, [Some(""), Some(""), Some("")]),
];

/// How a value is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    /// `env:NAME` or `file:PATH`.
    Secret,
    /// Not for the library.
    Own,
}

#[derive(Debug)]
struct Key {
    name: &'static str,
    kind: Kind,
    /// For S3, Google and Azure; `None` where it means nothing.
    names: [Option<&'static str>; 3],
}

const fn key(name: &'static str, kind: Kind, names: [Option<&'static str>; 3]) -> Key {
    Key { name, kind, names }
}

/// What a place says, secrets read.
struct Said<'a> {
    url: &'a RemoteUrl,
    /// The library's keys with their values.
    options: Vec<(&'static str, String)>,
    profile: Option<String>,
    authority: Option<Certificate>,
    endpoint: Option<String>,
    /// Credentials of somebody else, beside which none of the server's own are used.
    vended: Option<Arc<Vended>>,
    /// The secret that says who is let in, by its name.
    lent: Option<&'a str>,
    /// What a web server is shown.
    bearer: Option<Secret>,
}

/// Variables of the environment that name an endpoint.
const ENDPOINTS_OF_S3: [&str; 3] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];
const ENDPOINTS_OF_GOOGLE: [&str; 1] = ["GOOGLE_BASE_URL"];
const ENDPOINTS_OF_AZURE: [&str; 3] =
    ["AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT", "AZURITE_BLOB_STORAGE_URL"];

/// The endpoints that the operator has named: those alone may be named by secrets.
pub(super) fn endpoints(options: &RemoteOptions) -> BTreeSet<String> {
    let places = options.places.iter().filter_map(|place| place.values.get("endpoint").cloned());
    let variables = ENDPOINTS_OF_S3.iter().chain(&ENDPOINTS_OF_GOOGLE).chain(&ENDPOINTS_OF_AZURE);
    let variables = variables.filter_map(|name| std::env::var(name).ok());
    let profile = profile::value(None, "endpoint_url");
    options.endpoints.iter().cloned().chain(places).chain(variables).chain(profile).collect()
}

/// Opens a bucket with the credentials of a secret: see [`open`].
pub(super) fn open_with(
    (secret, secrets): (&KeptSecret, &Secrets),
    url: &RemoteUrl,
    settings: Option<&PlaceSettings>,
    options: &RemoteOptions,
) -> Result<(Stores, String)> {
    let wrong = |reason: &str| {
        Error::invalid(format!("the secret `{}` cannot be used for `{}`: {reason}", secret.name(), url.root))
    };
    let (place, values) =
        secret_credentials::united(secret, settings, secrets).map_err(|reason| wrong(&reason))?;
    let mut said = Said::read(url, place.as_ref(), None)?;
    said.lent = Some(secret.name());
    for (name, value) in values {
        let text = value.expose();
        match (name, url.scheme) {
            ("service_account", Scheme::Google) => {
                said.options.push(("google_service_account_key", text.to_owned()));
            }
            ("bearer_token", Scheme::Web) => said.bearer = Some(value.clone()),
            _ => {
                let key = KEYS.iter().find(|key| key.name == name);
                let library = key.and_then(|key| key.library_name(url.scheme));
                let library = library.ok_or_else(|| wrong("it has a key of another kind of store"))?;
                if name == "endpoint" {
                    said.endpoint = Some(text.to_owned());
                }
                said.options.push((library, text.to_owned()));
            }
        }
    }
    said.open(options)
}

/// Opens a bucket; nothing is asked of it yet. Also the endpoint that it is at, as far as somebody named one.
pub(super) fn open(
    url: &RemoteUrl,
    settings: Option<&PlaceSettings>,
    (options, vended): (&RemoteOptions, Option<&Arc<Vended>>),
) -> Result<(Stores, String)> {
    Said::read(url, settings, vended)?.open(options)
}

/// Checks the keys of a place and how secrets are named, without looking them up.
///
/// # Errors
/// `Invalid`, naming the place and the key.
pub(super) fn check(settings: &PlaceSettings) -> Result<()> {
    let url = RemoteUrl::parse(&settings.url).map_err(Error::from)?;
    for (name, value) in &settings.values {
        let key = known(&url, settings, name)?;
        if key.kind == Kind::Secret && !value.starts_with("env:") && !value.starts_with("file:") {
            return Err(wrong(settings, name, "expected a reference to a secret, not the secret itself")
                .with_hint("write `env:NAME` for an environment variable, or `file:PATH`"));
        }
    }
    Ok(())
}

fn known(url: &RemoteUrl, settings: &PlaceSettings, name: &str) -> Result<&'static Key> {
    let known: Vec<&'static Key> = KEYS.iter().filter(|key| key.means_something(url.scheme)).collect();
    let found = known.iter().find(|key| key.name == name).copied();
    found.ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|key| key.name).collect();
        wrong(settings, name, "unknown key").with_hint(format!("the keys are url, {}", names.join(", ")))
    })
}

fn wrong(settings: &PlaceSettings, name: &str, reason: &str) -> Error {
    Error::invalid(format!("`{name}` of the object store `{}` cannot be used: {reason}", settings.url))
}

impl Key {
    fn means_something(&self, scheme: Scheme) -> bool {
        let [s3, google, azure] = self.names;
        match scheme {
            Scheme::S3 => s3.is_some(),
            Scheme::Google => google.is_some(),
            Scheme::Azure => azure.is_some(),
            Scheme::Web => self.name == "certificate_authority",
        }
    }

    fn library_name(&self, scheme: Scheme) -> Option<&'static str> {
        let [s3, google, azure] = self.names;
        match scheme {
            Scheme::S3 => s3,
            Scheme::Google => google,
            Scheme::Azure => azure,
            Scheme::Web => None,
        }
    }
}

impl<'a> Said<'a> {
    fn read(
        url: &'a RemoteUrl,
        settings: Option<&PlaceSettings>,
        vended: Option<&Arc<Vended>>,
    ) -> Result<Self> {
        let (profile, authority, endpoint, lent, bearer) = (None, None, None, None, None);
        let (options, vended) = (Vec::new(), vended.cloned());
        let mut said = Self { url, options, profile, authority, endpoint, vended, lent, bearer };
        let Some(settings) = settings else { return Ok(said) };
        check(settings)?;
        for (name, value) in &settings.values {
            let key = known(url, settings, name)?;
            let is_of_server = key.kind == Kind::Secret || ["profile", "anonymous"].contains(&key.name);
            if said.vended.is_some() && is_of_server {
                continue;
            }
            let value = match key.kind {
                Kind::Secret => secret(value).map_err(|reason| wrong(settings, name, &reason))?,
                Kind::Plain | Kind::Own => value.clone(),
            };
            match (key.name, key.library_name(url.scheme)) {
                ("profile", _) => said.profile = Some(value),
                ("certificate_authority", _) => {
                    said.authority =
                        Some(certificate(&value).map_err(|reason| wrong(settings, name, &reason))?);
                }
                (_, Some(library)) => {
                    if key.name == "endpoint" {
                        said.endpoint = Some(value.clone());
                    }
                    said.options.push((library, value));
                }
                (_, None) => {}
            }
        }
        Ok(said)
    }

    fn open(&self, options: &RemoteOptions) -> Result<(Stores, String)> {
        let endpoint = self.endpoint().unwrap_or_default();
        // An account is in the name of the host.
        let account = self.options.iter().find(|(name, _)| *name == "azure_storage_account_name");
        let account = account.map(|(_, account)| format!("#{account}")).unwrap_or_default();
        let once = self.build(options, 0)?;
        let patient = self.build(options, options.max_retries)?;
        Ok((Stores { once, patient }, endpoint + &account))
    }

    fn endpoint(&self) -> Option<String> {
        let variables: &[&str] = match self.url.scheme {
            Scheme::S3 => &ENDPOINTS_OF_S3,
            Scheme::Google => &ENDPOINTS_OF_GOOGLE,
            Scheme::Azure => &ENDPOINTS_OF_AZURE,
            Scheme::Web => &[],
        };
        let of_environment = || variables.iter().find_map(|name| std::env::var(name).ok());
        let of_profile = || {
            profile::value(self.profile.as_deref(), "endpoint_url").filter(|_| self.url.scheme == Scheme::S3)
        };
        self.endpoint.clone().or_else(of_environment).or_else(of_profile)
    }

    fn build(&self, options: &RemoteOptions, max_retries: usize) -> Result<Arc<dyn ObjectStore>> {
        // Within half of the time, so that the last answer is told, and not that the time is over.
        let backoff = BackoffConfig { max_backoff: options.timeout / 8, ..BackoffConfig::default() };
        let retry = RetryConfig { backoff, max_retries, retry_timeout: options.timeout / 2 };
        let client = self.client(options)?;
        let limit = options.max_requests.max(1);
        macro_rules! build {
            ($builder:expr) => {{
                let built = $builder.with_retry(retry).with_client_options(client).build();
                built.map(|store| limited(store, limit))
            }};
        }
        let built = match self.url.scheme {
            Scheme::S3 => build!(self.s3()?),
            Scheme::Google => build!(self.google()?),
            Scheme::Azure => build!(self.azure()?),
            Scheme::Web => build!(HttpBuilder::new().with_url(format!("{}/", self.url.root))),
        };
        // What the library says may quote a value; which settings matter for the store is what helps.
        built.map_err(|_| self.unusable("its settings are incomplete or contradict one another"))
    }

    fn client(&self, options: &RemoteOptions) -> Result<ClientOptions> {
        let plain = match self.url.scheme {
            Scheme::Web => self.url.root.starts_with("http://"),
            _ => self.endpoint().is_some_and(|endpoint| endpoint.starts_with("http://")),
        };
        let mut client = ClientOptions::new()
            .with_allow_http(plain)
            .with_timeout(options.request_timeout)
            .with_connect_timeout(CONNECT_TIMEOUT.min(options.request_timeout));
        if let Some(bearer) = &self.bearer {
            let value = HeaderValue::try_from(format!("Bearer {}", bearer.expose()));
            let mut value = value.map_err(|_| self.unusable("its BEARER_TOKEN cannot be sent"))?;
            value.set_sensitive(true);
            let mut headers = HeaderMap::new();
            headers.insert("authorization", value);
            client = client.with_default_headers(headers);
        }
        Ok(match &self.authority {
            Some(authority) => client.with_root_certificate(authority.clone()),
            None => client,
        })
    }

    /// Whether the place names any: those of the environment are another's then, and go nowhere near it.
    fn has_own_credentials(&self) -> bool {
        const SECRETS: [&str; 5] = ["key", "token", "secret", "sas", "password"];
        let is_secret = |name: &str| SECRETS.iter().any(|word| name.contains(word));
        self.vended.is_some()
            || self.lent.is_some()
            || self.profile.is_some()
            || self.options.iter().any(|(name, _)| is_secret(name))
    }

    fn s3(&self) -> Result<AmazonS3Builder> {
        let environment = AmazonS3Builder::from_env();
        let mut builder = if self.has_own_credentials() {
            let mut own = AmazonS3Builder::new();
            for key in
                [AmazonS3ConfigKey::Region, AmazonS3ConfigKey::DefaultRegion, AmazonS3ConfigKey::Endpoint]
            {
                if let Some(value) = environment.get_config_value(&key) {
                    own = own.with_config(key, value);
                }
            }
            own
        } else {
            environment
        };
        builder = builder.with_bucket_name(&self.url.authority);
        if let Some(endpoint) = self.endpoint() {
            builder = builder.with_endpoint(endpoint);
        }
        for (name, value) in &self.options {
            let key: AmazonS3ConfigKey = name.parse().map_err(|_| self.unusable(name))?;
            builder = builder.with_config(key, value);
        }
        let given = |key| builder.get_config_value(&key).is_some();
        if let Some(vended) = &self.vended {
            if let (false, Some(region)) = (given(AmazonS3ConfigKey::Region), &vended.region) {
                builder = builder.with_region(region);
            }
            return Ok(builder.with_credentials(Arc::clone(vended) as _));
        }
        let keyless = !given(AmazonS3ConfigKey::AccessKeyId);
        if !given(AmazonS3ConfigKey::Region)
            && let Some(region) = profile::value(self.profile.as_deref(), "region")
        {
            builder = builder.with_region(region);
        }
        let named = self.profile.clone().or_else(profile::chosen);
        if self.lent.is_none() && (keyless || self.profile.is_some()) {
            match profile::Credentials::find(named.as_deref()) {
                Ok(Some(credentials)) => builder = builder.with_credentials(Arc::new(credentials)),
                Ok(None) => {}
                Err(reason) => return Err(self.unusable(&reason)),
            }
        }
        Ok(builder)
    }

    fn google(&self) -> Result<GoogleCloudStorageBuilder> {
        let builder = match self.lent {
            Some(_) => GoogleCloudStorageBuilder::new(),
            None => GoogleCloudStorageBuilder::from_env(),
        };
        let mut builder = builder.with_bucket_name(&self.url.authority);
        if let Some(endpoint) = self.endpoint() {
            builder = builder.with_base_url(&endpoint);
        }
        for (name, value) in &self.options {
            let key: GoogleConfigKey = name.parse().map_err(|_| self.unusable(name))?;
            builder = builder.with_config(key, value);
        }
        Ok(builder)
    }

    fn azure(&self) -> Result<MicrosoftAzureBuilder> {
        let environment = MicrosoftAzureBuilder::from_env();
        let builder = if self.has_own_credentials() {
            let mut own = MicrosoftAzureBuilder::new();
            for key in [AzureConfigKey::AccountName, AzureConfigKey::Endpoint, AzureConfigKey::UseEmulator] {
                if let Some(value) = environment.get_config_value(&key) {
                    own = own.with_config(key, value);
                }
            }
            own
        } else {
            environment
        };
        let mut builder = match self.url.authority.contains('@') {
            true => builder.with_url(&self.url.root),
            false => builder.with_container_name(&self.url.authority),
        };
        for (name, value) in &self.options {
            let key: AzureConfigKey = name.parse().map_err(|_| self.unusable(name))?;
            builder = builder.with_config(key, value);
        }
        Ok(builder)
    }

    fn unusable(&self, reason: &str) -> Error {
        let with = self.lent.map(|name| format!(" with the secret `{name}`")).unwrap_or_default();
        Error::invalid(format!("the object store `{}` cannot be used{with}: {reason}", self.url.root)).with_hint(
            "see the guide `object-stores` for what each store needs, in the environment or as an entry of \
             `[[object_store.places]]`",
        )
    }
}

fn limited(store: impl ObjectStore, limit: usize) -> Arc<dyn ObjectStore> {
    Arc::new(LimitStore::new(store, limit))
}

/// Parses a duration such as `500ms`, of a day at most; units are `ms`, `s`, `m` and `h`.
pub fn duration(text: &str) -> Option<Duration> {
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

/// What a secret is, by where it lies; the reason never shows it.
pub fn secret(place: &str) -> std::result::Result<String, String> {
    if let Some(name) = place.strip_prefix("env:") {
        return std::env::var(name).map_err(|_| format!("the environment variable `{name}` is not set"));
    }
    let path = place.strip_prefix("file:").unwrap_or_default();
    let text = std::fs::read_to_string(path).map_err(|error| format!("`{path}` cannot be read: {error}"))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

pub(super) fn certificate(path: &str) -> std::result::Result<Certificate, String> {
    let pem = std::fs::read(Path::new(path)).map_err(|error| format!("`{path}` cannot be read: {error}"))?;
    Certificate::from_pem(&pem).map_err(|_| format!("`{path}` has no certificate"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(values: &[(&str, &str)]) -> PlaceSettings {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        PlaceSettings { url: "s3://bucket".to_owned(), values }
    }

    #[test]
    fn secrets_are_named_and_never_shown() {
        assert!(check(&place(&[("secret_access_key", "env:X"), ("region", "eu-1")])).is_ok());
        let error = check(&place(&[("secret_access_key", "hunter2")])).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"));
        assert!(!format!("{:?}", place(&[("secret_access_key", "hunter2")])).contains("hunter2"));
        assert!(check(&place(&[("account_key", "env:X")])).is_err());
    }

    #[test]
    fn secrets_of_files_have_no_line_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "s3cret\n").unwrap();
        assert_eq!(secret(&format!("file:{}", path.display())).unwrap(), "s3cret");
        assert!(secret("file:/not/there").is_err() && secret("env:BOWSHOT_NOT_THERE").is_err());
    }
}
