//! Prepared statements of the protocol: planned once, with parameters and rows in binary, all rows at once or fetched from a
//! cursor.

use crate::capability::{CURSOR_EXISTS, LAST_ROW_SENT};
use crate::connection::Connection;
use crate::decode::{self, ParameterType};
use crate::encode::{ColumnType, Format};
use crate::handshake::SERVER_VERSION;
use crate::payload::Payload;
use crate::query::count;
use crate::result_writer::{ResultWriter, columns};
use crate::rewrite::rewritten;
use crate::server_packets::{self, Column};
use crate::status::{Failure, Result};
use arrow::datatypes::SchemaRef;
use bowshot_api::{Request, StatementId, commented_parent};
use bowshot_sql::mysql::{Effect, Statement as ClientStatement, StatementKind, executable};
use bowshot_sql::{DialectName, statement_spans};
use bytes::BytesMut;
use std::collections::HashMap;
use std::sync::Arc;

/// "CURSOR_TYPE_READ_ONLY"
const READ_ONLY_CURSOR: u8 = 1;

/// Bytes that a long value costs beside its content.
const LONG_OVERHEAD: usize = 64;

/// A prepared statement.
pub(crate) struct Prepared {
    kind: StatementKind,
    planned: Option<Planned>,
    /// Whether `sql_select_limit` counts for it.
    is_select: bool,
    /// Types of the parameters, as the client has declared them last.
    types: Vec<ParameterType>,
    /// Values sent by COM_STMT_SEND_LONG_DATA.
    long: HashMap<u16, BytesMut>,
    /// Their error, reported when the statement is run: COM_STMT_SEND_LONG_DATA has no answer.
    long_failed: Option<Failure>,
    cursor: Option<Box<ResultWriter>>,
    /// See [`Self::parent`].
    parent: Option<Box<str>>,
}

/// The statement in the session.
#[derive(Clone)]
struct Planned {
    id: StatementId,
    parameters: SchemaRef,
    is_update: bool,
}

impl Prepared {
    /// Takes the long values, and how many bytes that frees.
    fn take_long(&mut self) -> (HashMap<u16, BytesMut>, usize) {
        let long = std::mem::take(&mut self.long);
        let bytes = long.values().map(|value| value.len() + LONG_OVERHEAD).sum();
        (long, bytes)
    }

    /// The parent span in a comment of its text.
    pub(crate) fn parent(&self) -> Option<&str> {
        self.parent.as_deref()
    }
}

fn missing(statement: u32) -> Failure {
    Failure::new(1243, "HY000", format!("unknown prepared statement handler ({statement})"))
}

fn not_prepared(what: &str) -> Failure {
    Failure::new(1295, "HY000", format!("{what} cannot be prepared"))
}

impl Connection {
    pub(crate) async fn prepare(&mut self, text: &str) -> Result<()> {
        let sql = executable(text, SERVER_VERSION);
        let places = statement_spans(&sql, DialectName::MySql);
        let [place] = places.as_slice() else {
            return Err(Failure::syntax("syntax error: a prepared statement is one statement").into());
        };
        let limit = self.server.limits().max_prepared_statements;
        if self.statements.len() >= limit {
            let message = format!("can't create more than {limit} prepared statements");
            return Err(Failure::new(1461, "42000", message)
                .with_hint("close some, or raise `limits.max_prepared_statements`")
                .into());
        }
        let sql = sql.get(place.clone()).unwrap_or_default();
        let statement = ClientStatement::parse(sql)?;
        let mut signature = (Vec::new(), 0);
        let planned = match &statement.kind {
            StatementKind::Plain(_)
            | StatementKind::ShowConditions(_)
            | StatementKind::ShowCreate(_)
            | StatementKind::Do { .. } => {
                self.check_safe(&statement)?;
                let (planned, described) = match &statement.kind {
                    StatementKind::ShowCreate(parts) => {
                        let sql = self.show_create(parts).await?;
                        self.plan(&sql).await?
                    }
                    StatementKind::Do { from } => {
                        let sql = format!("SELECT {}", sql.get(*from..).unwrap_or_default());
                        (self.plan(&sql).await?.0, Vec::new())
                    }
                    _ => self.plan(sql).await?,
                };
                signature = (described, planned.parameters.fields().len());
                Some(planned)
            }
            StatementKind::Bounded { .. } => return Err(not_prepared("SET STATEMENT").into()),
            StatementKind::Load(_) => return Err(not_prepared("the statement").into()),
            _ => None,
        };
        let (columns, parameters) = signature;
        let id = self.next_statement();
        let prepared = Prepared {
            kind: statement.kind,
            planned,
            is_select: statement.is_select,
            types: Vec::new(),
            long: HashMap::new(),
            long_failed: None,
            cursor: None,
            parent: commented_parent(text).map(Box::from),
        };
        self.statements.insert(id, prepared);
        let counts = count(columns.len()).and_then(|columns| Ok((columns, count(parameters)?)));
        let (column_count, parameter_count) = match counts {
            Ok(counts) => counts,
            Err(failure) => {
                self.close(id).await;
                return Err(failure.into());
            }
        };
        self.wire.put(|out| server_packets::prepared(out, id, column_count, parameter_count));
        let parameter = Column { name: "?".to_owned(), kind: ColumnType::ANY };
        self.put_definitions(&vec![parameter; parameters]);
        self.put_definitions(&columns);
        Ok(())
    }

    fn next_statement(&mut self) -> u32 {
        loop {
            self.last_statement = self.last_statement.checked_add(1).unwrap_or(1);
            if !self.statements.contains_key(&self.last_statement) {
                return self.last_statement;
            }
        }
    }

