//! Entries of the catalog that cannot be read: they keep their names, so that everybody is told why, and nothing of them is
//! changed unless they are dropped. The others are served.

use super::durable::{broken_in, notes_of};
use super::{EntryName, Error, What};
use std::collections::BTreeMap;
use std::path::Path;
use uuid::Uuid;

/// A table or view as the catalog has it, and what is wrong with it.
#[derive(Debug, Clone)]
pub struct Broken {
    pub(super) id: Uuid,
    pub(super) what: What,
    pub(super) body: String,
    pub(super) version: u64,
    pub(super) reason: String,
}

impl Broken {
    pub fn what(&self) -> What {
        self.what
    }

    pub fn reason(&self) -> &str {
        &self.reason
    }

    pub fn error(&self, name: &EntryName) -> Error {
        Error::Broken { what: self.what, name: name.to_string(), reason: self.reason.clone() }
    }

    pub(super) fn kind(&self) -> &'static str {
        if self.what == What::View { "view" } else { "table" }
    }
}

/// The unreadable names in the catalog of a data folder, with reasons. Changes nothing, also beside a running server.
pub fn examine(folder: &Path) -> Result<Vec<(String, String)>, Error> {
    broken_in(folder)
}

/// The notes in the catalog of a data folder (`catalog_kv.rs`). Changes nothing, also beside a running server.
pub fn notes_in(folder: &Path) -> Result<BTreeMap<String, String>, Error> {
    notes_of(folder)
}
