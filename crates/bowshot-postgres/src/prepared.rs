//! The extended protocol: Parse, Bind, Describe, Execute, Close (PostgreSQL manual, "Extended Query"). A prepared statement
//! is one of the session; its values are bound there when a portal is described or run.

use crate::backend_messages::{self, Column};
use crate::connection::Connection;
use crate::decode;
use crate::encode::PgType;
use crate::frontend_messages::{Bind, Format, SYNC, Target, format_of};
use crate::portal::{Portal, PortalState};
use crate::result_writer::{columns, with_origins};
use crate::status::{ConnectionError, Failure, Result, with_position};
use arrow::array::timezone::Tz;
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use bowshot_api::{Request, Statement, StatementId};
use bowshot_sql::postgres::{Statement as ClientStatement, StatementKind, oid_parameters};
use bowshot_sql::{DialectName, statement_spans};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::timeout;

/// The types that a client declares for a parameter of unknown type.
const UNKNOWN: [u32; 2] = [0, 705];
/// The types `bigint` and `oid`, and their arrays.
const INT8: u32 = 20;
const INT8_ARRAY: u32 = 1_016;
const OID: u32 = 26;
const OID_ARRAY: u32 = 1_028;
/// How long a statement waits for a Sync after it.
const PATIENCE: Duration = Duration::from_millis(50);
/// No portal: the bound values are nulls of the declared types, or none.
const NOBODY: u64 = 0;

/// A prepared statement.
pub(crate) struct Prepared {
    sql: String,
    read: ClientStatement,
    planned: Option<Planned>,
    /// Types of the parameters, as the client has declared them, else as planned.
    types: Vec<u32>,
    /// Whether the client has declared any.
    is_declared: bool,
    /// The portal whose values are bound.
    bound: AtomicU64,
}

impl Prepared {
    /// The text of the statement.
    pub(crate) fn sql(&self) -> &str {
        &self.sql
    }
}

/// The statement in the session.
#[derive(Clone)]
struct Planned {
    id: StatementId,
    parameters: usize,
    is_update: bool,
    /// Whether it is a FETCH, whose columns depend on the cursor.
    is_fetch: bool,
    schema: SchemaRef,
}

impl Planned {
    /// Compares the columns of a result with those that its client has been sent: a table may have been altered since.
    fn check_result(&self, result: &Schema) -> Result<()> {
        let same = |one: &Field, other: &Field| {
            one.name() == other.name() && PgType::from_field(one).oid() == PgType::from_field(other).oid()
        };
        // Types of columns may depend on parameters, which have none before they are bound.
        let is_same = self.is_fetch
            || self.schema.fields().len() == result.fields().len()
                && (self.parameters > 0
                    || self.schema.fields().iter().zip(result.fields()).all(|(one, other)| same(one, other)));
        if is_same { Ok(()) } else { Err(changed_result()) }
    }
}

fn changed_result() -> ConnectionError {
    Failure::new("0A000", "cached plan must not change result type").with_hint("prepare it again").into()
}

fn missing(what: &str, code: &'static str, name: &str) -> Failure {
    let what = if name.is_empty() { format!("unnamed {what}") } else { format!("{what} \"{name}\"") };
    Failure::new(code, format!("{what} does not exist"))
}

impl Connection {
    pub(crate) async fn parse(&mut self, name: String, sql: String, declared: &[u32]) -> Result<()> {
        if statement_spans(&sql, DialectName::Postgres).len() > 1 {
            return Err(
                Failure::new("42601", "cannot insert multiple commands into a prepared statement").into()
            );
        }
        let read = ClientStatement::parse(&sql)?;
        self.check_transaction(&read.kind)?;
        if name.is_empty() {
            self.close_statement(&name).await;
        } else if self.statements.contains_key(&name) {
            return Err(Failure::new("42P05", format!("prepared statement \"{name}\" already exists")).into());
        }
        let limit = self.server.limits().max_prepared_statements;
        if self.statements.len() >= limit {
            return Err(Failure::new("53400", format!("{limit} prepared statements are open"))
                .with_hint("close some, or raise `limits.max_prepared_statements`")
                .into());
        }
        let prepared = if read.kind == StatementKind::Plain {
            self.plan(sql, read, declared).await?
        } else {
            let (types, bound) = (declared.to_vec(), AtomicU64::new(NOBODY));
            Prepared { sql, read, planned: None, types, is_declared: false, bound }
        };
        self.statements.insert(name, Arc::new(prepared));
        backend_messages::bare(self.wire.out(), backend_messages::PARSE_COMPLETE);
        Ok(())
    }

