//! Arrow IPC: files are mapped, and their batches share the mapped memory; streams are read in sequence.

use crate::batches::{Batches, Request};
use crate::data_file::DataFile;
use crate::file_metadata::{Detail, FileFacts};
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use bowshot_ipc::{Decoded, Decoder, MappedFile};
use bowshot_object_store::Error;
use bytes::Bytes;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// What an Arrow IPC file, as opposed to a stream, begins with.
const FILE_MAGIC: &[u8] = b"ARROW1";

/// What stands before the length of a message since version 0.15 of Arrow.
const CONTINUATION: u32 = u32::MAX;

pub fn facts(file: &Arc<DataFile>) -> Result<FileFacts, Error> {
    let head = file.read(0..file.size().min(FILE_MAGIC.len() as u64))?;
    if head != FILE_MAGIC {
        let mut stream = Stream { file: Arc::clone(file), at: 0, decoder: Decoder::new() };
        let columns = match stream.message()? {
            Some(Decoded::Schema(schema)) => bare(&schema),
            _ => return Err(Error::corrupt(file.path(), "neither an Arrow file nor an Arrow stream")),
        };
        return Ok(FileFacts { columns, rows: None, detail: Detail::ArrowStream });
    }
    let mapped = file.map()?;
    let rows = (0..mapped.len()).map(|batch| mapped.rows(batch)).sum::<Result<usize, _>>();
    let rows = rows.map_err(|error| explain(file, error))?;
    let columns = bare(mapped.schema());
    Ok(FileFacts { columns, rows: Some(rows), detail: Detail::ArrowFile { batches: mapped.len() } })
}

/// The batches whose share of the file lies in the wanted range: each batch belongs to exactly one range.
pub fn open(file: &Arc<DataFile>, batches: usize, request: &Request) -> Result<Batches, Error> {
    let mapped = file.map()?;
    request.shared.add(file, &mapped);
    let wanted = batches_in(request.range.as_ref(), file.size(), batches);
    let positions = request.positions_in(mapped.schema());
    let mut mapped = Mapped { file: Arc::clone(file), mapped, positions, wanted };
    Ok(Batches::until_end(move || mapped.next_batch()))
}

pub(crate) fn open_stream(file: &Arc<DataFile>) -> Batches {
    let mut stream = Stream { file: Arc::clone(file), at: 0, decoder: Decoder::new() };
    Batches::until_end(move || stream.next_batch())
}

/// Turns an error of the map into one of this crate.
pub fn explain(file: &DataFile, error: bowshot_ipc::Error) -> Error {
    match explain_at(file.path(), error) {
        Error::Missing { path } => Error::Gone { path },
        other => other,
    }
}

pub(crate) fn explain_at(path: &Path, error: bowshot_ipc::Error) -> Error {
    use bowshot_ipc::Error as Map;
    let error = match error {
        Map::File { source, .. } => *source,
        other => other,
    };
    match error {
        Map::Changed(_) => Error::Changed { path: path.to_path_buf() },
        Map::Io(error) => Error::io(path, error),
        Map::Unsupported(detail) => Error::Unsupported { path: path.to_path_buf(), detail },
        other => Error::corrupt(path, bowshot_api::Error::from(other).message()),
    }
}

/// Batches that are views of the map.
struct Mapped {
    file: Arc<DataFile>,
    mapped: Arc<MappedFile>,
    positions: Vec<usize>,
    wanted: Range<usize>,
}

impl Mapped {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, Error> {
        let batch = match self.wanted.next() {
            Some(index) => self.batch(index).map(Some),
            // A map shows what others do to its file: only if it is unchanged now were the rows the file's.
            None => self.mapped.check().map(|()| None),
        };
        batch.map_err(|error| explain(&self.file, error))
    }

    fn batch(&self, index: usize) -> Result<RecordBatch, bowshot_ipc::Error> {
        if !self.positions.is_empty() {
            return self.mapped.batch_projected(index, Some(&self.positions));
        }
        self.mapped.check()?;
        let options = RecordBatchOptions::new().with_row_count(Some(self.mapped.rows(index)?));
        let empty = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options);
        empty.map_err(bowshot_ipc::Error::Decode)
    }
}

/// The messages of a stream one after the other. Lengths are checked against the file before anything is allocated.
struct Stream {
    file: Arc<DataFile>,
    at: u64,
    decoder: Decoder,
}

impl Stream {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, Error> {
        while let Some(message) = self.message()? {
            if let Decoded::Batch(batch) = message {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    fn message(&mut self) -> Result<Option<Decoded>, Error> {
        let Some(header) = self.header()? else {
            return Ok(None);
        };
        let message = arrow_ipc::root_as_message(&header).map_err(|error| self.corrupt(error))?;
        let body = self.take(u64::try_from(message.bodyLength()).unwrap_or(u64::MAX))?;
        let decoded = self.decoder.decode(&header, body);
        decoded.map(Some).map_err(|error| explain(&self.file, error))
    }

    /// The flatbuffer of the next message; none at the end mark or at the end of the file.
    fn header(&mut self) -> Result<Option<Bytes>, Error> {
        if self.at == self.file.size() {
            return Ok(None);
        }
        let mut length = self.length()?;
        if length == CONTINUATION {
            length = self.length()?;
        }
        if length == 0 { Ok(None) } else { self.take(u64::from(length)).map(Some) }
    }

    fn length(&mut self) -> Result<u32, Error> {
        let bytes = self.take(4)?;
        let bytes = bytes.first_chunk::<4>().ok_or_else(|| self.corrupt("it ends within a message"))?;
        Ok(u32::from_le_bytes(*bytes))
    }

    fn take(&mut self, length: u64) -> Result<Bytes, Error> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.file.size());
        let end = end.ok_or_else(|| self.corrupt("it ends within a message"))?;
        let bytes = self.file.read(self.at..end)?;
        self.at = end;
        Ok(bytes)
    }

    fn corrupt(&self, detail: impl ToString) -> Error {
        Error::corrupt(self.file.path(), detail)
    }
}

/// The schema without its metadata, which belongs to the writer (pandas and others) and differs from file to file.
fn bare(schema: &SchemaRef) -> SchemaRef {
    Arc::new(Schema::new(schema.fields().clone()))
}

/// Cuts `count` batches by a byte range as if each were as long as the others.
fn batches_in(range: Option<&Range<u64>>, size: u64, count: usize) -> Range<usize> {
    let Some(range) = range else {
        return 0..count;
    };
    let share = |at: u64| {
        let share = (u128::from(at) * count as u128).div_ceil(u128::from(size.max(1)));
        usize::try_from(share).unwrap_or(count).min(count)
    };
    share(range.start)..share(range.end)
}

#[cfg(test)]
mod tests {
    use super::batches_in;

    #[test]
    fn each_batch_is_in_one_range() {
        for (size, count) in [(100, 7), (7, 7), (3, 10), (1000, 1), (10, 0)] {
            for parts in 1..12_u64 {
                let cut = |part: u64| size * part / parts;
                let ranges = (0..parts).map(|part| cut(part)..cut(part + 1));
                let batches: Vec<usize> =
                    ranges.flat_map(|range| batches_in(Some(&range), size, count)).collect();
                assert_eq!(
                    batches,
                    (0..count).collect::<Vec<_>>(),
                    "{size} bytes, {count} batches, {parts} parts"
                );
            }
        }
    }
}
