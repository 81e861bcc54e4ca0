//! A small server in memory behind the front end. Its language:
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

mod session;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use bowshot_api::{
    About, Answer, BatchStream, CancelOutcome, Credentials, Error, ErrorKind, Languages, Layout, Lifecycle,
    Limits, Principal, Progress, QueryId, Result, Secret, Server, ServerStatus, Session, SessionId,
};
use futures::StreamExt;
use session::TestSession;
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
pub(super) struct TestServer {
    me: Weak<TestServer>,
    about: About,
    limits: Limits,
    users_only: bool,
    pub(super) lifecycle: Mutex<Lifecycle>,
    pub(super) counts: watch::Sender<Counts>,
    /// What has had an effect.
    effects: Mutex<Vec<String>>,
    pub(super) written: Mutex<Vec<RecordBatch>>,
    queries: Mutex<HashMap<QueryId, Asked>>,
    sessions: Mutex<HashMap<SessionId, Arc<TestSession>>>,
    /// Batches that were made.
    pub(super) made: Arc<AtomicUsize>,
    /// How often sessions were asked for.
    pub(super) found: watch::Sender<usize>,
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

impl TestServer {
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
            sessions: Mutex::default(),
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
struct Counted(Arc<TestServer>, fn(&mut Counts) -> &mut usize);

impl Counted {
    fn new(server: Arc<TestServer>, count: fn(&mut Counts) -> &mut usize) -> Self {
        server.counts.send_modify(|counts| *count(counts) += 1);
        Self(server, count)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.counts.send_modify(|counts| *(self.1)(counts) -= 1);
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
        let session = Arc::new(TestSession {
            id: SessionId::random(),
            principal: principal.clone(),
            server: self.me(),
            prepared: Mutex::default(),
            open: Mutex::default(),
        });
        self.sessions.lock().unwrap().insert(session.id, Arc::clone(&session));
        Ok(session)
    }

    fn find_session(&self, id: SessionId, principal: &Principal) -> Result<Arc<dyn Session>> {
        self.found.send_modify(|found| *found += 1);
        let sessions = self.sessions.lock().unwrap();
        let session = sessions.get(&id).filter(|session| session.principal == *principal);
        Ok(Arc::clone(session.ok_or_else(|| Error::not_found("session not found"))?) as Arc<dyn Session>)
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
                let schema = TestSession::description(sql, bound)?.schema;
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
