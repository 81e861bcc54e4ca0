//! Rows that are added to a table of another database: by the bulk ingest of its driver, within one transaction where there are
//! any, so that all of them are there or none. A server that speaks Flight SQL takes them in one request, and decides itself.
//!
//! Values whose type drivers do not write (`uuid`, `jsonb`, enumerations, …) go to PostgreSQL as texts, into a table of the
//! transaction alone, and from there it casts them itself.

use crate::columns::Column;
use crate::describe::Described;
use crate::driver::set_autocommit;
use crate::fault::Fault;
use crate::link::{Link, tell_driver};
use crate::mysql::{self, Destination};
use crate::pool::{Permit, Pool};
use crate::reading::{Stop, StopOnDrop};
use crate::settings::{DatabaseSettings, Kind};
use crate::source::{Source, unknown};
use adbc_core::error::Error as AdbcError;
use adbc_core::options::{IngestMode, OptionStatement, OptionValue};
use adbc_core::{Connection, Optionable, Statement};
use adbc_driver_manager::ManagedConnection;
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_tables::EntryName;
use datafusion::arrow::array::{RecordBatch, RecordBatchReader};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// Batches between the query and the driver.
const AHEAD: usize = 2;
/// The table of a transaction that takes texts.
const STAGE: &str = "bowshot_rows";

/// Adds the rows; how many there were.
pub(crate) async fn insert(
    source: &Arc<Source>,
    name: &EntryName,
    rows: SendableRecordBatchStream,
) -> Result<u64> {
    let described =
        source.described(&name.schema, &name.name).await?.ok_or_else(|| unknown(&name.to_string()))?;
    let target = Target::of(source, name, &described, &rows.schema())?;
    let pool = Arc::clone(&source.pool);
    let permit = source.noted(pool.permit(1).await)?;
    let (sender, receiver) = mpsc::channel(AHEAD);
    let (done, answer) = oneshot::channel();
    let (stop, here) = (Stop::new(), Arc::clone(&pool));
    let guard = StopOnDrop(Arc::clone(&stop));
    let work = move || drop(done.send(write(&here, permit, &target, (receiver, &stop))));
    thread::Builder::new()
        .name("database".to_owned())
        .spawn(work)
        .map_err(|error| Error::internal("no thread can be started").with_source(error))?;
    let sent = send(rows, sender, source).await;
    let patience = source.settings.timeout;
    // How long a database takes to make it count, nobody knows here: its transaction has all rows by then.
    let written = match &sent {
        Ok(_) => answer.await.ok(),
        Err(_) => timeout(patience, answer).await.ok().and_then(std::result::Result::ok),
    };
    drop(guard);
    source.forget(&name.schema, &name.name);
    match (sent, written) {
        // Why the rows have ended says more than that they have.
        (Err(error), _) if error.kind() != ErrorKind::Unavailable => Err(error),
        (_, Some(Err(fault))) => source.noted(Err(fault)),
        (Err(error), _) => Err(error),
        (Ok(rows), Some(Ok(()))) => Ok(rows),
        (Ok(_), None) => source.noted(Err(Fault::Driver("a driver broke down".to_owned()))),
    }
}

enum Message {
    Rows(RecordBatch),
    /// All rows are there: without it what came does not count.
    End,
}

/// Sends the rows; how many. A driver that does not take them has failed, and tells why itself.
async fn send(
    mut rows: SendableRecordBatchStream,
    sender: mpsc::Sender<Message>,
    source: &Source,
) -> Result<u64> {
    let mut sent = 0;
    let gone = || Fault::Unreachable("it has ended the statement".to_owned()).of(&source.settings);
    while let Some(batch) = rows.next().await {
        let batch = batch.map_err(told_by_query)?;
        sent += batch.num_rows() as u64;
        match timeout(source.settings.timeout, sender.send(Message::Rows(batch))).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(gone()),
            Err(_) => return Err(Fault::Late(format!("{:?}", source.settings.timeout)).of(&source.settings)),
        }
    }
    sender.send(Message::End).await.map_err(|_| gone())?;
    Ok(sent)
}

