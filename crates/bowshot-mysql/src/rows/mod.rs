//! Rows from Arrow to MySQL: which type a column becomes (`types.rs`), and its values in text and binary. The branches over types
//! are taken once per batch; per value there is one call.

mod cells;
mod json;
mod lists;
mod times;
mod types;

#[cfg(test)]
mod tests;

pub(crate) use types::{ColumnType, Kind};

use crate::reply::put_counted;
use crate::status::Failure;
use arrow::array::Array;
use arrow::datatypes::Schema;
use arrow::record_batch::RecordBatch;
use bytes::{BufMut, BytesMut};

/// The outcome of writing one value.
type Done = Result<(), Failure>;

/// How rows are written: as texts for COM_QUERY, in binary for prepared statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Binary,
}

/// The values of one column of a batch, ready to be written.
trait Cell: Send + Sync {
    fn is_null(&self, row: usize) -> bool;
    /// The text alone, without its length.
    fn text(&self, row: usize, out: &mut BytesMut) -> Done;
    /// The whole value of a binary row; `scratch` is empty.
    fn binary(&self, row: usize, out: &mut BytesMut, scratch: &mut BytesMut) -> Done;
}

/// A cell of an array and two functions that write one of its values: a text, and a binary form with fixed width or its
/// length before it.
struct Of<A, T, B> {
    array: A,
    text: T,
    binary: B,
}

impl<A, T, B> Cell for Of<A, T, B>
where
    A: Array,
    T: Fn(&A, usize, &mut BytesMut) -> Done + Send + Sync,
    B: Fn(&A, usize, &mut BytesMut) -> Done + Send + Sync,
{
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn text(&self, row: usize, out: &mut BytesMut) -> Done {
        (self.text)(&self.array, row, out)
    }

    fn binary(&self, row: usize, out: &mut BytesMut, _: &mut BytesMut) -> Done {
        (self.binary)(&self.array, row, out)
    }
}

/// A cell whose binary form is its text.
struct Texts<A, T> {
    array: A,
    text: T,
}

impl<A, T> Cell for Texts<A, T>
where
    A: Array,
    T: Fn(&A, usize, &mut BytesMut) -> Done + Send + Sync,
{
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn text(&self, row: usize, out: &mut BytesMut) -> Done {
        (self.text)(&self.array, row, out)
    }

    fn binary(&self, row: usize, out: &mut BytesMut, scratch: &mut BytesMut) -> Done {
        self.text(row, scratch)?;
        put_counted(out, scratch);
        Ok(())
    }
}

/// A batch on its way out.
pub(crate) struct Rows {
    cells: Vec<Box<dyn Cell>>,
    count: usize,
}

/// Null in a row of texts.
const NULL: u8 = 0xfb;
/// Bits of the map of nulls that stand before the first column's.
const BEFORE_NULLS: usize = 2;

impl Rows {
    /// A batch whose points of time are shown in a time zone.
    ///
    /// # Errors
    /// When a column cannot be brought into a form that has a place in MySQL.
    pub(crate) fn new(batch: &RecordBatch, zone: &str) -> Result<Self, Failure> {
        let schema = batch.schema();
        let columns = batch.columns().iter().zip(schema.fields());
        let cells =
            columns.map(|(column, field)| cells::cell(column, field, zone)).collect::<Result<_, _>>()?;
        Ok(Self { cells, count: batch.num_rows() })
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Writes one row, with a buffer for values whose length is known last.
    ///
    /// # Errors
    /// For a value that MySQL's type cannot hold.
    pub(crate) fn put(&self, row: usize, format: Format, out: &mut BytesMut, scratch: &mut BytesMut) -> Done {
        match format {
            Format::Text => self.put_texts(row, out, scratch),
            Format::Binary => self.put_binary(row, out, scratch),
        }
    }

    fn put_texts(&self, row: usize, out: &mut BytesMut, scratch: &mut BytesMut) -> Done {
        for cell in &self.cells {
            if cell.is_null(row) {
                out.put_u8(NULL);
                continue;
            }
            scratch.clear();
            cell.text(row, scratch)?;
            put_counted(out, scratch);
        }
        Ok(())
    }

    fn put_binary(&self, row: usize, out: &mut BytesMut, scratch: &mut BytesMut) -> Done {
        out.put_u8(0);
        let nulls = out.len();
        out.put_bytes(0, (self.cells.len() + 7 + BEFORE_NULLS) / 8);
        for (index, cell) in self.cells.iter().enumerate() {
            if cell.is_null(row) {
                let bit = index + BEFORE_NULLS;
                if let Some(byte) = out.get_mut(nulls + bit / 8) {
                    *byte |= 1 << (bit % 8);
                }
                continue;
            }
            scratch.clear();
            cell.binary(row, out, scratch)?;
        }
        Ok(())
    }
}

/// The types of the columns of a result.
pub(crate) fn types(schema: &Schema) -> Vec<ColumnType> {
    schema.fields().iter().map(|field| ColumnType::of(field)).collect()
}
