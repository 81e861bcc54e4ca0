//! Every Arrow type in text and binary.

use super::{Kind, PgType, Rows};
use crate::frontend_messages::Format;
use arrow::array::*;
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{
    DataType, Field, Fields, Int32Type, IntervalDayTime, IntervalMonthDayNano, Schema, i256,
};
use arrow::record_batch::RecordBatch;
use bytes::BytesMut;
use std::sync::Arc;

fn batch(array: ArrayRef, extension: Option<&str>) -> RecordBatch {
    let mut field = Field::new("c", array.data_type().clone(), true);
    if let Some(extension) = extension {
        field = field.with_metadata([("ARROW:extension:name".to_owned(), extension.to_owned())].into());
    }
    RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array]).unwrap()
}

/// The value of a row, or why there is none.
fn value(batch: &RecordBatch, row: usize, format: Format) -> Option<Vec<u8>> {
    let mut out = BytesMut::new();
    Rows::new(batch, None).unwrap().data_row(row, &[format], &mut out).unwrap();
    assert_eq!(i32::from_be_bytes(out[1..5].try_into().unwrap()), i32::try_from(out.len()).unwrap() - 1);
    let length = i32::from_be_bytes(out[7..11].try_into().unwrap());
    (length >= 0).then(|| out[11..].to_vec())
}

fn check(array: ArrayRef, oid: u32, texts: &[Option<&str>]) {
    let batch = batch(array, None);
    assert_eq!(PgType::from_field(batch.schema().field(0)).oid(), oid, "{}", batch.column(0).data_type());
    for (row, expected) in texts.iter().enumerate() {
        let text = value(&batch, row, Format::Text).map(|text| String::from_utf8(text).unwrap());
        assert_eq!(text.as_deref(), *expected, "{} row {row}", batch.column(0).data_type());
        assert_eq!(value(&batch, row, Format::Binary).is_some(), expected.is_some());
    }
}

#[test]
fn numbers() {
    check(
        Arc::new(BooleanArray::from(vec![Some(true), Some(false), None])),
        16,
        &[Some("t"), Some("f"), None],
    );
    check(Arc::new(Int8Array::from(vec![Some(-128), None])), 21, &[Some("-128"), None]);
    check(Arc::new(UInt8Array::from(vec![255])), 21, &[Some("255")]);
    check(Arc::new(Int16Array::from(vec![-1])), 21, &[Some("-1")]);
    check(Arc::new(UInt16Array::from(vec![65_535])), 23, &[Some("65535")]);
    check(Arc::new(Int32Array::from(vec![i32::MIN])), 23, &[Some("-2147483648")]);
    check(Arc::new(UInt32Array::from(vec![u32::MAX])), 20, &[Some("4294967295")]);
    check(Arc::new(Int64Array::from(vec![i64::MIN])), 20, &[Some("-9223372036854775808")]);
    check(Arc::new(UInt64Array::from(vec![u64::MAX])), 1700, &[Some("18446744073709551615")]);
    check(Arc::new(Float16Array::from(vec![half_of(1.5)])), 700, &[Some("1.5")]);
    check(Arc::new(Float32Array::from(vec![0.1, f32::INFINITY])), 700, &[Some("0.1"), Some("Infinity")]);
    check(Arc::new(Float64Array::from(vec![1e300])), 701, &[Some("1e+300")]);
    let decimal = Decimal128Array::from(vec![Some(-12_345), None]).with_precision_and_scale(10, 2).unwrap();
    check(Arc::new(decimal), 1700, &[Some("-123.45"), None]);
    let decimal = Decimal64Array::from(vec![5]).with_precision_and_scale(10, 3).unwrap();
    check(Arc::new(decimal), 1700, &[Some("0.005")]);
    let decimal = Decimal32Array::from(vec![5]).with_precision_and_scale(5, 0).unwrap();
    check(Arc::new(decimal), 1700, &[Some("5")]);
    let decimal = Decimal256Array::from(vec![i256::from_i128(-1)]).with_precision_and_scale(76, 76).unwrap();
    check(Arc::new(decimal), 1700, &[Some(&format!("-0.{}1", "0".repeat(75)))]);
}

fn half_of(value: f32) -> <arrow::datatypes::Float16Type as arrow::datatypes::ArrowPrimitiveType>::Native {
    let wide: ArrayRef = Arc::new(Float32Array::from(vec![value]));
    arrow::compute::cast(&wide, &DataType::Float16)
        .unwrap()
        .as_primitive::<arrow::datatypes::Float16Type>()
        .value(0)
}

