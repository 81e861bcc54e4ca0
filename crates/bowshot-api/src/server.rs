//! The server as front ends see it.

use crate::{
    Answer, BatchStream, Credentials, Error, Limits, PasswordExchange, Principal, QueryId, Result, Scramble,
    Secret, Session, SessionId,
};
use async_trait::async_trait;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Name and versions, as `GetSqlInfo` and the HTTP front end tell them.
#[derive(Debug, Clone)]
pub struct About {
    /// Product name.
    pub name: String,
    /// Product version.
    pub version: String,
    /// Version of the Arrow format implementation.
    pub arrow_version: String,
    /// The forms in which statements may come.
    pub languages: Languages,
}

/// The forms in which statements may come. By default SQL, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Languages {
    /// Whether SQL text is understood.
    pub sql: bool,
    /// The least and the greatest version of Substrait plans that are understood.
    pub substrait: Option<[String; 2]>,
}

impl Default for Languages {
    fn default() -> Self {
        Self { sql: true, substrait: None }
    }
}

/// Where the server is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifecycle {
    /// Not yet ready for queries.
    Starting,
    /// Takes queries.
    Ready,
    /// Finishes what runs, takes nothing new.
    Draining,
}

/// Counts of what is held right now; all but `sessions`, `table_bytes` and `memory_bytes` are zero on an idle server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerStatus {
    /// Open sessions.
    pub sessions: usize,
    /// Queries that hold a slot.
    pub running_queries: usize,
    /// Queries that wait for a slot.
    pub queued_queries: usize,
    /// Results that are registered, running or waiting to be read.
    pub open_results: usize,
    /// Bytes of result batches in memory buffers.
    pub result_buffer_bytes: u64,
    /// Bytes of result batches on disk.
    pub result_spill_bytes: u64,
    /// Bytes that the engine's memory pool has reserved.
    pub query_memory_bytes: u64,
    /// Open prepared statements.
    pub prepared_statements: usize,
    /// Open transactions.
    pub open_transactions: usize,
    /// Bytes of the rows in tables that are kept in memory.
    pub table_bytes: u64,
    /// Statements that are being planned.
    pub planning: usize,
    /// Statements that are still being planned although nobody waits for them any more.
    pub burning: usize,
    /// Bytes of memory that the process has taken.
    pub memory_bytes: u64,
}

/// Outcome of a cancel request, as Flight's `CancelStatus` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The query is stopped; repeated cancels say so too.
    Cancelled,
    /// The query had ended already and its result had been read.
    NotCancellable,
}

/// How far a query is.
#[derive(Debug)]
pub struct Progress {
    /// The started query.
    pub answer: Answer,
    /// Share of the work done, 0 to 1.
    pub fraction: f64,
    /// Whether the query has run to its end; its result may still be unread.
    pub done: bool,
    /// Why it failed, if it did.
    pub failed: Option<Error>,
}

/// The server below the door. Queries are addressed here and not in the session, since tickets may be redeemed over
/// other connections; the principal must be the one that started the query.
#[async_trait]
pub trait Server: Send + Sync + std::fmt::Debug {
    /// Name and versions.
    fn about(&self) -> &About;

    /// Limits in force.
    fn limits(&self) -> &Limits;

    /// Where the server is in its life.
    fn lifecycle(&self) -> Lifecycle;

    /// What the server holds right now.
    fn status(&self) -> ServerStatus;

    /// Turns credentials into a principal. Takes the same time for unknown users and wrong passwords.
    ///
    /// # Errors
    /// `Unauthenticated`, without saying which part was wrong.
    async fn authenticate(&self, credentials: &Credentials) -> Result<Principal>;

    /// As [`Server::authenticate`], for a caller at an address: whoever guesses there keeps others waiting the least.
    ///
    /// # Errors
    /// As there.
    async fn authenticate_from(&self, credentials: &Credentials, _from: Option<IpAddr>) -> Result<Principal> {
        self.authenticate(credentials).await
    }

    /// Begins an exchange in which a caller at an address proves the password of a user without showing it. `None` where
    /// that is not possible, and the password itself must be asked for: which of both does not tell whether there is such
    /// a user.
    fn prove_password(&self, _user: &str, _from: Option<IpAddr>) -> Option<Box<dyn PasswordExchange>> {
        None
    }

    /// Lets a password that was right just now be told by its scrambles, for a while and as long as it is right.
    fn expect_scrambles(&self, _user: &str, _password: &Secret) {}

    /// Who shows a scramble of such a password. `None` says nothing of the user or of the password: that must be asked for then.
    fn recognise(&self, _user: &str, _scramble: &Scramble, _from: Option<IpAddr>) -> Option<Principal> {
        None
    }

    /// Another number whenever somebody who could log in may not any more, or not with the same password.
    fn users_epoch(&self) -> u64 {
        0
    }

    /// Issues a bearer token for a principal; [`Server::authenticate`] accepts it until it expires.
    fn issue_token(&self, principal: &Principal) -> Secret;

    /// Opens a session.
    ///
    /// # Errors
    /// `LimitReached` with too many sessions, `Unavailable` while draining.
    async fn open_session(&self, principal: &Principal) -> Result<Arc<dyn Session>>;

    /// Finds an open session of the same principal.
    ///
    /// # Errors
    /// `NotFound` for unknown, closed and foreign sessions alike.
    fn find_session(&self, id: SessionId, principal: &Principal) -> Result<Arc<dyn Session>>;

    /// Attaches to one partition of a started query.
    ///
    /// # Errors
    /// `NotFound` for unknown, expired, foreign and (unless spooled) already read results; the query's own error when
    /// it has failed; `Cancelled` after a cancel.
    async fn attach(&self, principal: &Principal, query: QueryId, partition: usize) -> Result<BatchStream>;

    /// Attaches to one partition of a query of any node of the cluster, with the voucher of its [`Location`](crate::Location).
    ///
    /// # Errors
    /// As [`Server::attach`]; `NotFound` too for a voucher that no node of the cluster has made, that is of another principal or
    /// another partition, or out of date; `Unavailable` when the node that had the rows is lost.
    async fn redeem(
        &self,
        _principal: &Principal,
        query: QueryId,
        _partition: usize,
        _voucher: &[u8],
    ) -> Result<BatchStream> {
        Err(Error::not_found(format!("query {query} not found"))
            .with_hint("redeem the ticket at a node of the cluster that issued it"))
    }

    /// Stops a query and frees what it holds. Idempotent.
    ///
    /// # Errors
    /// `NotFound` for unknown and foreign queries.
    async fn cancel(&self, principal: &Principal, query: QueryId) -> Result<CancelOutcome>;

    /// Lets a result live for another result timeout from now; returns the new end.
    ///
    /// # Errors
    /// `NotFound` for unknown, expired and foreign queries.
    fn renew(&self, principal: &Principal, query: QueryId) -> Result<SystemTime>;

    /// How far a query is; waits up to `wait` for something to change since `seen` (a fraction returned earlier).
    ///
    /// # Errors
    /// `NotFound` for unknown, expired and foreign queries; `Cancelled` after a cancel.
    async fn progress(
        &self,
        principal: &Principal,
        query: QueryId,
        seen: Option<f64>,
        wait: Duration,
    ) -> Result<Progress>;
}
