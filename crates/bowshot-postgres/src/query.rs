//! The simple protocol: a text with any number of statements (PostgreSQL manual, "Simple Query"). They run one after the
//! other, up to the first error.

use crate::backend_messages::{self, Column};
use crate::connection::Connection;
use crate::frontend_messages::Format;
use crate::result_writer::{ResultWriter, columns, with_origins};
use crate::startup;
use crate::status::{ConnectionError, Failure, Result, with_position};
use bowshot_api::{Request, Statement, TransactionEnd};
use bowshot_sql::postgres::{Statement as ClientStatement, StatementKind};
use bowshot_sql::{DialectName, statement_spans};
use std::sync::Arc;

impl Connection {
    /// Answers a text, up to ReadyForQuery.
    pub(crate) async fn query(&mut self, sql: &str) -> Result<()> {
        // Each text closes the unnamed statement and portal.
        self.close_statement("").await;
        self.portals.remove("");
        let places = statement_spans(sql, DialectName::Postgres);
        if places.is_empty() {
            backend_messages::bare(self.wire.out(), backend_messages::EMPTY_QUERY);
            return Ok(());
        }
        for (index, place) in places.iter().enumerate() {
            let text = sql.get(place.clone()).unwrap_or_default();
            let before = sql.get(..place.start).unwrap_or_default().chars().count();
            let others_follow = index + 1 < places.len();
            // After an error the caller ends the implicit transaction.
            self.statement(text, others_follow).await.map_err(|error| with_position(error, text, before))?;
        }
        self.end_implicit(TransactionEnd::Commit).await
    }

    /// The statements of a text are one transaction, unless they begin or end one themselves (PostgreSQL manual, "Multiple
    /// Statements in a Simple Query"). The last one alone needs none.
    async fn statement(&mut self, sql: &str, others_follow: bool) -> Result<()> {
        let statement = ClientStatement::parse(sql)?;
        self.check_transaction(&statement.kind)?;
        if others_follow && statement.kind.joins_transaction() {
            self.begin_implicit().await?;
        }
        self.parameters.note_statement(&statement);
        match &statement.kind {
            StatementKind::Plain => self.plain(sql, &statement).await,
            StatementKind::Copy(copy) => self.copy(copy).await,
            _ => self.control(sql, &statement).await,
        }
    }

    /// Plans once: the plan says whether the statement returns rows.
    async fn plain(&mut self, sql: &str, statement: &ClientStatement) -> Result<()> {
        self.is_new = false;
        let session = Arc::clone(&self.session);
        let prepared = self.wait_for(session.prepare(sql, None)).await?;
        let request = Request::prepared(prepared.id);
        let ran = self.planned(statement, &request, prepared.description.is_update).await;
        let closed = session.close_prepared(prepared.id).await;
        ran?;
        closed.map_err(ConnectionError::from)
    }

    async fn planned(
        &mut self,
        statement: &ClientStatement,
        request: &Request,
        is_update: bool,
    ) -> Result<()> {
        let session = Arc::clone(&self.session);
        if is_update {
            let rows = self.wait_for(session.update(request)).await?;
            self.restore_startup_options(statement).await?;
            self.complete_update(&statement.tag, rows);
            return Ok(());
        }
        let mut running = self.start(request).await?;
        let mut described: Vec<Column> = columns(running.schema(), &[Format::Text])?;
        if let Statement::Prepared(id) = &request.statement {
            described = with_origins(described, session.origins(*id));
        }
        backend_messages::row_description(self.wire.out(), &described);
        running.set_formats(&described);
        let (sent, _) = running.send(&mut self.wire, &self.cancel, None).await?;
        backend_messages::complete(self.wire.out(), &statement.tag.with_rows(sent));
        Ok(())
    }

    /// Starts a statement that returns rows.
    pub(crate) async fn start(&mut self, request: &Request) -> Result<ResultWriter> {
        let (server, session) = (Arc::clone(&self.server), Arc::clone(&self.session));
        let zone = self.parameters.zone(session.as_ref());
        let running = ResultWriter::start(&mut self.wire, &self.cancel, (server, session), request).await?;
        Ok(running.with_zone(zone))
    }

