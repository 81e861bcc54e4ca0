//! The road of a statement: admit → plan → authorise → run → account. One function, [`attempt`], which [`start`] calls; the
//! rest of the file is what it calls, in the order in which it calls it.

use crate::admission::Slot;
use crate::cursors;
use crate::exchange;
use crate::live::{self, State};
use crate::options::Options;
use crate::result::{Launch, QueryResult};
use crate::results::Ended;
use crate::session::ClientSession;
use crate::statements;
use crate::task;
use crate::write::{self, Begun};
use arrow::array::{ArrayRef, StringArray};
use arrow::datatypes::Schema;
use arrow::record_batch::RecordBatch;
use bowshot_api::{
    BatchStream, Delivery, Endpoints, Error, ErrorKind, Lifecycle, OptionValue, Request, Result,
    STATUS_RESULT, Statement, SubstraitPlan, TRACES, TransactionEnd, TransactionId,
};
use bowshot_engine::{
    Action, AuthorizedPlan, CursorStatement, Execution, KeptRights, Parallelism, ProgressMeter,
    SessionStatement, TransactionStatement,
};
use bowshot_policy::snapshot::Pinned;
use bowshot_query_task::{Stop, with_planning_permit};
use futures::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use tracing::{Instrument, info_span};

/// How often a statement is planned again because a file changed under it before its first row.
const RETRIES: usize = 2;
/// Longer than a look at the files is believed, so that planning again sees the change.
const LOOK_AGAIN: Duration = Duration::from_millis(1_100);

/// Starts a statement and returns when its result can be read, or, for a spooled one, at once.
///
/// A file that is overwritten while it is read fails the statement with `Conflict`. As long as no row has been given out
/// nobody needs to know: the statement starts again on the new file.
pub(crate) async fn start(
    session: &ClientSession,
    request: &Request,
    asked: (Expected, &Arc<live::Statement>),
) -> Result<Arc<QueryResult>> {
    if let Statement::Sql(sql) = &request.statement
        && sql.contains(';')
    {
        let mut statements = session.engine().statements(sql);
        if let (Some(last), false) = (statements.pop(), statements.is_empty()) {
            return Box::pin(several(session, request, asked, (statements, last))).await;
        }
    }
    one(session, request, asked).await
}

/// Runs all statements of one text in their turn, until one fails. The rows are those of the last one; those of queries before
/// it are read and left out, since such a query may fail, or call a function that changes something.
async fn several(
    session: &ClientSession,
    request: &Request,
    asked: (Expected, &Arc<live::Statement>),
    (statements, last): (Vec<String>, String),
) -> Result<Arc<QueryResult>> {
    let with = |sql: String| Request { statement: Statement::Sql(sql), ..request.clone() };
    for sql in statements {
        let unread = Request {
            endpoints: Some(Endpoints::Exactly(1)),
            delivery: Some(Delivery::Stream),
            elsewhere: false,
            ..with(sql)
        };
        let query = one(session, &unread, (Expected::Anything, asked.1)).await?;
        let mut rows = session.server().read(&query, 0)?;
        while let Some(batch) = rows.next().await {
            batch?;
        }
        drop(rows);
        drop(asked.1.job.release::<Arc<Slot>>());
        asked.1.begins_again();
    }
    one(session, &with(last), asked).await
}

async fn one(
    session: &ClientSession,
    request: &Request,
    asked: (Expected, &Arc<live::Statement>),
) -> Result<Arc<QueryResult>> {
    let mut repeatable = true;
    for _ in 0..RETRIES {
        match attempt(session, request, asked, &mut repeatable).await {
            Err(error) if error.kind() == ErrorKind::Conflict && repeatable => {
                drop(asked.1.job.release::<Arc<Slot>>());
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            other => return other,
        }
    }
    attempt(session, request, asked, &mut repeatable).await
}

/// What kind of statement a caller has asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    Anything,
    /// A statement that changes something and returns no rows.
    Effect,
}

