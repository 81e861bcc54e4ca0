//! Rows from Arrow to MySQL: the type of a column (`types.rs`), and its values in text and binary.

mod json;
mod scalars;
mod times;
mod types;

#[cfg(test)]
mod tests;

pub(crate) use types::{ColumnType, Kind};

use crate::server_packets::put_counted_by;
use crate::status::Failure;
use arrow::datatypes::Schema;
use arrow::record_batch::RecordBatch;
use bowshot_rowwire::encode::ColumnEncoder;
use bytes::{BufMut, BytesMut};

/// The result of writing a value.
type Written = Result<(), Failure>;
/// The values of one column. Their binary form has a fixed width, or its length before it.
type Encoder = Box<dyn ColumnEncoder<Failure>>;

/// The format of rows: text for COM_QUERY, binary for prepared statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Binary,
}

/// A batch whose rows can be written.
pub(crate) struct Rows {
    columns: Vec<Encoder>,
    count: usize,
}

/// NULL in a text row.
const NULL: u8 = 0xfb;
/// Bits of the null bitmap before that of the first column.
const BEFORE_NULLS: usize = 2;

impl Rows {
    /// A batch whose timestamps are written in a time zone.
    pub(crate) fn new(batch: &RecordBatch, zone: &str) -> Result<Self, Failure> {
        let schema = batch.schema();
        let columns = batch.columns().iter().zip(schema.fields());
        let columns = columns.map(|(column, field)| scalars::column_encoder(column, field, zone));
        let columns = columns.collect::<Result<_, _>>()?;
        Ok(Self { columns, count: batch.num_rows() })
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn put(&self, row: usize, format: Format, out: &mut BytesMut) -> Written {
        match format {
            Format::Text => self.put_text(row, out),
            Format::Binary => self.put_binary(row, out),
        }
    }

    fn put_text(&self, row: usize, out: &mut BytesMut) -> Written {
        for column in &self.columns {
            if column.is_null(row) {
                out.put_u8(NULL);
            } else {
                put_counted_by(out, |out| column.text(row, out))?;
            }
        }
        Ok(())
    }

    fn put_binary(&self, row: usize, out: &mut BytesMut) -> Written {
        out.put_u8(0);
        let nulls = out.len();
        out.put_bytes(0, (self.columns.len() + 7 + BEFORE_NULLS) / 8);
        for (index, column) in self.columns.iter().enumerate() {
            if column.is_null(row) {
                let bit = index + BEFORE_NULLS;
                if let Some(byte) = out.get_mut(nulls + bit / 8) {
                    *byte |= 1 << (bit % 8);
                }
                continue;
            }
            column.binary(row, out)?;
        }
        Ok(())
    }
}

/// The types of the columns of a result.
pub(crate) fn types(schema: &Schema) -> Vec<ColumnType> {
    schema.fields().iter().map(|field| ColumnType::from_field(field)).collect()
}