    /// Runs a statement about transactions or about prepared statements of the front end.
    pub(crate) async fn control(&mut self, sql: &str, statement: &ClientStatement) -> Result<()> {
        let is_open = self.session.in_transaction();
        match &statement.kind {
            StatementKind::Begin if is_open => {
                self.warn("25001", "there is already a transaction in progress")
            }
            StatementKind::Commit { chain: false } | StatementKind::Rollback { chain: false } if !is_open => {
                self.warn("25P01", "there is no transaction in progress");
                let is_commit = matches!(statement.kind, StatementKind::Commit { .. });
                let end = if is_commit { TransactionEnd::Commit } else { TransactionEnd::Rollback };
                self.end_implicit(end).await?;
            }
            // A failed transaction is rolled back, whatever its client says.
            StatementKind::Commit { chain } if self.failed => {
                self.run_control(if *chain { "ROLLBACK AND CHAIN" } else { "ROLLBACK" }).await?;
                self.transaction_ended(*chain);
                backend_messages::complete(self.wire.out(), "ROLLBACK");
                return Ok(());
            }
            StatementKind::Commit { chain } | StatementKind::Rollback { chain } => {
                self.run_control(sql).await?;
                self.transaction_ended(*chain);
            }
            StatementKind::SetTransaction(_) if !is_open => {
                self.warn("25P01", "SET TRANSACTION can only be used in transaction blocks");
            }
            // The engine takes modes only with BEGIN: a transaction that has run nothing begins again.
            StatementKind::SetTransaction(modes) if self.is_new => {
                self.run_control("ROLLBACK").await?;
                self.run_control(&format!("BEGIN TRANSACTION {modes}")).await?;
                self.is_new = true;
            }
            StatementKind::SetTransaction(_) => self.run_control(sql).await?,
            StatementKind::RollbackTo => {
                self.run_control(sql).await?;
                self.failed = false;
            }
            StatementKind::Deallocate(name) if self.statements.contains_key(name) => {
                self.close_statement(name).await
            }
            StatementKind::CloseAll => {
                let names: Vec<String> = self.statements.keys().cloned().collect();
                for name in names {
                    self.close_statement(&name).await;
                }
                if statement.reset.is_some() {
                    self.portals.clear();
                }
                self.run_control(sql).await?;
                self.restore_startup_options(statement).await?;
            }
            StatementKind::Empty => {
                backend_messages::bare(self.wire.out(), backend_messages::EMPTY_QUERY);
                return Ok(());
            }
            StatementKind::Begin => {
                self.run_control(sql).await?;
                // It has made an implicit transaction an explicit one.
                (self.is_new, self.has_implicit) = (!self.has_implicit, false);
            }
            StatementKind::Deallocate(_) => self.run_control(sql).await?,
            StatementKind::Copy(_) | StatementKind::Plain => {
                return Err(Failure::new("XX000", "a statement was sorted wrongly").into());
            }
        }
        backend_messages::complete(self.wire.out(), &statement.tag.with_rows(0));
        Ok(())
    }

    /// Sets the options of the start-up packet again after a statement that has reset them.
    pub(crate) async fn restore_startup_options(&mut self, statement: &ClientStatement) -> Result<()> {
        for (name, value) in self.parameters.startup_options(statement) {
            startup::set(self.session.as_ref(), &name, &value).await?;
        }
        Ok(())
    }

    async fn run_control(&mut self, sql: &str) -> Result<()> {
        self.is_new = false;
        let session = Arc::clone(&self.session);
        self.wait_for(session.update(&Request::sql(sql))).await.map(drop)
    }

    /// `is_new`: another transaction has begun.
    fn transaction_ended(&mut self, is_new: bool) {
        (self.failed, self.is_new) = (false, is_new);
        self.portals.clear();
    }
}
