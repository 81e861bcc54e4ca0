//! A connection: through an ADBC driver, or MySQL's client. Both block, and both return rows as record batches.

use crate::cancellation::Cancellation;
use crate::columns::Column;
use crate::error::DatabaseError;
use crate::flight_partitions::pin_to_server;
use crate::mysql;
use crate::settings::DatabaseSettings;
use adbc_core::{Connection, Statement};
use adbc_driver_manager::{ManagedConnection, ManagedStatement};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, RecordBatch, RecordBatchIterator, RecordBatchReader,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::error::ArrowError;
use std::sync::Arc;

/// Most rows of an answer about tables.
const MAX_ANSWER_ROWS: usize = 1_000_000;

pub(crate) enum DatabaseConnection {
    Driver(ManagedConnection),
    Mysql(Box<mysql::Connection>),
}

/// Rows of texts; `None` for NULL.
pub(crate) type TextRows = Vec<Vec<Option<String>>>;

/// The rows of a statement.
pub(crate) enum Rows<'a> {
    Driver(DriverRows<'a>),
    Mysql(Box<mysql::Rows<'a>>),
}

/// Rows of a driver. The statement must live as long as its reader.
pub(crate) struct DriverRows<'a> {
    reader: Reader,
    _statement: ManagedStatement,
    settings: &'a DatabaseSettings,
}

type Reader = Box<dyn RecordBatchReader + Send>;

impl DatabaseConnection {
    /// Starts a statement with rows of these columns, or of its own ones if none are given.
    pub(crate) fn query<'a>(
        &'a mut self,
        sql: &str,
        columns: &[Arc<Column>],
        cancellation: &Cancellation,
        settings: &'a DatabaseSettings,
    ) -> Result<Rows<'a>, DatabaseError> {
        match self {
            Self::Driver(connection) => {
                let (statement, reader) = start_statement(connection, sql, cancellation, settings)?;
                Ok(Rows::Driver(DriverRows { reader, _statement: statement, settings }))
            }
            Self::Mysql(connection) => {
                Ok(Rows::Mysql(Box::new(connection.query(sql, columns, cancellation)?)))
            }
        }
    }

    /// Runs a statement without rows.
    pub(crate) fn execute(
        &mut self,
        sql: &str,
        cancellation: &Cancellation,
        settings: &DatabaseSettings,
    ) -> Result<(), DatabaseError> {
        match self {
            Self::Driver(connection) => execute_on_driver(connection, sql, cancellation, settings),
            Self::Mysql(connection) => connection.execute(sql, cancellation),
        }
    }

    /// The rows of a statement with a small answer, as texts.
    pub(crate) fn query_texts(
        &mut self,
        sql: &str,
        cancellation: &Cancellation,
        settings: &DatabaseSettings,
    ) -> Result<TextRows, DatabaseError> {
        let mut rows = Vec::new();
        for batch in self.query(sql, &[], cancellation, settings)? {
            append_texts(&mut rows, &batch?)?;
            if rows.len() > MAX_ANSWER_ROWS {
                return Err(DatabaseError::Unexpected("it has too many tables or columns".to_owned()));
            }
        }
        Ok(rows)
    }

    /// The connection of a driver, for calls that only drivers have.
    pub(crate) fn driver(&mut self) -> Result<&mut ManagedConnection, DatabaseError> {
        match self {
            Self::Driver(connection) => Ok(connection),
            Self::Mysql(_) => Err(DatabaseError::Driver("this kind of database has none".to_owned())),
        }
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<RecordBatch, DatabaseError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Driver(rows) => {
                let settings = rows.settings;
                Some(rows.reader.next()?.map_err(|error| DatabaseError::from_rows(&error, settings)))
            }
            Self::Mysql(rows) => rows.next(),
        }
    }
}

/// Runs a statement without rows through a driver.
pub(crate) fn execute_on_driver(
    connection: &mut ManagedConnection,
    sql: &str,
    cancellation: &Cancellation,
    settings: &DatabaseSettings,
) -> Result<(), DatabaseError> {
    let fault = |error: &adbc_core::error::Error| DatabaseError::from_statement(error, settings);
    let mut statement = connection.new_statement().map_err(|error| fault(&error))?;
    statement.set_sql_query(sql).map_err(|error| fault(&error))?;
    if !cancellation.arm(vec![statement.get_cancel_handle(), connection.get_cancel_handle()]) {
        return Err(DatabaseError::Cancelled);
    }
    statement.execute_update().map(drop).map_err(|error| fault(&error))
}

fn append_texts(rows: &mut TextRows, batch: &RecordBatch) -> Result<(), DatabaseError> {
    let columns = batch.columns().iter().map(|column| cast(column, &DataType::Utf8));
    let columns = columns.collect::<Result<Vec<_>, _>>();
    let columns = columns.map_err(|error| DatabaseError::Unexpected(error.to_string()))?;
    for column in &columns {
        let checked = column.to_data().validate_full();
        checked.map_err(|_| DatabaseError::Unexpected("a name is not valid UTF-8".to_owned()))?;
    }
    rows.extend((0..batch.num_rows()).map(|row| {
        let text =
            |column: &ArrayRef| column.is_valid(row).then(|| column.as_string::<i32>().value(row).to_owned());
        columns.iter().map(text).collect()
    }));
    Ok(())
}

/// The columns of a statement.
pub(crate) fn schema_of(
    connection: &mut DatabaseConnection,
    sql: &str,
    cancellation: &Cancellation,
    settings: &DatabaseSettings,
) -> Result<SchemaRef, DatabaseError> {
    let (_statement, reader) = start_statement(connection.driver()?, sql, cancellation, settings)?;
    Ok(reader.schema())
}

/// Starts a statement through a driver. It must live as long as its reader.
fn start_statement(
    connection: &mut ManagedConnection,
    sql: &str,
    cancellation: &Cancellation,
    settings: &DatabaseSettings,
) -> Result<(ManagedStatement, Reader), DatabaseError> {
    let fault = |error: &adbc_core::error::Error| DatabaseError::from_statement(error, settings);
    let mut statement = connection.new_statement().map_err(|error| fault(&error))?;
    statement.set_sql_query(sql).map_err(|error| fault(&error))?;
    if !cancellation.arm(vec![statement.get_cancel_handle(), connection.get_cancel_handle()]) {
        return Err(DatabaseError::Cancelled);
    }
    let reader = match settings.forward_token {
        true => read_partitions(connection, &mut statement, cancellation, settings)?,
        false => statement.execute().map_err(|error| fault(&error))?,
    };
    Ok((statement, reader))
}

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// Reads the partitions of a statement that has the token of a caller over this connection, since a driver that fetches
/// them by itself connects to any server that this one names.
fn read_partitions(
    connection: &ManagedConnection,
    statement: &mut ManagedStatement,
    cancellation: &Cancellation,
    settings: &DatabaseSettings,
) -> Result<Reader, DatabaseError> {
    let result =
        statement.execute_partitions().map_err(|error| DatabaseError::from_statement(&error, settings))?;
    let partitions = result.partitions.iter().map(|partition| pin_to_server(partition, &settings.place));
    let partitions = partitions.collect::<Result<Vec<_>, _>>()?;
    // The connection fetches from here on.
    if !cancellation.arm(vec![connection.get_cancel_handle()]) {
        return Err(DatabaseError::Cancelled);
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
