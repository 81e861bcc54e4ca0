//! The catalogs that a session sees: one catalog with the shared schema `main` and the session's own view of `system`.
//! In scratch mode a session has an empty catalog of its own instead.

use crate::system::{SystemSchema, SystemTables};
use bowshot_api::Principal;
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemoryCatalogProvider, MemoryCatalogProviderList,
    MemorySchemaProvider, SchemaProvider,
};
use datafusion::error::Result;
use std::sync::Arc;

/// Catalog of names that do not say theirs.
pub const DEFAULT_CATALOG: &str = "bowshot";
/// Schema of names that do not say theirs.
pub const DEFAULT_SCHEMA: &str = "main";
/// Schema of the tables about the server itself.
pub const SYSTEM_SCHEMA: &str = "system";

/// What the catalogs of all sessions are made of.
#[derive(Debug, Clone)]
pub(crate) struct CatalogParts {
    pub(crate) main: Arc<dyn SchemaProvider>,
    pub(crate) system: Option<Arc<dyn SystemTables>>,
}

/// Catalogs of a serving session.
pub(crate) fn serving(parts: &CatalogParts, principal: &Principal) -> Result<Arc<dyn CatalogProviderList>> {
    let catalog = MemoryCatalogProvider::new();
    catalog.register_schema(DEFAULT_SCHEMA, Arc::clone(&parts.main))?;
    if let Some(tables) = &parts.system {
        let schema = SystemSchema::new(Arc::clone(tables), principal.clone());
        catalog.register_schema(SYSTEM_SCHEMA, Arc::new(schema))?;
    }
    let list = MemoryCatalogProviderList::new();
    list.register_catalog(DEFAULT_CATALOG.to_owned(), Arc::new(catalog));
    Ok(Arc::new(list))
}

/// Catalogs of a scratch session: empty, in memory, gone with the session.
pub(crate) fn scratch(catalog_name: &str, schema_name: &str) -> Result<Arc<dyn CatalogProviderList>> {
    let catalog = MemoryCatalogProvider::new();
    catalog.register_schema(schema_name, Arc::new(MemorySchemaProvider::new()))?;
    let list = MemoryCatalogProviderList::new();
    list.register_catalog(catalog_name.to_owned(), Arc::new(catalog));
    Ok(Arc::new(list))
}
