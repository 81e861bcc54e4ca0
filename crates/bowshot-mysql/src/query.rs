//! COM_QUERY: a text with one statement, or several if the client has enabled that. They run one after the other, up to the
//! first error.

use crate::connection::Connection;
use crate::encode::Format;
use crate::handshake::SERVER_VERSION;
use crate::result_writer::{ResultWriter, columns};
use crate::rewrite::rewritten;
use crate::server_packets::{self, Column};
use crate::status::{ConnectionError, Failure, Result};
use crate::variables::{truth, value};
use bowshot_api::{LastWrite, OptionValue, Request, Statement};
use bowshot_sql::mysql::{Effect, Statement as ClientStatement, StatementKind, executable, quoted_name};
use bowshot_sql::{DialectName, statement_spans};
use bytes::BufMut;
use std::sync::Arc;

impl Connection {
    /// Answers a text.
    pub(crate) async fn query(&mut self, sql: &str) -> Result<()> {
        let sql = executable(sql, SERVER_VERSION);
        let places = statement_spans(&sql, DialectName::MySql);
        if places.is_empty() {
            // A comment alone is nothing to do, and no error.
            if sql.split(';').next().is_some_and(|first| !first.trim().is_empty()) {
                self.clear_diagnostics();
                self.ok(0);
                return Ok(());
            }
            return Err(Failure::new(1065, "42000", "query was empty").into());
        }
        if places.len() > 1 && !self.is_multi {
            return Err(Failure::syntax("syntax error: one statement at a time")
                .with_hint("connect with CLIENT_MULTI_STATEMENTS, or whatever your client calls it")
                .into());
        }
        for (index, place) in places.iter().enumerate() {
            self.more = index + 1 < places.len();
            let text = sql.get(place.clone()).unwrap_or_default();
            let answered = Box::pin(self.statement(text)).await;
            if answered.is_err() {
                self.more = false;
                return answered;
            }
            self.wire.flush_if_full(&self.cancel).await?;
        }
        Ok(())
    }

    async fn statement(&mut self, sql: &str) -> Result<()> {
        let read = ClientStatement::parse(sql);
        if !read.as_ref().is_ok_and(|statement| statement.asks_conditions) {
            self.clear_diagnostics();
        }
        let statement = read?;
        match statement.kind {
            StatementKind::ShowConditions(selection) => {
                self.show_conditions(&selection);
                Ok(())
            }
            StatementKind::Plain(effect) => {
                self.before(effect).await?;
                self.check_safe(&statement)?;
                let sql = rewritten(sql, self.session.as_ref(), (self.state, Some(&self.user_variables)))?;
                self.plain(&sql, statement.is_select).await
            }
            StatementKind::ShowCreate(parts) => {
                let sql = self.show_create(&parts).await?;
                self.plain(&sql, statement.is_select).await
            }
            StatementKind::Load(load) => {
                self.before(Effect::Writes).await?;
                Box::pin(self.load(&load)).await
            }
            StatementKind::Bounded { milliseconds, from } => {
                let rest = sql.get(from..).unwrap_or_default();
                self.bounded(milliseconds, rest).await
            }
            StatementKind::Do { from } => self.compute(sql.get(from..).unwrap_or_default()).await,
            kind => {
                self.control(&kind).await?;
                self.ok(0);
                Ok(())
            }
        }
    }

    /// Computes expressions and discards the result.
    async fn compute(&mut self, expressions: &str) -> Result<()> {
        let sql = format!("SELECT {expressions}");
        let sql = rewritten(&sql, self.session.as_ref(), (self.state, Some(&self.user_variables)))?;
        let mut running = self.start(&Request::sql(sql.into_owned()), true).await?;
        running.drain(&mut self.wire, &self.cancel).await?;
        self.ok(0);
        Ok(())
    }

