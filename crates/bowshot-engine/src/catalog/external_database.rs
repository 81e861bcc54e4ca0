//! Tables of external databases among the tables that a statement sees: found by name and read as far as the rights allow, as all
//! others. Which tables there are, the databases answer from what they have cached.

use super::Visible;
use crate::catalog::CatalogParts;
use bowshot_api::{Error, Principal, Reason};
use bowshot_formats::table_version::AsOf;
use bowshot_policy::Reading;
use bowshot_tables::EntryName;
use datafusion::catalog::TableProvider;
use datafusion::error::{DataFusionError, Result};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The states of databases that one statement has seen first, so that it sees no others.
pub(super) type Moments = Mutex<BTreeMap<String, Option<AsOf>>>;

/// The error for a change of a table of another database, whether it is there or not.
pub(crate) fn only_rows(name: &EntryName) -> Error {
    Error::unsupported(format!(
        "`{name}` is in another database: tables there are read, and rows are added by INSERT"
    ))
    .with_reason(Reason::WrongObject)
    .with_hint("change it in its own database, or copy it: `CREATE TABLE … AS SELECT * FROM …`")
}

impl CatalogParts {
    /// Whether another database has a table of this name. May wait for it.
    pub(crate) fn is_in_database(&self, name: &EntryName, caller: &Principal) -> bool {
        self.databases.has(&name.catalog)
            && self
                .listed_in_database(&name.catalog, caller)
                .iter()
                .any(|(schema, table)| *schema == name.schema && *table == name.name)
    }

    /// Whether there is another database of this name that may have the schema.
    pub(crate) fn has_database_schema(&self, catalog: &str, schema: &str) -> bool {
        self.databases.has(catalog) && self.databases.may_have_schema(catalog, schema)
    }

    fn listed_in_database(&self, catalog: &str, caller: &Principal) -> Arc<Vec<(String, String)>> {
        bowshot_query_task::run_blocking(|| self.databases.listed(catalog, caller))
    }
}

impl Visible {
    /// The other databases that the statement may know.
    pub(crate) fn seen_databases(&self) -> Vec<String> {
        let mut names = self.parts.databases.names();
        names.retain(|name| self.sees_database(name));
        names
    }

    pub(crate) fn sees_database(&self, name: &str) -> bool {
        self.parts.databases.has(name) && self.access.sees_inside(&[name.to_owned()])
    }

    /// Whether names may be looked for in a schema of another database; of what is in it, rights decide one by one.
    pub(crate) fn may_have_database_schema(&self, catalog: &str, schema: &str) -> bool {
        self.sees_database(catalog)
            && self.parts.databases.may_have_schema(catalog, schema)
            && self.access.sees_inside(&[catalog.to_owned(), schema.to_owned()])
    }

    /// The schemas in which the statement may know a table.
    pub(crate) fn schemas_of_database(&self, catalog: &str) -> Vec<String> {
        let listed = self.parts.listed_in_database(catalog, &self.principal);
        let seen = listed.iter().filter(|(schema, table)| {
            self.access.sees(&EntryName::new(catalog, schema.as_str(), table.as_str()))
        });
        let mut schemas: Vec<String> = seen.map(|(schema, _)| schema.clone()).collect();
        schemas.dedup();
        schemas
    }

    /// The tables of a schema that the statement may know.
    pub(crate) fn tables_of_database(&self, catalog: &str, schema: &str) -> Vec<String> {
        let listed = self.parts.listed_in_database(catalog, &self.principal);
        let there = listed.iter().filter(|(of, _)| of == schema).map(|(_, table)| table.clone());
        there.filter(|table| self.access.sees(&EntryName::new(catalog, schema, table.as_str()))).collect()
    }

    /// A table of another database, as far as it may be read.
    pub(super) async fn database_table(&self, name: &EntryName) -> Result<Option<Arc<dyn TableProvider>>> {
        let reading = self.access.reading(name);
        if reading == Reading::Unseen {
            return Ok(None);
        }
        self.check_read(name, &reading)?;
        let external = |error: Error| DataFusionError::External(Box::new(error));
        let databases = &self.parts.databases;
        let found = match self.moment(&name.catalog).await.map_err(external)? {
            Some(state) => databases.table_as_of(name, state, &self.principal).await,
            None => databases.table(name, &self.principal).await,
        };
        match found.map_err(external)? {
            Some(found) => self.guarded((name, &reading), found, None).map(Some),
            None => Ok(None),
        }
    }

    /// The state of a database that the statement reads, if it has states at all.
    async fn moment(&self, database: &str) -> bowshot_api::Result<Option<AsOf>> {
        let seen = self.moments.lock().get(database).copied();
        if let Some(seen) = seen {
            return Ok(seen);
        }
        let newest = self.parts.databases.newest_state(database).await?;
        Ok(*self.moments.lock().entry(database.to_owned()).or_insert(newest))
    }
}
