//! Sessions of requests: one for each request, which ends with its answer, or one that the client has made and names by its
//! token. The token is the session's id, which only the principal who made it can use; an idle one ends after
//! `limits.session_timeout`, as every session does.

use crate::caller::{Busy, Caller};
use crate::chores::Chores;
use crate::order::{self, Options};
use crate::session_lock::SessionLock;
use crate::status::{Failure, Result, good};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bowshot_api::{
    BatchStream, Error, ErrorKind, Principal, QueryId, Server, Session, SessionId, StatementId,
    TransactionEnd,
};
use serde_json::json;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::sleep;

/// The header that names a session.
const SESSION: &str = "x-bowshot-session";
/// How often a session is used while it works for a request, so that it does not count as idle.
const LONGEST_TICK: Duration = Duration::from_secs(60);
const SHORTEST_TICK: Duration = Duration::from_millis(250);

/// A session that works for a request, and the place of that request. Dropped, it ends a session that is for this request alone.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) server: Arc<dyn Server>,
    pub(crate) session: Arc<dyn Session>,
    /// Whether the session ends with the request.
    pub(crate) is_own: bool,
    /// Whether a transaction around the statements of a text may be open.
    has_implicit: AtomicBool,
    /// Its lock on a session that other requests may use.
    lock: Option<SessionLock>,
    chores: Chores,
    _place: Busy,
}

/// A prepared statement, which is forgotten when this is dropped.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) id: StatementId,
    session: Arc<dyn Session>,
    chores: Chores,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.chores.forget(&self.session, self.id);
    }
}

impl Room {
    /// The session that the headers name, or a new one. Options that a named one gets stay with it.
    ///
    /// # Errors
    /// `NotFound` for a session that is not there or belongs to somebody else.
    pub(crate) async fn enter(caller: Caller, headers: &HeaderMap, options: Options) -> Result<Self> {
        Self::enter_for(caller, headers, options, "").await
    }

    /// That session, once it is locked for a request with this text.
    ///
    /// # Errors
    /// As `enter`, and `Timeout` where the lock does not come.
    pub(crate) async fn enter_for(
        caller: Caller,
        headers: &HeaderMap,
        options: Options,
        sql: &str,
    ) -> Result<Self> {
        let server = Arc::clone(&caller.context.server);
        let chores = caller.context.chores.clone();
        let (session, is_own) = match headers.get(SESSION) {
            Some(token) => {
                let token = token.to_str().unwrap_or_default();
                (find(server.as_ref(), token, &caller.principal)?, false)
            }
            None => (server.open_session(&caller.principal).await?, true),
        };
        let lock = if is_own {
            None
        } else {
            caller.context.locks.take(session.as_ref(), sql, server.limits()).await?
        };
        // From here on, what was opened is closed.
        let has_implicit = AtomicBool::new(false);
        let room = Self { server, session, is_own, has_implicit, lock, chores, _place: caller.into_place() };
        room.set(options).await?;
        Ok(room)
    }

    async fn set(&self, options: Options) -> bowshot_api::Result<()> {
        for (name, value) in options {
            self.session.set_option(&name, value).await.map_err(|error| match error.kind() {
                ErrorKind::NotFound => Error::invalid(format!("unknown option `{name}`"))
                    .with_hint("the session options are those of `SHOW ALL`"),
                _ => error,
            })?;
        }
        Ok(())
    }

    /// Gives the lock back: what is left to do needs the session no more.
    pub(crate) fn unlock(&mut self) {
        self.lock = None;
    }

    /// Plans a statement and keeps it.
    pub(crate) async fn prepare(&self, sql: &str) -> Result<(Kept, bowshot_api::Description)> {
        let prepared = self.while_used(self.session.prepare(sql, None)).await?;
        let (session, chores) = (Arc::clone(&self.session), self.chores.clone());
        Ok((Kept { id: prepared.id, session, chores }, prepared.description))
    }

    /// Begins a transaction around the statements that follow, unless one is open.
    pub(crate) async fn begin_implicit(&self) -> bowshot_api::Result<()> {
        self.has_implicit.store(true, Ordering::Relaxed);
        self.session.begin_implicit().await
    }

    /// Ends that transaction, if it is open and no BEGIN has taken it over.
    pub(crate) async fn end_implicit(&self, end: TransactionEnd) -> bowshot_api::Result<()> {
        if self.has_implicit.load(Ordering::Relaxed) {
            self.while_used(self.session.end_implicit(end)).await?;
            self.has_implicit.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Begins to read a partition of a query.
    pub(crate) async fn attach(&self, query: QueryId, partition: usize) -> bowshot_api::Result<BatchStream> {
        self.server.attach(self.session.principal(), query, partition).await
    }

    /// Does work of the session, which is in use meanwhile.
    pub(crate) async fn while_used<T>(&self, work: impl Future<Output = T>) -> T {
        let tick = (self.server.limits().session_timeout / 4).clamp(SHORTEST_TICK, LONGEST_TICK);
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = sleep(tick) => {
                    // To find a session is to use it. One that is gone says so itself.
                    _ = self.server.find_session(self.session.id(), self.session.principal());
                }
            }
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.is_own {
            self.chores.close(&self.session);
        } else if self.has_implicit.load(Ordering::Relaxed) {
            self.chores.undo(&self.session, self.lock.take());
        }
    }
}

fn find(server: &dyn Server, token: &str, principal: &Principal) -> bowshot_api::Result<Arc<dyn Session>> {
    let gone = || {
        Error::not_found("session not found: it was closed or has expired")
            .with_hint("make one with `POST /v1/sessions`, or leave the header `x-bowshot-session` away")
    };
    let id = SessionId::parse(token).ok_or_else(gone)?;
    server.find_session(id, principal).map_err(|error| match error.kind() {
        ErrorKind::NotFound => gone(),
        _ => error,
    })
}

/// Answers `POST /v1/sessions`.
pub(crate) async fn open(
    State(context): State<crate::Context>,
    caller: Caller,
    request: Request,
) -> Result<Response> {
    let options = order::session_options(request, context.server.limits()).await?;
    let session = context.server.open_session(&caller.principal).await?;
    let mut room = Room {
        server: Arc::clone(&context.server),
        session,
        is_own: true,
        has_implicit: AtomicBool::new(false),
        lock: None,
        chores: context.chores,
        _place: caller.into_place(),
    };
    room.set(options).await?;
    room.is_own = false;
    let idle = context.server.limits().session_timeout.as_secs();
    let body = json!({ "session": room.session.id().to_string(), "idle_timeout_seconds": idle });
    Ok(good(StatusCode::CREATED, &body))
}

/// Answers `DELETE /v1/sessions/{token}`.
pub(crate) async fn close(caller: Caller, Path(token): Path<String>) -> Result<Response> {
    let session = find(caller.context.server.as_ref(), &token, &caller.principal).map_err(Failure::from)?;
    session.close().await;
    Ok(StatusCode::NO_CONTENT.into_response())
}
