//! Errors of starting a node and of making certificates.

use std::io;
use std::path::PathBuf;

/// Why a node is not in the cluster.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An invalid setting.
    #[error("{text}")]
    Setting { text: String, hint: String },
    /// The internal port cannot be opened.
    #[error("cannot open the cluster's port `{address}`: {source}")]
    Listen { address: String, source: io::Error },
    /// Certificate, key or authority.
    #[error("`{}` cannot be used: {reason}", .path.display())]
    File { path: PathBuf, reason: String },
    /// Every node that answered at the start has refused this one.
    #[error("`{address}` refused this node: {reason}")]
    Refused {
        address: String,
        /// Why, in its own words.
        reason: String,
        hint: &'static str,
    },
    /// Certificates cannot be made.
    #[error("cannot make certificates: {0}")]
    Certificates(String),
}

impl Error {
    pub(crate) fn setting(text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Setting { text: text.into(), hint: hint.into() }
    }

    pub(crate) fn file(path: impl Into<PathBuf>, reason: impl ToString) -> Self {
        Self::File { path: path.into(), reason: reason.to_string() }
    }

    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Setting { hint, .. } => Some(hint),
            Self::Refused { hint, .. } => Some(hint),
            Self::Listen { .. } => Some("another program may use the port: set another one with `--cluster`"),
            Self::File { .. } => {
                Some("`bowshot cluster init` and `bowshot cluster add-node` make matching files")
            }
            Self::Certificates(_) => None,
        }
    }
}

/// A refusal as an error of a socket.
pub(crate) fn denied(text: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, text.into())
}

/// Whether a connection failed by authentication, and not by the network.
pub(crate) fn is_denied(error: &io::Error) -> bool {
    let tls = error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>());
    tls || error.kind() == io::ErrorKind::PermissionDenied
}
