//! One connection: message for message, until its client or the server ends it. All of its state is here and in the session
//! that ends with it.

use crate::backend::{self, Severity, TransactionState};
use crate::cancel::Key;
use crate::extended::Prepared;
use crate::listen::farewell;
use crate::message::Message;
use crate::portal::Portal;
use crate::reported::Reported;
use crate::statement::Sort;
use crate::status::{Failure, Result, Trouble};
use crate::tag::tag;
use crate::wire::Wire;
use bowshot_api::{Server, Session, TransactionEnd, call_span, commented_parent};
use futures::FutureExt;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// See the module.
pub(crate) struct Connection {
    pub(crate) wire: Wire,
    pub(crate) server: Arc<dyn Server>,
    pub(crate) session: Arc<dyn Session>,
    key: Key,
    /// Ends the message that is being answered.
    pub(crate) cancel: CancellationToken,
    /// Whether a statement has failed in the transaction that is open.
    pub(crate) failed: bool,
    /// Whether a transaction has begun around the statements of one text, or between two Syncs, which no client knows of.
    pub(crate) has_implicit: bool,
    pub(crate) statements: HashMap<String, Arc<Prepared>>,
    pub(crate) portals: HashMap<String, Portal>,
    pub(crate) reported: Reported,
    /// Whether the transaction that is open has done nothing yet.
    pub(crate) is_new: bool,
    /// After an error everything up to the next Sync is left out.
    skipping: bool,
    /// After a COPY that has failed its rows may still come.
    pub(crate) copy_failed: bool,
}

impl Connection {
    pub(crate) fn new(
        wire: Wire,
        server: Arc<dyn Server>,
        (session, reported): (Arc<dyn Session>, Reported),
        key: Key,
    ) -> Self {
        Self {
            reported,
            wire,
            server,
            session,
            key,
            cancel: CancellationToken::new(),
            failed: false,
            has_implicit: false,
            statements: HashMap::new(),
            portals: HashMap::new(),
            is_new: false,
            skipping: false,
            copy_failed: false,
        }
    }

    /// Talks until the end, and ends the session.
    pub(crate) async fn run(mut self, drain: CancellationToken) {
        let talked = AssertUnwindSafe(self.talk(&drain)).catch_unwind().await;
        self.portals.clear();
        self.session.close().await;
        match talked {
            Ok(Ok(())) => self.wire.end().await,
            Ok(Err(trouble)) => farewell(self.wire, trouble).await,
            Err(_) => {
                // The hook has logged where.
                farewell(self.wire, Failure::new("XX000", "the server has a defect").fatal()).await;
            }
        }
    }

    async fn talk(&mut self, drain: &CancellationToken) -> Result<()> {
        loop {
            let Some(message) = self.next(drain).await? else { return Ok(()) };
            if message == Message::Terminate {
                return Ok(());
            }
            self.cancel = self.key.begin();
            let answered = self.answer(message).await;
            self.key.end();
            answered?;
        }
    }

