//! Prepared statements ("Prepared Statements" of the protocol): planned once, run with values in binary, answered in binary, at
//! once or as a cursor from which the client fetches.

use crate::body::Body;
use crate::capability::{CURSOR_EXISTS, LAST_ROW_SENT};
use crate::connection::Connection;
use crate::lex::{executable, split};
use crate::query::count;
use crate::read::{self, Given};
use crate::reply::{self, Column};
use crate::rewrite::rewritten;
use crate::rows::{ColumnType, Format};
use crate::running::{Running, columns};
use crate::statement::{Effect, Sort, is_select};
use crate::status::{Failure, Result};
use arrow::datatypes::SchemaRef;
use bowshot_api::{Request, StatementId, commented_parent};
use bytes::BytesMut;
use std::collections::HashMap;
use std::sync::Arc;

/// "CURSOR_TYPE_READ_ONLY"
const READ_ONLY_CURSOR: u8 = 1;

/// What it costs to keep a value that comes in parts, beside its bytes.
const LONG_OVERHEAD: usize = 64;

/// A prepared statement.
pub(crate) struct Prepared {
    sort: Sort,
    planned: Option<Planned>,
    /// Whether `sql_select_limit` counts for it.
    is_select: bool,
    /// Types of the values, as the client has declared them last.
    types: Vec<Given>,
    /// Values that have come in parts.
    long: HashMap<u16, BytesMut>,
    /// Why they cannot be used; told when the statement is run, since nobody waits for an answer before.
    long_failed: Option<Failure>,
    cursor: Option<Box<Running>>,
    /// See [`Self::parent`].
    parent: Option<Box<str>>,
}

/// What the session knows of it.
#[derive(Clone)]
struct Planned {
    id: StatementId,
    parameters: SchemaRef,
    is_update: bool,
}

impl Prepared {
    /// The values that have come in parts, and what is free without them.
    fn take_long(&mut self) -> (HashMap<u16, BytesMut>, usize) {
        let long = std::mem::take(&mut self.long);
        let bytes = long.values().map(|value| value.len() + LONG_OVERHEAD).sum();
        (long, bytes)
    }

    /// The span of the caller that it names, for traces.
    pub(crate) fn parent(&self) -> Option<&str> {
        self.parent.as_deref()
    }
}

fn missing(statement: u32) -> Failure {
    Failure::new(1243, "HY000", format!("unknown prepared statement handler ({statement})"))
}

impl Connection {
    pub(crate) async fn prepare(&mut self, text: &str) -> Result<()> {
        let sql = executable(text);
        let places = split(&sql);
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
        let sort = Sort::of(sql)?;
        let mut told = (Vec::new(), 0);
        let planned = match &sort {
            Sort::Plain(_) | Sort::ShowCreate(_) | Sort::Do { .. } => {
                let (planned, described) = match &sort {
                    Sort::ShowCreate(parts) => {
                        let sql = self.show_create(parts).await?;
                        self.plan(&sql).await?
                    }
                    Sort::Do { from } => {
                        let sql = format!("SELECT {}", sql.get(*from..).unwrap_or_default());
                        (self.plan(&sql).await?.0, Vec::new())
                    }
                    _ => self.plan(sql).await?,
                };
                told = (described, planned.parameters.fields().len());
                Some(planned)
            }
            Sort::Bounded { .. } => {
                return Err(Failure::new(1295, "HY000", "SET STATEMENT cannot be prepared").into());
            }
            Sort::Load(_) => {
                return Err(Failure::new(1295, "HY000", "the statement cannot be prepared").into());
            }
            _ => None,
        };
        let (columns, parameters) = told;
        let id = self.next_statement();
        let prepared = Prepared {
            sort,
            planned,
            is_select: is_select(sql),
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
        self.wire.put(|out| reply::prepared(out, id, column_count, parameter_count));
        let parameter = Column { name: "?".to_owned(), kind: ColumnType::ANY };
        self.tell_definitions(&vec![parameter; parameters]);
        self.tell_definitions(&columns);
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
        self.check_safe(sql)?;
        let sql = rewritten(sql, self.session.as_ref(), (self.own, None))?;
        let session = Arc::clone(&self.session);
        let prepared = self.attend(session.prepare(&sql, None)).await?;
        let told = prepared.description;
        let described = if told.is_update { Ok(Vec::new()) } else { columns(&told.schema) };
        if described.is_err() {
            session.close_prepared(prepared.id).await?;
        }
        let described = described?;
        Ok((Planned { id: prepared.id, parameters: told.parameters, is_update: told.is_update }, described))
    }

    fn tell_definitions(&mut self, columns: &[Column]) {
        self.tell_each(columns);
        if !columns.is_empty() && !self.has_no_eof() {
            self.end_of_rows(0);
        }
    }

    pub(crate) async fn execute(&mut self, id: u32, cursor: u8, body: Body) -> Result<()> {
        self.clear_diagnostics();
        let statement = self.statements.get_mut(&id).ok_or_else(|| missing(id))?;
        // What a cursor has left is gone, and so are values in parts, whatever comes of it.
        statement.cursor = None;
        let (long, free) = statement.take_long();
        self.long_bytes = self.long_bytes.saturating_sub(free);
        if let Some(failure) = statement.long_failed.take() {
            return Err(failure.into());
        }
        let Some(planned) = statement.planned.clone() else {
            let sort = statement.sort.clone();
            self.control(&sort).await?;
            self.ok(0);
            return Ok(());
        };
        let is_select = statement.is_select;
        let is_do = matches!(statement.sort, Sort::Do { .. });
        let effect = match statement.sort {
            Sort::Plain(effect) => effect,
            _ => Effect::None,
        };
        let values = read::values(body, &planned.parameters, &mut statement.types, &long)?;
        drop(long);
        self.before(effect).await?;
        let session = Arc::clone(&self.session);
        if let Some(values) = values {
            self.attend(session.bind(planned.id, vec![values])).await?;
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
            self.tell(&described, Some(CURSOR_EXISTS));
            if let Some(statement) = self.statements.get_mut(&id) {
                statement.cursor = Some(Box::new(running));
            }
            return Ok(());
        }
        self.tell(&described, None);
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

    /// A part of a value. Nobody waits for an answer.
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

    /// Forgets a statement. Nobody waits for an answer.
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
