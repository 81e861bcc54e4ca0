//! A small server behind the door, in memory, for tests of the protocol. Its language:
//!
//! ```text
//! rows N      N rows of one column `n`        update      affects three rows
//! wait        a result that never comes       panic       panics when it starts
//! hang        never starts                    break       panics in the middle of its result
//! bad         an internal error               ?           one row, one Int64 parameter
//! ```
//!
//! Rows may be written into any table. Those of the table `stuck` are never taken after the first batch.

use arrow::array::{Array, Int64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use bowshot_api::{
    About, Answer, BatchStream, CancelOutcome, Credentials, Delivery, Description, Error, ErrorKind, Ingest,
    Languages, Layout, Lifecycle, Limits, OptionValue, Prepared, PrimaryKey, Principal, Progress, QueryId,
    Request, Result, SavepointId, Secret, Server, ServerStatus, Session, SessionId, Statement, StatementId,
    SubstraitPlan, TableEntry, TableFilter, TableKind, TableName, TransactionEnd, TransactionId,
};
use futures::StreamExt;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, SystemTime};
use tokio::sync::watch;

/// What tests wait for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) sessions: usize,
    pub(super) streams: usize,
}

/// What has had an effect, in order.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Effect {
    /// A statement ran, in a transaction or not.
    Ran(String, Option<TransactionId>),
    /// Rows were written into a table.
    Wrote(String, Option<TransactionId>, Vec<RecordBatch>),
    Ended(TransactionEnd),
    Saved(String),
    EndedSavepoint(TransactionEnd),
}

#[derive(Debug)]
pub(super) struct TestServer {
    me: Weak<TestServer>,
    about: About,
    limits: Limits,
    users_only: bool,
    pub(super) counts: watch::Sender<Counts>,
    pub(super) checks: Mutex<usize>,
    effects: Mutex<Vec<Effect>>,
    sessions: Mutex<HashMap<SessionId, Arc<TestSession>>>,
    queries: Mutex<HashMap<QueryId, Query>>,
}

#[derive(Debug)]
struct Query {
    sql: String,
    answer: Answer,
    read: bool,
    cancelled: bool,
}

#[derive(Debug)]
struct TestSession {
    id: SessionId,
    principal: Principal,
    server: Weak<TestServer>,
    options: Mutex<BTreeMap<String, OptionValue>>,
    prepared: Mutex<HashMap<StatementId, PreparedStatement>>,
    transactions: Mutex<HashMap<TransactionId, Vec<SavepointId>>>,
}

/// Text, parameters and transaction of a prepared statement.
type PreparedStatement = (String, Vec<RecordBatch>, Option<TransactionId>);

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]))
}

fn batch(rows: i64) -> RecordBatch {
    RecordBatch::try_new(schema(), vec![Arc::new(Int64Array::from_iter_values(0..rows))]).unwrap()
}

impl TestServer {
    pub(super) fn open(limits: Limits, users_only: bool) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            about: About {
                name: "door".into(),
                version: "1".into(),
                arrow_version: "1".into(),
                languages: Languages::default(),
            },
            limits,
            users_only,
            counts: watch::Sender::default(),
            checks: Mutex::default(),
            effects: Mutex::default(),
            sessions: Mutex::default(),
            queries: Mutex::default(),
        })
    }

    /// What has had an effect since this was last asked.
    pub(super) fn effects(&self) -> Vec<Effect> {
        std::mem::take(&mut self.effects.lock().unwrap())
    }

    fn note(&self, effect: Effect) {
        self.effects.lock().unwrap().push(effect);
    }

    fn start(&self, sql: &str, delivery: Option<Delivery>) -> Answer {
        let expires =
            (delivery == Some(Delivery::Spool)).then(|| SystemTime::now() + Duration::from_secs(60));
        let answer = Answer {
            query: QueryId::random(),
            schema: schema(),
            layout: Layout::default(),
            partitions: 1,
            ordered: true,
            rows: None,
            expires,
            locations: Vec::new(),
        };
        let query = Query { sql: sql.into(), answer: answer.clone(), read: false, cancelled: false };
        self.queries.lock().unwrap().insert(answer.query, query);
        answer
    }
}

/// A stream in the count.
struct Counted(Arc<TestServer>);