    async fn plan(&mut self, sql: String, read: ClientStatement, declared: &[u32]) -> Result<Prepared> {
        let session = Arc::clone(&self.session);
        let planned = self.wait_for(session.prepare(&sql, None)).await;
        let prepared = planned.map_err(|error| with_position(error, &sql, 0))?;
        let description = &prepared.description;
        let parameters = description.parameters.fields().len();
        let oids = oid_parameters(&sql);
        let types = (0..parameters.max(declared.len())).map(|index| {
            let plans = description
                .parameters
                .fields()
                .get(index)
                .map_or(25, |field| PgType::from_field(field).oid());
            let cast = oids.iter().find(|(number, _)| *number == index).map(|(_, is_array)| *is_array);
            let plans = match (plans, cast) {
                (INT8, Some(false)) => OID,
                (INT8_ARRAY, Some(true)) => OID_ARRAY,
                (plans, _) => plans,
            };
            declared.get(index).copied().filter(|oid| !UNKNOWN.contains(oid)).unwrap_or(plans)
        });
        let planned = Planned {
            id: prepared.id,
            parameters,
            is_update: description.is_update,
            is_fetch: read.tag.is_fetch(),
            schema: Arc::clone(&description.schema),
        };
        Ok(Prepared {
            types: types.collect(),
            is_declared: parameters > 0 && declared.iter().any(|oid| !UNKNOWN.contains(oid)),
            sql,
            read,
            planned: Some(planned),
            bound: AtomicU64::new(NOBODY),
        })
    }

    pub(crate) async fn bind(&mut self, bind: Bind) -> Result<()> {
        let statement = self.statements.get(&bind.statement).cloned();
        let statement = statement.ok_or_else(|| missing("prepared statement", "26000", &bind.statement))?;
        self.check_transaction(&statement.read.kind)?;
        if bind.portal.is_empty() {
            self.portals.remove("");
        } else if self.portals.contains_key(&bind.portal) {
            return Err(Failure::new("42P03", format!("portal \"{}\" already exists", bind.portal)).into());
        }
        if self.portals.len() >= self.server.limits().max_prepared_statements {
            return Err(Failure::new("53400", "too many portals are open").with_hint("close some").into());
        }
        static SERIAL: AtomicU64 = AtomicU64::new(NOBODY + 1);
        let mut portal = Portal {
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
            values: values(&statement, &bind, self.parameters.zone(self.session.as_ref()))?,
            statement,
            formats: bind.results,
            described: None,
            state: PortalState::Fresh,
        };
        // Reports values that do not fit.
        self.bind_values(&mut portal).await?;
        self.portals.insert(bind.portal, portal);
        backend_messages::bare(self.wire.out(), backend_messages::BIND_COMPLETE);
        Ok(())
    }