#[test]
fn texts_and_bytes() {
    check(Arc::new(StringArray::from(vec![Some("ä"), Some(""), None])), 25, &[Some("ä"), Some(""), None]);
    check(Arc::new(LargeStringArray::from(vec!["a"])), 25, &[Some("a")]);
    check(Arc::new(StringViewArray::from(vec![Some("a"), None])), 25, &[Some("a"), None]);
    check(Arc::new(NullArray::new(1)), 25, &[None]);
    let dictionary: DictionaryArray<Int32Type> = vec![Some("x"), None, Some("x")].into_iter().collect();
    check(Arc::new(dictionary), 25, &[Some("x"), None, Some("x")]);
    check(Arc::new(BinaryArray::from(vec![Some(b"\x00\xff".as_ref()), None])), 17, &[Some("\\x00ff"), None]);
    check(Arc::new(LargeBinaryArray::from(vec![b"a".as_ref()])), 17, &[Some("\\x61")]);
    check(Arc::new(BinaryViewArray::from(vec![b"a".as_ref()])), 17, &[Some("\\x61")]);
    let fixed = FixedSizeBinaryArray::try_from_iter([[7_u8; 16]].into_iter()).unwrap();
    check(Arc::new(fixed.clone()), 17, &[Some("\\x07070707070707070707070707070707")]);
    let uuid = batch(Arc::new(fixed), Some("arrow.uuid"));
    assert_eq!(PgType::from_field(uuid.schema().field(0)).kind, Kind::Uuid);
    assert_eq!(value(&uuid, 0, Format::Text).unwrap(), b"07070707-0707-0707-0707-070707070707");
    let declared = |name: &str, value: &str| {
        let text = Field::new("c", DataType::Utf8, true);
        let text = text.with_metadata([("bowshot:type".to_owned(), name.to_owned())].into());
        let values: ArrayRef = Arc::new(StringArray::from(vec![value]));
        RecordBatch::try_new(Arc::new(Schema::new(vec![text])), vec![values]).unwrap()
    };
    let uuid = declared("UUID", "07070707-0707-0707-0707-070707070707");
    assert_eq!(PgType::from_field(uuid.schema().field(0)).kind, Kind::Uuid);
    assert_eq!(value(&uuid, 0, Format::Binary).unwrap(), [7; 16]);
    let jsonb = declared("JSONB", "{}");
    assert_eq!(PgType::from_field(jsonb.schema().field(0)).oid(), 3802);
    assert_eq!(value(&jsonb, 0, Format::Text).unwrap(), b"{}");
    assert_eq!(value(&jsonb, 0, Format::Binary).unwrap(), b"\x01{}");
    let json = batch(Arc::new(StringArray::from(vec!["{}"])), Some("arrow.json"));
    assert_eq!(PgType::from_field(json.schema().field(0)).oid(), 114);
}

#[test]
fn dates_and_times() {
    check(
        Arc::new(Date32Array::from(vec![0, 10_957, -719_163, 2_932_897])),
        1082,
        &[Some("1970-01-01"), Some("2000-01-01"), Some("0001-12-31 BC"), Some("10000-01-01")],
    );
    check(Arc::new(Date64Array::from(vec![86_400_000])), 1082, &[Some("1970-01-02")]);
    check(Arc::new(Time32SecondArray::from(vec![3_661])), 1083, &[Some("01:01:01")]);
    check(Arc::new(Time64NanosecondArray::from(vec![1_500_000_000])), 1083, &[Some("00:00:01.5")]);
    check(
        Arc::new(TimestampSecondArray::from(vec![Some(0), None])),
        1114,
        &[Some("1970-01-01 00:00:00"), None],
    );
    check(Arc::new(TimestampMillisecondArray::from(vec![-1])), 1114, &[Some("1969-12-31 23:59:59.999")]);
    check(
        Arc::new(TimestampNanosecondArray::from(vec![1_000]).with_timezone("Europe/Berlin")),
        1184,
        &[Some("1970-01-01 00:00:00.000001+00")],
    );
    check(Arc::new(DurationSecondArray::from(vec![-90])), 1186, &[Some("-00:01:30")]);
    check(
        Arc::new(IntervalYearMonthArray::from(vec![14, -1, 0])),
        1186,
        &[Some("1 year 2 mons"), Some("-1 mons"), Some("00:00:00")],
    );
    check(
        Arc::new(IntervalDayTimeArray::from(vec![IntervalDayTime::new(-1, 500)])),
        1186,
        &[Some("-1 days +00:00:00.5")],
    );
    check(
        Arc::new(IntervalMonthDayNanoArray::from(vec![IntervalMonthDayNano::new(-13, 2, -1_000_000_000)])),
        1186,
        &[Some("-1 years -1 mons +2 days -00:00:01")],
    );
    let early = batch(Arc::new(TimestampSecondArray::from(vec![i64::MAX])), None);
    let mut out = BytesMut::from(b"kept".as_ref());
    assert_eq!(Rows::new(&early, None).unwrap().data_row(0, &[], &mut out).unwrap_err().code, "22008");
    assert_eq!(out.as_ref(), b"kept");
}

