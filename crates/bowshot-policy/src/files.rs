//! The tables of files that a session may see.

use super::session_access::SessionAccess;
use async_trait::async_trait;
use bowshot_api::catalog_names::{DEFAULT_CATALOG, DEFAULT_SCHEMA};
use bowshot_tables::EntryName;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::TableType;
use std::sync::Arc;

/// The tables of files that a session may see. Says only which are there: how one is read, its reader decides.
#[derive(Debug)]
pub struct SeenFiles {
    all: Arc<dyn SchemaProvider>,
    gate: Arc<SessionAccess>,
}

impl SeenFiles {
    pub fn new(all: &Arc<dyn SchemaProvider>, gate: &Arc<SessionAccess>) -> Self {
        Self { all: Arc::clone(all), gate: Arc::clone(gate) }
    }

    fn is_seen(&self, name: &str) -> bool {
        let name = file_name(self.all.as_ref(), name);
        self.gate.newest().sees(&EntryName::new(DEFAULT_CATALOG, DEFAULT_SCHEMA, name))
    }
}

/// The name under which a table of files has its rules. The table is found whatever the case of the letters is.
pub fn file_name(all: &dyn SchemaProvider, name: &str) -> String {
    let names = all.table_names();
    if names.iter().any(|known| known == name) {
        return name.to_owned();
    }
    let folded = name.to_lowercase();
    let mut fitting = names.into_iter().filter(|known| known.to_lowercase() == folded);
    match (fitting.next(), fitting.next()) {
        (Some(known), None) => known,
        _ => name.to_owned(),
    }
}

#[async_trait]
impl SchemaProvider for SeenFiles {
    fn table_names(&self) -> Vec<String> {
        let access = self.gate.newest();
        let mut names = self.all.table_names();
        names.retain(|name| access.sees(&EntryName::new(DEFAULT_CATALOG, DEFAULT_SCHEMA, name)));
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if self.is_seen(name) { self.all.table(name).await } else { Ok(None) }
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        if self.is_seen(name) { self.all.table_type(name).await } else { Ok(None) }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.all.table_exist(name) && self.is_seen(name)
    }
}
