//! Catalogs of Iceberg tables among the other databases. Their files are read by this server itself, so that no driver is needed:
//! what they say, and what is read of it, is `bowshot-lakehouse`'s.

use crate::databases::Told;
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_files::FileCatalog;
use bowshot_lakehouse::iceberg::{IcebergCatalog, IcebergSettings};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// See the module.
#[derive(Debug)]
pub(crate) struct Catalogs {
    settings: BTreeMap<String, IcebergSettings>,
    opened: OnceLock<BTreeMap<String, Arc<IcebergCatalog>>>,
}

impl Catalogs {
    /// # Errors
    /// For two of one name.
    pub(crate) fn new(settings: Vec<IcebergSettings>) -> Result<Self> {
        let mut named = BTreeMap::new();
        for settings in settings {
            let name = settings.name.clone();
            if named.insert(name.clone(), settings).is_some() {
                return Err(Error::new(
                    ErrorKind::AlreadyExists,
                    format!("there is a database `{name}` already"),
                ));
            }
        }
        Ok(Self { settings: named, opened: OnceLock::new() })
    }

    /// Opens all of them, once.
    ///
    /// # Errors
    /// `Invalid` for settings that cannot be used.
    pub(crate) fn open(&self, files: &FileCatalog) -> Result<()> {
        let open = |(name, settings): (&String, &IcebergSettings)| {
            Ok((name.clone(), files.iceberg(settings.clone())?))
        };
        let opened = self.settings.iter().map(open).collect::<Result<_>>()?;
        let _ = self.opened.set(opened);
        Ok(())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.settings.contains_key(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        self.settings.keys().cloned()
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Arc<IcebergCatalog>> {
        self.opened.get()?.get(name)
    }

    /// What `system.databases` tells of them.
    pub(crate) fn told(&self) -> impl Iterator<Item = Told> {
        let opened = self.opened.get().into_iter().flat_map(BTreeMap::values);
        opened.map(|catalog| Told {
            name: catalog.name().to_owned(),
            kind: "iceberg",
            place: catalog.place(),
            read_only: true,
            attached: false,
            pool: None,
            connections: None,
            tables: catalog.known(),
            problem: catalog.problem(),
        })
    }
}
