//! Settings of a node.

use crate::membership::error::Error;
use crate::membership::security::Keys;
use bowshot_api::Secret;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use uuid::Uuid;

const SHORTEST_HEARTBEAT: Duration = Duration::from_millis(20);
/// Most nodes to join.
const MAX_JOIN: usize = 1_000;
/// Fewest bytes of a shared secret: an observer could guess short ones.
const SHORTEST_SECRET: usize = 16;

#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the internal port is opened.
    pub listen: SocketAddr,
    /// `HOST:PORT` under which other nodes reach it; `listen` without one.
    pub advertise: Option<String>,
    /// `HOST:PORT` of nodes to join. They know the others.
    pub join: Vec<String>,
    /// How nodes authenticate one another.
    pub security: Security,
    /// Version and format of plans: nodes of another build are members, but get no work.
    pub build: String,
    /// Where clients reach this node.
    pub public: String,
    /// Time between heartbeats.
    pub heartbeat: Duration,
    /// How long a member may be silent before it gets no more work.
    pub suspect_after: Duration,
    /// How long a member may be silent before it is dead.
    pub dead_after: Duration,
    /// Threads for queries, as other nodes see them.
    pub threads: u32,
    /// Bytes of memory for queries, as other nodes see them.
    pub memory: u64,
    /// The cluster that the node's data belongs to, if any.
    pub cluster: Option<Uuid>,
}

impl Settings {
    /// Heartbeats each second; suspect after five seconds, dead after twenty.
    pub fn new(listen: SocketAddr, security: Security) -> Self {
        Self {
            listen,
            advertise: None,
            join: Vec::new(),
            security,
            build: String::new(),
            public: String::new(),
            heartbeat: Duration::from_secs(1),
            suspect_after: Duration::from_secs(5),
            dead_after: Duration::from_secs(20),
            threads: 0,
            memory: 0,
            cluster: None,
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let refuse = |text: &str, hint: &str| Err(Error::setting(text, hint));
        if self.heartbeat < SHORTEST_HEARTBEAT {
            return refuse("`cluster.heartbeat` is too short", "set `cluster.heartbeat` to 20ms or more");
        }
        if self.suspect_after < self.heartbeat * 2 || self.dead_after < self.suspect_after {
            return refuse(
                "`cluster.suspect_after` or `cluster.dead_after` is too short",
                "set `cluster.suspect_after` to at least twice `cluster.heartbeat`, and `cluster.dead_after` to at least `cluster.suspect_after`",
            );
        }
        if self.listen.ip().is_unspecified() && self.advertise.is_none() {
            return refuse(
                &format!(
                    "other nodes cannot reach `{}`, which means every address of this machine",
                    self.listen
                ),
                "set `--advertise HOST:PORT` to an address that they can reach",
            );
        }
        if self.join.len() > MAX_JOIN {
            return refuse(
                "there are more than 1000 nodes to join",
                "name a few nodes: the others are found through them",
            );
        }
        let addresses = self.join.iter().chain(&self.advertise);
        if let Some(bad) = addresses.into_iter().find(|address| !is_address(address)) {
            return refuse(
                &format!("invalid address of a node `{bad}`"),
                "write `HOST:PORT`, such as `10.0.0.7:7400` or `[::1]:7400`",
            );
        }
        self.security.check(self.listen)
    }
}

/// How nodes authenticate one another.
#[derive(Debug, Clone)]
pub enum Security {
    /// Certificates of the cluster's own authority, over TLS 1.3.
    MutualTls {
        /// Certificates of the authority (PEM).
        authority: PathBuf,
        /// The node's certificate and those that lead to the authority (PEM).
        certificate: PathBuf,
        /// The node's private key (PEM).
        key: PathBuf,
    },
    /// A secret of all nodes. Nothing is encrypted, so all nodes must be on this machine.
    SharedSecret(Secret),
}

impl Security {
    /// Checks that the files can be used.
    pub fn examine(&self) -> Result<(), Error> {
        Keys::load(self).map(|_| ())
    }

    fn check(&self, listen: SocketAddr) -> Result<(), Error> {
        let Self::SharedSecret(secret) = self else { return Ok(()) };
        if !listen.ip().to_canonical().is_loopback() {
            return Err(Error::setting(
                format!("a shared secret does not protect `{listen}`, which other machines reach"),
                "make certificates with `bowshot cluster init`, or listen at 127.0.0.1",
            ));
        }
        if secret.expose().len() < SHORTEST_SECRET {
            return Err(Error::setting(
                "the cluster's secret is shorter than 16 bytes",
                "`openssl rand -hex 32` makes a good one",
            ));
        }
        Ok(())
    }
}

/// Whether a text is `HOST:PORT` with a port that can be connected to.
pub(crate) fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let is_bracketed = host.starts_with('[') && host.ends_with(']');
    let is_plain = host.bytes().all(|byte| byte.is_ascii_graphic());
    let has_host = !host.is_empty() && text.len() <= 300 && is_plain && (is_bracketed || !host.contains(':'));
    has_host && port.parse::<u16>().is_ok_and(|port| port != 0)
}

/// The host of `HOST:PORT`, without brackets.
pub(crate) fn host(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}
