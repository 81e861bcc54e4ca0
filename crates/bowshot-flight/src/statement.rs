//! GetFlightInfo, GetSchema and ListFlights. GetFlightInfo starts the statement, so its effects have happened when it
//! returns.

use crate::caller::Caller;
use crate::profile::REUSE_CONNECTION;
use crate::ticket::{QueryTicket, TicketPayload};
use crate::{handles, metadata};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow_flight::flight_descriptor::DescriptorType;
use arrow_flight::sql::Command;
use arrow_flight::{FlightDescriptor, FlightEndpoint, FlightInfo, Location, Ticket};
use bowshot_api::{
    Answer, Delivery, Description, Endpoints, Error, OptionValue, Request, Result, STATUS_RESULT, Session,
    Statement, TableEntry, TableFilter, TableName, TransactionId,
};
use bytes::Bytes;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A statement with its session and transaction. Sessions know the transactions of prepared statements.
pub(crate) struct Runnable {
    pub(crate) session: Arc<dyn Session>,
    pub(crate) statement: Statement,
    pub(crate) transaction: Option<TransactionId>,
}

impl Runnable {
    pub(crate) async fn start(
        self,
        endpoints: Option<Endpoints>,
        delivery: Option<Delivery>,
    ) -> Result<Answer> {
        let Self { session, statement, transaction } = self;
        let request = Request { endpoints, delivery, status_row: true, ..Request::of(statement) };
        session.start(&request.within(transaction)).await
    }

    /// Starts it for a client that follows locations.
    async fn start_anywhere(self) -> Result<Answer> {
        let Self { session, statement, transaction } = self;
        let request = Request { elsewhere: true, status_row: true, ..Request::of(statement) };
        session.start(&request.within(transaction)).await
    }

    /// Plans it without running it.
    async fn schema(self) -> Result<SchemaRef> {
        let Self { session, statement, transaction } = self;
        // Only prepared statements are described within a transaction.
        let prepared = match (&statement, transaction) {
            (Statement::Sql(text), Some(_)) => session.prepare(text, transaction).await?,
            (Statement::Substrait(plan), Some(_)) => session.prepare_substrait(plan, transaction).await?,
            _ => {
                let description = session.describe(&statement).await?;
                return Ok(described(session.as_ref(), &description));
            }
        };
        session.close_prepared(prepared.id).await?;
        Ok(described(session.as_ref(), &prepared.description))
    }
}

/// The columns that a statement has when it is read with GetFlightInfo and DoGet.
pub(crate) fn described(session: &dyn Session, description: &Description) -> SchemaRef {
    if description.is_update && is_mysql(session) {
        return Arc::new(Schema::new(vec![Field::new(STATUS_RESULT, DataType::Utf8, true)]));
    }
    Arc::clone(&description.schema)
}

/// A resolved descriptor or ticket, with its session.
pub(crate) enum Wanted {
    Statement(Runnable),
    Metadata(Command, Bytes),
    /// A partition of a query that runs already.
    Query(QueryTicket),
}

/// Answers GetFlightInfo: starts the statement, or returns the ticket of metadata.
pub(crate) async fn flight_info(caller: &Caller, descriptor: FlightDescriptor) -> Result<FlightInfo> {
    match wanted(caller, &descriptor).await? {
        Wanted::Statement(runnable) => Ok(answer_info(&runnable.start_anywhere().await?, Some(descriptor))),
        Wanted::Metadata(command, ticket) => metadata_info(caller, &command, ticket, descriptor),
        Wanted::Query(_) => Err(not_a_command()),
    }
}

/// Answers GetSchema: plans the statement without running it.
pub(crate) async fn schema(caller: &Caller, descriptor: &FlightDescriptor) -> Result<SchemaRef> {
    match wanted(caller, descriptor).await? {
        Wanted::Statement(runnable) => runnable.schema().await,
        Wanted::Metadata(command, _) => {
            check_metadata_caller(caller, &command)?;
            metadata_schema(&command)
        }
        Wanted::Query(_) => Err(not_a_command()),
    }
}

pub(crate) async fn wanted(caller: &Caller, descriptor: &FlightDescriptor) -> Result<Wanted> {
    if !is_path(descriptor) {
        return resolve(caller, TicketPayload::decode(&descriptor.cmd)?, &descriptor.cmd).await;
    }
    let session = caller.session().await?;
    let statement = Statement::Sql(select_all(&session, &descriptor.path)?);
    Ok(Wanted::Statement(Runnable { session, statement, transaction: None }))
}

