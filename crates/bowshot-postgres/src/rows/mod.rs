//! Rows from Arrow to PostgreSQL: which type a column becomes (`types.rs`), and its values in text and binary. The branches
//! over types are taken once per batch; per value there is one call.

mod cells;
mod json;
mod lists;
mod numbers;
mod times;
mod types;

#[cfg(test)]
mod tests;

pub(crate) use numbers::binary_numeric;
pub(crate) use times::{EPOCH_DAYS, EPOCH_MICROS};
pub(crate) use types::{Kind, PgType};

use crate::backend::put_length;
use crate::message::Format;
use crate::status::Failure;
use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, FieldRef, Schema};
use arrow::record_batch::RecordBatch;
use bytes::{BufMut, BytesMut};

/// The outcome of writing one value.
type Done = Result<(), Failure>;

/// The values of one column of a batch, ready to be written.
trait Cell: Send + Sync {
    fn is_null(&self, row: usize) -> bool;
    fn text(&self, row: usize, out: &mut BytesMut) -> Done;
    fn binary(&self, row: usize, out: &mut BytesMut) -> Done;
}

/// A cell of an array and two functions that write one of its values.
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

    fn binary(&self, row: usize, out: &mut BytesMut) -> Done {
        (self.binary)(&self.array, row, out)
    }
}

/// A batch on its way out.
pub(crate) struct Rows {
    cells: Vec<Box<dyn Cell>>,
    count: usize,
}

impl Rows {
    /// `zone` is that of texts of instants at the top of a row; those within lists are in UTC, as all are without one.
    ///
    /// # Errors
    /// When a column cannot be brought into a form that has a place in PostgreSQL.
    pub(crate) fn new(batch: &RecordBatch, zone: Option<Tz>) -> Result<Self, Failure> {
        let schema = batch.schema();
        let columns = batch.columns().iter().zip(schema.fields());
        let cell = |(column, field): (&ArrayRef, &FieldRef)| match (zone, column.data_type()) {
            (Some(zone), DataType::Timestamp(unit, Some(_))) => cells::instant(column, *unit, zone),
            _ => cells::cell(column, field),
        };
        let cells = columns.map(cell).collect::<Result<_, _>>()?;
        Ok(Self { cells, count: batch.num_rows() })
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Writes one row as the message DataRow.
    ///
    /// # Errors
    /// For a value that PostgreSQL's type cannot hold; nothing of the row is left in the buffer then.
    pub(crate) fn data_row(&self, row: usize, formats: &[Format], out: &mut BytesMut) -> Done {
        self.framed(b'D', row, out, |out| {
            crate::backend::put_count(out, self.cells.len());
            for (index, cell) in self.cells.iter().enumerate() {
                let format = formats.get(index).copied().unwrap_or(Format::Text);
                put_value(cell.as_ref(), format, row, out)?;
            }
            Ok(())
        })
    }

    /// Writes one row as a tuple of the binary form of COPY, in a message CopyData, behind what begins that form if it is
    /// the first one.
    pub(crate) fn copy_tuple(&self, row: usize, head: &[u8], out: &mut BytesMut) -> Done {
        self.framed(b'd', row, out, |out| {
            out.put_slice(head);
            crate::backend::put_count(out, self.cells.len());
            self.cells.iter().try_for_each(|cell| put_value(cell.as_ref(), Format::Binary, row, out))
        })
    }

    /// Writes the texts of one row, each through `put`, in a message CopyData.
    pub(crate) fn copy_texts(
        &self,
        row: usize,
        out: &mut BytesMut,
        scratch: &mut BytesMut,
        mut put: impl FnMut(usize, Option<&[u8]>, &mut BytesMut),
    ) -> Done {
        self.framed(b'd', row, out, |out| {
            for (index, cell) in self.cells.iter().enumerate() {
                if cell.is_null(row) {
                    put(index, None, out);
                    continue;
                }
                scratch.clear();
                cell.text(row, scratch)?;
                put(index, Some(scratch), out);
            }
            out.put_u8(b'\n');
            Ok(())
        })
    }

    fn framed(
        &self,
        tag: u8,
        row: usize,
        out: &mut BytesMut,
        body: impl FnOnce(&mut BytesMut) -> Done,
    ) -> Done {
        let before = out.len();
        out.put_u8(tag);
        out.put_i32(0);
        let written = body(out).and_then(|()| {
            let length = i32::try_from(out.len() - before - 1).map_err(|_| too_large("row"))?;
            put_length(out, before + 1, length);
            Ok(())
        });
        if written.is_err() {
            tracing::debug!(row, "a row could not be written");
            out.truncate(before);
        }
        written
    }
}

fn too_large(what: &str) -> Failure {
    Failure::new("54000", format!("a {what} is larger than the protocol allows"))
        .with_hint("select less of it, or use Arrow Flight SQL")
}

/// A value with its length before it, -1 for null.
fn put_value(cell: &dyn Cell, format: Format, row: usize, out: &mut BytesMut) -> Done {
    if cell.is_null(row) {
        out.put_i32(-1);
        return Ok(());
    }
    let at = out.len();
    out.put_i32(0);
    match format {
        Format::Text => cell.text(row, out)?,
        Format::Binary => cell.binary(row, out)?,
    }
    let length = i32::try_from(out.len() - at - 4).map_err(|_| too_large("value"))?;
    put_length(out, at, length);
    Ok(())
}

/// The types of the columns of a result.
pub(crate) fn types(schema: &Schema) -> Vec<PgType> {
    schema.fields().iter().map(|field| PgType::of(field)).collect()
}
