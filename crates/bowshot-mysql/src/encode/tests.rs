//! Every Arrow type in text and binary.

use super::{ColumnType, Format, Rows};
use arrow::array::*;
use arrow::datatypes::{
    DataType, Field, Fields, Int32Type, IntervalDayTime, IntervalMonthDayNano, Schema, i256,
};
use arrow::record_batch::RecordBatch;
use bytes::BytesMut;
use std::sync::Arc;

const UTC: &str = "+00:00";

fn batch(array: ArrayRef, extension: Option<&str>) -> RecordBatch {
    let mut field = Field::new("c", array.data_type().clone(), true);
    if let Some(extension) = extension {
        field = field.with_metadata([("ARROW:extension:name".to_owned(), extension.to_owned())].into());
    }
    RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array]).unwrap()
}

fn written(batch: &RecordBatch, zone: &str, row: usize, format: Format) -> Result<Vec<u8>, String> {
    let mut out = BytesMut::new();
    let rows = Rows::new(batch, zone).map_err(|failure| failure.message)?;
    rows.put(row, format, &mut out).map_err(|failure| failure.message)?;
    Ok(out.to_vec())
}

/// The text of a value, `None` for null.
fn text(batch: &RecordBatch, row: usize) -> Option<String> {
    let row = written(batch, UTC, row, Format::Text).unwrap();
    match row[0] {
        0xfb => None,
        length => {
            assert_eq!(usize::from(length), row.len() - 1);
            Some(String::from_utf8(row[1..].to_vec()).unwrap())
        }
    }
}

/// The binary form of a value, `None` for null.
fn binary(batch: &RecordBatch, row: usize) -> Option<Vec<u8>> {
    let row = written(batch, UTC, row, Format::Binary).unwrap();
    assert_eq!(row[0], 0);
    match row[1] {
        0 => Some(row[2..].to_vec()),
        nulls => {
            assert_eq!((nulls, row.len()), (4, 2));
            None
        }
    }
}

fn check(array: ArrayRef, code: u8, texts: &[Option<&str>]) {
    check_as(array, None, code, texts);
}

fn check_as(array: ArrayRef, extension: Option<&str>, code: u8, texts: &[Option<&str>]) {
    let batch = batch(array, extension);
    let kind = batch.column(0).data_type().clone();
    assert_eq!(ColumnType::from_field(batch.schema().field(0)).code(), code, "{kind}");
    for (row, expected) in texts.iter().enumerate() {
        assert_eq!(text(&batch, row).as_deref(), *expected, "{kind} row {row}");
        assert_eq!(binary(&batch, row).is_some(), expected.is_some(), "{kind} row {row}");
    }
}

fn check_binary(array: ArrayRef, expected: &[u8]) {
    let kind = array.data_type().clone();
    assert_eq!(binary(&batch(array, None), 0).as_deref(), Some(expected), "{kind}");
}

#[test]
fn numbers() {
    check(
        Arc::new(BooleanArray::from(vec![Some(true), Some(false), None])),
        1,
        &[Some("1"), Some("0"), None],
    );
    check(Arc::new(Int8Array::from(vec![Some(-128), None])), 1, &[Some("-128"), None]);
    check(Arc::new(UInt8Array::from(vec![255])), 1, &[Some("255")]);
    check(Arc::new(Int16Array::from(vec![-1])), 2, &[Some("-1")]);
    check(Arc::new(UInt16Array::from(vec![65_535])), 2, &[Some("65535")]);
    check(Arc::new(Int32Array::from(vec![i32::MIN])), 3, &[Some("-2147483648")]);
    check(Arc::new(UInt32Array::from(vec![u32::MAX])), 3, &[Some("4294967295")]);
    check(Arc::new(Int64Array::from(vec![i64::MIN])), 8, &[Some("-9223372036854775808")]);
    check(Arc::new(UInt64Array::from(vec![u64::MAX])), 8, &[Some("18446744073709551615")]);
    check(Arc::new(Float32Array::from(vec![0.1, f32::INFINITY])), 4, &[Some("0.1"), Some("Infinity")]);
    check(
        Arc::new(Float64Array::from(vec![1e300, -0.0, 1e14, 0.00001, -1234.5, 1e15, f64::NAN])),
        5,
        &[
            Some("1e300"),
            Some("-0"),
            Some("100000000000000"),
            Some("0.00001"),
            Some("-1234.5"),
            Some("1e15"),
            Some("NaN"),
        ],
    );
    let decimal = Decimal128Array::from(vec![Some(-12_345), None]).with_precision_and_scale(10, 2).unwrap();
    check(Arc::new(decimal), 246, &[Some("-123.45"), None]);
    let decimal = Decimal32Array::from(vec![12_345]).with_precision_and_scale(5, 0).unwrap();
    check(Arc::new(decimal), 246, &[Some("12345")]);
    let decimal =
        Decimal256Array::from(vec![i256::from_i128(i128::MAX)]).with_precision_and_scale(76, 3).unwrap();
    check(Arc::new(decimal), 246, &[Some("170141183460469231731687303715884105.727")]);
    check(Arc::new(NullArray::new(1)), 6, &[None]);
}

