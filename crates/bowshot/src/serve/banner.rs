//! What the server prints when it is ready: sources, addresses, how to connect; text for people, log records for machines.

use super::{Addresses, Running};
use crate::config::{Config, LogFormat};
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;

/// Most tables in the banner.
const MAX_SHOWN: usize = 200;

#[derive(Debug, Clone)]
pub(crate) struct Served {
    pub(crate) name: String,
    pub(crate) format: String,
    pub(crate) files: usize,
    pub(crate) bytes: u64,
    pub(crate) path: String,
    /// How its files are read, if known.
    pub(crate) read_as: Option<String>,
    /// Why it cannot be read.
    pub(crate) problem: Option<String>,
    /// Whether its files were checked.
    pub(crate) looked_at: bool,
}

impl Served {
    /// A table that was not checked yet.
    pub(super) fn not_looked_at(name: String, path: &Path) -> Self {
        let path = path.display().to_string();
        Self {
            name,
            format: "?".to_owned(),
            files: 0,
            bytes: 0,
            path,
            read_as: None,
            problem: None,
            looked_at: false,
        }
    }
}

/// Prints that the server is ready.
pub(super) fn announce(config: &Config, running: &Running) {
    let addresses = running.addresses;
    if let Some(danger) = danger(&addresses, config.access.is_empty()) {
        tracing::warn!("{danger}");
    }
    match config.log_format {
        LogFormat::Text => {
            let text = text(running, &addresses, &empty_folders(config));
            // A closed stderr is no reason not to serve.
            _ = std::io::stderr().write_all(text.as_bytes());
        }
        LogFormat::Json => log(running, &addresses),
    }
}

/// Warnings about addresses that other machines can reach.
fn danger(addresses: &Addresses, nobody_is_known: bool) -> Option<&'static str> {
    let is_reached = |address: SocketAddr| !address.ip().to_canonical().is_loopback();
    let rows = [addresses.flight, addresses.pg, addresses.mysql].into_iter().flatten().any(is_reached);
    if nobody_is_known && (rows || addresses.http.is_some_and(is_reached)) {
        return Some(
            "no users are configured: everybody who reaches these addresses can read all tables and create new ones",
        );
    }
    // HTTP accepts no unencrypted credentials of other machines by default.
    let http = addresses.http_cleartext && addresses.http.is_some_and(is_reached);
    (http || (rows && !addresses.encrypted)).then_some(
        "passwords, tokens and rows cross the network unencrypted: set `--tls-certificate` and `--tls-key`, or put a \
         proxy with TLS in front",
    )
}

fn log(running: &Running, addresses: &Addresses) {
    for served in &running.sources {
        let Served { name, format, files, bytes, path, problem, .. } = served;
        match problem {
            None if !served.looked_at => {
                tracing::info!(table = %name, %path, "table served, not read yet")
            }
            None => tracing::info!(table = %name, %format, files, bytes, %path, "table served"),
            Some(problem) => tracing::warn!(table = %name, %path, %problem, "table cannot be read"),
        }
    }
    let (flight, http) = (addresses.flight_uri(), addresses.http_uri());
    let (pg, mysql) = (addresses.pg_uri(), addresses.mysql_uri());
    let cluster = addresses.cluster_address();
    tracing::info!(flight, http, pg, mysql, cluster, pid = std::process::id(), "ready");
}

/// A line for each served folder with nothing in it.
pub(crate) fn empty_folders(config: &Config) -> String {
    let is_empty = |path: &Path| std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    let empty = config.sources.iter().map(|source| source.path.as_path()).filter(|path| is_empty(path));
    empty.map(|path| format!("{} is empty: tables appear when it has files\n", path.display())).collect()
}

fn text(running: &Running, addresses: &Addresses, empty: &str) -> String {
    let mut text = format!("bowshot {}\n\n", env!("CARGO_PKG_VERSION"));
    text.push_str(empty);
    if running.sources.is_empty() {
        if empty.is_empty() {
            text.push_str("no tables: name files or folders, as in `bowshot serve data/`\n");
        }
    } else {
        let (shown, rest) = running.sources.split_at(running.sources.len().min(MAX_SHOWN));
        text.push_str(&table(shown));
        if !rest.is_empty() {
            _ = writeln!(text, "and {} more: `bowshot check` and `SHOW TABLES` list all", rest.len());
        }
        let later = running.sources.iter().filter(|served| !served.looked_at).count();
        if later > 0 {
            _ = writeln!(text, "{later} of them are still being read; the log will have their errors");
        }
    }
    match running.data.folder() {
        Some(folder) => _ = writeln!(text, "\nnew tables are stored in {}", folder.display()),
        None => {
            text.push_str("\nnew tables are stored in memory and lost when the server stops (see --data)\n")
        }
    }
    text.push('\n');
    for (name, uri) in [
        ("Flight SQL", addresses.flight_uri()),
        ("HTTP", addresses.http_uri()),
        ("console", addresses.http_uri().map(|uri| format!("{uri}/console"))),
        ("PostgreSQL", addresses.pg_uri()),
        ("MySQL", addresses.mysql_uri()),
    ] {
        if let Some(uri) = uri {
            _ = writeln!(text, "{name:<11} {uri}");
        }
    }
    if let Some(node) = &running.node {
        let (address, members) = (node.cluster.myself().address, node.cluster.members().len());
        _ = writeln!(text, "{:<11} {address}, {members} known so far, this one included", "nodes");
    }
    if let Some(uri) = addresses.flight_uri() {
        text.push('\n');
        text.push_str(&match addresses.encrypted {
            true => encrypted_lines(&uri),
            false => plain_lines(&uri),
        });
    }
    text.push_str("\nready; stop with Ctrl-C\n");
    text
}