    async fn plan(&mut self, sql: &str) -> Result<(Planned, Vec<Column>)> {
        let sql = rewritten(sql, self.session.as_ref(), (self.state, None))?;
        let session = Arc::clone(&self.session);
        let prepared = self.wait_for(session.prepare(&sql, None)).await?;
        let description = prepared.description;
        let described = if description.is_update { Ok(Vec::new()) } else { columns(&description.schema) };
        if described.is_err() {
            session.close_prepared(prepared.id).await?;
        }
        let described = described?;
        Ok((
            Planned { id: prepared.id, parameters: description.parameters, is_update: description.is_update },
            described,
        ))
    }

    fn put_definitions(&mut self, columns: &[Column]) {
        self.put_columns(columns);
        if !columns.is_empty() && !self.has_no_eof() {
            self.end_of_rows(0);
        }
    }

    pub(crate) async fn execute(&mut self, id: u32, cursor: u8, body: Payload) -> Result<()> {
        self.clear_diagnostics();
        let statement = self.statements.get_mut(&id).ok_or_else(|| missing(id))?;
        // Running it closes the cursor and uses up long values, whatever the outcome.
        statement.cursor = None;
        let (long, free) = statement.take_long();
        self.long_bytes = self.long_bytes.saturating_sub(free);
        if let Some(failure) = statement.long_failed.take() {
            return Err(failure.into());
        }
        let Some(planned) = statement.planned.clone() else {
            let kind = statement.kind.clone();
            self.control(&kind).await?;
            self.ok(0);
            return Ok(());
        };
        let is_select = statement.is_select;
        let is_do = matches!(statement.kind, StatementKind::Do { .. });
        let effect = match statement.kind {
            StatementKind::Plain(effect) => effect,
            _ => Effect::None,
        };
        let values = decode::values(body, &planned.parameters, &mut statement.types, &long)?;
        drop(long);
        self.before(effect).await?;
        let session = Arc::clone(&self.session);
        if let Some(values) = values {
            self.wait_for(session.bind(planned.id, vec![values])).await?;
        }
        let request = Request::prepared(planned.id);
        if planned.is_update {
            return self.update(&request).await;
        }
        let mut running = self.start(&request, is_select).await?;
        if is_do {
            running.drain(&mut self.wire, &self.cancel).await?;
            self.ok(0);
            return Ok(());
        }
        let described = columns(running.schema())?;
        if cursor & READ_ONLY_CURSOR != 0 {
            self.put_header(&described, Some(CURSOR_EXISTS));
            if let Some(statement) = self.statements.get_mut(&id) {
                statement.cursor = Some(Box::new(running));
            }
            return Ok(());
        }
        self.put_header(&described, None);
        running.send(&mut self.wire, &self.cancel, (Format::Binary, None)).await?;
        self.finish_rows(&running);
        Ok(())
    }

    pub(crate) async fn fetch(&mut self, id: u32, rows: u32) -> Result<()> {
        let statement = self.statements.get_mut(&id).ok_or_else(|| missing(id))?;
        let Some(mut running) = statement.cursor.take() else {
            let message = format!("the statement ({id}) has no open cursor");
            return Err(Failure::new(1421, "HY000", message).into());
        };
        let limit = (Format::Binary, Some(rows.into()));
        let is_done = running.send(&mut self.wire, &self.cancel, limit).await?;
        if is_done {
            self.end_of_rows(LAST_ROW_SENT);
            return Ok(());
        }
        if let Some(statement) = self.statements.get_mut(&id) {
            statement.cursor = Some(running);
        }
        self.end_of_rows(CURSOR_EXISTS);
        Ok(())
    }

    /// Adds a part of a long value. There is no answer.
    pub(crate) fn long_data(&mut self, id: u32, parameter: u16, bytes: &[u8]) {
        let limit = self.server.limits().max_message_bytes;
        let Some(statement) = self.statements.get_mut(&id) else { return };
        let parameters = statement.planned.as_ref().map_or(0, |planned| planned.parameters.fields().len());
        if usize::from(parameter) >= parameters {
            statement.long_failed = Some(Failure::new(1210, "HY000", "incorrect arguments to long data"));
            return;
        }
        let is_new = !statement.long.contains_key(&parameter);
        let cost = bytes.len() + if is_new { LONG_OVERHEAD } else { 0 };
        if self.long_bytes + cost > limit {
            let message = format!("values in parts are longer than the limit of {limit} bytes");
            statement.long_failed = Some(
                Failure::new(1153, "08S01", message)
                    .with_hint("send less, or raise `limits.max_message_bytes`"),
            );
            let (_, free) = statement.take_long();
            self.long_bytes = self.long_bytes.saturating_sub(free);
        } else {
            self.long_bytes += cost;
            statement.long.entry(parameter).or_default().extend_from_slice(bytes);
        }
    }

    pub(crate) fn reset_statement(&mut self, id: u32) -> Result<()> {
        let statement = self.statements.get_mut(&id).ok_or_else(|| missing(id))?;
        let (_, free) = statement.take_long();
        statement.long_failed = None;
        statement.cursor = None;
        self.long_bytes = self.long_bytes.saturating_sub(free);
        self.ok(0);
        Ok(())
    }

    /// Closes a statement. There is no answer.
    pub(crate) async fn close(&mut self, id: u32) {
        let Some(mut statement) = self.statements.remove(&id) else { return };
        self.long_bytes = self.long_bytes.saturating_sub(statement.take_long().1);
        if let Some(planned) = statement.planned
            && let Err(error) = self.session.close_prepared(planned.id).await
        {
            tracing::debug!(%error, "a prepared statement was not closed");
        }
    }
}
