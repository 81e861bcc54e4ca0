//! INSERT into a table of another database: by the driver's bulk ingest, in one transaction where the database has them. PostgreSQL gets
//! values of types that its driver cannot write (`uuid`, `jsonb`, …) as texts in a temporary table, and casts them itself.

use crate::cancellation::{CancelOnDrop, Cancellation};
use crate::columns::Column;
use crate::connection::{DatabaseConnection, execute_on_driver};
use crate::driver::set_autocommit;
use crate::error::DatabaseError;
use crate::kind::Kind;
use crate::metadata::TableMetadata;
use crate::mysql::{self, Destination};
use crate::pool::{Permit, Pool};
use crate::settings::DatabaseSettings;
use crate::source::{Source, not_found};
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

/// Batches buffered between the query and the driver.
const AHEAD: usize = 2;
/// The temporary table for texts.
const STAGE: &str = "bowshot_rows";

/// Inserts the rows; returns their number.
pub(crate) async fn insert(
    source: &Arc<Source>,
    name: &EntryName,
    rows: SendableRecordBatchStream,
) -> Result<u64> {
    let described =
        source.described(&name.schema, &name.name).await?.ok_or_else(|| not_found(&name.to_string()))?;
    let target = Target::of(source, name, &described, &rows.schema())?;
    let pool = Arc::clone(&source.pool);
    let permit = source.record(pool.permit(1).await)?;
    let (sender, receiver) = mpsc::channel(AHEAD);
    let (done, answer) = oneshot::channel();
    let (cancellation, here) = (Cancellation::new(), Arc::clone(&pool));
    let guard = CancelOnDrop(Arc::clone(&cancellation));
    let work = move || drop(done.send(write(&here, permit, &target, (receiver, &cancellation))));
    thread::Builder::new()
        .name("database".to_owned())
        .spawn(work)
        .map_err(|error| Error::internal("cannot start a thread").with_source(error))?;
    let sent = send(rows, sender, source).await;
    let patience = source.settings.timeout;
    // No deadline here: the commit of a database may take long.
    let written = match &sent {
        Ok(_) => answer.await.ok(),
        Err(_) => timeout(patience, answer).await.ok().and_then(std::result::Result::ok),
    };
    drop(guard);
    source.forget(&name.schema, &name.name);
    match (sent, written) {
        // The cause is more useful than the end of the rows.
        (Err(error), _) if error.kind() != ErrorKind::Unavailable => Err(error),
        (_, Some(Err(fault))) => source.record(Err(fault)),
        (Err(error), _) => Err(error),
        (Ok(rows), Some(Ok(()))) => Ok(rows),
        (Ok(_), None) => source.record(Err(DatabaseError::Driver("the driver failed".to_owned()))),
    }
}

enum Message {
    Rows(RecordBatch),
    /// The end of the rows, without which nothing is committed.
    End,
}

/// Sends the rows; returns their number. A driver that stops reading reports its own error.
async fn send(
    mut rows: SendableRecordBatchStream,
    sender: mpsc::Sender<Message>,
    source: &Source,
) -> Result<u64> {
    let mut sent = 0;
    let gone =
        || DatabaseError::Unreachable("it ended the statement".to_owned()).into_public(&source.settings);
    while let Some(batch) = rows.next().await {
        let batch = batch.map_err(query_error)?;
        sent += batch.num_rows() as u64;
        match timeout(source.settings.timeout, sender.send(Message::Rows(batch))).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(gone()),
            Err(_) => {
                return Err(DatabaseError::Timeout(format!("{:?}", source.settings.timeout))
                    .into_public(&source.settings));
            }
        }
    }
    sender.send(Message::End).await.map_err(|_| gone())?;
    Ok(sent)
}

pub(crate) fn query_error(error: DataFusionError) -> Error {
    bowshot_engine::internals::classify(error)
}

/// The table that the rows go to.
struct Target {
    kind: Kind,
    catalog: Option<String>,
    schema: String,
    table: String,
    relation: String,
    columns: Vec<Arc<Column>>,
    given: SchemaRef,
    /// Whether the rows go through a temporary table that casts them.
    staged: bool,
}

