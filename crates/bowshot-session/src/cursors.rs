//! Cursors, whose rows `FETCH` reads in parts. Each is a result with its own slot in `system.queries`, buffer and
//! limits; it ends with its transaction unless it is WITH HOLD.

use crate::admission::Slot;
use crate::query::{self, ActionContext, empty_execution};
use crate::result::QueryResult;
use crate::running_statements::State;
use crate::session::ClientSession;
use crate::write::count_result;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use bowshot_api::{
    Answer, BatchStream, Delivery, Endpoints, Error, ErrorKind, Origin, Reason, Request, Result, Session,
    Statement, TransactionEnd, TransactionId,
};
use bowshot_engine::{Action, CursorStatement, Execution, KeptRights};
use bowshot_system_catalog::client::OpenCursor;
use futures::StreamExt;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::OwnedMutexGuard;

/// Open cursors of one session: each may hold a full buffer of rows.
const MAX_OPEN: usize = 100;

#[derive(Debug, Default)]
pub(crate) struct Cursors(Mutex<HashMap<String, Cursor>>);

#[derive(Debug)]
struct Cursor {
    sql: Arc<str>,
    schema: SchemaRef,
    /// The transaction that closes it; for WITH HOLD, the one whose rollback does.
    transaction: Option<TransactionId>,
    /// Savepoints of the transaction at that time.
    savepoints: usize,
    is_held: bool,
    /// Access rights at its declaration; revoking them ends reading.
    rights: Arc<KeptRights>,
    /// `None` after a failure. Locked by the FETCH that reads it.
    rows: Arc<tokio::sync::Mutex<Option<Rows>>>,
}

#[derive(Debug)]
struct Rows {
    query: Arc<QueryResult>,
    /// `None` after the last batch.
    stream: Option<BatchStream>,
    rest: Option<RecordBatch>,
    /// Whether it is on a row, which FETCH 0 returns again.
    is_on_row: bool,
}

/// A cursor while FETCH reads it. It is closed unless FETCH returns it: its position would be unknown.
#[derive(Debug)]
struct Reading {
    place: OwnedMutexGuard<Option<Rows>>,
    rows: Rows,
    /// Rows to read; `None` for all.
    left: Option<u64>,
}

/// Runs a statement on cursors.
///
/// # Errors
/// `NotFound` and `AlreadyExists` for names, `Invalid` outside of a transaction, `LimitReached`; what the query failed with.
pub(crate) async fn run(
    session: &ClientSession,
    statement: &CursorStatement,
    context: ActionContext<'_>,
) -> Result<Execution> {
    let cursors = session.transactions().cursors();
    match statement {
        CursorStatement::Declare { name, is_held, sql } => {
            declare(session, (name, *is_held, sql.trim_start()), context).await?;
            Ok(empty_execution())
        }
        CursorStatement::Fetch { name, rows } => {
            let schema = cursors.schema(name)?;
            Ok(cursors.reading(name, *rows).await?.execution(schema))
        }
        CursorStatement::Move { name, rows } => cursors.reading(name, *rows).await?.skip().await,
        CursorStatement::Close(name) => cursors.close(name.as_deref()).map(|()| empty_execution()),
    }
}

async fn declare(
    session: &ClientSession,
    (name, is_held, sql): (&str, bool, &str),
    context: ActionContext<'_>,
) -> Result<()> {
    let cursors = session.transactions().cursors();
    let transaction = context.transaction.or_else(|| session.transactions().current());
    if transaction.is_none() && !is_held {
        return Err(Error::invalid("DECLARE CURSOR can only be used in transaction blocks")
            .with_reason(Reason::NoTransaction)
            .with_hint("begin one, or declare it WITH HOLD"));
    }
    check_name(&cursors.lock(), name)?;
    let savepoints = match transaction {
        Some(id) => session.transactions().savepoint_count(id).await?,
        None => 0,
    };
    let rights = Arc::new(session.engine().kept_rights().of(&context.authorized.plan));
    // The query takes its own slot, and could wait for this one forever.
    drop(context.live.job.release::<Arc<Slot>>());
    let answer = start(session, sql, context).await?;
    let query = session.server().results.find(session.owner(), answer.query)?;
    // Attach now: a result without a reader expires.
    let stream = Some(session.server().read(&query, 0)?);
    query.exempt_from_drain();
    query::admit(session, context.live).await?;
    context.live.set_state(State::Running);
    let rows = Arc::new(tokio::sync::Mutex::new(Some(Rows { query, stream, rest: None, is_on_row: false })));
    let mut open = cursors.lock();
    check_name(&open, name)?;
    // From now on, the end of the transaction finds the cursor.
    if transaction.is_some_and(|id| !session.transactions().is_open(id)) {
        return Err(Error::invalid("the transaction ended while its cursor was opened")
            .with_reason(Reason::NoTransaction)
            .with_hint("begin another one"));
    }
    let (sql, schema) = (Arc::clone(&context.authorized.sql), answer.schema);
    open.insert(name.to_owned(), Cursor { sql, schema, transaction, savepoints, is_held, rights, rows });
    Ok(())
}

