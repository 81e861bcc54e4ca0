//! The catalogs that a session sees: one catalog with the shared schema `main` and the session's own view of `system`.
//! In scratch mode a session has an empty catalog of its own instead.

use crate::system::{SystemSchema, SystemTables};
use async_trait::async_trait;
use bowshot_api::Principal;
use datafusion::catalog::information_schema::{INFORMATION_SCHEMA, InformationSchemaProvider};
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemoryCatalogProvider, MemoryCatalogProviderList,
    MemorySchemaProvider, SchemaProvider, TableFunction, TableProvider,
};
use datafusion::error::Result;
use datafusion::logical_expr::TableType;
use std::collections::HashMap;
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
pub(crate) fn serving(
    parts: &CatalogParts,
    principal: &Principal,
    functions: &HashMap<String, Arc<TableFunction>>,
) -> Result<Arc<dyn CatalogProviderList>> {
    let mut schemas = vec![(DEFAULT_SCHEMA, Arc::clone(&parts.main))];
    if let Some(tables) = &parts.system {
        let system: Arc<dyn SchemaProvider> =
            Arc::new(SystemSchema::new(Arc::clone(tables), principal.clone()));
        schemas.push((SYSTEM_SCHEMA, system));
    }
    let readable = schemas.iter().map(|(name, schema)| {
        let schema: Arc<dyn SchemaProvider> = Arc::new(Readable(Arc::clone(schema)));
        (*name, schema)
    });
    let readable: Arc<dyn CatalogProviderList> = Arc::new(list(readable.collect())?);
    let information = InformationSchemaProvider::new(readable).with_table_functions(functions.clone());
    schemas.push((INFORMATION_SCHEMA, Arc::new(information)));
    Ok(Arc::new(list(schemas)?))
}

/// The list with the one catalog that these schemas make.
fn list(schemas: Vec<(&str, Arc<dyn SchemaProvider>)>) -> Result<MemoryCatalogProviderList> {
    let catalog = MemoryCatalogProvider::new();
    for (name, schema) in schemas {
        catalog.register_schema(name, schema)?;
    }
    let list = MemoryCatalogProviderList::new();
    list.register_catalog(DEFAULT_CATALOG.to_owned(), Arc::new(catalog));
    Ok(list)
}

/// A schema as `information_schema` sees it: a table that cannot be read has no columns, and keeps nobody from seeing
/// those of the others.
#[derive(Debug)]
struct Readable(Arc<dyn SchemaProvider>);

#[async_trait]
impl SchemaProvider for Readable {
    fn table_names(&self) -> Vec<String> {
        self.0.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(self.0.table(name).await.unwrap_or_else(|error| {
            tracing::debug!(table = name, %error, "a table is left out of information_schema");
            None
        }))
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        self.0.table_type(name).await
    }

    fn table_exist(&self, name: &str) -> bool {
        self.0.table_exist(name)
    }
}

/// Catalogs of a scratch session: empty, in memory, gone with the session.
pub(crate) fn scratch(catalog_name: &str, schema_name: &str) -> Result<Arc<dyn CatalogProviderList>> {
    let catalog = MemoryCatalogProvider::new();
    catalog.register_schema(schema_name, Arc::new(MemorySchemaProvider::new()))?;
    let list = MemoryCatalogProviderList::new();
    list.register_catalog(catalog_name.to_owned(), Arc::new(catalog));
    Ok(Arc::new(list))
}