    /// Refuses a change of all rows of a table, if the client has set `sql_safe_updates`.
    pub(crate) fn check_safe(&self, statement: &ClientStatement) -> Result<(), Failure> {
        let is_on = || {
            let setting = value("sql_safe_updates", self.session.as_ref(), self.state);
            setting.is_ok_and(|setting| setting.as_deref().and_then(truth) == Some(true))
        };
        if !statement.changes_all_rows || !is_on() {
            return Ok(());
        }
        let message = "safe updates are on, and the statement has neither WHERE nor LIMIT";
        Err(Failure::new(1175, "HY000", message)
            .with_hint("name the rows with WHERE, or `SET sql_safe_updates = 0`"))
    }

    /// Plans once: the plan says whether the statement returns rows.
    async fn plain(&mut self, sql: &str, is_select: bool) -> Result<()> {
        let session = Arc::clone(&self.session);
        let prepared = self.wait_for(session.prepare(sql, None)).await?;
        let request = Request::prepared(prepared.id);
        let ran = if prepared.description.is_update {
            self.update(&request).await
        } else {
            self.send_rows(&request, is_select).await
        };
        let closed = session.close_prepared(prepared.id).await;
        ran?;
        closed.map_err(ConnectionError::from)
    }

    async fn send_rows(&mut self, request: &Request, is_select: bool) -> Result<()> {
        let mut running = self.start(request, is_select).await?;
        self.put_header(&columns(running.schema())?, None);
        running.send(&mut self.wire, &self.cancel, (Format::Text, None)).await?;
        self.finish_rows(&running);
        Ok(())
    }

    /// Ends the rows of a query, and sets the variables that depend on it.
    pub(crate) fn finish_rows(&mut self, running: &ResultWriter) {
        self.state.found = running.sent();
        // `SELECT last_insert_id(7)` has chosen one.
        self.note_generated(&self.session.last_write());
        self.end_of_rows(0);
    }

    fn note_generated(&mut self, last: &LastWrite) {
        if let Some(generated) = last.generated.and_then(|number| u64::try_from(number).ok()) {
            self.state.generated = generated;
        }
    }

    /// Runs a statement without rows.
    pub(crate) async fn update(&mut self, request: &Request) -> Result<()> {
        let session = Arc::clone(&self.session);
        let found = self.wait_for(session.update(request)).await?.unwrap_or(0);
        let last = session.last_write();
        self.add_notices(&last.notices);
        let rows = if self.counts_found() { found } else { last.changed.unwrap_or(found) };
        self.note_generated(&last);
        let number = last.generated.or(last.number).and_then(|number| u64::try_from(number).ok());
        self.ok_with_number((rows, number.unwrap_or(0)));
        Ok(())
    }

    /// Starts a statement that returns rows.
    pub(crate) async fn start(&mut self, request: &Request, is_select: bool) -> Result<ResultWriter> {
        let (server, session) = (Arc::clone(&self.server), Arc::clone(&self.session));
        let zone = value("time_zone", session.as_ref(), self.state)?;
        let zone = zone.filter(|zone| !zone.is_empty()).unwrap_or_else(|| "+00:00".to_owned());
        let mut running =
            ResultWriter::start(&mut self.wire, &self.cancel, (server, session), (request, zone)).await?;
        if is_select {
            running.end_after(self.state.select_limit);
        }
        Ok(running)
    }

    /// Sends the header of a result, with a status flag for a cursor.
    pub(crate) fn put_header(&mut self, columns: &[Column], cursor: Option<u16>) {
        self.wire.put(|out| server_packets::column_count(out, columns.len()));
        self.put_columns(columns);
        match cursor {
            Some(status) => self.end_of_rows(status),
            None if self.has_no_eof() => {}
            None => self.end_of_rows(0),
        }
    }

    pub(crate) fn put_columns(&mut self, columns: &[Column]) {
        for column in columns {
            self.wire.put(|out| server_packets::column(out, column));
        }
    }

    /// Runs a statement with a time limit.
    async fn bounded(&mut self, milliseconds: u64, sql: &str) -> Result<()> {
        const TIMEOUT: &str = "statement_timeout_ms";
        let session = Arc::clone(&self.session);
        let before = session.option(TIMEOUT);
        let bound = OptionValue::Int64(i64::try_from(milliseconds).unwrap_or(i64::MAX));
        session.set_option(TIMEOUT, Some(bound)).await?;
        let ran = match ClientStatement::parse(sql)?.kind {
            StatementKind::Bounded { .. } => {
                Err(Failure::syntax("syntax error: SET STATEMENT within another one").into())
            }
            _ => Box::pin(self.statement(sql)).await,
        };
        session.set_option(TIMEOUT, before).await?;
        ran
    }

