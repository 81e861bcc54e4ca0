//! Files that come, go and change while the server runs.

use super::{World, ours, replace, says, write, write_parquet};
use crate::{FileTable, SourceSpec, StorageOptions};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use bowshot_api::ErrorKind;
use datafusion::catalog::SchemaProvider;
use datafusion::physical_plan::execute_stream;
use futures::StreamExt;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::tempdir;

fn constant(value: i64, rows: usize) -> RecordBatch {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![value; rows]));
    RecordBatch::try_from_iter([("n", column)]).unwrap()
}

fn replace_parquet(path: &Path, batch: &RecordBatch) {
    let beside = path.with_extension("tmp");
    write_parquet(&beside, batch);
    std::fs::rename(beside, path).unwrap();
}

#[tokio::test]
async fn same_size_and_same_time_is_still_another_file() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("p.parquet");
    write_parquet(&path, &constant(1, 10));
    let modified = path.metadata().unwrap().modified().unwrap();
    let world = World::open(&[&path]);
    assert_eq!(world.value("select sum(n) from p").await, "10");
    let beside = folder.path().join("next.tmp");
    write_parquet(&beside, &constant(2, 10));
    std::fs::File::options().write(true).open(&beside).unwrap().set_modified(modified).unwrap();
    std::fs::rename(&beside, &path).unwrap();
    assert_eq!(path.metadata().unwrap().modified().unwrap(), modified);
    assert_eq!(world.value("select sum(n) from p").await, "20");
}

#[tokio::test]
async fn files_are_looked_at_once_per_refresh() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.csv");
    write(&path, "n\n1\n");
    let source = SourceSpec::new(None, folder.path().to_path_buf());
    let options = StorageOptions { refresh: Duration::from_secs(3600), ..StorageOptions::default() };
    let world = World::with(vec![source], options);
    assert_eq!(world.types("a").await, "n Int64");
    write(&folder.path().join("b.csv"), "n\n1\n");
    assert_eq!(world.names(), ["a"]);
    replace(&path, "m\nx\n");
    assert_eq!(world.types("a").await, "n Int64");
    // The plan is of the old file, and says so instead of reading the new one.
    says(
        &world.error("select n from a").await,
        ErrorKind::Conflict,
        &["a.csv", "changed or replaced", "again"],
    );
}

#[tokio::test]
async fn a_version_stands_for_the_content() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.csv");
    write(&path, "n\n1\n");
    let world = World::open(&[&path]);
    let schema = world.catalog.schema_provider();
    let unsettled = version(schema.as_ref(), "a").await;
    // A file this new may still change without a new time stamp; once it has settled its version stays.
    let mut settled = unsettled;
    while settled == unsettled {
        settled = version(schema.as_ref(), "a").await;
    }
    for _ in 0..10 {
        assert_eq!(version(schema.as_ref(), "a").await, settled);
    }
    replace(&path, "n\n2\n");
    assert_ne!(version(schema.as_ref(), "a").await, settled);
}

async fn version(schema: &dyn SchemaProvider, name: &str) -> bowshot_formats::table_version::TableVersion {
    let table = schema.table(name).await.unwrap().unwrap();
    let table: &dyn std::any::Any = table.as_ref();
    table.downcast_ref::<FileTable>().unwrap().version()
}

/// Starts a scan, changes the file after the first batch, and reads on.
async fn scan_across(
    world: &World,
    path: &Path,
    change: impl FnOnce(&Path),
) -> Result<i64, bowshot_api::Error> {
    let plan = world.context.sql("select n from big").await.unwrap().create_physical_plan().await.unwrap();
    let mut stream = execute_stream(plan, world.context.task_ctx()).unwrap();
    let mut sum = 0;
    let mut change = Some(change);
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(|error| {
            bowshot_object_store::find_error(&error).unwrap_or_else(|| panic!("not ours: {error:?}"))
        })?;
        let column = arrow::compute::cast(batch.column(0), &arrow::datatypes::DataType::Int64).unwrap();
        let column = arrow::array::AsArray::as_primitive::<arrow::datatypes::Int64Type>(&column);
        sum += arrow::compute::sum(column).unwrap_or(0);
        if let Some(change) = change.take() {
            change(path);
        }
    }
    Ok(sum)
}

#[tokio::test]
async fn a_file_deleted_under_a_query_is_read_to_its_end() {
    let folder = tempdir().unwrap();
    let csv = folder.path().join("csv/big.csv");
    write_csv(&csv, 1, 3_000_000);
    let world = World::open(&[&csv]);
    let sum = scan_across(&world, &csv, |path| std::fs::remove_file(path).unwrap()).await;
    assert_eq!(sum.unwrap(), 3_000_000);
    says(&world.error("select * from big").await, ErrorKind::NotFound, &["big.csv"]);
}

