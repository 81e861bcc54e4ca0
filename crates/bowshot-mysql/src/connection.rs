//! One connection: command for command, until its client or the server ends it. All of its state is here and in the session that
//! ends with it.

use crate::auth::{Road, authenticate};
use crate::body::Body;
use crate::cancel::{Kill, Number};
use crate::capability::{
    AUTOCOMMIT, DEPRECATE_EOF, FOUND_ROWS, IN_TRANSACTION, LOCAL_FILES, MORE_RESULTS, MULTI_STATEMENTS,
};
use crate::command::Command;
use crate::compression::Compression;
use crate::diagnostics::Diagnostics;
use crate::handshake::{Challenge, Hello};
use crate::listen::farewell;
use crate::prepared::Prepared;
use crate::reply::{self, Status};
use crate::startup::{Guest, name_program, open, use_database};
use crate::status::{Failure, Result, Trouble};
use crate::user_variables::UserVariables;
use crate::variables::Own;
use crate::wire::Wire;
use bowshot_api::{Notice, Server, Session, call_span, commented_parent};
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
    pub(crate) number: Number,
    road: Road,
    challenge: Challenge,
    /// What the two ends can.
    capabilities: u32,
    /// Ends the command that is being answered.
    pub(crate) cancel: CancellationToken,
    pub(crate) own: Own,
    pub(crate) diagnostics: Diagnostics,
    /// What the client has set with `SET @name`.
    pub(crate) users: UserVariables,
    /// Whether one text may hold several statements.
    pub(crate) is_multi: bool,
    /// Whether the result that is being written is not the last one of its text.
    pub(crate) more: bool,
    /// The database that the client has chosen.
    pub(crate) database: Option<String>,
    pub(crate) statements: HashMap<u32, Prepared>,
    pub(crate) last_statement: u32,
    /// Bytes of values that have come in parts, with what keeping them costs.
    pub(crate) long_bytes: usize,
}

impl Connection {
    /// A connection whose client has been let in, and hears so.
    pub(crate) fn new(
        guest: Guest,
        server: Arc<dyn Server>,
        session: Arc<dyn Session>,
        (number, road): (Number, Road),
    ) -> Self {
        let Guest { wire, hello, challenge } = guest;
        let own = Own::new(number.id, road.entrance);
        let mut connection = Self {
            wire,
            server,
            session,
            number,
            road,
            challenge,
            capabilities: hello.capabilities,
            cancel: CancellationToken::new(),
            own,
            diagnostics: Diagnostics::default(),
            users: UserVariables::default(),
            is_multi: hello.capabilities & MULTI_STATEMENTS != 0,
            more: false,
            database: hello.database,
            statements: HashMap::new(),
            last_statement: 0,
            long_bytes: 0,
        };
        connection.number.belongs_to(connection.session.principal());
        connection.wire.is_known(connection.server.limits());
        connection.ok(0);
        connection.wire.compress(Compression::agreed(hello.capabilities, hello.zstd_level));
        connection
    }

    /// Talks until the end, and ends the session.
    pub(crate) async fn run(mut self, drain: CancellationToken) {
        let talked = AssertUnwindSafe(self.talk(&drain)).catch_unwind().await;
        self.statements.clear();
        self.session.close().await;
        match talked {
            Ok(Ok(())) => self.wire.end().await,
            Ok(Err(trouble)) => farewell(self.wire, trouble).await,
            Err(_) => {
                // The hook has logged where.
                farewell(self.wire, Failure::new(1105, "HY000", "the server has a defect").fatal()).await;
            }
        }
    }

    async fn talk(&mut self, drain: &CancellationToken) -> Result<()> {
        loop {
            let command = match self.next(drain).await? {
                Some(body) => Command::parse(body),
                None => return Ok(()),
            };
            self.more = false;
            self.cancel = self.number.begin();
            let answered = match command {
                Ok(Command::Quit) => return Ok(()),
                Ok(command) => self.answer(command).await,
                Err(trouble) => Err(trouble),
            };
            self.number.end();
            self.more = false;
            match answered {
                Ok(()) => {}
                Err(Trouble::Failed(failure)) => self.fail(&failure),
                Err(trouble) => return Err(trouble),
            }
        }
    }