impl Target {
    fn of(source: &Source, name: &EntryName, described: &TableMetadata, given: &SchemaRef) -> Result<Self> {
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
            return Err(Error::unsupported(format!("cannot insert into `{name}`: it has no transactions"))
                .with_hint(
                    "use a table of MySQL whose engine has transactions, such as InnoDB, and not a view",
                ));
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

    /// The options of the driver's ingest.
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

    /// The quoted temporary table.
    fn stage(&self) -> String {
        let schema = if self.kind == Kind::Postgres { "pg_temp" } else { "temp.main" };
        format!("{schema}.{STAGE}")
    }

    /// The statement that moves the rows from the temporary table.
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

/// Whether PostgreSQL's driver can write the type of a column.
fn is_written(column: &Column) -> bool {
    let word = column.declared.split(['(', ' ']).next().unwrap_or_default();
    let same = match word {
        "smallint" | "integer" | "bigint" | "real" | "double" | "boolean" | "text" | "bytea" | "date" => true,
        "character" | "numeric" | "timestamp" | "interval" => true,
        "time" => !column.declared.contains("with time zone"),
        _ => false,
    };
    // `numeric` without precision is a text here, and arrays are named after their elements.
    let text = column.field.data_type() == &DataType::Utf8;
    same && !column.declared.ends_with("[]") && !(text && word == "numeric")
}

type In<'a> = (mpsc::Receiver<Message>, &'a Cancellation);

/// Inserts the rows on a new connection. A failure is rolled back.
fn write(
    pool: &Arc<Pool>,
    permit: Permit,
    target: &Target,
    (rows, cancellation): In<'_>,
) -> Result<(), DatabaseError> {
    // A reused connection may be lost, and the rows cannot be sent twice.
    let mut lease = pool.new_lease(permit)?;
    let settings = lease.settings();
    let ended = Arc::<AtomicBool>::default();
    let incoming = Incoming { schema: Arc::clone(&target.given), rows, ended: Arc::clone(&ended) };
    let whole = || ended.load(Ordering::Acquire);
    match lease.connection()? {
        DatabaseConnection::Driver(connection) => {
            by_driver(connection, target, (incoming, &whole, cancellation), &settings)?
        }
        DatabaseConnection::Mysql(connection) => {
            let destination =
                Destination { relation: target.relation.clone(), columns: target.columns.clone() };
            // The sender reports why the rows ended early.
            let rows = incoming.map(|rows| rows.map_err(|_| DatabaseError::Cancelled));
            mysql::insert_rows(connection, &destination, rows, whole, cancellation)?;
        }
    }
    if cancellation.finish() {
        lease.give_back();
    }
    Ok(())
}

/// The rows, whether all of them arrived, and their cancellation.
type Ingest<'a> = (Incoming, &'a dyn Fn() -> bool, &'a Cancellation);

fn by_driver(
    connection: &mut ManagedConnection,
    target: &Target,
    (rows, whole, cancellation): Ingest<'_>,
    settings: &DatabaseSettings,
) -> Result<(), DatabaseError> {
    let transaction = target.kind != Kind::FlightSql;
    if transaction {
        set_autocommit(connection, false, settings)?;
    }
    ingest(connection, target, (rows, whole, cancellation), settings)?;
    if target.staged {
        execute_on_driver(connection, &target.moved(), cancellation, settings)?;
        execute_on_driver(connection, &format!("DROP TABLE {}", target.stage()), cancellation, settings)?;
    }
    if transaction {
        connection.commit().map_err(|error| DatabaseError::from_statement(&error, settings))?;
        set_autocommit(connection, true, settings)?;
    }
    Ok(())
}

fn ingest(
    connection: &mut ManagedConnection,
    target: &Target,
    (rows, whole, cancellation): Ingest<'_>,
    settings: &DatabaseSettings,
) -> Result<(), DatabaseError> {
    let fault = |error: AdbcError| DatabaseError::from_statement(&error, settings);
    let mut statement = connection.new_statement().map_err(fault)?;
    for (key, value) in target.options() {
        statement.set_option(key, value).map_err(fault)?;
    }
    statement.bind_stream(Box::new(rows)).map_err(fault)?;
    if !cancellation.arm_with(statement.get_cancel_handle()) {
        return Err(DatabaseError::Cancelled);
    }
    statement.execute_update().map_err(fault)?;
    // A driver that ignored an error of the rows must not commit.
    if whole() { Ok(()) } else { Err(DatabaseError::Cancelled) }
}

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
