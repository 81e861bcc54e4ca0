//! Settings of object stores. Credentials are read where they lie when a store is opened, and are in no setting themselves.

use crate::secrets::Secrets;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

bowshot_api::defaults! {
    /// How object stores are reached, and what of them statements may name.
    #[derive(Debug, Clone)]
    pub struct RemoteOptions {
        /// How often what is in use is listed again.
        pub refresh: Duration = Duration::from_secs(10),
        /// Longest wait for what is asked of a store, with all attempts.
        pub timeout: Duration = Duration::from_secs(60),
        /// Longest single request.
        pub request_timeout: Duration = Duration::from_secs(20),
        /// Attempts after the first that failed in a way that may pass.
        pub max_retries: usize = 6,
        /// Requests that are open at once, for each bucket.
        pub max_requests: usize = 64,
        /// Disk for parts of files that were read.
        pub cache_bytes: u64 = 10 << 30,
        /// Where they are; nothing is kept without it.
        pub cache_folder: Option<PathBuf> = None,
        /// What is to be known of single buckets and prefixes.
        pub places: Vec<PlaceSettings> = Vec::new(),
        /// Places whose files statements of administrators may read by their address.
        pub read: Vec<String> = Vec::new(),
        /// Places in which COPY may read and write, for every user.
        pub exchange: Vec<String> = Vec::new(),
        /// Endpoints that secrets may name, beside those of places and of the environment.
        pub endpoints: Vec<String> = Vec::new(),
        /// Credentials that administrators have given in SQL.
        pub secrets: Option<Arc<Secrets>> = None,
    }
}

impl RemoteOptions {
    pub fn known_endpoints(&self) -> BTreeSet<String> {
        super::store_builder::endpoints(self)
    }
}

/// What the configuration file says of a bucket or of a prefix in it: an entry of `[[object_store.places]]`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PlaceSettings {
    /// The bucket or prefix that it is about.
    pub url: String,
    /// Keys and values; those that are secret name where the secret lies.
    pub values: BTreeMap<String, String>,
}

impl fmt::Debug for PlaceSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<&String> = self.values.keys().collect();
        f.debug_struct("PlaceSettings").field("url", &self.url).field("keys", &keys).finish()
    }
}