impl Expected {
    fn of(self, action: &Action) -> Result<()> {
        let only_returns = !action.acts() || matches!(action, Action::Cursor(CursorStatement::Fetch { .. }));
        if self == Self::Effect && only_returns {
            return Err(Error::invalid("the statement returns rows and changes nothing")
                .with_hint("run it as a query"));
        }
        Ok(())
    }
}

/// The transaction that a request names, or else that of its statement.
fn transaction(session: &ClientSession, request: &Request) -> Result<Option<TransactionId>> {
    match request.transaction {
        None => session.transaction_of(&request.statement),
        named => Ok(named),
    }
}

async fn attempt(
    session: &ClientSession,
    request: &Request,
    (expected, live): (Expected, &Arc<live::Statement>),
    repeatable: &mut bool,
) -> Result<Arc<QueryResult>> {
    accept(session)?;
    let transaction = transaction(session, request)?;
    // Before the slot: who waits for another statement of its transaction keeps nobody else waiting.
    live.is(State::Blocked);
    let waiting = info_span!(target: TRACES, parent: &live.span, "admission");
    let mut scope = session.transactions().scope(transaction).instrument(waiting.clone()).await?;
    admit(session, live).instrument(waiting).await?;
    let options = session.current_options();
    let pinned = live.sees(scope.pin(session.engine(), options.isolation()));
    let (endpoints, rights) =
        (endpoints(request, &options, session), kept_rights(session, request, &options));
    let parallelism = parallelism(request, (endpoints, &options), (session, live));
    live.is(State::Planning);
    let statement = (&request.statement, expected, transaction);
    let begun = planned(session, statement, (live, &pinned), (parallelism, &options), repeatable);
    let (authorised, execution) = with_planning_permit(begun).await?;
    if matches!(authorised.plan.action(), Action::Query | Action::Write(_) | Action::Cursor(_)) {
        scope.begin_statement(&authorised.sql);
    }
    if authorised.plan.action().is_update() {
        // What the statement before has said is not said of this one.
        session.clear_last_write();
    }
    live.is(State::Running);
    let execution = match (execution, authorised.plan.action()) {
        (Some(execution), _) => {
            drop(scope);
            execution
        }
        (None, Action::Write(_)) => {
            let layout = (expected == Expected::Anything).then_some(options.layout);
            let begun = Begun::of(live, layout);
            let writing = info_span!(target: TRACES, parent: &live.span, "write");
            Box::pin(write::write(session, &authorised, scope, begun).instrument(writing)).await?
        }
        (None, _) => {
            // What ends a transaction must not wait for itself.
            drop(scope);
            let acting = Acting { authorised: &authorised, transaction, live };
            Box::pin(execute(session, acting, parallelism, &options)).await?
        }
    };
    let execution = match authorised.plan.action().is_update() && request.status_row {
        // After the statement: it may have been the one that sets the dialect.
        true if session.current_options().dialect == "mysql" => went_well()?,
        _ => execution,
    };
    let (execution, elsewhere) = Box::pin(execution.opened()).await?;
    let Some(slot) = live.job.release() else {
        return Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"));
    };
    let launch = Launch {
        id: live.id,
        statement: Arc::clone(live),
        principal: session.owner().clone(),
        session: session.key(),
        sql: session.without_secrets(&authorised.sql).into_owned(),
        execution,
        elsewhere,
        layout: options.layout,
        endpoints: endpoint_count(endpoints, session),
        delivery: delivery(request, &options),
        rights: rights.map(|rights| rights.of(&authorised.plan)),
        timeout: timeout(&options, session),
        slot,
        started: live.arrived,
    };
    let query = launched(session, launch, live)?;
    // Who sends rows may want to see the columns of the answer first.
    if delivery(request, &options) == Delivery::Stream && live.input().is_none() {
        wait_until_readable(session, &query).await?;
    }
    Ok(query)
}

