//! Schema `system`: what the server knows about itself, as tables. Whoever knows the rows implements [`SystemTables`];
//! the rows are taken when a statement is planned, for the principal that asks.

use async_trait::async_trait;
use bowshot_api::Principal;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::datasource::MemTable;
use datafusion::error::{DataFusionError, Result};
use std::sync::Arc;

/// A source of system tables.
pub trait SystemTables: Send + Sync + std::fmt::Debug {
    /// Names of the tables, sorted.
    fn names(&self) -> Vec<&'static str>;

    /// The rows that `principal` may see, or `None` for an unknown name.
    fn rows(&self, name: &str, principal: &Principal) -> Option<bowshot_api::Result<RecordBatch>>;
}

#[derive(Debug)]
pub(crate) struct SystemSchema {
    tables: Arc<dyn SystemTables>,
    principal: Principal,
}

impl SystemSchema {
    pub(crate) fn new(tables: Arc<dyn SystemTables>, principal: Principal) -> Self {
        Self { tables, principal }
    }
}

#[async_trait]
impl SchemaProvider for SystemSchema {
    fn table_names(&self) -> Vec<String> {
        self.tables.names().into_iter().map(str::to_owned).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some(rows) = self.tables.rows(name, &self.principal) else { return Ok(None) };
        let batch = rows.map_err(|error| DataFusionError::External(Box::new(error)))?;
        let table = MemTable::try_new(batch.schema(), vec![vec![batch]])?;
        Ok(Some(Arc::new(table)))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.tables.names().contains(&name)
    }
}
