//! The secrets of a server and their encryption key: the operator's, one beside the tables, or one that ends with the server.

use crate::config::Config;
use crate::usage::Usage;
use anyhow::Result;
use bowshot_access::EncryptionKey;
use bowshot_object_store::secrets::Secrets;
use std::path::Path;
use std::sync::Arc;

/// Reads the key if the configuration names one. Nothing is made yet.
///
/// # Errors
/// [`Usage`] for a key that is not there, or is none.
pub(super) fn open(config: &Config, data: Option<&Path>) -> Result<Arc<Secrets>> {
    let key = match (config.secrets_key.as_str(), data) {
        ("", None) => EncryptionKey::in_memory(),
        ("", Some(folder)) => EncryptionKey::beside(folder),
        (place, _) => {
            EncryptionKey::named(place).map_err(|error| Usage::from(bowshot_api::Error::from(error)))?
        }
    };
    Ok(Secrets::new(Arc::new(key), config.remote.known_endpoints()))
}
