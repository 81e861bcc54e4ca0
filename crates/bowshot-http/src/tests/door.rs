//! A small server behind the door, in memory. Its language:
//!
//! ```text
//! rows N      N rows of one column `n`        insert      changes three rows
//! wide N      N rows of 100 kB                types       one row with a column of each kind
//! wait        one row, then nothing ever      hang        never starts
//! break N     N rows, then divides by zero    empty       no rows
//! fail KIND   an error of that kind           wrong       a syntax error at column 4
//! echo N      its N parameters as one row     begin, commit
//! ```
//!
//! There is one table, `bowshot.main.t`, with the columns `n` (Int64) and `s` (Utf8).

use arrow::array::{ArrayRef, Int64Array, RecordBatchOptions, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use bowshot_api::{
    About, Answer, BatchStream, CancelOutcome, Credentials, Delivery, Description, Error, ErrorKind,
    IfMissing, Ingest, Languages, Layout, Lifecycle, Limits, OptionValue, Position, Prepared, PrimaryKey,
    Principal, Progress, QueryId, Request, Result, SavepointId, Secret, Server, ServerStatus, Session,
    SessionId, Statement, StatementId, TableEntry, TableFilter, TableKind, TableName, TransactionEnd,
    TransactionId,
};
use futures::StreamExt;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, SystemTime};
use tokio::sync::watch;

/// The text of a query, its parameters, and whether its result is kept.
type Asked = (String, Vec<RecordBatch>, bool);

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) sessions: usize,
    pub(super) streams: usize,
    /// Statements that hang.
    pub(super) hanging: usize,
    pub(super) prepared: usize,
}

#[derive(Debug)]
pub(super) struct Door {
    me: Weak<Door>,
    about: About,
    limits: Limits,
    users_only: bool,
    pub(super) lifecycle: Mutex<Lifecycle>,
    pub(super) counts: watch::Sender<Counts>,
    /// What has had an effect.
    effects: Mutex<Vec<String>>,
    pub(super) written: Mutex<Vec<RecordBatch>>,
    queries: Mutex<HashMap<QueryId, Asked>>,
    rooms: Mutex<HashMap<SessionId, Arc<Room>>>,
    /// Batches that were made.
    pub(super) made: Arc<AtomicUsize>,
    /// How often sessions were asked for.
    pub(super) found: watch::Sender<usize>,
}

#[derive(Debug)]
struct Room {
    id: SessionId,
    principal: Principal,
    door: Arc<Door>,
    prepared: Mutex<HashMap<StatementId, (String, Vec<RecordBatch>)>>,
    open: Mutex<bool>,
}

fn numbers() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]))
}

fn texts() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("s", DataType::Utf8, false)]))
}

fn table() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("n", DataType::Int64, false),
        Field::new("s", DataType::Utf8, true),
    ]))
}

fn number(sql: &str) -> i64 {
    sql.split(' ').nth(1).and_then(|number| number.parse().ok()).unwrap_or(1)
}

impl Door {
    pub(super) fn open(limits: Limits, users_only: bool) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            about: About {
                name: "Bowshot".into(),
                version: "1.2.3".into(),
                arrow_version: "59".into(),
                languages: Languages::default(),
            },
            limits,
            users_only,
            lifecycle: Mutex::new(Lifecycle::Ready),
            counts: watch::Sender::default(),
            effects: Mutex::default(),
            written: Mutex::default(),
            queries: Mutex::default(),
            rooms: Mutex::default(),
            made: Arc::default(),
            found: watch::Sender::default(),
        })
    }

    /// Waits for a state.
    pub(super) async fn until(&self, check: impl FnMut(&Counts) -> bool) {
        let mut counts = self.counts.subscribe();
        tokio::time::timeout(super::PATIENCE, counts.wait_for(check)).await.expect("in time").unwrap();
    }

    pub(super) fn effects(&self) -> Vec<String> {
        std::mem::take(&mut self.effects.lock().unwrap())
    }

    fn note(&self, effect: impl Into<String>) {
        self.effects.lock().unwrap().push(effect.into());
    }

    fn me(&self) -> Arc<Self> {
        self.me.upgrade().unwrap()
    }
}

/// Something in a count.
struct Counted(Arc<Door>, fn(&mut Counts) -> &mut usize);

impl Counted {
    fn new(door: Arc<Door>, count: fn(&mut Counts) -> &mut usize) -> Self {
        door.counts.send_modify(|counts| *count(counts) += 1);
        Self(door, count)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.counts.send_modify(|counts| *(self.1)(counts) -= 1);
    }
}

