//! Results on disk: what is found again, by whom, and what becomes of damaged and superfluous files.

use super::*;
use crate::cache::shape::Content;
use arrow::array::{Int64Array, StringArray};

fn table(name: &str, version: &str) -> TableKey {
    let name = TableName { catalog: "bowshot".into(), schema: "main".into(), table: name.into() };
    TableKey { name, content: Content::Files { version: version.into(), columns: 0 } }
}

fn rows() -> RecordBatch {
    let numbers = Arc::new(Int64Array::from_iter_values(0..1000)) as _;
    let texts =
        Arc::new(StringArray::from_iter_values((0..1000).map(|number| format!("text {number}")))) as _;
    RecordBatch::try_from_iter([("n", numbers), ("t", texts)]).expect("rows")
}

fn about(query: &str, version: &str) -> ResultInfo {
    ResultInfo {
        query: query.into(),
        program: "this one".into(),
        tables: vec![table("t", version)],
        digest: 7,
        streams: vec![1, 1],
        ordered: true,
        promised: Some(2000),
        bytes: 40_000,
        cost: Duration::from_millis(100),
        created: SystemTime::now(),
    }
}

fn open(folder: &Path) -> ResultFiles {
    ResultFiles::open(folder.to_path_buf(), 1 << 20, || "this one".into()).expect("a folder")
}

fn write(files: &ResultFiles, query: &str, version: &str) {
    let rows = rows();
    files.write(about(query, version), &rows.schema(), &[rows.clone(), rows]);
}

fn has(files: &ResultFiles, query: &str, version: &str) -> bool {
    let found = files.read(7, &[table("t", version)], query);
    found.is_some_and(|(about, schema, batches)| {
        about.streams == [1, 1] && schema == rows().schema() && batches == [rows(), rows()]
    })
}

#[test]
fn a_result_is_found_after_a_restart_by_the_same_query_of_the_same_build() {
    let folder = tempfile::tempdir().expect("a folder");
    write(&open(folder.path()), "q", "1");
    let files = open(folder.path());
    assert!(has(&files, "q", "1"));
    assert!(
        !has(&files, "r", "1") && !has(&files, "q", "2") && files.read(8, &[table("t", "1")], "q").is_none()
    );
    drop(files);
    let other =
        ResultFiles::open(folder.path().to_path_buf(), 1 << 20, || "another".into()).expect("a folder");
    assert!(!has(&other, "q", "1"));
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0, "of no use to anybody");
}

#[test]
fn what_the_same_query_gave_before_a_change_is_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = open(folder.path());
    write(&files, "q", "1");
    write(&files, "q", "2");
    assert!(!has(&files, "q", "1") && has(&files, "q", "2"));
    files.remove_changed(|table| matches!(&table.content, Content::Files { version, .. } if version == "3"));
    assert!(!has(&files, "q", "2"));
    write(&files, "q", "3");
    files.clear();
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn what_was_used_least_recently_makes_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = open(folder.path());
    let key = |number: usize| format!("version {number}");
    let write = |number: usize| {
        let about = ResultInfo { tables: vec![table(&format!("t{number}"), &key(number))], ..about("q", "") };
        let rows = rows();
        files.write(about, &rows.schema(), &[rows.clone(), rows]);
    };
    let there = |number: usize| files.read(7, &[table(&format!("t{number}"), &key(number))], "q").is_some();
    for number in 0..100 {
        write(number);
        let used = files.used(7, &[table("t0", &key(0))]);
        assert!(used, "it is given from memory all the time, at {number}");
    }
    assert!(there(0) && there(99) && !there(1));
    let bytes: u64 = std::fs::read_dir(folder.path())
        .expect("a folder")
        .map(|entry| entry.and_then(|entry| entry.metadata()).expect("a file").len())
        .sum();
    assert!(bytes > 1 << 19 && bytes <= 1 << 20, "{bytes} bytes");
}
