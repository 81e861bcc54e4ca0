//! Credentials of secrets for object stores: which addresses a secret is about, which one an address has, and how it stands beside
//! what the configuration says of the same place.
//!
//! Where a store is, the operator says: a secret may say it too (`endpoint`, `account`, `region`), where the configuration does not, and of
//! endpoints only those that the operator has named. Who is let in, the more exact of the two says, and the configuration where
//! both are as exact.

use super::options::PlaceSettings;
use super::url::{RemoteUrl, Scheme};
use crate::secrets::{KeptSecret, Secrets};
use bowshot_api::Secret;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// What addresses of object stores a secret is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreScope(RemoteUrl);

impl StoreScope {
    pub fn parse(text: &str) -> Result<Self, String> {
        RemoteUrl::parse(text).map(Self).map_err(|error| match error {
            crate::Error::Address { detail } => detail,
            _ => "invalid URL".to_owned(),
        })
    }

    pub fn is_of(&self, scheme: Scheme) -> bool {
        self.0.scheme == scheme
    }

    /// Whether others may hear what is sent to a web server there.
    pub(crate) fn is_overheard(&self) -> bool {
        let name = match self.0.authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((name, _)) => name,
            None => self.0.authority.split(':').next().unwrap_or_default(),
        };
        let here = name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback());
        self.0.root.starts_with("http://") && !here
    }
}

/// How exactly something is about an address: parts of the name below the bucket, in bytes; nothing for a whole kind of stores.
type Exactness = Option<usize>;

/// How exactly a secret is about an address, if it is.
fn exactness(secret: &KeptSecret, url: &RemoteUrl) -> Option<Exactness> {
    if secret.kind()?.scheme()? != url.scheme {
        return None;
    }
    match secret.place() {
        None => Some(None),
        Some(StoreScope(place)) => url.below(place).map(|_| Some(place.location.as_ref().len())),
    }
}

/// The secret whose credentials an address has; `None` where the configuration, the environment or the machine gives them.
/// `place` is what the configuration says of it.
pub(super) fn secret(
    secrets: &Secrets,
    url: &RemoteUrl,
    place: Option<&PlaceSettings>,
) -> Option<Arc<KeptSecret>> {
    let in_force = secrets.in_force();
    let about = in_force.values().filter_map(|secret| Some((exactness(secret, url)?, secret)));
    // Of those that are as exact as one another, the first by name counts, as long as it is there.
    let (exact, secret) = about.reduce(|best, next| if next.0 > best.0 { next } else { best })?;
    let configured = place.filter(|place| lets_in(place));
    let configured = configured.and_then(|place| RemoteUrl::parse(&place.url).ok());
    let yields = configured.is_some_and(|place| Some(place.location.as_ref().len()) >= exact);
    (!yields).then(|| Arc::clone(secret))
}

/// Whether an entry of the configuration says who is let in.
fn lets_in(place: &PlaceSettings) -> bool {
    place.values.keys().any(|key| !WHERE.contains(&key.as_str()))
}

/// Keys that say where a store is and how it is spoken to, and nothing else.
const WHERE: [&str; 5] = ["endpoint", "region", "virtual_hosted", "account", "certificate_authority"];

