//! Row groups of the Parquet files that we write: none has more in memory than readers take in one batch.

use arrow::array::RecordBatch;
use bowshot_api::batch_bytes;
use parquet::arrow::ArrowWriter;
use parquet::errors::ParquetError;
use std::io::Write;

/// Bytes in memory of the rows of a row group. What is written may be a thousandth of that: a text that repeats itself is
/// compressed to nothing, and a reader whose texts have offsets of 32 bits cannot take two gigabytes of it.
const GROUP_BYTES: usize = 512 << 20;

/// What the row group that is being written has in memory.
#[derive(Debug, Default)]
pub struct RowGroups {
    bytes: usize,
}

impl RowGroups {
    /// Writes rows, and closes row groups that have enough. The writer may close some by itself.
    pub fn write<W: Write + Send>(
        &mut self,
        writer: &mut ArrowWriter<W>,
        rows: &RecordBatch,
    ) -> Result<(), ParquetError> {
        let bytes = batch_bytes(rows);
        let step = rows.num_rows().div_ceil(bytes.div_ceil(GROUP_BYTES).max(1)).max(1);
        for start in (0..rows.num_rows()).step_by(step) {
            let part = rows.slice(start, step.min(rows.num_rows() - start));
            let open = writer.in_progress_rows() + part.num_rows();
            writer.write(&part)?;
            self.bytes += batch_bytes(&part);
            let left = writer.in_progress_rows();
            if left < open {
                self.bytes = self.bytes / open.max(1) * left;
            }
            if self.bytes >= GROUP_BYTES {
                writer.flush()?;
                self.bytes = 0;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Int64Array, StringArray};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use parquet::file::properties::WriterProperties;
    use std::sync::Arc;

    fn groups(batch: &RecordBatch, times: usize, group_rows: usize) -> Vec<i64> {
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group_rows)).build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        let mut groups = RowGroups::default();
        for _ in 0..times {
            groups.write(&mut writer, batch).unwrap();
        }
        let reader =
            ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(writer.into_inner().unwrap()));
        reader
            .unwrap()
            .metadata()
            .row_groups()
            .iter()
            .map(parquet::file::metadata::RowGroupMetaData::num_rows)
            .collect()
    }

    #[test]
    fn long_texts_make_row_groups_of_few_rows() {
        let texts = StringArray::from_iter_values(std::iter::repeat_n("a".repeat(1 << 20), 96));
        let batch = RecordBatch::try_from_iter([("x", Arc::new(texts) as ArrayRef)]).unwrap();
        let found = groups(&batch, 12, 1 << 20);
        assert_eq!(found.iter().sum::<i64>(), 12 * 96);
        assert!(found.iter().all(|rows| *rows <= 600), "{found:?}");
        assert!(found.len() <= 3, "{found:?}");
    }

    #[test]
    fn short_rows_make_those_of_the_writer() {
        let numbers = Int64Array::from_iter_values(0..100_000);
        let batch = RecordBatch::try_from_iter([("n", Arc::new(numbers) as ArrayRef)]).unwrap();
        assert_eq!(groups(&batch, 10, 300_000), [300_000, 300_000, 300_000, 100_000]);
    }
}
