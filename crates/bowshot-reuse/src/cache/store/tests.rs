//! The store by itself: what is found, what makes room for what, and what becomes of damaged files.

use super::*;
use crate::cache::joins::{CachedJoin, JoinInfo, JoinStore};
use crate::cache::shape::{ColumnRef, Content, JoinShape, Member, TableName, Tree};
use arrow::array::Int64Array;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, SystemTime};

const JOIN: &str = "(bin \"=\" #0:\"k\" #1:\"k\")";
const ROWS: usize = 1000;
/// Bytes that each join takes.
const BYTES: u64 = 8000;

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("v", DataType::Int64, false)]))
}

fn shape(name: &str, version: u64) -> JoinShape {
    let key = |table: &str| TableKey {
        name: TableName { catalog: "bowshot".into(), schema: "main".into(), table: table.into() },
        content: Content::Own {
            id: table.into(),
            version: 0,
            columns: 0,
            durable: true,
            segments: vec![version],
        },
    };
    let tree = Tree { members: vec![Member::Table(0), Member::Table(1)], conditions: vec![JOIN.into()] };
    JoinShape::new(vec![key(name), key("other")], &tree, String::new()).0
}

fn column() -> ColumnRef {
    ColumnRef { table: 0, column: "v".into() }
}

fn about(name: &str, version: u64) -> JoinInfo {
    JoinInfo { shape: shape(name, version), columns: vec![column()], forecast: false }
}

fn info(cost_ms: u64) -> EntryInfo {
    let (cost, created) = (Duration::from_millis(cost_ms), SystemTime::now());
    EntryInfo { rows: ROWS as u64, bytes: BYTES, cost, created }
}

fn batches() -> Vec<RecordBatch> {
    let values = Int64Array::from_iter_values(0..ROWS as i64);
    vec![RecordBatch::try_new(schema(), vec![Arc::new(values)]).expect("rows")]
}

fn rows() -> Loaded {
    Loaded::in_memory(schema(), batches())
}

fn store(memory_bytes: u64, folder: Option<&Path>) -> JoinStore {
    Store::open(Budget { memory_bytes, disk_bytes: 1 << 20, folder: folder.map(Path::to_path_buf) })
}

fn add(store: &JoinStore, name: &str, version: u64, cost_ms: u64) -> Result<Arc<CachedJoin>, Error> {
    let join = store.insert(about(name, version), info(cost_ms), rows())?;
    store.write(&join, &|| {});
    Ok(join)
}

/// Files of a folder, without the one that says whose it is.
fn files(folder: &Path) -> usize {
    std::fs::read_dir(folder).expect("is read").count() - 1
}

fn find(store: &JoinStore, name: &str, version: u64) -> Option<Arc<CachedJoin>> {
    let found = store.find(&shape(name, version), &[JOIN.to_owned()], &BTreeSet::from([column()]));
    found.map(|(join, _)| join)
}

#[test]
fn a_join_on_other_columns_is_not_replaced_by_a_newer_version() {
    let store = store(1 << 20, None);
    let mut other = about("a", 1);
    other.shape.tree.conditions = vec![JOIN.replace("\"k\"", "\"x\"")];
    let other = store.insert(other, info(10), rows()).expect("fits");
    add(&store, "a", 2, 10).expect("fits");
    assert!(store.all().iter().any(|join| join.id == other.id), "it has rows that can be added to");
}

#[test]
fn a_join_without_room_replaces_nothing() {
    let store = store(2 * BYTES, None);
    let narrow = add(&store, "a", 1, 10).expect("fits");
    add(&store, "b", 1, 1000).expect("fits").pin(true);
    let wide = EntryInfo { bytes: 2 * BYTES, ..info(10) };
    assert!(store.insert(about("a", 1), wide, rows()).is_err());
    assert_eq!(find(&store, "a", 1).expect("is still there").id, narrow.id);
    assert_eq!((store.sizes().memory, store.sizes().disk), (2 * BYTES, 0));
}

