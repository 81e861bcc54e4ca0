//! A small server in memory. Its language:
//!
//! ```text
//! rows N      N rows of one column `n`        insert      changes three rows
//! wide N      N rows of 100 kB                types       one row with a column of each kind
//! wait        one row, then nothing ever      hang        never starts
//! break N     N rows, then divides by zero    break       panics in the middle of its result
//! update      changes three rows              empty       no rows
//! bad         an internal error               wrong       a syntax error at column 4
//! fail        divides by zero                 panic       panics when it starts
//! fail KIND   an error of that kind           instant     one instant, 2024-07-01 12:00 UTC
//! missing     no such table                   double      a key twice
//! slow        takes too long                  echo N      its N parameters as one row
//! ?           as many rows as its Int64 parameter has
//! begin …     transactions                    SELECT …    two rows of the table with a LIMIT, else none
//! set A B     a setting                       USE …       of `main` only
//! create …    changes a table
//! ```
//!
//! There is one table, `bowshot.main.t`, with the columns `n` (Int64) and `s` (Utf8); rows may be written into any. Those of the
//! table `stuck` are never taken after the first batch.

use crate::port::PATIENCE;
use crate::session::TestSession;
use crate::types;
use arrow::array::{ArrayRef, Int64Array, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use bowshot_api::{
    About, Answer, BatchStream, CancelOutcome, Credentials, Error, ErrorKind, Languages, Lifecycle, Limits,
    PasswordExchange, Principal, Progress, QueryId, Result, Secret, Server, ServerStatus, Session, SessionId,
    TransactionId,
};
use futures::StreamExt;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};
use tokio::sync::watch;

/// A query that was started.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) sql: String,
    pub(crate) bound: Vec<RecordBatch>,
    pub(crate) answer: Answer,
    pub(crate) is_read: bool,
    pub(crate) is_cancelled: bool,
}

/// What is open.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Sessions.
    pub sessions: usize,
    /// Results that are being read.
    pub streams: usize,
    /// Prepared statements.
    pub prepared: usize,
}

/// An in-memory [`Server`] for tests of front ends.
#[derive(Debug)]
pub struct TestServer {
    me: Weak<TestServer>,
    about: About,
    limits: Limits,
    users_only: bool,
    /// What the server says of itself.
    pub lifecycle: Mutex<Lifecycle>,
    /// What is open.
    pub counts: watch::Sender<Counts>,
    /// What has had an effect.
    pub(crate) effects: Mutex<Vec<String>>,
    /// Rows that have been stored.
    pub written: Mutex<Vec<RecordBatch>>,
    /// Statements that were to run, with their transactions.
    pub(crate) runs: Mutex<Vec<(String, Option<TransactionId>)>>,
    pub(crate) queries: Mutex<HashMap<QueryId, Query>>,
    pub(crate) sessions: Mutex<HashMap<SessionId, Arc<TestSession>>>,
    /// How often credentials were checked.
    pub checks: AtomicUsize,
    /// Batches that were made.
    pub made: Arc<AtomicUsize>,
    /// How often sessions were asked for.
    pub found: watch::Sender<usize>,
}

pub(crate) fn numbers() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]))
}

pub(crate) fn texts() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("s", DataType::Utf8, false)]))
}

pub(crate) fn instants() -> SchemaRef {
    let instant = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![Field::new("at", instant, false)]))
}

pub(crate) fn table() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("n", DataType::Int64, false),
        Field::new("s", DataType::Utf8, true),
    ]))
}

pub(crate) fn number(sql: &str) -> i64 {
    sql.trim_end_matches(')').split(' ').nth(1).and_then(|number| number.parse().ok()).unwrap_or(1)
}

impl TestServer {
    /// A server whose sessions are anonymous, or one that asks for the password `pw`.
    pub fn open(limits: Limits, users_only: bool) -> Arc<Self> {
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
            runs: Mutex::default(),
            queries: Mutex::default(),
            sessions: Mutex::default(),
            checks: AtomicUsize::default(),
            made: Arc::default(),
            found: watch::Sender::default(),
        })
    }

    /// Waits for a state.
    pub async fn until(&self, check: impl FnMut(&Counts) -> bool) {
        let mut counts = self.counts.subscribe();
        tokio::time::timeout(PATIENCE, counts.wait_for(check)).await.expect("in time").unwrap();
    }

    /// What has had an effect since the last call.
    pub fn effects(&self) -> Vec<String> {
        std::mem::take(&mut self.effects.lock())
    }

    /// The statements that were to run since the last call.
    pub fn runs(&self) -> Vec<(String, Option<TransactionId>)> {
        std::mem::take(&mut self.runs.lock())
    }

    fn me(&self) -> Arc<Self> {
        self.me.upgrade().unwrap()
    }
}

/// Something in a count.
pub(crate) struct Counted(Arc<TestServer>, fn(&mut Counts) -> &mut usize);

impl Counted {
    pub(crate) fn new(server: Arc<TestServer>, count: fn(&mut Counts) -> &mut usize) -> Self {
        server.counts.send_modify(|counts| *count(counts) += 1);
        Self(server, count)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.counts.send_modify(|counts| *(self.1)(counts) -= 1);
    }
}

/// Wants to hear `first` and `last`.
#[derive(Debug)]
struct Exchange;

