//! Result partitions that this node computes for queries of other nodes: the implementation of
//! [`bowshot_engine::endpoints`]. An endpoint knows its reader, its end and its statistics; while it is unread, the
//! part of the plan on this node stays open. Dropping that part discards the rows.

use crate::partition::{Partition, Policy, Reader};
use crate::spill::Accounts;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use bowshot_api::{BatchStream, Delivery, Error, ErrorKind, Origin, Principal, Reason, Result};
use bowshot_engine::distribution::not_here;
use bowshot_engine::endpoints::{EndpointId, EndpointState, EndpointStore, Handout, LocalEndpoint};
use bowshot_query_task::QueryTask;
use futures::StreamExt;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::watch;

/// How long ended endpoints are remembered, so that late tickets get the right error.
const REMEMBERED: Duration = Duration::from_secs(60);
/// Endpoints of a node, ended ones included.
const MOST: usize = 10_000;

#[derive(Debug)]
pub(crate) struct Endpoints {
    accounts: Arc<Accounts>,
    buffer_bytes: usize,
    runtime: Handle,
    all: Mutex<HashMap<EndpointId, Arc<Endpoint>>>,
}

impl Endpoints {
    /// `runtime` runs the queries.
    pub(crate) fn new(accounts: &Arc<Accounts>, buffer_bytes: usize, runtime: Handle) -> Arc<Self> {
        Arc::new(Self { accounts: Arc::clone(accounts), buffer_bytes, runtime, all: Mutex::default() })
    }

    pub(crate) fn open_now(&self) -> usize {
        self.all.lock().values().filter(|endpoint| endpoint.ended_at().is_none()).count()
    }

    pub(crate) fn fail_all(&self) {
        let all: Vec<Arc<Endpoint>> = self.all.lock().values().map(Arc::clone).collect();
        for endpoint in all {
            endpoint.fail(Error::new(ErrorKind::Unavailable, "the server is stopping"));
        }
    }

    /// Removes endpoints that ended long ago.
    pub(crate) fn forget(&self, now: Instant) {
        self.all.lock().retain(|_, endpoint| {
            endpoint.ended_at().is_none_or(|at| now.saturating_duration_since(at) < REMEMBERED)
        });
    }
}

impl EndpointStore for Endpoints {
    fn open(
        &self,
        id: EndpointId,
        handout: &Handout,
        streams: usize,
        origin: Option<Arc<dyn Origin>>,
    ) -> Result<Arc<dyn LocalEndpoint>> {
        let mut all = self.all.lock();
        if let Some(endpoint) = all.get(&id) {
            return Ok(Arc::<Endpoint>::clone(endpoint));
        }
        if all.len() >= MOST {
            let message = format!("this node has {MOST} open results, which is the limit");
            return Err(Error::new(ErrorKind::LimitReached, message).with_hint("read or cancel some of them"));
        }
        let policy =
            Policy { delivery: Delivery::Stream, has_siblings: true, budget_bytes: self.buffer_bytes };
        let schema = SchemaRef::clone(&handout.schema);
        let rows = Partition::new(schema, policy, streams, Arc::clone(&self.accounts));
        let endpoint = Arc::new(Endpoint {
            handout: handout.clone(),
            rows: rows.with_origin(origin),
            working: AtomicUsize::new(streams),
            end: watch::Sender::new(None),
            runtime: self.runtime.clone(),
        });
        all.insert(id, Arc::clone(&endpoint));
        Ok(endpoint)
    }

    fn find(&self, id: EndpointId) -> Option<Arc<dyn LocalEndpoint>> {
        self.all.lock().get(&id).map(|endpoint| Arc::<Endpoint>::clone(endpoint) as _)
    }
}

#[derive(Debug)]
struct End {
    at: Instant,
    error: Option<Error>,
}

#[derive(Debug)]
struct Endpoint {
    handout: Handout,
    rows: Partition,
    /// Streams that are running.
    working: AtomicUsize,
    end: watch::Sender<Option<Arc<End>>>,
    runtime: Handle,
}

