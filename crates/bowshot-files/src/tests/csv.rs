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
async fn parts_of_a_table_agree_on_headers() {
    let folder = tempdir().unwrap();
    write(&folder.path().join("t/1.csv"), "a,b\n1,x\n2,y\n");
    write(&folder.path().join("t/2.csv"), "3,z\n4,w\n");
    let world = World::open(&[folder.path()]);
    assert_eq!(world.value("select sum(a) || ' ' || count(b) from t").await, "10 4");
    write(&folder.path().join("u/1.csv"), "1,x\n2,y\n");
    write(&folder.path().join("u/2.csv"), "p,z\nq,w\n");
    let world = World::open(&[folder.path()]);
    assert_eq!(world.value("select count(*) from u").await, "4");
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
    assert_eq!(rejects.iter().map(|reject| reject.line).collect::<Vec<_>>(), [102]);
    let world = with_options(&path, "null_padding=true&sample_size=-1");
    assert_eq!(world.value("select column_3 from t where column_3 is not null").await, "3");
    // A quote that opens a value and is never closed, far behind what is looked at.
    write(&path, format!("{}9,\"open\n{}", "1,x\n".repeat(30_000), "2,y\n".repeat(10)));
    let error = with_options(&path, "quote=%22&header=false").error("select * from t").await;
    says(&error, ErrorKind::Corrupt, &["line 30001", "never closed"]);
    assert_eq!(with_options(&path, "quote=").value("select count(*) from t").await, "30011");
}

#[tokio::test(flavor = "multi_thread")]
async fn options_that_cannot_be_obeyed_are_refused() {
    let folder = tempdir().unwrap();
    let csv = folder.path().join("t.csv");
    write(&csv, "a,b\n1,2\n3,4\n");
    let json = folder.path().join("t.json");
    write(&json, "{\"a\":1}\n");
    for (path, options, told) in [
        (&csv, "types=c:INT", "`types` names the column `c`"),
        (&csv, "types=INT,INT,INT", "3 types for 2 columns"),
        (&csv, "thousands=.", "cannot be both"),
        (&json, "header=true", "`header` is no option of json files"),
        (&json, "types=z:INT", "`types` names the column `z`"),
    ] {
        says(&with_options(path, options).error("select * from t").await, ErrorKind::Invalid, &[told]);
    }
    for path in [&csv, &json] {
        let error = with_options(path, "encoding=utf-16").error("select * from t").await;
        says(&error, ErrorKind::Corrupt, &["is no text in UTF-16"]);
    }
    let world = with_options(&csv, "auto_detect=false");
    assert_eq!(world.types("t").await, "column_1 Utf8, column_2 Utf8");
    assert_eq!(world.value("select count(*) from t").await, "3");
    let world = with_options(&csv, "store_rejects=true&types=a:DATE");
    assert_eq!(world.value("select count(*) from t").await, "0");
    assert_eq!(tokio::task::block_in_place(|| world.catalog.describe())[0].rejects.len(), 2);
    // What is said of a folder concerns those of its files that have such an option.
    let source = SourceSpec {
        name: None,
        path: folder.path().to_path_buf(),
        options: ReadOptions::parse("header=false&types=column_1:VARCHAR").unwrap(),
    };
    std::fs::rename(&json, folder.path().join("u.json")).unwrap();
    let world = World::with(vec![source], StorageOptions::default());
    assert_eq!(world.types("t").await, "column_1 Utf8, column_2 Utf8");
    assert_eq!(world.types("u").await, "a Int64");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_tells_how_it_is_read() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("t.csv");
    write(&path, "Title\na;b\n1;2,5\n2;3,5\n");
    let world = World::open(&[&path]);
    let told = tokio::task::block_in_place(|| world.catalog.describe())[0].read_as.clone().unwrap();
    for part in ["delim=;", "header=true", "1 lines above the header", "b: decimal comma"] {
        assert!(told.contains(part), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_name_files_of_the_served_places_only() {
    let folder = tempdir().unwrap();
    write(&folder.path().join("served/a.csv"), "a\n1\n");
    write(&folder.path().join("served/year=2024/b.csv"), "a\n2\n");
    write(&folder.path().join("secret.csv"), "a\n3\n");
    std::os::unix::fs::symlink(folder.path().join("secret.csv"), folder.path().join("served/link.csv"))
        .unwrap();
    let world = World::open(&[&folder.path().join("served")]);
    let named = |paths: &[&str]| {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        let catalog = std::sync::Arc::clone(&world.catalog);
        async move { catalog.named(&paths.join(","), paths, ReadOptions::default()).await }
    };
    assert!(named(&["a.csv"]).await.is_ok());
    assert_eq!(named(&["**/b.csv"]).await.unwrap().schema().fields().len(), 2);
    assert!(named(&[&folder.path().join("served/a.csv").display().to_string()]).await.is_ok());
    for path in ["../secret.csv", "link.csv", "/etc/passwd", "none.csv", "x/../a.csv", ".hidden.csv"] {
        says(&named(&[path]).await.unwrap_err(), ErrorKind::NotFound, &["no file"]);
    }
    says(&named(&["ftp://a/b.csv"]).await.unwrap_err(), ErrorKind::Invalid, &["names no files"]);
    says(&named(&["s3://a/b.csv"]).await.unwrap_err(), ErrorKind::Denied, &["in no place"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_lines_of_one_column_are_rows_wherever_they_are() {
    let folder = tempdir().unwrap();
    // Larger than a file has to be to be read in ranges, mostly of empty lines, and with more of them behind the last row.
    let block = format!("7\n{}", "\n".repeat(999));
    let text = format!("a\n{}1\n{}", block.repeat(20_000), "\n".repeat(300_000));
    write(&folder.path().join("sparse.csv"), &text);
    let world = World::open(&[&folder.path().join("sparse.csv")]);
    assert_eq!(world.value("select count(*) from sparse").await, "20000001");
    assert_eq!(world.value("select count(a) from sparse").await, "20001");
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
