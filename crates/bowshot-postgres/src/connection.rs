//! One connection: answers message by message, until its client or the server ends it. It owns all state of the connection,
//! and closes its session.

use crate::backend_messages::{self, Severity, TransactionState};
use crate::cancel::CancelKey;
use crate::frontend_messages::Message;
use crate::listen::close;
use crate::message_framing::Wire;
use crate::parameter_status::ParameterStatus;
use crate::portal::Portal;
use crate::prepared::Prepared;
use crate::status::{ConnectionError, Failure, Result};
use bowshot_api::{Server, Session, TransactionEnd, call_span, commented_parent};
use bowshot_rowwire::connection::keep_alive;
use bowshot_sql::postgres::{CommandTag, StatementKind};
use futures::FutureExt;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

pub(crate) struct Connection {
    pub(crate) wire: Wire,
    pub(crate) server: Arc<dyn Server>,
    pub(crate) session: Arc<dyn Session>,
    key: CancelKey,
    /// Cancels the message that is being answered.
    pub(crate) cancel: CancellationToken,
    /// Whether a statement has failed in the open transaction.
    pub(crate) failed: bool,
    /// Whether an implicit transaction is open, around the statements of one text or between two Syncs.
    pub(crate) has_implicit: bool,
    pub(crate) statements: HashMap<String, Arc<Prepared>>,
    pub(crate) portals: HashMap<String, Portal>,
    pub(crate) parameters: ParameterStatus,
    /// Whether the open transaction has run no statement yet.
    pub(crate) is_new: bool,
    /// After an error all messages up to the next Sync are skipped.
    skipping: bool,
    /// After a failed COPY its rows may still come.
    pub(crate) copy_failed: bool,
}

impl Connection {
    pub(crate) fn new(
        wire: Wire,
        server: Arc<dyn Server>,
        (session, parameters): (Arc<dyn Session>, ParameterStatus),
        key: CancelKey,
    ) -> Self {
        Self {
            parameters,
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

    /// Answers messages until the end, then closes the session.
    pub(crate) async fn run(mut self, drain: CancellationToken) {
        let answered = AssertUnwindSafe(self.answer_all(&drain)).catch_unwind().await;
        self.portals.clear();
        self.session.close().await;
        match answered {
            Ok(Ok(())) => self.wire.end().await,
            Ok(Err(error)) => close(self.wire, error).await,
            Err(_) => {
                // The panic hook has logged where.
                close(self.wire, Failure::new("XX000", "the server has a defect").fatal()).await;
            }
        }
    }

    async fn answer_all(&mut self, drain: &CancellationToken) -> Result<()> {
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

    /// Waits for the next message, and keeps the session from expiring.
    async fn next(&mut self, drain: &CancellationToken) -> Result<Option<Message>> {
        self.wire.flush_before_next().await?;
        let terminated = "terminating connection due to administrator command";
        tokio::select! {
            biased;
            message = self.wire.message() => message,
            () = drain.cancelled() => Err(Failure::new("57P01", terminated).fatal()),
            () = self.session.until_closed() => Err(Failure::new("57P01", terminated).fatal()),
            never = keep_alive(self.server.as_ref(), self.session.as_ref()) => match never {},
        }
    }

    async fn answer(&mut self, message: Message) -> Result<()> {
        if message == Message::Sync {
            self.skipping = false;
            self.copy_failed = false;
            if let Err(error) = self.end_implicit(TransactionEnd::Commit).await {
                self.fail(error).await?;
            }
            self.ready();
            return Ok(());
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
                Err(Failure::protocol("protocol violation: unexpected message").fatal())
            }
        };
        if let Err(error) = answered {
            self.fail(error).await?;
            self.skipping = is_extended;
        }
        if is_simple {
            self.ready();
        }
        Ok(())
    }

    /// Reports an error; an open transaction has failed with it.
    async fn fail(&mut self, error: ConnectionError) -> Result<()> {
        let ConnectionError::Statement(failure) = error else { return Err(error) };
        self.end_implicit(TransactionEnd::Rollback).await?;
        let had_failed = self.failed;
        self.failed = self.session.in_transaction();
        backend_messages::report(self.wire.out(), Severity::Error, &failure);
        if self.failed && !had_failed {
            // A cancelled statement may hold its transaction for some time yet.
            self.wire.flush().await?;
            self.session.release_after_error().await;
        }
        Ok(())
    }

    fn ready(&mut self) {
        let state = self.state();
        if state == TransactionState::Idle {
            self.portals.clear();
        }
        self.parameters.send_changes(self.session.as_ref(), self.wire.out());
        backend_messages::ready(self.wire.out(), state);
    }

    /// Begins an implicit transaction, unless one is open.
    pub(crate) async fn begin_implicit(&mut self) -> Result<()> {
        if !self.is_in_block() {
            let session = Arc::clone(&self.session);
            self.wait_for(session.begin_implicit()).await?;
            self.has_implicit = true;
        }
        Ok(())
    }

    /// Whether statements run in a transaction, explicit or implicit.
    pub(crate) fn is_in_block(&self) -> bool {
        self.has_implicit || self.session.in_transaction()
    }

    /// Ends the implicit transaction, unless a BEGIN has made it an explicit one.
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
    pub(crate) fn check_transaction(&mut self, kind: &StatementKind) -> Result<()> {
        if self.state() == TransactionState::Failed && !kind.ends_failure() && *kind != StatementKind::Empty {
            let message = "current transaction is aborted, commands ignored until end of transaction block";
            return Err(Failure::new("25P02", message).with_hint("end it with ROLLBACK").into());
        }
        Ok(())
    }

    pub(crate) fn warn(&mut self, code: &'static str, message: &str) {
        backend_messages::report(self.wire.out(), Severity::Warning, &Failure::new(code, message));
    }

    /// Completes a statement without rows, with the notices of what had no effect.
    pub(crate) fn complete_update(&mut self, tag: &CommandTag, rows: Option<u64>) {
        let notices = self.session.last_write().notices;
        if !notices.is_empty() && self.takes_notices() {
            for notice in &notices {
                backend_messages::report(self.wire.out(), Severity::Notice, &Failure::from(notice));
            }
        }
        backend_messages::complete(self.wire.out(), &tag.with_rows(rows.unwrap_or(0)));
    }

    fn takes_notices(&self) -> bool {
        let least = self.session.setting("client_min_messages");
        !matches!(least.as_deref(), Some("warning" | "error" | "fatal" | "panic"))
    }

    /// Waits for the server, for as long as the client is there and does not cancel.
    pub(crate) async fn wait_for<T>(
        &mut self,
        work: impl Future<Output = bowshot_api::Result<T>>,
    ) -> Result<T> {
        self.wire.wait_for(work, &self.cancel).await
    }
}
