//! A text with any number of statements (PostgreSQL manual, "Simple Query"). They run one after the other; the first error ends
//! the text.

use crate::backend::{self, Column};
use crate::connection::Connection;
use crate::lex::split;
use crate::message::Format;
use crate::portal::{Running, columns, with_origins};
use crate::startup;
use crate::statement::{Sort, verb};
use crate::status::{Failure, Result, Trouble};
use crate::tag::tag;
use bowshot_api::{Request, Statement, TransactionEnd};
use std::sync::Arc;

impl Connection {
    /// Answers a text with all but ReadyForQuery.
    pub(crate) async fn query(&mut self, sql: &str) -> Result<()> {
        // The unnamed ones are gone with every text.
        self.forget("").await;
        self.portals.remove("");
        let places = split(sql);
        if places.is_empty() {
            backend::bare(self.wire.out(), backend::EMPTY_QUERY);
            return Ok(());
        }
        for (index, place) in places.iter().enumerate() {
            let text = sql.get(place.clone()).unwrap_or_default();
            let before = sql.get(..place.start).unwrap_or_default().chars().count();
            let others_follow = index + 1 < places.len();
            // Whoever called takes an error for the end of the implicit transaction.
            self.statement(text, others_follow).await.map_err(|trouble| trouble.placed(text, before))?;
        }
        self.end_implicit(TransactionEnd::Commit).await
    }

    /// The statements of a text are one transaction as far as none of them begins or ends one (PostgreSQL manual, "Multiple
    /// Statements in a Simple Query"). The last one needs none for itself.
    async fn statement(&mut self, sql: &str, others_follow: bool) -> Result<()> {
        let sort = Sort::of(sql)?;
        self.check_transaction(&sort)?;
        if others_follow && sort.joins_transaction() {
            self.begin_implicit().await?;
        }
        self.reported.ran(sql);
        match sort {
            Sort::Plain => self.plain(sql).await,
            Sort::Copy(copy) => self.copy(&copy).await,
            other => self.control(sql, &other).await,
        }
    }

    /// Planned once: what the plan tells decides how it runs.
    async fn plain(&mut self, sql: &str) -> Result<()> {
        self.is_new = false;
        let session = Arc::clone(&self.session);
        let prepared = self.attend(session.prepare(sql, None)).await?;
        let ran = self.planned(sql, &Request::prepared(prepared.id), prepared.description.is_update).await;
        let closed = session.close_prepared(prepared.id).await;
        ran?;
        closed.map_err(Trouble::from)
    }

    async fn planned(&mut self, sql: &str, request: &Request, is_update: bool) -> Result<()> {
        let session = Arc::clone(&self.session);
        if is_update {
            let rows = self.attend(session.update(request)).await?;
            self.begin_again(sql).await?;
            self.complete_update(sql, rows);
            return Ok(());
        }
        let mut running = self.start(request).await?;
        let mut described: Vec<Column> = columns(running.schema(), &[Format::Text])?;
        if let Statement::Prepared(id) = &request.statement {
            described = with_origins(described, session.origins(*id));
        }
        backend::row_description(self.wire.out(), &described);
        running.read_as(&described);
        let (sent, _) = running.send(&mut self.wire, &self.cancel, None).await?;
        backend::complete(self.wire.out(), &tag(sql, Some(sent)));
        Ok(())
    }

    /// Starts a statement that gives rows.
    pub(crate) async fn start(&mut self, request: &Request) -> Result<Running> {
        let (server, session) = (Arc::clone(&self.server), Arc::clone(&self.session));
        let zone = self.reported.zone(session.as_ref());
        let running = Running::start(&mut self.wire, &self.cancel, (server, session), request).await?;
        Ok(running.in_zone(zone))
    }

    /// Runs a statement about transactions or about what this front end keeps.
    pub(crate) async fn control(&mut self, sql: &str, sort: &Sort) -> Result<()> {
        let is_open = self.session.in_transaction();
        match sort {
            Sort::Begin if is_open => self.warn("25001", "there is already a transaction in progress"),
            Sort::Commit | Sort::Rollback if !is_open => {
                self.warn("25P01", "there is no transaction in progress");
                let is_commit = *sort == Sort::Commit;
                let end = if is_commit { TransactionEnd::Commit } else { TransactionEnd::Rollback };
                self.end_implicit(end).await?;
            }
            // The changes of a transaction that has failed are not kept, whatever its client says.
            Sort::Commit if self.failed => {
                self.run_control("ROLLBACK").await?;
                self.transaction_ended();
                backend::complete(self.wire.out(), "ROLLBACK");
                return Ok(());
            }
            Sort::Commit | Sort::Rollback => {
                self.run_control(sql).await?;
                self.transaction_ended();
            }
            Sort::SetTransaction(_) if !is_open => {
                self.warn("25P01", "SET TRANSACTION can only be used in transaction blocks");
            }
            // Whether a transaction only reads is said when it begins: one that has done nothing begins once more.
            Sort::SetTransaction(modes) if self.is_new => {
                self.run_control("ROLLBACK").await?;
                self.run_control(&format!("BEGIN TRANSACTION {modes}")).await?;
                self.is_new = true;
            }
            Sort::SetTransaction(_) => self.run_control(sql).await?,
            Sort::RollbackTo => {
                self.run_control(sql).await?;
                self.failed = false;
            }
            Sort::Deallocate(name) if self.statements.contains_key(name) => self.forget(name).await,
            Sort::ForgetAll => {
                let names: Vec<String> = self.statements.keys().cloned().collect();
                for name in names {
                    self.forget(&name).await;
                }
                if verb(sql) == "DISCARD" {
                    self.portals.clear();
                }
                self.run_control(sql).await?;
                self.begin_again(sql).await?;
            }
            Sort::Empty => {
                backend::bare(self.wire.out(), backend::EMPTY_QUERY);
                return Ok(());
            }
            Sort::Begin => {
                self.run_control(sql).await?;
                // It has taken over what was open.
                (self.is_new, self.has_implicit) = (!self.has_implicit, false);
            }
            Sort::Deallocate(_) => self.run_control(sql).await?,
            Sort::Copy(_) | Sort::Plain => {
                return Err(Failure::new("XX000", "a statement was sorted wrongly").into());
            }
        }
        backend::complete(self.wire.out(), &tag(sql, None));
        Ok(())
    }

    /// Behind a statement that sets values back, those that the client began with are set again.
    pub(crate) async fn begin_again(&mut self, sql: &str) -> Result<()> {
        for (name, value) in self.reported.begun_with(sql) {
            startup::set(self.session.as_ref(), &name, &value).await?;
        }
        Ok(())
    }

    async fn run_control(&mut self, sql: &str) -> Result<()> {
        self.is_new = false;
        let session = Arc::clone(&self.session);
        self.attend(session.update(&Request::sql(sql))).await.map(drop)
    }

    fn transaction_ended(&mut self) {
        self.failed = false;
        self.portals.clear();
    }
}