#[async_trait]
impl Server for Door {
    fn about(&self) -> &About {
        &self.about
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn lifecycle(&self) -> Lifecycle {
        *self.lifecycle.lock().unwrap()
    }

    fn status(&self) -> ServerStatus {
        ServerStatus {
            sessions: 1,
            running_queries: 2,
            queued_queries: 3,
            open_results: 4,
            result_buffer_bytes: 5,
            result_spill_bytes: 6,
            query_memory_bytes: 7,
            prepared_statements: 8,
            open_transactions: 9,
            table_bytes: 10,
            planning: 11,
            burning: 12,
            memory_bytes: 13,
        }
    }

    async fn authenticate(&self, credentials: &Credentials) -> Result<Principal> {
        match credentials {
            Credentials::Password { user, password } if password.expose() == "pw" => {
                self.note(format!("checked {user}"));
                Ok(Principal::user(user))
            }
            Credentials::Bearer(token) if token.expose() == "token" => Ok(Principal::user("tom")),
            _ if !self.users_only => Ok(Principal::anonymous()),
            _ => Err(Error::new(ErrorKind::Unauthenticated, "wrong user or password")),
        }
    }

    fn issue_token(&self, _: &Principal) -> Secret {
        Secret::new("token")
    }

    async fn open_session(&self, principal: &Principal) -> Result<Arc<dyn Session>> {
        self.counts.send_modify(|counts| counts.sessions += 1);
        let room = Arc::new(Room {
            id: SessionId::random(),
            principal: principal.clone(),
            door: self.me(),
            prepared: Mutex::default(),
            open: Mutex::default(),
        });
        self.rooms.lock().unwrap().insert(room.id, Arc::clone(&room));
        Ok(room)
    }

    fn find_session(&self, id: SessionId, principal: &Principal) -> Result<Arc<dyn Session>> {
        self.found.send_modify(|found| *found += 1);
        let rooms = self.rooms.lock().unwrap();
        let room = rooms.get(&id).filter(|room| room.principal == *principal);
        Ok(Arc::clone(room.ok_or_else(|| Error::not_found("session not found"))?) as Arc<dyn Session>)
    }

    async fn attach(&self, _: &Principal, query: QueryId, _: usize) -> Result<BatchStream> {
        let mut queries = self.queries.lock().unwrap();
        let found = queries.get(&query).cloned().ok_or_else(|| Error::not_found("result not found"))?;
        let (sql, bound, is_kept) = found;
        if !is_kept {
            queries.remove(&query);
        }
        drop(queries);
        if sql.starts_with("echo") {
            return Ok(BatchStream::from_batches(bound[0].schema(), bound));
        }
        if sql.starts_with("types") {
            let batch = super::types::batch();
            return Ok(BatchStream::from_batches(batch.schema(), vec![batch]));
        }
        if sql.starts_with("insert") {
            let count: ArrayRef = Arc::new(Int64Array::from(vec![3]));
            let batch = RecordBatch::try_from_iter([("count", count)]).unwrap();
            return Ok(BatchStream::from_batches(batch.schema(), vec![batch]));
        }
        let counted = Counted::new(self.me(), |counts| &mut counts.streams);
        Ok(generated(&sql, counted, Arc::clone(&self.made)))
    }

    async fn cancel(&self, _: &Principal, query: QueryId) -> Result<CancelOutcome> {
        self.note(format!("cancel {query}"));
        Ok(CancelOutcome::Cancelled)
    }

    fn renew(&self, _: &Principal, _: QueryId) -> Result<SystemTime> {
        Err(Error::not_found("query not found"))
    }

    async fn progress(&self, _: &Principal, query: QueryId, _: Option<f64>, _: Duration) -> Result<Progress> {
        let queries = self.queries.lock().unwrap();
        match queries.get(&query) {
            Some((sql, bound, _)) => {
                let schema = Room::description(sql, bound)?.schema;
                Ok(Progress { answer: answer(query, schema), fraction: 0.5, done: false, failed: None })
            }
            None => Err(Error::not_found("query not found")),
        }
    }
}

/// Rows in batches of a thousand, and what comes after them.
fn generated(sql: &str, counted: Counted, made: Arc<AtomicUsize>) -> BatchStream {
    let verb = sql.split(' ').next().unwrap_or_default();
    let (schema, size) = match verb {
        "wide" => (texts(), number(sql)),
        "empty" => (numbers(), 0),
        "SELECT" => (table(), 2),
        _ => (numbers(), number(sql)),
    };
    let step = if verb == "wide" { 10 } else { 1_000 };
    let shape = Arc::clone(&schema);
    let parts = (0..size).step_by(step as usize).map(move |start| {
        let values = start..(start + step).min(size);
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(values.clone()));
        let columns: Vec<ArrayRef> = match shape.fields().len() {
            2 => vec![numbers, Arc::new(StringArray::from_iter(values.map(|n| (n > 0).then_some("x"))))],
            _ if shape.field(0).name() == "s" => {
                vec![Arc::new(StringArray::from_iter_values(values.map(|_| "x".repeat(100_000))))]
            }
            _ => vec![numbers],
        };
        Ok(RecordBatch::try_new(Arc::clone(&shape), columns).unwrap())
    });
    let rest = match verb {
        "wait" => futures::stream::pending().boxed(),
        "break" => futures::stream::iter([Err(Error::invalid("divide by zero"))]).boxed(),
        _ => futures::stream::empty().boxed(),
    };
    let batches = futures::stream::iter(parts).chain(rest).map(move |batch| {
        let _ = &counted;
        made.fetch_add(1, Ordering::Relaxed);
        batch
    });
    BatchStream::new(schema, batches.boxed())
}

