//! The server: its shared state, its implementation of the server API, and the task that closes expired results and
//! sessions.

use crate::access_metrics;
use crate::admission::Admission;
use crate::endpoints::Endpoints;
use crate::login_limiter::{LoginLimiter, Source};
use crate::options::Defaults;
use crate::query_log::QueryLog;
use crate::refresh_views::{load_pipes, refresh_views};
use crate::result::{QueryResult, ServerContext};
use crate::result_registry::ResultRegistry;
use crate::row_locks::RowLocks;
use crate::running_statements::RunningStatements;
use crate::session::ClientSession;
use crate::session_registry::SessionRegistry;
use crate::spill::Accounts;
use crate::suggest_views::suggest_views;
use crate::task::{self, AbortOnDrop};
use crate::tensor_exchange::TensorExchanges;
use async_trait::async_trait;
use bowshot_access::{AccessConfig, Authenticator, PasswordProof};
use bowshot_api::{
    About, BatchStream, CancelOutcome, Credentials, Error, ErrorKind, Languages, Lifecycle, Limits,
    PasswordExchange, Principal, Progress, QueryId, Result, Scramble, Secret, Server, ServerStatus, Session,
    SessionId,
};
use bowshot_engine::Engine;
use bowshot_policy::{ConfiguredUser, UsersSeen};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};
use tokio::runtime::Handle;

/// Interval of the cleanup of results and sessions.
const SWEEP: Duration = Duration::from_millis(500);
/// Poll interval of progress requests.
const PROGRESS_TICK: Duration = Duration::from_millis(50);
/// Poll interval of a drain.
const DRAIN_TICK: Duration = Duration::from_millis(20);
/// Smallest change that answers a waiting progress request.
const PROGRESS_STEP: f64 = 0.01;
/// Version of the Arrow implementation, for clients.
const ARROW_VERSION: &str = "59.3.2";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Drained {
    /// All results were read to their end.
    InTime,
    /// Queries still ran, or results were being read, at the timeout.
    CutOff,
}

/// The server: sessions, admission, results, engine.
#[derive(Debug)]
pub struct Bowshot {
    pub(crate) shared: Arc<Shared>,
    _tasks: [AbortOnDrop; 4],
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) admission: Admission,
    pub(crate) sessions: SessionRegistry,
    pub(crate) live: Arc<RunningStatements>,
    pub(crate) results: ResultRegistry,
    pub(crate) endpoints: Arc<Endpoints>,
    pub(crate) context: ServerContext,
    pub(crate) exchanges: TensorExchanges,
    pub(crate) defaults: Defaults,
    pub(crate) row_locks: Arc<RowLocks>,
    logins: LoginLimiter,
    /// Separate from `logins`, so that a slow directory delays nobody else.
    directory_logins: LoginLimiter,
    authenticator: Arc<Authenticator>,
    users: Mutex<UsersSeen>,
    about: About,
    lifecycle: AtomicU8,
}

impl Bowshot {
    /// A server in state [`Lifecycle::Starting`]. Create it on the socket runtime: timeouts must not wait for
    /// queries. `log` is the log behind `system.queries`.
    pub fn new(
        engine: Engine,
        authenticator: Authenticator,
        limits: Limits,
        log: Arc<QueryLog>,
    ) -> Arc<Self> {
        access_metrics::describe();
        let accounts = Arc::new(Accounts::new(&limits, engine.spill_folder().cloned()));
        let (catalog, schema) = engine.default_names();
        let buffer = limits.result_buffer_bytes;
        let endpoints = Endpoints::new(&accounts, buffer, engine.runtime().handle().clone());
        engine.hand_out_from(Arc::<Endpoints>::clone(&endpoints));
        let shared = Arc::new(Shared {
            admission: Admission::new(&limits),
            sessions: SessionRegistry::default(),
            live: Arc::clone(log.live()),
            results: ResultRegistry::default(),
            endpoints,
            context: ServerContext { accounts, log, limits, timers: Handle::current() },
            exchanges: TensorExchanges::default(),
            defaults: Defaults { catalog, schema, dialect: engine.default_dialect().to_owned() },
            row_locks: Arc::default(),
            logins: LoginLimiter::new(authenticator.password_checks()),
            directory_logins: LoginLimiter::new(authenticator.directory_checks()),
            authenticator: Arc::new(authenticator),
            users: Mutex::default(),
            about: about(),
            lifecycle: AtomicU8::new(STARTING),
            engine,
        });
        let tasks = [
            tokio::spawn(sweep(Arc::downgrade(&shared))),
            tokio::spawn(refresh_views(Arc::downgrade(&shared))),
            tokio::spawn(load_pipes(Arc::downgrade(&shared))),
            tokio::spawn(suggest_views(Arc::downgrade(&shared))),
        ];
        Arc::new(Self { shared, _tasks: tasks.map(|task| AbortOnDrop(task.abort_handle())) })
    }

