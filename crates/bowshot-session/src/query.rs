//! Runs a statement: admit → plan → authorize → run → record. [`run_once`] does this; [`start`] calls it.

use crate::admission::Slot;
use crate::cursors;
use crate::exchange;
use crate::options::Options;
use crate::result::Launch;
use crate::row_locking;
use crate::running_statements::{RunningStatement, State};
use crate::session::ClientSession;
use crate::session_statements;
use crate::started::{self, Started};
use crate::task;
use crate::transaction_scope::Scope;
use crate::write::{self, WriteContext};
use arrow::array::{ArrayRef, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use bowshot_api::{
    BatchStream, Delivery, Endpoints, Error, ErrorKind, Lifecycle, OptionValue, Request, Result,
    STATUS_RESULT, Statement, SubstraitPlan, TRACES, TransactionId,
};
use bowshot_engine::{
    Action, AuthorizedPlan, CursorStatement, Execution, KeptRights, Parallelism, ProgressMeter,
    SessionStatement,
};
use bowshot_policy::snapshot::Pinned;
use bowshot_query_task::with_planning_permit;
use futures::StreamExt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::{Instrument, info_span};

/// Retries of a statement whose files changed before its first row.
const RETRIES: usize = 2;
/// Longer than file listings are cached, so that planning again sees the change.
const LOOK_AGAIN: Duration = Duration::from_millis(1_100);

/// Starts a statement. Returns when its result can be read, or, if spooled, at once.
///
/// A file that is overwritten while it is read fails the statement with `Conflict`. As long as no row has been given out
/// nobody needs to know: the statement starts again on the new file.
pub(crate) async fn start(
    session: &ClientSession,
    request: &Request,
    asked: (Expected, &Arc<RunningStatement>),
) -> Result<Started> {
    if let Statement::Sql(sql) = &request.statement
        && sql.contains(';')
    {
        let mut statements = session.engine().statements(sql);
        if let (Some(last), false) = (statements.pop(), statements.is_empty()) {
            return Box::pin(run_script(session, request, asked, (statements, last))).await;
        }
    }
    run_with_retry(session, request, asked).await
}

/// Runs the statements of a script until one fails. The result is that of the last one. Rows of earlier queries are
/// read and discarded, since those may fail or call functions with effects.
async fn run_script(
    session: &ClientSession,
    request: &Request,
    asked: (Expected, &Arc<RunningStatement>),
    (statements, last): (Vec<String>, String),
) -> Result<Started> {
    let with = |sql: String| Request { statement: Statement::Sql(sql), ..request.clone() };
    for sql in statements {
        let unread = Request {
            endpoints: Some(Endpoints::Exactly(1)),
            delivery: Some(Delivery::Stream),
            elsewhere: false,
            at_once: false,
            ..with(sql)
        };
        let query = run_with_retry(session, &unread, (Expected::Anything, asked.1)).await?.result()?;
        let mut rows = session.server().read(&query, 0)?;
        while let Some(batch) = rows.next().await {
            batch?;
        }
        drop(rows);
        drop(asked.1.job.release::<Arc<Slot>>());
        asked.1.reset_for_next_statement();
    }
    run_with_retry(session, &with(last), asked).await
}

async fn run_with_retry(
    session: &ClientSession,
    request: &Request,
    asked: (Expected, &Arc<RunningStatement>),
) -> Result<Started> {
    let mut repeatable = true;
    for _ in 0..RETRIES {
        match run_once(session, request, asked, &mut repeatable).await {
            Err(error) if error.kind() == ErrorKind::Conflict && repeatable => {
                drop(asked.1.job.release::<Arc<Slot>>());
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            other => return other,
        }
    }
    run_once(session, request, asked, &mut repeatable).await
}

/// The kind of statement that a caller expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    Anything,
    /// A statement that changes data and returns no rows.
    Effect,
}

impl Expected {
    fn check(self, action: &Action) -> Result<()> {
        let only_returns = !action.acts() || matches!(action, Action::Cursor(CursorStatement::Fetch { .. }));
        if self == Self::Effect && only_returns {
            return Err(Error::invalid("the statement returns rows and changes nothing")
                .with_hint("run it as a query"));
        }
        Ok(())
    }
}

async fn run_once(
    session: &ClientSession,
    request: &Request,
    (expected, live): (Expected, &Arc<RunningStatement>),
    repeatable: &mut bool,
) -> Result<Started> {
    check_accepting(session)?;
    let named = request.transaction;
    let transaction = if named.is_some() { named } else { session.transaction_of(&request.statement)? };
    // Before admission: waiting for a statement of the same transaction must not hold a slot.
    live.set_state(State::Blocked);
    let waiting = info_span!(target: TRACES, parent: &live.span, "admission");
    let mut scope = session.transactions().scope(transaction).instrument(waiting.clone()).await?;
    admit(session, live).instrument(waiting).await?;
    let options = session.current_options();
    let options = options.as_ref();
    live.set_tag(&options.query_tag);
    let pinned = &live.with_input(scope.pin(session.engine(), options.isolation()));
    let (endpoints, rights) = (endpoints(request, options, session), kept_rights(session, request, options));
    let parallelism = parallelism(request, (endpoints, options), (session, live));
    live.set_state(State::Planning);
    let statement = &request.statement;
    let planning = Planning { statement, expected, transaction, live, pinned, parallelism, options };
    let (authorized, execution) = Box::pin(ready(session, planning, repeatable, &mut scope)).await?;
    let is_endless = scope.check_endless(&authorized.plan, delivery(request, options))?;
    if matches!(authorized.plan.action(), Action::Query | Action::Write(_) | Action::Cursor(_)) {
        scope.begin_statement(&authorized.sql);
    }
    if authorized.plan.action().is_update() {
        // Do not report the effect of the previous statement for this one.
        session.clear_last_write();
    }
    live.set_state(State::Running);
    let execution = match (execution, authorized.plan.action()) {
        (Some(execution), _) => {
            drop(scope);
            execution
        }
        (None, Action::Write(_)) => {
            let layout = (expected == Expected::Anything).then_some(options.layout);
            let context = WriteContext::new(live, layout);
            let writing = info_span!(target: TRACES, parent: &live.span, "write");
            Box::pin(write::write(session, &authorized, scope, context).instrument(writing)).await?
        }
        (None, _) => {
            // The end of a transaction must not wait for itself.
            drop(scope);
            let context = ActionContext { authorized: &authorized, transaction, live };
            Box::pin(execute(session, context, parallelism, options)).await?
        }
    };
    // After the statement, which may have set the dialect.
    let wants_status = request.status_row && session.current_options().dialect == "mysql";
    let execution =
        if wants_status && authorized.plan.action().is_update() { status_row()? } else { execution };
    let (execution, remote) = Box::pin(execution.opened()).await?;
    let Some(slot) = live.job.release() else {
        return Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"));
    };
    let launch = Launch {
        id: live.id,
        statement: Arc::clone(live),
        principal: session.owner().clone(),
        session: session.key(),
        sql: session.without_secrets(&authorized.sql).into_owned(),
        execution,
        remote,
        layout: options.layout,
        endpoints: endpoint_count(endpoints, session),
        delivery: delivery(request, options),
        rights: rights.map(|rights| rights.of(&authorized.plan)),
        timeout: timeout(options, session),
        slot,
        started: live.arrived,
    };
    started::begin_reading(session, launch, (request, is_endless)).await
}

/// A statement to plan, on a snapshot of the tables.
struct Planning<'a> {
    statement: &'a Statement,
    expected: Expected,
    transaction: Option<TransactionId>,
    live: &'a Arc<RunningStatement>,
    pinned: &'a Pinned,
    parallelism: Parallelism,
    options: &'a Options,
}

