//! Writes rows into a Parquet file of a table.

use super::disk::{Disk, sync_folder};
use super::file::StoredFile;
use crate::{Error, Table};
use arrow::array::RecordBatch;
use bowshot_formats::parquet::row_groups::RowGroups;
use bowshot_object_store::private;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use std::fs;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::Arc;

/// Rows of a row group: what one thread of a scan takes at once.
const GROUP_ROWS: usize = 1 << 20;
/// Bytes collected before they go to the system.
const BUFFER_BYTES: usize = 1 << 20;

/// Writes rows to a new file that survives a crash; `None` without any. Leaves nothing when it fails. Blocks.
pub(crate) fn write_file(
    disk: &Arc<Disk>,
    table: &Table,
    batches: impl Iterator<Item = Result<RecordBatch, Error>>,
) -> Result<Option<StoredFile>, Error> {
    // Before any row is written for nothing.
    if let Some(bucket) = disk.bucket() {
        bucket.check_ours()?;
    }
    let path = disk.new_file(table.id())?;
    match written(&path, table, batches) {
        Ok((rows, bytes)) if rows > 0 => {
            // Takes all of it along when it does not get to the store.
            let file = StoredFile::written(Arc::clone(disk), path, rows, bytes);
            file.send()?;
            Ok(Some(file))
        }
        other => {
            let removed = fs::remove_file(&path);
            if let (Err(error), true) = (removed, path.exists()) {
                tracing::warn!(path = %path.display(), %error, "a file that nobody needs could not be removed");
            }
            other.map(|_| None)
        }
    }
}

/// Number of rows, and bytes of the file.
fn written(
    path: &Path,
    table: &Table,
    batches: impl Iterator<Item = Result<RecordBatch, Error>>,
) -> Result<(usize, u64), Error> {
    let file = private::new_file(path).map_err(|error| Error::file("write", path, error))?;
    let failed = |error| write_error(path, error);
    let buffer = BufWriter::with_capacity(BUFFER_BYTES, file);
    let mut writer = ArrowWriter::try_new(buffer, table.schema(), Some(properties(table))).map_err(failed)?;
    let (mut rows, mut groups) = (0, RowGroups::default());
    for batch in batches {
        let batch = batch?;
        rows += batch.num_rows();
        groups.write(&mut writer, &batch).map_err(failed)?;
    }
    let buffer = writer.into_inner().map_err(failed)?;
    let file = buffer.into_inner().map_err(|error| Error::file("write", path, error.into_error()))?;
    file.sync_all().map_err(|error| Error::file("sync", path, error))?;
    let bytes = file.metadata().map_err(|error| Error::file("write", path, error))?.len();
    sync_folder(path.parent().unwrap_or(Path::new(".")))?;
    Ok((rows, bytes))
}

/// No statistics of floats, since bounds leave NaN out; Bloom filters for primary keys, which every new row is checked against.
fn properties(table: &Table) -> WriterProperties {
    let schema = table.schema();
    let keys = table.definition().keys().flat_map(|key| &key.columns);
    let floats = schema.fields().iter().filter(|field| field.data_type().is_floating());
    let floats = floats.map(|field| ColumnPath::from(field.name().as_str()));
    let builder = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_created_by(concat!("bowshot ", env!("CARGO_PKG_VERSION")).to_owned());
    let without = |builder: WriterPropertiesBuilder, column| {
        builder.set_column_statistics_enabled(column, EnabledStatistics::None)
    };
    let builder = keys.fold(builder, |builder, column| {
        builder.set_column_bloom_filter_enabled(ColumnPath::from(column.as_str()), true)
    });
    floats.fold(builder, without).build()
}

/// The disk's own error if it was one.
fn write_error(path: &Path, error: ParquetError) -> Error {
    let reason = match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(reason) => *reason,
            Err(inner) => io::Error::other(inner),
        },
        other => io::Error::other(other),
    };
    Error::file("write", path, reason)
}