/// Code to connect to a Flight SQL address.
fn plain_lines(uri: &str) -> String {
    let authority = uri.split_once("://").map_or(uri, |(_, authority)| authority);
    format!(
        "python      import bowshot; connection = bowshot.connect(\"{uri}\")\n\
         JDBC        jdbc:arrow-flight-sql://{authority}?useEncryption=false\n\
         shell       bowshot sql --uri {uri}\n"
    )
}

/// The same with a certificate, whose name and authority only the operator knows.
fn encrypted_lines(uri: &str) -> String {
    let port = uri.rsplit_once(':').map_or("", |(_, port)| port);
    format!(
        "connect with a name in the certificate:\n\
         python      import bowshot; connection = bowshot.connect(\"grpc+tls://NAME:{port}\")\n\
         JDBC        jdbc:arrow-flight-sql://NAME:{port}\n\
         shell       bowshot sql --uri grpc+tls://NAME:{port} [--ca-file AUTHORITY.pem]\n"
    )
}

/// Sources as a table, with the problems below it.
pub(crate) fn table(sources: &[Served]) -> String {
    let head = ["table", "format", "files", "size", "from"].map(str::to_owned);
    let rows = sources.iter().map(|served| match served.problem {
        None if !served.looked_at => {
            [served.name.clone(), served.format.clone(), String::new(), String::new(), served.path.clone()]
        }
        None => [
            served.name.clone(),
            served.format.clone(),
            served.files.to_string(),
            size(served.bytes),
            served.path.clone(),
        ],
        Some(_) => {
            [served.name.clone(), "broken".to_owned(), String::new(), String::new(), served.path.clone()]
        }
    });
    let rows: Vec<[String; 5]> = std::iter::once(head).chain(rows).collect();
    let widths: Vec<usize> = (0..5)
        .map(|column| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in &rows {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, width))| match column {
                2 | 3 => format!("{cell:>width$}"),
                _ => format!("{cell:<width$}"),
            })
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    for served in sources {
        if let Some(problem) = &served.problem {
            _ = writeln!(text, "\ntable `{}` cannot be read: {problem}", served.name);
        }
    }
    text
}

/// A size with three digits and a unit.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let name = UNITS.get(unit).unwrap_or(&"TiB");
    match unit {
        0 => format!("{bytes} B"),
        _ if value < 10.0 => format!("{value:.2} {name}"),
        _ if value < 100.0 => format!("{value:.1} {name}"),
        _ => format!("{value:.0} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_addresses_are_a_danger_of_their_own_kind() {
        let at = |flight: &str, http: &str| Addresses {
            flight: flight.parse().ok(),
            http: http.parse().ok(),
            pg: None,
            mysql: None,
            cluster: None,
            encrypted: false,
            http_cleartext: false,
        };
        let kind = |addresses: Addresses, nobody_is_known| {
            danger(&addresses, nobody_is_known).map(|text| text.split(' ').next().unwrap_or_default())
        };
        for (flight, http) in
            [("127.0.0.1:1", "[::1]:1"), ("off", "127.9.9.9:1"), ("[::ffff:127.0.0.1]:1", "off")]
        {
            assert_eq!(kind(at(flight, http), true), None);
        }
        assert_eq!(kind(at("127.0.0.1:1", "[::]:1"), true), Some("no"));
        assert_eq!(kind(at("127.0.0.1:1", "[::]:1"), false), None, "HTTP takes no credentials there");
        let cleartext = Addresses { http_cleartext: true, encrypted: true, ..at("off", "[::]:1") };
        assert_eq!(kind(cleartext, false), Some("passwords,"));
        let pg = Addresses { pg: "0.0.0.0:1".parse().ok(), ..Addresses::default() };
        assert_eq!(kind(pg, true), Some("no"));
        assert_eq!(kind(pg, false), Some("passwords,"));
        let mysql = Addresses { mysql: "0.0.0.0:1".parse().ok(), ..Addresses::default() };
        assert_eq!(kind(mysql, false), Some("passwords,"));
        for (flight, http) in [("0.0.0.0:1", "off"), ("10.0.0.1:1", "127.0.0.1:1")] {
            assert_eq!(kind(at(flight, http), true), Some("no"));
            assert_eq!(kind(at(flight, http), false), Some("passwords,"));
            let encrypted = Addresses { encrypted: true, ..at(flight, http) };
            assert_eq!(kind(encrypted, true), Some("no"));
            assert_eq!(kind(encrypted, false), None);
        }
    }

    #[test]
    fn sizes_have_three_digits() {
        for (bytes, shown) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "0.98 KiB"),
            (1536, "1.50 KiB"),
            (220 << 20, "220 MiB"),
            (25 << 30, "25.0 GiB"),
            (u64::MAX, "16777216 TiB"),
        ] {
            assert_eq!(size(bytes), shown);
        }
    }
}
