//! The Unix socket for clients on this machine.

use super::memory;
use crate::config::{Config, LocalSocket};
use anyhow::{Context, Result};
use bowshot_flight::{SameHost, SharedLimits};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Opens the socket beside the address of Flight SQL. By default only for servers on loopback,
/// and one that cannot be opened is left out, with a warning; `scratch` is a folder of the server's own.
pub(super) fn open(config: &Config, flight: Option<SocketAddr>, scratch: &Path) -> Result<Option<SameHost>> {
    let Some(address) = flight else { return Ok(None) };
    let settings = &config.same_host;
    let most = config.limits.memory_bytes;
    let limits = SharedLimits {
        connection_bytes: settings.connection_bytes,
        user_bytes: settings.user_bytes,
        total_bytes: memory::share("same_host.total_bytes", settings.total_bytes, most),
    };
    let opened = match settings.place()? {
        LocalSocket::Off => return Ok(None),
        LocalSocket::At(path) => SameHost::open(Path::new(&path), limits).with_context(|| {
            format!("cannot open the socket `{path}` (`--local-socket`); name another path, or `none`")
        })?,
        LocalSocket::Auto => {
            let certificates_required = config.tls.client_trust()?.is_some_and(|trust| trust.required);
            if !address.ip().to_canonical().is_loopback() || certificates_required {
                return Ok(None);
            }
            let opened = place(address, scratch).and_then(|path| SameHost::open(&path, limits));
            match opened {
                Ok(socket) => socket,
                Err(error) => {
                    tracing::warn!(%error, "clients on this machine cannot use shared memory: name a path with `--local-socket`");
                    return Ok(None);
                }
            }
        }
    };
    tracing::debug!(path = %opened.path().display(), "clients on this machine can use shared memory");
    Ok(Some(opened))
}

/// A path in the user's runtime folder, else in a folder of the server.
fn place(address: SocketAddr, scratch: &Path) -> io::Result<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| is_ours(folder));
    let Some(runtime) = runtime else { return Ok(scratch.join("flight.sock")) };
    let folder = runtime.join("bowshot");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    Ok(folder.join(format!("flight-{}.sock", address.port())))
}

/// Whether a folder belongs to this user, so that nobody else can replace files in it.
fn is_ours(folder: &Path) -> bool {
    let owner = |path: &Path| std::fs::metadata(path).map(|found| found.uid()).ok();
    folder.is_absolute() && owner(folder).is_some_and(|uid| Some(uid) == owner(Path::new("/proc/self")))
}
