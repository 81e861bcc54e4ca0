//! Avro object container files: the writer's schema, and the rows in sequence.

use crate::Error;
use crate::batches::{Batches, Request};
use crate::facts::{Detail, FileFacts};
use crate::file::DataFile;
use datafusion::arrow_avro::reader::ReaderBuilder;
use std::io::BufReader;
use std::sync::Arc;

/// Reads the header.
pub(crate) fn facts(file: &Arc<DataFile>) -> Result<FileFacts, Error> {
    let reader = file.reader(0);
    let fault = reader.fault();
    let reader = ReaderBuilder::new()
        .build(BufReader::new(reader))
        .map_err(|error| fault.get().cloned().unwrap_or_else(|| Error::corrupt(file.path(), error)))?;
    Ok(FileFacts { columns: reader.schema(), rows: None, detail: Detail::Avro })
}

/// The rows of one file.
pub(crate) fn open(file: &Arc<DataFile>, facts: &FileFacts, request: &Request) -> Result<Batches, Error> {
    let reader = file.reader(0);
    let fault = reader.fault();
    let mut builder = ReaderBuilder::new().with_batch_size(request.batch_size);
    let taken = request.positions_in(&facts.columns);
    // Without any column the reader would lose the number of rows; one column is enough to keep it.
    if taken.is_empty() {
        builder = builder.with_projection(vec![0]);
    } else {
        builder = builder.with_projection(taken);
    }
    let file = Arc::clone(file);
    let explain = move |error| match fault.get() {
        Some(fault) => fault.clone(),
        None => Error::corrupt(file.path(), error),
    };
    let reader = builder.build(BufReader::with_capacity(1 << 20, reader)).map_err(&explain)?;
    Ok(Batches::new(reader.map(move |batch| batch.map_err(&explain))))
}
