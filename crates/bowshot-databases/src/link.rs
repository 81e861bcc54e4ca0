//! A connection, whichever library has it: a driver of ADBC, or the client of MySQL's protocol. Both block, and both give rows as
//! record batches; all else of a statement is the same and is in [`reading`](crate::reading).

use crate::columns::Column;
use crate::fault::Fault;
use crate::mysql;
use crate::partitions::at_its_place;
use crate::reading::Stop;
use crate::settings::DatabaseSettings;
use adbc_core::{Connection, Statement};
use adbc_driver_manager::{ManagedConnection, ManagedStatement};
use datafusion::arrow::array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use std::sync::Arc;

/// See the module.
pub(crate) enum Link {
    Driver(ManagedConnection),
    Mysql(Box<mysql::Connection>),
}

/// The rows of a statement, as they come.
pub(crate) enum Rows<'a> {
    Driver(OfDriver<'a>),
    Mysql(Box<mysql::Rows<'a>>),
}

/// Rows that a driver reads. The statement lives as long as they are read, and ends after them.
pub(crate) struct OfDriver<'a> {
    reader: Reader,
    _statement: ManagedStatement,
    settings: &'a DatabaseSettings,
}

type Reader = Box<dyn RecordBatchReader + Send>;

impl Link {
    /// Begins a statement whose rows have these columns, or those that it has by itself if none are named.
    pub(crate) fn begin<'a>(
        &'a mut self,
        sql: &str,
        columns: &[Arc<Column>],
        stop: &Stop,
        settings: &'a DatabaseSettings,
    ) -> Result<Rows<'a>, Fault> {
        match self {
            Self::Driver(connection) => {
                let (statement, reader) = begun(connection, sql, stop, settings)?;
                Ok(Rows::Driver(OfDriver { reader, _statement: statement, settings }))
            }
            Self::Mysql(connection) => Ok(Rows::Mysql(Box::new(connection.begin(sql, columns, stop)?))),
        }
    }

    /// Runs a statement that gives nothing.
    pub(crate) fn tell(&mut self, sql: &str, stop: &Stop, settings: &DatabaseSettings) -> Result<(), Fault> {
        match self {
            Self::Driver(connection) => tell_driver(connection, sql, stop, settings),
            Self::Mysql(connection) => connection.tell(sql, stop),
        }
    }

    /// The connection of a driver, for what nothing else has.
    pub(crate) fn driver(&mut self) -> Result<&mut ManagedConnection, Fault> {
        match self {
            Self::Driver(connection) => Ok(connection),
            Self::Mysql(_) => Err(Fault::Driver("this kind of database has none".to_owned())),
        }
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<RecordBatch, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Driver(rows) => {
                let settings = rows.settings;
                Some(rows.reader.next()?.map_err(|error| Fault::reading(&error, settings)))
            }
            Self::Mysql(rows) => rows.next(),
        }
    }
}

/// Runs a statement of a driver that gives nothing.
pub(crate) fn tell_driver(
    connection: &mut ManagedConnection,
    sql: &str,
    stop: &Stop,
    settings: &DatabaseSettings,
) -> Result<(), Fault> {
    let fault = |error: &adbc_core::error::Error| Fault::running(error, settings);
    let mut statement = connection.new_statement().map_err(|error| fault(&error))?;
    statement.set_sql_query(sql).map_err(|error| fault(&error))?;
    if !stop.arm(vec![statement.get_cancel_handle(), connection.get_cancel_handle()]) {
        return Err(Fault::Cancelled);
    }
    statement.execute_update().map(drop).map_err(|error| fault(&error))
}

/// The columns of a driver's statement that gives no rows.
pub(crate) fn schema_of(
    connection: &mut Link,
    sql: &str,
    stop: &Stop,
    settings: &DatabaseSettings,
) -> Result<SchemaRef, Fault> {
    let (_statement, reader) = begun(connection.driver()?, sql, stop, settings)?;
    Ok(reader.schema())
}

/// A driver's statement that runs, and its rows. The statement lives as long as they are read.
fn begun(
    connection: &mut ManagedConnection,
    sql: &str,
    stop: &Stop,
    settings: &DatabaseSettings,
) -> Result<(ManagedStatement, Reader), Fault> {
    let fault = |error: &adbc_core::error::Error| Fault::running(error, settings);
    let mut statement = connection.new_statement().map_err(|error| fault(&error))?;
    statement.set_sql_query(sql).map_err(|error| fault(&error))?;
    if !stop.arm(vec![statement.get_cancel_handle(), connection.get_cancel_handle()]) {
        return Err(Fault::Cancelled);
    }
    let reader = match settings.forward_token {
        true => fetched(connection, &mut statement, stop, settings)?,
        false => statement.execute().map_err(|error| fault(&error))?,
    };
    Ok((statement, reader))
}

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// The rows of a statement that is asked with the token of a caller: part by part over this connection, since a driver that fetches
/// them by itself goes wherever the server tells it to.
fn fetched(
    connection: &ManagedConnection,
    statement: &mut ManagedStatement,
    stop: &Stop,
    settings: &DatabaseSettings,
) -> Result<Reader, Fault> {
    let result = statement.execute_partitions().map_err(|error| Fault::running(&error, settings))?;
    let partitions = result.partitions.iter().map(|partition| at_its_place(partition, &settings.place));
    let partitions = partitions.collect::<Result<Vec<_>, _>>()?;
    // From here on it is the connection that works.
    if !stop.arm(vec![connection.get_cancel_handle()]) {
        return Err(Fault::Cancelled);
    }
    let connection = connection.clone();
    let rows = partitions.into_iter().flat_map(move |partition| -> Batches {
        match connection.read_partition(partition) {
            Ok(reader) => Box::new(reader),
            Err(error) => Box::new(std::iter::once(Err(ArrowError::ExternalError(error.message.into())))),
        }
    });
    Ok(Box::new(RecordBatchIterator::new(rows, Arc::new(result.schema))))
}
