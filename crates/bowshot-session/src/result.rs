//! One started query: its partitions, the tasks that fill them, and how it ends.

mod lifetime;
mod producer;
mod remote;

use crate::admission::Slot;
use crate::partition::{Partition, Policy, Reader};
use crate::query_log::{Outcome, QueryLog, QueryRecord, decision};
use crate::running_statements::{RunningStatement, State, StatementFacts};
use crate::spill::Accounts;
use crate::task::AbortOnDrop;
use bowshot_api::{
    Answer, BatchStream, Delivery, Error, ErrorKind, Layout, Limits, Principal, QueryId, Reason, Result,
    SessionId, TRACES,
};
use bowshot_engine::endpoints::ResultEndpoints;
use bowshot_engine::{Execution, KeptRights, ProgressMeter};
use bowshot_query_task::{QueryRuntime, QueryTask, Stop};
use futures::future::select_all;
use futures::{FutureExt, StreamExt};
use lifetime::WaitGuard;
use parking_lot::Mutex;
use producer::{guarded, move_batches};
use remote::{RemoteResult, follow};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};
use tracing::Span;

/// How long a client may take to fetch a result that it started.
const FETCH_GRACE: Duration = Duration::from_secs(5);

/// The parameters of a started query.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) id: QueryId,
    pub(crate) statement: Arc<RunningStatement>,
    pub(crate) principal: Principal,
    pub(crate) session: SessionId,
    pub(crate) sql: String,
    pub(crate) execution: Execution,
    /// The endpoints, if other nodes hand out the rows.
    pub(crate) remote: Option<Arc<dyn ResultEndpoints>>,
    pub(crate) layout: Layout,
    pub(crate) endpoints: usize,
    pub(crate) delivery: Delivery,
    /// The access rights to spooled rows, which may be revoked.
    pub(crate) rights: Option<KeptRights>,
    pub(crate) timeout: Duration,
    pub(crate) slot: Arc<Slot>,
    pub(crate) started: Instant,
}

/// State of the server that results need.
#[derive(Debug, Clone)]
pub(crate) struct ServerContext {
    pub(crate) accounts: Arc<Accounts>,
    pub(crate) log: Arc<QueryLog>,
    pub(crate) limits: Limits,
    /// The socket runtime: queries must not delay deadlines.
    pub(crate) timers: tokio::runtime::Handle,
}

/// A query from its start until its result is dropped.
#[derive(Debug)]
pub(crate) struct QueryResult {
    pub(crate) id: QueryId,
    pub(crate) principal: Principal,
    pub(crate) session: SessionId,
    sql: String,
    answer: Answer,
    delivery: Delivery,
    rights: Option<KeptRights>,
    partitions: Vec<Arc<Partition>>,
    remote: Option<RemoteResult>,
    meter: ProgressMeter,
    tasks: Mutex<Vec<AbortOnDrop>>,
    slot: Mutex<Option<Arc<Slot>>>,
    /// `None` after its end.
    statement: Mutex<Option<Arc<RunningStatement>>>,
    /// The span of the stream of rows, for traces; ends with it.
    stream: Mutex<Option<Span>>,
    active: AtomicUsize,
    started: Instant,
    started_at: SystemTime,
    expires: Mutex<Instant>,
    failure: Mutex<Option<Error>>,
    recorded: AtomicBool,
    /// A reader left before the end.
    cut_short: AtomicBool,
    waited_for: AtomicBool,
    delays_drain: AtomicBool,
    context: ServerContext,
    runtime: tokio::runtime::Handle,
}

