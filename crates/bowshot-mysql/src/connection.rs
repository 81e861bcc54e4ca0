//! One connection: answers command by command, until its client or the server ends it. It owns all state of the connection,
//! and closes its session.

use crate::auth::{Origin, authenticate};
use crate::cancel::ConnectionId;
use crate::capability::{
    AUTOCOMMIT, DEPRECATE_EOF, FOUND_ROWS, IN_TRANSACTION, LOCAL_FILES, MORE_RESULTS, MULTI_STATEMENTS,
};
use crate::command::Command;
use crate::compression::Compression;
use crate::diagnostics::Diagnostics;
use crate::handshake::{Challenge, HandshakeResponse};
use crate::listen::close;
use crate::packet_framing::Wire;
use crate::payload::Payload;
use crate::prepared::Prepared;
use crate::server_packets::{self, Status};
use crate::startup::{Login, name_program, open, use_database};
use crate::status::{ConnectionError, Failure, Result};
use crate::user_variables::UserVariables;
use crate::variables::ConnectionState;
use bowshot_api::{Notice, Server, Session, call_span, commented_parent};
use bowshot_rowwire::connection::keep_alive;
use bowshot_sql::mysql::Kill;
use futures::FutureExt;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// The state of one connection.
pub(crate) struct Connection {
    pub(crate) wire: Wire,
    pub(crate) server: Arc<dyn Server>,
    pub(crate) session: Arc<dyn Session>,
    pub(crate) number: ConnectionId,
    origin: Origin,
    challenge: Challenge,
    /// The capabilities of both ends.
    capabilities: u32,
    /// Cancels the command that is being answered.
    pub(crate) cancel: CancellationToken,
    pub(crate) state: ConnectionState,
    pub(crate) diagnostics: Diagnostics,
    /// User variables, set with `SET @name`.
    pub(crate) user_variables: UserVariables,
    /// Whether a text may have several statements.
    pub(crate) is_multi: bool,
    /// Whether another result of the same text follows.
    pub(crate) more: bool,
    /// The database that the client has chosen.
    pub(crate) database: Option<String>,
    pub(crate) statements: HashMap<u32, Prepared>,
    pub(crate) last_statement: u32,
    /// Bytes of all long parameter values, with their overhead.
    pub(crate) long_bytes: usize,
}

impl Connection {
    /// Confirms the login.
    pub(crate) fn new(
        login: Login,
        server: Arc<dyn Server>,
        session: Arc<dyn Session>,
        (number, origin): (ConnectionId, Origin),
    ) -> Self {
        let Login { wire, response, challenge } = login;
        let state = ConnectionState::new(number.id, origin.listen_port, server.limits());
        let mut connection = Self {
            wire,
            server,
            session,
            number,
            origin,
            challenge,
            capabilities: response.capabilities,
            cancel: CancellationToken::new(),
            state,
            diagnostics: Diagnostics::default(),
            user_variables: UserVariables::default(),
            is_multi: response.capabilities & MULTI_STATEMENTS != 0,
            more: false,
            database: response.database,
            statements: HashMap::new(),
            last_statement: 0,
            long_bytes: 0,
        };
        connection.number.belongs_to(connection.session.principal());
        connection.wire.set_limits(connection.server.limits());
        connection.ok(0);
        connection.wire.compress(Compression::agreed(response.capabilities, response.zstd_level));
        connection
    }

    /// Answers messages until the end, then closes the session.
    pub(crate) async fn run(mut self, drain: CancellationToken) {
        let answered = AssertUnwindSafe(self.answer_all(&drain)).catch_unwind().await;
        self.statements.clear();
        self.session.close().await;
        match answered {
            Ok(Ok(())) => self.wire.end().await,
            Ok(Err(error)) => close(self.wire, error).await,
            Err(_) => {
                // The panic hook has logged where.
                close(self.wire, Failure::new(1105, "HY000", "the server has a defect").fatal()).await;
            }
        }
    }

