//! Separated values as they come: dialects, headers, types, and lines that do not fit.

use super::{World, says, write};
use crate::{SourceSpec, StorageOptions};
use bowshot_api::ErrorKind;
use bowshot_formats::read_options::ReadOptions;
use std::path::Path;
use std::time::Duration;
use tempfile::tempdir;

pub(super) fn with_options(path: &Path, options: &str) -> World {
    let options = ReadOptions::parse(options).unwrap();
    let source = SourceSpec { name: Some("t".to_owned()), path: path.to_path_buf(), options };
    World::with(
        vec![source],
        StorageOptions { refresh: Duration::from_secs(60), ..StorageOptions::default() },
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_is_refused_with_its_line() {
    let folder = tempdir().unwrap();
    let mut long = String::from("a,b\n");
    (0..100).for_each(|n| long.push_str(&format!("{n},x\n")));
    let path = folder.path().join("t.csv");
    write(&path, format!("{long}1,2,3\n"));
    let world = World::open(&[&path]);
    let error = world.error("select * from t").await;
    says(&error, ErrorKind::Corrupt, &["t.csv", "line 102", "3 values for 2 columns"]);
    assert!(error.hint().is_some_and(|hint| hint.contains("ignore_errors=true")));
    let world = with_options(&path, "ignore_errors=true");
    assert_eq!(world.value("select count(*) from t").await, "100");
    let rejects = &tokio::task::block_in_place(|| world.catalog.describe())[0].rejects;
    assert_eq!(rejects.iter().map(|(_, reject)| reject.line).collect::<Vec<_>>(), [102]);
    let world = with_options(&path, "null_padding=true&sample_size=-1");
    assert_eq!(world.value("select column_3 from t where column_3 is not null").await, "3");
    // A quote that opens a value and is never closed, far behind what is looked at.
    write(&path, format!("{}9,\"open\n{}", "1,x\n".repeat(30_000), "2,y\n".repeat(10)));
    let error = with_options(&path, "quote=%22&header=false").error("select * from t").await;
    says(&error, ErrorKind::Corrupt, &["line 30001", "never closed"]);
    assert_eq!(with_options(&path, "quote=").value("select count(*) from t").await, "30011");
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_lines_of_one_column_are_rows_wherever_they_are() {
    let folder = tempdir().unwrap();
    // Larger than a file has to be to be read in ranges, mostly of empty lines, and with more of them behind the last row.
    let block = format!("7\n{}", "\n".repeat(999));
    let text = format!("a\n{}1\n{}", block.repeat(20_000), "\n".repeat(300_000));
    write(&folder.path().join("sparse.csv"), &text);
    let world = World::open(&[&folder.path().join("sparse.csv")]);
    assert_eq!(world.value("select count(*) from sparse").await, "20300001");
    assert_eq!(world.value("select count(a) from sparse").await, "20001");
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_write_dates_and_numbers_as_the_others_do() {
    let folder = tempdir().unwrap();
    let files = folder.path().join("t");
    std::fs::create_dir(&files).unwrap();
    write(&files.join("a.csv"), "day;price;weight\n03/08/2010;1,234;1.234\n");
    write(&files.join("b.csv"), "day;price;weight\n08/25/2010;2,345,678;1.234,50\n");
    let world = with_options(&files, "");
    assert_eq!(world.value("select min(day) from t").await, "2010-03-08");
    assert_eq!(world.value("select sum(price) from t").await, "2346912.0");
    // `1.234` may be two numbers.
    assert_eq!(world.value("select min(weight) from t").await, "1.234");
    assert_eq!(world.value("select max(weight) from t").await, "1.234,50");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_follow_any_number_of_lines_that_are_left_out() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("t.csv");
    // More bytes than a batch has, in one column, so that no ranges are read.
    let line = format!("{}\n", "x".repeat(1 << 20));
    write(&path, format!("a\n1\n{}2\n", line.repeat(70)));
    let world = with_options(&path, "ignore_errors=true&types=a:BIGINT");
    assert_eq!(world.value("select sum(a) from t").await, "3");
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_are_left_out_for_the_same_reasons_whatever_is_asked_for() {
    let folder = tempdir().unwrap();
    let files = folder.path().join("t");
    std::fs::create_dir(&files).unwrap();
    write(&files.join("a.csv"), "x,y\n1,1\n2,2\nabc,3\n4,4\n");
    write(&files.join("b.csv"), "x,y\nzz,1\nyy,2\n");
    let world = with_options(&files, "ignore_errors=true&sample_size=2");
    for what in ["count(*)", "count(x)", "count(y)"] {
        assert_eq!(world.value(&format!("select {what} from t")).await, "5", "{what}");
    }
}
