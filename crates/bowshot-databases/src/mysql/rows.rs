//! The rows of a statement as record batches, read only as they are requested.

use super::connection::StatementState;
use super::error;
use super::values::Values;
use crate::columns::Column;
use crate::error::DatabaseError;
use crate::kind::ZeroDates;
use crate::settings::DatabaseSettings;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use mysql_async::consts::ColumnType;
use mysql_async::{BinaryProtocol, QueryResult, Row};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::{Instant, timeout_at};

/// Rows of a batch, and bytes of its values, which the last row may exceed.
const ROWS: usize = 8_192;
const BYTES: usize = 8 << 20;
/// How long a batch waits for more rows.
const BATCH_TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) struct Rows<'a> {
    runtime: &'a Runtime,
    result: QueryResult<'a, 'static, BinaryProtocol>,
    state: Arc<StatementState>,
    /// Set when all rows were read.
    clean: &'a mut bool,
    columns: Vec<Values>,
    schema: SchemaRef,
    settings: Arc<DatabaseSettings>,
    ended: bool,
}

/// The runtime, state and clean flag of a connection.
type RowSource<'a> = (&'a Runtime, Arc<StatementState>, &'a mut bool);

impl<'a> Rows<'a> {
    /// Rows of these columns, or of the answer if none are given.
    pub(super) fn new(
        (runtime, state, clean): RowSource<'a>,
        result: QueryResult<'a, 'static, BinaryProtocol>,
        columns: &[Arc<Column>],
        settings: Arc<DatabaseSettings>,
    ) -> Result<Self, DatabaseError> {
        let field = |name: &str, data_type: &DataType| Field::new(name, data_type.clone(), true);
        let fields: Fields = if columns.is_empty() {
            let number = |given: ColumnType| match given {
                ColumnType::MYSQL_TYPE_LONGLONG | ColumnType::MYSQL_TYPE_LONG => DataType::Int64,
                _ => DataType::Utf8,
            };
            let given = result.columns_ref().iter();
            given.map(|column| field(&column.name_str(), &number(column.column_type()))).collect()
        } else {
            columns.iter().map(|column| field(column.field.name(), column.field.data_type())).collect()
        };
        if result.columns_ref().len() != fields.len() {
            return Err(DatabaseError::Unexpected("it returned a wrong number of columns".to_owned()));
        }
        let values = fields.iter().map(|field| Values::of(field.data_type())).collect::<Option<_>>();
        let values = values.ok_or_else(|| DatabaseError::Unexpected("a type is not supported".to_owned()))?;
        let schema = Arc::new(Schema::new(fields));
        Ok(Self { runtime, result, state, clean, columns: values, schema, settings, ended: false })
    }

    /// Reads rows until a batch is full, has waited long enough, or there are no more; returns their number.
    fn fill(&mut self) -> Result<usize, DatabaseError> {
        let Self { runtime, result, state, columns, schema, settings, ended, .. } = self;
        let filling = async {
            let (mut rows, mut bytes, mut until) = (0, 0, None);
            while rows < ROWS && bytes < BYTES {
                let row = match until {
                    None => result.next().await,
                    // A partly received row stays in the connection.
                    Some(until) => match timeout_at(until, result.next()).await {
                        Ok(row) => row,
                        Err(_) => break,
                    },
                };
                let Some(row) = row.map_err(|error| error::running(&error, settings))? else {
                    *ended = true;
                    break;
                };
                bytes += taken(row, columns, schema, settings.zero_dates)?;
                rows += 1;
                until = until.or_else(|| Some(Instant::now() + BATCH_TIMEOUT));
            }
            Ok::<usize, DatabaseError>(rows)
        };
        runtime.block_on(state.unless_cancelled(filling)).flatten()
    }

    fn batch(&mut self, rows: usize) -> Result<RecordBatch, DatabaseError> {
        let arrays = self.columns.iter_mut().map(Values::finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
            .map_err(|error| DatabaseError::Unexpected(error.to_string()))
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<RecordBatch, DatabaseError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let filled = self.fill();
        self.ended |= filled.is_err();
        *self.clean = self.ended && filled.is_ok();
        if self.ended && !matches!(filled, Err(DatabaseError::Cancelled)) {
            self.state.end();
        }
        match filled {
            Ok(0) => None,
            Ok(rows) => Some(self.batch(rows)),
            Err(fault) => Some(Err(fault)),
        }
    }
}

/// Appends a row to the columns; returns its size.
fn taken(
    row: Row,
    columns: &mut [Values],
    schema: &Schema,
    zero_dates: ZeroDates,
) -> Result<usize, DatabaseError> {
    let mut bytes = 0;
    let row = row.unwrap_raw();
    if row.len() != columns.len() {
        return Err(DatabaseError::Unexpected("a row has a wrong number of values".to_owned()));
    }
    for ((value, column), field) in row.into_iter().zip(columns).zip(schema.fields()) {
        let value = value.ok_or_else(|| DatabaseError::Unexpected("a value is missing".to_owned()))?;
        bytes += column.push(value, zero_dates).map_err(|wrong| wrong.of(field))?;
    }
    Ok(bytes)
}