/// What the configuration says of a place without who is let in there, and the values of a secret that are to be added.
pub(super) fn united<'a>(
    secret: &'a KeptSecret,
    place: Option<&PlaceSettings>,
    secrets: &Secrets,
) -> Result<(Option<PlaceSettings>, BTreeMap<&'a str, &'a Secret>), String> {
    let place = place.map(|place| {
        let mut place = place.clone();
        place.values.retain(|key, _| WHERE.contains(&key.as_str()));
        place
    });
    let mut values: BTreeMap<&str, &Secret> =
        secret.values()?.iter().map(|(key, value)| (key.as_str(), value)).collect();
    for key in WHERE {
        let (Some(own), Some(configured)) =
            (values.get(key), place.as_ref().and_then(|place| place.values.get(key)))
        else {
            continue;
        };
        if own.expose().trim_end_matches('/') != configured.trim_end_matches('/') {
            return Err(format!("its {} differs from that of `[[object_store.places]]`", key.to_uppercase()));
        }
        values.remove(key);
    }
    if values.get("endpoint").is_some_and(|endpoint| !secrets.permits(endpoint.expose())) {
        return Err("its ENDPOINT is not allowed".to_owned());
    }
    Ok((place, values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::options::RemoteOptions;
    use crate::remote::store_builder::open_with;
    use bowshot_api::{EncryptedText, Error, SecretCipher};
    use std::collections::BTreeSet;

    /// Seals nothing.
    #[derive(Debug)]
    struct Open;

    impl SecretCipher for Open {
        fn encrypt(&self, _: &str, text: &Secret) -> bowshot_api::Result<EncryptedText> {
            Ok(EncryptedText { key: "open".to_owned(), text: text.expose().to_owned() })
        }

        fn decrypt(&self, _: &str, sealed: &EncryptedText) -> bowshot_api::Result<Secret> {
            match sealed.key.as_str() {
                "open" => Ok(Secret::new(sealed.text.as_str())),
                _ => Err(Error::invalid("closed")),
            }
        }
    }

    /// Secrets of these names and scopes; those that are called `closed` cannot be opened.
    fn secrets(all: &[(&str, &str)]) -> Arc<Secrets> {
        let secrets = Secrets::new(Arc::new(Open), BTreeSet::new());
        let texts = all.iter().map(|(name, scope)| {
            let all = [("type", "s3"), ("scope", *scope), ("key_id", "k"), ("secret", "s"), ("region", "r")];
            let options = all.into_iter().filter(|(_, value)| !value.is_empty());
            let options = options.map(|(key, value)| (key.to_owned(), Secret::new(value))).collect();
            let new = secrets.checked((*name).to_owned(), options).unwrap();
            let (key, text) = secrets.sealed(&new, "root", 1).unwrap();
            let text = if *name == "closed" { text.replace("\"open\"", "\"shut\"") } else { text };
            (key, text)
        });
        let texts = Arc::new(texts.collect());
        secrets.read_from(move || Some(Arc::clone(&texts)));
        secrets
    }

    fn place(url: &str, values: &[(&str, &str)]) -> PlaceSettings {
        let values = values.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        PlaceSettings { url: url.to_owned(), values }
    }

    fn chosen(secrets: &Secrets, url: &str, place: Option<&PlaceSettings>) -> Option<String> {
        secret(secrets, &RemoteUrl::parse(url).unwrap(), place).map(|secret| secret.name().to_owned())
    }

    #[test]
    fn the_most_exact_secret_counts() {
        let secrets =
            secrets(&[("all", ""), ("bucket", "s3://b"), ("deep", "s3://b/x/y/"), ("closed", "s3://b/c")]);
        for (url, name) in [
            ("s3://b/x/y/z", "deep"),
            ("s3://b/x/y", "deep"),
            ("s3://b/x/yz", "bucket"),
            ("s3://b", "bucket"),
            ("s3://other/x", "all"),
            ("s3a://b/x/y", "all"),
            ("s3://b/c/d", "closed"),
        ] {
            assert_eq!(chosen(&secrets, url, None).as_deref(), Some(name), "{url}");
        }
        assert_eq!(chosen(&secrets, "gs://b/x/y", None), None);
        let closed = secrets.named("closed").unwrap();
        assert!(united(&closed, None, &secrets).is_err(), "nobody else's credentials take its place");
    }

    #[test]
    fn the_configuration_counts_where_both_are_as_exact() {
        let secrets = secrets(&[("all", ""), ("bucket", "s3://b"), ("deep", "s3://b/x/y")]);
        let with_keys = |url: &str| place(url, &[("access_key_id", "env:K"), ("region", "r")]);
        let bucket = with_keys("s3://b/");
        assert_eq!(chosen(&secrets, "s3://b/z", Some(&bucket)), None);
        assert_eq!(chosen(&secrets, "s3://b/x/y", Some(&bucket)).as_deref(), Some("deep"));
        assert_eq!(chosen(&secrets, "s3://b/x/y", Some(&with_keys("s3://b/x/y"))), None);
        assert_eq!(chosen(&secrets, "s3://other", Some(&with_keys("s3://other"))), None);
        let where_alone = place("s3://b", &[("endpoint", "http://store"), ("region", "r")]);
        assert_eq!(chosen(&secrets, "s3://b/z", Some(&where_alone)).as_deref(), Some("bucket"));
        for key in ["anonymous", "profile"] {
            assert_eq!(chosen(&secrets, "s3://b", Some(&place("s3://b", &[(key, "x")]))), None, "{key}");
        }
    }

    #[test]
    fn where_a_store_is_the_operator_says() {
        let secrets = secrets(&[("bucket", "s3://b")]);
        let bucket = secrets.named("bucket").unwrap();
        let configured = place("s3://b", &[("endpoint", "http://store"), ("profile", "p"), ("region", "r")]);
        let (place_left, added) = united(&bucket, Some(&configured), &secrets).unwrap();
        let left: Vec<String> = place_left.unwrap().values.into_keys().collect();
        assert_eq!(left, ["endpoint", "region"]);
        assert_eq!(added.into_keys().collect::<Vec<_>>(), ["access_key_id", "secret_access_key"]);
        let other = place("s3://b", &[("region", "elsewhere")]);
        assert!(united(&bucket, Some(&other), &secrets).unwrap_err().contains("REGION"));
    }

    #[test]
    fn stores_of_every_kind_open_with_one() {
        let kinds: [(&str, &[(&str, &str)]); 5] = [
            ("s3://b/x", &[("type", "s3"), ("key_id", "k"), ("secret", "hush"), ("session_token", "hush")]),
            (
                "s3://b/x",
                &[("type", "s3"), ("anonymous", "true"), ("region", "eu-1"), ("url_style", "vhost")],
            ),
            ("az://box/x", &[("type", "azure"), ("account", "abc"), ("account_key", "aHVzaA==")]),
            ("az://box/x", &[("type", "azure"), ("account", "abc"), ("bearer_token", "hush")]),
            ("https://h/x", &[("type", "http"), ("scope", "https://h"), ("bearer_token", "hush")]),
        ];
        for (url, options) in kinds {
            let secrets = Secrets::new(Arc::new(Open), BTreeSet::new());
            let options = options.iter().map(|(key, value)| ((*key).to_owned(), Secret::new(*value)));
            let new = secrets.checked("x".to_owned(), options.collect()).unwrap();
            let (key, text) = secrets.sealed(&new, "root", 1).unwrap();
            let texts = Arc::new(BTreeMap::from([(key, text)]));
            secrets.read_from(move || Some(Arc::clone(&texts)));
            let secret = secrets.named("x").unwrap();
            let url = RemoteUrl::parse(url).unwrap();
            let opened = open_with((&secret, &secrets), &url, None, &RemoteOptions::default());
            let (stores, _) = opened.unwrap_or_else(|error| panic!("{}: {error}", url.root));
            assert!(!format!("{stores:?}").contains("hush"), "{stores:?}");
        }
    }

    #[test]
    fn tokens_are_not_sent_where_others_hear_them() {
        for (url, overheard) in [
            ("https://h/x", false),
            ("http://h/x", true),
            ("http://127.0.0.1:80/x", false),
            ("http://[::1]:80/x", false),
            ("http://localhost", false),
            ("http://127.0.0.1.example.org/x", true),
        ] {
            assert_eq!(StoreScope::parse(url).unwrap().is_overheard(), overheard, "{url}");
        }
    }
}
