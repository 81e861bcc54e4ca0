//! Columns that are kept decoded: the same answers as without, found when they should be, and gone with their file.

use super::{World, says, write_parquet};
use crate::{SourceSpec, StorageOptions};
use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float64Array, Int32Array,
    Int64Array, ListArray, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::Int32Type;
use bowshot_api::ErrorKind;
use bowshot_formats::decoded_columns::ColumnCache;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionConfig;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;
use tempfile::{TempDir, tempdir};

/// More than two pieces in a row group, and a last one that is not full.
const ROWS: i64 = 50_000;
const GROUP_ROWS: usize = 20_000;

/// Values of many types with nulls among them; `k` counts from `first`.
fn mixed(first: i64, rows: i64) -> RecordBatch {
    let numbers = || first..first + rows;
    let every = |n: i64, value: i64| (value % n != 0).then_some(value);
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>(
        numbers().map(|k| every(11, k).map(|k| (0..k % 4).map(|x| Some(x as i32)).collect::<Vec<_>>())),
    );
    let tags: DictionaryArray<Int32Type> =
        numbers().map(|k| ["red", "green", "blue"].get(k as usize % 3).copied()).collect();
    let amounts = Decimal128Array::from_iter(numbers().map(|k| every(9, k).map(|k| i128::from(k) * 101)));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("k", Arc::new(Int64Array::from_iter_values(numbers()))),
        ("n", Arc::new(Int32Array::from_iter(numbers().map(|k| every(7, k).map(|k| (k % 1000) as i32))))),
        ("x", Arc::new(Float64Array::from_iter(numbers().map(|k| every(13, k).map(|k| k as f64 / 3.0))))),
        ("b", Arc::new(BooleanArray::from_iter(numbers().map(|k| every(5, k).map(|k| k % 2 == 0))))),
        (
            "s",
            Arc::new(StringArray::from_iter(
                numbers().map(|k| every(3, k).map(|k| format!("text {}", k % 500))),
            )),
        ),
        ("d", Arc::new(Date32Array::from_iter_values(numbers().map(|k| (k / 100) as i32)))),
        ("t", Arc::new(TimestampMicrosecondArray::from_iter_values(numbers().map(|k| k * 1_000_000)))),
        ("a", Arc::new(amounts.with_precision_and_scale(15, 2).expect("fits"))),
        ("l", Arc::new(list)),
        ("g", Arc::new(tags)),
    ];
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, values)| (name, values, name != "k")),
    )
    .expect("batch")
}

fn write_groups(path: &Path, batch: &RecordBatch) {
    std::fs::create_dir_all(path.parent().expect("parent")).expect("folder");
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(GROUP_ROWS)).build();
    let file = File::create(path).expect("create");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).expect("writer");
    writer.write(batch).expect("write");
    writer.close().expect("close");
}

/// Until a file counts as one that will not change without a trace.
fn settle() {
    sleep(Duration::from_millis(60));
}

/// The folder as table `t`, with so many bytes for columns.
fn world(folder: &Path, bytes: u64) -> World {
    let source = SourceSpec::new(Some("t".to_owned()), folder.to_path_buf());
    let options = StorageOptions { refresh: Duration::ZERO, ..StorageOptions::default() };
    let mut config = SessionConfig::new().with_target_partitions(3).with_batch_size(3000);
    // So that small files are split too.
    config.options_mut().optimizer.repartition_file_min_size = 1;
    World::keeping(vec![source], options, config, ColumnCache::new(bytes))
}

/// One settled file as table `t`.
fn one_file(batch: &RecordBatch, bytes: u64) -> (TempDir, World) {
    let folder = tempdir().unwrap();
    write_groups(&folder.path().join("a.parquet"), batch);
    settle();
    let world = world(folder.path(), bytes);
    (folder, world)
}

/// Column chunks that a query finds in memory, and that it puts there.
async fn chunks(world: &World, sql: &str) -> (usize, usize) {
    let plan = world.context.sql(sql).await.expect(sql).create_physical_plan().await.expect(sql);
    collect(Arc::clone(&plan), world.context.task_ctx()).await.expect(sql);
    (metric(&plan, "column_chunks_from_memory"), metric(&plan, "column_chunks_into_memory"))
}