    /// The next message, and meanwhile the session is kept alive.
    async fn next(&mut self, drain: &CancellationToken) -> Result<Option<Message>> {
        if self.wire.next_tag().is_none() {
            self.wire.flush().await?;
        }
        let touch = (self.server.limits().session_timeout / 4).max(Duration::from_secs(1));
        let mut touch = interval_at(Instant::now() + touch, touch);
        touch.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                message = self.wire.message() => return message,
                () = drain.cancelled() => {
                    let message = "terminating connection due to administrator command";
                    return Err(Failure::new("57P01", message).fatal());
                }
                _ = touch.tick() => {
                    // One that has expired is told so by its next statement.
                    _ = self.server.find_session(self.session.id(), self.session.principal());
                }
            }
        }
    }

    async fn answer(&mut self, message: Message) -> Result<()> {
        if message == Message::Sync {
            self.skipping = false;
            self.copy_failed = false;
            if let Err(trouble) = self.end_implicit(TransactionEnd::Commit).await {
                self.fail(trouble).await?;
            }
            return self.ready().await;
        }
        if self.skipping {
            return Ok(());
        }
        let is_extended = matches!(
            message,
            Message::Parse { .. }
                | Message::Bind(_)
                | Message::Describe(_)
                | Message::Execute { .. }
                | Message::Close(_)
        );
        let is_simple = matches!(message, Message::Query(_) | Message::FunctionCall);
        let answered = match message {
            Message::Query(sql) => {
                let span = call_span("postgresql", "Query", commented_parent(&sql));
                Box::pin(self.query(&sql)).instrument(span).await
            }
            Message::Parse { name, sql, types } => {
                let span = call_span("postgresql", "Parse", commented_parent(&sql));
                Box::pin(self.parse(name, sql, &types)).instrument(span).await
            }
            Message::Bind(bind) => Box::pin(self.bind(bind)).await,
            Message::Describe(target) => Box::pin(self.describe(&target)).await,
            Message::Execute { portal, rows } => {
                let statement = self.portals.get(&portal).map(|portal| portal.statement.sql());
                let span = call_span("postgresql", "Execute", statement.and_then(commented_parent));
                Box::pin(self.execute(&portal, rows)).instrument(span).await
            }
            Message::Close(target) => self.close(&target).await,
            Message::Flush => self.wire.flush().await,
            Message::FunctionCall => Err(Failure::new("0A000", "function calls are not supported").into()),
            Message::CopyData(_) | Message::CopyDone | Message::CopyFail(_) => Ok(()),
            Message::Password(_) | Message::Sync | Message::Terminate => {
                Err(Failure::protocol("a message came out of turn").fatal())
            }
        };
        if let Err(trouble) = answered {
            self.fail(trouble).await?;
            self.skipping = is_extended;
        }
        if is_simple {
            self.ready().await?;
        }
        Ok(())
    }

    /// Tells the client of an error; a transaction has failed with it.
    async fn fail(&mut self, trouble: Trouble) -> Result<()> {
        let Trouble::Failed(failure) = trouble else { return Err(trouble) };
        self.end_implicit(TransactionEnd::Rollback).await?;
        self.failed = self.session.in_transaction();
        backend::report(self.wire.out(), Severity::Error, &failure);
        Ok(())
    }

    async fn ready(&mut self) -> Result<()> {
        let state = self.state();
        if state == TransactionState::Idle {
            self.portals.clear();
        }
        self.reported.tell_changes(self.session.as_ref(), self.wire.out());
        backend::ready(self.wire.out(), state);
        self.wire.flush().await
    }

    /// Begins a transaction around the statements that come together, unless one is open.
    pub(crate) async fn begin_implicit(&mut self) -> Result<()> {
        if !self.is_in_block() {
            let session = Arc::clone(&self.session);
            self.attend(session.begin_implicit()).await?;
            self.has_implicit = true;
        }
        Ok(())
    }

    /// Whether statements run in a transaction, of their client or around those that come together.
    pub(crate) fn is_in_block(&self) -> bool {
        self.has_implicit || self.session.in_transaction()
    }

    /// Ends the transaction around the statements that came together, unless a BEGIN among them has taken it over.
    pub(crate) async fn end_implicit(&mut self, end: TransactionEnd) -> Result<()> {
        if std::mem::take(&mut self.has_implicit) {
            self.session.end_implicit(end).await?;
        }
        Ok(())
    }

    pub(crate) fn state(&mut self) -> TransactionState {
        self.failed &= self.session.in_transaction();
        match (self.session.in_transaction(), self.failed) {
            (false, _) => TransactionState::Idle,
            (true, false) => TransactionState::Open,
            (true, true) => TransactionState::Failed,
        }
    }

    /// Refuses what may not run in a transaction that has failed.
    pub(crate) fn check_transaction(&mut self, sort: &Sort) -> Result<()> {
        if self.state() == TransactionState::Failed && !sort.ends_failure() && *sort != Sort::Empty {
            let message = "current transaction is aborted, commands ignored until end of transaction block";
            return Err(Failure::new("25P02", message).with_hint("end it with ROLLBACK").into());
        }
        Ok(())
    }

    pub(crate) fn warn(&mut self, code: &'static str, message: &str) {
        backend::report(self.wire.out(), Severity::Warning, &Failure::new(code, message));
    }

    /// Completes a statement without rows, and says what of it has no effect.
    pub(crate) fn complete_update(&mut self, sql: &str, rows: Option<u64>) {
        let notices = self.session.last_write().notices;
        if !notices.is_empty() && self.takes_notices() {
            for notice in &notices {
                backend::report(self.wire.out(), Severity::Notice, &Failure::from(notice));
            }
        }
        backend::complete(self.wire.out(), &tag(sql, rows));
    }

    fn takes_notices(&self) -> bool {
        let least = self.session.setting("client_min_messages");
        !matches!(least.as_deref(), Some("warning" | "error" | "fatal" | "panic"))
    }

    /// Waits for the server, for as long as the client is there and nobody cancels.
    pub(crate) async fn attend<T>(
        &mut self,
        work: impl Future<Output = bowshot_api::Result<T>>,
    ) -> Result<T> {
        attend(&mut self.wire, &self.cancel, work).await
    }
}

/// As [`Connection::attend`].
pub(crate) async fn attend<T>(
    wire: &mut Wire,
    cancel: &CancellationToken,
    work: impl Future<Output = bowshot_api::Result<T>>,
) -> Result<T> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(cancelled().into()),
        done = work => done.map_err(Trouble::from),
        () = wire.gone() => Err(Trouble::Gone),
    }
}

/// What is told of a statement that was cancelled.
pub(crate) fn cancelled() -> Failure {
    Failure::new("57014", "canceling statement due to user request")
}
