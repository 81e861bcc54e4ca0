//! Values of an entry of the configuration, or of ATTACH, by key.

use bowshot_api::{Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(crate) struct Values<'a>(pub(crate) &'a BTreeMap<String, Vec<String>>);

impl Values<'_> {
    pub(crate) fn check(&self, keys: &[&str], name: &str) -> Result<()> {
        match self.0.keys().find(|key| !keys.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => {
                Err(wrong(name, key, "unknown key").with_hint(format!("the keys are {}", keys.join(", "))))
            }
        }
    }

    pub(crate) fn one(&self, key: &str, name: &str) -> Result<Option<String>> {
        match self.0.get(key).map(Vec::as_slice) {
            None => Ok(None),
            Some([one]) => Ok(Some(one.clone())),
            Some(_) => Err(wrong(name, key, "expected one value")),
        }
    }

    pub(crate) fn needed(&self, key: &str, name: &str) -> Result<String> {
        self.one(key, name)?.filter(|text| !text.is_empty()).ok_or_else(|| wrong(name, key, "it is missing"))
    }

    /// Values of a list, or of one comma-separated text.
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
            Some(_) => Err(wrong(name, key, "expected `true` or `false`")),
        }
    }
}

/// A name becomes part of the names of tables.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let fits = !name.is_empty() && name.len() <= 128 && !name.chars().any(char::is_control);
    if fits {
        Ok(())
    } else {
        Err(Error::invalid("invalid name of a database: expected 1 to 128 characters"))
    }
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
