//! `system.databases`: the other databases that this server knows. For admins alone, since it tells where they are; all else of
//! schema `system` comes from the others.

use crate::config::Config;
use arrow::record_batch::RecordBatch;
use bowshot_api::{Principal, Result};
use bowshot_databases::{Options, OtherDatabases};
use bowshot_engine::SystemTables;
use bowshot_engine::databases::Databases;
use bowshot_files::FileCatalog;
use bowshot_object_store::secrets::Secrets;
use std::sync::Arc;

const NAME: &str = "databases";

/// The tables of the others, and the one of the databases.
#[derive(Debug)]
pub(super) struct WithDatabases {
    pub(super) others: Arc<dyn SystemTables>,
    pub(super) databases: Arc<OtherDatabases>,
}

/// The databases of the configuration, whose files are read like those that are served; nobody is asked yet.
///
/// # Errors
/// Those of [`OtherDatabases::new`] and [`OtherDatabases::open_catalogs`].
pub(super) fn opened(
    config: &Config,
    secrets: &Arc<Secrets>,
    files: &Arc<FileCatalog>,
) -> Result<Arc<OtherDatabases>> {
    // The client of MySQL's protocol takes the cryptography of the process, which has two of them. Where one was named before, it is
    // that one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let options = Options { secrets: Some(Arc::clone(secrets)), ..config.databases.clone() };
    let databases = OtherDatabases::new(options, Arc::clone(files))?;
    databases.open_catalogs(files)?;
    Ok(databases)
}

impl SystemTables for WithDatabases {
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
