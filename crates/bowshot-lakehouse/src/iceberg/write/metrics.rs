//! What the metadata of a table say of the columns of a data file, from the footer that was written.

use super::column_bounds::{extremes, has_bounds, lower_bound, upper_bound};
use crate::columns::LakeColumn;
use arrow::array::ArrayRef;
use arrow::datatypes::Schema;
use datafusion::common::ScalarValue;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::file::metadata::ParquetMetaData;
use std::collections::BTreeMap;

/// The format reserves this number and those above, as for the lineage of rows.
const FIRST_RESERVED: i32 = 2_147_483_447;

/// By the numbers of columns and nested fields.
#[derive(Debug, Default)]
pub(in super::super) struct Metrics {
    pub(in super::super) sizes: BTreeMap<i32, i64>,
    pub(in super::super) values: BTreeMap<i32, i64>,
    pub(in super::super) nulls: BTreeMap<i32, i64>,
    /// Of files of other writers; none is counted here.
    pub(in super::super) nans: BTreeMap<i32, i64>,
    pub(in super::super) lower: BTreeMap<i32, Vec<u8>>,
    pub(in super::super) upper: BTreeMap<i32, Vec<u8>>,
}

impl Metrics {
    pub(super) fn new(footer: &ParquetMetaData, columns: &[LakeColumn], schema: &Schema) -> Self {
        let mut metrics = Self::default();
        for (place, leaf) in footer.file_metadata().schema_descr().columns().iter().enumerate() {
            let info = leaf.self_type().get_basic_info();
            if !info.has_id() || info.id() >= FIRST_RESERVED {
                continue;
            }
            let chunks = || footer.row_groups().iter().map(|group| group.column(place));
            metrics.sizes.insert(info.id(), chunks().map(|chunk| chunk.compressed_size()).sum());
            metrics.values.insert(info.id(), chunks().map(|chunk| chunk.num_values()).sum());
            let nulls = chunks().map(|chunk| {
                chunk.statistics()?.null_count_opt().and_then(|count| i64::try_from(count).ok())
            });
            let nulls: Option<i64> = nulls.sum();
            if let Some(nulls) = nulls {
                metrics.nulls.insert(info.id(), nulls);
            }
        }
        for column in columns.iter().filter(|column| has_bounds(column.field.data_type())) {
            metrics.add_bounds(footer, column, schema);
        }
        metrics
    }

    /// A column has bounds if all row groups that have values of it have some.
    fn add_bounds(&mut self, footer: &ParquetMetaData, column: &LakeColumn, schema: &Schema) {
        let (name, number) = (column.field.name(), column.number);
        let descriptor = footer.file_metadata().schema_descr();
        let Ok(converter) = StatisticsConverter::try_new(name, schema, descriptor) else { return };
        let Some(place) = converter.parquet_column_index() else { return };
        let (Ok(lowest), Ok(highest)) = (
            converter.row_group_mins(footer.row_groups().iter()),
            converter.row_group_maxes(footer.row_groups().iter()),
        ) else {
            return;
        };
        let (Some(lowest), Some(highest)) = (scalars(&lowest), scalars(&highest)) else { return };
        for (group, (low, high)) in footer.row_groups().iter().zip(lowest.iter().zip(&highest)) {
            let chunk = group.column(place);
            let nulls = chunk.statistics().and_then(|statistics| statistics.null_count_opt());
            let is_empty = nulls.and_then(|nulls| i64::try_from(nulls).ok()) == Some(chunk.num_values());
            if (low.is_null() || high.is_null()) && !is_empty {
                return;
            }
        }
        if let Some(bytes) = extremes(lowest.iter()).and_then(|(low, _)| lower_bound(low)) {
            self.lower.insert(number, bytes);
        }
        if let Some(bytes) = extremes(highest.iter()).and_then(|(_, high)| upper_bound(high)) {
            self.upper.insert(number, bytes);
        }
    }
}

fn scalars(values: &ArrayRef) -> Option<Vec<ScalarValue>> {
    (0..values.len()).map(|place| ScalarValue::try_from_array(values, place).ok()).collect()
}
