//! Errors of requests to stores. Texts of stores and libraries quote signed URLs, key names and responses, so none is passed on.

use crate::Error;
use object_store::client::HttpError;
use std::path::Path;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("it does not exist")]
    Missing,
    #[error("it was changed or replaced in the meantime")]
    Changed,
    #[error("it already exists")]
    Exists,
    #[error("the store rejected the credentials of this server ({0})")]
    Refused(u16),
    #[error("the store rejected the credentials of the secret `{1}` ({0})")]
    RefusedSecret(u16, String),
    #[error("there are no credentials for the store")]
    Credentials,
    #[error("{0}")]
    Unusable(String),
    #[error("the store did not answer within {} s", .0.as_secs_f64())]
    Late(Duration),
    #[error("the store returned status {0}")]
    Status(u16),
    #[error("the store cannot be reached, or the connection to it broke")]
    Connection,
    #[error("the store cannot be used: {0}")]
    Strange(&'static str),
    /// A name below a folder that the library cannot say: with an empty part, `.`, `..` or a control character.
    #[error("the name of an object below it has an empty part (`a//b`), `.`, `..` or a control character")]
    OddName,
    #[error("the server ends")]
    Stopped,
    /// Listing is under way for the first time.
    #[error("the store has not answered yet")]
    Unlisted,
}

impl Fault {
    /// What an error of the library means.
    pub fn of(error: &object_store::Error) -> Self {
        use object_store::Error as Library;
        match error {
            Library::NotFound { .. } => Self::Missing,
            Library::Precondition { .. } | Library::NotModified { .. } => Self::Changed,
            Library::AlreadyExists { .. } => Self::Exists,
            Library::PermissionDenied { .. } => Self::Refused(403),
            Library::Unauthenticated { .. } => Self::Refused(401),
            Library::InvalidPath { .. } => Self::OddName,
            _ => Self::of_text(error),
        }
    }

    /// The rest has types that the library keeps to itself, so that its words have to do.
    fn of_text(error: &object_store::Error) -> Self {
        let text = error.to_string();
        if let Some(status) = status_in(&text) {
            return match status {
                401 | 403 => Self::Refused(status),
                404 => Self::Missing,
                412 | 416 => Self::Changed,
                other => Self::Status(other),
            };
        }
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        if has(&["non-partial response"]) {
            return Self::Strange("it returned a whole file instead of the requested range");
        }
        if has(&["Requested ", "Content-Range", "CONTENT_RANGE"]) {
            return Self::Strange("it returned another range of the file than requested");
        }
        if has(&["169.254.169.254", "latest/api/token", "metadata.google.internal"]) {
            return Self::Credentials;
        }
        if is_of_transport(error) {
            return Self::Connection;
        }
        if has(&["credential", "Credential", "Token request", "token request"]) {
            return Self::Credentials;
        }
        if has(&["HTTP redirect", "Received redirect"]) {
            return Self::Strange("it redirects to another region: set the region of the bucket");
        }
        if has(&["error sending request", "connection", "timed out", "timeout"]) {
            return Self::Connection;
        }
        Self::Strange("it returned an invalid response")
    }

    pub fn at(&self, path: &Path) -> Error {
        match self {
            Self::Missing => Error::Missing { path: path.to_path_buf() },
            Self::Changed => Error::Changed { path: path.to_path_buf() },
            other => Error::Remote {
                table: None,
                path: path.to_path_buf(),
                detail: other.to_string(),
                hint: other.hint(),
            },
        }
    }

    pub(super) fn hint(&self) -> &'static str {
        match self {
            Self::Refused(_) | Self::Credentials => {
                "the operator can set credentials in the environment, a profile or `[[object_store.places]]`, administrators with CREATE SECRET; see the guide `object-stores`"
            }
            Self::RefusedSecret(..) => {
                "an administrator can replace the secret with CREATE OR REPLACE SECRET, or drop it; `system.secrets` lists all"
            }
            Self::Unusable(_) => {
                "`system.secrets` shows administrators which secrets are invalid; the guide `object-stores` lists what each store needs"
            }
            Self::OddName => "rename that object, or serve a folder without it",
            Self::Strange(_) => "check the address, the endpoint and the region of the store",
            _ => "run the statement again later; see the log and `system.object_stores`",
        }
    }

    /// Whether a request that comes later may well go through.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, Self::Late(_) | Self::Status(_) | Self::Connection | Self::Unlisted | Self::Stopped)
    }
}

fn is_of_transport(error: &object_store::Error) -> bool {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if error.is::<HttpError>() {
            return true;
        }
        next = error.source();
    }
    false
}

/// The status of an answer, which the library's text gives as `status code: 503 Service Unavailable`.
fn status_in(text: &str) -> Option<u16> {
    let (_, rest) = text.split_once("status code: ")?;
    rest.get(..3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_store_are_not_repeated() {
        let source = "Server returned non-2xx status code: 503 Service Unavailable: <AWSAccessKeyId>AKIA</AWSAccessKeyId>";
        let error = object_store::Error::Generic { store: "S3", source: source.into() };
        assert_eq!(Fault::of(&error), Fault::Status(503));
        let source = "something with sig=secret";
        let error = object_store::Error::Generic { store: "S3", source: source.into() };
        assert!(!Fault::of(&error).to_string().contains("secret"));
    }
}