#[async_trait]
impl PasswordExchange for Exchange {
    fn challenge(&mut self, first: &[u8]) -> Result<String> {
        if first == b"first" { Ok("challenge".to_owned()) } else { Err(Error::invalid("malformed")) }
    }

    async fn finish(&mut self, last: &[u8]) -> Result<(Principal, String)> {
        match last {
            b"last" => Ok((Principal::user("prover"), "proof".to_owned())),
            _ => Err(Error::new(ErrorKind::Unauthenticated, "wrong user or password")),
        }
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
        *self.lifecycle.lock()
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
        self.checks.fetch_add(1, Ordering::Relaxed);
        match credentials {
            Credentials::Password { user, password } if password.expose() == "pw" => {
                Ok(Principal::user(user))
            }
            Credentials::Bearer(token) if token.expose() == "token" => Ok(Principal::user("tom")),
            Credentials::Bearer(token) if token.expose().starts_with("token-") => {
                Ok(Principal::user(token.expose().split('-').nth(1).unwrap()))
            }
            _ if !self.users_only => Ok(Principal::anonymous()),
            _ => Err(Error::new(ErrorKind::Unauthenticated, "wrong user or password")),
        }
    }

    fn prove_password(&self, user: &str, _: Option<IpAddr>) -> Option<Box<dyn PasswordExchange>> {
        (user == "prover").then(|| Box::new(Exchange) as Box<dyn PasswordExchange>)
    }

    fn issue_token(&self, principal: &Principal) -> Secret {
        Secret::new(format!("token-{}-{}", principal.name, SessionId::random()))
    }

    async fn open_session(&self, principal: &Principal) -> Result<Arc<dyn Session>> {
        self.counts.send_modify(|counts| counts.sessions += 1);
        let session = Arc::new(TestSession {
            id: SessionId::random(),
            principal: principal.clone(),
            server: self.me(),
            prepared: Mutex::default(),
            is_open: Mutex::default(),
            is_implicit: Mutex::default(),
            transactions: Mutex::default(),
            settings: Mutex::default(),
        });
        self.sessions.lock().insert(session.id, Arc::clone(&session));
        Ok(session)
    }

    fn find_session(&self, id: SessionId, principal: &Principal) -> Result<Arc<dyn Session>> {
        self.found.send_modify(|found| *found += 1);
        let sessions = self.sessions.lock();
        let session = sessions.get(&id).filter(|session| session.principal == *principal);
        Ok(Arc::clone(session.ok_or_else(|| Error::not_found("session not found"))?) as Arc<dyn Session>)
    }

    async fn attach(&self, _: &Principal, query: QueryId, partition: usize) -> Result<BatchStream> {
        let missing = || Error::not_found("result not found");
        let (sql, bound) = {
            let mut queries = self.queries.lock();
            let query = queries.get_mut(&query).filter(|_| partition == 0).ok_or_else(missing)?;
            if query.is_cancelled {
                return Err(cancelled());
            }
            if query.answer.expires.is_none() && std::mem::replace(&mut query.is_read, true) {
                return Err(missing());
            }
            (query.sql.clone(), query.bound.clone())
        };
        let batch = match sql.split(' ').next().unwrap_or_default() {
            "echo" => return Ok(BatchStream::from_batches(bound[0].schema(), bound)),
            "SELECT" if !sql.contains(" LIMIT ") => {
                return Ok(BatchStream::from_batches(table(), Vec::new()));
            }
            "types" => types::batch(),
            "insert" => {
                let count: ArrayRef = Arc::new(Int64Array::from(vec![3]));
                RecordBatch::try_from_iter([("count", count)]).unwrap()
            }
            "instant" => {
                let values =
                    TimestampMicrosecondArray::from(vec![1_719_835_200_000_000]).with_timezone("UTC");
                RecordBatch::try_new(instants(), vec![Arc::new(values)]).unwrap()
            }
            _ => {
                let counted = Counted::new(self.me(), |counts| &mut counts.streams);
                return Ok(generated(&sql, counted, Arc::clone(&self.made)));
            }
        };
        Ok(BatchStream::from_batches(batch.schema(), vec![batch]))
    }

    async fn cancel(&self, _: &Principal, query: QueryId) -> Result<CancelOutcome> {
        let mut queries = self.queries.lock();
        queries.get_mut(&query).ok_or_else(|| Error::not_found("query not found"))?.is_cancelled = true;
        Ok(CancelOutcome::Cancelled)
    }

    fn renew(&self, _: &Principal, _: QueryId) -> Result<SystemTime> {
        Err(Error::not_found("query not found"))
    }

    async fn progress(
        &self,
        _: &Principal,
        query: QueryId,
        seen: Option<f64>,
        _: Duration,
    ) -> Result<Progress> {
        let queries = self.queries.lock();
        let query = queries.get(&query).ok_or_else(|| Error::not_found("query not found"))?;
        if query.is_cancelled {
            return Err(cancelled());
        }
        let done = seen == Some(0.5);
        let fraction = if done { 1.0 } else { 0.5 };
        Ok(Progress { answer: query.answer.clone(), fraction, done, failed: None })
    }
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the query was cancelled")
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
        "break" if sql == verb => futures::stream::once(async { panic!("broken") }).boxed(),
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