#[test]
fn binary_numbers_are_little_endian() {
    check_binary(Arc::new(BooleanArray::from(vec![true])), &[1]);
    check_binary(Arc::new(Int8Array::from(vec![-1])), &[0xff]);
    check_binary(Arc::new(UInt16Array::from(vec![0x0102])), &[2, 1]);
    check_binary(Arc::new(Int32Array::from(vec![-2])), &[0xfe, 0xff, 0xff, 0xff]);
    check_binary(Arc::new(Int64Array::from(vec![1])), &[1, 0, 0, 0, 0, 0, 0, 0]);
    check_binary(Arc::new(Float64Array::from(vec![1.5])), &1.5_f64.to_le_bytes());
    let decimal = Decimal128Array::from(vec![5]).with_precision_and_scale(3, 1).unwrap();
    check_binary(Arc::new(decimal), b"\x030.5");
}

#[test]
fn texts_and_bytes() {
    check(Arc::new(StringArray::from(vec![Some(""), Some("ä"), None])), 253, &[Some(""), Some("ä"), None]);
    check(Arc::new(LargeStringArray::from(vec!["x"])), 253, &[Some("x")]);
    check(
        Arc::new(StringViewArray::from(vec![Some("a longer text than a view holds"), None])),
        253,
        &[Some("a longer text than a view holds"), None],
    );
    check_as(Arc::new(StringArray::from(vec!["{}"])), Some("arrow.json"), 245, &[Some("{}")]);
    check(Arc::new(BinaryArray::from_vec(vec![b"\0a"])), 252, &[Some("\0a")]);
    check(Arc::new(BinaryViewArray::from(vec![b"ab".as_ref()])), 252, &[Some("ab")]);
    let fixed = || FixedSizeBinaryArray::try_from_iter([[0x1f_u8; 16]].into_iter()).unwrap();
    check(
        Arc::new(fixed()),
        252,
        &[Some(
            "\u{1f}\u{1f}\u{1f}\u{1f}\u{1f}\u{1f}\u{1f}\u{1f}\u{1f}\u{1f}\u{1f}\u{1f}\u{1f}\u{1f}\u{1f}\u{1f}",
        )],
    );
    check_as(Arc::new(fixed()), Some("arrow.uuid"), 253, &[Some("1f1f1f1f-1f1f-1f1f-1f1f-1f1f1f1f1f1f")]);
    check_binary(Arc::new(StringArray::from(vec!["ab"])), b"\x02ab");
    let dictionary: DictionaryArray<Int32Type> = [Some("b"), None].into_iter().collect();
    check(Arc::new(dictionary), 253, &[Some("b"), None]);
}