impl Counted {
    fn new(server: Arc<TestServer>) -> Self {
        server.counts.send_modify(|counts| counts.streams += 1);
        Self(server)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.counts.send_modify(|counts| counts.streams -= 1);
    }
}

#[async_trait]
impl Server for TestServer {
    fn about(&self) -> &About {
        &self.about
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn lifecycle(&self) -> Lifecycle {
        Lifecycle::Ready
    }

    fn status(&self) -> ServerStatus {
        ServerStatus::default()
    }

    async fn authenticate(&self, credentials: &Credentials) -> Result<Principal> {
        *self.checks.lock().unwrap() += 1;
        match credentials {
            Credentials::Password { user, password } if password.expose() == "pw" => {
                Ok(Principal::user(user))
            }
            Credentials::Bearer(token) if token.expose().starts_with("token-") => {
                Ok(Principal::user(token.expose().split('-').nth(1).unwrap()))
            }
            _ if !self.users_only => Ok(Principal::anonymous()),
            _ => Err(Error::new(ErrorKind::Unauthenticated, "wrong")),
        }
    }

    fn issue_token(&self, principal: &Principal) -> Secret {
        Secret::new(format!("token-{}-{}", principal.name, SessionId::random()))
    }

    async fn open_session(&self, principal: &Principal) -> Result<Arc<dyn Session>> {
        let room = Arc::new(TestSession {
            id: SessionId::random(),
            principal: principal.clone(),
            server: Weak::clone(&self.me),
            options: Mutex::default(),
            prepared: Mutex::default(),
            transactions: Mutex::default(),
        });
        self.sessions.lock().unwrap().insert(room.id, Arc::clone(&room));
        self.counts.send_modify(|counts| counts.sessions += 1);
        Ok(room)
    }

    fn find_session(&self, id: SessionId, principal: &Principal) -> Result<Arc<dyn Session>> {
        let sessions = self.sessions.lock().unwrap();
        match sessions.get(&id).filter(|room| &room.principal == principal) {
            Some(room) => Ok(Arc::clone(room) as Arc<dyn Session>),
            None => Err(Error::not_found("session not found")),
        }
    }

    async fn attach(&self, _: &Principal, query: QueryId, partition: usize) -> Result<BatchStream> {
        let missing = || Error::not_found("result not found");
        let mut queries = self.queries.lock().unwrap();
        let query = queries.get_mut(&query).filter(|_| partition == 0).ok_or_else(missing)?;
        if query.cancelled {
            return Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"));
        }
        if query.answer.expires.is_none() && std::mem::replace(&mut query.read, true) {
            return Err(missing());
        }
        let counted = Counted::new(self.me.upgrade().unwrap());
        let first = match query.sql.split_once(' ') {
            Some(("rows", number)) => vec![Ok(batch(number.parse().unwrap()))],
            _ => vec![Ok(batch(1))],
        };
        let batches = futures::stream::iter(first);
        let rest = match query.sql.as_str() {
            "wait" => futures::stream::pending().boxed(),
            "break" => futures::stream::once(async { panic!("broken") }).boxed(),
            _ => futures::stream::empty().boxed(),
        };
        let batches = batches.chain(rest).map(move |batch| {
            let _ = &counted;
            batch
        });
        Ok(BatchStream::new(schema(), batches.boxed()))
    }

    async fn cancel(&self, _: &Principal, query: QueryId) -> Result<CancelOutcome> {
        let mut queries = self.queries.lock().unwrap();
        queries.get_mut(&query).ok_or_else(|| Error::not_found("query not found"))?.cancelled = true;
        Ok(CancelOutcome::Cancelled)
    }

    fn renew(&self, _: &Principal, query: QueryId) -> Result<SystemTime> {
        let mut queries = self.queries.lock().unwrap();
        let query = queries.get_mut(&query).ok_or_else(|| Error::not_found("query not found"))?;
        let end = SystemTime::UNIX_EPOCH + Duration::from_secs(7);
        query.answer.expires = Some(end);
        Ok(end)
    }

    async fn progress(&self, _: &Principal, id: QueryId, seen: Option<f64>, _: Duration) -> Result<Progress> {
        let queries = self.queries.lock().unwrap();
        let query = queries.get(&id).ok_or_else(|| Error::not_found("query not found"))?;
        if query.cancelled {
            return Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"));
        }
        let done = seen == Some(0.5);
        Ok(Progress {
            answer: query.answer.clone(),
            fraction: if done { 1.0 } else { 0.5 },
            done,
            failed: None,
        })
    }
}

impl TestSession {
    fn server(&self) -> Arc<TestServer> {
        self.server.upgrade().unwrap()
    }

