//! What is not said of a row group is not said of its file: rows and extremes are found all the same.

use super::footers::{rewrite_footer, with_statistics};
use super::{World, says, write_parquet};
use arrow::array::{ArrayRef, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Schema;
use bowshot_api::ErrorKind;
use bowshot_formats::parquet::footers::ruling_out_nothing_wrong;
use bowshot_formats::parquet::statistics::file_statistics;
use datafusion::common::stats::Precision;
use datafusion::common::{ScalarValue, Statistics as FileStatistics};
use parquet::arrow::{ArrowWriter, parquet_to_arrow_schema};
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataBuilder, ParquetMetaDataReader,
};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::statistics::Statistics;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use tempfile::tempdir;

/// Two row groups of two rows; the second one has the greater values.
fn table(path: &Path) {
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "m", "xyz"]));
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 30, 40]));
    let decimals = Decimal128Array::from(vec![10, 20, 300, 400]).with_precision_and_scale(30, 1).unwrap();
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![1.0, -0.0, 3.0, f64::NAN]));
    let columns = [("s", texts), ("i", numbers), ("d", Arc::new(decimals) as ArrayRef), ("f", floats)];
    let columns = columns.map(|(name, values)| (name, values, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(2));
    let properties = properties.set_bloom_filter_enabled(true).build();
    let mut writer =
        ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

async fn value(path: &Path, what: &str, filter: &str) -> String {
    World::open(&[path]).value(&format!("select {what} from t where {filter}")).await
}

fn is_second(chunk: &ColumnChunkMetaData, first: i64) -> bool {
    chunk.data_page_offset() > first
}

/// Where the first row group ends.
fn first_end(path: &Path) -> i64 {
    let metadata = footer(path);
    let chunks = metadata.row_groups()[0].columns();
    chunks.iter().map(ColumnChunkMetaData::data_page_offset).max().unwrap()
}

fn footer(path: &Path) -> ParquetMetaData {
    ParquetMetaDataReader::new().parse_and_finish(&File::open(path).unwrap()).unwrap()
}

fn statistics_of(path: &Path) -> FileStatistics {
    let metadata = footer(path);
    let file = metadata.file_metadata();
    let columns: Schema = parquet_to_arrow_schema(file.schema_descr(), None).unwrap();
    file_statistics(&metadata, &columns, 4)
}

#[test]
fn a_file_is_said_to_have_what_all_its_row_groups_have() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    table(&path);
    let all = statistics_of(&path);
    let of = |value: i64| Precision::Exact(ScalarValue::Int64(Some(value)));
    let number = &all.column_statistics[1];
    assert_eq!((&number.min_value, &number.max_value), (&of(1), &of(40)));
    assert_eq!(number.null_count, Precision::Exact(0));
    // NaN is in no bounds.
    let float = &all.column_statistics[3];
    assert!(!matches!(float.max_value, Precision::Exact(_)), "{float:?}");
    let first = first_end(&path);
    with_statistics(&path, 1, |chunk| match is_second(chunk, first) {
        true => Some(Statistics::int64(None, Some(40), Some(2), None, false)),
        false => Some(Statistics::int64(Some(1), Some(2), Some(2), Some(0), false)),
    });
    let some = statistics_of(&path);
    let number = &some.column_statistics[1];
    assert_eq!((&number.min_value, &number.max_value), (&Precision::Absent, &of(40)));
    assert_eq!(number.null_count, Precision::Absent);
    assert_eq!(number.distinct_count, Precision::Inexact(2));
    // A row group of NULLs has no bounds, and needs none.
    with_statistics(&path, 1, |chunk| match is_second(chunk, first) {
        true => Some(Statistics::int64(None, None, None, Some(2), false)),
        false => Some(Statistics::int64(Some(1), Some(2), None, Some(0), false)),
    });
    let nulls = statistics_of(&path);
    let number = &nulls.column_statistics[1];
    assert_eq!((&number.max_value, number.null_count), (&of(2), Precision::Exact(2)));
}

