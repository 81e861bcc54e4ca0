//! Tables whose own metadata say which files count: as they were, and those that have a catalog of their own.

use super::FileCatalog;
use bowshot_formats::table_version::AsOf;
use bowshot_lakehouse::change_feed::{self, ChangeRange, Changes};
use bowshot_lakehouse::iceberg::{IcebergCatalog, IcebergSettings};
use bowshot_lakehouse::{DuckLake, DuckLakePlace};
use datafusion::catalog::TableProvider;
use std::sync::{Arc, Weak};

impl FileCatalog {
    /// A table of files as it was; `None` if there is none of this name.
    ///
    /// # Errors
    /// `NotFound` for a state that is not kept, `Unsupported` for tables of files that have no states.
    pub async fn as_of(
        self: &Arc<Self>,
        name: &str,
        as_of: AsOf,
    ) -> Result<Option<Arc<dyn TableProvider>>, bowshot_api::Error> {
        let Some(entry) = self.find_later(name).await else { return Ok(None) };
        let name = &entry.definition.name;
        let Some(foreign) = entry.foreign().await? else {
            let none = format!("`{name}` is a table of plain files, which has no earlier versions");
            return Err(bowshot_api::Error::unsupported(none)
                .with_hint("Delta and Iceberg tables, and tables of this server, have earlier versions"));
        };
        let found = foreign.table(name, Some(as_of)).await;
        Ok(Some(found.map_err(|error| error.of_table(name))?))
    }

    /// The number of the state of a table of files that a branch or a tag names, if there is one.
    ///
    /// # Errors
    /// When its metadata cannot be read.
    pub async fn referenced_state(
        self: &Arc<Self>,
        name: &str,
        reference: &str,
    ) -> Result<Option<u64>, bowshot_api::Error> {
        let Some(entry) = self.find_later(name).await else { return Ok(None) };
        let Some(foreign) = entry.foreign().await? else { return Ok(None) };
        let found = foreign.referenced_state(reference).await;
        Ok(found.map_err(|error| error.of_table(&entry.definition.name))?)
    }

    /// The changes of a table of files in a range; `None` if there is none of this name.
    ///
    /// # Errors
    /// `Unsupported` for tables that keep no changes, or kept none in the range; `NotFound` for versions that are not kept, and for
    /// files that are not any more; `LimitReached` for too long a range.
    pub async fn changes(
        self: &Arc<Self>,
        name: &str,
        range: ChangeRange,
    ) -> Result<Option<Changes>, bowshot_api::Error> {
        let Some(entry) = self.find_later(name).await else { return Ok(None) };
        let name = &entry.definition.name;
        match entry.foreign().await? {
            Some(foreign) => foreign.changes(name, range).await.map(Some),
            None => Err(change_feed::keeps_none(name)),
        }
    }

    /// A catalog of Iceberg tables, whose files are read as those of this one are. Nothing is asked of it yet.
    ///
    /// # Errors
    /// `Invalid` for settings that cannot be used.
    pub fn iceberg(&self, settings: IcebergSettings) -> Result<Arc<IcebergCatalog>, bowshot_api::Error> {
        let remotes = self.remotes().ok_or_else(|| {
            bowshot_api::Error::unsupported("this server reads no object stores, and asks no catalogs")
        })?;
        IcebergCatalog::new(settings, (remotes, &self.workshop), self.limits.max_files)
    }

    /// Opens a lake, whose tables are none of schema `main`; they are described with all others as long as it is held.
    /// Nothing is read yet.
    pub fn lake(&self, place: DuckLakePlace) -> Arc<DuckLake> {
        let lake = DuckLake::new(place, Arc::clone(&self.workshop), self.limits.max_files);
        let mut lakes = self.lakes.lock();
        lakes.retain(|lake| lake.strong_count() > 0);
        lakes.push(Arc::downgrade(&lake));
        lake
    }

    pub(super) fn lakes(&self) -> Vec<Arc<DuckLake>> {
        let lakes = self.lakes.lock();
        lakes.iter().filter_map(Weak::upgrade).collect()
    }
}