impl QueryResult {
    /// Starts the tasks that fill the partitions.
    pub(crate) fn launch(launch: Launch, context: &ServerContext, runtime: &QueryRuntime) -> Arc<Self> {
        let Execution { schema, streams, ordered, rows, progress, opening: _ } = launch.execution;
        let remote = launch.remote.map(RemoteResult::new);
        let locations = remote.as_ref().map(|remote| remote.locations.clone()).unwrap_or_default();
        let count = if ordered { 1 } else { launch.endpoints.clamp(1, streams.len().max(1)) };
        let policy = Policy {
            delivery: launch.delivery,
            has_siblings: count > 1,
            budget_bytes: context.limits.result_buffer_bytes,
        };
        let partitions: Vec<Arc<Partition>> = (0..count)
            .map(|index| {
                let producers = streams.len().saturating_sub(index).div_ceil(count);
                let accounts = Arc::clone(&context.accounts);
                let partition = Partition::new(Arc::clone(&schema), policy, producers, accounts);
                Arc::new(partition.of(streams.iter().skip(index).step_by(count)))
            })
            .collect();
        let expires = context.limits.result_timeout;
        let answer = Answer {
            query: launch.id,
            schema,
            layout: launch.layout,
            partitions: if remote.is_some() { locations.len() } else { count },
            ordered,
            rows,
            locations,
            batches: None,
            expires: (launch.delivery == Delivery::Spool).then(|| SystemTime::now() + expires),
        };
        let (streams_count, whole) = (streams.len() as i64, &launch.statement.span);
        let stream =
            tracing::info_span!(target: TRACES, parent: whole, "stream", bowshot.partitions = streams_count);
        let query = Arc::new(Self {
            id: launch.id,
            principal: launch.principal,
            session: launch.session,
            sql: launch.sql,
            answer,
            delivery: launch.delivery,
            rights: launch.rights,
            partitions,
            remote,
            meter: progress,
            tasks: Mutex::new(Vec::new()),
            slot: Mutex::new(Some(launch.slot)),
            statement: Mutex::new(Some(launch.statement)),
            stream: Mutex::new(Some(stream)),
            active: AtomicUsize::new(streams.len()),
            started: launch.started,
            started_at: SystemTime::now(),
            expires: Mutex::new(Instant::now() + expires),
            failure: Mutex::new(None),
            recorded: AtomicBool::new(false),
            cut_short: AtomicBool::new(false),
            waited_for: AtomicBool::new(false),
            delays_drain: AtomicBool::new(true),
            context: context.clone(),
            runtime: runtime.handle().clone(),
        });
        query.spawn(streams, launch.timeout, runtime);
        query
    }

    fn spawn(self: &Arc<Self>, streams: Vec<BatchStream>, timeout: Duration, runtime: &QueryRuntime) {
        let mut tasks = Vec::with_capacity(streams.len() + 1);
        let job = self.statement().map(|statement| Arc::clone(&statement.job));
        if streams.is_empty() {
            self.settle();
        }
        let is_alone = streams.len() == 1 && self.remote.is_none() && self.delivery == Delivery::Stream;
        for (index, stream) in streams.into_iter().enumerate() {
            let partition = Arc::clone(&self.partitions[index % self.partitions.len()]);
            let query = || Arc::downgrade(self);
            let moving = match &self.remote {
                Some(_) => follow(query(), partition, stream).boxed(),
                None => move_batches(query(), partition, stream).boxed(),
            };
            let mut work = guarded(query(), moving).boxed();
            // A task would cost more than a few rows that are there at once.
            if is_alone
                && job.is_some()
                && QueryTask::current().is_some()
                && (&mut work).now_or_never().is_some()
            {
                continue;
            }
            let task = match &job {
                Some(job) => runtime.spawn(job.inside(work)),
                None => runtime.spawn(work),
            };
            tasks.push(AbortOnDrop(task.abort_handle()));
        }
        if !timeout.is_zero() && !self.has_ended() {
            let (query, left) = (Arc::downgrade(self), timeout.saturating_sub(self.started.elapsed()));
            let watch = async move {
                tokio::time::sleep(left).await;
                if let Some(query) = query.upgrade() {
                    query.fail(out_of_time(timeout));
                }
            };
            tasks.push(AbortOnDrop(self.context.timers.spawn(watch).abort_handle()));
        }
        let mut owned = self.tasks.lock();
        // Finished work needs no handle; a failed query must not hold the others.
        if self.failure().is_none() {
            *owned = tasks;
        }
    }

    /// Waits until there is something to read, or the query has ended.
    ///
    /// # Errors
    /// What the query failed with.
    pub(crate) async fn ready(&self) -> Result<()> {
        if self.remote.is_some() {
            return self.failure().map_or(Ok(()), Err);
        }
        // The caller waits: its result must not expire.
        self.waited_for.store(true, Ordering::Release);
        let _waiting = WaitGuard(self);
        let waits = self.partitions.iter().map(|partition| Box::pin(partition.ready()));
        select_all(waits).await.0
    }

