//! Rows that are deleted from files that stay.

use super::durable::{change, delete, durable, files, fresh, insert, now, open, reopened, sorted};
use super::*;
use crate::Storage;
use crate::durable::vacuum;
use bowshot_formats::table_version::AsOf;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;

/// A store with a file of the ids below 10,000.
fn filled() -> (tempfile::TempDir, Arc<TableStore>) {
    let (folder, store) = fresh();
    insert(&store, &rows(0..10_000));
    (folder, store)
}

/// What a transaction has made of table `t`.
fn with(base: &Snapshot, table: impl Into<Arc<Table>>) -> Arc<Snapshot> {
    Arc::new(base.with_entry(&name("t"), Entry::Table(table.into())).unwrap())
}

#[test]
fn a_file_stays_and_its_rows_are_gone_also_after_a_restart() {
    let (folder, store) = filled();
    let before = files(folder.path());
    for id in [0, 9_999, 7, 4_000] {
        delete(&store, id);
    }
    let expected: Vec<i64> = (0..10_000).filter(|id| ![0, 7, 4_000, 9_999].contains(id)).collect();
    assert_eq!((ids(&now(&store)), files(folder.path())), (expected.clone(), before));
    assert_eq!(now(&store).rows(), 9_996);
    let store = reopened(store, &folder);
    assert_eq!(ids(&now(&store)), expected);
    assert_eq!(store.table_as_of(&now(&store), AsOf::Version(1)).unwrap().rows(), 9_999);
    let table = now(&store);
    assert!(table.delete(&store, &[7]).is_err(), "it is deleted already");
    assert_eq!(crate::examine(folder.path()).unwrap(), []);
}

#[test]
fn a_file_that_loses_many_rows_is_written_anew() {
    let (_folder, store) = filled();
    change(&store, |table| table.unwrap().delete(&store, &(0..2000).collect::<Vec<_>>()).unwrap().0);
    assert!(now(&store).has_deleted_rows());
    delete(&store, 2000);
    assert!(!now(&store).has_deleted_rows());
    assert_eq!(ids(&now(&store)), (2001..10_000).collect::<Vec<_>>());
    change(&store, |table| table.unwrap().delete(&store, &(0..7999).collect::<Vec<_>>()).unwrap().0);
    assert_eq!((now(&store).rows(), now(&store).segment_count()), (0, 0));
}

#[test]
fn many_rows_of_a_large_file_are_noted_and_go_when_it_is_written_anew() {
    let (folder, store) = fresh();
    insert(&store, &rows(0..100_000));
    let before = files(folder.path());
    let every = |nth: u64| (0..100_000).filter(|id| id % nth == 0).collect::<Vec<u64>>();
    let base = store.snapshot();
    let [one, other] = [every(20), every(30).into_iter().filter(|id| id % 20 != 0).collect()]
        .map(|gone| with(&base, get(&base, "t").delete(&store, &gone).unwrap().0));
    store.commit(&base, &one).unwrap();
    store.commit(&base, &other).unwrap();
    let expected: Vec<i64> = (0..100_000).filter(|id| id % 20 != 0 && id % 30 != 0).collect();
    assert_eq!((ids(&now(&store)), files(folder.path())), (expected.clone(), before));
    drop((base, one, other));
    let store = reopened(store, &folder);
    assert!(now(&store).has_deleted_rows() && ids(&now(&store)) == expected);
    assert_eq!(store.table_as_of(&now(&store), AsOf::Version(1)).unwrap().rows(), 95_000);
    assert_eq!(crate::examine(folder.path()).unwrap(), []);
    // A transaction that began before goes on with the file that takes the place.
    let base = store.snapshot();
    let later = with(&base, without(&store, &get(&base, "t"), 99_999));
    change(&store, |table| table.unwrap().optimized(&store).unwrap().0);
    assert!(!now(&store).has_deleted_rows());
    store.commit(&base, &later).unwrap();
    assert_eq!(sorted(&now(&store)), expected[..expected.len() - 1]);
}

#[test]
fn transactions_that_delete_different_rows_of_a_file_do_not_conflict() {
    let (folder, store) = filled();
    let base = store.snapshot();
    let [first, second, same] = [3, 4, 3].map(|id| with(&base, without(&store, &get(&base, "t"), id)));
    store.commit(&base, &first).unwrap();
    store.commit(&base, &second).unwrap();
    assert!(matches!(store.commit(&base, &same), Err(Error::Conflict { .. })));
    assert_eq!(sorted(&now(&store)).iter().take(5).copied().collect::<Vec<_>>(), [0, 1, 2, 5, 6]);
    let version = now(&store).version();
    drop((base, first, second, same, store));
    let store = open(folder.path());
    assert_eq!((now(&store).rows(), now(&store).version()), (9_998, version));
}

