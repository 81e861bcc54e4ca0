//! Decisions of an external policy service on statements, in addition to the access rules of the server.

use crate::{Error, QueryId, Result};
use async_trait::async_trait;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// An action that needs a decision.
///
/// ```
/// use bowshot_api::{AccessRequest, Resource, AccessKind};
/// let table = Resource::table(["bowshot", "main", "people"], AccessKind::Reads).with_columns(["id"]);
/// let request = AccessRequest { user: "ada".to_owned(), action: "query", resources: vec![table], ..AccessRequest::default() };
/// assert_eq!(request.resources[0].columns.as_ref().map(|columns| columns.len()), Some(1));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessRequest {
    /// The user's name, `anonymous` without authentication.
    pub user: String,
    /// Whether the user is an administrator.
    pub admin: bool,
    /// All roles of the user, inherited ones included.
    pub roles: BTreeSet<String>,
    /// The client's address, if it is connected over a network.
    pub client: Option<IpAddr>,
    /// The statement's id in `system.queries` and in the audit trail; `None` if it is no statement.
    pub query: Option<QueryId>,
    /// The action, in one word.
    pub action: &'static str,
    /// The resources that are used.
    pub resources: Vec<Resource>,
}

/// A resource that a statement reads or changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// `table` (views too), `schema`, `catalog`, `model` or `file`.
    pub kind: &'static str,
    /// The parts of its name, catalog first. Names outside of catalogs have one part.
    pub name: Vec<String>,
    /// How it is used.
    pub touch: AccessKind,
    /// The columns that are read; `None` if the resource has none.
    pub columns: Option<BTreeSet<String>>,
}

/// How a resource is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessKind {
    Reads,
    /// It is changed, created or dropped.
    Changes,
}

impl Resource {
    pub fn table<S: Into<String>>(name: impl IntoIterator<Item = S>, touch: AccessKind) -> Self {
        Self { kind: "table", name: name.into_iter().map(Into::into).collect(), touch, columns: None }
    }

    /// Adds the columns that are read.
    #[must_use]
    pub fn with_columns<S: Into<String>>(self, columns: impl IntoIterator<Item = S>) -> Self {
        Self { columns: Some(columns.into_iter().map(Into::into).collect()), ..self }
    }
}

/// The source of an error for a missing decision.
#[derive(Debug, thiserror::Error)]
#[error("no decision")]
pub struct NoDecision;

impl NoDecision {
    /// Whether an error is due to a missing decision.
    pub fn is_in(error: &Error) -> bool {
        std::error::Error::source(error).is_some_and(|source| source.is::<Self>())
    }
}

/// A service that allows or denies actions.
#[async_trait]
pub trait PolicyDecisionPoint: Send + Sync + std::fmt::Debug {
    /// Allows or denies an action.
    ///
    /// # Errors
    /// `Denied` for what may not be done; `Unavailable`, of [`NoDecision`], where there is no decision, so that it is not done
    /// either.
    async fn decide(&self, request: &AccessRequest) -> Result<()>;
}