fn answer(query: QueryId, schema: SchemaRef) -> Answer {
    Answer {
        query,
        schema,
        layout: Layout::default(),
        partitions: 1,
        ordered: true,
        rows: None,
        expires: None,
        locations: Vec::new(),
    }
}

impl Room {
    fn statement(&self, statement: &Statement) -> Result<(String, Vec<RecordBatch>)> {
        match statement {
            Statement::Prepared(id) => {
                let prepared = self.prepared.lock().unwrap();
                prepared.get(id).cloned().ok_or_else(|| Error::not_found("prepared statement not found"))
            }
            Statement::Sql(sql) => Ok((sql.clone(), Vec::new())),
            Statement::Substrait(_) => Err(Error::unsupported("no plans")),
        }
    }

    fn description(sql: &str, bound: &[RecordBatch]) -> Result<Description> {
        let verb = sql.split(' ').next().unwrap_or_default();
        let parameters = if verb == "echo" { number(sql) } else { 0 };
        let parameters = (1..=parameters).map(|index| Field::new(format!("${index}"), DataType::Utf8, true));
        let parameters: SchemaRef = Arc::new(Schema::new(parameters.collect::<Vec<_>>()));
        let schema = match (verb, bound) {
            ("wrong", _) => {
                let error = Error::new(ErrorKind::Syntax, "syntax error: unexpected `x`");
                return Err(error.with_position(Position { line: 1, column: 4 }));
            }
            ("insert" | "begin" | "commit", _) => Arc::new(Schema::empty()),
            ("echo", [rows, ..]) => rows.schema(),
            ("echo", []) => Arc::clone(&parameters),
            ("types", _) => super::types::batch().schema(),
            ("wide", _) => texts(),
            ("SELECT", _) if sql.contains("missing") => {
                return Err(Error::not_found("table `missing` not found"));
            }
            ("SELECT", _) => table(),
            _ => numbers(),
        };
        Ok(Description { schema, parameters, is_update: matches!(verb, "insert" | "begin" | "commit") })
    }

    fn act(&self, sql: &str) {
        match sql {
            "begin" => *self.open.lock().unwrap() = true,
            "commit" => *self.open.lock().unwrap() = false,
            "insert" => {}
            _ => return,
        }
        self.door.note(sql);
    }
}

#[async_trait]
impl Session for Room {
    fn id(&self) -> SessionId {
        self.id
    }

    fn principal(&self) -> &Principal {
        &self.principal
    }

    fn statements(&self, sql: &str) -> Vec<String> {
        sql.split(';').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
    }

    async fn describe(&self, statement: &Statement) -> Result<Description> {
        let (sql, bound) = self.statement(statement)?;
        Self::description(&sql, &bound)
    }

    async fn prepare(&self, sql: &str, _: Option<TransactionId>) -> Result<Prepared> {
        let description = Self::description(sql, &[])?;
        let id = StatementId::random();
        self.prepared.lock().unwrap().insert(id, (sql.to_owned(), Vec::new()));
        self.door.counts.send_modify(|counts| counts.prepared += 1);
        Ok(Prepared { id, description })
    }

    async fn bind(&self, id: StatementId, parameters: Vec<RecordBatch>) -> Result<()> {
        if let Some(prepared) = self.prepared.lock().unwrap().get_mut(&id) {
            prepared.1 = parameters;
        }
        Ok(())
    }

    async fn close_prepared(&self, id: StatementId) -> Result<()> {
        if self.prepared.lock().unwrap().remove(&id).is_some() {
            self.door.counts.send_modify(|counts| counts.prepared -= 1);
        }
        Ok(())
    }

    async fn start(&self, request: &Request) -> Result<Answer> {
        let (sql, bound) = self.statement(&request.statement)?;
        let kinds = ErrorKind::ALL.iter();
        if let Some(kind) = kinds.copied().find(|kind| sql == format!("fail {kind:?}")) {
            return Err(Error::new(kind, "the secret inside"));
        }
        if sql == "hang" {
            let _counted = Counted::new(Arc::clone(&self.door), |counts| &mut counts.hanging);
            futures::future::pending::<()>().await;
        }
        self.act(&sql);
        let answer = answer(QueryId::random(), Self::description(&sql, &bound)?.schema);
        let is_kept = request.delivery == Some(Delivery::Spool);
        self.door.queries.lock().unwrap().insert(answer.query, (sql, bound, is_kept));
        Ok(answer)
    }