    /// Binds the values of a portal, unless they are bound.
    async fn bind_values(&mut self, portal: &mut Portal) -> Result<()> {
        let (Some(planned), Some(values)) = (&portal.statement.planned, &portal.values) else {
            return Ok(());
        };
        if portal.statement.bound.load(Ordering::Relaxed) == portal.serial {
            return Ok(());
        }
        let session = Arc::clone(&self.session);
        portal.statement.bound.store(NOBODY, Ordering::Relaxed);
        self.wait_for(session.bind(planned.id, vec![values.clone()])).await?;
        portal.statement.bound.store(portal.serial, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) async fn describe(&mut self, target: &Target) -> Result<()> {
        match target {
            Target::Statement(name) => {
                let statement = self.statements.get(name).cloned();
                let statement = statement.ok_or_else(|| missing("prepared statement", "26000", name))?;
                self.check_transaction(&statement.read.kind)?;
                let described = self.statement_columns(&statement).await?;
                let described = self.with_origins(described, &statement);
                backend_messages::parameter_description(self.wire.out(), &statement.types);
                self.put_columns(described.as_deref());
            }
            Target::Portal(name) => {
                let Some(mut portal) = self.portals.remove(name) else {
                    let described = self.cursor_columns(name).await?;
                    self.put_columns(Some(&described));
                    return Ok(());
                };
                let described = self.portal_columns(&mut portal).await?;
                let described = self.with_origins(described, &portal.statement);
                self.put_columns(described.as_deref());
                portal.described = described;
                self.portals.insert(name.clone(), portal);
            }
        }
        Ok(())
    }

    fn with_origins(&self, columns: Option<Vec<Column>>, statement: &Prepared) -> Option<Vec<Column>> {
        let columns = columns?;
        Some(match &statement.planned {
            Some(planned) => with_origins(columns, self.session.origins(planned.id)),
            None => columns,
        })
    }

    fn put_columns(&mut self, columns: Option<&[Column]>) {
        match columns {
            Some(columns) => backend_messages::row_description(self.wire.out(), columns),
            None => backend_messages::bare(self.wire.out(), backend_messages::NO_DATA),
        }
    }

    /// The columns of a statement without values. Declared types may change them, so nulls of these types are bound.
    async fn statement_columns(&mut self, statement: &Prepared) -> Result<Option<Vec<Column>>> {
        let Some(planned) = statement.planned.as_ref().filter(|planned| !planned.is_update) else {
            return Ok(None);
        };
        if planned.is_fetch {
            return self.current_columns(planned, &[Format::Text]).await;
        }
        if !statement.is_declared {
            return columns(&planned.schema, &[Format::Text]).map(Some);
        }
        let nulls = decode::row(
            statement.types.iter().take(planned.parameters).map(|oid| (*oid, Format::Text, None)),
            None,
        )?;
        let session = Arc::clone(&self.session);
        statement.bound.store(NOBODY, Ordering::Relaxed);
        self.wait_for(session.bind(planned.id, vec![nulls])).await?;
        let description = self.wait_for(session.describe(&Statement::Prepared(planned.id))).await?;
        columns(&description.schema, &[Format::Text]).map(Some)
    }

    async fn portal_columns(&mut self, portal: &mut Portal) -> Result<Option<Vec<Column>>> {
        if let PortalState::Running(running) = &portal.state {
            return columns(running.schema(), &portal.formats).map(Some);
        }
        let planned = portal.statement.planned.clone();
        let Some(planned) = planned.filter(|planned| !planned.is_update) else { return Ok(None) };
        if portal.values.is_none() && !planned.is_fetch {
            return columns(&planned.schema, &portal.formats).map(Some);
        }
        self.bind_values(portal).await?;
        self.current_columns(&planned, &portal.formats).await
    }

    /// The columns with the bound values. A FETCH has none before its cursor is declared, as in PostgreSQL.
    async fn current_columns(
        &mut self,
        planned: &Planned,
        formats: &[Format],
    ) -> Result<Option<Vec<Column>>> {
        let session = Arc::clone(&self.session);
        let description = self.wait_for(session.describe(&Statement::Prepared(planned.id))).await?;
        planned.check_result(&description.schema)?;
        let described = columns(&description.schema, formats)?;
        Ok(Some(described).filter(|described| !(planned.is_fetch && described.is_empty())))
    }

    /// The columns of a cursor, which clients may describe as a portal.
    async fn cursor_columns(&mut self, name: &str) -> Result<Vec<Column>> {
        if name.is_empty() {
            return Err(missing("portal", "34000", name).into());
        }
        let session = Arc::clone(&self.session);
        let sql = format!("FETCH FROM \"{}\"", name.replace('"', "\"\""));
        let prepared = self.wait_for(session.prepare(&sql, None)).await?;
        session.close_prepared(prepared.id).await?;
        let described = columns(&prepared.description.schema, &[Format::Text])?;
        if described.is_empty() { Err(missing("portal", "34000", name).into()) } else { Ok(described) }
    }

    pub(crate) async fn execute(&mut self, name: &str, rows: usize) -> Result<()> {
        let Some(mut portal) = self.portals.remove(name) else {
            return Err(missing("portal", "34000", name).into());
        };
        self.check_transaction(&portal.statement.read.kind)?;
        if portal.statement.read.kind.joins_transaction()
            && !self.is_in_block()
            && !self.is_followed_by_sync().await?
        {
            self.begin_implicit().await?;
        }
        let ran = self.run_portal(&mut portal, rows).await;
        // A portal that has ended the transaction is closed with it.
        let ends = matches!(
            portal.statement.read.kind,
            StatementKind::Commit { .. } | StatementKind::Rollback { .. }
        );
        if !ends && ran.is_ok() {
            self.portals.insert(name.to_owned(), portal);
        }
        ran
    }

    /// Whether Sync follows directly, so that the statement is a transaction by itself: the statements up to the next Sync
    /// are one. Clients do not wait for an answer before Sync or Flush; a slow one may send more.
    async fn is_followed_by_sync(&mut self) -> Result<bool> {
        match timeout(PATIENCE, self.wire.wait_for_tag()).await {
            Ok(tag) => Ok(tag? == Some(SYNC)),
            Err(_) => Ok(false),
        }
    }

    async fn run_portal(&mut self, portal: &mut Portal, rows: usize) -> Result<()> {
        let statement = Arc::clone(&portal.statement);
        self.parameters.note_statement(&statement.read);
        let Some(planned) = &statement.planned else {
            portal.state = PortalState::Done;
            return match &statement.read.kind {
                StatementKind::Copy(copy) => self.copy(copy).await,
                _ => self.control(&statement.sql, &statement.read).await,
            };
        };
        self.is_new = false;
        if matches!(portal.state, PortalState::Fresh) {
            self.bind_values(portal).await?;
            let request = Request::prepared(planned.id);
            if planned.is_update {
                portal.state = PortalState::Done;
                let session = Arc::clone(&self.session);
                let rows = self.wait_for(session.update(&request)).await?;
                self.restore_startup_options(&statement.read).await?;
                self.complete_update(&statement.read.tag, rows);
                return Ok(());
            }
            let mut running = self.start(&request).await?;
            let columns_sent = match portal.described.take() {
                Some(columns_sent) => columns_sent,
                None => {
                    planned.check_result(running.schema())?;
                    columns(running.schema(), &portal.formats)?
                }
            };
            if !running.has_columns(&columns_sent) {
                return Err(changed_result());
            }
            running.set_formats(&columns_sent);
            portal.state = PortalState::Running(Box::new(running));
        }
        let PortalState::Running(running) = &mut portal.state else {
            backend_messages::complete(self.wire.out(), &statement.read.tag.with_rows(0));
            return Ok(());
        };
        let limit = (rows > 0).then_some(rows as u64);
        let (sent, is_done) = running.send(&mut self.wire, &self.cancel, limit).await?;
        if is_done {
            portal.state = PortalState::Done;
            backend_messages::complete(self.wire.out(), &statement.read.tag.with_rows(sent));
        } else {
            backend_messages::bare(self.wire.out(), backend_messages::PORTAL_SUSPENDED);
        }
        Ok(())
    }

    pub(crate) async fn close(&mut self, target: &Target) -> Result<()> {
        match target {
            Target::Statement(name) => self.close_statement(name).await,
            Target::Portal(name) => drop(self.portals.remove(name)),
        }
        backend_messages::bare(self.wire.out(), backend_messages::CLOSE_COMPLETE);
        Ok(())
    }

    /// Closes a prepared statement with its portals, but for those that are running.
    pub(crate) async fn close_statement(&mut self, name: &str) {
        let Some(statement) = self.statements.remove(name) else { return };
        self.portals.retain(|_, portal| {
            matches!(portal.state, PortalState::Running(_)) || !Arc::ptr_eq(&portal.statement, &statement)
        });
        self.close_plan(&statement).await;
    }

    /// Closes the statement of the session.
    async fn close_plan(&mut self, statement: &Prepared) {
        if let Some(planned) = &statement.planned
            && let Err(error) = self.session.close_prepared(planned.id).await
        {
            tracing::debug!(%error, "a prepared statement was not closed");
        }
    }
}

/// The values of a Bind as one row; `None` without parameters.
fn values(statement: &Prepared, bind: &Bind, zone: Option<Tz>) -> Result<Option<RecordBatch>> {
    let (given, wanted) = (bind.values.len(), statement.types.len());
    if given != wanted {
        let message = format!(
            "bind message supplies {given} parameters, but prepared statement \"{}\" requires {wanted}",
            bind.statement
        );
        return Err(Failure::protocol(message).into());
    }
    let Some(planned) = statement.planned.as_ref().filter(|planned| planned.parameters > 0) else {
        return Ok(None);
    };
    let mut cells = Vec::with_capacity(given);
    for (index, (oid, value)) in statement.types.iter().zip(&bind.values).take(planned.parameters).enumerate()
    {
        let Some(format) = format_of(&bind.formats, index, given) else {
            let message =
                format!("{} parameter formats were given for {given} parameters", bind.formats.len());
            return Err(Failure::protocol(message).into());
        };
        cells.push((*oid, format, value.as_deref()));
    }
    Ok(Some(decode::row(cells.into_iter(), zone)?))
}
