//! All kinds of values stay what they are, in memory of the store's own.

use super::*;
use arrow::array::{
    Array, ArrayData, ArrayRef, BinaryViewArray, BooleanArray, DictionaryArray, ListArray, NullArray,
    StringArray, StringViewArray, StructArray, UInt32Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::take_record_batch;
use arrow::datatypes::Int32Type;

const LONG: &str = "a text that is much too long to be kept within a view";

/// Ten rows with a column for each kind of array that Arrow copies in its own way.
fn all_kinds() -> RecordBatch {
    let texts: Vec<Option<String>> = (0..10).map(|at| (at != 3).then(|| format!("{LONG} {at}"))).collect();
    let view: ArrayRef = Arc::new(StringViewArray::from_iter(texts.iter()));
    let dictionary: ArrayRef =
        Arc::new(texts.iter().map(Option::as_deref).collect::<DictionaryArray<Int32Type>>());
    let element = Arc::new(Field::new("item", DataType::Utf8View, true));
    let list = ListArray::new(element, OffsetBuffer::from_lengths([1; 10]), Arc::clone(&view), None);
    let parts = vec![
        (Arc::new(Field::new("view", DataType::Utf8View, true)), Arc::clone(&view)),
        (Arc::new(Field::new("word", dictionary.data_type().clone(), true)), Arc::clone(&dictionary)),
    ];
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("text", Arc::new(StringArray::from_iter(texts.iter()))),
        ("bytes", Arc::new(BinaryViewArray::from_iter(texts.iter()))),
        ("flag", Arc::new(BooleanArray::from_iter((0..10).map(|at| (at != 4).then_some(at % 2 == 0))))),
        ("nothing", Arc::new(NullArray::new(10))),
        ("list", Arc::new(list)),
        ("parts", Arc::new(StructArray::from(parts))),
        ("view", view),
        ("dictionary", dictionary),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, values)| (name, values, true)))
        .unwrap()
}

fn table_of(store: &Arc<TableStore>, rows: &RecordBatch) -> Arc<Table> {
    let columns = rows
        .schema()
        .fields()
        .iter()
        .map(|field| column(field.name(), field.data_type().clone(), true))
        .collect();
    let table = Table::new(Definition { columns, ..Definition::default() });
    Arc::new(appended(store, &table, [rows.clone()]))
}

fn allocations(array: &ArrayData) -> Vec<usize> {
    let nulls = array.nulls().map(|nulls| nulls.buffer());
    let buffers = array.buffers().iter().chain(nulls).filter(|buffer| buffer.capacity() > 0);
    let mut found: Vec<usize> = buffers.map(|buffer| buffer.data_ptr().as_ptr() as usize).collect();
    array.child_data().iter().for_each(|child| found.extend(allocations(child)));
    found
}

#[tokio::test]
async fn values_stay_as_they_are() {
    let store = store();
    let given = all_kinds();
    let table = table_of(&store, &given);
    assert_eq!(query(table.provider(), "SELECT * FROM t").await.columns(), given.columns());
    let sliced = table_of(&store, &given.slice(2, 5));
    assert_eq!(query(sliced.provider(), "SELECT * FROM t").await.columns(), given.slice(2, 5).columns());
    let (left, _) = table.delete(&store, &[0, 4, 9]).unwrap();
    let kept = take_record_batch(&given, &UInt32Array::from(vec![1, 2, 3, 5, 6, 7, 8])).unwrap();
    assert_eq!(left.batches().map(Result::unwrap).next().unwrap().columns(), kept.columns());
}

#[test]
fn stored_rows_share_nothing_with_what_was_given() {
    let store = store();
    let given = all_kinds();
    let outside: Vec<usize> =
        given.columns().iter().flat_map(|column| allocations(&column.to_data())).collect();
    let table = table_of(&store, &given);
    for (column, field) in
        table.batches().map(Result::unwrap).next().unwrap().columns().iter().zip(given.schema().fields())
    {
        let own = allocations(&column.to_data());
        assert!(own.iter().all(|address| !outside.contains(address)), "column {}", field.name());
    }
}

#[tokio::test]
async fn nulls_without_a_bitmap_are_counted() {
    let store = store();
    let provider = table_of(&store, &all_kinds()).provider();
    assert_eq!(integers(Arc::clone(&provider), "SELECT count(nothing) FROM t").await, [0]);
    assert_eq!(integers(provider, "SELECT count(dictionary) FROM t").await, [9]);
}

#[tokio::test]
async fn a_table_may_have_no_columns() {
    let store = store();
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(7));
    let none = RecordBatch::try_new_with_options(Definition::default().schema(), vec![], &options).unwrap();
    let table = table_of(&store, &none);
    assert_eq!(integers(table.provider(), "SELECT count(*) FROM t").await, [7]);
    assert_eq!(addresses(&table, "true").await, (0..7).collect::<Vec<u64>>());
}

#[tokio::test]
async fn rows_of_other_columns_are_refused_by_the_scan() {
    let store = store();
    let table = Arc::new(appended(&store, &Table::new(definition()), [all_kinds()]));
    let context = session();
    context.register_table("t", table.provider()).unwrap();
    let answer = context.sql("SELECT id FROM t").await.unwrap().collect().await;
    assert!(answer.is_err());
}

#[test]
fn a_schema_has_no_metadata() {
    let field =
        Field::new("id", DataType::Int64, false).with_metadata([("k".to_owned(), "v".to_owned())].into());
    let column = Column { field: Arc::new(field), default: None, comment: None };
    let definition = Definition { columns: vec![column], ..Definition::default() };
    assert_eq!(*definition.schema().field(0), Field::new("id", DataType::Int64, false));
    assert_eq!((definition.position("id"), definition.position("ID")), (Some(0), None));
}
