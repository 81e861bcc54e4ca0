//! Rows from Arrow to PostgreSQL: the type of a column (`types.rs`), and its values in text and binary.

mod json;
mod lists;
mod numbers;
mod scalars;
mod times;
mod types;

#[cfg(test)]
mod tests;

pub(crate) use numbers::binary_numeric;
pub(crate) use times::{EPOCH_DAYS, EPOCH_MICROS};
pub(crate) use types::{Kind, PgType};

use crate::backend_messages::put_length;
use crate::frontend_messages::Format;
use crate::status::Failure;
use arrow::array::ArrayRef;
use arrow::array::timezone::Tz;
use arrow::datatypes::{DataType, FieldRef, Schema};
use arrow::record_batch::RecordBatch;
use bowshot_rowwire::encode::ColumnEncoder;
use bytes::{BufMut, BytesMut};

/// The result of writing a value.
type Written = Result<(), Failure>;
/// The values of one column.
type Column = Box<dyn ColumnEncoder<Failure>>;

/// A batch whose rows can be written.
pub(crate) struct Rows {
    columns: Vec<Column>,
    count: usize,
}

impl Rows {
    /// `zone` is the time zone of texts of timestamps; those within lists are in UTC, as all are without one.
    pub(crate) fn new(batch: &RecordBatch, zone: Option<Tz>) -> Result<Self, Failure> {
        let schema = batch.schema();
        let encoder = |(column, field): (&ArrayRef, &FieldRef)| match (zone, column.data_type()) {
            (Some(zone), DataType::Timestamp(unit, Some(_))) => scalars::instant_encoder(column, *unit, zone),
            _ => scalars::column_encoder(column, field),
        };
        let columns = batch.columns().iter().zip(schema.fields()).map(encoder);
        Ok(Self { columns: columns.collect::<Result<_, _>>()?, count: batch.num_rows() })
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Writes one row as the message DataRow.
    ///
    /// # Errors
    /// For a value that PostgreSQL's type cannot hold; nothing of the row stays in the buffer then.
    pub(crate) fn data_row(&self, row: usize, formats: &[Format], out: &mut BytesMut) -> Written {
        self.framed(b'D', row, out, |out| {
            crate::backend_messages::put_count(out, self.columns.len());
            for (index, column) in self.columns.iter().enumerate() {
                let format = formats.get(index).copied().unwrap_or(Format::Text);
                put_value(column.as_ref(), format, row, out)?;
            }
            Ok(())
        })
    }

    /// Writes one row as CopyData in the binary format of COPY; `head` precedes the first one.
    pub(crate) fn copy_tuple(&self, row: usize, head: &[u8], out: &mut BytesMut) -> Written {
        self.framed(b'd', row, out, |out| {
            out.put_slice(head);
            crate::backend_messages::put_count(out, self.columns.len());
            self.columns.iter().try_for_each(|column| put_value(column.as_ref(), Format::Binary, row, out))
        })
    }

    /// Writes one row as CopyData, each text through `put`.
    pub(crate) fn copy_texts(
        &self,
        row: usize,
        out: &mut BytesMut,
        scratch: &mut BytesMut,
        mut put: impl FnMut(usize, Option<&[u8]>, &mut BytesMut),
    ) -> Written {
        self.framed(b'd', row, out, |out| {
            for (index, column) in self.columns.iter().enumerate() {
                if column.is_null(row) {
                    put(index, None, out);
                    continue;
                }
                scratch.clear();
                column.text(row, scratch)?;
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
        body: impl FnOnce(&mut BytesMut) -> Written,
    ) -> Written {
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
fn put_value(column: &dyn ColumnEncoder<Failure>, format: Format, row: usize, out: &mut BytesMut) -> Written {
    if column.is_null(row) {
        out.put_i32(-1);
        return Ok(());
    }
    let at = out.len();
    out.put_i32(0);
    match format {
        Format::Text => column.text(row, out)?,
        Format::Binary => column.binary(row, out)?,
    }
    let length = i32::try_from(out.len() - at - 4).map_err(|_| too_large("value"))?;
    put_length(out, at, length);
    Ok(())
}

/// The types of the columns of a result.
pub(crate) fn types(schema: &Schema) -> Vec<PgType> {
    schema.fields().iter().map(|field| PgType::from_field(field)).collect()
}
