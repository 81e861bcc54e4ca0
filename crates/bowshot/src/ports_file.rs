//! The file with the server's addresses for scripts. It is written when the server is ready, and removed when it stops.

use crate::serve::Addresses;
use anyhow::{Context, Result};
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The ports file, removed with the server.
#[derive(Debug)]
pub(crate) struct PortsFile {
    path: PathBuf,
    content: String,
}

#[derive(Debug, Serialize)]
struct Ports {
    #[serde(skip_serializing_if = "Option::is_none")]
    flight: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pg: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mysql: Option<String>,
    /// `HOST:PORT` of the internal port, not for clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    pid: u32,
}

impl PortsFile {
    /// Writes a temporary file and renames it, so that the file is always complete.
    pub(crate) fn write(path: &Path, addresses: &Addresses) -> Result<Self> {
        let ports = Ports {
            flight: addresses.flight_uri(),
            http: addresses.http_uri(),
            pg: addresses.pg_uri(),
            mysql: addresses.mysql_uri(),
            cluster: addresses.cluster_address(),
            pid: std::process::id(),
        };
        let content = format!("{}\n", serde_json::to_string(&ports)?);
        put(path, &content).with_context(|| format!("cannot write the ports file `{}`", path.display()))?;
        Ok(Self { path: path.to_owned(), content })
    }
}

fn put(path: &Path, content: &str) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".ports-").permissions(readable()).tempfile_in(folder)?;
    file.write_all(content.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Readable by all: a supervisor may be another user, and ports are no secret.
#[cfg(unix)]
fn readable() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o644)
}

impl Drop for PortsFile {
    fn drop(&mut self) {
        // Another server may have replaced it.
        if std::fs::read_to_string(&self.path).is_ok_and(|content| content == self.content)
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the ports file");
        }
    }
}
