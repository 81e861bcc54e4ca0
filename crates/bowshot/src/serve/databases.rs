//! The other databases of this server.

use crate::config::Config;
use bowshot_api::Result;
use bowshot_databases::{ExternalDatabases, Options};
use bowshot_files::FileCatalog;
use bowshot_object_store::secrets::Secrets;
use std::sync::Arc;

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
