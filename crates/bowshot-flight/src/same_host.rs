//! Results and uploads of local clients: rows in shared memory, control messages over a Unix socket. Headers,
//! tickets, access rights and limits are those of Flight. `docs/reference/same-host.md` describes the protocol.
//!
//! ```text
//! Flight: call with x-bowshot-same-host ─► answer names the socket (call_layer.rs)
//! Unix socket ─► connection.rs ─┬─ GET ─► download.rs ─► stream.rs; batch_coalescer.rs ─► pool.rs ─►
//! bowshot-ipc/shared
//!                frames.rs      └─ PUT ─► upload.rs ─► ingest.rs
//! ```
//!
//! The user of this process and root may connect, or all local users if the operator allows it. Each call
//! authenticates with the same credentials as over the network.

mod batch_coalescer;
mod connection;
mod download;
pub(crate) mod frames;
mod pool;
mod upload;

use crate::connection::{Connection, Shared};
use crate::connection_limiter::ConnectionLimiter;
use crate::listen::{ACCEPT_PAUSE, is_exhaustion, is_passing};
use http::HeaderValue;
use pool::Budget;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Where these clients are, for limits on addresses and for the log.
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Limits of shared memory that clients hold. Beyond them, rows are sent through the socket.
#[derive(Debug, Clone, Copy)]
pub struct SharedLimits {
    pub connection_bytes: u64,
    /// Bytes of all connections of a user.
    pub user_bytes: u64,
    pub total_bytes: u64,
}

/// The Unix socket for local clients; dropping it removes its file.
#[derive(Debug)]
pub struct SameHost {
    listener: UnixListener,
    file: SocketFile,
    limits: SharedLimits,
}

impl SameHost {
    /// Opens the socket, replacing a stale one. Call it on the socket runtime.
    ///
    /// # Errors
    /// `AddrInUse` when another server answers there; what the system says of the path.
    pub fn open(path: &Path, limits: SharedLimits) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        match std::os::unix::net::UnixStream::connect(&path) {
            Ok(_) => return Err(io::Error::new(io::ErrorKind::AddrInUse, "another server answers there")),
            // Only sockets are replaced.
            Err(_) if path.symlink_metadata().is_ok_and(|found| !is_socket(&found)) => {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is a file of that name"));
            }
            Err(_) => {}
        }
        // Created under a temporary name, so that nobody connects before the mode is set.
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}", std::process::id()));
        let new = PathBuf::from(name);
        let _ = std::fs::remove_file(&new);
        let listener = UnixListener::bind(&new)?;
        let made = std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o600))
            .and_then(|()| std::fs::rename(&new, &path))
            .and_then(|()| SocketFile::at(path));
        if made.is_err() {
            let _ = std::fs::remove_file(&new);
        }
        Ok(Self { listener, file: made?, limits })
    }

    pub fn path(&self) -> &Path {
        &self.file.path
    }
}

fn is_socket(found: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    found.file_type().is_socket()
}

/// The file of a socket; dropping it removes the file, unless another server has replaced it.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    inode: u64,
}

impl SocketFile {
    fn at(path: PathBuf) -> io::Result<Self> {
        let inode = path.symlink_metadata()?.ino();
        Ok(Self { path, inode })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.path.symlink_metadata().is_ok_and(|found| found.ino() == self.inode) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// State of all connections.
#[derive(Debug)]
pub(crate) struct Terms {
    /// Random id, sent to every client that connects: distinguishes servers with the same path in different mount
    /// namespaces.
    id: [u8; 16],
    budget: Arc<Budget>,
}

/// The socket, in use.
#[derive(Debug)]
pub(crate) struct LocalPort {
    listener: UnixListener,
    terms: Arc<Terms>,
    announcement: Option<HeaderValue>,
    _file: SocketFile,
}

impl LocalPort {
    pub(crate) fn new(socket: SameHost) -> Self {
        let SameHost { listener, file, limits } = socket;
        let id = uuid::Uuid::new_v4();
        let text = file.path.to_str().map(|path| format!("{} {path}", id.simple()));
        let announcement = text.and_then(|text| HeaderValue::from_str(&text).ok());
        if announcement.is_none() {
            tracing::warn!(path = %file.path.display(), "clients cannot be told of a socket with such a name");
        }
        let terms = Terms { id: id.into_bytes(), budget: Arc::new(Budget::new(limits)) };
        Self { listener, terms: Arc::new(terms), announcement, _file: file }
    }

    pub(crate) fn announcement(&self) -> Option<HeaderValue> {
        self.announcement.clone()
    }

    /// Takes connections until `drain`, and is done when the last of them has ended. Dropping the future cuts them all.
    pub(crate) async fn serve(
        self,
        shared: Arc<Shared>,
        limiter: Arc<ConnectionLimiter>,
        drain: CancellationToken,
    ) {
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                () = drain.cancelled() => break,
                Some(_ended) = tasks.join_next() => {}
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => self.take(stream, (&shared, &limiter), &drain, &mut tasks),
                    Err(error) if is_passing(&error) => {}
                    Err(error) if is_exhaustion(&error) => sleep(ACCEPT_PAUSE).await,
                    Err(error) => {
                        tracing::error!(%error, "clients on this machine cannot map results any more");
                        break;
                    }
                },
            }
        }
        while tasks.join_next().await.is_some() {}
    }

    fn take(
        &self,
        stream: UnixStream,
        (shared, limiter): (&Arc<Shared>, &Arc<ConnectionLimiter>),
        drain: &CancellationToken,
        tasks: &mut JoinSet<()>,
    ) {
        let Some(pending) = limiter.try_acquire(Some(HERE)) else {
            tracing::warn!("a connection of this machine over the limit was cut off");
            return;
        };
        let (shared, terms, drain) = (Arc::clone(shared), Arc::clone(&self.terms), drain.clone());
        tasks.spawn(async move {
            let Some(permit) = pending.permit().await else { return };
            let connection = Arc::new(Connection::new(shared, HERE, permit.eviction().clone()));
            let talk = Box::pin(connection::serve(stream, &connection, &terms, &drain));
            tokio::select! {
                ended = talk => if let Err(error) = ended {
                    tracing::debug!(%error, "a connection of this machine broke");
                },
                () = permit.eviction().evicted() => {}
            }
            connection.end().await;
        });
    }
}
