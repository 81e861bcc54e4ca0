//! Binds addresses. Listening beyond loopback without users needs `--insecure`.

use crate::config::{Config, Listen};
use crate::usage::Usage;
use anyhow::{Context, Result, bail};
use bowshot_access::Authenticator;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::net::{TcpListener, lookup_host};

/// Who may reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Only this machine, without authentication.
    ThisMachine,
    /// All machines: users are configured, or `--insecure` is set.
    Anywhere,
}

impl Reach {
    pub(crate) fn of(config: &Config, authenticator: &Authenticator) -> Self {
        match authenticator.requires_credentials() || config.insecure {
            true => Self::Anywhere,
            false => Self::ThisMachine,
        }
    }
}

/// Whether the HTTP front end at an address serves agents: only where this machine alone reaches it, or users log in.
///
/// # Errors
/// [`Usage`] where the configuration wants it for everybody on the network.
pub(crate) fn serves_mcp(
    config: &Config,
    authenticator: &Authenticator,
    http: Option<SocketAddr>,
) -> Result<bool> {
    let is_local = http.is_none_or(|address| address.ip().to_canonical().is_loopback());
    let is_guarded = is_local || authenticator.requires_credentials();
    if config.http_mcp == "on" && !is_guarded {
        return Err(Usage::new("`http_mcp` is `on` at an address beyond this machine, and no users are configured")
            .with_hint("configure users (`bowshot hash-password`), listen on 127.0.0.1 (`--http`), or set `http_mcp` to `auto`")
            .into());
    }
    Ok(is_guarded && config.http_mcp != "off")
}

/// Addresses of the front ends.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Addresses {
    pub(crate) flight: Option<SocketAddr>,
    pub(crate) http: Option<SocketAddr>,
    pub(crate) pg: Option<SocketAddr>,
    pub(crate) mysql: Option<SocketAddr>,
    /// The port for other nodes.
    pub(crate) cluster: Option<SocketAddr>,
    /// Whether Flight SQL, PostgreSQL and MySQL are encrypted, and HTTP can be.
    pub(crate) encrypted: bool,
    /// Whether HTTP takes credentials that are not encrypted.
    pub(crate) http_cleartext: bool,
}

impl Addresses {
    /// The address for a Flight client on this machine.
    pub(crate) fn flight_uri(&self) -> Option<String> {
        let scheme = if self.encrypted { "grpc+tls" } else { "grpc" };
        self.flight.map(|address| format!("{scheme}://{}", reachable(address)))
    }

    /// The address for a PostgreSQL client on this machine.
    pub(crate) fn pg_uri(&self) -> Option<String> {
        let mode = if self.encrypted { "?sslmode=require" } else { "" };
        self.pg.map(|address| format!("postgresql://{}/{mode}", reachable(address)))
    }

    /// The address for a MySQL client on this machine.
    pub(crate) fn mysql_uri(&self) -> Option<String> {
        let mode = if self.encrypted { "?ssl-mode=REQUIRED" } else { "" };
        self.mysql.map(|address| format!("mysql://{}/{mode}", reachable(address)))
    }

    /// The address for a node on this machine.
    pub(crate) fn cluster_address(&self) -> Option<String> {
        self.cluster.map(|address| reachable(address).to_string())
    }

    /// The address for a browser on this machine.
    pub(crate) fn http_uri(&self) -> Option<String> {
        self.http.map(|address| format!("http://{}", reachable(address)))
    }
}

/// An address for connecting: loopback if the server listens on all addresses.
pub(crate) fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Binds a front end's address; `None` when it is off.
///
/// # Errors
/// [`Usage`] for an address that means nothing or reaches too far; other errors when the port is taken.
pub(crate) async fn bind(flag: &str, listen: &Listen, reach: Reach) -> Result<Option<TcpListener>> {
    let Some(addresses) = resolve(flag, listen, reach).await? else { return Ok(None) };
    let Listen::On(text) = listen else { return Ok(None) };
    let listener = TcpListener::bind(addresses.as_slice()).await;
    listener
        .map(Some)
        .with_context(|| format!("cannot listen on `{text}` (`{flag}`); another program may use the port"))
}

/// The addresses of a front end.
pub(crate) async fn resolve(flag: &str, listen: &Listen, reach: Reach) -> Result<Option<Vec<SocketAddr>>> {
    let Listen::On(text) = listen else { return Ok(None) };
    let found: Vec<SocketAddr> = match lookup_host(text.as_str()).await {
        Ok(found) => found.collect(),
        Err(error) => {
            return Err(Usage::new(format!("`{flag} {text}`: {error}"))
                .with_hint("name an address of this machine, such as 127.0.0.1:50051")
                .into());
        }
    };
    if found.is_empty() {
        bail!("`{flag} {text}` does not resolve to an address");
    }
    if reach == Reach::ThisMachine && !found.iter().all(|address| address.ip().to_canonical().is_loopback()) {
        return Err(Usage::new(format!(
            "`{flag} {text}` reaches beyond this machine, and no users are configured"
        ))
        .with_hint("configure users (`bowshot hash-password`), listen on 127.0.0.1, or use `--insecure`")
        .into());
    }
    Ok(Some(found))
}
