//! One row with a column of each kind, and one of nulls.

use arrow::array::*;
use arrow::datatypes::{DataType, Field, Fields, Int32Type, IntervalMonthDayNano};
use arrow::record_batch::RecordBatch;
use std::sync::Arc;

/// The rows.
pub fn batch() -> RecordBatch {
    let fields =
        Fields::from(vec![Field::new("a", DataType::Int64, true), Field::new("b", DataType::Utf8, true)]);
    let columns: Vec<ArrayRef> =
        vec![Arc::new(Int64Array::from(vec![Some(1), None])), Arc::new(StringArray::from(vec!["x", "y"]))];
    let row = StructArray::new(fields, columns, Some(vec![true, false].into()));
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None]), None]);
    let interval = IntervalMonthDayNano::new(1, 2, 3_000_000_000);
    // The second value is null in the dictionary.
    let values = Arc::new(StringArray::from(vec![Some("w"), None]));
    let words = DictionaryArray::new(Int8Array::from(vec![0, 1]), values);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("bool", Arc::new(BooleanArray::from(vec![Some(true), None]))),
        ("int", Arc::new(Int64Array::from(vec![Some(i64::MAX), None]))),
        ("double", Arc::new(Float64Array::from(vec![Some(f64::NAN), Some(0.1)]))),
        (
            "decimal",
            Arc::new(Decimal128Array::from(vec![Some(12345), None]).with_precision_and_scale(10, 2).unwrap()),
        ),
        ("text", Arc::new(StringArray::from(vec![Some("a\"b,\nc"), Some("")]))),
        ("bytes", Arc::new(BinaryArray::from(vec![Some(&[0_u8, 255][..]), None]))),
        ("date", Arc::new(Date32Array::from(vec![Some(19_782), None]))),
        (
            "moment",
            Arc::new(TimestampMicrosecondArray::from(vec![Some(1_500_000), None]).with_timezone("+00:00")),
        ),
        ("interval", Arc::new(IntervalMonthDayNanoArray::from(vec![Some(interval), None]))),
        ("list", Arc::new(list)),
        ("row", Arc::new(row)),
        ("text", Arc::new(NullArray::new(2))),
        ("word", Arc::new(words)),
    ];
    let fields: Vec<Field> =
        columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true)).collect();
    let schema = Arc::new(arrow::datatypes::Schema::new(fields));
    RecordBatch::try_new(schema, columns.into_iter().map(|(_, column)| column).collect()).unwrap()
}