    /// Replaces the configured users; removed ones are logged out within a second.
    ///
    /// # Errors
    /// When they are not fully understood: those that were there stay then.
    pub fn configure_users(
        &self,
        access: AccessConfig,
        users: BTreeMap<String, ConfiguredUser>,
    ) -> Result<()> {
        self.shared.authenticator.configure(access)?;
        self.shared.engine.set_configured_users(users);
        Ok(())
    }

    /// Accepts queries from now on.
    pub fn set_ready(&self) {
        self.shared.lifecycle.store(READY, Ordering::Release);
    }

    /// Accepts no new queries from now on.
    pub fn stop_taking(&self) {
        self.shared.lifecycle.store(DRAINING, Ordering::Release);
    }

    /// Accepts no new queries, waits until running ones are read or the drain timeout expires, and returns which.
    pub async fn drain(&self) -> Drained {
        self.stop_taking();
        let deadline = Instant::now() + self.shared.context.limits.drain_timeout;
        while self.shared.is_busy() && Instant::now() < deadline {
            tokio::time::sleep(DRAIN_TICK).await;
        }
        let drained = if self.shared.is_busy() { Drained::CutOff } else { Drained::InTime };
        self.shared.results.cancel_all();
        self.shared.endpoints.fail_all();
        drained
    }
}

const STARTING: u8 = 0;
const READY: u8 = 1;
const DRAINING: u8 = 2;

fn about() -> About {
    About {
        name: "Bowshot".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        arrow_version: ARROW_VERSION.to_owned(),
        languages: Languages::default(),
    }
}

impl Shared {
    /// Whether a client waits for a slot, an answer or rows. A query with a full buffer and no reader does not count.
    fn is_busy(&self) -> bool {
        let results = self.results.demand();
        self.admission.waiting() > 0
            || results.wanted
            || self.endpoints.open_now() > 0
            || self.admission.running() > results.running_unwanted
    }

    pub(crate) fn lifecycle(&self) -> Lifecycle {
        match self.lifecycle.load(Ordering::Acquire) {
            STARTING => Lifecycle::Starting,
            READY => Lifecycle::Ready,
            _ => Lifecycle::Draining,
        }
    }

    /// Applies changes of users in the catalog.
    fn renew_users(&self) {
        let mut seen = self.users.lock();
        if let Some(users) = self.engine.users(&mut seen) {
            self.authenticator.renew(users.passwords, users.tokens);
        }
    }

    async fn authenticated(&self, credentials: &Credentials, from: Option<IpAddr>) -> Result<Principal> {
        let authenticator = &self.authenticator;
        if let Some((user, token)) = authenticator.token_in(credentials) {
            let principal = authenticator.verify_token(user, token).await?;
            return match &principal.claims {
                _ if self.engine.knows(&principal) => Ok(principal),
                None => Err(bowshot_access::refused()),
                Some(_) => Err(local_user_error(&principal.name)),
            };
        }
        if let Some(shown) = authenticator.left_to_directories(credentials) {
            return self.authenticate_by_directory(shown, from).await;
        }
        let user = match credentials {
            Credentials::Password { user, .. } if authenticator.is_costly(credentials) => user,
            // Cheap: no queue.
            Credentials::Certificate { .. } => {
                return self.check_certificate_user(authenticator.verify(credentials)?);
            }
            _ => return authenticator.verify(credentials),
        };
        let source = Source::new(from, user);
        let permit = self.logins.enter(&source).await?;
        let (authenticator, credentials) = (Arc::clone(authenticator), credentials.clone());
        // Password hashes are slow, so they run off the socket runtime. A check that has begun continues when its
        // caller leaves, and holds its permit.
        let handle = self.engine.runtime().handle();
        let check = handle.spawn_blocking(move || {
            let _permit = permit;
            authenticator.verify(&credentials)
        });
        let verified = check.await.unwrap_or_else(|error| Err(task::broken(error)));
        self.logins.answer(&source, verified).await
    }