    fn sql(&self, statement: &Statement) -> Result<String> {
        match statement {
            Statement::Sql(sql) => Ok(sql.clone()),
            Statement::Substrait(_) => Err(SubstraitPlan::unsupported()),
            Statement::Prepared(id) => {
                let prepared = self.prepared.lock().unwrap();
                let (sql, bound, _) =
                    prepared.get(id).ok_or_else(|| Error::not_found("statement not found"))?;
                let rows: usize = bound.iter().map(RecordBatch::num_rows).sum();
                Ok(if sql == "?" { format!("rows {rows}") } else { sql.clone() })
            }
        }
    }

    /// The transaction of a request, which must be open.
    fn transaction(&self, request: &Request) -> Result<Option<TransactionId>> {
        let transaction = match &request.statement {
            Statement::Prepared(id) => self.prepared.lock().unwrap().get(id).and_then(|known| known.2),
            Statement::Sql(_) | Statement::Substrait(_) => request.transaction,
        };
        self.check(transaction).map(|()| transaction)
    }

    fn check(&self, transaction: Option<TransactionId>) -> Result<()> {
        match transaction {
            Some(id) if !self.transactions.lock().unwrap().contains_key(&id) => Err(no_transaction()),
            _ => Ok(()),
        }
    }

    fn description(sql: &str) -> Description {
        let parameters = if sql == "?" { vec![Field::new("$1", DataType::Int64, true)] } else { Vec::new() };
        let is_update = sql == "update";
        Description {
            schema: if is_update { Arc::new(Schema::empty()) } else { schema() },
            parameters: Arc::new(Schema::new(parameters)),
            is_update,
            reads_only: !is_update,
        }
    }
}

fn no_transaction() -> Error {
    Error::not_found("transaction not found").with_hint("begin a new transaction")
}

#[async_trait]
impl Session for TestSession {
    fn id(&self) -> SessionId {
        self.id
    }

    fn principal(&self) -> &Principal {
        &self.principal
    }

    async fn describe(&self, statement: &Statement) -> Result<Description> {
        if let Statement::Prepared(id) = statement
            && let Some((sql, ..)) = self.prepared.lock().unwrap().get(id)
        {
            return Ok(Self::description(sql));
        }
        Ok(Self::description(&self.sql(statement)?))
    }

    async fn prepare(&self, sql: &str, transaction: Option<TransactionId>) -> Result<Prepared> {
        self.check(transaction)?;
        let id = StatementId::random();
        self.prepared.lock().unwrap().insert(id, (sql.to_owned(), Vec::new(), transaction));
        Ok(Prepared { id, description: Self::description(sql) })
    }

    async fn bind(&self, id: StatementId, parameters: Vec<RecordBatch>) -> Result<()> {
        assert!(parameters.iter().all(|batch| batch.column(0).data_type() == &DataType::Int64));
        let mut prepared = self.prepared.lock().unwrap();
        prepared.get_mut(&id).ok_or_else(|| Error::not_found("statement not found"))?.1 = parameters;
        Ok(())
    }

    async fn close_prepared(&self, id: StatementId) -> Result<()> {
        self.prepared.lock().unwrap().remove(&id);
        Ok(())
    }

    async fn start(&self, request: &Request) -> Result<Answer> {
        let sql = self.sql(&request.statement)?;
        let transaction = self.transaction(request)?;
        self.server().note(Effect::Ran(sql.clone(), transaction));
        match sql.as_str() {
            "panic" => panic!("a panic in a statement"),
            "hang" => futures::future::pending().await,
            "bad" => Err(Error::internal("the secret inside")),
            sql => Ok(self.server().start(sql, request.delivery)),
        }
    }

    async fn update(&self, request: &Request) -> Result<Option<u64>> {
        let sql = self.sql(&request.statement)?;
        let transaction = self.transaction(request)?;
        self.server().note(Effect::Ran(sql, transaction));
        Ok(Some(3))
    }

