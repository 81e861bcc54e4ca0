//! Rows of a column chunk by its pages and by its footer. Readers stop where the pages end, while counts without a scan come
//! from the footer: a file that says both would have two answers.

use bytes::Bytes;
use bytes::buf::{Buf, Reader};
use parquet::column::page::PageReader;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use std::ops::Range;
use std::sync::Arc;

/// Compares what was read of a file with its footer, where that is a whole column chunk with one value in each row.
pub(super) fn check(footer: &ParquetMetaData, read: &[(Range<u64>, Bytes)]) -> Result<()> {
    for (range, bytes) in read {
        let Some((chunk, rows)) = chunk_at(footer, range) else { continue };
        // What cannot be counted is left to the decoder, whose errors say more.
        let found = count(chunk, rows, range.start, bytes.clone()).unwrap_or(rows);
        if found != rows {
            let column = chunk.column_path().string();
            return Err(ParquetError::General(format!(
                "the footer counts {rows} rows in a row group, the pages of column `{column}` have {found}"
            )));
        }
    }
    Ok(())
}

/// The chunk of these bytes, and the rows of its row group. Writers lay both out in order, so neither is searched one by one.
fn chunk_at<'a>(footer: &'a ParquetMetaData, range: &Range<u64>) -> Option<(&'a ColumnChunkMetaData, usize)> {
    let groups = footer.row_groups();
    let behind = groups.partition_point(|group| {
        group.columns().first().and_then(start).is_some_and(|start| start <= range.start)
    });
    let group = groups.get(behind.checked_sub(1)?)?;
    let chunks = group.columns();
    let behind = chunks.partition_point(|chunk| start(chunk).is_some_and(|start| start <= range.start));
    let chunk = chunks.get(behind.checked_sub(1)?)?;
    let length = u64::try_from(chunk.compressed_size()).ok()?;
    let is_whole = start(chunk)? == range.start && range.end.checked_sub(range.start)? == length;
    let rows = usize::try_from(group.num_rows()).ok()?;
    (is_whole && chunk.column_descr().max_rep_level() == 0).then_some((chunk, rows))
}

fn start(chunk: &ColumnChunkMetaData) -> Option<u64> {
    u64::try_from(chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset())).ok()
}

/// Values of the pages, by their headers alone.
fn count(chunk: &ColumnChunkMetaData, rows: usize, start: u64, bytes: Bytes) -> Option<usize> {
    let mut pages = SerializedPageReader::new(Arc::new(Chunk { start, bytes }), chunk, rows, None).ok()?;
    let mut values = 0_usize;
    while let Some(page) = pages.peek_next_page().ok()? {
        if !page.is_dict {
            values = values.checked_add(page.num_levels?)?;
        }
        pages.skip_next_page().ok()?;
    }
    Some(values)
}

/// The bytes of a chunk, at their place in the file.
struct Chunk {
    start: u64,
    bytes: Bytes,
}

impl Chunk {
    fn from(&self, start: u64) -> Result<Bytes> {
        let skipped = start.checked_sub(self.start).and_then(|skipped| usize::try_from(skipped).ok());
        match skipped.filter(|skipped| *skipped <= self.bytes.len()) {
            Some(skipped) => Ok(self.bytes.slice(skipped..)),
            None => Err(ParquetError::EOF(format!("no byte {start} in the column chunk"))),
        }
    }
}

impl Length for Chunk {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for Chunk {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.from(start)?;
        match bytes.len() < length {
            true => Err(ParquetError::EOF(format!("fewer than {length} bytes at {start}"))),
            false => Ok(bytes.slice(..length)),
        }
    }
}
