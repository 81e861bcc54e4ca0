//! Footers of Parquet files, without bounds that rows may lie outside of.
//!
//! Some writers have written wrong ones ([`holds`]). All writers leave NaN out of the bounds of floating-point numbers
//! (`parquet.thrift`, `ColumnOrder`), and say nothing of having done so. Comparisons count it among the numbers: greater than
//! all others, or less than all if its sign is set. A row group whose largest number is 3 may well have rows for `x > 100`,
//! so such bounds must rule out nothing. Our own files have none.

use crate::intervals;
use crate::parquet::page_counts;
use bytes::Bytes;
use datafusion::common::Result;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::BoxFuture;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::basic::{ColumnOrder, LogicalType, SortOrder, Type};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescriptor;
use std::ops::Range;
use std::sync::Arc;

/// A footer whose bounds hold for all rows, as far as footers tell; those of floats hold for all but NaN.
pub(crate) fn with_bounds_that_hold(
    metadata: Arc<ParquetMetaData>,
) -> parquet::errors::Result<Arc<ParquetMetaData>> {
    let orders = metadata.file_metadata().column_orders().cloned();
    let order = move |place: usize| orders.as_ref().and_then(|orders| orders.get(place)).copied();
    changed(metadata, &move |chunk: &ColumnChunkMetaData, place: usize| match holds(chunk, order(place)) {
        true => Change::None,
        false => Change::WithoutBounds,
    })
}

/// A footer that rules out no row wrongly, by bounds or by null counts. Its intervals are bytes ([`intervals`]).
pub fn ruling_out_nothing_wrong(
    metadata: Arc<ParquetMetaData>,
) -> parquet::errors::Result<Arc<ParquetMetaData>> {
    let without_floats = &|chunk: &ColumnChunkMetaData, _: usize| match is_float(chunk) && rules_out(chunk) {
        true => Change::WithoutBounds,
        false if lacks_nulls(chunk) => Change::SomeNulls,
        false => Change::None,
    };
    intervals::as_bytes(changed(with_bounds_that_hold(metadata)?, without_floats)?)
}

/// What becomes of the statistics of a column in a row group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    /// Bloom filters go too: they are made of bits, and equal floating-point numbers may have others (0.0 and -0.0, all NaN).
    WithoutBounds,
    /// Where they do not say how many nulls there are, there may be some.
    SomeNulls,
}

type Wanted<'a> = &'a dyn Fn(&ColumnChunkMetaData, usize) -> Change;

fn changed(
    metadata: Arc<ParquetMetaData>,
    wanted: Wanted<'_>,
) -> parquet::errors::Result<Arc<ParquetMetaData>> {
    let changes: Vec<Vec<Change>> = metadata
        .row_groups()
        .iter()
        .map(|group| group.columns().iter().enumerate().map(|(place, chunk)| wanted(chunk, place)).collect())
        .collect();
    if changes.iter().flatten().all(|change| *change == Change::None) {
        return Ok(metadata);
    }
    let mut builder = ParquetMetaData::clone(&metadata).into_builder();
    let pages = builder.take_column_index().map(|index| {
        let blank = |(pages, changes): (Vec<ColumnIndexMetaData>, &Vec<Change>)| {
            let pairs = pages.into_iter().zip(changes);
            let kept = |(page, change): (ColumnIndexMetaData, &Change)| match change {
                Change::WithoutBounds => ColumnIndexMetaData::NONE,
                Change::None | Change::SomeNulls => page,
            };
            pairs.map(kept).collect()
        };
        index.into_iter().zip(&changes).map(blank).collect()
    });
    let groups = builder.take_row_groups().into_iter().zip(&changes);
    let groups = groups.map(|(group, changes)| group_with(group, changes)).collect::<Result<_, _>>()?;
    Ok(Arc::new(builder.set_row_groups(groups).set_column_index(pages).build()))
}

fn group_with(group: RowGroupMetaData, changes: &[Change]) -> parquet::errors::Result<RowGroupMetaData> {
    let columns = group.columns().iter().cloned().zip(changes);
    let columns = columns.map(|(chunk, change)| chunk_with(chunk, *change)).collect::<Result<_, _>>()?;
    group.into_builder().set_column_metadata(columns).build()
}