    async fn ingest(&self, ingest: &Ingest, mut rows: BatchStream) -> Result<u64> {
        self.check(ingest.transaction)?;
        let server = self.server();
        let _counted = Counted::new(Arc::clone(&server));
        let mut batches: Vec<RecordBatch> = Vec::new();
        while let Some(batch) = rows.next().await {
            batches.push(batch?);
            if ingest.table == "stuck" {
                return futures::future::pending().await;
            }
        }
        assert!(batches.iter().all(|batch| batch.schema() == rows.schema()));
        let count = batches.iter().map(RecordBatch::num_rows).sum::<usize>();
        let path = [ingest.catalog.as_deref(), ingest.schema_name.as_deref(), Some(ingest.table.as_str())];
        let mut name = path.into_iter().flatten().collect::<Vec<_>>().join(".");
        if ingest.temporary {
            name.insert_str(0, "temporary ");
        }
        let name = format!("{name} {:?} {:?}", ingest.if_missing, ingest.if_exists);
        server.note(Effect::Wrote(name, ingest.transaction, batches));
        Ok(count as u64)
    }

    async fn begin(&self) -> Result<TransactionId> {
        let id = TransactionId::random();
        self.transactions.lock().unwrap().insert(id, Vec::new());
        Ok(id)
    }

    async fn end(&self, transaction: TransactionId, end: TransactionEnd) -> Result<()> {
        self.transactions.lock().unwrap().remove(&transaction).ok_or_else(no_transaction)?;
        self.server().note(Effect::Ended(end));
        Ok(())
    }

    async fn savepoint(&self, transaction: TransactionId, name: &str) -> Result<SavepointId> {
        let id = SavepointId::random();
        let mut transactions = self.transactions.lock().unwrap();
        transactions.get_mut(&transaction).ok_or_else(no_transaction)?.push(id);
        self.server().note(Effect::Saved(name.to_owned()));
        Ok(id)
    }

    async fn end_savepoint(&self, savepoint: SavepointId, end: TransactionEnd) -> Result<()> {
        let transactions = self.transactions.lock().unwrap();
        if !transactions.values().flatten().any(|known| *known == savepoint) {
            return Err(Error::not_found("savepoint not found"));
        }
        self.server().note(Effect::EndedSavepoint(end));
        Ok(())
    }

    async fn primary_key(&self, table: &TableName) -> Result<Option<PrimaryKey>> {
        Ok((table.name == "t1").then(|| PrimaryKey {
            table: ["c", "s", "t1"].map(str::to_owned),
            name: None,
            columns: vec!["n".to_owned()],
        }))
    }

    fn options(&self) -> Vec<(String, OptionValue)> {
        self.options.lock().unwrap().iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    async fn set_option(&self, name: &str, value: Option<OptionValue>) -> Result<()> {
        let mut options = self.options.lock().unwrap();
        match (name, value) {
            ("catalog" | "schema" | "number", Some(OptionValue::Bool(_))) => Err(Error::invalid("no bool")),
            ("catalog" | "schema" | "number", Some(value)) => {
                options.insert(name.to_owned(), value);
                Ok(())
            }
            ("catalog" | "schema" | "number", None) => {
                options.remove(name);
                Ok(())
            }
            _ => Err(Error::not_found("no such option")),
        }
    }

    async fn catalogs(&self) -> Result<Vec<String>> {
        Ok(vec!["c".to_owned()])
    }

    async fn schemas(&self, _: Option<&str>, _: Option<&str>) -> Result<Vec<(String, String)>> {
        Ok(vec![("c".to_owned(), "s".to_owned())])
    }

    async fn tables(&self, filter: &TableFilter) -> Result<Vec<TableEntry>> {
        let pattern = filter.table_pattern.clone().unwrap_or_else(|| "%".to_owned());
        let tables = ["t1", "t2"].into_iter().filter(|name| bowshot_api::like(name, &pattern));
        Ok(tables
            .map(|name| TableEntry {
                catalog: "c".to_owned(),
                schema_name: "s".to_owned(),
                name: name.to_owned(),
                kind: TableKind::Table,
                schema: Some(schema()),
                remarks: None,
            })
            .collect())
    }

    async fn close(&self) {
        let server = self.server();
        if server.sessions.lock().unwrap().remove(&self.id).is_some() {
            server.counts.send_modify(|counts| counts.sessions -= 1);
        }
    }
}
