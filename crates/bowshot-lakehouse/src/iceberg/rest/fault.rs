//! What went wrong between this server and a catalog, in our own words.

use bowshot_api::{Error, ErrorKind};
use bowshot_object_store::Fault;
use std::time::Duration;

#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum CatalogFault {
    #[error("{}", asked(.0))]
    Asked(Fault),
    #[error("did not list its tables within {} s", .0.as_secs_f64())]
    Slow(Duration),
    #[error("lists {0}")]
    Large(&'static str),
    #[error("rejected the credentials of this server ({0})")]
    Refused(u16),
    #[error("returned status {0}")]
    Status(u16),
    #[error("reports a conflict with another change")]
    Conflict,
    #[error("returned an invalid response: {0}")]
    Strange(&'static str),
    #[error("cannot be used: {0}")]
    Settings(String),
}

impl CatalogFault {
    /// Whether a change that was asked for may be there all the same.
    pub(super) fn is_undetermined(&self) -> bool {
        matches!(self, Self::Asked(_) | Self::Slow(_) | Self::Status(500..))
    }

    pub(super) fn of(&self, catalog: &str) -> Error {
        let (kind, hint) = match self {
            Self::Asked(Fault::Late(_)) | Self::Slow(_) => {
                (ErrorKind::Timeout, "the operator can raise `timeout` in the entry of the catalog")
            }
            Self::Large(_) => (
                ErrorKind::Unavailable,
                "the operator sets the visible namespaces with `schemas` in the entry of the catalog",
            ),
            Self::Status(300..=399) => (
                ErrorKind::Unavailable,
                "it redirects to another address, which is not followed: the operator corrects `uri` in the entry of the catalog",
            ),
            Self::Asked(_) | Self::Status(_) => {
                (ErrorKind::Unavailable, "its tables are available again when it is; no restart is needed")
            }
            Self::Refused(_) => (
                ErrorKind::Unavailable,
                "the operator sets `token`, or `client_id` and `client_secret`, in the entry of the catalog",
            ),
            Self::Strange(_) => {
                (ErrorKind::Unavailable, "check `uri` and `warehouse` in the entry of the catalog")
            }
            Self::Conflict => (ErrorKind::Conflict, "run the statement again"),
            Self::Settings(_) => (ErrorKind::Invalid, "correct the entry of the catalog in `[[databases]]`"),
        };
        Error::new(kind, format!("the catalog `{catalog}` {self}")).with_hint(hint)
    }
}

/// The same of a catalog that is said there of a store.
fn asked(fault: &Fault) -> String {
    match fault {
        Fault::Late(limit) => format!("did not answer within {} s", limit.as_secs_f64()),
        Fault::Status(status) => format!("returned status {status}"),
        Fault::Strange(what) => format!("cannot be used: {what}"),
        Fault::Stopped => "is not used any more: the server is stopping".to_owned(),
        _ => "cannot be reached, or the connection to it broke".to_owned(),
    }
}
