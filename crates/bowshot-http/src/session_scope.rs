//! The session of a request: a temporary one, or one that the client has opened and names by its token. The token is
//! the session id, usable only by its principal; idle sessions end after `limits.session_timeout`.

use crate::caller::{Caller, RequestPermit};
use crate::cleanup::CleanupQueue;
use crate::session_lock::SessionLock;
use crate::sql_request::{self, SessionOptions};
use crate::status::{Failure, Result, json_response};
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
/// Interval at which a session in use is marked as active.
const LONGEST_TICK: Duration = Duration::from_secs(60);
const SHORTEST_TICK: Duration = Duration::from_millis(250);

/// The session and permit of a request. Dropping it closes a temporary session.
#[derive(Debug)]
pub(crate) struct SessionScope {
    pub(crate) server: Arc<dyn Server>,
    pub(crate) session: Arc<dyn Session>,
    /// Whether the session is temporary.
    pub(crate) is_own: bool,
    /// Whether an implicit transaction may be open.
    has_implicit: AtomicBool,
    lock: Option<SessionLock>,
    cleanup: CleanupQueue,
    _permit: RequestPermit,
}

/// A prepared statement; dropping it closes it.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) id: StatementId,
    session: Arc<dyn Session>,
    cleanup: CleanupQueue,
}

impl Drop for Prepared {
    fn drop(&mut self) {
        self.cleanup.forget(&self.session, self.id);
    }
}

impl SessionScope {
    /// Finds the session of the header, or opens a temporary one, and sets options.
    ///
    /// # Errors
    /// `NotFound` for a session that is not there or belongs to somebody else.
    pub(crate) async fn enter(caller: Caller, headers: &HeaderMap, options: SessionOptions) -> Result<Self> {
        Self::enter_for(caller, headers, options, "").await
    }

    /// As `enter`, with the lock that `sql` needs.
    pub(crate) async fn enter_for(
        caller: Caller,
        headers: &HeaderMap,
        options: SessionOptions,
        sql: &str,
    ) -> Result<Self> {
        let server = Arc::clone(&caller.context.server);
        let cleanup = caller.context.cleanup.clone();
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
        // From here on, dropping the scope closes the session.
        let has_implicit = AtomicBool::new(false);
        let scope = Self {
            server,
            session,
            is_own,
            has_implicit,
            lock,
            cleanup,
            _permit: caller.into_request_permit(),
        };
        scope.set(options).await?;
        Ok(scope)
    }

    async fn set(&self, options: SessionOptions) -> bowshot_api::Result<()> {
        for (name, value) in options {
            self.session.set_option(&name, value).await.map_err(|error| match error.kind() {
                ErrorKind::NotFound => Error::invalid(format!("unknown option `{name}`"))
                    .with_hint("the session options are those of `SHOW ALL`"),
                _ => error,
            })?;
        }
        Ok(())
    }

    pub(crate) fn unlock(&mut self) {
        self.lock = None;
    }

    pub(crate) async fn prepare(&self, sql: &str) -> Result<(Prepared, bowshot_api::Description)> {
        let prepared = self.while_used(self.session.prepare(sql, None)).await?;
        let (session, cleanup) = (Arc::clone(&self.session), self.cleanup.clone());
        Ok((Prepared { id: prepared.id, session, cleanup }, prepared.description))
    }

    /// Begins an implicit transaction, unless one is open.
    pub(crate) async fn begin_implicit(&self) -> bowshot_api::Result<()> {
        self.has_implicit.store(true, Ordering::Relaxed);
        self.session.begin_implicit().await
    }

    pub(crate) async fn end_implicit(&self, end: TransactionEnd) -> bowshot_api::Result<()> {
        if self.has_implicit.load(Ordering::Relaxed) {
            self.while_used(self.session.end_implicit(end)).await?;
            self.has_implicit.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    pub(crate) async fn attach(&self, query: QueryId, partition: usize) -> bowshot_api::Result<BatchStream> {
        self.server.attach(self.session.principal(), query, partition).await
    }

    /// Runs work and keeps the session from idling out.
    pub(crate) async fn while_used<T>(&self, work: impl Future<Output = T>) -> T {
        let tick = (self.server.limits().session_timeout / 4).clamp(SHORTEST_TICK, LONGEST_TICK);
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = sleep(tick) => {
                    // Finding a session marks it as used; errors surface in `work`.
                    _ = self.server.find_session(self.session.id(), self.session.principal());
                }
            }
        }
    }
}

impl Drop for SessionScope {
    fn drop(&mut self) {
        if self.is_own {
            self.cleanup.close(&self.session);
        } else if self.has_implicit.load(Ordering::Relaxed) {
            self.cleanup.undo(&self.session, self.lock.take());
        }
    }
}

fn find(server: &dyn Server, token: &str, principal: &Principal) -> bowshot_api::Result<Arc<dyn Session>> {
    let gone = || {
        Error::not_found("session not found: it was closed or has expired")
            .with_hint("make one with `POST /v1/sessions`, or omit the header `x-bowshot-session`")
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
    let options = sql_request::session_options(request, context.server.limits()).await?;
    let session = context.server.open_session(&caller.principal).await?;
    let mut scope = SessionScope {
        server: Arc::clone(&context.server),
        session,
        is_own: true,
        has_implicit: AtomicBool::new(false),
        lock: None,
        cleanup: context.cleanup,
        _permit: caller.into_request_permit(),
    };
    scope.set(options).await?;
    scope.is_own = false;
    let idle = context.server.limits().session_timeout.as_secs();
    let body = json!({ "session": scope.session.id().to_string(), "idle_timeout_seconds": idle });
    Ok(json_response(StatusCode::CREATED, &body))
}

/// Answers `DELETE /v1/sessions/{token}`.
pub(crate) async fn close(caller: Caller, Path(token): Path<String>) -> Result<Response> {
    let session = find(caller.context.server.as_ref(), &token, &caller.principal).map_err(Failure::from)?;
    session.close().await;
    Ok(StatusCode::NO_CONTENT.into_response())
}