fn chunk_with(chunk: ColumnChunkMetaData, change: Change) -> parquet::errors::Result<ColumnChunkMetaData> {
    let (statistics, several) = (chunk.statistics().cloned(), chunk.num_values() > 1);
    let builder = chunk.into_builder();
    let builder = match (change, statistics) {
        (Change::None, _) => builder,
        (Change::WithoutBounds, statistics) => {
            let builder = builder.set_column_index_offset(None).set_column_index_length(None);
            let builder = builder.set_bloom_filter_offset(None).set_bloom_filter_length(None);
            match statistics {
                Some(known) => builder.set_statistics(without_bounds(&known, known.null_count_opt())),
                None => builder,
            }
        }
        (Change::SomeNulls, Some(known)) if several => builder.set_statistics(with_null(known)),
        // One null rules out no row group of several rows, but the only row of one might be it.
        (Change::SomeNulls, _) => builder.clear_statistics(),
    };
    builder.build()
}

fn without_bounds(statistics: &Statistics, nulls: Option<u64>) -> Statistics {
    let distinct = statistics.distinct_count_opt();
    match statistics {
        Statistics::Boolean(_) => Statistics::boolean(None, None, distinct, nulls, false),
        Statistics::Int32(_) => Statistics::int32(None, None, distinct, nulls, false),
        Statistics::Int64(_) => Statistics::int64(None, None, distinct, nulls, false),
        Statistics::Int96(_) => Statistics::int96(None, None, distinct, nulls, false),
        Statistics::Float(_) => Statistics::float(None, None, distinct, nulls, false),
        Statistics::Double(_) => Statistics::double(None, None, distinct, nulls, false),
        Statistics::ByteArray(_) => Statistics::byte_array(None, None, distinct, nulls, false),
        Statistics::FixedLenByteArray(_) => {
            Statistics::fixed_len_byte_array(None, None, distinct, nulls, false)
        }
    }
}

/// The same statistics with one null.
fn with_null(statistics: Statistics) -> Statistics {
    let (distinct, old, one) = (statistics.distinct_count_opt(), statistics.is_min_max_deprecated(), Some(1));
    macro_rules! with {
        ($new:ident, $values:ident) => {
            Statistics::$new($values.min_opt().cloned(), $values.max_opt().cloned(), distinct, one, old)
        };
    }
    match statistics {
        Statistics::Boolean(it) => with!(boolean, it),
        Statistics::Int32(it) => with!(int32, it),
        Statistics::Int64(it) => with!(int64, it),
        Statistics::Int96(it) => with!(int96, it),
        Statistics::Float(it) => with!(float, it),
        Statistics::Double(it) => with!(double, it),
        Statistics::ByteArray(it) => with!(byte_array, it),
        Statistics::FixedLenByteArray(it) => with!(fixed_len_byte_array, it),
    }
}

/// Whether bounds are those of all values.
///
/// - Until 2017 bounds were of an order that the writer chose: they are right for signed numbers alone.
/// - Of types without an order, and of `INT96`, nobody knows the order.
/// - Bounds the wrong way round say that the writer was broken.
fn holds(chunk: &ColumnChunkMetaData, order: Option<ColumnOrder>) -> bool {
    let column = chunk.column_descr();
    let Some(statistics) = chunk.statistics().filter(|_| has_bounds(chunk)) else {
        return column.sort_order() != SortOrder::UNDEFINED || !has_bounds(chunk);
    };
    let signed = column.sort_order() == SortOrder::SIGNED;
    let number = matches!(chunk.column_type(), Type::INT32 | Type::INT64 | Type::FLOAT | Type::DOUBLE);
    let defined = matches!(order, Some(ColumnOrder::TYPE_DEFINED_ORDER(_)));
    match statistics {
        Statistics::Int96(_) => false,
        _ if column.sort_order() == SortOrder::UNDEFINED => false,
        Statistics::Boolean(_) => true,
        _ if (statistics.is_min_max_deprecated() || !defined) && !(signed && number) => false,
        Statistics::Int32(it) => in_order(it.min_opt(), it.max_opt(), |value| {
            if signed { i64::from(*value) } else { i64::from(value.cast_unsigned()) }
        }),
        Statistics::Int64(it) => in_order(it.min_opt(), it.max_opt(), |value| {
            if signed { i128::from(*value) } else { i128::from(value.cast_unsigned()) }
        }),
        Statistics::ByteArray(it) if !signed => in_order(it.min_opt(), it.max_opt(), |it| it.data().to_vec()),
        Statistics::FixedLenByteArray(it) if !signed => {
            in_order(it.min_opt(), it.max_opt(), |it| it.data().to_vec())
        }
        _ => true,
    }
}