fn metric(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    let own =
        plan.metrics().and_then(|metrics| metrics.sum_by_name(name)).map_or(0, |value| value.as_usize());
    own + plan.children().into_iter().map(|child| metric(child, name)).sum::<usize>()
}

const QUERIES: [&str; 16] = [
    "select count(*) from t where b is null and d is null",
    "select k, s from t where a > 5000000 or x is null order by k",
    "select * from t order by k",
    "select k, s from t where k between 19990 and 20010 order by k",
    "select g, count(*), sum(a), min(x), max(t) from t group by g order by g",
    "select sum(n), count(s), count(distinct d) from t where b",
    "select k + 1 as next, upper(s) as s from t where n is null order by k",
    "select l, k from t where l is not null and k % 997 = 0 order by k",
    "select count(*) from t",
    "select count(*) from t where s is null",
    "select k from t order by x desc nulls last, k limit 5",
    "select part, count(*), sum(k) from t group by part order by part",
    "select part, k from t where part = 2 and k < 100020 order by k",
    "select a.k, b.s from t a join t b on a.k = b.n where b.k < 30 order by a.k, b.k",
    "select count(*) from t where k in (select n from t where k < 40)",
    "select d, first_value(s order by k) from t where d > '1970-01-20' group by d order by d limit 9",
];

/// The answers of a folder without columns in memory.
async fn expected(folder: &Path) -> Vec<String> {
    let (without, mut answers) = (world(folder, 0), Vec::new());
    for sql in QUERIES {
        answers.push(without.table(sql).await);
    }
    answers
}

#[tokio::test]
async fn kept_columns_give_the_same_answers() {
    let folder = tempdir().unwrap();
    write_groups(&folder.path().join("part=1/a.parquet"), &mixed(0, ROWS));
    write_groups(&folder.path().join("part=2/b.parquet"), &mixed(100_000, ROWS / 2));
    // Lacks columns, and has others in another order and type.
    let narrow = mixed(200_000, ROWS / 4).project(&[4, 1, 0]).unwrap();
    write_groups(&folder.path().join("part=2/c.parquet"), &narrow);
    settle();
    let expected = expected(folder.path()).await;
    for limit in [64 << 20, 3 << 20, 900 << 10, 1] {
        let with = world(folder.path(), limit);
        for round in 0..4 {
            for (sql, expected) in QUERIES.iter().zip(&expected) {
                let same = with.table(sql).await == *expected;
                assert!(same, "{sql}, {limit} bytes, round {round}");
                assert!(with.columns.bytes() <= limit);
            }
        }
        assert_eq!(with.columns.bytes() > 0, limit > 1, "{limit}");
    }
}

#[tokio::test]
async fn the_second_scan_keeps_what_the_third_finds() {
    let (_folder, world) = one_file(&mixed(0, ROWS), 64 << 20);
    let sql = "select k, s from t";
    assert_eq!(chunks(&world, sql).await, (0, 0));
    assert_eq!(chunks(&world, sql).await, (0, 6));
    assert_eq!(chunks(&world, sql).await, (6, 0));
    // A column more is read beside those that are there, and kept the next time.
    assert_eq!(chunks(&world, "select k, n from t").await, (3, 0));
    assert_eq!(chunks(&world, "select k, n from t").await, (3, 3));
    // Only the row groups that may have such rows.
    assert_eq!(chunks(&world, "select n from t where k = 45000").await, (2, 0));
    // Some rows say nothing about the use of a column, but find it.
    assert_eq!(chunks(&world, "select x from t limit 3").await, (0, 0));
    assert_eq!(chunks(&world, "select x from t limit 3").await, (0, 0));
    assert!(chunks(&world, "select k from t limit 3").await.0 > 0);
}

