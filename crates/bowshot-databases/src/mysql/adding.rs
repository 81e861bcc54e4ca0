//! Rows that are added: many by one INSERT, as parameters, and all of them in one transaction. What fails before its end is rolled
//! back with the connection.

use super::Connection;
use super::parameters::parameters;
use crate::columns::Column;
use crate::fault::Fault;
use crate::reading::Stop;
use datafusion::arrow::array::RecordBatch;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params, Row, Value};
use std::sync::Arc;

/// Most rows of a statement, and most parameters, of which the protocol counts 65,535.
const ROWS: usize = 512;
const PARAMETERS: usize = 60_000;
/// Bytes of the values of a statement from which on it is sent, where the server takes so many.
const BYTES: usize = 4 << 20;
/// What a message has beside its values, and beside each of them.
const AROUND: usize = 1 << 10;
const BESIDE: usize = 3;

const BEGIN: &str = "START TRANSACTION READ WRITE";
const COMMIT: &str = "COMMIT";

/// Where the rows go.
pub(crate) struct Destination {
    /// The table as it is written.
    pub(crate) relation: String,
    pub(crate) columns: Vec<Arc<Column>>,
}

/// Rows that wait for their statement.
struct Waiting<'a> {
    destination: &'a Destination,
    /// The values of whole rows, one after the other.
    values: Vec<Value>,
    bytes: usize,
    /// Most bytes of a row.
    allowed: usize,
}

impl Destination {
    /// The statement for so many rows.
    fn sql(&self, rows: usize) -> String {
        let names = self.columns.iter().map(|column| column.named.as_str()).collect::<Vec<_>>().join(", ");
        let row = format!("({})", vec!["?"; self.columns.len()].join(", "));
        format!("INSERT INTO {} ({names}) VALUES {}", self.relation, vec![row; rows].join(", "))
    }

    /// Most rows of a statement, a power of two: so there are few statements of different lengths.
    fn most(&self) -> usize {
        let fitting = (PARAMETERS / self.columns.len().max(1)).clamp(1, ROWS);
        1 << fitting.ilog2()
    }
}

/// Adds the rows. `whole` is asked before they count whether all of them have come.
pub(crate) fn add(
    connection: &mut Connection,
    destination: &Destination,
    rows: impl Iterator<Item = Result<RecordBatch, Fault>>,
    whole: impl Fn() -> bool,
    stop: &Stop,
) -> Result<(), Fault> {
    connection.tell(BEGIN, stop)?;
    let allowed = largest(connection, stop)?;
    let mut waiting = Waiting { destination, values: Vec::new(), bytes: 0, allowed };
    for batch in rows {
        let batch = batch?;
        for row in rows_of(&batch, destination)? {
            let bytes = waiting.size_of(&row)?;
            if !waiting.has_room(bytes) {
                waiting.send(connection, stop)?;
            }
            waiting.bytes += bytes;
            waiting.values.extend(row);
        }
    }
    waiting.send(connection, stop)?;
    if !whole() {
        return Err(Fault::Cancelled);
    }
    connection.tell(COMMIT, stop).map_err(|fault| match fault {
        Fault::Unreachable(told) => Fault::Unreachable(format!(
            "{told}; it was told to make the rows count, and has not said whether they do"
        )),
        fault => fault,
    })
}

/// Most bytes of a message that the server takes.
fn largest(connection: &mut Connection, stop: &Stop) -> Result<usize, Fault> {
    let settings = Arc::clone(&connection.settings);
    let asked = async |conn: &mut Conn| conn.query_first::<Row, _>("SELECT @@max_allowed_packet").await;
    let row = connection.work(stop)?.done(&settings, asked)?;
    let bytes = row.and_then(|mut row| row.take_opt(0)).and_then(Result::ok);
    bytes.ok_or_else(|| Fault::Unexpected("it has not said how large a message may be".to_owned()))
}

/// A batch as rows of values.
fn rows_of(
    batch: &RecordBatch,
    destination: &Destination,
) -> Result<impl Iterator<Item = Vec<Value>>, Fault> {
    let columns = batch.columns().iter().zip(&destination.columns);
    let columns = columns.map(|(array, column)| parameters(array, column)).collect::<Result<Vec<_>, _>>()?;
    let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
    Ok((0..batch.num_rows()).map(move |_| columns.iter_mut().filter_map(Iterator::next).collect()))
}

impl Waiting<'_> {
    /// Bytes of a row in a message.
    fn size_of(&self, row: &[Value]) -> Result<usize, Fault> {
        if row.len() != self.destination.columns.len() {
            return Err(Fault::Unexpected("a row has not as many values as there are columns".to_owned()));
        }
        let bytes = row.iter().map(Value::bin_len).sum::<u64>();
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).saturating_add(row.len() * BESIDE);
        if bytes > self.most_bytes() {
            return Err(Fault::Value(format!(
                "takes messages of {} bytes (`max_allowed_packet`), which a row of {bytes} bytes does not fit into",
                self.allowed
            )));
        }
        Ok(bytes)
    }

    fn most_bytes(&self) -> usize {
        self.allowed.saturating_sub(AROUND)
    }

    /// Whether a row may come into the same statement.
    fn has_room(&self, bytes: usize) -> bool {
        let rows = self.values.len() / self.destination.columns.len().max(1);
        rows == 0 || rows < self.destination.most() && self.bytes + bytes <= BYTES.min(self.most_bytes())
    }

    /// Sends what waits, by statements of powers of two of rows.
    fn send(&mut self, connection: &mut Connection, stop: &Stop) -> Result<(), Fault> {
        let mut left = std::mem::take(&mut self.values);
        self.bytes = 0;
        let columns = self.destination.columns.len().max(1);
        while left.len() >= columns {
            let rows = 1 << (left.len() / columns).ilog2();
            let rest = left.split_off(rows * columns);
            let settings = Arc::clone(&connection.settings);
            let (sql, values) = (self.destination.sql(rows), Params::Positional(left));
            let sent = async |conn: &mut Conn| conn.exec_drop(sql, values).await;
            connection.work(stop)?.done(&settings, sent)?;
            left = rest;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Compares;
    use datafusion::arrow::datatypes::DataType;

    #[test]
    fn statements_have_as_many_parameters_as_the_protocol_counts() {
        let column = |number: usize| {
            let named = format!("`c{number}`");
            Arc::new(Column::plain("c", &named, DataType::Int64, Compares::All))
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

    #[test]
    fn a_row_that_does_not_fit_is_told_before_it_is_sent() {
        let column = Arc::new(Column::plain("c", "`c`", DataType::Utf8, Compares::Nothing));
        let destination = Destination { relation: "t".to_owned(), columns: vec![column] };
        let waiting = Waiting {
            destination: &destination,
            values: vec![Value::NULL],
            bytes: 600_000,
            allowed: 1 << 20,
        };
        let size = |bytes: usize| waiting.size_of(&[Value::Bytes(vec![b'a'; bytes])]);
        assert!(waiting.has_room(size(400_000).unwrap()));
        assert!(!waiting.has_room(size(500_000).unwrap()));
        assert!(matches!(size(1 << 20), Err(Fault::Value(_))));
        assert!(matches!(waiting.size_of(&[]), Err(Fault::Unexpected(_))));
    }
}