    async fn update(&self, request: &Request) -> Result<Option<u64>> {
        let (sql, _) = self.statement(&request.statement)?;
        self.act(&sql);
        Ok(Some(3))
    }

    async fn ingest(&self, ingest: &Ingest, mut rows: BatchStream) -> Result<u64> {
        if ingest.table == "missing" && ingest.if_missing == IfMissing::Fail {
            return Err(Error::not_found("table `missing` not found"));
        }
        let mut count = 0;
        let mut taken = Vec::new();
        if rows.schema().fields().is_empty() {
            taken.push(RecordBatch::try_new_with_options(
                rows.schema(),
                Vec::new(),
                &RecordBatchOptions::new().with_row_count(Some(0)),
            ));
        }
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            count += batch.num_rows() as u64;
            taken.push(Ok(batch));
        }
        self.door.written.lock().unwrap().extend(taken.into_iter().map(|batch| batch.unwrap()));
        let (missing, exists) = (ingest.if_missing, ingest.if_exists);
        let path = [ingest.catalog.as_deref(), ingest.schema_name.as_deref(), Some(ingest.table.as_str())];
        let path: Vec<&str> = path.into_iter().flatten().collect();
        self.door.note(format!("wrote {count} into {} {missing:?} {exists:?}", path.join("/")));
        Ok(count)
    }

    async fn begin(&self) -> Result<TransactionId> {
        Ok(TransactionId::random())
    }

    async fn end(&self, _: TransactionId, _: TransactionEnd) -> Result<()> {
        Ok(())
    }

    async fn begin_implicit(&self) -> Result<()> {
        Ok(())
    }

    async fn end_implicit(&self, end: TransactionEnd) -> Result<()> {
        self.door.note(format!("({end:?})"));
        Ok(())
    }

    fn in_transaction(&self) -> bool {
        *self.open.lock().unwrap()
    }

    async fn savepoint(&self, _: TransactionId, _: &str) -> Result<SavepointId> {
        Ok(SavepointId::random())
    }

    async fn end_savepoint(&self, _: SavepointId, _: TransactionEnd) -> Result<()> {
        Ok(())
    }

    async fn primary_key(&self, table: &TableName) -> Result<Option<PrimaryKey>> {
        let path = [table.catalog.clone().unwrap(), table.schema_name.clone().unwrap(), table.name.clone()];
        Ok(Some(PrimaryKey { table: path, name: None, columns: vec!["n".to_owned()] }))
    }

    fn options(&self) -> Vec<(String, OptionValue)> {
        let text = |text: &str| OptionValue::String(text.to_owned());
        vec![("catalog".to_owned(), text("bowshot")), ("schema".to_owned(), text("main"))]
    }

    async fn set_option(&self, name: &str, value: Option<OptionValue>) -> Result<()> {
        match name {
            "dialect" | "time_zone" => {
                self.door.note(format!("{name} = {value:?}"));
                Ok(())
            }
            _ => Err(Error::not_found("no such option")),
        }
    }

    async fn catalogs(&self) -> Result<Vec<String>> {
        Ok(vec!["bowshot".to_owned()])
    }

    async fn schemas(&self, _: Option<&str>, _: Option<&str>) -> Result<Vec<(String, String)>> {
        Ok(Vec::new())
    }

    async fn tables(&self, filter: &TableFilter) -> Result<Vec<TableEntry>> {
        let is_meant = |pattern: &Option<String>, name: &str| {
            pattern.as_ref().is_none_or(|pattern| bowshot_api::like(name, pattern))
        };
        let fits = filter.catalog.as_ref().is_none_or(|catalog| catalog == "bowshot")
            && is_meant(&filter.schema_pattern, "main")
            && is_meant(&filter.table_pattern, "t");
        let entry = TableEntry {
            catalog: "bowshot".to_owned(),
            schema_name: "main".to_owned(),
            name: "t".to_owned(),
            kind: TableKind::Table,
            schema: filter.include_schema.then(table),
            remarks: None,
        };
        Ok(if fits { vec![entry] } else { Vec::new() })
    }

    async fn close(&self) {
        if self.door.rooms.lock().unwrap().remove(&self.id).is_some() {
            let prepared = self.prepared.lock().unwrap().drain().count();
            self.door.counts.send_modify(|counts| {
                counts.sessions -= 1;
                counts.prepared -= prepared;
            });
        }
    }
}