/// Plans a statement, and starts it if it is a query.
async fn plan_and_begin(
    session: &ClientSession,
    planning: Planning<'_>,
    repeatable: &mut bool,
) -> Result<(AuthorizedStatement, Option<Execution>)> {
    let Planning { statement, expected, transaction, live, pinned, parallelism, options } = planning;
    let span = info_span!(target: TRACES, parent: &live.span, "plan");
    let authorized = Box::pin(authorize(session, statement, pinned).instrument(span)).await?;
    live.set_tables(authorized.plan.tables());
    exchange::check(live, &authorized.plan)?;
    let begins = matches!(authorized.plan.action(), Action::Query) && authorized.plan.row_lock().is_none();
    // Statements with effects, or with rows of the client, cannot run twice.
    *repeatable = begins && live.input().is_none();
    expected.check(authorized.plan.action())?;
    if !begins {
        return Ok((authorized, None));
    }
    live.set_language(options.language());
    let context = ActionContext { authorized: &authorized, transaction, live };
    let executing = info_span!(target: TRACES, parent: &live.span, "execute");
    let execution = Box::pin(execute(session, context, parallelism, options).instrument(executing)).await?;
    Ok((authorized, Some(execution)))
}

/// Plans a statement, and locks its rows or starts it. Of a transaction that has failed only the end is run.
async fn ready(
    session: &ClientSession,
    planning: Planning<'_>,
    repeatable: &mut bool,
    scope: &mut Scope,
) -> Result<(AuthorizedStatement, Option<Execution>)> {
    let live = planning.live;
    let (authorized, begun) = with_planning_permit(plan_and_begin(session, planning, repeatable)).await?;
    if !matches!(authorized.plan.action(), Action::Transaction(statement) if statement.ends()) {
        // It would fail again, however often it is tried.
        scope.check().inspect_err(|_| *repeatable = false)?;
    }
    match begun {
        Some(_) => Ok((authorized, begun)),
        None => row_locking::lock(session, authorized, (scope, live)).await,
    }
}