#[test]
fn binary_forms() {
    let binary = |array: ArrayRef| value(&batch(array, None), 0, Format::Binary).unwrap();
    assert_eq!(binary(Arc::new(Date32Array::from(vec![10_958]))), [0, 0, 0, 1]);
    assert_eq!(binary(Arc::new(TimestampSecondArray::from(vec![946_684_801]))), 1_000_000_i64.to_be_bytes());
    assert_eq!(binary(Arc::new(Float32Array::from(vec![1.0]))), 1.0_f32.to_be_bytes());
    let interval = IntervalMonthDayNanoArray::from(vec![IntervalMonthDayNano::new(1, 2, 3_000)]);
    assert_eq!(binary(Arc::new(interval)), [0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1]);
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(7), None])]);
    assert_eq!(
        binary(Arc::new(list)),
        [
            0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 23, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 7, 255, 255,
            255, 255
        ]
    );
}

#[test]
fn lists_are_arrays_and_nested_ones_json() {
    let list =
        ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None]), Some(vec![]), None]);
    check(Arc::new(list.clone()), 1007, &[Some("{1,NULL}"), Some("{}"), None]);
    let mut texts = ListBuilder::new(StringBuilder::new());
    texts.append_value([Some("a b"), Some("null"), Some(""), Some("\"\\"), Some("ä"), None]);
    check(Arc::new(texts.finish()), 1009, &[Some(r#"{"a b","null","","\"\\",ä,NULL}"#)]);
    let fixed =
        FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), Some(2)]), None], 2);
    check(Arc::new(fixed), 1007, &[Some("{1,2}"), None]);
    let field = Arc::new(Field::new_list_field(list.data_type().clone(), true));
    let nested = ListArray::new(field, OffsetBuffer::from_lengths([3]), Arc::new(list), None);
    check(Arc::new(nested), 114, &[Some("[[1,null],[],null]")]);
}

#[test]
fn structs_maps_and_unions_are_json() {
    let fields = Fields::from(vec![
        Field::new("a", DataType::Float64, true),
        Field::new("b\"", DataType::Utf8, true),
        Field::new("c", DataType::Boolean, true),
        Field::new("d", DataType::Date32, true),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Float64Array::from(vec![Some(1.5), Some(f64::NAN), Some(f64::NEG_INFINITY)])),
        Arc::new(StringArray::from(vec![Some("x\n\u{1}"), None, None])),
        Arc::new(BooleanArray::from(vec![true, false, false])),
        Arc::new(Date32Array::from(vec![0, 0, 0])),
    ];
    let structs = StructArray::new(fields, columns, Some(vec![true, true, false].into()));
    check(
        Arc::new(structs),
        114,
        &[
            Some(r#"{"a":1.5,"b\"":"x\n\u0001","c":true,"d":"1970-01-01"}"#),
            Some(r#"{"a":"NaN","b\"":null,"c":false,"d":"1970-01-01"}"#),
            None,
        ],
    );
    let mut map = MapBuilder::new(None, Int32Builder::new(), StringBuilder::new());
    map.keys().append_value(1);
    map.values().append_value("x");
    map.append(true).unwrap();
    map.append(false).unwrap();
    check(Arc::new(map.finish()), 114, &[Some(r#"{"1":"x"}"#), None]);
    let mut union = UnionBuilder::new_dense();
    union.append::<Int32Type>("a", 1).unwrap();
    union.append::<arrow::datatypes::Float64Type>("b", 0.5).unwrap();
    check(Arc::new(union.build().unwrap()), 114, &[Some("1"), Some("0.5")]);
}

#[test]
fn slices_are_read_where_they_begin() {
    let list =
        ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1)]), Some(vec![Some(2)]), None]);
    check(Arc::new(list.slice(1, 2)), 1007, &[Some("{2}"), None]);
    check(Arc::new(TimestampSecondArray::from(vec![0, 1]).slice(1, 1)), 1114, &[Some("1970-01-01 00:00:01")]);
}

#[test]
fn vectors_of_the_catalog_have_blanks_between() {
    let list = ListArray::from_iter_primitive::<arrow::datatypes::Int16Type, _, _>([
        Some(vec![Some(1), Some(20)]),
        Some(vec![]),
    ]);
    let about = [("bowshot:int2vector".to_owned(), String::new())].into();
    let field = Field::new("a", list.data_type().clone(), true).with_metadata(about);
    assert_eq!(PgType::from_field(&field).oid(), 22);
    let schema = Arc::new(Schema::new(vec![field]));
    let batch = RecordBatch::try_new(schema, vec![Arc::new(list)]).unwrap();
    for (row, expected) in [(0, b"1 20".as_ref()), (1, b"")] {
        let mut out = BytesMut::new();
        Rows::new(&batch, None).unwrap().data_row(row, &[], &mut out).unwrap();
        assert_eq!(&out[11..], expected);
    }
}

#[test]
fn every_type_has_an_identifier_that_is_known() {
    for oid in
        [16, 17, 20, 21, 23, 25, 114, 700, 701, 1082, 1083, 1114, 1184, 1186, 1700, 2950, 3802, 1000, 1231]
    {
        assert_eq!(PgType::from_oid(oid).map(PgType::oid), Some(oid));
    }
    assert_eq!(PgType::from_oid(1043).map(PgType::oid), Some(25));
    assert_eq!(PgType::from_oid(0), None);
}
