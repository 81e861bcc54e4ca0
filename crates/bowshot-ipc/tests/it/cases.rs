//! One case for each Arrow type and for the nestings that have gone wrong somewhere.

use crate::make::{Numbers, array};
use arrow::datatypes::*;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use std::collections::HashMap;
use std::sync::Arc;

/// Name and type of every case.
pub(crate) fn types() -> Vec<(String, DataType)> {
    let mut types = flat();
    types.extend(nested().into_iter().map(|(name, data_type)| (name.to_owned(), data_type)));
    types
}

fn flat() -> Vec<(String, DataType)> {
    use DataType::*;
    let mut types = vec![Null, Boolean, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64];
    types.extend([Float16, Float32, Float64, Utf8, LargeUtf8, Utf8View, Binary, LargeBinary, BinaryView]);
    types.extend([FixedSizeBinary(0), FixedSizeBinary(5), FixedSizeBinary(16), Date32, Date64]);
    types.extend([Decimal32(9, 2), Decimal64(18, -3), Decimal128(38, 10), Decimal256(76, 20)]);
    types.extend([Time32(TimeUnit::Second), Time32(TimeUnit::Millisecond)]);
    types.extend([Time64(TimeUnit::Microsecond), Time64(TimeUnit::Nanosecond)]);
    for unit in [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond] {
        for zone in [None, Some("UTC"), Some("+02:00"), Some("Europe/Berlin")] {
            types.push(Timestamp(unit, zone.map(Into::into)));
        }
        types.push(Duration(unit));
    }
    types.extend([IntervalUnit::YearMonth, IntervalUnit::DayTime, IntervalUnit::MonthDayNano].map(Interval));
    for key in [Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64] {
        types.push(Dictionary(Box::new(key), Box::new(Utf8)));
    }
    types.into_iter().map(|data_type| (data_type.to_string(), data_type)).collect()
}

fn item(data_type: DataType) -> FieldRef {
    Arc::new(Field::new("item", data_type, true))
}

fn structure(types: &[DataType]) -> DataType {
    DataType::Struct(types.iter().zip('a'..).map(|(t, name)| Field::new(name, t.clone(), true)).collect())
}

fn union(types: &[DataType], mode: UnionMode) -> DataType {
    // Ids with a gap and out of order, as other writers make them.
    let fields = types.iter().zip('a'..).map(|(t, name)| Field::new(name, t.clone(), true));
    DataType::Union(UnionFields::try_new([5, 0, 7].into_iter().take(types.len()), fields).unwrap(), mode)
}

fn map(value: DataType, sorted: bool) -> DataType {
    let fields = vec![Field::new("key", DataType::Utf8, false), Field::new("value", value, true)];
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(fields.into()), false)), sorted)
}

fn runs(ends: DataType, values: DataType) -> DataType {
    let ends = Arc::new(Field::new("run_ends", ends, false));
    DataType::RunEndEncoded(ends, Arc::new(Field::new("values", values, true)))
}

fn dictionary(key: DataType, value: DataType) -> DataType {
    DataType::Dictionary(Box::new(key), Box::new(value))
}

