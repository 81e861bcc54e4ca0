//! Addresses in object stores, as operators and statements write them.

use crate::Error;
use object_store::path::Path as Location;
use std::path::{Path, PathBuf};

/// What an address begins with, and whose protocol that means.
const SCHEMES: [(&str, Scheme); 9] = [
    ("s3", Scheme::S3),
    ("s3a", Scheme::S3),
    ("gs", Scheme::Google),
    ("gcs", Scheme::Google),
    ("az", Scheme::Azure),
    ("abfs", Scheme::Azure),
    ("abfss", Scheme::Azure),
    ("http", Scheme::Web),
    ("https", Scheme::Web),
];

/// A protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    S3,
    Google,
    Azure,
    /// Single files: nothing can be listed or written.
    Web,
}

/// An address: `s3://bucket/prefix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteUrl {
    pub scheme: Scheme,
    /// As it is written, with scheme and bucket: `s3://bucket`.
    pub root: String,
    /// Bucket, container or host.
    pub authority: String,
    /// The name below it, which may be empty.
    pub location: Location,
}

/// Whether a path is an address in an object store.
pub fn is_remote(path: &Path) -> bool {
    path.to_str().is_some_and(|text| scheme_of(text).is_some())
}

fn scheme_of(text: &str) -> Option<(Scheme, &str, &str)> {
    let (word, rest) = text.split_once("://")?;
    let scheme = SCHEMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(word))?.1;
    Some((scheme, word, rest))
}

impl RemoteUrl {
    /// Reads an address.
    ///
    /// # Errors
    /// When it is none. What might be a password in it is not repeated.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |detail: &str| Error::Address { detail: detail.to_owned() };
        let (scheme, word, rest) = scheme_of(text).ok_or_else(|| wrong("unknown scheme"))?;
        let (authority, key) = rest.split_once('/').unwrap_or((rest, ""));
        let is_container = scheme == Scheme::Azure && !authority.contains(':');
        if authority.contains('@') && !is_container {
            return Err(wrong("an address must not contain credentials"));
        }
        if authority.is_empty() || authority.chars().any(|c| c.is_whitespace() || c.is_control() || c == '?')
        {
            return Err(wrong("it has no bucket or host"));
        }
        if scheme == Scheme::Web && key.contains(['?', '#']) {
            return Err(wrong("an address must not contain `?` or `#`"));
        }
        let location = match scheme {
            Scheme::Web => Location::from_url_path(key),
            Scheme::S3 | Scheme::Google | Scheme::Azure => Location::parse(key.trim_matches('/')),
        };
        let location = location.map_err(|_| wrong("its parts must not be empty, `.` or `..`"))?;
        let authority = match scheme {
            Scheme::Web => authority.to_ascii_lowercase(),
            _ => authority.to_owned(),
        };
        let root = format!("{}://{authority}", word.to_ascii_lowercase());
        Ok(Self { scheme, root, authority, location })
    }

    /// The address of something in the same bucket.
    pub fn shown(&self, location: &str) -> PathBuf {
        if location.is_empty() {
            PathBuf::from(&self.root)
        } else {
            PathBuf::from(format!("{}/{location}", self.root))
        }
    }

    /// The parts of the name below another address, if it lies there.
    pub fn below(&self, place: &Self) -> Option<String> {
        if self.root != place.root {
            return None;
        }
        let (own, base) = (self.location.as_ref(), place.location.as_ref());
        if base.is_empty() || own == base {
            return Some(own.get(base.len()..)?.to_owned());
        }
        own.strip_prefix(base)?.strip_prefix('/').map(str::to_owned)
    }

    /// The name of the last part, or of the bucket.
    pub fn last_name(&self) -> String {
        let last = self.location.filename().map(str::to_owned);
        last.unwrap_or_else(|| self.authority.split(['@', ':']).next().unwrap_or_default().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let url = RemoteUrl::parse("s3://bucket/a b/year=2024/").unwrap();
        assert_eq!((url.scheme, url.authority.as_str()), (Scheme::S3, "bucket"));
        assert_eq!(url.location.as_ref(), "a b/year=2024");
        assert_eq!(url.last_name(), "year=2024");
        assert_eq!(RemoteUrl::parse("gs://bucket").unwrap().last_name(), "bucket");
        assert_eq!(RemoteUrl::parse("https://Host:1/a%20b.csv").unwrap().location.as_ref(), "a b.csv");
        let azure = RemoteUrl::parse("abfss://box@account.dfs.core.windows.net/x").unwrap();
        assert_eq!((azure.scheme, azure.last_name()), (Scheme::Azure, "x".to_owned()));
    }

    #[test]
    fn what_is_no_address_is_refused_and_not_repeated() {
        for bad in [
            "ftp://a/b",
            "s3://",
            "s3:///a",
            "http://u:secret@h/x",
            "s3://b/../x",
            "s3://b/x//y",
            "https://h/a?sig=secret",
            "http://h/%2e%2e/x",
        ] {
            let error = RemoteUrl::parse(bad).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn places_hold_what_lies_below_them() {
        let url = |text: &str| RemoteUrl::parse(text).unwrap();
        let place = url("s3://bucket/data");
        assert_eq!(url("s3://bucket/data/x/y.csv").below(&place).as_deref(), Some("x/y.csv"));
        assert_eq!(url("s3://bucket/data").below(&place).as_deref(), Some(""));
        for outside in ["s3://bucket/database/x", "s3://other/data/x", "gs://bucket/data/x", "s3://bucket"] {
            assert_eq!(url(outside).below(&place), None, "{outside}");
        }
        assert_eq!(url("s3://bucket/x").below(&url("s3://bucket")).as_deref(), Some("x"));
    }

    #[test]
    fn paths_are_none() {
        assert!(is_remote(Path::new("s3://bucket/x")) && is_remote(Path::new("HTTPS://host/x")));
        assert!(!is_remote(Path::new("/s3:/x")) && !is_remote(Path::new("file:///x")));
    }
}
