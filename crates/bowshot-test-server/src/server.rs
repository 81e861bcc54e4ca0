//! A small server in memory. Its language:
//!
//! ```text
//! rows N      N rows of one column `n`        insert      changes three rows
//! wait        one row, then nothing ever      hang        never starts
//! bad         an internal error               wrong       a syntax error at column 4
//! fail        divides by zero                 panic       panics when it starts
//! missing     no such table                   double      a key twice
//! slow        takes too long                  large N     one row of N bytes
//! echo N      its N parameters as one row     begin …     transactions
//! set A B     a setting                       instant     one instant, 2024-07-01 12:00 UTC
//! create …    changes a table                 USE …       of `main` only
//! ```
//!
//! Every table has the columns `a` (Int64) and `b` (Utf8).

use crate::port::PATIENCE;
use crate::session::TestSession;
use arrow::array::{ArrayRef, Int64Array, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use bowshot_api::{
    About, BatchStream, CancelOutcome, Credentials, Error, ErrorKind, Languages, Lifecycle, Limits,
    PasswordExchange, Principal, Progress, QueryId, Result, Scramble, Secret, Server, ServerStatus, Session,
    SessionId,
};
use futures::StreamExt;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, SystemTime};
use tokio::sync::watch;

/// What is open.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Sessions.
    pub sessions: usize,
    /// Results that are being read.
    pub streams: usize,
    /// Statements that hang.
    pub hanging: usize,
}

/// See the module.
#[derive(Debug)]
pub struct TestServer {
    me: Weak<TestServer>,
    about: About,
    limits: Limits,
    users_only: bool,
    /// What is open.
    pub counts: watch::Sender<Counts>,
    /// What has had an effect.
    pub(crate) effects: Mutex<Vec<String>>,
    /// Rows that have been stored.
    pub written: Mutex<Vec<RecordBatch>>,
    pub(crate) queries: Mutex<HashMap<QueryId, (String, Vec<RecordBatch>)>>,
}

pub(crate) fn numbers() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]))
}

pub(crate) fn instants() -> SchemaRef {
    let instant = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![Field::new("at", instant, false)]))
}

pub(crate) fn table() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("a", DataType::Int64, false),
        Field::new("b", DataType::Utf8, true),
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
                name: "server".into(),
                version: "1".into(),
                arrow_version: "1".into(),
                languages: Languages::default(),
            },
            limits,
            users_only,
            counts: watch::Sender::default(),
            effects: Mutex::default(),
            written: Mutex::default(),
            queries: Mutex::default(),
        })
    }

    /// Waits for a state.
    pub async fn until(&self, check: impl FnMut(&Counts) -> bool) {
        let mut counts = self.counts.subscribe();
        tokio::time::timeout(PATIENCE, counts.wait_for(check)).await.expect("in time").unwrap();
    }

    /// What has had an effect since the last call.
    pub fn effects(&self) -> Vec<String> {
        std::mem::take(&mut self.effects.lock().unwrap())
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
        Lifecycle::Ready
    }

    fn status(&self) -> ServerStatus {
        ServerStatus::default()
    }

    async fn authenticate(&self, credentials: &Credentials) -> Result<Principal> {
        match credentials {
            Credentials::Password { user, password } if password.expose() == "pw" => {
                Ok(Principal::user(user))
            }
            _ if !self.users_only => Ok(Principal::anonymous()),
            _ => Err(Error::new(ErrorKind::Unauthenticated, "wrong user or password")),
        }
    }

    /// Of `bob` alone the password is known.
    fn recognise(&self, user: &str, scramble: &Scramble, _: Option<IpAddr>) -> Option<Principal> {
        assert_eq!(scramble.challenge.len(), 20);
        (user == "bob" && scramble.shown == b"x").then(|| Principal::user(user))
    }

    fn prove_password(&self, user: &str, _: Option<IpAddr>) -> Option<Box<dyn PasswordExchange>> {
        (user == "prover").then(|| Box::new(Exchange) as Box<dyn PasswordExchange>)
    }

    fn issue_token(&self, _: &Principal) -> Secret {
        Secret::new("token")
    }

    async fn open_session(&self, principal: &Principal) -> Result<Arc<dyn Session>> {
        self.counts.send_modify(|counts| counts.sessions += 1);
        Ok(Arc::new(TestSession {
            id: SessionId::random(),
            principal: principal.clone(),
            server: self.me.upgrade().unwrap(),
            prepared: Mutex::default(),
            open: Mutex::default(),
            settings: Mutex::default(),
        }))
    }

    fn find_session(&self, _: SessionId, _: &Principal) -> Result<Arc<dyn Session>> {
        Err(Error::not_found("session not found"))
    }

    async fn attach(&self, _: &Principal, query: QueryId, _: usize) -> Result<BatchStream> {
        let found = self.queries.lock().unwrap().remove(&query);
        let (sql, bound) = found.ok_or_else(|| Error::not_found("result not found"))?;
        if sql == "instant" {
            let values = TimestampMicrosecondArray::from(vec![1_719_835_200_000_000]).with_timezone("UTC");
            let batch = RecordBatch::try_new(instants(), vec![Arc::new(values)]).unwrap();
            return Ok(BatchStream::from_batches(instants(), vec![batch]));
        }
        if sql.starts_with("echo") {
            return Ok(BatchStream::from_batches(bound[0].schema(), bound));
        }
        if sql.starts_with("large") {
            let text = StringArray::from(vec!["x".repeat(usize::try_from(number(&sql)).unwrap())]);
            let batch = RecordBatch::try_from_iter([("t", Arc::new(text) as ArrayRef)]).unwrap();
            return Ok(BatchStream::from_batches(batch.schema(), vec![batch]));
        }
        if sql.starts_with("SELECT") {
            return Ok(BatchStream::from_batches(table(), Vec::new()));
        }
        let counted = Counted::new(self.me.upgrade().unwrap(), |counts| &mut counts.streams);
        let size = number(&sql);
        // In batches of a thousand.
        let parts = (0..size).step_by(1_000).map(move |start| {
            let values = Int64Array::from_iter_values(start..(start + 1_000).min(size));
            Ok(RecordBatch::try_new(numbers(), vec![Arc::new(values)]).unwrap())
        });
        let rest = match sql.as_str() {
            "wait" => futures::stream::pending().boxed(),
            _ => futures::stream::empty().boxed(),
        };
        let batches = futures::stream::iter(parts).chain(rest).map(move |batch| {
            let _ = &counted;
            batch
        });
        Ok(BatchStream::new(numbers(), batches.boxed()))
    }

    async fn cancel(&self, _: &Principal, _: QueryId) -> Result<CancelOutcome> {
        Ok(CancelOutcome::Cancelled)
    }

    fn renew(&self, _: &Principal, _: QueryId) -> Result<SystemTime> {
        Err(Error::not_found("query not found"))
    }

    async fn progress(&self, _: &Principal, _: QueryId, _: Option<f64>, _: Duration) -> Result<Progress> {
        Err(Error::not_found("query not found"))
    }
}
