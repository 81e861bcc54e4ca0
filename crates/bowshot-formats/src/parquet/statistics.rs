//! What a Parquet footer proves of all rows of its file. A bound counts only where every row group has it, and is a value only
//! where all of them say so: DataFusion's function takes the bounds of some row groups for those of the file.

use crate::schema::Places;
use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, Field, Schema};
use bowshot_kernels::nan::has_floats;
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, Result, ScalarValue, Statistics};
use datafusion::functions_aggregate::min_max::{MaxAccumulator, MinAccumulator};
use datafusion::logical_expr::Accumulator;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics as ChunkStatistics;
use parquet::schema::types::ColumnDescriptor;

/// Rows of a file.
///
/// # Errors
/// Says how the parts of the footer differ.
pub(crate) fn count_rows(metadata: &ParquetMetaData) -> Result<usize, String> {
    let rows = |count: i64| usize::try_from(count).map_err(|_| format!("its footer counts {count} rows"));
    let all = rows(metadata.file_metadata().num_rows())?;
    let groups = metadata.row_groups().iter().map(|group| rows(group.num_rows()));
    let sum = groups.sum::<Result<usize, String>>()?;
    if sum != all {
        return Err(format!("its footer counts {all} rows, and {sum} in its row groups"));
    }
    for group in metadata.row_groups() {
        let (rows, mut chunks) = (group.num_rows(), group.columns().iter());
        // Columns that are in no list have a value in each row, NULL among them.
        let is_wrong =
            |chunk: &&ColumnChunkMetaData| is_flat(chunk.column_descr()) && chunk.num_values() != rows;
        if let Some(chunk) = chunks.find(is_wrong) {
            let (values, column) = (chunk.num_values(), chunk.column_path().string());
            return Err(format!(
                "the footer counts {rows} rows in a row group, and {values} values of column `{column}` there"
            ));
        }
    }
    Ok(all)
}

fn is_flat(column: &ColumnDescriptor) -> bool {
    column.max_rep_level() == 0
}

/// What may be believed of a file of so many rows whose columns are these.
pub fn file_statistics(metadata: &ParquetMetaData, columns: &Schema, rows: usize) -> Statistics {
    let leaves = flat_leaves(metadata, columns);
    let of_column = |(field, leaf): (&Field, &Option<usize>)| {
        let known = leaf.map(|leaf| Column { metadata, field, leaf }.statistics());
        let known = known.unwrap_or_else(ColumnStatistics::new_unknown);
        match field.data_type().primitive_width() {
            Some(width) => known.with_byte_size(Precision::Exact(width.saturating_mul(rows))),
            None => known,
        }
    };
    let fields = columns.fields().iter().map(AsRef::as_ref);
    Statistics {
        num_rows: Precision::Exact(rows),
        total_byte_size: Precision::Absent,
        column_statistics: fields.zip(&leaves).map(of_column).collect(),
    }
}

/// Where the values of columns are that have one value in each row.
fn flat_leaves(metadata: &ParquetMetaData, columns: &Schema) -> Vec<Option<usize>> {
    let places = Places::of(columns);
    let mut leaves = vec![None; columns.fields().len()];
    for (leaf, column) in metadata.file_metadata().schema_descr().columns().iter().enumerate() {
        let ([name], 0) = (column.path().parts(), column.max_rep_level()) else { continue };
        let place = places.find(name, leaf).and_then(|place| leaves.get_mut(place));
        if let Some(place) = place {
            *place = Some(leaf);
        }
    }
    leaves
}

struct Column<'a> {
    metadata: &'a ParquetMetaData,
    field: &'a Field,
    leaf: usize,
}

impl<'a> Column<'a> {
    fn statistics(&self) -> ColumnStatistics {
        let (min_value, max_value) = self.bounds().unwrap_or_default();
        ColumnStatistics {
            null_count: self.nulls().map_or(Precision::Absent, Precision::Exact),
            min_value,
            max_value,
            distinct_count: self.distinct().map_or(Precision::Absent, Precision::Inexact),
            byte_size: Precision::Inexact(self.bytes()),
            sum_value: Precision::Absent,
        }
    }