#[test]
fn a_file_is_written_anew_beside_statements_that_delete_from_it() {
    for is_first in [true, false] {
        let (folder, store) = filled();
        insert(&store, &rows(10_000..20_000));
        delete(&store, 3);
        let base = store.snapshot();
        let written_anew = with(&base, get(&base, "t").optimized(&store).unwrap().0);
        let deleted = with(&base, without(&store, &without(&store, &get(&base, "t"), 5), 10_001));
        let (one, other) = if is_first { (&written_anew, &deleted) } else { (&deleted, &written_anew) };
        store.commit(&base, one).unwrap();
        store.commit(&base, other).unwrap();
        let expected: Vec<i64> = (0..20_000).filter(|id| ![3, 5, 10_001].contains(id)).collect();
        assert_eq!(sorted(&now(&store)), expected, "{is_first}");
        assert_eq!(now(&store).segment_count(), 1, "{is_first}");
        // Of what is deleted already there is nothing to delete.
        let again = with(&base, without(&store, &get(&base, "t"), 5));
        assert!(matches!(store.commit(&base, &again), Err(Error::Conflict { .. })), "{is_first}");
        drop((base, written_anew, deleted, again, store));
        assert_eq!(sorted(&now(&open(folder.path()))), expected, "{is_first}");
    }
}

/// The table with a row under another id.
fn updated(store: &Arc<TableStore>, table: &Table, id: i64) -> Table {
    let left = without(store, table, id);
    let new = store.copied(&left, vec![rows([id + 100])]).unwrap();
    left.append(new.into_iter().collect())
}

#[test]
fn a_transaction_goes_on_while_rows_are_moved_and_others_are_changed() {
    let (_folder, store) = fresh();
    change(&store, |_| Table::new(Definition { storage: Storage::Durable, ..keyed() }));
    insert(&store, &rows(0..10));
    let mut base = store.snapshot();
    let mut changed = with(&base, updated(&store, &get(&base, "t"), 0));
    for id in 1..9 {
        change(&store, |table| updated(&store, &table.unwrap(), id));
        if id % 2 == 1 {
            change(&store, |table| table.unwrap().optimized(&store).unwrap().0);
        }
        let head = store.snapshot();
        changed = Snapshot::rebased(&base, &changed, &head).unwrap();
        base = head;
    }
    store.commit(&base, &changed).unwrap();
    assert_eq!(sorted(&now(&store)), [&[9], &(100..109).collect::<Vec<i64>>()[..]].concat());
}

#[test]
fn versions_stay_while_other_programs_see_them() {
    let (folder, store) = filled();
    delete(&store, 3);
    let log = store.location(&now(&store)).unwrap().join("_delta_log");
    // VACUUM writes the file anew, so that the log does not name one that is gone.
    let done = store.vacuum(&now(&store), chrono::Duration::zero()).unwrap();
    assert_eq!((done.versions, done.files, files(folder.path()).len()), (2, 1, 1));
    let entry = std::fs::read_to_string(log.join(format!("{:020}.json", 1))).unwrap();
    assert_eq!((entry.matches("\"add\"").count(), entry.matches("\"remove\"").count()), (1, 1));
}

/// How many rows each state has that a Delta log shows.
fn shown_rows(log: &Path) -> Vec<u64> {
    let (mut files, mut counts): (HashMap<String, u64>, _) = (HashMap::new(), Vec::new());
    while let Ok(entry) = std::fs::read_to_string(log.join(format!("{:020}.json", counts.len()))) {
        for line in entry.lines() {
            let action: Value = serde_json::from_str(line).unwrap();
            if let Some(path) = action["remove"]["path"].as_str() {
                files.remove(path);
            }
            if let Some(path) = action["add"]["path"].as_str() {
                let stats: Value = serde_json::from_str(action["add"]["stats"].as_str().unwrap()).unwrap();
                files.insert(path.to_owned(), stats["numRecords"].as_u64().unwrap());
            }
        }
        counts.push(files.values().sum());
    }
    counts
}

