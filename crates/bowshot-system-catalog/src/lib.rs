//! The system catalog: `information_schema`, `pg_catalog`, schemas `system` and `mysql`, and the functions that describe the session
//! and the catalog, over what one statement sees ([`CatalogView`]). What the caller may not see is not there.

/// Pairs, several in a line: `pairs! { "pg_am" 2601, "pg_cast" 2605 }`.
macro_rules! pairs {
    ($($one:literal $other:expr),* $(,)?) => { &[$(($one, $other)),*] };
}
pub(crate) use pairs;

pub mod client;
pub mod definition_text;
pub mod enum_types;
pub mod functions;
pub mod information_schema;
pub mod lazy_table;
mod listing;
pub mod mysql_schema;
pub mod named_locks;
pub mod pg_catalog;
pub mod sql_functions;
pub mod statement_tables;
pub mod system;

use bowshot_api::Principal;
use bowshot_policy::Access;
use bowshot_policy::snapshot::Pinned;
use client::{ClientSlot, OpenCursor, Setting};
use datafusion::catalog::{CatalogProviderList, SchemaProvider};
use datafusion::config::ConfigOptions;
use datafusion::execution::context::SessionContext;
use std::sync::Arc;

/// What one statement sees of the catalogs.
#[derive(Clone)]
pub struct CatalogView {
    /// Who asks.
    pub principal: Principal,
    /// The tables as far as they may be seen.
    pub pinned: Pinned,
    /// What the statement may do.
    pub access: Access,
    /// The catalogs of the statement.
    pub catalogs: Arc<dyn CatalogProviderList>,
    /// The session, with its functions and settings.
    pub context: SessionContext,
    /// Whose settings and cursors are listed.
    pub client: ClientSlot,
    /// Whether tables are stored on disk where a statement does not say otherwise.
    pub is_durable: bool,
}

bowshot_api::debug_fields!(CatalogView { pinned });

impl CatalogView {
    fn options(&self) -> Arc<ConfigOptions> {
        Arc::clone(self.context.state_ref().read().config_options())
    }

    /// Catalog and schema of names without theirs.
    fn default_names(&self) -> (String, String) {
        let options = self.options();
        (options.catalog.default_catalog.clone(), options.catalog.default_schema.clone())
    }

    fn settings(&self) -> Vec<Setting> {
        self.client.get().map(|client| client.settings()).unwrap_or_default()
    }

    fn cursors(&self) -> Vec<OpenCursor> {
        self.client.get().map(|client| client.cursors()).unwrap_or_default()
    }

    /// The number of the session.
    fn number(&self) -> Option<i32> {
        self.client.get().map(|client| client.number())
    }

    fn catalog_names(&self) -> Vec<String> {
        self.catalogs.catalog_names()
    }

    fn schema_provider(&self, catalog: &str, schema: &str) -> Option<Arc<dyn SchemaProvider>> {
        self.catalogs.catalog(catalog)?.schema(schema)
    }
}
