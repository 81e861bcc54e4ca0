//! The settings of `[cluster]`, and which of them mean something together.

use super::Listen;
use crate::usage::Usage;
use bowshot_api::Secret;
use bowshot_cluster::membership::Security;
use std::path::PathBuf;
use std::time::Duration;

bowshot_api::defaults! {
    /// Where the nodes of a cluster meet, and how they know one another.
    #[derive(Debug, Clone)]
    pub(crate) struct ClusterSettings {
        /// The internal port; without one, the server is alone.
        pub(crate) listen: Listen = Listen::Off,
        /// Nodes to ask first, with commas between.
        pub(crate) join: String = String::new(),
        /// Where other nodes reach the internal port.
        pub(crate) advertise: String = String::new(),
        /// Where clients reach the Flight SQL front end.
        pub(crate) public: String = String::new(),
        pub(crate) authority: Option<PathBuf> = None,
        pub(crate) certificate: Option<PathBuf> = None,
        pub(crate) key: Option<PathBuf> = None,
        /// What all nodes of one machine know.
        pub(crate) secret: Option<Secret> = None,
        pub(crate) heartbeat: Duration = Duration::from_secs(1),
        pub(crate) suspect_after: Duration = Duration::from_secs(5),
        pub(crate) dead_after: Duration = Duration::from_secs(20),
        /// Bytes of files for each thread from which on a query is worth another node.
        pub(crate) bytes_per_thread: u64 = 16 << 20,
    }
}

impl ClusterSettings {
    /// The nodes to ask first.
    pub(crate) fn join(&self) -> Vec<String> {
        let nodes = self.join.split(',').map(str::trim);
        nodes.filter(|node| !node.is_empty()).map(str::to_owned).collect()
    }

    /// How nodes prove to one another that they are nodes; `None` for a server that is alone.
    ///
    /// # Errors
    /// [`Usage`] for settings that mean nothing alone, and for a port without any proof: nobody is to believe that a port is
    /// closed to others when it is not.
    pub(crate) fn security(&self) -> Result<Option<Security>, Usage> {
        let files = (&self.authority, &self.certificate, &self.key);
        let has_files = self.authority.is_some() || self.certificate.is_some() || self.key.is_some();
        if self.listen == Listen::Off {
            return match has_files || !self.join.is_empty() || !self.advertise.is_empty() {
                true => Err(Usage::new("the configuration has cluster settings, but no cluster port")
                    .with_hint("set the address for other nodes with `--cluster HOST:PORT`")),
                false => Ok(None),
            };
        }
        match (files, &self.secret) {
            ((Some(authority), Some(certificate), Some(key)), None) => Ok(Some(Security::MutualTls {
                authority: authority.clone(),
                certificate: certificate.clone(),
                key: key.clone(),
            })),
            ((None, None, None), Some(secret)) => Ok(Some(Security::SharedSecret(secret.clone()))),
            ((None, None, None), None) => Err(Usage::new("the cluster has neither certificates nor a shared \
                secret")
                .with_hint(
                    "make certificates with `bowshot cluster init` and name them in `[cluster.tls]`, or, on one machine, set \
                     `BOWSHOT_CLUSTER_SECRET`",
                )),
            (_, Some(_)) => Err(Usage::new("a cluster has certificates or a shared secret, not both")
                .with_hint("remove `cluster.secret`: certificates are stronger")),
            (_, None) => Err(Usage::new("a node needs its certificate, its key and the authority of its cluster")
                .with_hint("set `authority`, `certificate` and `key` of `[cluster.tls]`")),
        }
    }
}
