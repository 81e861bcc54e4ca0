//! A Parquet file that holds the rows of one segment.

use super::disk::Disk;
use crate::facts::FileFacts;
use crate::file::DataFile;
use crate::parquet;
use crate::snapshot::SnapshotFile;
use crate::tables::Error;
use crate::tables::segment::{Batches, fitted};
use crate::version::FileIdentity;
use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use arrow::array::{ArrayRef, RecordBatch, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::ScalarValue;
use std::fmt;
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// Rows of one step of rewriting a file.
const BATCH_ROWS: usize = 64 << 10;

/// See the module. A file that no commit has made part of a table is removed with its last user.
pub(in crate::tables) struct StoredFile {
    disk: Arc<Disk>,
    path: PathBuf,
    rows: usize,
    bytes: u64,
    kept: AtomicBool,
    look: Mutex<Option<Look>>,
}

/// What reading the footer gave.
#[derive(Clone)]
pub(in crate::tables) struct Look {
    pub(in crate::tables) data: Arc<DataFile>,
    pub(in crate::tables) facts: Arc<FileFacts>,
}

impl StoredFile {
    /// A file that was just written.
    pub(super) fn written(disk: Arc<Disk>, path: PathBuf, rows: usize, bytes: u64) -> Self {
        Self::new(disk, path, rows, bytes, false)
    }

    pub(super) fn kept(disk: Arc<Disk>, path: PathBuf, rows: usize, bytes: u64) -> Self {
        Self::new(disk, path, rows, bytes, true)
    }

    /// The same file as another segment.
    pub(in crate::tables) fn again(&self) -> Self {
        let kept = self.kept.load(Ordering::Acquire);
        Self::new(Arc::clone(&self.disk), self.path.clone(), self.rows, self.bytes, kept)
    }

    fn new(disk: Arc<Disk>, path: PathBuf, rows: usize, bytes: u64, kept: bool) -> Self {
        disk.enter(&path);
        Self { disk, path, rows, bytes, kept: AtomicBool::new(kept), look: Mutex::default() }
    }

    pub(in crate::tables) fn rows(&self) -> usize {
        self.rows
    }

    pub(in crate::tables) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(in crate::tables) fn disk(&self) -> &Disk {
        &self.disk
    }

    /// The name in the table's folder.
    pub(super) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// From now on the file belongs to a table, and only VACUUM removes it.
    pub(super) fn keep(&self) {
        self.kept.store(true, Ordering::Release);
        self.disk.revive(&self.path);
    }

    /// Reads the footer, once. Fails if the file is gone, or is not the one that was written.
    pub(in crate::tables) fn look(&self) -> Result<Look, Error> {
        let mut look = self.look.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(look) = look.as_ref() {
            return Ok(look.clone());
        }
        let metadata = fs::metadata(&self.path).map_err(|error| crate::Error::io(&self.path, error))?;
        let identity = FileIdentity::new(&metadata, SystemTime::now());
        if identity.size != self.bytes {
            let detail = format!("it has {} bytes, {} were written", identity.size, self.bytes);
            return Err(crate::Error::corrupt(&self.path, detail).into());
        }
        let data = DataFile::new(self.path.clone(), identity, Arc::clone(&self.disk.pool));
        let facts = Arc::new(parquet::facts(&data, &self.disk.sources)?);
        if facts.rows != Some(self.rows) {
            return Err(crate::Error::corrupt(&self.path, "it has not the rows that were written").into());
        }
        data.close();
        Ok(look.insert(Look { data, facts }).clone())
    }

    /// The rows in the columns of `schema`; those that the file lacks are null.
    pub(in crate::tables) fn read(&self, schema: &SchemaRef) -> Result<Batches, Error> {
        let failed = |error: ::parquet::errors::ParquetError| crate::Error::corrupt(&self.path, error);
        let file = File::open(&self.path).map_err(|error| crate::Error::io(&self.path, error))?;
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(failed)?;
        let there = builder.schema();
        let wanted =
            (0..there.fields().len()).filter(|place| schema.index_of(there.field(*place).name()).is_ok());
        let mask = ProjectionMask::roots(builder.parquet_schema(), wanted);
        let reader = builder.with_projection(mask).with_batch_size(BATCH_ROWS).build().map_err(failed)?;
        let (path, schema) = (self.path.clone(), Arc::clone(schema));
        Ok(Box::new(reader.map(move |rows| {
            let rows = rows.map_err(|error| crate::Error::corrupt(&path, error))?;
            arranged(&rows, &schema)
        })))
    }

    /// The file as a scan takes it.
    pub(in crate::tables) fn planned(
        &self,
        schema: &Schema,
        values: Vec<ScalarValue>,
    ) -> Result<SnapshotFile, Error> {
        let Look { data, facts } = self.look()?;
        Ok(SnapshotFile::of_parquet(data, facts, schema, values))
    }
}

fn arranged(rows: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, Error> {
    let columns = schema.fields().iter().map(|field| match rows.column_by_name(field.name()) {
        Some(column) if column.data_type() == field.data_type() => Ok(Arc::clone(column)),
        Some(column) => Ok(cast(column, field.data_type())?),
        None => Ok(new_null_array(field.data_type(), rows.num_rows())),
    });
    let columns = columns.collect::<Result<Vec<ArrayRef>, Error>>()?;
    Ok(fitted(schema, columns, rows.num_rows())?)
}

impl Drop for StoredFile {
    fn drop(&mut self) {
        self.disk.leave(&self.path, self.kept.load(Ordering::Acquire));
    }
}

impl fmt::Debug for StoredFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredFile")
            .field("path", &self.path)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}