#[test]
fn versions_go_while_other_programs_see_an_earlier_one_and_its_files_stay() {
    let (folder, store) = filled();
    let log = store.location(&now(&store)).unwrap().join("_delta_log");
    delete(&store, 3);
    delete(&store, 4);
    let forget = || {
        let (table, none) = (now(&store), chrono::Duration::zero());
        vacuum(&store, store.folder().unwrap(), &table, none, u64::MAX).unwrap()
    };
    let done = forget();
    assert_eq!((done.versions, done.files, files(folder.path()).len()), (2, 0, 1));
    // The log goes on from what it shows.
    change(&store, |table| table.unwrap().delete(&store, &(10..5_000).collect::<Vec<_>>()).unwrap().0);
    assert_eq!(shown_rows(&log), [10_000, 5_008]);
    let done = forget();
    assert_eq!((done.versions, done.files), (1, 1));
}

#[test]
fn other_programs_never_see_one_half_of_a_change() {
    let (_folder, store) = filled();
    let log = store.location(&now(&store)).unwrap().join("_delta_log");
    // The file is written anew, and the rows in the place of others are few.
    change(&store, |table| {
        let (left, _) = table.unwrap().delete(&store, &(0..2_500).collect::<Vec<_>>()).unwrap();
        let segment = store.copied(&left, vec![rows(20_000..22_500)]).unwrap();
        left.append(segment.into_iter().collect())
    });
    let done = store.vacuum(&now(&store), chrono::Duration::zero()).unwrap();
    assert_eq!((shown_rows(&log), done.files), (vec![10_000, 10_000], 1));
    // What is left of two files is few rows.
    let gone: Vec<u64> = (0..7_500).chain((0..1_500).map(|row| (1_u64 << 32) | row)).collect();
    change(&store, |table| table.unwrap().delete(&store, &gone).unwrap().0);
    store.settle();
    assert_eq!(shown_rows(&log), [10_000, 10_000, 1_000]);
    assert_eq!(now(&store).rows(), 1_000);
    // The log goes on when the rows that it waits for are deleted.
    change(&store, |table| table.unwrap().delete(&store, &(0..500).collect::<Vec<_>>()).unwrap().0);
    change(&store, |table| table.unwrap().truncate());
    assert_eq!(shown_rows(&log), [10_000, 10_000, 1_000, 0]);
}

#[test]
fn a_file_that_one_transaction_writes_and_deletes_from_is_kept() {
    let (folder, store) = fresh();
    insert(&store, &rows([-1]));
    let base = store.snapshot();
    let there = get(&base, "t");
    let segment = store.copied(&there, vec![rows(0..10_000)]).unwrap();
    let written = there.append(segment.into_iter().collect());
    let changed = with(&base, without(&store, &written, 7));
    store.commit(&base, &changed).unwrap();
    // What the transaction had before the deletion goes after its commit.
    drop((base, changed, there, written));
    assert_eq!(now(&store).rows(), 10_000);
    let store = reopened(store, &folder);
    let expected: Vec<i64> = (-1..10_000).filter(|id| *id != 7).collect();
    assert_eq!((sorted(&now(&store)), files(folder.path()).len()), (expected, 1));
    // One that is never committed leaves nothing.
    let segment = store.copied(&now(&store), vec![rows(20_000..30_000)]).unwrap();
    let written = now(&store).append(segment.into_iter().collect());
    let left = without(&store, &written, 20_007);
    assert_eq!(files(folder.path()).len(), 2);
    drop(written);
    drop(left);
    assert_eq!(files(folder.path()).len(), 1);
}

#[test]
fn tables_in_memory_copy_what_is_left() {
    assert_eq!(durable().storage, Storage::Durable);
    let store = store();
    let there = table(&store, [rows(0..100)]);
    let left = without(&store, &there, 7);
    assert!(!left.has_deleted_rows());
    assert_eq!(left.rows(), 99);
}

#[test]
fn two_states_differ_in_the_rows_that_came_and_went() {
    let (_folder, store) = filled();
    let first = now(&store);
    delete(&store, 7);
    delete(&store, 4_000);
    insert(&store, &rows(10_000..10_002));
    let last = now(&store);
    let differ = |before: &Table, after: &Table| {
        assert_eq!(sorted(&after.beyond(before)), [10_000, 10_001]);
        assert_eq!(sorted(&before.beyond(after)), [7, 4_000]);
    };
    differ(&first, &last);
    let read =
        |table: &Table| store.table_as_of(&table.without_rows(), AsOf::Version(table.version())).unwrap();
    differ(&read(&first), &read(&last));
    assert_eq!((last.beyond(&last).rows(), last.beyond(&last.without_rows()).rows()), (0, 10_000));
}