    /// Checks a password against the directories.
    async fn authenticate_by_directory(
        &self,
        (user, password): (&str, &Secret),
        from: Option<IpAddr>,
    ) -> Result<Principal> {
        let nobody_else = |principal: Principal| match self.engine.knows(&principal) {
            true => Ok(principal),
            false => Err(local_user_error(&principal.name)),
        };
        if let Some(principal) = self.authenticator.remembers(user, password) {
            return nobody_else(principal);
        }
        let source = Source::new(from, user);
        let permit = self.directory_logins.enter(&source).await?;
        let asked = self.authenticator.ask_directories(user, password).await;
        drop(permit);
        self.directory_logins.answer(&source, asked.and_then(nobody_else)).await
    }

    /// Requires a local user for a certificate: an authority does not create users.
    fn check_certificate_user(&self, principal: Principal) -> Result<Principal> {
        if !principal.authenticated || self.engine.has_user(&principal.name) {
            return Ok(principal);
        }
        let message = format!("the client certificate is refused: no user is called `{}`", principal.name);
        Err(Error::new(ErrorKind::Unauthenticated, message)
            .with_hint("an admin makes one with CREATE USER, or in the file of users"))
    }

    pub(crate) fn read(self: &Arc<Self>, query: &Arc<QueryResult>, partition: usize) -> Result<BatchStream> {
        let (shared, reading) = (Arc::downgrade(self), Arc::downgrade(query));
        query.attach(partition, move || {
            if let (Some(shared), Some(query)) = (shared.upgrade(), reading.upgrade()) {
                shared.results.reader_gone(&query);
            }
        })
    }
}

/// Closes expired results and sessions until the server is dropped.
async fn sweep(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let Some(shared) = shared.upgrade() else { return };
        shared.results.end_expired(Instant::now());
        shared.endpoints.forget(Instant::now());
        shared
            .sessions
            .each(|session| session.transactions().end_idle(shared.context.limits.transaction_timeout));
        for session in shared.sessions.idle(shared.context.limits.session_timeout) {
            session.close().await;
        }
        shared.renew_users();
        let now = SystemTime::now();
        for session in shared.sessions.expired(now) {
            session.close().await;
        }
        let knows = |principal: &Principal| {
            shared.engine.knows(principal) && shared.authenticator.still_knows(principal)
        };
        for session in shared.sessions.of_unknown_users(knows) {
            session.close().await;
        }
    }
}

fn local_user_error(name: &str) -> Error {
    Error::new(
        ErrorKind::Unauthenticated,
        format!("the login is refused: `{name}` is the name of a user of this server"),
    )
    .with_hint(
        "the operator sets `user_prefix` or `local_users` for the issuer of the token, or for the directory",
    )
}

/// A SCRAM login. It is cheap, so it needs no permit; only failures are delayed.
#[derive(Debug)]
struct ScramExchange {
    proof: PasswordProof,
    source: Source,
    from: Option<IpAddr>,
    shared: Arc<Shared>,
}

#[async_trait]
impl PasswordExchange for ScramExchange {
    bowshot_api::delegate! { proof: fn challenge(&mut self, first: &[u8]) -> Result<String>; }

    async fn finish(&mut self, last: &[u8]) -> Result<(Principal, String)> {
        let mut finished = self.proof.finish(last).map(|(who, proof)| (who.at(self.from), proof));
        // The user may have been dropped in between.
        self.shared.renew_users();
        if finished.is_ok() && !self.shared.authenticator.still_holds(&self.proof) {
            finished = Err(bowshot_access::refused());
        }
        let found = finished.as_ref().map(|(principal, _)| principal);
        access_metrics::login("scram", found);
        self.shared.logins.count(&self.source);
        self.shared.logins.answer(&self.source, finished).await
    }
}

#[async_trait]
impl Server for Bowshot {
    fn about(&self) -> &About {
        &self.shared.about
    }

    fn limits(&self) -> &Limits {
        &self.shared.context.limits
    }

    bowshot_api::delegate! { shared: fn lifecycle(&self) -> Lifecycle; }

    fn status(&self) -> ServerStatus {
        let (sessions, prepared_statements, open_transactions) = self.shared.sessions.counts();
        ServerStatus {
            sessions,
            prepared_statements,
            open_transactions,
            table_bytes: self.shared.engine.table_bytes(),
            planning: self.shared.engine.planning().busy(),
            burning: self.shared.engine.planning().orphaned(),
            memory_bytes: self.shared.engine.memory_taken(),
            running_queries: self.shared.admission.running(),
            queued_queries: self.shared.admission.waiting(),
            open_results: self.shared.results.open() + self.shared.endpoints.open_now(),
            result_buffer_bytes: self.shared.context.accounts.memory.load(Ordering::Relaxed),
            result_spill_bytes: self.shared.context.accounts.disk.load(Ordering::Relaxed),
            query_memory_bytes: self.shared.engine.memory_reserved() as u64,
        }
    }

