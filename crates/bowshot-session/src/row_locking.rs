//! Locks the rows that a statement names by their primary key before it runs, and plans it again on what was committed by then. Changes
//! of rows that are named otherwise lock none: a commit compares them with those of others.

use crate::admission::Slot;
use crate::query::{self, AuthorizedStatement, empty_execution};
use crate::row_locks::{Asked, Waiting};
use crate::running_statements::{RunningStatement, State};
use crate::session::ClientSession;
use crate::transaction_scope::Scope;
use bowshot_api::{BatchStream, Error, ErrorKind, Reason, Result};
use bowshot_engine::{Action, AuthorizedPlan, Execution, RowKey, RowLock};
use std::sync::Arc;
use std::time::Duration;

/// How often a statement is planned because what it names has become something else.
const MAX_PLANNINGS: usize = 10;

/// The plan of a statement, once its rows are locked; with the result of a query that skips them.
///
/// # Errors
/// `Conflict` for a deadlock, and for a transaction that was overtaken, which is rolled back then; `Timeout` where the lock is not to be
/// had in time.
pub(crate) async fn lock(
    session: &ClientSession,
    authorized: AuthorizedStatement,
    (scope, live): (&mut Scope, &Arc<RunningStatement>),
) -> Result<(AuthorizedStatement, Option<Execution>)> {
    let locked = lock_and_plan(session, authorized, (&mut *scope, live)).await;
    if locked.as_ref().is_err_and(|error| error.kind() == ErrorKind::Conflict) {
        scope.fail();
    }
    locked
}

async fn lock_and_plan(
    session: &ClientSession,
    mut authorized: AuthorizedStatement,
    (scope, live): (&mut Scope, &Arc<RunningStatement>),
) -> Result<(AuthorizedStatement, Option<Execution>)> {
    let engine = session.engine();
    for _ in 0..MAX_PLANNINGS {
        engine.check_row_lock(&authorized.plan)?;
        let keys = engine.row_keys(&authorized.plan, &authorized.parameters)?;
        let row_lock = authorized.plan.row_lock().map(|clause| clause.wait);
        if keys.is_empty() && row_lock.is_none() {
            return Ok((authorized, None));
        }
        scope.check_writable()?;
        let wait = row_lock.unwrap_or(RowLock::Wait);
        let Some(is_new) = take_all(session, &keys, (wait, &mut *scope, live)).await? else {
            let nothing = no_rows(session, &authorized.plan);
            return Ok((authorized, Some(nothing)));
        };
        // What it sees is of a moment at which the rows were locked.
        let pinned = if is_new { Some(scope.pin_newest(engine, session.isolation())?) } else { None };
        let moved = pinned.map(|pinned| live.with_input(pinned));
        match moved.filter(|pinned| !authorized.plan.pinned().is_same(pinned)) {
            Some(pinned) => {
                authorized.plan = query::plan(session, &authorized.sql, &pinned).await?;
                live.set_tables(authorized.plan.tables());
            }
            None => {
                watch(session, &authorized, scope).await?;
                return Ok((authorized, None));
            }
        }
    }
    Err(Error::new(
        ErrorKind::Conflict,
        "cannot lock the rows: the table was changed repeatedly at the same time",
    )
    .with_hint("run the transaction again"))
}

/// Takes locks of all rows; says whether one was not there before. `None` where one is to be skipped.
async fn take_all(
    session: &ClientSession,
    keys: &[RowKey],
    (wait, scope, live): (RowLock, &mut Scope, &Arc<RunningStatement>),
) -> Result<Option<bool>> {
    let mut has_new = false;
    for key in keys {
        let locks = scope.locks(&session.server().row_locks);
        match (locks.take(*key)?, wait) {
            (Asked::Held { is_new }, _) => has_new |= is_new,
            (Asked::Busy, RowLock::NoWait) => return Err(not_available()),
            (Asked::Busy, RowLock::SkipLocked) => return Ok(None),
            (Asked::Busy, RowLock::Wait) => {
                let waiting = locks.queue(*key)?;
                // Others need the slot, among them whoever has locked the row.
                drop(live.job.release::<Arc<Slot>>());
                live.set_state(State::WaitsForLock);
                wait_for(session, waiting).await?;
                query::admit(session, live).await?;
                live.set_state(State::Planning);
                has_new = true;
            }
        }
    }
    Ok(Some(has_new))
}

async fn wait_for(session: &ClientSession, waiting: Waiting<'_>) -> Result<()> {
    let Some(limit) = session.current_options().lock_timeout() else {
        waiting.granted().await;
        return Ok(());
    };
    let over = timer(session, limit);
    tokio::select! {
        biased;
        () = waiting.granted() => Ok(()),
        () = over => Err(not_available()),
    }
}

/// A timer of the runtime of sockets: that of queries has none.
fn timer(session: &ClientSession, limit: Duration) -> tokio::time::Sleep {
    let _timers = session.server().context.timers.enter();
    tokio::time::sleep(limit)
}

/// Watches the rows that a query has locked: changes that do not name rows by the key do not wait for it. Of a query that does not, too,
/// all rows of its tables.
async fn watch(session: &ClientSession, authorized: &AuthorizedStatement, scope: &mut Scope) -> Result<()> {
    let (engine, AuthorizedStatement { plan, parameters, .. }) = (session.engine(), authorized);
    if matches!(plan.action(), Action::Query)
        && let Some(state) = scope.seen().cloned()
    {
        let watched = engine.watch_rows(plan, parameters, &state).await?;
        scope.locks(&session.server().row_locks).watched().extend(watched);
    }
    engine.check_watched(scope.locks(&session.server().row_locks).watched())
}

fn no_rows(session: &ClientSession, plan: &AuthorizedPlan) -> Execution {
    let schema = session.engine().schema(plan, session.current_options().layout);
    let stream = BatchStream::from_batches(Arc::clone(&schema), Vec::new());
    Execution { schema, streams: vec![stream], ..empty_execution() }
}

fn not_available() -> Error {
    Error::new(ErrorKind::Timeout, "cannot lock the row: another transaction has locked it")
        .with_reason(Reason::LockNotAvailable)
        .with_hint("run the statement again, or raise `lock_timeout` (MySQL: `innodb_lock_wait_timeout`)")
}
