//! What changes make of a table.

use super::*;
use arrow::compute::cast;
use bowshot_api::ErrorKind;

#[test]
fn appending_shares_what_is_there() {
    let store = store();
    let before = table(&store, [rows(0..3)]);
    let after = appended(&store, &before, [rows(3..5), rows(0..0)]);
    assert_eq!((before.rows(), ids(&before)), (3, vec![0, 1, 2]));
    assert_eq!((after.rows(), after.segment_count(), ids(&after)), (5, 2, vec![0, 1, 2, 3, 4]));
    assert_eq!(before.id(), after.id());
    assert!(Arc::ptr_eq(&before.shared_segments()[0], &after.shared_segments()[0]));
    assert_eq!(after.bytes(), after.shared_segments().iter().map(|segment| segment.bytes()).sum::<u64>());
}

#[test]
fn deleting_rewrites_only_what_loses_rows() {
    let store = store();
    let before = table(&store, [rows(0..4), rows(4..8), rows(8..9)]);
    let address = |id| address_of(&before, id).unwrap();
    let (after, gone) = before.delete(&store, &[address(8), address(2), address(0), address(2)]).unwrap();
    assert_eq!((gone, ids(&after), after.rows()), (3, vec![1, 3, 4, 5, 6, 7], 6));
    assert_eq!(after.segment_count(), 2);
    assert!(Arc::ptr_eq(&before.shared_segments()[1], &after.shared_segments()[1]));
    assert_eq!(ids(&before).len(), 9);
}

#[test]
fn deleting_nothing_changes_nothing() {
    let store = store();
    let before = table(&store, [rows(0..4)]);
    let (after, gone) = before.delete(&store, &[]).unwrap();
    assert_eq!(gone, 0);
    assert!(before.same(&after));
}

#[test]
fn deleting_a_row_that_is_not_there_fails() {
    let store = store();
    let table = table(&store, [rows(0..4)]);
    for address in [4, 1 << 32, u64::MAX, 1 << 63] {
        let error = bowshot_api::Error::from(table.delete(&store, &[0, address]).unwrap_err());
        assert_eq!(error.kind(), ErrorKind::Internal);
    }
}

#[test]
fn truncating_leaves_the_table() {
    let store = store();
    let before = table(&store, [rows(0..4)]);
    let after = before.truncate();
    assert_eq!((after.rows(), after.bytes(), after.segment_count()), (0, 0, 0));
    assert_eq!((after.id(), after.definition()), (before.id(), before.definition()));
}

#[tokio::test]
async fn redefining_rewrites_the_rows() {
    let store = store();
    let before = table(&store, [rows(0..4), rows(4..8)]);
    let mut wider = definition();
    wider.columns[1] = column("price", DataType::Float64, true);
    let schema = wider.schema();
    let rewrite = |rows: &RecordBatch| {
        let price = cast(rows.column(1), &DataType::Float64)?;
        Ok(RecordBatch::try_new(Arc::clone(&schema), vec![Arc::clone(rows.column(0)), price])?)
    };
    let after = Arc::new(before.redefine(&store, wider, false, rewrite).unwrap());
    assert_eq!(after.id(), before.id());
    let sql = "SELECT arrow_cast(sum(price), 'Int64') FROM t";
    assert_eq!(integers(after.provider(), sql).await, [230]);
    assert_eq!(integers(before.provider(), "SELECT sum(value) FROM t").await, [230]);
}

#[test]
fn redefining_without_touching_rows_shares_them() {
    let store = store();
    let before = table(&store, [rows(0..4)]);
    let commented = Definition { comment: Some("prices".to_owned()), ..definition() };
    let after = before.redefine(&store, commented, false, |rows| Ok(rows.clone())).unwrap();
    assert!(Arc::ptr_eq(&before.shared_segments()[0], &after.shared_segments()[0]));
    assert!(!before.same(&after));
}

#[test]
fn redefining_checks_the_rows() {
    let store = store();
    let before = table(&store, [rows(0..6)]);
    let mut strict = definition();
    strict.columns[1] = column("value", DataType::Int64, false);
    let kind = |answer: Result<Table, Error>| bowshot_api::Error::from(answer.unwrap_err()).kind();
    assert_eq!(kind(before.redefine(&store, strict, false, |rows| Ok(rows.clone()))), ErrorKind::Internal);
    assert_eq!(
        kind(before.redefine(&store, definition(), false, |rows| Ok(rows.slice(0, 1)))),
        ErrorKind::Internal
    );
    let refuse = |_: &RecordBatch| Err(bowshot_api::Error::invalid("value 1 is too large").into());
    assert_eq!(kind(before.redefine(&store, definition(), false, refuse)), ErrorKind::Invalid);
}
