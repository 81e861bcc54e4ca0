//! What changes make of a table.

use super::*;
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
fn deleting_a_row_that_is_not_there_fails() {
    let store = store();
    let table = table(&store, [rows(0..4)]);
    for address in [4, 1 << 32, u64::MAX, 1 << 63] {
        let error = bowshot_api::Error::from(table.delete(&store, &[0, address]).unwrap_err());
        assert_eq!(error.kind(), ErrorKind::Internal);
    }
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
