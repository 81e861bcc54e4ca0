//! A Parquet file that holds the rows of one segment.

use super::disk::{Disk, make_folder};
use crate::Error;
use crate::segment::{Batches, fitted};
use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{ParquetRecordBatchReaderBuilder, RowSelection};
use arrow::array::{ArrayRef, RecordBatch, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{Schema, SchemaRef};
use bowshot_formats::data_file::DataFile;
use bowshot_formats::file_metadata::FileFacts;
use bowshot_formats::parquet;
use bowshot_formats::snapshot_file::SnapshotFile;
use bowshot_object_store::FileIdentity;
use datafusion::common::ScalarValue;
use parking_lot::Mutex;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// See the module. A file that no commit has made part of a table is removed with its last user.
pub(crate) struct StoredFile {
    disk: Arc<Disk>,
    path: PathBuf,
    rows: usize,
    bytes: u64,
    /// Shared by all that have been made of one another: when one of them belongs to a table, the file does.
    kept: Arc<AtomicBool>,
    slot: Arc<Slot>,
}

#[derive(Debug, Default)]
pub(super) struct Slot {
    look: Mutex<Option<Look>>,
    /// When it was last read, since 1970.
    used_ms: AtomicU64,
}

/// What reading the footer gave.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    pub(crate) data: Arc<DataFile>,
    pub(crate) facts: Arc<FileFacts>,
}

impl StoredFile {
    pub(super) fn written(disk: Arc<Disk>, path: PathBuf, rows: usize, bytes: u64) -> Self {
        Self::new(disk, path, (rows, bytes), Arc::new(AtomicBool::new(false)))
    }

    pub(super) fn kept(disk: Arc<Disk>, path: PathBuf, rows: usize, bytes: u64) -> Self {
        Self::new(disk, path, (rows, bytes), Arc::new(AtomicBool::new(true)))
    }

    /// The same file as another segment.
    pub(crate) fn again(&self) -> Self {
        let (disk, kept) = (Arc::clone(&self.disk), Arc::clone(&self.kept));
        Self::new(disk, self.path.clone(), (self.rows, self.bytes), kept)
    }

    fn new(disk: Arc<Disk>, path: PathBuf, (rows, bytes): (usize, u64), kept: Arc<AtomicBool>) -> Self {
        let slot = disk.enter(&path);
        Self { disk, path, rows, bytes, kept, slot }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn disk(&self) -> &Disk {
        &self.disk
    }

    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// From now on the file belongs to a table, and only VACUUM removes it.
    pub(super) fn keep(&self) {
        self.kept.store(true, Ordering::Release);
        self.disk.revive(&self.path);
    }

    /// Copies a file that was just written to the store, if the tables are in one.
    pub(super) fn send(&self) -> Result<(), Error> {
        match self.disk.bucket() {
            Some(bucket) => bucket.upload(&self.disk.name_of(&self.path), &self.path),
            None => Ok(()),
        }
    }

    /// Whether [`Self::look`] gives an answer at once.
    pub(crate) fn is_looked_at(&self) -> bool {
        self.slot.look.try_lock().is_some_and(|look| look.is_some())
    }

    /// Reads the footer once. Fails if the file is gone, or is not the one that was written. May wait for the store.
    pub(crate) fn look(&self) -> Result<Look, Error> {
        self.slot.touch();
        let mut slot = self.slot.look.lock();
        if let Some(look) = slot.as_ref().filter(|look| self.still_counts(look)) {
            let look = look.clone();
            drop(slot);
            self.check(&look)?;
            return Ok(look);
        }
        let data = self.data()?;
        let facts = parquet::facts(&data, &self.disk.sources).map_err(|error| self.named(error))?;
        let look = Look { data, facts: Arc::new(facts) };
        self.check(&look)?;
        look.data.close();
        Ok(slot.insert(look).clone())
    }

    /// Copies come and go, and so do stores, where the tables are in one.
    fn still_counts(&self, look: &Look) -> bool {
        self.disk.bucket().is_none()
            || match look.data.as_remote() {
                Some(_) => look.data.fault().is_none(),
                None => self.path.exists(),
            }
    }

    fn check(&self, look: &Look) -> Result<(), Error> {
        let size = look.data.size();
        if size != self.bytes {
            let detail = format!("it has {size} bytes, {} were written", self.bytes);
            return Err(bowshot_object_store::Error::corrupt(look.data.path(), detail).into());
        }
        if look.facts.rows != Some(self.rows) {
            let detail = "it has not the rows that were written";
            return Err(bowshot_object_store::Error::corrupt(look.data.path(), detail).into());
        }
        Ok(())
    }

    /// The file here, or else that in the store.
    fn data(&self) -> Result<Arc<DataFile>, Error> {
        let pool = Arc::clone(&self.disk.pool);
        let metadata = match (fs::metadata(&self.path), self.disk.bucket()) {
            (Err(error), Some(bucket)) if error.kind() == io::ErrorKind::NotFound => {
                let name = self.disk.name_of(&self.path);
                return match bucket.file(&name) {
                    Ok(file) => Ok(DataFile::remote(file, pool)),
                    Err(error) => Err(self.named(error).into()),
                };
            }
            (metadata, _) => metadata.map_err(|error| bowshot_object_store::Error::io(&self.path, error))?,
        };
        let identity = FileIdentity::new(&metadata, SystemTime::now());
        if identity.size != self.bytes {
            let detail = format!("it has {} bytes, {} were written", identity.size, self.bytes);
            return Err(bowshot_object_store::Error::corrupt(&self.path, detail).into());
        }
        Ok(DataFile::new(self.path.clone(), identity, pool))
    }

    /// The file, open; fetched from the store first if it is not here.
    fn open(&self) -> Result<File, Error> {
        let failed = |error| bowshot_object_store::Error::io(&self.path, error);
        let bucket = match (File::open(&self.path), self.disk.bucket()) {
            (Err(error), Some(bucket)) if error.kind() == io::ErrorKind::NotFound => bucket,
            (opened, _) => return Ok(opened.map_err(failed)?),
        };
        // Whoever wants it too waits here, and then finds it; nobody takes it away meanwhile.
        let _slot = self.slot.look.lock();
        if let Ok(opened) = File::open(&self.path) {
            return Ok(opened);
        }
        if let Some(folder) = self.path.parent() {
            make_folder(folder)?;
        }
        let name = self.disk.name_of(&self.path);
        bucket.fetch(&name, &self.path).map_err(|error| self.named(error))?;
        let opened = File::open(&self.path).map_err(failed)?;
        let size = opened.metadata().map_err(failed)?.len();
        if size != self.bytes {
            let detail = format!("it has {size} bytes, {} were written", self.bytes);
            return Err(bowshot_object_store::Error::corrupt(&self.path, detail).into());
        }
        Ok(opened)
    }

    /// The error with the name of the table, where a store is the reason.
    fn named(&self, error: bowshot_object_store::Error) -> bowshot_object_store::Error {
        let Some(bucket) = self.disk.bucket() else { return error };
        let table = self.path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy());
        bucket.named(table.and_then(|name| Uuid::parse_str(&name).ok()), error)
    }