#[test]
fn dates_and_times() {
    check(
        Arc::new(Date32Array::from(vec![Some(0), Some(-719_528), Some(2_932_896), None])),
        10,
        &[Some("1970-01-01"), Some("0000-01-01"), Some("9999-12-31"), None],
    );
    check(Arc::new(Date64Array::from(vec![86_400_000])), 10, &[Some("1970-01-02")]);
    check(Arc::new(Time32SecondArray::from(vec![3_661])), 11, &[Some("01:01:01")]);
    check(Arc::new(Time32MillisecondArray::from(vec![1_005])), 11, &[Some("00:00:01.005")]);
    check(Arc::new(Time64MicrosecondArray::from(vec![86_399_999_999])), 11, &[Some("23:59:59.999999")]);
    check(Arc::new(Time64NanosecondArray::from(vec![1_999])), 11, &[Some("00:00:00.000001")]);
    check(
        Arc::new(DurationSecondArray::from(vec![-90_061, 3_600_000])),
        11,
        &[Some("-25:01:01"), Some("1000:00:00")],
    );
    check(Arc::new(TimestampSecondArray::from(vec![-1])), 12, &[Some("1969-12-31 23:59:59")]);
    check(Arc::new(TimestampNanosecondArray::from(vec![-1])), 12, &[Some("1969-12-31 23:59:59.999999")]);
    check(
        Arc::new(TimestampMillisecondArray::from(vec![Some(1), None]).with_timezone("Europe/Berlin")),
        7,
        &[Some("1970-01-01 00:00:00.001"), None],
    );
    check_binary(Arc::new(Date32Array::from(vec![0])), &[4, 0xb2, 7, 1, 1]);
    check_binary(Arc::new(TimestampSecondArray::from(vec![0])), &[4, 0xb2, 7, 1, 1]);
    check_binary(Arc::new(TimestampSecondArray::from(vec![3_661])), &[7, 0xb2, 7, 1, 1, 1, 1, 1]);
    check_binary(
        Arc::new(TimestampMicrosecondArray::from(vec![2])),
        &[11, 0xb2, 7, 1, 1, 0, 0, 0, 2, 0, 0, 0],
    );
    check_binary(Arc::new(Time32SecondArray::from(vec![0])), &[0]);
    check_binary(Arc::new(DurationSecondArray::from(vec![-90_061])), &[8, 1, 1, 0, 0, 0, 1, 1, 1]);
    check_binary(Arc::new(Time64MicrosecondArray::from(vec![1])), &[12, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
}

#[test]
fn points_of_time_are_shown_in_the_time_zone_of_the_session() {
    let batch = batch(Arc::new(TimestampSecondArray::from(vec![0]).with_timezone("UTC")), None);
    for (zone, expected) in [
        ("+00:00", "1970-01-01 00:00:00"),
        ("UTC", "1970-01-01 00:00:00"),
        ("+02:30", "1970-01-01 02:30:00"),
        ("America/New_York", "1969-12-31 19:00:00"),
    ] {
        let row = written(&batch, zone, 0, Format::Text).unwrap();
        assert_eq!(&row[1..], expected.as_bytes(), "{zone}");
    }
    assert!(written(&batch, "Nowhere/At_All", 0, Format::Text).is_err());
}

#[test]
fn times_that_mysql_has_not_are_refused() {
    for array in [
        Arc::new(Date32Array::from(vec![-719_529])) as ArrayRef,
        Arc::new(Date32Array::from(vec![2_932_897])),
        Arc::new(Date32Array::from(vec![i32::MIN])),
        Arc::new(TimestampSecondArray::from(vec![i64::MAX])),
        Arc::new(TimestampSecondArray::from(vec![1 << 40])),
    ] {
        let batch = batch(array, None);
        for format in [Format::Text, Format::Binary] {
            let message = written(&batch, UTC, 0, format).unwrap_err();
            assert!(message.contains("out of the range"), "{message}");
        }
    }
}

#[test]
fn intervals_are_texts() {
    let months = IntervalMonthDayNanoArray::from(vec![IntervalMonthDayNano::new(14, -3, 4_005_000_000)]);
    check(Arc::new(months), 253, &[Some("1 year 2 mons -3 days +00:00:04.005000")]);
    let days = IntervalDayTimeArray::from(vec![IntervalDayTime::new(1, -1_000)]);
    check(Arc::new(days), 253, &[Some("1 day -00:00:01")]);
    check(Arc::new(IntervalYearMonthArray::from(vec![0])), 253, &[Some("00:00:00")]);
}

#[test]
fn what_mysql_has_no_type_for_is_json() {
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None]), None]);
    check(Arc::new(list), 245, &[Some("[1,null]"), None]);
    let members = StructArray::try_new(
        Fields::from(vec![
            Field::new("a", DataType::Float64, true),
            Field::new("b\"", DataType::Utf8, true),
            Field::new("c", DataType::Boolean, true),
            Field::new("d", DataType::Date32, true),
            Field::new("e", DataType::Binary, true),
        ]),
        vec![
            Arc::new(Float64Array::from(vec![f64::NAN, 0.5])),
            Arc::new(StringArray::from(vec![None, Some("x\n")])),
            Arc::new(BooleanArray::from(vec![false, true])),
            Arc::new(Date32Array::from(vec![0, 1])),
            Arc::new(BinaryArray::from_vec(vec![b"\x01\xff", b""])),
        ],
        None,
    )
    .unwrap();
    check(
        Arc::new(members),
        245,
        &[
            Some(r#"{"a":"NaN","b\"":null,"c":false,"d":"1970-01-01","e":"01ff"}"#),
            Some(r#"{"a":0.5,"b\"":"x\n","c":true,"d":"1970-01-02","e":""}"#),
        ],
    );
}

#[test]
fn slices_are_read_where_they_begin() {
    check(Arc::new(TimestampSecondArray::from(vec![0, 1]).slice(1, 1)), 12, &[Some("1970-01-01 00:00:01")]);
    check(Arc::new(Time32SecondArray::from(vec![0, 1]).slice(1, 1)), 11, &[Some("00:00:01")]);
}

#[test]
fn many_columns_have_many_nulls() {
    let columns: Vec<(String, ArrayRef)> = (0..20)
        .map(|index| {
            let array = Int8Array::from(vec![if index % 7 == 6 { None } else { Some(1) }]);
            (format!("c{index}"), Arc::new(array) as ArrayRef)
        })
        .collect();
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let row = written(&batch, UTC, 0, Format::Binary).unwrap();
    // Columns 6 and 13 are the bits 8 and 15.
    assert_eq!(row[..4], [0, 0, 0b1000_0001, 0]);
    assert_eq!(row.len(), 4 + 18);
}

#[test]
fn columns_tell_what_they_are() {
    let of = |data_type: DataType| ColumnType::from_field(&Field::new("c", data_type, false));
    let decimal = of(DataType::Decimal128(10, 2));
    assert_eq!((decimal.length(), decimal.decimals(), decimal.character_set()), (12, 2, 63));
    assert_eq!(of(DataType::Utf8).character_set(), 45);
    assert_eq!(of(DataType::UInt8).flags(), 1 | 32);
    assert_eq!(of(DataType::Boolean).flags(), 1);
    assert_eq!(of(DataType::Binary).flags(), 1 | 16 | 128);
}