/// The access rights before planning, for spooled results.
fn kept_rights(session: &ClientSession, request: &Request, options: &Options) -> Option<KeptRights> {
    (delivery(request, options) == Delivery::Spool).then(|| session.engine().kept_rights())
}

/// Waits for a slot; fails if the server is draining by then.
pub(crate) async fn admit(session: &ClientSession, live: &RunningStatement) -> Result<()> {
    live.set_state(State::Queued);
    let began = Instant::now();
    let entered = session.server().admission.enter(&live.requester).await;
    live.add_queued(began.elapsed());
    let slot = Arc::new(entered?);
    live.set_slot(&slot);
    live.job.hold(slot);
    check_accepting(session)
}

pub(crate) fn check_accepting(session: &ClientSession) -> Result<()> {
    session.check_open()?;
    session.server().context.log.check()?;
    match session.server().lifecycle() {
        Lifecycle::Ready => Ok(()),
        Lifecycle::Starting => Err(Error::new(ErrorKind::Unavailable, "the server is starting")),
        Lifecycle::Draining => {
            Err(Error::new(ErrorKind::Unavailable, "the server is draining and takes no new queries")
                .with_hint("connect to another server, or try again after its restart"))
        }
    }
}

/// An authorized statement, with its text and parameters.
#[derive(Debug, Clone)]
pub(crate) struct AuthorizedStatement {
    pub(crate) sql: Arc<str>,
    pub(crate) plan: AuthorizedPlan,
    pub(crate) parameters: Arc<Vec<RecordBatch>>,
}

/// Plans the statement on a snapshot, or reuses the plan of a prepared statement.
pub(crate) async fn authorize(
    session: &ClientSession,
    statement: &Statement,
    pinned: &Pinned,
) -> Result<AuthorizedStatement> {
    match statement {
        Statement::Sql(sql) => {
            let plan = plan(session, sql, pinned).await?;
            Ok(AuthorizedStatement { sql: Arc::from(sql.as_str()), plan, parameters: Arc::default() })
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
            Ok(AuthorizedStatement { sql: prepared.sql, plan, parameters: prepared.parameters })
        }
    }
}

pub(crate) async fn plan(session: &ClientSession, sql: &str, pinned: &Pinned) -> Result<AuthorizedPlan> {
    let limit = session.server().context.limits.max_sql_bytes;
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
            Endpoints::Exactly(count.clamp(1, session.server().context.limits.max_endpoints))
        }
        Endpoints::Auto => Endpoints::Auto,
    }
}

