//! Decisions that somebody else makes: whether a statement may run, beside the rules of the server itself.

use crate::{Error, QueryId, Result};
use async_trait::async_trait;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// What somebody is about to do.
///
/// ```
/// use bowshot_api::{Intent, Thing, Touch};
/// let thing = Thing::table(["bowshot", "main", "people"], Touch::Reads).with_columns(["id"]);
/// let intent = Intent { user: "ada".to_owned(), action: "query", things: vec![thing], ..Intent::default() };
/// assert_eq!(intent.things[0].columns.as_ref().map(|columns| columns.len()), Some(1));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Intent {
    /// The user's name, `anonymous` where nobody had to say it.
    pub user: String,
    /// Whether the user may do everything, as far as the server is concerned.
    pub admin: bool,
    /// All roles of the user, with those of their roles.
    pub roles: BTreeSet<String>,
    /// Where the session was opened from, if that is a place in a network.
    pub client: Option<IpAddr>,
    /// The statement, as `system.queries` and the audit trail call it; `None` for what is no statement.
    pub query: Option<QueryId>,
    /// What is done, in one word.
    pub action: &'static str,
    /// What it is done with.
    pub things: Vec<Thing>,
}

/// Something that a statement reads or changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thing {
    /// `table` (views too), `schema`, `catalog`, `model` or `file`.
    pub kind: &'static str,
    /// The parts of its name, from the outermost one. What has no place in a catalog has one part.
    pub name: Vec<String>,
    /// What happens to it.
    pub touch: Touch,
    /// The columns that are read; `None` where there are none to tell.
    pub columns: Option<BTreeSet<String>>,
}

/// What happens to something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Touch {
    /// It is read.
    Reads,
    /// It is changed, made or dropped.
    Changes,
}

impl Thing {
    /// A table of this name.
    pub fn table<S: Into<String>>(name: impl IntoIterator<Item = S>, touch: Touch) -> Self {
        Self { kind: "table", name: name.into_iter().map(Into::into).collect(), touch, columns: None }
    }

    /// The same with the columns that are read.
    #[must_use]
    pub fn with_columns<S: Into<String>>(self, columns: impl IntoIterator<Item = S>) -> Self {
        Self { columns: Some(columns.into_iter().map(Into::into).collect()), ..self }
    }
}

/// There is no decision: the source of an error that says so.
#[derive(Debug, thiserror::Error)]
#[error("no decision")]
pub struct Undecided;

impl Undecided {
    /// Whether an error says that there was no decision.
    pub fn is_in(error: &Error) -> bool {
        std::error::Error::source(error).is_some_and(|source| source.is::<Self>())
    }
}

/// Who decides.
#[async_trait]
pub trait Decider: Send + Sync + std::fmt::Debug {
    /// Whether somebody may do it.
    ///
    /// # Errors
    /// `Denied` for what may not be done; `Unavailable`, of [`Undecided`], where there is no decision, so that it is not done
    /// either.
    async fn decide(&self, intent: &Intent) -> Result<()>;
}
