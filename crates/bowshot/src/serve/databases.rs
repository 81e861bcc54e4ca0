//! `system.databases`: the other databases of this server, for administrators only.

use crate::config::Config;
use arrow::record_batch::RecordBatch;
use bowshot_api::{Principal, Result};
use bowshot_databases::{ExternalDatabases, Options};
use bowshot_engine::databases::Databases;
use bowshot_files::FileCatalog;
use bowshot_object_store::secrets::Secrets;
use bowshot_system_catalog::system::SystemTables;
use std::sync::Arc;

const NAME: &str = "databases";

/// Adds `system.databases` to other system tables.
#[derive(Debug)]
pub(super) struct DatabasesTable {
    pub(super) others: Arc<dyn SystemTables>,
    pub(super) databases: Arc<ExternalDatabases>,
}

/// The databases of the configuration, without a connection yet.
pub(super) fn opened(
    config: &Config,
    secrets: &Arc<Secrets>,
    files: &Arc<FileCatalog>,
) -> Result<Arc<ExternalDatabases>> {
    // MySQL's client uses the default cryptography provider of the process. If one was installed before, it is
    // that one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let options = Options { secrets: Some(Arc::clone(secrets)), ..config.databases.clone() };
    let databases = ExternalDatabases::new(options, Arc::clone(files))?;
    databases.open_catalogs(files)?;
    Ok(databases)
}

impl SystemTables for DatabasesTable {
    fn names(&self) -> Vec<&'static str> {
        self.others.names()
    }

    fn admin_names(&self) -> Vec<&'static str> {
        self.others.admin_names()
    }

    fn shared_names(&self) -> Vec<&'static str> {
        let mut names = self.others.shared_names();
        names.push(NAME);
        names
    }

    fn rows(&self, name: &str, principal: &Principal) -> Option<Result<RecordBatch>> {
        if name == NAME { Some(self.databases.rows()) } else { self.others.rows(name, principal) }
    }
}