/// An error of the query that gives the rows, as it says itself.
fn told_by_query(error: DataFusionError) -> Error {
    bowshot_engine::internals::classify(error)
}

/// Where the rows go.
struct Target {
    kind: Kind,
    catalog: Option<String>,
    schema: String,
    table: String,
    relation: String,
    columns: Vec<Arc<Column>>,
    given: SchemaRef,
    /// Whether PostgreSQL casts them.
    staged: bool,
}

impl Target {
    fn of(source: &Source, name: &EntryName, described: &Described, given: &SchemaRef) -> Result<Self> {
        let column =
            |name: &String| described.columns.iter().find(|column| column.field.name() == name).cloned();
        let columns = given.fields().iter().map(|field| {
            column(field.name())
                .ok_or_else(|| Error::not_found(format!("the table has no column `{}`", field.name())))
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let kind = source.settings.kind;
        let staged = match kind {
            Kind::Postgres => columns.iter().any(|column| !is_written(column)),
            Kind::DuckDb => true,
            Kind::Sqlite | Kind::FlightSql | Kind::Mysql => false,
        };
        if !described.undoes {
            return Err(Error::unsupported(format!("what is added to `{name}` could not be undone"))
                .with_hint("rows are added to tables of MySQL whose engine has transactions, such as InnoDB, and not to views"));
        }
        Ok(Self {
            kind,
            catalog: source.settings.catalog.clone(),
            schema: name.schema.clone(),
            table: name.name.clone(),
            relation: described.relation.clone(),
            columns,
            given: Arc::clone(given),
            staged,
        })
    }

    /// What the driver is told of where the rows go.
    fn options(&self) -> Vec<(OptionStatement, OptionValue)> {
        if self.staged {
            return vec![
                (OptionStatement::TargetTable, OptionValue::from(STAGE)),
                (OptionStatement::Temporary, OptionValue::from(true)),
                (OptionStatement::IngestMode, OptionValue::String(IngestMode::Create.into())),
            ];
        }
        let mut options = vec![
            (OptionStatement::TargetTable, OptionValue::from(self.table.as_str())),
            (OptionStatement::IngestMode, OptionValue::String(IngestMode::Append.into())),
        ];
        if self.kind != Kind::Sqlite {
            options.push((OptionStatement::TargetDbSchema, OptionValue::from(self.schema.as_str())));
        }
        let catalog = self.catalog.as_ref();
        options.extend(
            catalog.map(|catalog| (OptionStatement::TargetCatalog, OptionValue::from(catalog.as_str()))),
        );
        options
    }

    /// The table of the transaction, as it is written.
    fn stage(&self) -> String {
        let schema = if self.kind == Kind::Postgres { "pg_temp" } else { "temp.main" };
        format!("{schema}.{STAGE}")
    }

    /// What moves the rows from the table of the transaction.
    fn moved(&self) -> String {
        let names = self.columns.iter().map(|column| column.named.as_str()).collect::<Vec<_>>().join(", ");
        let cast = |column: &Arc<Column>| match self.kind {
            Kind::Postgres => format!("{}::{}", column.named, column.declared),
            _ => format!("CAST({} AS {})", column.named, column.declared),
        };
        let casts = self.columns.iter().map(cast).collect::<Vec<_>>().join(", ");
        format!("INSERT INTO {} ({names}) SELECT {casts} FROM {}", self.relation, self.stage())
    }
}

/// Whether the driver of PostgreSQL writes such values as the type that the column has.
fn is_written(column: &Column) -> bool {
    let word = column.declared.split(['(', ' ']).next().unwrap_or_default();
    let same = match word {
        "smallint" | "integer" | "bigint" | "real" | "double" | "boolean" | "text" | "bytea" | "date" => true,
        "character" | "numeric" | "timestamp" | "interval" => true,
        "time" => !column.declared.contains("with time zone"),
        _ => false,
    };
    // `numeric` without limits is a text here, and arrays have the name of what they hold.
    let text = column.field.data_type() == &DataType::Utf8;
    same && !column.declared.ends_with("[]") && !(text && word == "numeric")
}

type In<'a> = (mpsc::Receiver<Message>, &'a Stop);

/// Adds the rows on a connection of its own. What fails is undone.
fn write(pool: &Arc<Pool>, permit: Permit, target: &Target, (rows, stop): In<'_>) -> Result<(), Fault> {
    // One that was kept may be gone, and rows do not come twice.
    let mut lease = pool.new_lease(permit)?;
    let settings = lease.settings();
    let ended = Arc::<AtomicBool>::default();
    let incoming = Incoming { schema: Arc::clone(&target.given), rows, ended: Arc::clone(&ended) };
    let whole = || ended.load(Ordering::Acquire);
    match lease.connection()? {
        Link::Driver(connection) => by_driver(connection, target, (incoming, &whole, stop), &settings)?,
        Link::Mysql(connection) => {
            let destination =
                Destination { relation: target.relation.clone(), columns: target.columns.clone() };
            // Rows that end before their end are nobody's fault here: why is told by who sent them.
            let rows = incoming.map(|rows| rows.map_err(|_| Fault::Cancelled));
            mysql::add(connection, &destination, rows, whole, stop)?;
        }
    }
    if stop.finish() {
        lease.give_back();
    }
    Ok(())
}

/// Rows, whether all of them have come, and who ends it.
type Ingest<'a> = (Incoming, &'a dyn Fn() -> bool, &'a Stop);

fn by_driver(
    connection: &mut ManagedConnection,
    target: &Target,
    (rows, whole, stop): Ingest<'_>,
    settings: &DatabaseSettings,
) -> Result<(), Fault> {
    let transaction = target.kind != Kind::FlightSql;
    if transaction {
        set_autocommit(connection, false, settings)?;
    }
    ingest(connection, target, (rows, whole, stop), settings)?;
    if target.staged {
        tell_driver(connection, &target.moved(), stop, settings)?;
        tell_driver(connection, &format!("DROP TABLE {}", target.stage()), stop, settings)?;
    }
    if transaction {
        connection.commit().map_err(|error| Fault::running(&error, settings))?;
        set_autocommit(connection, true, settings)?;
    }
    Ok(())
}

fn ingest(
    connection: &mut ManagedConnection,
    target: &Target,
    (rows, whole, stop): Ingest<'_>,
    settings: &DatabaseSettings,
) -> Result<(), Fault> {
    let fault = |error: AdbcError| Fault::running(&error, settings);
    let mut statement = connection.new_statement().map_err(fault)?;
    for (key, value) in target.options() {
        statement.set_option(key, value).map_err(fault)?;
    }
    statement.bind_stream(Box::new(rows)).map_err(fault)?;
    if !stop.arm_with(statement.get_cancel_handle()) {
        return Err(Fault::Cancelled);
    }
    statement.execute_update().map_err(fault)?;
    // A driver that has overheard the error of its rows must not make them count.
    if whole() { Ok(()) } else { Err(Fault::Cancelled) }
}

/// The rows as a driver reads them.
struct Incoming {
    schema: SchemaRef,
    rows: mpsc::Receiver<Message>,
    ended: Arc<AtomicBool>,
}

impl Iterator for Incoming {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.rows.blocking_recv() {
            Some(Message::Rows(rows)) => Some(rows.with_schema(Arc::clone(&self.schema))),
            Some(Message::End) => {
                self.ended.store(true, Ordering::Release);
                None
            }
            None if self.ended.load(Ordering::Acquire) => None,
            None => Some(Err(ArrowError::ExternalError("the rows have ended before their end".into()))),
        }
    }
}

impl RecordBatchReader for Incoming {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