/// Whether a descriptor names a table by its path instead of having a command.
pub(crate) fn is_path(descriptor: &FlightDescriptor) -> bool {
    descriptor.r#type == DescriptorType::Path as i32
        || (descriptor.r#type == DescriptorType::Unknown as i32 && !descriptor.path.is_empty())
}

/// Finds the session of an order; `bytes` are those that the order was read from.
pub(crate) async fn resolve(caller: &Caller, payload: TicketPayload, bytes: &Bytes) -> Result<Wanted> {
    Ok(match payload {
        TicketPayload::Statement(statement, transaction) => {
            let (session, transaction) = handles::scope(caller, transaction).await?;
            Wanted::Statement(Runnable { session, statement, transaction })
        }
        TicketPayload::Prepared(handle) => Wanted::Statement(Runnable {
            session: handle.session(caller)?,
            statement: Statement::Prepared(handle.statement),
            transaction: None,
        }),
        TicketPayload::Query(ticket) => Wanted::Query(ticket),
        TicketPayload::Command(command) => {
            if metadata::schema_of(&command).is_none() {
                return Err(misplaced(&command));
            }
            Wanted::Metadata(command, bytes.clone())
        }
    })
}

/// The FlightInfo of a started query.
pub(crate) fn answer_info(answer: &Answer, descriptor: Option<FlightDescriptor>) -> FlightInfo {
    let expiration_time = answer.expires.map(timestamp);
    let endpoints = (0..answer.partitions).map(|partition| {
        let place = answer.locations.get(partition);
        let ticket = QueryTicket {
            query: answer.query,
            partition: u32::try_from(partition).unwrap_or(u32::MAX),
            compression: answer.layout.compression,
            voucher: place.map(|place| Bytes::copy_from_slice(&place.voucher)).unwrap_or_default(),
        };
        let location = place.and_then(|place| place.uri.as_deref()).map(locations).unwrap_or_default();
        FlightEndpoint { location, ..endpoint(ticket.encode(), expiration_time) }
    });
    FlightInfo {
        schema: bowshot_ipc::schema_bytes(&answer.schema),
        flight_descriptor: descriptor,
        endpoint: endpoints.collect(),
        total_records: answer.rows.and_then(|rows| i64::try_from(rows).ok()).unwrap_or(-1),
        total_bytes: -1,
        ordered: answer.ordered,
        // The query id as text, as in `system.queries`.
        app_metadata: Bytes::from(answer.query.to_string()),
    }
}

/// A node, and the connection that the client has for clients that do not reach the node: it gets the same rows there.
fn locations(uri: &str) -> Vec<Location> {
    // Not all clients know the short scheme.
    let uri = uri.strip_prefix("grpc://").map_or_else(|| uri.to_owned(), |rest| format!("grpc+tcp://{rest}"));
    vec![Location { uri }, Location { uri: REUSE_CONNECTION.to_owned() }]
}

/// An endpoint without location: the client uses the connection that it has.
pub(crate) fn endpoint(ticket: Bytes, expiration_time: Option<prost_types::Timestamp>) -> FlightEndpoint {
    FlightEndpoint {
        ticket: Some(Ticket { ticket }),
        location: Vec::new(),
        expiration_time,
        app_metadata: Bytes::new(),
    }
}

pub(crate) fn timestamp(time: SystemTime) -> prost_types::Timestamp {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    prost_types::Timestamp {
        seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(since.subsec_nanos()).unwrap_or(0),
    }
}

pub(crate) fn metadata_schema(command: &Command) -> Result<SchemaRef> {
    metadata::schema_of(command).ok_or_else(|| misplaced(command))
}

/// The FlightInfo of a metadata command, whose ticket is the command itself.
pub(crate) fn metadata_info(
    caller: &Caller,
    command: &Command,
    ticket: Bytes,
    descriptor: FlightDescriptor,
) -> Result<FlightInfo> {
    check_metadata_caller(caller, command)?;
    Ok(FlightInfo {
        schema: bowshot_ipc::schema_bytes(metadata_schema(command)?.as_ref()),
        flight_descriptor: Some(descriptor),
        endpoint: vec![endpoint(ticket, None)],
        total_records: -1,
        total_bytes: -1,
        ordered: true,
        app_metadata: Bytes::new(),
    })
}

/// Refuses metadata for closed sessions, except SqlInfo, which drivers ask for first.
fn check_metadata_caller(caller: &Caller, command: &Command) -> Result<()> {
    match command {
        Command::CommandGetSqlInfo(_) => Ok(()),
        _ => caller.check_cookie(),
    }
}

pub(crate) async fn metadata_session(caller: &Caller, command: &Command) -> Result<Arc<dyn Session>> {
    match command {
        Command::CommandGetSqlInfo(_) => caller.session_or_new().await,
        _ => caller.session().await,
    }
}

fn misplaced(command: &Command) -> Error {
    let name = command.type_url().rsplit('.').next().unwrap_or_default();
    match command {
        Command::CommandStatementUpdate(_)
        | Command::CommandPreparedStatementUpdate(_)
        | Command::CommandStatementIngest(_) => Error::invalid(format!("`{name}` is no query"))
            .with_hint("send it with DoPut, or send the statement as `CommandStatementQuery`"),
        _ => Error::invalid(format!("`{name}` is not a command for this call"))
            .with_hint("send one of the query or metadata commands of Flight SQL"),
    }
}

fn not_a_command() -> Error {
    Error::invalid("a ticket is not a command").with_hint("redeem tickets with DoGet")
}

/// Answers ListFlights: one FlightInfo for each table whose name is like the criteria. Nothing starts; the tickets are
/// SQL text.
pub(crate) async fn list(caller: &Caller, criteria: &[u8]) -> Result<Vec<FlightInfo>> {
    let pattern = std::str::from_utf8(criteria).map_err(|_| {
        Error::invalid("the criteria expression is not UTF-8")
            .with_hint("send a LIKE pattern for table names, or nothing for all tables")
    })?;
    let session = caller.session().await?;
    let filter = TableFilter {
        table_pattern: (!pattern.is_empty()).then(|| pattern.to_owned()),
        include_schema: true,
        ..TableFilter::default()
    };
    let tables = session.tables(&filter).await?;
    tables.iter().map(|table| table_info(&session, table)).collect()
}

fn table_info(session: &Arc<dyn Session>, table: &TableEntry) -> Result<FlightInfo> {
    let path = vec![table.catalog.clone(), table.schema_name.clone(), table.name.clone()];
    let ticket = Bytes::from(select_all(session, &path)?);
    Ok(FlightInfo {
        schema: table.schema.as_deref().map(bowshot_ipc::schema_bytes).unwrap_or_default(),
        flight_descriptor: Some(FlightDescriptor::new_path(path)),
        endpoint: vec![endpoint(ticket, None)],
        total_records: -1,
        total_bytes: -1,
        ordered: false,
        app_metadata: Bytes::new(),
    })
}

/// `SELECT * FROM` the table of a path.
fn select_all(session: &Arc<dyn Session>, path: &[String]) -> Result<String> {
    let TableName { catalog, schema_name, name } = table_name(path)?;
    let quote = if is_mysql(session.as_ref()) { '`' } else { '"' };
    let names: Vec<String> =
        [catalog, schema_name, Some(name)].into_iter().flatten().map(|name| quoted(&name, quote)).collect();
    Ok(format!("SELECT * FROM {}", names.join(".")))
}

/// The table of a path of one to three names.
pub(crate) fn table_name(path: &[String]) -> Result<TableName> {
    let (catalog, schema_name, name) = match path {
        [name] => (None, None, name),
        [schema, name] => (None, Some(schema), name),
        [catalog, schema, name] => (Some(catalog), Some(schema), name),
        _ => return Err(no_table(path)),
    };
    if path.iter().any(String::is_empty) {
        return Err(no_table(path));
    }
    Ok(TableName { catalog: catalog.cloned(), schema_name: schema_name.cloned(), name: name.clone() })
}

fn no_table(path: &[String]) -> Error {
    let problem = if path.iter().any(String::is_empty) {
        "a path with an empty name is no table".to_owned()
    } else {
        format!("a path of {} names is no table", path.len())
    };
    Error::invalid(problem)
        .with_hint("send a table, a schema and a table, or a catalog, a schema and a table")
}

fn is_mysql(session: &dyn Session) -> bool {
    matches!(session.option("dialect"), Some(OptionValue::String(text)) if text.eq_ignore_ascii_case("mysql"))
}

fn quoted(name: &str, quote: char) -> String {
    let mut text = String::with_capacity(name.len() + 2);
    text.push(quote);
    for c in name.chars() {
        if c == quote {
            text.push(quote);
        }
        text.push(c);
    }
    text.push(quote);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted() {
        assert_eq!(quoted("a", '"'), r#""a""#);
        assert_eq!(quoted(r#"a"; DROP TABLE b; --"#, '"'), r#""a""; DROP TABLE b; --""#);
        assert_eq!(quoted("a`b\"", '`'), "`a``b\"`");
    }

    #[test]
    fn times_become_timestamps() {
        let time = UNIX_EPOCH + std::time::Duration::new(12, 345);
        assert_eq!(timestamp(time), prost_types::Timestamp { seconds: 12, nanos: 345 });
    }
}
