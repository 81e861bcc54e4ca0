//! INSERT of many rows per statement, as parameters, in one transaction. A failure rolls back with the connection.

use super::connection::Connection;
use super::parameters::parameters;
use crate::cancellation::Cancellation;
use crate::columns::Column;
use crate::error::DatabaseError;
use datafusion::arrow::array::RecordBatch;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params, Row, Value};
use std::sync::Arc;

/// Most rows and parameters of a statement. The protocol allows 65,535 parameters.
const ROWS: usize = 512;
const PARAMETERS: usize = 60_000;
/// Bytes of values at which a statement is sent.
const BYTES: usize = 4 << 20;
/// Overhead of a message, and of each value.
const AROUND: usize = 1 << 10;
const BESIDE: usize = 3;

const BEGIN: &str = "START TRANSACTION READ WRITE";
const COMMIT: &str = "COMMIT";

/// The table that the rows go to.
pub(crate) struct Destination {
    /// The quoted table.
    pub(crate) relation: String,
    pub(crate) columns: Vec<Arc<Column>>,
}

/// Rows that are not sent yet.
struct Waiting<'a> {
    destination: &'a Destination,
    /// Values of whole rows.
    values: Vec<Value>,
    bytes: usize,
    /// Most bytes of a row.
    allowed: usize,
}

impl Destination {
    /// The statement for a number of rows.
    fn sql(&self, rows: usize) -> String {
        let names = self.columns.iter().map(|column| column.named.as_str()).collect::<Vec<_>>().join(", ");
        let row = format!("({})", vec!["?"; self.columns.len()].join(", "));
        format!("INSERT INTO {} ({names}) VALUES {}", self.relation, vec![row; rows].join(", "))
    }

    /// Most rows of a statement: a power of two, so that few statements are prepared.
    fn most(&self) -> usize {
        let fitting = (PARAMETERS / self.columns.len().max(1)).clamp(1, ROWS);
        1 << fitting.ilog2()
    }
}

/// Inserts the rows. `whole` says before the commit whether all of them arrived.
pub(crate) fn insert_rows(
    connection: &mut Connection,
    destination: &Destination,
    rows: impl Iterator<Item = Result<RecordBatch, DatabaseError>>,
    whole: impl Fn() -> bool,
    cancellation: &Cancellation,
) -> Result<(), DatabaseError> {
    connection.execute(BEGIN, cancellation)?;
    let allowed = largest(connection, cancellation)?;
    let mut waiting = Waiting { destination, values: Vec::new(), bytes: 0, allowed };
    for batch in rows {
        let batch = batch?;
        for row in rows_of(&batch, destination)? {
            let bytes = waiting.size_of(&row)?;
            if !waiting.has_room(bytes) {
                waiting.send(connection, cancellation)?;
            }
            waiting.bytes += bytes;
            waiting.values.extend(row);
        }
    }
    waiting.send(connection, cancellation)?;
    if !whole() {
        return Err(DatabaseError::Cancelled);
    }
    connection.execute(COMMIT, cancellation).map_err(|fault| match fault {
        DatabaseError::Unreachable(message) => {
            DatabaseError::Unreachable(format!("{message}; it is unknown whether the rows were committed"))
        }
        fault => fault,
    })
}

/// The server's limit of bytes for a message.
fn largest(connection: &mut Connection, cancellation: &Cancellation) -> Result<usize, DatabaseError> {
    let settings = Arc::clone(&connection.settings);
    let asked = async |conn: &mut Conn| conn.query_first::<Row, _>("SELECT @@max_allowed_packet").await;
    let row = connection.work(cancellation)?.done(&settings, asked)?;
    let bytes = row.and_then(|mut row| row.take_opt(0)).and_then(Result::ok);
    bytes.ok_or_else(|| DatabaseError::Unexpected("it did not return `max_allowed_packet`".to_owned()))
}

fn rows_of(
    batch: &RecordBatch,
    destination: &Destination,
) -> Result<impl Iterator<Item = Vec<Value>>, DatabaseError> {
    let columns = batch.columns().iter().zip(&destination.columns);
    let columns = columns.map(|(array, column)| parameters(array, column)).collect::<Result<Vec<_>, _>>()?;
    let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
    Ok((0..batch.num_rows()).map(move |_| columns.iter_mut().filter_map(Iterator::next).collect()))
}

impl Waiting<'_> {
    /// Bytes of a row in a message.
    fn size_of(&self, row: &[Value]) -> Result<usize, DatabaseError> {
        if row.len() != self.destination.columns.len() {
            return Err(DatabaseError::Unexpected("a row has a wrong number of values".to_owned()));
        }
        let bytes = row.iter().map(Value::bin_len).sum::<u64>();
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).saturating_add(row.len() * BESIDE);
        if bytes > self.most_bytes() {
            return Err(DatabaseError::Value(format!(
                "has a limit of {} bytes for a message (`max_allowed_packet`), and a row has {bytes} bytes",
                self.allowed
            )));
        }
        Ok(bytes)
    }

    fn most_bytes(&self) -> usize {
        self.allowed.saturating_sub(AROUND)
    }

    /// Whether a row fits into the same statement.
    fn has_room(&self, bytes: usize) -> bool {
        let rows = self.values.len() / self.destination.columns.len().max(1);
        rows == 0 || rows < self.destination.most() && self.bytes + bytes <= BYTES.min(self.most_bytes())
    }

    /// Sends the waiting rows, a power of two at a time.
    fn send(
        &mut self,
        connection: &mut Connection,
        cancellation: &Cancellation,
    ) -> Result<(), DatabaseError> {
        let mut left = std::mem::take(&mut self.values);
        self.bytes = 0;
        let columns = self.destination.columns.len().max(1);
        while left.len() >= columns {
            let rows = 1 << (left.len() / columns).ilog2();
            let rest = left.split_off(rows * columns);
            let settings = Arc::clone(&connection.settings);
            let (sql, values) = (self.destination.sql(rows), Params::Positional(left));
            let sent = async |conn: &mut Conn| conn.exec_drop(sql, values).await;
            connection.work(cancellation)?.done(&settings, sent)?;
            left = rest;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Comparison;
    use datafusion::arrow::datatypes::DataType;

    #[test]
    fn statements_have_as_many_parameters_as_the_protocol_counts() {
        let column = |number: usize| {
            let named = format!("`c{number}`");
            Arc::new(Column::plain("c", &named, DataType::Int64, Comparison::All))
        };
        let of = |columns: usize| Destination {
            relation: "`s`.`t`".to_owned(),
            columns: (0..columns).map(column).collect(),
        };
        assert_eq!(of(2).sql(2), "INSERT INTO `s`.`t` (`c0`, `c1`) VALUES (?, ?), (?, ?)");
        for columns in [1, 2, 117, 118, 1_000, 4_096] {
            let most = of(columns).most();
            assert!(
                most.is_power_of_two() && most <= ROWS && most * columns <= PARAMETERS,
                "{columns}: {most}"
            );
        }
    }
}
