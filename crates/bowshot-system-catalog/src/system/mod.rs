//! Schema `system`: what the server knows about itself, as tables. Whoever knows the rows implements [`SystemTables`]; the rows are
//! taken when a statement is planned, for the principal that asks.

pub mod access;
pub(crate) mod files;
mod materialized_views;
pub mod models;
mod pipes;
mod secrets;
pub mod tables;

use crate::sql_functions;
use async_trait::async_trait;
use bowshot_api::Principal;
use bowshot_files::FileCatalog;
use bowshot_object_store::secrets::Secrets;
use bowshot_policy::Access;
use bowshot_policy::snapshot::Pinned;
use bowshot_tables::Materialized;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::datasource::MemTable;
use datafusion::error::{DataFusionError, Result};
use std::sync::Arc;
use tables::AboutTables;

/// A source of system tables.
pub trait SystemTables: Send + Sync + std::fmt::Debug {
    /// Names of the tables, sorted.
    fn names(&self) -> Vec<&'static str>;

    /// Names of those that only admins have, which are none of the others.
    fn admin_names(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Names of those that admins have, and everybody where there are no rules.
    fn shared_names(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// The rows that `principal` may see, or `None` for an unknown name.
    fn rows(&self, name: &str, principal: &Principal) -> Option<bowshot_api::Result<RecordBatch>>;
}

/// Who knows what the queries of materialized views mean now.
#[async_trait]
pub trait ViewMeanings: Send + Sync + std::fmt::Debug {
    /// Whether the query of a view means what it meant at the last refresh: views and functions that it uses may have been replaced.
    async fn is_meant(&self, view: &Materialized) -> bool;
}

#[derive(Debug)]
pub struct SystemSchema {
    tables: Arc<dyn SystemTables>,
    principal: Principal,
    access: Access,
    about: AboutTables,
    /// All that there is: what is told of models and functions is looked at by itself.
    pinned: Pinned,
    caches: Arc<dyn SystemTables>,
    files: Option<Arc<FileCatalog>>,
    secrets: Option<Arc<Secrets>>,
}

impl SystemSchema {
    pub fn new(
        tables: Arc<dyn SystemTables>,
        (principal, access): (Principal, Access),
        (about, pinned): (AboutTables, &Pinned),
        caches: Arc<dyn SystemTables>,
    ) -> Self {
        Self { tables, principal, access, about, pinned: pinned.clone(), caches, files: None, secrets: None }
    }

    /// The same with tables about files.
    pub fn with_files(self, files: Option<Arc<FileCatalog>>) -> Self {
        Self { files, ..self }
    }

    /// The same with the table about secrets.
    pub fn with_secrets(self, secrets: Option<Arc<Secrets>>) -> Self {
        Self { secrets, ..self }
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        // The caches and the files belong to everybody, and show what everybody asks and has.
        let shared = self.caches.shared_names().into_iter().chain(files::NAMES);
        let shared = shared.chain(self.tables.shared_names());
        let shared = shared.filter(|_| self.access.is_everything());
        let admin = self.tables.admin_names().into_iter().chain(access::ADMIN_NAMES);
        let admin = admin.chain(self.secrets.iter().map(|_| secrets::NAME));
        let admin = admin.filter(|_| self.access.is_admin());
        let own = tables::NAMES.into_iter().chain(access::NAMES).chain([models::NAME, sql_functions::NAME]);
        let own = own.chain(self.caches.names());
        self.tables.names().into_iter().chain(own).chain(shared).chain(admin)
    }
}

#[async_trait]
impl SchemaProvider for SystemSchema {
    fn table_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.names().map(str::to_owned).collect();
        names.sort();
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if !self.table_exist(name) {
            return Ok(None);
        }
        let models = || match name {
            models::NAME => Some(models::rows(&self.pinned, &self.access)),
            sql_functions::NAME => Some(sql_functions::rows(&self.pinned, &self.access)),
            _ => None,
        };
        let about = self.about.rows(name).await.or_else(|| access::rows(name, &self.access)).or_else(models);
        let about = about.or_else(|| self.caches.rows(name, &self.principal));
        let secrets = || self.secrets.as_ref().filter(|_| name == secrets::NAME);
        let about = about.or_else(|| secrets().map(|secrets| secrets::rows(secrets, &self.pinned)));
        let rows = about.or_else(|| self.tables.rows(name, &self.principal));
        let rows = match rows {
            None => files::rows(self.files.as_ref(), name).await,
            rows => rows,
        };
        let Some(rows) = rows else { return Ok(None) };
        let batch = rows.map_err(|error| DataFusionError::External(Box::new(error)))?;
        let table = MemTable::try_new(batch.schema(), vec![vec![batch]])?;
        Ok(Some(Arc::new(table)))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.names().any(|there| there == name)
    }
}
