//! A text with any number of statements (PostgreSQL manual, "Simple Query"). They run one after the other; the first error ends
//! the text.

use crate::backend::{self, Column};
use crate::connection::Connection;
use crate::cursor::Announced;
use crate::lex::split;
use crate::message::Format;
use crate::portal::{Life, Running, columns};
use crate::startup;
use crate::statement::{Sort, verb};
use crate::status::{Failure, Result, Trouble};
use crate::tag::tag;
use bowshot_api::{Request, TransactionEnd};
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
        let texts: Vec<&str> = places.iter().filter_map(|place| sql.get(place.clone())).collect();
        if self.is_one_transaction(&texts) {
            let around = Arc::clone(&self.session);
            self.around = Some(self.attend(async { around.begin().await }).await?);
        }
        let mut ran = Ok(());
        for (place, text) in places.iter().zip(&texts) {
            let before = sql.get(..place.start).unwrap_or_default().chars().count();
            ran = self.statement(text).await.map_err(|trouble| trouble.placed(text, before));
            if ran.is_err() {
                break;
            }
        }
        if let Some(around) = self.around.take() {
            let end = if ran.is_ok() { TransactionEnd::Commit } else { TransactionEnd::Rollback };
            let ended = self.session.end(around, end).await;
            ran?;
            return ended.map_err(Trouble::from);
        }
        ran
    }

    /// Whether the statements of a text have to take effect all together: several of them change rows, and none says where
    /// a transaction begins or ends (PostgreSQL manual, "Multiple Statements in a Simple Query").
    fn is_one_transaction(&self, texts: &[&str]) -> bool {
        let verbs: Vec<String> = texts.iter().map(|text| verb(text)).collect();
        let changes = |verb: &String| matches!(verb.as_str(), "INSERT" | "UPDATE" | "DELETE" | "MERGE");
        let fits = |verb: &String| {
            changes(verb)
                || matches!(
                    verb.as_str(),
                    "SELECT" | "VALUES" | "TABLE" | "CREATE" | "DROP" | "ALTER" | "TRUNCATE"
                )
        };
        !self.session.in_transaction()
            && verbs.iter().all(fits)
            && verbs.iter().filter(|verb| changes(verb)).count() > 1
    }

    async fn statement(&mut self, sql: &str) -> Result<()> {
        let sort = Sort::of(sql)?;
        self.check_transaction(&sort)?;
        self.reported.ran(sql);
        match sort {
            Sort::Declare(cursor) => {
                self.is_new = false;
                self.declare(sql, &cursor).await
            }
            Sort::Fetch(fetched) => self.fetch(&fetched, &[Format::Text], Announced::Now).await,
            Sort::Plain => self.plain(sql).await,
            Sort::Copy(copy) => self.copy(&copy).await,
            other => self.control(sql, &other).await,
        }
    }

    /// Planned once: what the plan tells decides how it runs.
    async fn plain(&mut self, sql: &str) -> Result<()> {
        self.is_new = false;
        let (session, around) = (Arc::clone(&self.session), self.around);
        let prepared = self.attend(session.prepare(sql, around)).await?;
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
            backend::complete(self.wire.out(), &tag(sql, rows));
            return Ok(());
        }
        let mut running = self.start(request).await?;
        let described: Vec<Column> = columns(running.schema(), &[Format::Text])?;
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
            }
            // The changes of a transaction that has failed are not kept, whatever its client says.
            Sort::Commit if self.failed => {
                self.run_control("ROLLBACK").await?;
                self.transaction_ended(TransactionEnd::Rollback);
                backend::complete(self.wire.out(), "ROLLBACK");
                return Ok(());
            }
            Sort::Commit | Sort::Rollback => {
                self.run_control(sql).await?;
                let is_commit = *sort == Sort::Commit;
                let end = if is_commit { TransactionEnd::Commit } else { TransactionEnd::Rollback };
                self.transaction_ended(end);
            }
            Sort::Close(name) => return self.close_cursor(name.as_deref()),
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
                self.is_new = true;
            }
            Sort::Deallocate(_) => self.run_control(sql).await?,
            Sort::Copy(_) | Sort::Plain | Sort::Declare(_) | Sort::Fetch(_) => {
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

    /// Cursors that are held stay after a commit, and others do not.
    fn transaction_ended(&mut self, end: TransactionEnd) {
        self.failed = false;
        self.portals.retain(|_, portal| {
            if end == TransactionEnd::Commit && portal.life == Life::Held {
                portal.life = Life::Kept;
            }
            portal.life == Life::Kept
        });
    }
}