/// Plans a statement, and begins it if it is a query: what else it may be acts later.
async fn planned(
    session: &ClientSession,
    (statement, expected, transaction): (&Statement, Expected, Option<TransactionId>),
    (live, pinned): (&Arc<live::Statement>, &Pinned),
    (parallelism, options): (Parallelism, &Options),
    repeatable: &mut bool,
) -> Result<(Authorised, Option<Execution>)> {
    let planning = info_span!(target: TRACES, parent: &live.span, "plan");
    let authorised = Box::pin(authorise(session, statement, pinned).instrument(planning)).await?;
    live.touches(authorised.plan.tables());
    exchange::check(live, &authorised.plan)?;
    // What has acted is not to act again, and rows that have come do not come again.
    *repeatable = matches!(authorised.plan.action(), Action::Query) && live.input().is_none();
    expected.of(authorised.plan.action())?;
    if !matches!(authorised.plan.action(), Action::Query) {
        return Ok((authorised, None));
    }
    let acting = Acting { authorised: &authorised, transaction, live };
    let executing = info_span!(target: TRACES, parent: &live.span, "execute");
    let execution = Box::pin(execute(session, acting, parallelism, options).instrument(executing)).await?;
    Ok((authorised, Some(execution)))
}

/// The rights as they are before planning, for rows that will be kept.
fn kept_rights(session: &ClientSession, request: &Request, options: &Options) -> Option<KeptRights> {
    (delivery(request, options) == Delivery::Spool).then(|| session.engine().kept_rights())
}

/// Waits until the statement may run, if the server still takes any then.
pub(crate) async fn admit(session: &ClientSession, live: &live::Statement) -> Result<()> {
    live.is(State::Queued);
    let slot = Arc::new(session.server().admission.enter(&live.who).await?);
    live.has_slot(&slot);
    live.job.hold(slot);
    accept(session)
}

/// The result, at work and known to the server.
fn launched(
    session: &ClientSession,
    launch: Launch,
    live: &Arc<live::Statement>,
) -> Result<Arc<QueryResult>> {
    let query = QueryResult::launch(launch, &session.server().house, session.server().engine.runtime());
    live.has_result(&query);
    session.server().results.insert(Arc::clone(&query));
    if matches!(live.job.stopped(), Some(Stop::Cancelled | Stop::Late)) {
        // Whoever waited has left, and did not see the result any more.
        session.server().results.abandon(&query);
        return Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"));
    }
    Ok(query)
}

pub(crate) fn accept(session: &ClientSession) -> Result<()> {
    session.check_open()?;
    session.server().house.log.check()?;
    match session.server().lifecycle() {
        Lifecycle::Ready => Ok(()),
        Lifecycle::Starting => Err(Error::new(ErrorKind::Unavailable, "the server is starting")),
        Lifecycle::Draining => {
            Err(Error::new(ErrorKind::Unavailable, "the server is draining and takes no new queries")
                .with_hint("connect to another server, or try again after its restart"))
        }
    }
}

/// A statement that may run, with its text for the log and its parameters.
#[derive(Debug, Clone)]
pub(crate) struct Authorised {
    pub(crate) sql: Arc<str>,
    pub(crate) plan: AuthorizedPlan,
    pub(crate) parameters: Arc<Vec<RecordBatch>>,
}