    /// The answer, with the number of rows if known by now: for progress.
    pub(crate) fn counted_answer(&self) -> Answer {
        let mut answer = self.answer();
        if answer.rows.is_none() && self.has_ended() && self.failure().is_none() {
            answer.rows = Some(self.totals().0);
        }
        answer
    }

    /// The answer. Never with a later row count: equal statements get equal answers.
    pub(crate) fn answer(&self) -> Answer {
        let mut answer = self.answer.clone();
        if answer.expires.is_some() {
            let left = self.expires().saturating_duration_since(Instant::now());
            answer.expires = Some(SystemTime::now() + left);
        }
        answer
    }

    /// Checks that the principal may still read the rows.
    ///
    /// # Errors
    /// `Denied` when they may not be any more; `Unavailable` when there is no decision.
    pub(crate) async fn check_rights(&self) -> Result<()> {
        match &self.rights {
            Some(rights) => rights.check().await,
            None => Ok(()),
        }
    }

    /// Attaches a reader to a partition; `gone` is called when it detaches.
    ///
    /// # Errors
    /// `NotFound` for a partition that is not there or has been read.
    pub(crate) fn attach(
        self: &Arc<Self>,
        index: usize,
        gone: impl FnOnce() + Send + 'static,
    ) -> Result<BatchStream> {
        // Remote rows are read with signed tickets.
        let own: &[Arc<Partition>] = if self.remote.is_some() { &[] } else { self.partitions.as_slice() };
        let Some(partition) = own.get(index) else {
            return Err(Error::not_found(format!("partition {index} of query {} not found", self.id))
                .with_reason(Reason::UndefinedQuery));
        };
        if !partition.claim() {
            return Err(Error::not_found(format!(
                "the result of query {} is not found: it has been read",
                self.id
            ))
            .with_reason(Reason::UndefinedQuery)
            .with_hint("run the query again, or set the session option `retryable_results`"));
        }
        self.touch();
        let guard = ReaderGuard {
            query: Arc::clone(self),
            partition: Arc::clone(partition),
            saw_end: false,
            gone: Some(Box::new(gone)),
        };
        let reader = Reader::new(self.runtime.clone());
        let batches = futures::stream::unfold(Some((reader, guard)), |state| async move {
            let (mut reader, mut guard) = state?;
            match reader.next(&guard.partition).await {
                Ok(Some(batch)) => Some((Ok(batch), Some((reader, guard)))),
                Ok(None) => {
                    guard.saw_end = true;
                    None
                }
                Err(error) => {
                    // The storage of its rows may have changed after the query ended.
                    guard.query.fail(error.duplicate());
                    Some((Err(error), None))
                }
            }
        });
        Ok(BatchStream::new(Arc::clone(&self.answer.schema), batches.boxed()))
    }

    /// Fails the query, stops its work and notifies all readers.
    pub(crate) fn fail(&self, error: Error) {
        {
            let mut failure = self.failure.lock();
            if failure.is_some() || self.recorded.load(Ordering::Acquire) && self.is_read() {
                return;
            }
            *failure = Some(error.duplicate());
        }
        // After a conflict the statement may be retried.
        if let Some(statement) = self.statement().filter(|_| error.kind() != ErrorKind::Conflict) {
            statement.job.stop(Stop::Over);
        }
        if let Some(remote) = &self.remote {
            remote.fail(&self.runtime, error.duplicate());
        }
        self.tasks.lock().clear();
        for partition in &self.partitions {
            partition.fail(error.duplicate());
        }
        self.record(Outcome::from_error(&error), Some(error));
    }

    fn statement(&self) -> Option<Arc<RunningStatement>> {
        self.statement.lock().as_ref().map(Arc::clone)
    }

