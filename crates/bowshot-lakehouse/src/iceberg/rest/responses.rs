//! Responses of a catalog. They contain credentials and must not be shown.

use super::super::metadata::TableMetadata;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Key by which credentials of S3 begin.
const KEY: &str = "s3.access-key-id";
const SECRET: &str = "s3.secret-access-key";
const TOKEN: &str = "s3.session-token";
const REGIONS: [&str; 2] = ["client.region", "s3.region"];

/// `GET /v1/config`.
#[derive(Deserialize)]
pub(super) struct Config(Map<String, Value>);

/// `GET …/namespaces`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Namespaces {
    #[serde(default)]
    pub(super) namespaces: Vec<Vec<String>>,
    pub(super) next_page_token: Option<String>,
}

/// `GET …/namespaces/{namespace}/tables`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Tables {
    #[serde(default)]
    pub(super) identifiers: Vec<Identifier>,
    pub(super) next_page_token: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Identifier {
    pub(super) name: String,
}

/// `GET …/namespaces/{namespace}/tables/{table}`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct LoadedTable {
    pub(super) metadata_location: Option<String>,
    pub(super) metadata: TableMetadata,
    #[serde(default)]
    config: HashMap<String, Option<String>>,
    #[serde(default)]
    storage_credentials: Vec<StorageCredential>,
}

/// The same answer with all that the metadata say.
#[derive(Deserialize)]
pub(super) struct WholeTable {
    pub(super) metadata: Value,
}

#[derive(Deserialize)]
struct StorageCredential {
    prefix: String,
    config: HashMap<String, Option<String>>,
}

/// `POST …/oauth/tokens`.
#[derive(Deserialize)]
pub(super) struct Token {
    pub(super) access_token: String,
    pub(super) expires_in: Option<u64>,
}

pub(super) struct Given {
    pub(super) key: String,
    pub(super) secret: String,
    pub(super) token: Option<String>,
    pub(super) region: Option<String>,
}

impl Config {
    pub(super) fn is_whole(&self) -> bool {
        ["defaults", "overrides"].iter().any(|part| self.0.get(*part).is_some_and(Value::is_object))
    }

    /// What stands between version and names in all addresses.
    pub(super) fn prefix(&self) -> Option<&str> {
        let of = |part: &str| self.0.get(part)?.get("prefix")?.as_str();
        of("overrides").or_else(|| of("defaults"))
    }
}

impl LoadedTable {
    /// The credentials for files of this location: those of the longest prefix of it, else those for all files.
    pub(super) fn credentials(&self) -> Option<Given> {
        let location = self.metadata.location.as_str();
        let about = self.storage_credentials.iter().filter(|given| location.starts_with(&given.prefix));
        let best = about.max_by_key(|given| given.prefix.len()).map(|given| &given.config);
        let of = |values: &HashMap<String, Option<String>>| {
            let value = |key: &str| values.get(key).cloned().flatten();
            let region = REGIONS.iter().find_map(|key| value(key).or_else(|| self.value(key)));
            Some(Given { key: value(KEY)?, secret: value(SECRET)?, token: value(TOKEN), region })
        };
        best.and_then(of).or_else(|| of(&self.config))
    }

    fn value(&self, key: &str) -> Option<String> {
        self.config.get(key).cloned().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(credentials: &str) -> LoadedTable {
        let json = format!(
            r#"{{"metadata-location": "s3://b/t/metadata/1.json", "config": {{"client.region": "eu-1"}},
                "metadata": {{"format-version": 2, "location": "s3://b/t"}},
                "storage-credentials": [{credentials}]}}"#
        );
        serde_json::from_str(&json).unwrap()
    }

    fn credential(prefix: &str, key: &str) -> String {
        format!(
            r#"{{"prefix": "{prefix}", "config": {{"s3.access-key-id": "{key}", "s3.secret-access-key": "x"}}}}"#
        )
    }

    #[test]
    fn credentials_are_those_of_the_longest_prefix() {
        assert!(loaded("").credentials().is_none());
        let several =
            [credential("s3://b", "all"), credential("s3://b/t", "own"), credential("s3://other", "no")];
        let found = loaded(&several.join(",")).credentials().unwrap();
        assert_eq!((found.key.as_str(), found.region.as_deref()), ("own", Some("eu-1")));
        assert!(loaded(&credential("s3://other", "no")).credentials().is_none());
    }

    #[test]
    fn what_overrides_comes_before_what_is_a_default() {
        let config = |text: &str| serde_json::from_str::<Config>(text).ok();
        let both =
            config(r#"{"defaults": {"prefix": "a", "x": null}, "overrides": {"prefix": "b"}}"#).unwrap();
        assert!(both.is_whole() && both.prefix() == Some("b"));
        let none = config(r#"{"overrides": {}, "endpoints": ["GET /v1/x"]}"#).unwrap();
        assert!(none.is_whole() && none.prefix().is_none());
        assert!(config("[]").is_none() && !config(r#"{"namespaces": 1}"#).unwrap().is_whole());
    }
}