impl Endpoint {
    fn ended_at(&self) -> Option<Instant> {
        self.end.borrow().as_ref().map(|end| end.at)
    }

    /// Sets the end; the first one counts.
    fn ends(&self, error: Option<Error>) {
        self.end.send_if_modified(|end| {
            let first = end.is_none();
            if first {
                *end = Some(Arc::new(End { at: Instant::now(), error }));
            }
            first
        });
    }

    fn check(&self) -> Result<()> {
        let end = self.end.borrow().clone();
        let error = end.as_ref().and_then(|end| end.error.as_ref());
        error.map_or(Ok(()), |error| Err(error.duplicate()))
    }
}

#[async_trait]
impl LocalEndpoint for Endpoint {
    async fn put(&self, batch: RecordBatch) -> Result<bool> {
        let bytes = Partition::size(&batch);
        if let Some(job) = QueryTask::current() {
            job.handed_over(bytes);
        }
        let mut pushing = Box::pin(self.rows.push(batch, bytes));
        if let Some(pushed) = futures::future::poll_immediate(&mut pushing).await {
            return pushed.map(|pushed| pushed.is_ok());
        }
        self.working.fetch_sub(1, Ordering::AcqRel);
        let _waits = Waits(&self.working);
        pushing.await.map(|pushed| pushed.is_ok())
    }

    fn stream_ended(&self) {
        self.working.fetch_sub(1, Ordering::AcqRel);
        self.rows.producer_done();
    }

    async fn finished(&self) -> Result<()> {
        let mut end = self.end.subscribe();
        // The sender is alive.
        let _ = end.wait_for(Option::is_some).await;
        self.check()
    }

    async fn ready(&self) -> Result<()> {
        self.rows.ready().await
    }

    fn state(&self) -> EndpointState {
        let (rows, bytes) = self.rows.totals();
        let activity = self.rows.activity();
        EndpointState {
            rows,
            bytes,
            claimed: activity.is_some(),
            is_read: self.rows.has_readers(),
            rows_ready: activity.as_ref().is_some_and(|activity| activity.rows_ready),
            idle: activity.map(|activity| activity.since.elapsed()).unwrap_or_default(),
            waits: self.working.load(Ordering::Acquire) == 0,
        }
    }

    fn fail(&self, error: Error) {
        if self.ended_at().is_none() {
            self.rows.fail(error.duplicate());
            self.ends(Some(error));
        }
    }

    fn attach(self: Arc<Self>, principal: &Principal) -> Result<BatchStream> {
        let query = self.handout.query;
        if self.handout.principal != *principal {
            return Err(not_here(query));
        }
        self.check()?;
        if !self.rows.claim() {
            return Err(Error::not_found(format!(
                "the result of query {query} is not found: it has been read"
            ))
            .with_reason(Reason::UndefinedQuery)
            .with_hint("run the query again, or set the session option `retryable_results`"));
        }
        let schema = SchemaRef::clone(&self.handout.schema);
        let reading = Reading { reader: Reader::new(self.runtime.clone()), endpoint: self };
        let batches = futures::stream::unfold(Some(reading), |reading| async move {
            let mut reading = reading?;
            match reading.reader.next(&reading.endpoint.rows).await {
                Ok(Some(batch)) => Some((Ok(batch), Some(reading))),
                Ok(None) => None,
                Err(error) => {
                    reading.endpoint.fail(error.duplicate());
                    Some((Err(error), None))
                }
            }
        });
        Ok(BatchStream::new(schema, batches.boxed()))
    }
}

/// A stream that waits for its reader.
struct Waits<'a>(&'a AtomicUsize);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

/// The reader of an endpoint. Dropping it discards the rest.
struct Reading {
    reader: Reader,
    endpoint: Arc<Endpoint>,
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.endpoint.rows.release_reader();
        self.endpoint.ends(None);
    }
}
