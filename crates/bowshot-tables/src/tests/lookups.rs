//! Rows that are found by their keys.

use super::durable::{change, fresh, insert};
use super::*;
use arrow::array::ArrayRef;

/// The values of the rows with this id, `None` without an index.
fn found(table: &Table, id: i64) -> Option<Vec<Option<i64>>> {
    let key: ArrayRef = Arc::new(Int64Array::from(vec![id]));
    let rows = table.index_and_find_rows(&[(0, key)], &[1], &|| true).unwrap()?.rows;
    assert_eq!(rows.schema().field(0).name(), "value");
    Some(rows.column(0).as_primitive::<Int64Type>().iter().collect())
}

fn without_index(table: &Table, id: i64) -> bool {
    let key: ArrayRef = Arc::new(Int64Array::from(vec![id]));
    table.find_rows(&[(0, key)], &[1]).unwrap().is_none()
}

/// Of a table with the ids below 12,000.
fn check(table: &Table) {
    assert!(without_index(table, 7));
    assert_eq!(found(table, 7), None, "the first lookup makes no index");
    assert_eq!(found(table, 7), Some(vec![Some(70)]));
    assert!(!without_index(table, 7));
    for id in [0, 1, 5999, 6000, 6001, 9_876, 11_999] {
        assert_eq!(found(table, id), Some(vec![(id % 5 != 0).then_some(id * 10)]), "{id}");
    }
    for id in [-1, 12_000, i64::MAX] {
        assert_eq!(found(table, id), Some(Vec::new()), "{id}");
    }
}

#[test]
fn rows_in_memory_are_found_in_any_order() {
    let store = store();
    check(&table(&store, [rows(0..6000), rows((6000..12_000).rev())]));
}

#[test]
fn rows_in_files_are_found_until_they_are_deleted() {
    let (_folder, store) = fresh();
    insert(&store, &rows(0..6000));
    insert(&store, &rows((6000..12_000).rev()));
    let before = get(&store.snapshot(), "t");
    assert!(before.disk().is_some(), "the rows are in files");
    check(&before);
    change(&store, |table| without(&store, &table.unwrap(), 7).as_ref().clone());
    let after = get(&store.snapshot(), "t");
    assert!(after.has_deleted_rows() && !without_index(&after, 7), "the file stays, and so does its index");
    assert_eq!(found(&after, 7), Some(Vec::new()));
    assert_eq!(found(&after, 8), Some(vec![Some(80)]));
    assert_eq!(found(&before, 7), Some(vec![Some(70)]), "an earlier state stays as it was");
}

#[test]
fn few_rows_in_memory_need_no_second_lookup() {
    let store = store();
    let there = table(&store, (0..70).map(|id| rows([id])));
    assert_eq!(found(&there, 7), Some(vec![Some(70)]));
    let key: ArrayRef = Arc::new(Int64Array::from(vec![9]));
    let rows = there.find_addressed_rows(&[(0, key)], &[0]).unwrap().unwrap();
    let (left, gone) = there.delete(&store, &rows.addresses).unwrap();
    assert_eq!((gone, found(&left, 9), found(&left, 8)), (1, Some(Vec::new()), Some(vec![Some(80)])));
}

#[test]
fn a_table_without_rows_has_no_key() {
    assert_eq!(found(&Table::new(definition()), 7), Some(Vec::new()));
}

#[test]
fn keys_of_two_columns_and_rows_with_the_same_key_are_found() {
    let store = store();
    let there = table(&store, [pairs([(2, Some(5)), (1, Some(5)), (2, None), (2, Some(5))])]);
    let keys: [ArrayRef; 2] = [Arc::new(Int64Array::from(vec![2])), Arc::new(Int64Array::from(vec![5]))];
    let key: Vec<(usize, ArrayRef)> = keys.into_iter().enumerate().collect();
    let found = there.index_and_find_rows(&key, &[0, 1, 0], &|| true).unwrap().unwrap();
    assert_eq!((found.rows.num_rows(), found.rows.num_columns(), found.addresses), (2, 3, vec![0, 3]));
}

#[test]
fn values_of_another_type_are_not_looked_up() {
    let store = store();
    let there = table(&store, [rows(0..10)]);
    let key: ArrayRef = Arc::new(arrow::array::Int32Array::from(vec![7]));
    for _ in 0..3 {
        assert!(there.index_and_find_rows(&[(0, Arc::clone(&key))], &[1], &|| true).unwrap().is_none());
    }
}

#[test]
fn what_a_statement_did_not_wait_for_is_not_begun_again_by_the_next() {
    let (_folder, store) = fresh();
    insert(&store, &rows(0..6000));
    let table = get(&store.snapshot(), "t");
    let key = |at: usize| -> [(usize, ArrayRef); 1] { [(at, Arc::new(Int64Array::from(vec![7])))] };
    let look = |at: usize, goes_on: &dyn Fn() -> bool| {
        table.index_and_find_rows(&key(at), &[1 - at], goes_on).unwrap().map(|found| found.rows.num_rows())
    };
    assert_eq!(look(0, &|| true), None, "the first lookup makes no index");
    assert_eq!(look(0, &|| false), None);
    // A scan answers, and nobody waits for the index again.
    let asked = std::cell::Cell::new(0);
    let counts = || {
        asked.set(asked.get() + 1);
        true
    };
    assert_eq!(look(0, &counts), None);
    assert_eq!(asked.get(), 0);
    // Other columns are others.
    assert_eq!(look(1, &|| true), Some(0));
}
