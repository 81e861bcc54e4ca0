//! A text with one statement, or with several where the client may send them ("COM_QUERY"). They run one after the other; the
//! first error ends the text.

use crate::connection::Connection;
use crate::diagnostics;
use crate::lex::{executable, quoted_name, split};
use crate::reply::{self, Column};
use crate::rewrite::rewritten;
use crate::rows::Format;
use crate::running::{Running, columns};
use crate::statement::{Effect, Sort, check_condition, is_select};
use crate::status::{Failure, Result, Trouble};
use crate::variables::{truth, value};
use bowshot_api::{LastWrite, OptionValue, Request, Statement};
use bytes::BufMut;
use std::sync::Arc;

impl Connection {
    /// Answers a text.
    pub(crate) async fn query(&mut self, sql: &str) -> Result<()> {
        let sql = executable(sql);
        let places = split(&sql);
        if places.is_empty() {
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
            self.wire.flush_some(&self.cancel).await?;
        }
        Ok(())
    }

    async fn statement(&mut self, sql: &str) -> Result<()> {
        if !diagnostics::asks(sql) {
            self.clear_diagnostics();
        } else if let Some(shown) = diagnostics::parse(sql) {
            self.show_conditions(&shown);
            return Ok(());
        }
        match Sort::of(sql)? {
            Sort::Plain(effect) => {
                self.before(effect).await?;
                self.check_safe(sql)?;
                let sql = rewritten(sql, self.session.as_ref(), (self.own, Some(&self.users)))?;
                self.plain(&sql).await
            }
            Sort::ShowCreate(parts) => {
                let sql = self.show_create(&parts).await?;
                self.plain(&sql).await
            }
            Sort::Load(load) => {
                self.before(Effect::Writes).await?;
                Box::pin(self.load(&load)).await
            }
            Sort::Bounded { milliseconds, from } => {
                let rest = sql.get(from..).unwrap_or_default();
                self.bounded(milliseconds, rest).await
            }
            Sort::Do { from } => self.compute(sql.get(from..).unwrap_or_default()).await,
            sort => {
                self.control(&sort).await?;
                self.ok(0);
                Ok(())
            }
        }
    }

    /// Computes expressions for what they do, and tells nothing of them.
    async fn compute(&mut self, expressions: &str) -> Result<()> {
        let sql = format!("SELECT {expressions}");
        let sql = rewritten(&sql, self.session.as_ref(), (self.own, Some(&self.users)))?;
        let mut running = self.start(&Request::sql(sql.into_owned()), true).await?;
        running.drain(&mut self.wire, &self.cancel).await?;
        self.ok(0);
        Ok(())
    }

    /// Refuses a change of all rows of a table where the client wants that.
    pub(crate) fn check_safe(&self, sql: &str) -> Result<(), Failure> {
        let refused = check_condition(sql);
        let is_on = || {
            let kept = value("sql_safe_updates", self.session.as_ref(), self.own);
            kept.is_ok_and(|kept| kept.as_deref().and_then(truth) == Some(true))
        };
        if refused.is_err() && is_on() { refused } else { Ok(()) }
    }

    /// Planned once: what the plan tells decides how it runs.
    async fn plain(&mut self, sql: &str) -> Result<()> {
        let session = Arc::clone(&self.session);
        let prepared = self.attend(session.prepare(sql, None)).await?;
        let ran = self.planned(sql, &Request::prepared(prepared.id), prepared.description.is_update).await;
        let closed = session.close_prepared(prepared.id).await;
        ran?;
        closed.map_err(Trouble::from)
    }

    async fn planned(&mut self, sql: &str, request: &Request, is_update: bool) -> Result<()> {
        if is_update {
            return self.update(request).await;
        }
        let mut running = self.start(request, is_select(sql)).await?;
        self.tell(&columns(running.schema())?, None);
        running.send(&mut self.wire, &self.cancel, (Format::Text, None)).await?;
        self.finish_rows(&running);
        Ok(())
    }

    /// Ends the rows of a query, and remembers what variables tell of it.
    pub(crate) fn finish_rows(&mut self, running: &Running) {
        self.own.found = running.sent();
        // `SELECT last_insert_id(7)` has chosen one.
        self.note_generated(&self.session.last_write());
        self.end_of_rows(0);
    }

    fn note_generated(&mut self, last: &LastWrite) {
        if let Some(generated) = last.generated.and_then(|number| u64::try_from(number).ok()) {
            self.own.generated = generated;
        }
    }

    /// Runs a statement for its effect.
    pub(crate) async fn update(&mut self, request: &Request) -> Result<()> {
        let session = Arc::clone(&self.session);
        let found = self.attend(session.update(request)).await?.unwrap_or(0);
        let last = session.last_write();
        self.add_notices(&last.notices);
        let rows = if self.counts_found() { found } else { last.changed.unwrap_or(found) };
        self.note_generated(&last);
        let number = last.generated.or(last.number).and_then(|number| u64::try_from(number).ok());
        self.ok_with_number((rows, number.unwrap_or(0)));
        Ok(())
    }

