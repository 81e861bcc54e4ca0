//! All started queries of the server by id, and the outcomes of those that ended lately.

use crate::result::QueryResult;
use bowshot_api::{CancelOutcome, Error, ErrorKind, Principal, QueryId, Reason, Result, SessionId};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

/// Remembered ended queries, so that late tickets get the right error.
const REMEMBERED: usize = 4_096;

#[derive(Debug, Default)]
pub(crate) struct ResultRegistry {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    open: HashMap<QueryId, Arc<QueryResult>>,
    ended: HashMap<QueryId, (Principal, Ended)>,
    order: VecDeque<QueryId>,
}

#[derive(Debug)]
pub(crate) struct Demand {
    /// Whether a result is being read or waits for its reader.
    pub(crate) wanted: bool,
    /// Other results that still hold a slot.
    pub(crate) running_unwanted: usize,
}

#[derive(Debug)]
pub(crate) enum Ended {
    Read,
    Expired,
    Failed(Error),
}

impl ResultRegistry {
    /// All open queries. Call their methods outside of this lock: their own may be held over disk writes.
    fn all(&self) -> Vec<Arc<QueryResult>> {
        self.state.lock().open.values().map(Arc::clone).collect()
    }

    pub(crate) fn insert(&self, query: Arc<QueryResult>) {
        self.state.lock().open.insert(query.id, query);
    }

    /// An open query of this principal.
    ///
    /// # Errors
    /// `NotFound` with the reason, or the error that the query ended with.
    pub(crate) fn find(&self, principal: &Principal, id: QueryId) -> Result<Arc<QueryResult>> {
        let state = self.state.lock();
        if let Some(query) = state.open.get(&id).filter(|query| &query.principal == principal) {
            return Ok(Arc::clone(query));
        }
        let Some((_, ended)) = state.ended.get(&id).filter(|(owner, _)| owner == principal) else {
            return Err(Error::not_found(format!("query {id} not found"))
                .with_reason(Reason::UndefinedQuery)
                .with_hint("it never ran here, or its result was read or expired long ago; run it again"));
        };
        Err(match ended {
            Ended::Read => {
                Error::not_found(format!("the result of query {id} is not found: it has been read"))
                    .with_reason(Reason::UndefinedQuery)
                    .with_hint("run the query again, or set the session option `retryable_results`")
            }
            Ended::Expired => {
                Error::not_found(format!("the result of query {id} is not found: it has expired"))
                    .with_reason(Reason::UndefinedQuery)
                    .with_hint("read results sooner, renew them, or raise `limits.result_timeout`")
            }
            Ended::Failed(error) => error.duplicate(),
        })
    }

    /// Cancels a query on all nodes.
    ///
    /// # Errors
    /// `NotFound` for a query that is not known.
    pub(crate) async fn cancel(&self, principal: &Principal, id: QueryId) -> Result<CancelOutcome> {
        match self.find(principal, id) {
            Ok(query) => {
                query.cancel();
                self.end(id, Ended::Failed(Error::new(ErrorKind::Cancelled, "the query was cancelled")));
                query.wait_until_failed_remotely().await;
                Ok(CancelOutcome::Cancelled)
            }
            Err(error) => match self.state.lock().ended.get(&id).filter(|(owner, _)| owner == principal) {
                Some((_, Ended::Failed(ended))) if ended.kind() == ErrorKind::Cancelled => {
                    Ok(CancelOutcome::Cancelled)
                }
                Some(_) => Ok(CancelOutcome::NotCancellable),
                None => Err(error),
            },
        }
    }

    pub(crate) fn end(&self, id: QueryId, how: Ended) {
        let removed = {
            let mut state = self.state.lock();
            let removed = state.open.remove(&id);
            if let Some(query) = &removed {
                state.ended.insert(id, (query.principal.clone(), how));
                state.order.push_back(id);
                while state.order.len() > REMEMBERED {
                    if let Some(oldest) = state.order.pop_front() {
                        state.ended.remove(&oldest);
                    }
                }
            }
            removed
        };
        // Dropped outside of the lock: freeing may be slow.
        drop(removed);
    }

    /// Removes the result after its last reader.
    pub(crate) fn reader_gone(&self, query: &QueryResult) {
        if query.is_read() {
            let ended = query.failure().map_or(Ended::Read, Ended::Failed);
            self.end(query.id, ended);
        }
    }

    pub(crate) fn end_expired(&self, now: Instant) {
        for query in self.all() {
            if query.has_ended_remotely() {
                self.end(query.id, query.failure().map_or(Ended::Read, Ended::Failed));
                continue;
            }
            query.end_if_stalled();
            if !query.is_expired(now) {
                continue;
            }
            let reason = format!("the result of query {} is not found: it has expired", query.id);
            query.fail(Error::not_found(reason));
            self.end(query.id, Ended::Expired);
        }
    }

    /// Removes the results that only this session could read.
    pub(crate) fn session_closed(&self, session: SessionId) {
        let own = self.all().into_iter().filter(|query| query.session == session);
        for query in own.filter(|query| !query.outlives_session()) {
            query.cancel();
            self.end(query.id, Ended::Failed(Error::new(ErrorKind::Cancelled, "the session was closed")));
        }
    }

    pub(crate) fn cancel_of(&self, session: SessionId) {
        for query in self.all().into_iter().filter(|query| query.session == session) {
            query.cancel();
            self.end(query.id, Ended::Failed(Error::new(ErrorKind::Cancelled, "the query was cancelled")));
        }
    }

    /// Cancels a query that nobody will read.
    pub(crate) fn abandon(&self, query: &QueryResult) {
        query.cancel();
        self.end(query.id, Ended::Failed(Error::new(ErrorKind::Cancelled, "the caller left")));
    }

    /// Cancels all queries at the end of a drain.
    pub(crate) fn cancel_all(&self) {
        for query in self.all() {
            query.fail(Error::new(ErrorKind::Unavailable, "the server is stopping"));
        }
    }

    pub(crate) fn demand(&self) -> Demand {
        let (wanted, unwanted): (Vec<_>, Vec<_>) =
            self.all().into_iter().partition(|query| query.is_wanted());
        let running_unwanted = unwanted.iter().filter(|query| query.holds_slot()).count();
        Demand { wanted: !wanted.is_empty(), running_unwanted }
    }

    pub(crate) fn open(&self) -> usize {
        self.state.lock().open.len()
    }
}
