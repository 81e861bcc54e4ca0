//! Catalogs of Iceberg tables, which need no driver: `bowshot-lakehouse` reads them.

use crate::status::DatabaseStatus;
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_files::FileCatalog;
use bowshot_lakehouse::iceberg::{IcebergCatalog, IcebergSettings};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

#[derive(Debug)]
pub(crate) struct Catalogs {
    settings: BTreeMap<String, IcebergSettings>,
    opened: OnceLock<BTreeMap<String, Arc<IcebergCatalog>>>,
}

impl Catalogs {
    pub(crate) fn new(settings: Vec<IcebergSettings>) -> Result<Self> {
        let mut named = BTreeMap::new();
        for settings in settings {
            let name = settings.name.clone();
            if named.insert(name.clone(), settings).is_some() {
                return Err(Error::new(
                    ErrorKind::AlreadyExists,
                    format!("the database `{name}` already exists"),
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

    /// Rows of `system.databases`.
    pub(crate) fn statuses(&self) -> impl Iterator<Item = DatabaseStatus> {
        let opened = self.opened.get().into_iter().flat_map(BTreeMap::values);
        opened.map(|catalog| DatabaseStatus {
            name: catalog.name().to_owned(),
            kind: "iceberg",
            place: catalog.place(),
            read_only: catalog.is_read_only(),
            attached: false,
            pool: None,
            connections: None,
            tables: catalog.known(),
            problem: catalog.problem(),
        })
    }
}
