//! Where others reach the server, or it others: ports, certificates, nodes, the collector of traces.

use super::Line;
use super::folders::others_read;
use crate::config::{Config, Listen};
use crate::serve::{ClientAuthority, Reach, Tls, authenticator, resolve};
use bowshot_access::CertificateSummary;
use bowshot_cluster::membership::Security;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A certificate that ends sooner should be renewed now.
const SOON: Duration = Duration::from_secs(21 * 24 * 60 * 60);
/// Timeout of the collector.
const PATIENCE: Duration = Duration::from_secs(2);

/// Checks whether ports are free, and who can reach them.
pub(super) async fn ports(config: &Config, in_use: bool) -> Vec<Line> {
    let mut lines = Vec::new();
    let has_users = authenticator(config).is_ok_and(|found| found.requires_credentials());
    let reach = if has_users || config.insecure { Reach::Anywhere } else { Reach::ThisMachine };
    let addresses = [
        ("port-flight", "--flight", &config.flight, reach, false),
        ("port-http", "--http", &config.http, reach, config.http_cleartext),
        ("port-pg", "--pg", &config.pg, reach, config.pg_cleartext),
        ("port-mysql", "--mysql", &config.mysql, reach, config.mysql_cleartext),
        ("port-cluster", "--cluster", &config.cluster.listen, Reach::Anywhere, false),
    ];
    let mut beyond = Vec::new();
    for (check, flag, listen, reach, cleartext) in addresses {
        let addresses = match resolve(flag, listen, reach).await {
            Ok(None) => continue,
            Ok(Some(addresses)) => addresses,
            Err(error) => {
                lines.push(Line::error(check, &error, "name an address of this machine"));
                continue;
            }
        };
        lines.push(port(check, (flag, listen), &addresses, in_use));
        let is_local = addresses.iter().all(|address| address.ip().to_canonical().is_loopback());
        if !is_local && flag != "--cluster" {
            beyond.push(flag);
            if cleartext {
                let finding = format!("`{flag}` accepts unencrypted passwords from other machines");
                lines.push(Line::doubtful(
                    "cleartext",
                    finding,
                    "set `tls.certificate`, and the `…_cleartext` setting to false",
                ));
            }
        }
    }
    lines.extend(open(config, &beyond, has_users));
    lines
}

/// Checks access from other machines.
fn open(config: &Config, beyond: &[&str], has_users: bool) -> Option<Line> {
    let addresses = beyond.join(", ");
    if beyond.is_empty() {
        return Some(Line::good("reach", "this machine alone"));
    }
    if !has_users {
        let finding = format!(
            "{addresses}: everybody who reaches this machine is admitted without login (`--insecure`)"
        );
        return Some(Line::doubtful("reach", finding, "configure users: `bowshot hash-password`"));
    }
    if config.tls.certificate.is_none() {
        let finding = format!("{addresses}: other machines connect without encryption");
        return Some(Line::doubtful("reach", finding, "set `tls.certificate` and `tls.key`"));
    }
    Some(Line::good("reach", format!("{addresses}: other machines, with encryption and users")))
}

fn port(
    check: &'static str,
    (flag, listen): (&str, &Listen),
    addresses: &[SocketAddr],
    in_use: bool,
) -> Line {
    match TcpListener::bind(addresses) {
        Ok(_) => Line::good(check, format!("{listen} is free")),
        Err(error) if in_use && error.kind() == std::io::ErrorKind::AddrInUse => Line::good(
            check,
            format!("{listen} is in use, by the running server if it has the same configuration"),
        ),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            let remedy = "choose a port from 1024 up, or give the program CAP_NET_BIND_SERVICE";
            Line::bad(check, format!("no permission for `{flag} {listen}`: {error}"), remedy)
        }
        Err(error) => {
            let remedy =
                format!("stop the program that uses it (`ss -ltnp`), or choose another port with `{flag}`");
            Line::bad(check, format!("`{flag} {listen}` cannot be used: {error}"), remedy)
        }
    }
}

/// Certificates of the server and of the authorities of clients.
pub(super) async fn tls(config: &Config) -> Vec<Line> {
    let mut lines = Vec::new();
    let (Some(certificate), Some(key)) = (&config.tls.certificate, &config.tls.key) else { return lines };
    let authority = match ClientAuthority::load(&config.tls).await {
        Ok(authority) => authority,
        Err(usage) => {
            lines.push(Line::error("tls-clients", &usage.into(), "set `tls.client_authority`"));
            None
        }
    };
    match Tls::load(&config.tls, authority.as_ref()).await {
        Ok(_) => {
            lines.push(Line::good("tls", "the key matches the certificate"));
            lines.extend(chain("tls-chain", certificate));
        }
        Err(usage) => lines.push(Line::error("tls", &usage.into(), "name a certificate and its key")),
    }
    if others_read(key) {
        let finding = format!("other users of this machine can read the private key `{}`", key.display());
        lines.push(Line::doubtful("tls-key", finding, format!("chmod 600 {}", key.display())));
    }
    if let Some(path) = config.tls.client_authority.as_deref().filter(|_| authority.is_some()) {
        lines.extend(read(path).iter().filter_map(|facts| ends("tls-clients", path, facts)));
    }
    lines
}

