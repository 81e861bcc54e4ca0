//! Parquet: footers become columns and statistics. Rows are read by DataFusion's own source (row-group and page
//! pruning, dynamic filters), see [`source`].

pub mod columns;
pub mod encrypted;
pub mod footers;
mod page_counts;
pub mod row_groups;
pub mod source;
pub mod statistics;

use crate::data_file::{DataFile, FileReader};
use crate::extension_types::with_extensions;
use crate::file_metadata::{Detail, FactSources, FileFacts};
use crate::parquet::columns::{Written, written};
use crate::parquet::footers::{ruling_out_nothing_wrong, with_bounds_that_hold};
use crate::parquet::statistics::{count_rows, file_statistics};
use crate::schema;
use arrow::datatypes::{FieldRef, Schema, TimeUnit};
use bowshot_object_store::Error;
use bytes::Bytes;
use datafusion::datasource::physical_plan::parquet::{CachedParquetMetaData, Int96Coercer};
use datafusion::execution::cache::cache_manager::CachedFileMetadataEntry;
use parquet::arrow::ARROW_SCHEMA_META_KEY;
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::{ChunkReader, Length};
use std::borrow::Cow;
use std::sync::Arc;

/// Reads the footer, and leaves it in DataFusion's cache for the scans to come.
pub fn facts(file: &Arc<DataFile>, sources: &FactSources) -> Result<FileFacts, Error> {
    let chunks = Chunks(Arc::clone(file));
    let metadata = ParquetMetaDataReader::new()
        .with_page_index_policy(PageIndexPolicy::Skip)
        .parse_and_finish(&chunks)
        .map_err(|error| explain(file, error))?;
    let metadata = Arc::new(metadata);
    let metadata = with_bounds_that_hold(metadata).map_err(|error| explain(file, error))?;
    let Written { schema: written, is_told } = written(&metadata).map_err(|error| explain(file, error))?;
    let columns = schema::plain(&with_wide_times(&metadata, &written));
    let views = is_told || columns.fields() != written.fields();
    let read = columns;
    let columns = Arc::new(with_extensions(&read, metadata.file_metadata().schema_descr().root_schema()));
    let is_same =
        |(read, column): (&FieldRef, &FieldRef)| read.data_type().equals_datatype(column.data_type());
    let in_parts = !read.fields().iter().zip(columns.fields()).all(is_same);
    let rows = count_rows(&metadata).map_err(|detail| Error::corrupt(file.path(), detail))?;
    let statistics = file_statistics(&metadata, &columns, rows);
    let meta = sources.store.add(file);
    let location = meta.location.clone();
    let bounded = ruling_out_nothing_wrong(Arc::clone(&metadata)).map_err(|error| explain(file, error))?;
    let cached = Arc::new(CachedParquetMetaData::new(bounded));
    sources.metadata_cache.put(&location, CachedFileMetadataEntry::new(meta, cached));
    let parts = (views && in_parts).then_some(read);
    Ok(FileFacts { columns, rows: Some(rows), detail: Detail::Parquet { statistics, views, parts } })
}

/// The columns of a file, with points in time of 96 bits in microseconds: those of Spark and Hive reach over ten thousand
/// years, of which 64 bits of nanoseconds hold 584. Who has written an Arrow schema has had nanoseconds, if it says so.
pub fn with_wide_times<'a>(metadata: &ParquetMetaData, written: &'a Schema) -> Cow<'a, Schema> {
    let file = metadata.file_metadata();
    let says = |pair: &KeyValue| pair.key == ARROW_SCHEMA_META_KEY;
    if file.key_value_metadata().is_some_and(|pairs| pairs.iter().any(says)) {
        return Cow::Borrowed(written);
    }
    let wide = Int96Coercer::new(file.schema_descr(), written, &TimeUnit::Microsecond).coerce();
    wide.map_or(Cow::Borrowed(written), Cow::Owned)
}

pub fn explain(file: &DataFile, error: ParquetError) -> Error {
    let ParquetError::External(inner) = error else {
        let text = error.to_string();
        if text.contains("encrypted") {
            return Error::Encrypted { path: file.path().to_path_buf(), columns: Vec::new() };
        }
        return Error::corrupt(file.path(), error);
    };
    match inner.downcast::<Error>() {
        Ok(inner) => *inner,
        Err(other) => Error::corrupt(file.path(), other),
    }
}

/// The footer reader's view of a file.
pub struct Chunks(pub Arc<DataFile>);

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.0.size()
    }
}

impl ChunkReader for Chunks {
    type T = FileReader;

    fn get_read(&self, start: u64) -> parquet::errors::Result<FileReader> {
        Ok(self.0.reader(start))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        self.0.read(start..start + length as u64).map_err(|error| ParquetError::External(Box::new(error)))
    }
}