#[tokio::test]
async fn bits_rule_out_no_floating_point_numbers() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    table(&path);
    let footer = ruling_out_nothing_wrong(Arc::new(footer(&path))).unwrap();
    for group in footer.row_groups() {
        let filtered = group.columns().iter().map(|chunk| chunk.bloom_filter_offset().is_some());
        assert_eq!(filtered.collect::<Vec<_>>(), [true, true, true, false]);
    }
    assert_eq!(value(&path, "count(*)", "f > 100").await, "1");
    assert_eq!(value(&path, "count(*)", "s = 'm'").await, "1");
}

/// The same footer, with another count of rows of its first row group; the writer adds those of the file up itself.
fn counting(metadata: &ParquetMetaData, first: i64) -> ParquetMetaData {
    let groups = metadata.row_groups().iter().enumerate().map(|(number, group)| {
        let rows = if number == 0 { first } else { group.num_rows() };
        group.clone().into_builder().set_num_rows(rows).build().unwrap()
    });
    ParquetMetaDataBuilder::new(metadata.file_metadata().clone()).set_row_groups(groups.collect()).build()
}

#[tokio::test]
async fn footers_that_count_other_rows_are_errors() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    table(&path);
    for rows in [1, 3] {
        table(&path);
        rewrite_footer(&path, |metadata| counting(metadata, rows));
        for sql in ["select count(*) from t", "select i from t", "select * from t", "select max(f) from t"] {
            let error = World::open(&[&path]).error(sql).await;
            says(&error, ErrorKind::Corrupt, &["t.parquet", "the footer counts"]);
        }
    }
}

/// All counts of the footer say one row more than the pages have.
#[tokio::test]
async fn pages_of_fewer_rows_are_errors_below_filters_too() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let batch = RecordBatch::try_from_iter([("i", numbers)]).unwrap();
    let properties = WriterProperties::builder().set_statistics_enabled(EnabledStatistics::Chunk);
    let properties = properties.set_offset_index_disabled(true).build();
    let mut writer =
        ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    rewrite_footer(&path, |metadata| {
        let groups = metadata.row_groups().iter().map(|group| {
            let columns = group.columns().iter().map(|chunk| {
                chunk.clone().into_builder().set_num_values(chunk.num_values() + 1).build().unwrap()
            });
            let more = group.clone().into_builder().set_num_rows(group.num_rows() + 1);
            more.set_column_metadata(columns.collect()).build().unwrap()
        });
        ParquetMetaDataBuilder::new(metadata.file_metadata().clone()).set_row_groups(groups.collect()).build()
    });
    for sql in ["select i from t", "select i from t where i >= 2"] {
        let error = World::open(&[&path]).error(sql).await;
        says(&error, ErrorKind::Corrupt, &["t.parquet", "the footer counts 4 rows"]);
    }
}

fn write_column(path: &Path, column: ArrayRef) {
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(0..column.len() as i64));
    write_parquet(path, &RecordBatch::try_from_iter([("id", id), ("x", column)]).unwrap());
}

#[tokio::test]
async fn whole_numbers_meet_floating_point_ones_where_none_is_rounded() {
    let folder = tempdir().unwrap();
    let (whole, float) = (folder.path().join("t/a.parquet"), folder.path().join("t/b.parquet"));
    let largest = 1_i64 << 53;
    write_column(&whole, Arc::new(Int64Array::from(vec![Some(1), None, Some(largest)])));
    write_column(&float, Arc::new(Float64Array::from(vec![0.5])));
    let world = World::named("t", &folder.path().join("t"));
    assert_eq!(world.types("t").await, "id Int64, x Float64");
    assert_eq!(world.value("select count(*) from t where x >= 9007199254740992").await, "1");
    assert_eq!(world.value("select count(*) from t where x < 1").await, "1");
    write_column(&whole, Arc::new(Int64Array::from(vec![largest + 1])));
    let error = World::named("t", &folder.path().join("t")).error("select x from t").await;
    says(
        &error,
        ErrorKind::Corrupt,
        &["column `x`", "a.parquet` is Int64 of numbers", "b.parquet` it is Float64"],
    );
}