    /// The rows in the columns of `schema`, or those that are selected of them; columns that the file lacks are null.
    pub(crate) fn read(
        &self,
        schema: &SchemaRef,
        batch_rows: usize,
        selected: Option<RowSelection>,
    ) -> Result<Batches, Error> {
        let failed =
            |error: ::parquet::errors::ParquetError| bowshot_object_store::Error::corrupt(&self.path, error);
        let file = self.open()?;
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(failed)?;
        let there = builder.schema();
        let wanted =
            (0..there.fields().len()).filter(|place| schema.index_of(there.field(*place).name()).is_ok());
        let mask = ProjectionMask::roots(builder.parquet_schema(), wanted);
        let mut builder = builder.with_projection(mask).with_batch_size(batch_rows);
        if let Some(selected) = selected {
            builder = builder.with_row_selection(selected);
        }
        let reader = builder.build().map_err(failed)?;
        let (path, schema) = (self.path.clone(), Arc::clone(schema));
        Ok(Box::new(reader.map(move |rows| {
            let rows = rows.map_err(|error| bowshot_object_store::Error::corrupt(&path, error))?;
            arranged(&rows, &schema)
        })))
    }

    pub(crate) fn planned(&self, schema: &Schema, values: Vec<ScalarValue>) -> Result<SnapshotFile, Error> {
        let Look { data, facts } = self.look()?;
        Ok(SnapshotFile::of_parquet(data, facts, schema, values))
    }
}

impl Slot {
    fn touch(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        self.used_ms.store(u64::try_from(now).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn used_ms(&self) -> u64 {
        self.used_ms.load(Ordering::Relaxed)
    }

    /// Whether a plan has the file, or somebody is about to look at it.
    pub(super) fn is_read(&self) -> bool {
        self.look.try_lock().is_none_or(|look| has_readers(look.as_ref()))
    }

    /// Takes the file away while nobody can begin to read it. Does nothing, and gives false, while a plan reads it.
    pub(super) fn give_up(&self, remove: impl FnOnce() -> Result<(), Error>) -> Result<bool, Error> {
        let mut look = self.look.lock();
        if has_readers(look.as_ref()) {
            return Ok(false);
        }
        remove()?;
        if look.as_ref().is_some_and(|look| look.data.as_remote().is_none()) {
            *look = None;
        }
        Ok(true)
    }
}

/// Plans have the data of their files, and open it again when there are too many open files.
fn has_readers(look: Option<&Look>) -> bool {
    look.is_some_and(|look| Arc::strong_count(&look.data) > 1)
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

bowshot_api::debug_fields!(StoredFile { path, rows });
