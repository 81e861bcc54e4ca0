//! The options of all databases of a server.

use crate::ducklake::LakeSettings;
use crate::kind::Kind;
use crate::settings::DatabaseSettings;
use bowshot_storage::IcebergSettings;
use bowshot_storage::secrets::Secrets;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Databases, lakes and Iceberg catalogs of the configuration.
    pub databases: Vec<DatabaseSettings>,
    pub lakes: Vec<LakeSettings>,
    pub catalogs: Vec<IcebergSettings>,
    /// Locations of databases that administrators may attach.
    pub attach: Vec<String>,
    /// Drivers by kind, for databases that do not name one.
    pub drivers: BTreeMap<Kind, PathBuf>,
    /// Secrets that were created in SQL, for attached databases.
    pub secrets: Option<Arc<Secrets>>,
}
