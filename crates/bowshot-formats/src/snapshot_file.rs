//! A data file of a table's snapshot, as the planner sees it: with the values of its partition and the statistics of its columns.

use crate::data_file::DataFile;
use crate::file_metadata::{Detail, FileFacts};
use crate::row_source::PlannedFile;
use crate::schema::{Places, named_as_in};
use crate::snapshot_store;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use bowshot_object_store::file_name::Compression;
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::FileGroup;
use datafusion::datasource::physical_plan::parquet::ParquetRowSelection;
use parquet::arrow::arrow_reader::RowSelection;
use std::sync::Arc;

/// Files as the partitions of a scan have them, and what the planner may believe about all of them.
pub type Groups = Arc<(Vec<FileGroup>, Statistics)>;

#[derive(Debug)]
pub struct SnapshotFile {
    pub data: Arc<DataFile>,
    pub facts: Arc<FileFacts>,
    pub compression: Compression,
    pub partition_values: Vec<ScalarValue>,
    pub statistics: Arc<Statistics>,
    named: Option<SchemaRef>,
}

impl SnapshotFile {
    /// A file of a table whose columns in files are `file_schema`, by names in letters of any case.
    pub fn new(
        (data, facts): (Arc<DataFile>, Arc<FileFacts>),
        compression: Compression,
        file_schema: &SchemaRef,
        partition_values: Vec<ScalarValue>,
    ) -> Self {
        let named = named_as_in(file_schema, &facts.columns);
        let columns = named.as_ref().unwrap_or(file_schema);
        let statistics = Arc::new(statistics(&data, &facts, columns, &partition_values));
        Self { data, facts, compression, partition_values, statistics, named }
    }

    /// A Parquet file of a table whose columns in files are `file_schema`.
    pub fn of_parquet(
        data: Arc<DataFile>,
        facts: Arc<FileFacts>,
        file_schema: &Schema,
        partition_values: Vec<ScalarValue>,
    ) -> Self {
        let statistics = Arc::new(statistics(&data, &facts, file_schema, &partition_values));
        Self { data, facts, compression: Compression::None, partition_values, statistics, named: None }
    }

    /// The same where only some of the rows are left.
    pub fn planned_without(&self, left: Option<RowSelection>) -> PartitionedFile {
        let mut file = self.planned();
        let Some(left) = left else { return file };
        // What a footer says of columns is of rows that are gone, too.
        let rows = Precision::Exact(left.row_count());
        let counted = |known: Arc<Statistics>| known.as_ref().clone().to_inexact().with_num_rows(rows);
        file.statistics = file.statistics.map(|known| Arc::new(counted(known)));
        file.with_extension(ParquetRowSelection::new(left))
    }

    pub fn planned(&self) -> PartitionedFile {
        let planned = PlannedFile {
            data: Arc::clone(&self.data),
            facts: Arc::clone(&self.facts),
            compression: self.compression,
            named: self.named.clone(),
        };
        let mut file = PartitionedFile::new_from_meta(snapshot_store::object_meta(&self.data))
            .with_partition_values(self.partition_values.clone())
            .with_extension(planned);
        file.statistics = Some(Arc::clone(&self.statistics));
        if let Some(told) = self.facts.told_schema() {
            file = file.with_arrow_schema(told);
        }
        file
    }
}

/// What the planner may believe about a file, column by column of the table.
fn statistics(
    data: &DataFile,
    facts: &FileFacts,
    file_schema: &Schema,
    partition_values: &[ScalarValue],
) -> Statistics {
    let exact = matches!(
        facts.detail,
        Detail::Parquet { .. } | Detail::ArrowFile { .. } | Detail::Orc(_) | Detail::Nothing
    );
    let rows = match facts.rows {
        Some(rows) if exact => Precision::Exact(rows),
        Some(rows) => Precision::Inexact(rows),
        None => Precision::Absent,
    };
    let places = Places::of(&facts.columns);
    let of_column = |(place, field): (usize, &Arc<Field>)| {
        column_statistics(field, (facts, places.find(field.name(), place)), rows)
    };
    let columns = file_schema.fields().iter().enumerate().map(of_column);
    let partitions = partition_values.iter().map(|value| partition_statistics(value, rows));
    let size = usize::try_from(data.size()).unwrap_or(usize::MAX);
    let total = match &facts.detail {
        Detail::Parquet { statistics, .. } => statistics.total_byte_size.to_inexact(),
        _ => Precision::Inexact(size),
    };
    Statistics {
        num_rows: rows,
        total_byte_size: total,
        column_statistics: columns.chain(partitions).collect(),
    }
}

fn column_statistics(
    field: &Field,
    (facts, place): (&FileFacts, Option<usize>),
    rows: Precision<usize>,
) -> ColumnStatistics {
    let Some(place) = place else {
        // The file lacks the column: all its rows are null there.
        return ColumnStatistics { null_count: rows, ..ColumnStatistics::new_unknown() };
    };
    let Detail::Parquet { statistics, .. } = &facts.detail else {
        return ColumnStatistics::new_unknown();
    };
    let Some(known) = statistics.column_statistics.get(place) else {
        return ColumnStatistics::new_unknown();
    };
    ColumnStatistics {
        null_count: known.null_count,
        min_value: as_type(&known.min_value, field.data_type()),
        max_value: as_type(&known.max_value, field.data_type()),
        byte_size: known.byte_size,
        distinct_count: known.distinct_count,
        sum_value: Precision::Absent,
    }
}

fn partition_statistics(value: &ScalarValue, rows: Precision<usize>) -> ColumnStatistics {
    if value.is_null() {
        return ColumnStatistics { null_count: rows, ..ColumnStatistics::new_unknown() };
    }
    ColumnStatistics {
        null_count: Precision::Exact(0),
        min_value: Precision::Exact(value.clone()),
        max_value: Precision::Exact(value.clone()),
        distinct_count: Precision::Exact(1),
        ..ColumnStatistics::new_unknown()
    }
}

/// A bound in the table's type; none if it does not fit, since a wrong bound gives wrong rows.
fn as_type(bound: &Precision<ScalarValue>, data_type: &DataType) -> Precision<ScalarValue> {
    let cast = |value: &ScalarValue| {
        let plain = match data_type {
            DataType::Dictionary(_, value) => value.as_ref(),
            other => other,
        };
        match value.data_type() {
            same if same == *plain => Some(value.clone()),
            other if keeps_order(&other, plain) => value.cast_to(plain).ok(),
            _ => None,
        }
    };
    match bound {
        Precision::Exact(value) => {
            cast(value).filter(|v| !v.is_null()).map_or(Precision::Absent, Precision::Exact)
        }
        Precision::Inexact(value) => {
            cast(value).filter(|v| !v.is_null()).map_or(Precision::Absent, Precision::Inexact)
        }
        Precision::Absent => Precision::Absent,
    }
}

/// Whether of two values of a type the greater one is not the lesser one in another type: as text, 9 is more than 10.
fn keeps_order(from: &DataType, to: &DataType) -> bool {
    let of_both = |is: fn(&DataType) -> bool| is(from) && is(to);
    of_both(DataType::is_numeric)
        || of_both(DataType::is_string)
        || of_both(DataType::is_binary)
        || of_both(|of| matches!(of, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..)))
        || of_both(|of| matches!(of, DataType::Time32(_) | DataType::Time64(_)))
}