fn nested() -> Vec<(&'static str, DataType)> {
    use DataType::*;
    let list = |t: DataType| List(item(t));
    let view = |t: DataType| ListView(item(t));
    let dense = || union(&[Int32, Utf8, Boolean], UnionMode::Dense);
    let sparse = || union(&[Int32, Utf8, Boolean], UnionMode::Sparse);
    vec![
        ("list of int", list(Int32)),
        ("list of required int", List(Arc::new(Field::new("element", Int32, false)))),
        ("list of text", list(Utf8)),
        ("list of bool", list(Boolean)),
        ("list of null", list(Null)),
        ("list of view text", list(Utf8View)),
        ("large list", LargeList(item(Int64))),
        ("large list of text", LargeList(item(LargeUtf8))),
        ("list of list", list(list(Utf8))),
        ("fixed list", FixedSizeList(item(Int16), 3)),
        ("fixed list of text", FixedSizeList(item(Utf8), 2)),
        ("fixed list of none", FixedSizeList(item(Int32), 0)),
        ("fixed list of bool", FixedSizeList(item(Boolean), 5)),
        ("list view", view(Int32)),
        ("large list view", LargeListView(item(Utf8))),
        ("list view of list view", view(view(Utf8))),
        ("struct", structure(&[Int32, Utf8, Boolean])),
        ("struct of none", Struct(Fields::empty())),
        ("struct of struct", structure(&[structure(&[Int8, Utf8View]), list(Float64)])),
        ("map", map(Int32, false)),
        ("sorted map", map(Utf8, true)),
        ("map of lists", map(list(structure(&[Int32, Utf8])), false)),
        ("dense union", dense()),
        ("sparse union", sparse()),
        ("union of lists", union(&[list(Int32), structure(&[Utf8]), Null], UnionMode::Dense)),
        ("sparse union of views", union(&[Utf8View, view(Int8)], UnionMode::Sparse)),
        ("list of dense union", list(dense())),
        ("list of sparse union", list(sparse())),
        ("fixed list of dense union", FixedSizeList(item(dense()), 2)),
        ("map of dense union", map(dense(), false)),
        ("struct of list of sparse union", structure(&[list(structure(&[sparse()])), Utf8])),
        ("list view of dense union", view(dense())),
        ("runs of int", runs(Int32, Int64)),
        ("short runs of text", runs(Int16, Utf8)),
        ("long runs of view text", runs(Int64, Utf8View)),
        ("runs of structs", runs(Int32, structure(&[Int32, Utf8]))),
        ("runs of dense union", runs(Int32, dense())),
        ("list of runs", list(runs(Int32, Utf8))),
        ("dictionary of ints", dictionary(Int32, Int64)),
        ("dictionary of view text", dictionary(UInt8, Utf8View)),
        ("dictionary of structs", dictionary(Int16, structure(&[Int32, Utf8]))),
        ("list of dictionary", list(dictionary(Int8, Utf8))),
        ("list view of dictionary", view(dictionary(Int32, Utf8))),
        ("struct of dictionaries", structure(&[dictionary(Int32, Utf8), dictionary(Int8, Float64)])),
        ("runs of dictionary", runs(Int32, dictionary(Int32, Utf8))),
        ("union of dictionaries", union(&[dictionary(Int32, Utf8), Int32], UnionMode::Dense)),
        ("map of dictionary", map(dictionary(Int32, Utf8), false)),
        ("dictionary of lists of dictionary", dictionary(Int32, list(dictionary(Int8, Utf8)))),
    ]
}

/// The shapes in which each type is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) rows: usize,
    pub(crate) nulls: bool,
    /// Rows before and after that are sliced away.
    pub(crate) margin: usize,
}

pub(crate) const SHAPES: [Shape; 7] = [
    Shape { rows: 40, nulls: false, margin: 0 },
    Shape { rows: 71, nulls: true, margin: 0 },
    Shape { rows: 0, nulls: true, margin: 0 },
    Shape { rows: 0, nulls: true, margin: 3 },
    Shape { rows: 1, nulls: true, margin: 1 },
    Shape { rows: 133, nulls: true, margin: 5 },
    Shape { rows: 3000, nulls: true, margin: 64 },
];

/// A batch of one column of the type, with metadata on field and schema.
pub(crate) fn batch(data_type: &DataType, shape: Shape) -> RecordBatch {
    let mut numbers = Numbers::new(7 + shape.rows as u64);
    let column = array(data_type, shape.rows + 2 * shape.margin, shape.nulls, &mut numbers);
    let metadata = HashMap::from([("unit".to_owned(), "bow → shot".to_owned())]);
    let field = Field::new("column é", data_type.clone(), true).with_metadata(metadata);
    let schema =
        Schema::new_with_metadata(vec![field], HashMap::from([("made by".to_owned(), "test".to_owned())]));
    let whole = RecordBatch::try_new(Arc::new(schema), vec![column]).unwrap();
    whole.slice(shape.margin, shape.rows)
}

/// Rows without columns.
pub(crate) fn columnless(rows: usize) -> RecordBatch {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options).unwrap()
}
