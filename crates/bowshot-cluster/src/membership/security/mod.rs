//! Authentication of both ends of a connection. Nothing else is read from it before.

mod certificates;
mod secret;

use crate::membership::error::{Error, denied};
use crate::membership::frame::{read_line, write_line};
use crate::membership::settings::{Security, host};
use crate::membership::stream::Wire;
use aws_lc_rs::hmac::Key;
use certificates::Certificates;
pub(crate) use certificates::NODE_NAME;
use secret::SharedKey;
use std::io;
use tokio::net::TcpStream;
use uuid::Uuid;

/// What a connection is for, once both ends believe one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Messages about membership.
    Members,
    /// Work that the node of this identifier gives.
    Work(Uuid),
}

const PROTOCOL: &str = "bowshot-cluster/1";
const GOOD: &str = "ok";

impl Purpose {
    fn line(self) -> String {
        match self {
            Self::Members => format!("{PROTOCOL} members"),
            Self::Work(id) => format!("{PROTOCOL} work {id}"),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        match (words.next()?, words.next()?, words.next(), words.next()) {
            (PROTOCOL, "members", None, None) => Some(Self::Members),
            (PROTOCOL, "work", Some(id), None) => Some(Self::Work(Uuid::parse_str(id).ok()?)),
            _ => None,
        }
    }
}

/// What this node proves itself with.
#[derive(Debug)]
pub(crate) enum Keys {
    Certificates(Certificates),
    Secret(Box<SharedKey>),
}

impl Keys {
    /// Reads what there is to read.
    pub(crate) fn load(security: &Security) -> Result<Self, Error> {
        match security {
            Security::MutualTls { authority, certificate, key } => {
                Ok(Self::Certificates(Certificates::load(authority, certificate, key)?))
            }
            Security::SharedSecret(secret) => Ok(Self::Secret(Box::new(SharedKey::new(secret)))),
        }
    }

    /// The identifier of the cluster, for a node whose data has none: the same for all that believe one another.
    pub(crate) fn cluster(&self) -> Uuid {
        match self {
            Self::Certificates(certificates) => certificates.cluster(),
            Self::Secret(secret) => secret.cluster(),
        }
    }

    /// A key that all nodes have, if they have something secret in common.
    pub(crate) fn common(&self) -> Option<Key> {
        match self {
            Self::Certificates(_) => None,
            Self::Secret(secret) => Some(secret.for_signatures()),
        }
    }

    /// Connects to a node and says what for.
    pub(crate) async fn dial(&self, address: &str, purpose: Purpose) -> io::Result<Wire> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        let mut wire = match self {
            Self::Certificates(certificates) => certificates.connect(socket, host(address)).await?,
            Self::Secret(secret) => secret.connect(socket).await?,
        };
        write_line(&mut wire, &purpose.line()).await?;
        match read_line(&mut wire).await?.split_once(' ') {
            None => Ok(wire),
            Some((_, reason)) => Err(denied(reason)),
        }
    }

    /// The other side of it. Whoever calls answers with [`accept`] or [`refuse`].
    pub(crate) async fn listen(&self, socket: TcpStream) -> io::Result<(Wire, Purpose)> {
        socket.set_nodelay(true)?;
        let mut wire = match self {
            Self::Certificates(certificates) => certificates.accept(socket).await?,
            Self::Secret(secret) => secret.accept(socket).await?,
        };
        match Purpose::parse(&read_line(&mut wire).await?) {
            Some(purpose) => Ok((wire, purpose)),
            None => {
                refuse(&mut wire, "this node speaks another version of the cluster's protocol").await?;
                Err(denied("it speaks another version of the cluster's protocol"))
            }
        }
    }
}

/// Tells the other side that the connection is its.
pub(crate) async fn accept(wire: &mut Wire) -> io::Result<()> {
    write_line(wire, GOOD).await
}

/// Tells the other side why not.
pub(crate) async fn refuse(wire: &mut Wire, reason: &str) -> io::Result<()> {
    write_line(wire, &format!("no {reason}")).await
}

/// A node that does not look at its own certificate.
#[cfg(test)]
pub(crate) fn unchecked(
    authority: &std::path::Path,
    certificate: &std::path::Path,
    key: &std::path::Path,
) -> Keys {
    Keys::Certificates(Certificates::read(authority, certificate, key).expect("files"))
}