/// Checks a certificate chain as clients will: the server's first, then those up to the authority.
fn chain(check: &'static str, path: &Path) -> Vec<Line> {
    let chain = read(path);
    let shown = path.display();
    let Some(own) = chain.first() else {
        let finding = format!("`{shown}` has no readable certificate");
        return vec![Line::bad(
            check,
            finding,
            "create a new certificate: clients cannot read this one either",
        )];
    };
    let mut lines: Vec<Line> = chain.iter().filter_map(|facts| ends(check, path, facts)).collect();
    if own.is_authority && chain.len() == 1 && own.subject == own.issuer {
        let remedy =
            "create one with basicConstraints=CA:FALSE: many clients refuse this one (CaUsedAsEndEntity)";
        lines.push(Line::doubtful(check, format!("`{shown}` is a CA certificate"), remedy));
    }
    let is_broken = chain.windows(2).any(|pair| match pair {
        [lower, upper] => lower.issuer != upper.subject,
        _ => false,
    });
    if is_broken {
        let remedy =
            "order the chain: the server's certificate first, then its issuer, then the issuer's issuer";
        lines.push(Line::bad(
            check,
            format!("a certificate in `{shown}` did not sign the one before it"),
            remedy,
        ));
    } else if chain.len() == 1 && own.subject != own.issuer {
        let finding = format!("`{shown}` has only the server's certificate: clients need its issuer");
        let remedy = "add the intermediate certificates, unless the root CA signed it";
        lines.push(Line::doubtful(check, finding, remedy));
    }
    if lines.is_empty() {
        let left = own.not_after.duration_since(SystemTime::now()).unwrap_or_default();
        lines.push(Line::good(check, format!("{} certificates, valid for {} days", chain.len(), days(left))));
    }
    lines
}

fn ends(check: &'static str, path: &Path, facts: &CertificateSummary) -> Option<Line> {
    let (now, shown) = (SystemTime::now(), path.display());
    if facts.not_before > now {
        let remedy = "check the clock of this machine, or wait";
        return Some(Line::bad(check, format!("a certificate in `{shown}` is not valid yet"), remedy));
    }
    match facts.not_after.duration_since(now) {
        Err(_) => Some(Line::bad(check, format!("a certificate in `{shown}` has expired"), renew())),
        Ok(left) if left < SOON => {
            let finding = format!("a certificate in `{shown}` expires in {} days", days(left));
            Some(Line::doubtful(check, finding, renew()))
        }
        Ok(_) => None,
    }
}

fn renew() -> &'static str {
    "replace it and its key; a running server reloads them within seconds"
}

fn days(left: Duration) -> u64 {
    left.as_secs() / (24 * 60 * 60)
}

/// The parsed certificates of a file; unreadable ones are skipped.
fn read(path: &Path) -> Vec<CertificateSummary> {
    let Ok(found) = CertificateDer::pem_file_iter(path) else { return Vec::new() };
    found.flatten().filter_map(|der| CertificateSummary::parse(&der)).collect()
}

/// Checks the authentication of nodes.
pub(super) fn cluster(config: &Config) -> Vec<Line> {
    const CHECK: &str = "cluster";
    let security = match config.cluster.security() {
        Ok(None) => return Vec::new(),
        Ok(Some(security)) => security,
        Err(usage) => return vec![Line::error(CHECK, &usage.into(), "see the guide to clusters")],
    };
    if let Err(error) = security.examine().map_err(crate::cluster::mistake) {
        return vec![Line::error(CHECK, &error.into(), "make them with `bowshot cluster init`")];
    }
    let Security::MutualTls { authority, certificate, key } = &security else {
        return vec![Line::good(CHECK, "a shared secret, for nodes on this machine")];
    };
    let mut lines: Vec<Line> = [authority, certificate]
        .into_iter()
        .flat_map(|path| read(path).into_iter().filter_map(move |facts| ends(CHECK, path, &facts)))
        .collect();
    if others_read(key) {
        let finding = format!("other users of this machine can read the node's key `{}`", key.display());
        lines.push(Line::doubtful(CHECK, finding, format!("chmod 600 {}", key.display())));
    }
    if lines.is_empty() {
        lines.push(Line::good(CHECK, "the cluster's CA issued the node's certificate"));
    }
    lines
}

pub(super) async fn traces(config: &Config) -> Option<Line> {
    const CHECK: &str = "traces";
    let address = config.traces.address()?;
    let connecting = tokio::net::TcpStream::connect(&address);
    Some(match tokio::time::timeout(PATIENCE, connecting).await {
        Ok(Ok(_)) => Line::good(CHECK, format!("a program listens on {address}")),
        Ok(Err(error)) => Line::doubtful(CHECK, format!("{address}: {error}"), unheard()),
        Err(_) => Line::doubtful(CHECK, format!("{address} does not answer"), unheard()),
    })
}

fn unheard() -> &'static str {
    "start the collector, or correct `traces.endpoint`; until then traces are dropped"
}