    async fn answer_all(&mut self, drain: &CancellationToken) -> Result<()> {
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
                Err(error) => Err(error),
            };
            self.number.end();
            self.more = false;
            match answered {
                Ok(()) => {}
                Err(ConnectionError::Statement(failure)) => self.fail(&failure),
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits for the next command, and keeps the session from expiring.
    async fn next(&mut self, drain: &CancellationToken) -> Result<Option<Payload>> {
        self.wire.flush().await?;
        self.wire.begin();
        let end = self.number.end_of_connection();
        tokio::select! {
            biased;
            () = end.cancelled() => Err(Failure::new(1317, "70100", "the connection was killed").fatal()),
            () = self.session.until_closed() => {
                Err(Failure::new(1317, "70100", "the connection was killed").fatal())
            }
            command = self.wire.command() => command,
            () = drain.cancelled() => {
                Err(Failure::new(1053, "08S01", "server shutdown in progress").fatal())
            }
            never = keep_alive(self.server.as_ref(), self.session.as_ref()) => match never {},
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

    /// Changes the default schema.
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

    /// Answers COM_STATISTICS with a line of text, without a header.
    fn statistics(&mut self) {
        let status = self.server.status();
        let line = format!(
            "Sessions: {}  Running: {}  Queued: {}  Open results: {}",
            status.sessions, status.running_queries, status.queued_queries, status.open_results
        );
        self.wire.put(|out| out.extend_from_slice(line.as_bytes()));
    }

    /// Resets the session, with the same user and database.
    async fn reset(&mut self) -> Result<()> {
        let principal = self.session.principal().clone();
        let session = open(&self.server, &principal, self.database.as_deref()).await?;
        self.replace(session).await;
        self.ok(0);
        Ok(())
    }

    /// Authenticates as another user. A client that fails loses the connection.
    async fn change_user(&mut self, body: Payload) -> Result<()> {
        let response = HandshakeResponse::parse_change(body, self.capabilities).map_err(Failure::fatal)?;
        let login = (&response, &self.challenge);
        let principal = authenticate(&mut self.wire, self.server.as_ref(), login, self.origin).await?;
        let session = open(&self.server, &principal, response.database.as_deref()).await?;
        name_program(session.as_ref(), &response).await;
        self.number.belongs_to(&principal);
        self.database = response.database;
        self.replace(session).await;
        self.ok(0);
        Ok(())
    }

    async fn replace(&mut self, session: Arc<dyn Session>) {
        let before = std::mem::replace(&mut self.session, session);
        self.statements.clear();
        self.long_bytes = 0;
        before.close().await;
        self.state = ConnectionState::new(self.number.id, self.origin.listen_port, self.server.limits());
        self.diagnostics.clear();
        self.user_variables = UserVariables::default();
        self.is_multi = self.capabilities & MULTI_STATEMENTS != 0;
    }

    /// The state of the session in an answer, with additional flags.
    fn status(&self, more: u16) -> Status {
        let mut flags = more;
        if self.session.in_transaction() {
            flags |= IN_TRANSACTION;
        }
        if self.state.autocommit {
            flags |= AUTOCOMMIT;
        }
        if self.more {
            flags |= MORE_RESULTS;
        }
        Status { flags, warnings: self.state.warnings }
    }

    /// Clears the conditions of the last statement.
    pub(crate) fn clear_diagnostics(&mut self) {
        self.diagnostics.clear();
        (self.state.warnings, self.state.errors) = (0, 0);
    }

    /// Adds the notices of a statement.
    pub(crate) fn add_notices(&mut self, notices: &[Notice]) {
        self.diagnostics.add_notices(notices);
        (self.state.warnings, self.state.errors) = self.diagnostics.counts();
    }

    fn fail(&mut self, failure: &Failure) {
        self.diagnostics.add_error(failure);
        (self.state.warnings, self.state.errors) = self.diagnostics.counts();
        self.wire.put(|out| server_packets::error(out, failure));
    }

    /// Answers a statement without rows.
    pub(crate) fn ok(&mut self, rows: u64) {
        self.ok_with_number((rows, 0));
    }

    /// Answers a change of rows, with the number generated for the first one.
    pub(crate) fn ok_with_number(&mut self, counts: (u64, u64)) {
        let status = self.status(0);
        self.wire.put(|out| server_packets::ok(out, counts, status));
    }

    /// Whether an UPDATE counts rows found, not rows changed.
    pub(crate) fn counts_found(&self) -> bool {
        self.capabilities & FOUND_ROWS != 0
    }

    /// Whether results have no EOF packet between columns and rows.
    pub(crate) fn has_no_eof(&self) -> bool {
        self.capabilities & DEPRECATE_EOF != 0
    }

    /// Whether the client sends files for LOAD DATA LOCAL.
    pub(crate) fn sends_files(&self) -> bool {
        self.capabilities & LOCAL_FILES != 0
    }

    /// Ends rows, with additional status flags.
    pub(crate) fn end_of_rows(&mut self, more: u16) {
        let (status, has_no_eof) = (self.status(more), self.has_no_eof());
        self.wire.put(|out| match has_no_eof {
            true => server_packets::ok_for_eof(out, status),
            false => server_packets::eof(out, status),
        });
    }

    /// Waits for the server, for as long as the client is there and nobody kills the statement.
    pub(crate) async fn wait_for<T>(
        &mut self,
        work: impl Future<Output = bowshot_api::Result<T>>,
    ) -> Result<T> {
        self.wire.wait_for(work, &self.cancel).await
    }
}