/// Starts the query, planned and authorized like any other.
async fn start(session: &ClientSession, sql: &str, context: ActionContext<'_>) -> Result<Answer> {
    let request = |statement| Request {
        endpoints: Some(Endpoints::Exactly(1)),
        delivery: Some(Delivery::Stream),
        ..Request::of(statement).within(context.transaction)
    };
    let values = &context.authorized.parameters;
    if values.is_empty() {
        return session.start(&request(Statement::Sql(sql.to_owned()))).await;
    }
    let id = session.prepare(sql, context.transaction).await?.id;
    let started = match session.bind(id, values.to_vec()).await {
        Ok(()) => session.start(&request(Statement::Prepared(id))).await,
        Err(error) => Err(error),
    };
    session.prepared().remove(id);
    started
}

fn check_name(open: &HashMap<String, Cursor>, name: &str) -> Result<()> {
    if open.contains_key(name) {
        return Err(Error::new(ErrorKind::AlreadyExists, format!("cursor `{name}` already exists"))
            .with_reason(Reason::DuplicateCursor)
            .with_hint("close it first, or choose another name"));
    }
    if open.len() >= MAX_OPEN {
        let message = format!("the session has {MAX_OPEN} open cursors, which is the limit");
        return Err(Error::new(ErrorKind::LimitReached, message).with_hint("close some of them"));
    }
    Ok(())
}

fn missing(name: &str) -> Error {
    Error::not_found(format!("cursor `{name}` does not exist"))
        .with_reason(Reason::UndefinedCursor)
        .with_hint(
            "a cursor ends with its transaction unless it is declared WITH HOLD, and when reading it fails",
        )
}

impl Cursors {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Cursor>> {
        let mut open = self.0.lock();
        open.retain(|_, cursor| !cursor.rows.try_lock().is_ok_and(|rows| rows.is_none()));
        open
    }

    /// The schema of the rows that a statement fetches; `None` for other statements, or before the cursor is
    /// declared.
    pub(crate) fn fetched(&self, action: &Action) -> Option<SchemaRef> {
        match action {
            Action::Cursor(CursorStatement::Fetch { name, .. }) => {
                Some(self.schema(name).unwrap_or_else(|_| SchemaRef::new(Schema::empty())))
            }
            _ => None,
        }
    }

    pub(crate) fn list(&self) -> Vec<OpenCursor> {
        let open = self.lock();
        let mut listed: Vec<OpenCursor> = open
            .iter()
            .map(|(name, Cursor { sql, is_held, .. })| OpenCursor {
                name: name.clone(),
                sql: Arc::clone(sql),
                is_held: *is_held,
            })
            .collect();
        listed.sort_by(|one, other| one.name.cmp(&other.name));
        listed
    }

    fn schema(&self, name: &str) -> Result<SchemaRef> {
        self.lock().get(name).map(|cursor| Arc::clone(&cursor.schema)).ok_or_else(|| missing(name))
    }