#[test]
fn joins_of_another_build_are_not_read() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(store(1 << 20, Some(folder.path())));
    let path = folder.path().join("12.arrow");
    let mut file = CacheFile::write(path.clone(), (&schema(), &batches()), &|| {}).expect("is written");
    let described = Described { program: "another".to_owned(), info: info(10), about: about("a", 1) };
    file.describe(&described).expect("is written");
    assert!(store(1 << 20, Some(folder.path())).all().is_empty());
    assert!(!path.exists());
    let mut file = CacheFile::write(path, (&schema(), &batches()), &|| {}).expect("is written");
    file.describe(&Described { program: this_program(), ..described }).expect("is written");
    assert_eq!(store(1 << 20, Some(folder.path())).all().len(), 1);
}

#[test]
fn what_saves_least_for_each_byte_leaves_and_what_saves_less_does_not_come_in() {
    let store = store(2 * BYTES, None);
    add(&store, "a", 1, 10).expect("fits");
    add(&store, "b", 1, 30).expect("fits");
    add(&store, "c", 1, 20).expect("fits in place of the cheapest");
    assert!(find(&store, "a", 1).is_none());
    assert!(find(&store, "b", 1).is_some() && find(&store, "c", 1).is_some());
    assert!(matches!(add(&store, "d", 1, 5), Err(Error::TooLarge { .. })));
    find(&store, "c", 1).expect("is there").pin(true);
    add(&store, "e", 1, 1000).expect("fits in place of one that is not pinned");
    assert!(find(&store, "b", 1).is_none() && find(&store, "c", 1).is_some());
    assert_eq!(store.sizes().memory, 2 * BYTES);
}

#[test]
fn the_join_of_an_earlier_day_leaves_for_that_of_a_later_one() {
    let store = store(BYTES, None);
    add(&store, "day20210803", 1, 1000).expect("fits");
    add(&store, "day20210804", 1, 5).expect("fits in place of the day before");
    assert!(find(&store, "day20210803", 1).is_none());
    assert!(add(&store, "day20210802", 1, 4).is_err());
}

#[test]
fn what_is_refused_again_and_again_gets_room_at_last() {
    let store = store(BYTES, None);
    add(&store, "a", 1, 30).expect("fits");
    let refused = (0..1_000).take_while(|_| add(&store, "b", 1, 10).is_err()).count();
    // In two hours `a` loses what `b` is worth twice.
    assert!((119..=121).contains(&refused), "{refused}");
}

#[test]
fn what_left_memory_comes_back_from_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(BYTES, Some(folder.path()));
    let join = add(&store, "a", 1, 10).expect("fits");
    add(&store, "b", 1, 20).expect("fits");
    assert_eq!((join.place(), join.read().expect("rows").batches.to_vec()), ("disk", batches()));
    assert!(store.restore(&join, rows()).is_err(), "the other one is worth more");
    store.remove(find(&store, "b", 1).expect("is there").id);
    store.restore(&join, rows()).expect("fits");
    assert_eq!((join.place(), store.sizes().memory), ("memory", BYTES));
}

#[test]
fn there_are_never_more_joins_than_the_limit() {
    let store = store(1 << 30, None);
    for number in 0..JoinInfo::MAX_ENTRIES + 10 {
        let rows = Loaded::in_memory(schema(), Vec::new());
        store.insert(about(&format!("t_{number}_x"), 1), info(10), rows).expect("fits");
    }
    assert_eq!(store.all().len(), JoinInfo::MAX_ENTRIES);
}

#[test]
fn tables_that_end_with_the_process_leave_no_description() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = store(1 << 20, Some(folder.path()));
    let mut about = about("a", 1);
    about.shape.tables[0].content =
        Content::Own { id: "a".into(), version: 0, columns: 0, durable: false, segments: vec![1] };
    let join = first.insert(about, info(10), rows()).expect("fits");
    first.write(&join, &|| {});
    assert!(join.bytes_in(Place::Disk) > 0);
    drop(first);
    assert!(store(1 << 20, Some(folder.path())).all().is_empty());
    assert_eq!(files(folder.path()), 0);
}