    async fn authenticate(&self, credentials: &Credentials) -> Result<Principal> {
        self.authenticate_from(credentials, None).await
    }

    fn users_epoch(&self) -> u64 {
        self.shared.renew_users();
        self.shared.authenticator.epoch()
    }

    async fn authenticate_from(&self, credentials: &Credentials, from: Option<IpAddr>) -> Result<Principal> {
        self.shared.renew_users();
        let is_token = self.shared.authenticator.token_in(credentials).is_some();
        let attempt = access_metrics::Attempt::new(credentials, is_token);
        let found = self.shared.authenticated(credentials, from).await;
        attempt.answer(&found);
        Ok(found?.at(from))
    }

    fn prove_password(&self, user: &str, from: Option<IpAddr>) -> Option<Box<dyn PasswordExchange>> {
        self.shared.renew_users();
        let proof = self.shared.authenticator.proof(user)?;
        let source = Source::new(from, user);
        Some(Box::new(ScramExchange { proof, source, from, shared: Arc::clone(&self.shared) }))
    }

    fn expect_scrambles(&self, user: &str, password: &Secret) {
        self.shared.authenticator.expect_scrambles(user, password);
    }

    fn recognise(&self, user: &str, scramble: &Scramble, from: Option<IpAddr>) -> Option<Principal> {
        self.shared.renew_users();
        let is_right = self.shared.authenticator.made(user, scramble)?;
        let taken = self.shared.logins.take_at_once(&Source::new(from, user), is_right);
        let principal = taken.then(|| Principal::user(user).at(from))?;
        // Others are asked for the password, which counts then.
        access_metrics::login("scramble", Ok(&principal));
        Some(principal)
    }

    fn issue_token(&self, principal: &Principal) -> Secret {
        self.shared.authenticator.issue_token(principal)
    }

    async fn open_session(&self, principal: &Principal) -> Result<Arc<dyn Session>> {
        if self.lifecycle() == Lifecycle::Draining {
            return Err(Error::new(
                ErrorKind::Unavailable,
                "the server is draining and opens no new sessions",
            )
            .with_hint("connect to another server, or try again after its restart"));
        }
        // The session owns its token.
        let principal = principal.clone().with_bearer(principal.passed_token());
        let engine = self.shared.engine.open_session(&principal)?;
        let session = ClientSession::new(principal, engine, Arc::clone(&self.shared));
        self.shared.sessions.insert(Arc::clone(&session), self.shared.context.limits.max_sessions)?;
        Ok(session)
    }

    fn find_session(&self, id: SessionId, principal: &Principal) -> Result<Arc<dyn Session>> {
        Ok(self.shared.sessions.find(id, principal)?)
    }

    async fn attach(&self, principal: &Principal, query: QueryId, partition: usize) -> Result<BatchStream> {
        let query = self.shared.results.find(principal, query)?;
        query.check_rights().await?;
        self.shared.read(&query, partition)
    }

    async fn redeem(
        &self,
        principal: &Principal,
        query: QueryId,
        partition: usize,
        voucher: &[u8],
    ) -> Result<BatchStream> {
        self.shared.engine.redeem(principal, (query, partition), voucher).await
    }

    async fn cancel(&self, principal: &Principal, query: QueryId) -> Result<CancelOutcome> {
        match self.shared.live.find(principal, query).filter(|statement| statement.result().is_none()) {
            // It has no result yet.
            Some(statement) => {
                statement.cancel();
                Ok(CancelOutcome::Cancelled)
            }
            None => self.shared.results.cancel(principal, query).await,
        }
    }

    fn renew(&self, principal: &Principal, query: QueryId) -> Result<SystemTime> {
        Ok(self.shared.results.find(principal, query)?.touch())
    }

    async fn progress(
        &self,
        principal: &Principal,
        query: QueryId,
        seen: Option<f64>,
        wait: Duration,
    ) -> Result<Progress> {
        let query = self.shared.results.find(principal, query)?;
        query.touch();
        let deadline = Instant::now() + wait;
        loop {
            let (fraction, done, failed) = (query.fraction(), query.has_ended(), query.failure());
            if let Some(error) = failed.as_ref().filter(|error| error.kind() == ErrorKind::Cancelled) {
                return Err(error.duplicate());
            }
            let moved = seen.is_none_or(|seen| (fraction - seen).abs() >= PROGRESS_STEP);
            if done || failed.is_some() || moved || Instant::now() >= deadline {
                return Ok(Progress { answer: query.counted_answer(), fraction, done, failed });
            }
            tokio::time::sleep(PROGRESS_TICK).await;
        }
    }
}