#[tokio::test]
async fn scans_that_need_few_rows_are_left_to_the_file() {
    let (_folder, world) = one_file(&mixed(0, 16 * GROUP_ROWS as i64), 64 << 20);
    for sql in [
        // In order by `k`: statistics leave one row group, and the page index few pages of it.
        "select s from t where k = 45000",
        // The most promising row groups first, until no better row can come.
        "select k from t order by x desc nulls last limit 5",
        // Ends within the first row group.
        "select k, g from t where n > 0 limit 3",
    ] {
        for _ in 0..4 {
            assert_eq!(chunks(&world, sql).await, (0, 0), "{sql}");
        }
    }
    let counters = 128 * 16 * 3;
    falls_to(&world, counters).await;
}

/// Waits until no more than so many bytes are taken: the tasks of a scan that failed or was given up may not be gone yet,
/// and give their room back when they are.
async fn falls_to(world: &World, bytes: u64) {
    for _ in 0..3_000 {
        if world.columns.bytes() <= bytes {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{} bytes are still taken, more than {bytes}", world.columns.bytes());
}

#[tokio::test]
async fn a_dictionary_counts_once() {
    let folder = tempdir().unwrap();
    let texts: Vec<String> = (0..1000).map(|n| format!("{n:0200}")).collect();
    let long: DictionaryArray<Int32Type> =
        (0..ROWS as usize).map(|row| texts.get(row % 1000).map(String::as_str)).collect();
    let batch = RecordBatch::try_from_iter([("g", Arc::new(long) as ArrayRef)]).unwrap();
    write_groups(&folder.path().join("a.parquet"), &batch);
    settle();
    let world = world(folder.path(), 2 << 20);
    for _ in 0..2 {
        world.rows("select g from t").await.unwrap();
    }
    assert_eq!(chunks(&world, "select g from t").await, (3, 0));
}

#[tokio::test]
async fn a_join_learns_which_rows_are_not_needed() {
    let (_folder, world) = one_file(&mixed(0, ROWS), 64 << 20);
    let sql = "select count(b.s) from t a join t b on a.k = b.k where a.k % 9973 = 1";
    for _ in 0..3 {
        assert_eq!(world.value(sql).await, "4");
    }
    let plan = world.context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    collect(Arc::clone(&plan), world.context.task_ctx()).await.unwrap();
    let rows: usize = scans(&plan).iter().map(|scan| metric(scan, "output_rows")).min().unwrap();
    assert!(rows < ROWS as usize / 100, "{rows} rows of the larger side left its scan");
}

fn scans(plan: &Arc<dyn ExecutionPlan>) -> Vec<Arc<dyn ExecutionPlan>> {
    if plan.name() == "DataSourceExec" {
        return vec![Arc::clone(plan)];
    }
    plan.children().into_iter().flat_map(scans).collect()
}

#[tokio::test]
async fn a_file_that_is_overwritten_while_it_is_read_gives_an_error_and_keeps_nothing() {
    let (folder, world) = one_file(&mixed(0, ROWS), 64 << 20);
    let path = folder.path().join("a.parquet");
    world.rows("select k from t").await.unwrap();
    let counted = world.columns.bytes();
    let plan = world.context.sql("select k, s from t").await.unwrap().create_physical_plan().await.unwrap();
    let content = std::fs::read(&path).unwrap();
    std::fs::write(&path, vec![0; content.len()]).unwrap();
    let error = collect(plan, world.context.task_ctx()).await.expect_err("other content");
    says(&super::ours(&error), ErrorKind::Conflict, &["a.parquet"]);
    falls_to(&world, counted + 1024).await;
}

#[tokio::test]
async fn files_that_may_change_without_a_trace_are_not_kept() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    write_groups(&path, &mixed(0, ROWS));
    // From the future: nobody knows when it will have been written.
    let world = world(folder.path(), 64 << 20);
    for _ in 0..3 {
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(std::time::SystemTime::now()).unwrap();
        world.rows("select k from t").await.unwrap();
    }
    assert_eq!(world.columns.bytes(), 0);
}

#[tokio::test]
async fn small_files_are_left_alone() {
    let folder = tempdir().unwrap();
    write_parquet(&folder.path().join("a.parquet"), &mixed(0, 100));
    settle();
    let world = world(folder.path(), 64 << 20);
    for _ in 0..3 {
        assert_eq!(world.value("select sum(k) from t").await, "4950");
    }
    assert_eq!(world.columns.bytes(), 0);
}
