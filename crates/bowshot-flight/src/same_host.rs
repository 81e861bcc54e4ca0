//! Results and uploads of clients on the server's machine: the rows lie in memory that both have mapped, and a Unix socket carries
//! what stands around them. Calls are those of Flight, with the same headers, tickets, rights and limits; only the bytes of the
//! rows take another way. `docs/reference/same-host.md` has the protocol.
//!
//! ```text
//! Flight: call with x-bowshot-same-host ─► answer names the socket (gate.rs)
//! Unix socket ─► conversation.rs ─┬─ GET ─► download.rs ─► stream.rs; gather.rs ─► pool.rs ─► bowshot-ipc/shared
//!                 frames.rs       └─ PUT ─► upload.rs ─► ingest.rs
//! ```
//!
//! Who may connect: the user of this process and root, or everybody on this machine if the operator says so. Nobody is believed
//! for that: each call shows the credentials that it would show on the network.

mod conversation;
mod download;
pub(crate) mod frames;
mod gather;
mod pool;
mod upload;

use crate::connection::{Connection, Shared};
use crate::listen::{ACCEPT_PAUSE, is_exhaustion, is_passing};
use crate::places::Places;
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

/// Bytes of memory that clients may have mapped and not given back. Above it rows come through the socket.
#[derive(Debug, Clone, Copy)]
pub struct SharedLimits {
    /// For one connection.
    pub connection_bytes: u64,
    /// For all connections of one user of the server.
    pub user_bytes: u64,
    /// For all.
    pub total_bytes: u64,
}

/// A Unix socket that is open for clients on this machine. Its file goes when this is dropped.
#[derive(Debug)]
pub struct SameHost {
    listener: UnixListener,
    file: SocketFile,
    limits: SharedLimits,
}

impl SameHost {
    /// Opens the socket, in the place of one that a server has left behind. To be called within the runtime of the sockets.
    ///
    /// # Errors
    /// `AddrInUse` when another server answers there; what the system says of the path.
    pub fn open(path: &Path, limits: SharedLimits) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        match std::os::unix::net::UnixStream::connect(&path) {
            Ok(_) => return Err(io::Error::new(io::ErrorKind::AddrInUse, "another server answers there")),
            // What is there and is no socket is not ours to replace.
            Err(_) if path.symlink_metadata().is_ok_and(|found| !is_socket(&found)) => {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is a file of that name"));
            }
            Err(_) => {}
        }
        // Made under another name, so that nobody connects before the mode is right.
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

    /// Where the socket is.
    pub fn path(&self) -> &Path {
        &self.file.path
    }
}

fn is_socket(found: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    found.file_type().is_socket()
}

/// The file of a socket; dropping it removes it, unless another server has put its own in the place.
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

/// What all conversations share.
#[derive(Debug)]
pub(crate) struct Terms {
    /// Tells this server from another one that has the same path in another part of the machine. Whoever may connect to the
    /// socket hears it.
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

    /// What clients on this machine are told.
    pub(crate) fn announcement(&self) -> Option<HeaderValue> {
        self.announcement.clone()
    }

    /// Takes connections until `drain`, and is done when the last of them has ended. Dropping the future cuts them all.
    pub(crate) async fn serve(self, shared: Arc<Shared>, places: Arc<Places>, drain: CancellationToken) {
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                () = drain.cancelled() => break,
                Some(_ended) = tasks.join_next() => {}
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => self.take(stream, (&shared, &places), &drain, &mut tasks),
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
        (shared, places): (&Arc<Shared>, &Arc<Places>),
        drain: &CancellationToken,
        tasks: &mut JoinSet<()>,
    ) {
        let Some(claim) = places.take(Some(HERE)) else {
            tracing::warn!("a connection of this machine over the limit was cut off");
            return;
        };
        let (shared, terms, drain) = (Arc::clone(shared), Arc::clone(&self.terms), drain.clone());
        tasks.spawn(async move {
            let Some(place) = claim.place().await else { return };
            let connection = Arc::new(Connection::new(shared, HERE, place.stranger().clone()));
            let talk = Box::pin(conversation::talk(stream, &connection, &terms, &drain));
            tokio::select! {
                ended = talk => if let Err(error) = ended {
                    tracing::debug!(%error, "a connection of this machine broke");
                },
                () = place.stranger().has_to_leave() => {}
            }
            connection.end().await;
        });
    }
}
