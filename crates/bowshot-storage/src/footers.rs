//! Footers of Parquet files, without the bounds of floating-point numbers.
//!
//! Writers leave NaN out of bounds (`parquet.thrift`, `ColumnOrder`), and say nothing of having done so. Comparisons count
//! it among the numbers: greater than all others, or less than all if its sign is set. A row group whose largest number is 3
//! may well have rows for `x > 100`, so such bounds must rule out nothing. Our own files have none.

use bytes::Bytes;
use datafusion::common::Result;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::BoxFuture;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::basic::{LogicalType, Type};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescriptor;
use std::ops::Range;
use std::sync::Arc;

/// A footer that rules out rows by no bounds but those that hold for all of them.
///
/// # Errors
/// When the footer's parts do not fit together.
pub(crate) fn without_float_bounds(
    metadata: Arc<ParquetMetaData>,
) -> parquet::errors::Result<Arc<ParquetMetaData>> {
    let groups = metadata.row_groups();
    if !groups.iter().flat_map(RowGroupMetaData::columns).any(has_float_bounds) {
        return Ok(metadata);
    }
    let mut builder = ParquetMetaData::clone(&metadata).into_builder();
    let pages = builder.take_column_index().map(|index| {
        let floats = groups.iter().map(|group| group.columns().iter().map(is_float).collect::<Vec<_>>());
        let blank = |(pages, floats): (Vec<ColumnIndexMetaData>, Vec<bool>)| {
            let pairs = pages.into_iter().zip(floats);
            pairs.map(|(page, float)| if float { ColumnIndexMetaData::NONE } else { page }).collect()
        };
        index.into_iter().zip(floats).map(blank).collect()
    });
    let groups = builder.take_row_groups().into_iter().map(group_without).collect::<Result<_, _>>()?;
    Ok(Arc::new(builder.set_row_groups(groups).set_column_index(pages).build()))
}

fn group_without(group: RowGroupMetaData) -> parquet::errors::Result<RowGroupMetaData> {
    let columns = group.columns().iter().cloned().map(chunk_without).collect::<Result<_, _>>()?;
    group.into_builder().set_column_metadata(columns).build()
}

fn chunk_without(chunk: ColumnChunkMetaData) -> parquet::errors::Result<ColumnChunkMetaData> {
    if !is_float(&chunk) {
        return Ok(chunk);
    }
    let left = chunk.statistics().map(|statistics| {
        let (distinct, nulls) = (statistics.distinct_count_opt(), statistics.null_count_opt());
        match chunk.column_type() {
            Type::FLOAT => Statistics::float(None, None, distinct, nulls, false),
            Type::DOUBLE => Statistics::double(None, None, distinct, nulls, false),
            _ => Statistics::fixed_len_byte_array(None, None, distinct, nulls, false),
        }
    });
    let builder = chunk.into_builder().set_column_index_offset(None).set_column_index_length(None);
    match left {
        Some(left) => builder.set_statistics(left).build(),
        None => builder.build(),
    }
}

fn has_float_bounds(chunk: &ColumnChunkMetaData) -> bool {
    let of_group =
        || chunk.statistics().is_some_and(|it| it.min_bytes_opt().is_some() || it.max_bytes_opt().is_some());
    is_float(chunk) && (chunk.column_index_offset().is_some() || of_group())
}

fn is_float(chunk: &ColumnChunkMetaData) -> bool {
    let is_half = |column: &ColumnDescriptor| column.logical_type_ref() == Some(&LogicalType::Float16);
    matches!(chunk.column_type(), Type::FLOAT | Type::DOUBLE) || is_half(chunk.column_descr())
}

/// Opens files with the footers that are cached, or read once more.
#[derive(Debug)]
pub(crate) struct ReaderFactory(pub(crate) Arc<dyn ParquetFileReaderFactory>);

impl ParquetFileReaderFactory for ReaderFactory {
    fn create_reader(
        &self,
        partition: usize,
        file: PartitionedFile,
        footer_bytes: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        Ok(Box::new(Reader(self.0.create_reader(partition, file, footer_bytes, metrics)?)))
    }
}

struct Reader(Box<dyn AsyncFileReader + Send>);

impl AsyncFileReader for Reader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, parquet::errors::Result<Bytes>> {
        self.0.get_bytes(range)
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, parquet::errors::Result<Vec<Bytes>>> {
        self.0.get_byte_ranges(ranges)
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, parquet::errors::Result<Arc<ParquetMetaData>>> {
        async move { without_float_bounds(self.0.get_metadata(options).await?) }.boxed()
    }
}
