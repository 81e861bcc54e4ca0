//! Arrow IPC: files are mapped, and their batches share the mapped memory; streams are read in sequence.

use crate::Error;
use crate::batches::{Batches, Request};
use crate::facts::{Detail, FileFacts};
use crate::file::DataFile;
use arrow::ipc::reader::{FileReader, StreamReader};
use std::ops::Range;
use std::sync::Arc;

/// What an Arrow IPC file, as opposed to a stream, begins with.
const FILE_MAGIC: &[u8] = b"ARROW1";

/// An Arrow IPC file and how many batches it has.
#[derive(Debug)]
pub(crate) struct Map {
    batches: usize,
}

/// Reads the footer of a file, or the schema of a stream.
pub(crate) fn facts(file: &Arc<DataFile>) -> Result<FileFacts, Error> {
    let corrupt = |error| Error::corrupt(file.path(), error);
    let head = file.read(0..file.size().min(FILE_MAGIC.len() as u64))?;
    if head != FILE_MAGIC {
        let reader = StreamReader::try_new(file.reader(0), None).map_err(corrupt)?;
        return Ok(FileFacts { columns: reader.schema(), rows: None, detail: Detail::ArrowStream });
    }
    let reader = FileReader::try_new(std::io::Cursor::new(file.read(0..file.size())?), None).map_err(corrupt)?;
    let columns = reader.schema();
    let map = Map { batches: reader.num_batches() };
    let mut rows = 0;
    for batch in reader {
        rows += batch.map_err(corrupt)?.num_rows();
    }
    Ok(FileFacts { columns, rows: Some(rows), detail: Detail::ArrowFile(map) })
}

/// The batches whose share of the file lies in the wanted range: each batch belongs to exactly one range.
pub(crate) fn open(file: &Arc<DataFile>, map: &Map, request: &Request) -> Result<Batches, Error> {
    let wanted = batches_in(request.range.as_ref(), file.size(), map.batches);
    let bytes = std::io::Cursor::new(file.read(0..file.size())?);
    let mut reader = FileReader::try_new(bytes, None).map_err(|error| Error::corrupt(file.path(), error))?;
    reader.set_index(wanted.start).map_err(|error| Error::corrupt(file.path(), error))?;
    let file = Arc::clone(file);
    Ok(Batches::new(
        reader.take(wanted.len()).map(move |batch| batch.map_err(|error| Error::corrupt(file.path(), error))),
    ))
}

/// The batches of a stream.
pub(crate) fn open_stream(file: &Arc<DataFile>, facts: &FileFacts, request: &Request) -> Result<Batches, Error> {
    let reader = file.reader(0);
    let fault = reader.fault();
    let file = Arc::clone(file);
    let explain = move |error| match fault.get() {
        Some(fault) => fault.clone(),
        None => Error::corrupt(file.path(), error),
    };
    let taken = request.positions_in(&facts.columns);
    let reader = StreamReader::try_new_buffered(reader, Some(taken)).map_err(&explain)?;
    Ok(Batches::new(reader.map(move |batch| batch.map_err(&explain))))
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
