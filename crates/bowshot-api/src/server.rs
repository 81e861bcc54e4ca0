//! The [`Server`] trait: authentication, sessions, and access to running queries.

use crate::{
    Answer, BatchStream, Credentials, Error, Limits, PasswordExchange, Principal, QueryId, Result, Scramble,
    Secret, Session, SessionId,
};
use async_trait::async_trait;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Product name and versions, for `GetSqlInfo` and the HTTP front end.
#[derive(Debug, Clone)]
pub struct About {
    /// Product name.
    pub name: String,
    /// Product version.
    pub version: String,
    /// Version of the Arrow format implementation.
    pub arrow_version: String,
    /// The languages of statements.
    pub languages: Languages,
}

/// The languages of statements; SQL by default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Languages {
    /// Whether SQL is supported.
    pub sql: bool,
    /// The supported range of Substrait versions.
    pub substrait: Option<[String; 2]>,
}

impl Default for Languages {
    fn default() -> Self {
        Self { sql: true, substrait: None }
    }
}

/// The server's life cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifecycle {
    /// Not yet ready for queries.
    Starting,
    /// Accepts queries.
    Ready,
    /// Finishes running queries, accepts no new ones.
    Draining,
}

/// Current resource use; all counts but `sessions`, `table_bytes` and `memory_bytes` are zero on an idle server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerStatus {
    pub sessions: usize,
    /// Queries that hold a slot.
    pub running_queries: usize,
    /// Queued queries.
    pub queued_queries: usize,
    /// Registered results, running or unread.
    pub open_results: usize,
    /// Bytes of result batches in memory buffers.
    pub result_buffer_bytes: u64,
    /// Bytes of result batches on disk.
    pub result_spill_bytes: u64,
    /// Bytes reserved in the engine's memory pool.
    pub query_memory_bytes: u64,
    pub prepared_statements: usize,
    pub open_transactions: usize,
    /// Bytes of in-memory tables.
    pub table_bytes: u64,
    /// Statements that are being planned.
    pub planning: usize,
    /// Orphaned plannings: statements that are still being planned after their client left.
    pub burning: usize,
    /// Memory of the process, in bytes.
    pub memory_bytes: u64,
}

/// Outcome of a cancel request (Flight's `CancelStatus`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The query is stopped; repeated cancels return the same.
    Cancelled,
    /// The query had ended already and its result had been read.
    NotCancellable,
}

/// The progress of a query.
#[derive(Debug)]
pub struct Progress {
    /// The started query.
    pub answer: Answer,
    /// Share of the work done, 0 to 1.
    pub fraction: f64,
    /// Whether the query has ended; its result may be unread.
    pub done: bool,
    /// Its failure, if any.
    pub failed: Option<Error>,
}

/// The server. Queries are addressed here and not in the session, since tickets may be redeemed over other
/// connections; the principal must be that of the query.
#[async_trait]
pub trait Server: Send + Sync + std::fmt::Debug {
    /// Name and versions.
    fn about(&self) -> &About;

    /// The limits.
    fn limits(&self) -> &Limits;

    /// The life cycle state.
    fn lifecycle(&self) -> Lifecycle;

    /// Current resource use.
    fn status(&self) -> ServerStatus;

    /// Turns credentials into a principal. Takes the same time for unknown users and wrong passwords.
    ///
    /// # Errors
    /// `Unauthenticated`, without saying which part was wrong.
    async fn authenticate(&self, credentials: &Credentials) -> Result<Principal>;

    /// As [`Server::authenticate`], for a caller at an address: failed attempts are delayed per network.
    ///
    /// # Errors
    /// As there.
    async fn authenticate_from(&self, credentials: &Credentials, _from: Option<IpAddr>) -> Result<Principal> {
        self.authenticate(credentials).await
    }

    /// Begins a login that proves the password of a user without sending it. `None` if only the password itself can
    /// be checked; this does not reveal whether the user exists.
    fn prove_password(&self, _user: &str, _from: Option<IpAddr>) -> Option<Box<dyn PasswordExchange>> {
        None
    }

    /// Allows a verified password to be checked by its scrambles from now on, for a limited time and while it stays
    /// valid.
    fn expect_scrambles(&self, _user: &str, _password: &Secret) {}

    /// The principal of a valid scramble. `None` if it cannot be checked: ask for the password.
    fn recognise(&self, _user: &str, _scramble: &Scramble, _from: Option<IpAddr>) -> Option<Principal> {
        None
    }

    /// A number that changes whenever a user is removed or gets another password.
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

    /// Attaches to one partition of a query of any cluster node, with the signed ticket of its
    /// [`Location`](crate::Location).
    ///
    /// # Errors
    /// As [`Server::attach`]; `NotFound` also for a ticket that no node of the cluster has signed, of another principal or
    /// partition, or expired; `Unavailable` when the node with the rows is lost.
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

    /// The progress of a query; waits up to `wait` for a change since `seen`, a fraction returned earlier.
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
