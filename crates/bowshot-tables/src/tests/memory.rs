//! What is counted, and that it is given back.

use super::*;
use bowshot_api::ErrorKind;

/// Rows with texts of this many bytes each.
fn texts(rows: usize, bytes: usize) -> RecordBatch {
    let texts = arrow::array::StringViewArray::from_iter_values((0..rows).map(|_| "x".repeat(bytes)));
    RecordBatch::try_from_iter([("text", Arc::new(texts) as _)]).unwrap()
}

fn text_table() -> Table {
    let columns = vec![column("text", DataType::Utf8View, true)];
    Table::new(Definition { columns, ..Definition::default() })
}

#[test]
fn everything_is_given_back() {
    let store = store();
    assert_eq!(store.memory_bytes(), 0);
    let table = table(&store, [rows(0..1000), rows(1000..2000)]);
    let held = store.memory_bytes();
    assert!((2000 * 16..3000 * 16).contains(&held), "{held}");
    assert_eq!(table.bytes(), held);
    let (left, _) = table.delete(&store, &[0]).unwrap();
    assert!(store.memory_bytes() > held + 999 * 16);
    drop(table);
    assert!(store.memory_bytes() < held + 8192);
    put(&store, "t", Arc::new(left));
    (0..70).for_each(|id| {
        let table = get(&store.snapshot(), "t");
        put(&store, "t", Arc::new(appended(&store, &table, [rows([id])])));
    });
    commit(&store, |base| base.without_entry(&name("t"))).unwrap();
    assert_eq!(store.memory_bytes(), 0);
}

#[tokio::test]
async fn rows_that_a_plan_reads_stay_counted() {
    let store = store();
    let provider = table(&store, [rows(0..1000)]).provider();
    let held = store.memory_bytes();
    let context = session();
    context.register_table("t", provider).unwrap();
    let plan = context.sql("SELECT id FROM t").await.unwrap().create_physical_plan().await.unwrap();
    context.deregister_table("t").unwrap();
    assert_eq!(store.memory_bytes(), held);
    drop(plan);
    assert_eq!(store.memory_bytes(), 0);
}

#[test]
fn shared_rows_are_counted_once() {
    let store = store();
    let before = table(&store, [rows(0..10_000)]);
    let held = store.memory_bytes();
    let mut wider = definition();
    wider.columns.push(column("more", DataType::Boolean, true));
    let schema = wider.schema();
    let more = |rows: &RecordBatch| {
        let mut columns = rows.columns().to_vec();
        columns.push(arrow::array::new_null_array(&DataType::Boolean, rows.num_rows()));
        Ok(RecordBatch::try_new(Arc::clone(&schema), columns)?)
    };
    let after = before.redefine(&store, wider, false, more).unwrap();
    let grown = store.memory_bytes();
    assert!(grown > held && grown < held + 10_000, "{held}, then {grown}");
    drop(before);
    assert_eq!(store.memory_bytes(), grown);
    drop(after);
    assert_eq!(store.memory_bytes(), 0);
}

#[test]
fn part_of_a_batch_does_not_keep_the_whole() {
    let store = store();
    let segment = store.segment(&texts(1000, 1000).slice(10, 1)).unwrap();
    assert!(store.memory_bytes() < 20_000, "{}", store.memory_bytes());
    drop(segment);
    let table = text_table().append(vec![store.segment(&texts(1000, 1000)).unwrap()]);
    let held = store.memory_bytes();
    let (left, _) = table.delete(&store, &(10..1000).collect::<Vec<u64>>()).unwrap();
    drop(table);
    assert!(store.memory_bytes() < held / 10, "{held}, then {}", store.memory_bytes());
    assert_eq!(left.rows(), 10);
}

#[test]
fn the_limit_is_kept_and_named() {
    let store = TableStore::in_memory("bowshot", "main", 64 << 10);
    let first = store.segment(&texts(10, 3000)).unwrap();
    let held = store.memory_bytes();
    let error = bowshot_api::Error::from(store.segment(&texts(20, 3000)).unwrap_err());
    assert_eq!(error.kind(), ErrorKind::LimitReached);
    assert!(error.message().contains("limit: 65536"), "{error}");
    assert!(error.hint().unwrap().contains("`storage.memory_bytes`"), "{error}");
    assert_eq!(store.memory_bytes(), held);
    drop(first);
    assert!(store.segment(&texts(20, 3000)).is_ok());
}

#[test]
fn a_commit_does_not_need_memory() {
    let store = TableStore::in_memory("bowshot", "main", 200 << 10);
    let segments: Vec<_> = (0..60).map(|_| store.segment(&texts(1, 3000)).unwrap()).collect();
    // Empty texts take next to nothing, but make the small segments so many that they would be united.
    let empty = (0..10).map(|_| store.segment(&texts(1, 0)).unwrap());
    let table = text_table().append(segments.into_iter().chain(empty).collect());
    let committed = get(&put(&store, "t", Arc::new(table)), "t");
    assert_eq!((committed.rows(), committed.segment_count()), (70, 70));
    let store = TableStore::in_memory("bowshot", "main", 800 << 10);
    let segments = (0..70).map(|_| store.segment(&texts(1, 3000)).unwrap()).collect();
    let committed = get(&put(&store, "t", Arc::new(text_table().append(segments))), "t");
    assert_eq!((committed.rows(), committed.segment_count()), (70, 1));
}