    /// The next command, and meanwhile the session is kept alive.
    async fn next(&mut self, drain: &CancellationToken) -> Result<Option<Body>> {
        self.wire.flush().await?;
        self.wire.begin();
        let end = self.number.end_of_connection();
        let touch = (self.server.limits().session_timeout / 4).max(Duration::from_secs(1));
        let mut touch = interval_at(Instant::now() + touch, touch);
        touch.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = end.cancelled() => {
                    return Err(Failure::new(1317, "70100", "the connection was killed").fatal());
                }
                command = self.wire.command() => return command,
                () = drain.cancelled() => {
                    return Err(Failure::new(1053, "08S01", "server shutdown in progress").fatal());
                }
                _ = touch.tick() => {
                    // One that has expired is told so by its next statement.
                    _ = self.server.find_session(self.session.id(), self.session.principal());
                }
            }
        }
    }

    async fn answer(&mut self, command: Command) -> Result<()> {
        match command {
            Command::Query(sql) => {
                let span = call_span("mysql", "COM_QUERY", commented_parent(&sql));
                Box::pin(self.query(&sql)).instrument(span).await
            }
            Command::Prepare(sql) => {
                self.clear_diagnostics();
                let span = call_span("mysql", "COM_STMT_PREPARE", commented_parent(&sql));
                Box::pin(self.prepare(&sql)).instrument(span).await
            }
            Command::Execute { statement, cursor, rest } => {
                let parent = self.statements.get(&statement).and_then(Prepared::parent);
                let span = call_span("mysql", "COM_STMT_EXECUTE", parent);
                Box::pin(self.execute(statement, cursor, rest)).instrument(span).await
            }
            Command::Fetch { statement, rows } => Box::pin(self.fetch(statement, rows)).await,
            Command::LongData { statement, parameter, bytes } => {
                self.long_data(statement, parameter, &bytes);
                Ok(())
            }
            Command::Close(statement) => {
                self.close(statement).await;
                Ok(())
            }
            Command::Reset(statement) => self.reset_statement(statement),
            Command::UseDatabase(name) => {
                self.clear_diagnostics();
                self.choose(name).await?;
                self.ok(0);
                Ok(())
            }
            Command::FieldList { table } => Box::pin(self.field_list(&table)).await,
            Command::Statistics => {
                self.statistics();
                Ok(())
            }
            Command::Ping => {
                self.ok(0);
                Ok(())
            }
            Command::Kill(id) => {
                self.number.kill(self.session.principal(), id.into(), Kill::Connection)?;
                self.ok(0);
                Ok(())
            }
            Command::ChangeUser(body) => Box::pin(self.change_user(body)).await,
            Command::ResetConnection => Box::pin(self.reset()).await,
            Command::SetOption(option) => self.set_option(option),
            Command::Quit | Command::Other => Err(Failure::new(1047, "08S01", "unknown command").into()),
        }
    }

    /// Makes another schema the one of names that do not say theirs.
    pub(crate) async fn choose(&mut self, name: String) -> Result<()> {
        use_database(self.session.as_ref(), &name).await?;
        self.database = Some(name);
        Ok(())
    }

    /// 0 allows several statements in one text, 1 forbids them.
    fn set_option(&mut self, option: u16) -> Result<()> {
        match option {
            0 | 1 => self.is_multi = option == 0,
            _ => return Err(Failure::new(1047, "08S01", "unknown option").into()),
        }
        self.end_of_rows(0);
        Ok(())
    }

    /// A line of text alone, as `mysqladmin status` shows it.
    fn statistics(&mut self) {
        let status = self.server.status();
        let line = format!(
            "Sessions: {}  Running: {}  Queued: {}  Open results: {}",
            status.sessions, status.running_queries, status.queued_queries, status.open_results
        );
        self.wire.put(|out| out.extend_from_slice(line.as_bytes()));
    }

    /// Begins again, as the same user and with the same database.
    async fn reset(&mut self) -> Result<()> {
        let principal = self.session.principal().clone();
        let session = open(&self.server, &principal, self.database.as_deref()).await?;
        self.replace(session).await;
        self.ok(0);
        Ok(())
    }

    /// Begins again as somebody else. Whoever that is not loses the connection.
    async fn change_user(&mut self, body: Body) -> Result<()> {
        let hello = Hello::parse_change(body, self.capabilities).map_err(Failure::fatal)?;
        let told = (&hello, &self.challenge);
        let principal = authenticate(&mut self.wire, self.server.as_ref(), told, self.road).await?;
        let session = open(&self.server, &principal, hello.database.as_deref()).await?;
        name_program(session.as_ref(), &hello).await;
        self.number.belongs_to(&principal);
        self.database = hello.database;
        self.replace(session).await;
        self.ok(0);
        Ok(())
    }

    async fn replace(&mut self, session: Arc<dyn Session>) {
        let before = std::mem::replace(&mut self.session, session);
        self.statements.clear();
        self.long_bytes = 0;
        before.close().await;
        self.own = Own::new(self.number.id, self.road.entrance);
        self.diagnostics.clear();
        self.users = UserVariables::default();
        self.is_multi = self.capabilities & MULTI_STATEMENTS != 0;
    }

    /// What is said of the session with each answer, with more of it.
    fn status(&self, more: u16) -> Status {
        let mut flags = more;
        if self.session.in_transaction() {
            flags |= IN_TRANSACTION;
        }
        if self.own.autocommit {
            flags |= AUTOCOMMIT;
        }
        if self.more {
            flags |= MORE_RESULTS;
        }
        Status { flags, warnings: self.own.warnings }
    }

    /// Forgets what the statement before has said.
    pub(crate) fn clear_diagnostics(&mut self) {
        self.diagnostics.clear();
        (self.own.warnings, self.own.errors) = (0, 0);
    }

    /// Keeps what a statement says beside its result.
    pub(crate) fn add_notices(&mut self, notices: &[Notice]) {
        self.diagnostics.add_notices(notices);
        (self.own.warnings, self.own.errors) = self.diagnostics.counts();
    }

    fn fail(&mut self, failure: &Failure) {
        self.diagnostics.add_error(failure);
        (self.own.warnings, self.own.errors) = self.diagnostics.counts();
        self.wire.put(|out| reply::error(out, failure));
    }

    /// Answers what gives no rows.
    pub(crate) fn ok(&mut self, rows: u64) {
        self.ok_with_number((rows, 0));
    }

    /// Answers what has changed rows, with the number that the first of them was given.
    pub(crate) fn ok_with_number(&mut self, told: (u64, u64)) {
        let status = self.status(0);
        self.wire.put(|out| reply::ok(out, told, status));
    }

    /// Whether an UPDATE tells how many rows it has found, and not how many it has changed.
    pub(crate) fn counts_found(&self) -> bool {
        self.capabilities & FOUND_ROWS != 0
    }

    /// Whether results have no packet between columns and rows.
    pub(crate) fn has_no_eof(&self) -> bool {
        self.capabilities & DEPRECATE_EOF != 0
    }

    /// Whether the client sends files that a statement names.
    pub(crate) fn sends_files(&self) -> bool {
        self.capabilities & LOCAL_FILES != 0
    }

    /// Ends rows, with more to say of the session.
    pub(crate) fn end_of_rows(&mut self, more: u16) {
        let (status, has_no_eof) = (self.status(more), self.has_no_eof());
        self.wire.put(|out| match has_no_eof {
            true => reply::ok_for_eof(out, status),
            false => reply::eof(out, status),
        });
    }

    /// Waits for the server, for as long as the client is there and nobody kills.
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

/// What is told of a statement that was killed.
pub(crate) fn cancelled() -> Failure {
    Failure::new(1317, "70100", "query execution was interrupted")
}