    /// Begins or commits a transaction, as a statement requires.
    pub(crate) async fn before(&mut self, effect: Effect) -> Result<()> {
        let is_open = self.session.in_transaction();
        let changes = matches!(effect, Effect::Writes | Effect::Defines);
        if changes && self.state.read_only && !is_open {
            let message = "cannot execute statement in a READ ONLY transaction";
            return Err(Failure::new(1792, "25006", message)
                .with_hint("`SET SESSION TRANSACTION READ WRITE`")
                .into());
        }
        match effect {
            Effect::Defines if is_open => self.act("COMMIT").await,
            Effect::Reads | Effect::Writes if !self.state.autocommit && !is_open => self.begin(false).await,
            _ => Ok(()),
        }
    }

    async fn begin(&mut self, read_only: bool) -> Result<()> {
        self.act(if read_only || self.state.read_only { "BEGIN READ ONLY" } else { "BEGIN" }).await
    }

    async fn act(&mut self, sql: &str) -> Result<()> {
        let session = Arc::clone(&self.session);
        self.wait_for(session.update(&Request::sql(sql))).await.map(drop)
    }

    /// Runs a statement that the front end handles itself.
    pub(crate) async fn control(&mut self, kind: &StatementKind) -> Result<()> {
        let is_open = self.session.in_transaction();
        match kind {
            StatementKind::Begin { read_only } => {
                if is_open {
                    self.act("COMMIT").await?;
                }
                self.begin(*read_only).await
            }
            StatementKind::Commit { chain: true } if is_open => self.act("COMMIT AND CHAIN").await,
            StatementKind::Rollback { chain: true } if is_open => self.act("ROLLBACK AND CHAIN").await,
            StatementKind::Commit { chain: true } | StatementKind::Rollback { chain: true } => {
                self.begin(false).await
            }
            StatementKind::Commit { .. } if is_open => self.act("COMMIT").await,
            StatementKind::Rollback { .. } if is_open => self.act("ROLLBACK").await,
            StatementKind::LockTables if is_open => self.act("COMMIT").await,
            StatementKind::Commit { .. }
            | StatementKind::Rollback { .. }
            | StatementKind::LockTables
            | StatementKind::Nothing => Ok(()),
            StatementKind::Set(assignments) => self.assign(assignments).await,
            StatementKind::Use(name) => self.choose(name.clone()).await,
            StatementKind::Kill(kill, id) => Ok(self.number.kill(self.session.principal(), *id, *kill)?),
            StatementKind::Bounded { .. }
            | StatementKind::ShowCreate(_)
            | StatementKind::ShowConditions(_)
            | StatementKind::Load(_)
            | StatementKind::Do { .. }
            | StatementKind::Plain(_) => {
                Err(Failure::new(1105, "HY000", "a statement was sorted wrongly").into())
            }
        }
    }

    /// Commits the open transaction.
    pub(crate) async fn commit_open(&mut self) -> Result<()> {
        if self.session.in_transaction() { self.act("COMMIT").await } else { Ok(()) }
    }

    /// The columns of a table, with NULL in the place of their defaults ("COM_FIELD_LIST").
    pub(crate) async fn field_list(&mut self, table: &str) -> Result<()> {
        let session = Arc::clone(&self.session);
        let statement = Statement::Sql(format!("SELECT * FROM {}", quoted_name(table)));
        let description = self.wait_for(session.describe(&statement)).await?;
        for column in columns(&description.schema)? {
            self.wire.put(|out| {
                server_packets::column(out, &column);
                out.put_u8(0xfb);
            });
        }
        self.end_of_rows(0);
        Ok(())
    }
}

/// A 16-bit number of columns or parameters.
pub(crate) fn count(number: usize) -> Result<u16, Failure> {
    u16::try_from(number)
        .map_err(|_| Failure::new(1390, "HY000", "prepared statement contains too many placeholders"))
}