/// Plans the statement on the tables of one moment, or takes the plan that a prepared one has for it.
pub(crate) async fn authorise(
    session: &ClientSession,
    statement: &Statement,
    pinned: &Pinned,
) -> Result<Authorised> {
    match statement {
        Statement::Sql(sql) => {
            let plan = plan(session, sql, pinned).await?;
            Ok(Authorised { sql: Arc::from(sql.as_str()), plan, parameters: Arc::default() })
        }
        Statement::Substrait(_) => Err(SubstraitPlan::unsupported()),
        Statement::Prepared(id) => {
            let prepared = session.prepared().get(*id)?;
            let plan = match prepared
                .fresh_plan()
                .filter(|plan| plan.pinned().is_same(pinned) && session.engine().still_allows(plan))
            {
                Some(plan) => {
                    session.engine().decide_again(plan).await?;
                    plan.clone()
                }
                None => {
                    let plan = plan(session, &prepared.sql, pinned).await?;
                    session.prepared().replan(*id, &plan);
                    plan
                }
            };
            Ok(Authorised { sql: prepared.sql, plan, parameters: prepared.parameters })
        }
    }
}

pub(crate) async fn plan(session: &ClientSession, sql: &str, pinned: &Pinned) -> Result<AuthorizedPlan> {
    let limit = session.server().house.limits.max_sql_bytes;
    if sql.len() > limit {
        let message = format!("the statement has {} bytes, more than the limit of {limit}", sql.len());
        return Err(Error::new(ErrorKind::LimitReached, message)
            .with_hint("pass values as parameters, or raise `limits.max_sql_bytes`"));
    }
    with_planning_permit(session.engine().plan(sql, pinned)).await
}

fn endpoints(request: &Request, options: &Options, session: &ClientSession) -> Endpoints {
    match request.endpoints.unwrap_or(options.endpoints) {
        Endpoints::Exactly(count) => {
            Endpoints::Exactly(count.clamp(1, session.server().house.limits.max_endpoints))
        }
        Endpoints::Auto => Endpoints::Auto,
    }
}

/// Into what a query is split: several nodes hand out what is read once by a client that goes where they are, and wants
/// several endpoints.
fn parallelism(
    request: &Request,
    (endpoints, options): (Endpoints, &Options),
    (session, live): (&ClientSession, &live::Statement),
) -> Parallelism {
    let streams = match endpoints {
        Endpoints::Exactly(count) if count > 1 => Some(count),
        Endpoints::Exactly(_) => return Parallelism::Default,
        Endpoints::Auto => None,
    };
    let elsewhere = request.elsewhere && delivery(request, options) == Delivery::Stream;
    match streams {
        _ if elsewhere && live.input().is_none() => {
            Parallelism::Nodes { most: endpoint_count(endpoints, session), query: live.id, streams }
        }
        Some(streams) => Parallelism::Streams(streams),
        None => Parallelism::Default,
    }
}

fn endpoint_count(endpoints: Endpoints, session: &ClientSession) -> usize {
    match endpoints {
        Endpoints::Exactly(count) => count,
        Endpoints::Auto => session.server().house.limits.max_endpoints,
    }
}

fn delivery(request: &Request, options: &Options) -> Delivery {
    let preferred = if options.retryable_results { Delivery::Spool } else { Delivery::Stream };
    request.delivery.unwrap_or(preferred)
}

pub(crate) fn timeout(options: &Options, session: &ClientSession) -> Duration {
    let operators = session.server().house.limits.statement_timeout;
    match (operators.is_zero(), options.statement_timeout.is_zero()) {
        (_, true) => operators,
        (true, false) => options.statement_timeout,
        (false, false) => operators.min(options.statement_timeout),
    }
}

/// A statement at work, and the transaction that it names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Acting<'a> {
    pub(crate) authorised: &'a Authorised,
    pub(crate) transaction: Option<TransactionId>,
    pub(crate) live: &'a Arc<live::Statement>,
}