/// The parallelism of a query: nodes hand out streamed results to clients that read other nodes and want several
/// endpoints.
fn parallelism(
    request: &Request,
    (endpoints, options): (Endpoints, &Options),
    (session, live): (&ClientSession, &RunningStatement),
) -> Parallelism {
    let streams = match endpoints {
        Endpoints::Exactly(count) if count > 1 => Some(count),
        Endpoints::Exactly(_) => return Parallelism::Default,
        Endpoints::Auto => None,
    };
    let remote = request.elsewhere && delivery(request, options) == Delivery::Stream;
    match streams {
        _ if remote && live.input().is_none() => {
            Parallelism::Nodes { most: endpoint_count(endpoints, session), query: live.id, streams }
        }
        Some(streams) => Parallelism::Streams(streams),
        None => Parallelism::Default,
    }
}

fn endpoint_count(endpoints: Endpoints, session: &ClientSession) -> usize {
    match endpoints {
        Endpoints::Exactly(count) => count,
        Endpoints::Auto => session.server().context.limits.max_endpoints,
    }
}

fn delivery(request: &Request, options: &Options) -> Delivery {
    let preferred = if options.retryable_results { Delivery::Spool } else { Delivery::Stream };
    request.delivery.unwrap_or(preferred)
}

pub(crate) fn timeout(options: &Options, session: &ClientSession) -> Duration {
    let operators = session.server().context.limits.statement_timeout;
    match (operators.is_zero(), options.statement_timeout.is_zero()) {
        (_, true) => operators,
        (true, false) => options.statement_timeout,
        (false, false) => operators.min(options.statement_timeout),
    }
}

/// An authorized statement with its transaction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ActionContext<'a> {
    pub(crate) authorized: &'a AuthorizedStatement,
    pub(crate) transaction: Option<TransactionId>,
    pub(crate) live: &'a Arc<RunningStatement>,
}

/// Executes the statement or creates its streams.
async fn execute(
    session: &ClientSession,
    context: ActionContext<'_>,
    parallelism: Parallelism,
    options: &Options,
) -> Result<Execution> {
    let ActionContext { authorized, transaction, .. } = context;
    match authorized.plan.action() {
        Action::Set { name, value } if session.owns_option(name) => {
            session.set(name, Some(OptionValue::String(value.clone())))?;
            Ok(empty_execution())
        }
        Action::Reset { name } if session.owns_option(name) => {
            session.set(name, None)?;
            Ok(empty_execution())
        }
        Action::Transaction(statement) => {
            session.run_transaction(statement, transaction).await?;
            Ok(empty_execution())
        }
        Action::Session(statement) => {
            if let (SessionStatement::SetLocal(assignments), Some(id)) = (statement, transaction) {
                session.isolate(id, assignments)?;
            }
            session_statements::run(session, statement).await?;
            Ok(empty_execution())
        }
        Action::Cursor(statement) => Box::pin(cursors::run(session, statement, context)).await,
        Action::Cache(statement) => {
            let (engine, statement, pinned) =
                (session.engine().clone(), statement.clone(), authorized.plan.pinned().clone());
            let work = async move { engine.control_cache(&statement, &pinned).await };
            task::run(session.server().engine.runtime(), work).await?;
            Ok(empty_execution())
        }
        Action::Database(statement) => {
            let (engine, statement) = (session.engine().clone(), statement.clone());
            let work = async move { engine.control_databases(&statement).await };
            task::run(session.server().engine.runtime(), work).await?;
            Ok(empty_execution())
        }
        Action::Write(_) | Action::Query | Action::Scratch | Action::Set { .. } | Action::Reset { .. } => {
            let (plan, parameters) = (&authorized.plan, &authorized.parameters);
            with_planning_permit(session.engine().execute(plan, parameters, parallelism, options.layout))
                .await
        }
    }
}

pub(crate) fn empty_execution() -> Execution {
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

/// The row of a statement without rows, see [`STATUS_RESULT`].
fn status_row() -> Result<Execution> {
    let status = StringArray::from(vec!["0"]);
    one_value(Field::new(STATUS_RESULT, DataType::Utf8, true), Arc::new(status))
}

/// A result of one row and one column.
pub(crate) fn one_value(field: Field, value: ArrayRef) -> Result<Execution> {
    let schema = Arc::new(Schema::new(vec![field]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![value])
        .map_err(|error| Error::internal("cannot make a batch of one value").with_source(error))?;
    let stream = BatchStream::from_batches(Arc::clone(&schema), vec![batch]);
    Ok(Execution { schema, streams: vec![stream], rows: Some(1), ..empty_execution() })
}