#[tokio::test]
async fn a_prepared_plan_sees_new_files() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("t");
    write(&path.join("1.csv"), "n\n1\n");
    let source = SourceSpec::new(Some("t".to_owned()), path.clone());
    let options =
        StorageOptions { refresh: Duration::ZERO, pinned: Duration::ZERO, ..StorageOptions::default() };
    let world = World::with(vec![source], options);
    let prepared = world.context.sql("select sum(n) from t").await.unwrap();
    write(&path.join("2.csv"), "n\n2\n");
    let batches = prepared.clone().collect().await.unwrap();
    assert_eq!(arrow::util::display::array_value_to_string(batches[0].column(0), 0).unwrap(), "3");
    write(&path.join("3.csv"), "m\n2\n");
    let error = ours(&prepared.collect().await.unwrap_err());
    says(&error, ErrorKind::Conflict, &["`t`", "prepare"]);
}

/// A file of so many rows is replaced, written anew in place, and cut short to a few, each time under a query.
async fn change_under_a_query(name: &str, [whole, short]: [i64; 2], write: impl Fn(&Path, i64, i64)) {
    let folder = tempdir().unwrap();
    let path = folder.path().join(name);
    write(&path, 1, whole);
    let world = World::open(&[&path]);
    // Replaced: read to the end as it was.
    let sum = scan_across(&world, &path, |path| {
        let beside = path.with_extension("tmp");
        write(&beside, 2, whole);
        std::fs::rename(beside, path).unwrap();
    });
    assert_eq!(sum.await.unwrap(), whole);
    assert_eq!(world.value("select sum(n) from big").await, (2 * whole).to_string());
    // In place, and cut short under what the decoder uses where it is.
    for (value, rows) in [(3, whole), (4, short)] {
        let error = scan_across(&world, &path, |path| write(path, value, rows)).await.unwrap_err();
        says(&error, ErrorKind::Conflict, &[name]);
        assert_eq!(world.value("select sum(n) from big").await, (value * rows).to_string());
    }
}

fn write_csv(path: &Path, value: i64, rows: i64) {
    write(path, format!("n\n{}", format!("{value}\n").repeat(usize::try_from(rows).unwrap())));
}

#[tokio::test]
async fn a_csv_file_changed_under_a_query_is_an_error() {
    change_under_a_query("big.csv", [3_000_000, 10], write_csv).await;
}

#[tokio::test]
async fn an_arrow_file_changed_under_a_query_is_an_error() {
    change_under_a_query("big.arrow", [5_000_000, 100_000], |path, value, rows| {
        let batch = constant(value, 100_000);
        let file = std::fs::File::create(path).unwrap();
        let mut writer = arrow::ipc::writer::FileWriter::try_new(file, &batch.schema()).unwrap();
        (0..rows / 100_000).for_each(|_| writer.write(&batch).unwrap());
        writer.finish().unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_parquet_file_changed_under_a_query_is_an_error() {
    change_under_a_query("big.parquet", [1_000_000, 10], |path, value, rows| {
        let batch = constant(value, usize::try_from(rows).unwrap());
        let plain = WriterProperties::builder().set_dictionary_enabled(false).build();
        let file = std::fs::File::create(path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(plain)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_table_of_many_files_looks_only_at_changed_ones() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("t");
    for part in 0..200 {
        write_parquet(&path.join(format!("part-{part:03}.parquet")), &constant(1, 10));
    }
    let world = World::named("t", &path);
    assert_eq!(world.value("select count(*) || ' ' || sum(n) from t").await, "2000 2000");
    assert_eq!(world.value("select count(*) from (select n from t limit 15)").await, "15");
    std::fs::remove_file(path.join("part-007.parquet")).unwrap();
    replace_parquet(&path.join("part-008.parquet"), &constant(3, 10));
    write(&path.join("part-009.parquet"), "noise");
    says(&world.error("select sum(n) from t").await, ErrorKind::Corrupt, &["part-009.parquet"]);
    replace_parquet(&path.join("part-009.parquet"), &constant(1, 10));
    assert_eq!(world.value("select sum(n) from t").await, "2010");
    // A scan whose handles do not all fit is as good.
    let source = SourceSpec::new(Some("t".to_owned()), path);
    let options = StorageOptions { max_open_files: 3, refresh: Duration::ZERO, ..StorageOptions::default() };
    let world = World::with(vec![source], options);
    assert_eq!(world.value("select sum(n + 0) from t").await, "2010");
}

#[tokio::test]
async fn handles_are_closed_when_no_query_runs() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("t");
    for part in 0..20 {
        write_parquet(&path.join(format!("{part}.parquet")), &constant(1, 10));
    }
    let world = World::named("t", &path);
    assert_eq!(world.value("select sum(n + 0) from t").await, "200");
    let open = || {
        let handles = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(Result::ok);
        handles.filter(|h| std::fs::read_link(h.path()).is_ok_and(|to| to.starts_with(&path))).count()
    };
    let plan = world.context.sql("select n from t").await.unwrap().create_physical_plan().await.unwrap();
    assert_eq!(open(), 20);
    drop(plan);
    assert_eq!(open(), 0);
}