/// Lets the statement act, or makes its streams.
async fn execute(
    session: &ClientSession,
    acting: Acting<'_>,
    parallelism: Parallelism,
    options: &Options,
) -> Result<Execution> {
    let Acting { authorised, transaction, .. } = acting;
    match authorised.plan.action() {
        Action::Set { name, value } if session.owns_option(name) => {
            session.set(name, Some(OptionValue::String(value.clone())))?;
            Ok(nothing())
        }
        Action::Reset { name } if session.owns_option(name) => {
            session.set(name, None)?;
            Ok(nothing())
        }
        Action::Transaction(statement) => {
            let ended = session.transactions().run(statement, transaction, session.engine()).await;
            // A COMMIT that fails rolls back.
            let is_kept = ended.is_ok() && *statement == TransactionStatement::Commit;
            session.end_settings(if is_kept { TransactionEnd::Commit } else { TransactionEnd::Rollback });
            ended?;
            match statement {
                TransactionStatement::Begin { isolation: Some(level), .. } => session.begin_with(level)?,
                TransactionStatement::Release(_) if transaction.is_none() => {
                    session.end_savepoint_settings(TransactionEnd::Commit);
                }
                TransactionStatement::RollbackTo(_) if transaction.is_none() => {
                    session.end_savepoint_settings(TransactionEnd::Rollback);
                }
                _ => {}
            }
            Ok(nothing())
        }
        Action::Session(statement) => {
            if let (SessionStatement::SetLocal(assignments), Some(id)) = (statement, transaction) {
                session.isolate(id, assignments)?;
            }
            statements::run(session, statement).await?;
            Ok(nothing())
        }
        Action::Cursor(statement) => Box::pin(cursors::run(session, statement, acting)).await,
        Action::Cache(statement) => {
            let (engine, statement, pinned) =
                (session.engine().clone(), statement.clone(), authorised.plan.pinned().clone());
            let work = async move { engine.control_cache(&statement, &pinned).await };
            task::run(session.server().engine.runtime(), work).await?;
            Ok(nothing())
        }
        Action::Database(statement) => {
            let (engine, statement) = (session.engine().clone(), statement.clone());
            let work = async move { engine.control_databases(&statement).await };
            task::run(session.server().engine.runtime(), work).await?;
            Ok(nothing())
        }
        Action::Write(_) | Action::Query | Action::Scratch | Action::Set { .. } | Action::Reset { .. } => {
            let (plan, parameters) = (&authorised.plan, &authorised.parameters);
            session.engine().execute(plan, parameters, parallelism, options.layout).await
        }
    }
}

/// The result of a statement that has acted: no columns, no rows.
pub(crate) fn nothing() -> Execution {
    let schema = Arc::new(Schema::empty());
    let stream = BatchStream::from_batches(Arc::clone(&schema), Vec::new());
    Execution {
        schema,
        streams: vec![stream],
        ordered: true,
        rows: Some(0),
        progress: ProgressMeter::default(),
        opening: None,
    }
}

/// The one row of a statement without rows, see [`STATUS_RESULT`].
fn went_well() -> Result<Execution> {
    let status: ArrayRef = Arc::new(StringArray::from(vec!["0"]));
    let batch = RecordBatch::try_from_iter_with_nullable([(STATUS_RESULT, status, true)])
        .map_err(|error| Error::internal("a status is no batch").with_source(error))?;
    let schema = batch.schema();
    let stream = BatchStream::from_batches(Arc::clone(&schema), vec![batch]);
    Ok(Execution { schema, streams: vec![stream], rows: Some(1), ..nothing() })
}

/// Waits for the first rows, so that errors arrive where the statement was sent. A caller that goes away while
/// waiting takes the query along.
async fn wait_until_readable(session: &ClientSession, query: &Arc<QueryResult>) -> Result<()> {
    struct Abandon<'a>(&'a ClientSession, &'a QueryResult, bool);
    impl Drop for Abandon<'_> {
        fn drop(&mut self) {
            if !self.2 {
                self.0.server().results.abandon(self.1);
            }
        }
    }
    let mut guard = Abandon(session, query.as_ref(), false);
    let ready = query.ready().await;
    guard.2 = true;
    if let Err(error) = &ready {
        session.server().results.end(query.id, Ended::Failed(error.duplicate()));
    }
    ready
}