fn in_order<T, K: PartialOrd>(min: Option<&T>, max: Option<&T>, key: impl Fn(&T) -> K) -> bool {
    match (min, max) {
        (Some(min), Some(max)) => key(min) <= key(max),
        _ => true,
    }
}

fn has_bounds(chunk: &ColumnChunkMetaData) -> bool {
    let of_group =
        || chunk.statistics().is_some_and(|it| it.min_bytes_opt().is_some() || it.max_bytes_opt().is_some());
    chunk.column_index_offset().is_some() || of_group()
}

fn rules_out(chunk: &ColumnChunkMetaData) -> bool {
    has_bounds(chunk) || chunk.bloom_filter_offset().is_some()
}

/// Whether there may be nulls that nobody has counted: `IS NULL` would find none of them.
fn lacks_nulls(chunk: &ColumnChunkMetaData) -> bool {
    let optional = chunk.column_descr().max_def_level() > 0;
    optional && chunk.statistics().is_some_and(|statistics| statistics.null_count_opt().is_none())
}

fn is_float(chunk: &ColumnChunkMetaData) -> bool {
    let is_half = |column: &ColumnDescriptor| column.logical_type_ref() == Some(&LogicalType::Float16);
    matches!(chunk.column_type(), Type::FLOAT | Type::DOUBLE) || is_half(chunk.column_descr())
}

/// Opens files with the footers that are cached, or read once more.
#[derive(Debug)]
pub struct ReaderFactory(pub Arc<dyn ParquetFileReaderFactory>);

impl ParquetFileReaderFactory for ReaderFactory {
    fn create_reader(
        &self,
        partition: usize,
        file: PartitionedFile,
        footer_bytes: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let inner = self.0.create_reader(partition, file, footer_bytes, metrics)?;
        Ok(Box::new(Reader { inner, footer: None }))
    }
}

struct Reader {
    inner: Box<dyn AsyncFileReader + Send>,
    /// Once it was asked for.
    footer: Option<Arc<ParquetMetaData>>,
}

impl Reader {
    /// The footer. A scan that has looked at bloom filters goes on with a second reader, which it does not ask for one.
    async fn footer(&mut self) -> Option<Arc<ParquetMetaData>> {
        if self.footer.is_none() {
            self.footer = self.inner.get_metadata(None).await.ok();
        }
        self.footer.clone()
    }
}

impl AsyncFileReader for Reader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, parquet::errors::Result<Bytes>> {
        async move {
            let bytes = self.inner.get_bytes(range.clone()).await?;
            if let Some(footer) = self.footer().await {
                page_counts::check(&footer, &[(range, bytes.clone())])?;
            }
            Ok(bytes)
        }
        .boxed()
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, parquet::errors::Result<Vec<Bytes>>> {
        async move {
            let read = self.inner.get_byte_ranges(ranges.clone()).await?;
            if let Some(footer) = self.footer().await {
                let chunks: Vec<(Range<u64>, Bytes)> = ranges.into_iter().zip(read.iter().cloned()).collect();
                page_counts::check(&footer, &chunks)?;
            }
            Ok(read)
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, parquet::errors::Result<Arc<ParquetMetaData>>> {
        async move {
            let footer = ruling_out_nothing_wrong(self.inner.get_metadata(options).await?)?;
            self.footer = Some(Arc::clone(&footer));
            Ok(footer)
        }
        .boxed()
    }
}