    /// Starts a statement that gives rows.
    pub(crate) async fn start(&mut self, request: &Request, is_select: bool) -> Result<Running> {
        let (server, session) = (Arc::clone(&self.server), Arc::clone(&self.session));
        let zone = value("time_zone", session.as_ref(), self.own)?;
        let zone = zone.filter(|zone| !zone.is_empty()).unwrap_or_else(|| "+00:00".to_owned());
        let mut running =
            Running::start(&mut self.wire, &self.cancel, (server, session), (request, zone)).await?;
        if is_select {
            running.end_after(self.own.select_limit);
        }
        Ok(running)
    }

    /// Tells the columns of a result, and of a cursor that it is one.
    pub(crate) fn tell(&mut self, columns: &[Column], cursor: Option<u16>) {
        self.wire.put(|out| reply::column_count(out, columns.len()));
        self.tell_each(columns);
        match cursor {
            Some(status) => self.end_of_rows(status),
            None if self.has_no_eof() => {}
            None => self.end_of_rows(0),
        }
    }

    pub(crate) fn tell_each(&mut self, columns: &[Column]) {
        for column in columns {
            self.wire.put(|out| reply::column(out, column));
        }
    }

    /// A statement that may run so long and no longer.
    async fn bounded(&mut self, milliseconds: u64, sql: &str) -> Result<()> {
        const TIMEOUT: &str = "statement_timeout_ms";
        let session = Arc::clone(&self.session);
        let before = session.options().into_iter().find(|(name, _)| name == TIMEOUT).map(|(_, value)| value);
        let bound = OptionValue::Int64(i64::try_from(milliseconds).unwrap_or(i64::MAX));
        session.set_option(TIMEOUT, Some(bound)).await?;
        let ran = match Sort::of(sql)? {
            Sort::Bounded { .. } => {
                Err(Failure::syntax("syntax error: SET STATEMENT within another one").into())
            }
            _ => Box::pin(self.statement(sql)).await,
        };
        session.set_option(TIMEOUT, before).await?;
        ran
    }

    /// What has to be before a statement may run.
    pub(crate) async fn before(&mut self, effect: Effect) -> Result<()> {
        let is_open = self.session.in_transaction();
        let changes = matches!(effect, Effect::Writes | Effect::Defines);
        if changes && self.own.read_only && !is_open {
            let message = "cannot execute statement in a READ ONLY transaction";
            return Err(Failure::new(1792, "25006", message)
                .with_hint("`SET SESSION TRANSACTION READ WRITE`")
                .into());
        }
        match effect {
            Effect::Defines if is_open => self.act("COMMIT").await,
            Effect::Reads | Effect::Writes if !self.own.autocommit && !is_open => self.begin(false).await,
            _ => Ok(()),
        }
    }

    async fn begin(&mut self, read_only: bool) -> Result<()> {
        self.act(if read_only || self.own.read_only { "BEGIN READ ONLY" } else { "BEGIN" }).await
    }

    async fn act(&mut self, sql: &str) -> Result<()> {
        let session = Arc::clone(&self.session);
        self.attend(session.update(&Request::sql(sql))).await.map(drop)
    }

    /// Runs a statement about transactions, variables, or about what this front end keeps.
    pub(crate) async fn control(&mut self, sort: &Sort) -> Result<()> {
        let is_open = self.session.in_transaction();
        match sort {
            Sort::Begin { read_only } => {
                if is_open {
                    self.act("COMMIT").await?;
                }
                self.begin(*read_only).await
            }
            Sort::Commit if is_open => self.act("COMMIT").await,
            Sort::Rollback if is_open => self.act("ROLLBACK").await,
            Sort::LockTables if is_open => self.act("COMMIT").await,
            Sort::Commit | Sort::Rollback | Sort::LockTables | Sort::Nothing => Ok(()),
            Sort::Set(assignments) => self.assign(assignments).await,
            Sort::Use(name) => self.choose(name.clone()).await,
            Sort::Kill(kill, id) => Ok(self.number.kill(self.session.principal(), *id, *kill)?),
            Sort::Bounded { .. } | Sort::ShowCreate(_) | Sort::Load(_) | Sort::Do { .. } | Sort::Plain(_) => {
                Err(Failure::new(1105, "HY000", "a statement was sorted wrongly").into())
            }
        }
    }

    /// Ends the transaction that is open, for a mode that has none.
    pub(crate) async fn commit_open(&mut self) -> Result<()> {
        if self.session.in_transaction() { self.act("COMMIT").await } else { Ok(()) }
    }

    /// The columns of a table, with their defaults, which are not told ("COM_FIELD_LIST").
    pub(crate) async fn field_list(&mut self, table: &str) -> Result<()> {
        let session = Arc::clone(&self.session);
        let statement = Statement::Sql(format!("SELECT * FROM {}", quoted_name(table)));
        let told = self.attend(session.describe(&statement)).await?;
        for column in columns(&told.schema)? {
            self.wire.put(|out| {
                reply::column(out, &column);
                out.put_u8(0xfb);
            });
        }
        self.end_of_rows(0);
        Ok(())
    }
}

/// So many columns, or parameters, as the answer to a prepared statement has room for.
pub(crate) fn count(number: usize) -> Result<u16, Failure> {
    u16::try_from(number)
        .map_err(|_| Failure::new(1390, "HY000", "prepared statement contains too many placeholders"))
}
