//! Lists of what there is, which no plan gives.

use super::EngineSession;
use crate::catalog::metadata;
use bowshot_api::{Layout, Result, TableEntry, TableFilter};
use bowshot_policy::snapshot::Pinned;
use datafusion::catalog::CatalogProviderList;
use std::sync::Arc;

impl EngineSession {
    /// Asks whether the session may have lists of catalogs, schemas and tables, which no plan gives.
    ///
    /// # Errors
    /// As [`EngineSession::decide_again`].
    pub async fn check_listing(&self, pinned: &Pinned) -> Result<()> {
        self.check_outside("list", pinned, Vec::new()).await
    }

    /// Names of the catalogs, sorted.
    pub fn catalogs(&self, pinned: &Pinned) -> Vec<String> {
        metadata::catalogs(&self.catalog_list(pinned))
    }

    /// Pairs of catalog and schema, sorted.
    pub fn schemas(
        &self,
        catalog: Option<&str>,
        pattern: Option<&str>,
        pinned: &Pinned,
    ) -> Vec<(String, String)> {
        metadata::schemas(&self.catalog_list(pinned), catalog, pattern)
    }

    /// Tables, sorted. May read file footers: to be called on the query runtime.
    ///
    /// # Errors
    /// None today; a table that cannot be read is listed with the reason.
    pub async fn tables(
        &self,
        filter: &TableFilter,
        layout: Layout,
        pinned: &Pinned,
    ) -> Result<Vec<TableEntry>> {
        metadata::tables(&self.catalog_list(pinned), filter, layout).await
    }

    /// The catalogs without a state, which would copy the functions of the session: each login asks for them.
    fn catalog_list(&self, pinned: &Pinned) -> Arc<dyn CatalogProviderList> {
        if self.scratch {
            return Arc::clone(self.context.state_ref().read().catalog_list());
        }
        self.visible(pinned).into_catalogs()
    }
}