    fn groups(&self) -> impl Iterator<Item = &'a RowGroupMetaData> + Clone + use<'a> {
        self.metadata.row_groups().iter().filter(|group| group.num_rows() > 0)
    }

    fn of_group(&self, group: &'a RowGroupMetaData) -> Option<&'a ChunkStatistics> {
        group.columns().get(self.leaf)?.statistics()
    }

    fn nulls(&self) -> Option<usize> {
        if self.metadata.file_metadata().schema_descr().column(self.leaf).max_def_level() == 0 {
            return Some(0);
        }
        let of_group = |group: &'a RowGroupMetaData| {
            let nulls = self.of_group(group)?.null_count_opt()?;
            i64::try_from(nulls).ok().filter(|nulls| *nulls <= group.num_rows())
        };
        usize::try_from(self.groups().map(of_group).sum::<Option<i64>>()?).ok()
    }

    /// Writers estimate how many different values there are, so this is never more than a guess.
    fn distinct(&self) -> Option<usize> {
        let counts = self.groups().map(|group| self.of_group(group)?.distinct_count_opt());
        usize::try_from(counts.collect::<Option<Vec<u64>>>()?.into_iter().max()?).ok()
    }

    fn bytes(&self) -> usize {
        let chunks = self.groups().filter_map(|group| group.columns().get(self.leaf));
        chunks
            .filter_map(|chunk| usize::try_from(chunk.uncompressed_size()).ok())
            .fold(0, usize::saturating_add)
    }

    /// The least and the greatest value. Row groups of NULLs alone have none.
    fn bounds(&self) -> Option<(Precision<ScalarValue>, Precision<ScalarValue>)> {
        let is_null = |group: &RowGroupMetaData| {
            let nulls = self.of_group(group).and_then(ChunkStatistics::null_count_opt);
            nulls.is_some_and(|nulls| i64::try_from(nulls).is_ok_and(|nulls| nulls >= group.num_rows()))
        };
        let groups: Vec<&RowGroupMetaData> = self.groups().filter(|group| !is_null(group)).collect();
        let leaves = self.metadata.file_metadata().schema_descr();
        let converter = StatisticsConverter::from_column_index(self.leaf, self.field, leaves).ok()?;
        let least = converter.row_group_mins(groups.iter().copied()).ok()?;
        let greatest = converter.row_group_maxes(groups.iter().copied()).ok()?;
        let all = |is_exact: fn(&ChunkStatistics) -> bool| {
            // Bounds of floating-point numbers leave NaN out.
            !has_floats(self.field.data_type())
                && groups.iter().all(|group| self.of_group(group).is_some_and(is_exact))
        };
        let least_exact = all(ChunkStatistics::min_is_exact);
        let greatest_exact = all(ChunkStatistics::max_is_exact);
        let least = bound(least, MinAccumulator::try_new, least_exact);
        let greatest = bound(greatest, MaxAccumulator::try_new, greatest_exact);
        Some((least, greatest))
    }
}

/// The bound of all row groups, of those of each: none where one of them says nothing.
fn bound<A: Accumulator>(
    bounds: ArrayRef,
    new: impl FnOnce(&DataType) -> Result<A>,
    is_exact: bool,
) -> Precision<ScalarValue> {
    if bounds.is_empty() || bounds.logical_null_count() > 0 {
        return Precision::Absent;
    }
    let found = new(bounds.data_type()).and_then(|mut extreme| {
        extreme.update_batch(&[bounds])?;
        extreme.evaluate()
    });
    match found {
        Ok(found) if found.is_null() => Precision::Absent,
        Ok(found) if is_exact => Precision::Exact(found),
        Ok(found) => Precision::Inexact(found),
        Err(_) => Precision::Absent,
    }
}