    async fn reading(&self, name: &str, left: Option<u64>) -> Result<Reading> {
        let both = |cursor: &Cursor| (Arc::clone(&cursor.rights), Arc::clone(&cursor.rows));
        let found = self.lock().get(name).map(both);
        let (rights, rows) = found.ok_or_else(|| missing(name))?;
        rights.check().await?;
        let mut place = rows.lock_owned().await;
        if left == Some(0) && place.as_ref().is_some_and(|rows| rows.is_on_row) {
            return Err(Error::unsupported("cursor can only scan forward")
                .with_reason(Reason::WrongState)
                .with_hint("declare it once more to read it again"));
        }
        let rows = place.take().ok_or_else(|| missing(name))?;
        Ok(Reading { place, rows, left })
    }

    /// Closes one, or all.
    ///
    /// # Errors
    /// `NotFound`.
    pub(crate) fn close(&self, name: Option<&str>) -> Result<()> {
        match name {
            None => self.clear(),
            Some(name) => drop(self.lock().remove(name).ok_or_else(|| missing(name))?),
        }
        Ok(())
    }

    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    /// Closes cursors that were declared after a savepoint on its rollback. `left` is the number of savepoints left.
    pub(crate) fn savepoint_ended(&self, id: TransactionId, left: usize, end: TransactionEnd) {
        self.lock().retain(|_, cursor| {
            let is_later = cursor.transaction == Some(id) && cursor.savepoints >= left;
            if is_later {
                cursor.savepoints = left;
            }
            !is_later || end == TransactionEnd::Commit
        });
    }

    /// Closes the cursors of a transaction. WITH HOLD cursors survive its commit.
    pub(crate) fn transaction_ended(&self, id: TransactionId, end: TransactionEnd) {
        self.lock().retain(|_, cursor| {
            let ends = cursor.transaction == Some(id);
            if ends {
                cursor.transaction = None;
            }
            !ends || (cursor.is_held && end == TransactionEnd::Commit)
        });
    }
}

impl Rows {
    /// The next rows, at most `most`; `None` after the last one.
    async fn next(&mut self, most: Option<u64>) -> Result<Option<RecordBatch>> {
        loop {
            let batch = if let Some(rest) = self.rest.take() {
                rest
            } else {
                let Some(stream) = &mut self.stream else { return Ok(None) };
                let next = stream.next().await;
                let Some(batch) = next else {
                    (self.stream, self.is_on_row) = (None, false);
                    return Ok(None);
                };
                batch?
            };
            let there = batch.num_rows();
            let taken =
                most.map_or(there, |most| usize::try_from(most).map_or(there, |most| most.min(there)));
            if taken < there {
                self.rest = Some(batch.slice(taken, there - taken));
            }
            if taken > 0 {
                self.is_on_row = true;
                return Ok(Some(batch.slice(0, taken)));
            }
        }
    }
}

impl Reading {
    /// The next rows; `None` after the last one, when the cursor is returned.
    async fn next(mut self) -> Result<Option<(RecordBatch, Option<Self>)>> {
        let batch = if self.left == Some(0) { None } else { self.rows.next(self.left).await? };
        let Some(batch) = batch else {
            self.give_back();
            return Ok(None);
        };
        self.left = self.left.map(|left| left.saturating_sub(batch.num_rows() as u64));
        // Let the producer go on while the client pauses.
        if self.left == Some(0) {
            self.give_back();
            return Ok(Some((batch, None)));
        }
        Ok(Some((batch, Some(self))))
    }

    fn give_back(mut self) {
        *self.place = Some(self.rows);
    }

    fn execution(self, schema: SchemaRef) -> Execution {
        let origin: Arc<dyn Origin> = Arc::<QueryResult>::clone(&self.rows.query);
        let batches = futures::stream::try_unfold(Some(self), |reading| async move {
            match reading {
                Some(reading) => reading.next().await,
                None => Ok(None),
            }
        });
        let stream = BatchStream::new(SchemaRef::clone(&schema), batches.boxed());
        Execution { schema, streams: vec![stream.with_origin(Some(origin))], rows: None, ..empty_execution() }
    }

    /// Skips the rows and counts them.
    async fn skip(self) -> Result<Execution> {
        let (mut reading, mut skipped) = (Some(self), 0);
        while let Some(next) = reading.take() {
            let Some((batch, rest)) = next.next().await? else { break };
            skipped += batch.num_rows() as u64;
            reading = rest;
        }
        count_result(Some(skipped))
    }
}