    /// A producer waits for a reader or has ended: if all do, the slot is lent to others.
    fn one_less_active(&self) {
        if self.active.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.with_slot(Slot::pause, State::WaitsForReader);
        }
    }

    fn one_more_active(&self) {
        if self.active.fetch_add(1, Ordering::AcqRel) == 0 {
            self.with_slot(Slot::resume, State::Running);
        }
    }

    fn with_slot(&self, act: impl FnOnce(&Slot), state: State) {
        if let Some(slot) = self.slot.lock().as_ref() {
            act(slot);
        }
        if let Some(statement) = self.statement() {
            statement.set_state(state);
        }
    }

    pub(crate) fn cancel(&self) {
        self.fail(Error::new(ErrorKind::Cancelled, "the query was cancelled"));
    }

    /// Called when a producer ends: records the query once all have.
    fn settle(&self) {
        if self.has_ended() && self.failure().is_none() {
            let cut_short = self.cut_short.load(Ordering::Acquire);
            self.record(if cut_short { Outcome::Cancelled } else { Outcome::Finished }, None);
        }
    }

    fn record(&self, outcome: Outcome, error: Option<Error>) {
        if self.recorded.swap(true, Ordering::AcqRel) {
            return;
        }
        drop(self.slot.lock().take());
        drop(self.stream.lock().take());
        let mut facts = StatementFacts::default();
        let (rows, bytes) = self.totals();
        if let Some(statement) = self.statement.lock().take() {
            // The log record is written here.
            statement.mark_logged();
            facts = statement.facts();
            statement.record_end(outcome.name(), (rows, bytes), error.as_ref());
        }
        self.context.log.add(QueryRecord {
            id: self.id,
            session: self.session,
            user: self.principal.name.clone(),
            sql: self.sql.clone(),
            outcome,
            started: self.started_at,
            duration: self.started.elapsed(),
            rows,
            bytes,
            decision: decision(error.as_ref()),
            error: error.map(|error| error.to_string()),
            facts,
        });
    }

    pub(crate) fn failure(&self) -> Option<Error> {
        self.failure.lock().as_ref().map(Error::duplicate)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.partitions.iter().all(|partition| partition.has_ended())
    }

    /// Whether all partitions of a streamed result were read.
    pub(crate) fn is_read(&self) -> bool {
        if self.remote.is_some() {
            return self.has_ended();
        }
        self.delivery == Delivery::Stream
            && self.partitions.iter().all(|partition| partition.is_claimed() && !partition.has_readers())
    }

    /// Whether the result outlives its session: other connections may hold tickets for it.
    pub(crate) fn outlives_session(&self) -> bool {
        self.answer.partitions > 1
            || self.delivery == Delivery::Spool
            || self.partitions.iter().any(|partition| partition.has_readers())
    }

    /// Rows and bytes so far.
    pub(crate) fn totals(&self) -> (u64, u64) {
        if let Some(remote) = &self.remote {
            return remote.totals();
        }
        self.partitions.iter().map(|partition| partition.totals()).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    }

    /// The progress, 0 to 1.
    pub(crate) fn fraction(&self) -> f64 {
        if self.has_ended() { 1.0 } else { self.meter.fraction().min(0.999) }
    }

    /// Whether the result is being read, waited for, or was started just now. Clients that do not fetch soon do not
    /// delay a drain.
    pub(crate) fn is_wanted(&self) -> bool {
        if self.failure().is_some() || !self.delays_drain.load(Ordering::Acquire) {
            return false;
        }
        self.waited_for.load(Ordering::Acquire)
            || self.partitions.iter().any(|partition| partition.has_readers())
            || self.is_fresh()
            || (self.delivery == Delivery::Spool || self.remote.is_some()) && !self.has_ended()
    }

    /// Whether a remote result has ended: nobody will read it here.
    pub(crate) fn has_ended_remotely(&self) -> bool {
        self.remote.is_some() && self.has_ended()
    }

    pub(crate) fn holds_slot(&self) -> bool {
        self.slot.lock().is_some()
    }
}

pub(crate) fn out_of_time(timeout: Duration) -> Error {
    Error::new(ErrorKind::Timeout, format!("the statement ran longer than {} ms", timeout.as_millis()))
        .with_hint("raise the session option `statement_timeout_ms` or the limit `limits.statement_timeout`")
}

struct ReaderGuard {
    query: Arc<QueryResult>,
    partition: Arc<Partition>,
    saw_end: bool,
    gone: Option<Box<dyn FnOnce() + Send>>,
}

impl Drop for ReaderGuard {
    fn drop(&mut self) {
        if !self.saw_end && self.query.delivery == Delivery::Stream {
            self.query.cut_short.store(true, Ordering::Release);
        }
        self.partition.release_reader();
        self.query.touch();
        self.query.settle();
        if self.query.is_read() {
            // All partitions were read: stop the remaining work.
            if let Some(statement) = self.query.statement() {
                statement.job.stop(Stop::Over);
            }
            self.query.tasks.lock().clear();
        }
        if let Some(gone) = self.gone.take() {
            gone();
        }
    }
}
