//! Parameters of every type.

use super::{ParameterType, values};
use crate::payload::Payload;
use crate::status::Failure;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use arrow::util::display::array_value_to_string;
use bytes::BytesMut;
use std::collections::HashMap;

fn read(code: u8, unsigned: bool, planned: DataType, bytes: &[u8]) -> Result<RecordBatch, Failure> {
    let parameters = Schema::new(vec![Field::new("$1", planned, true)]);
    let flags = if unsigned { 0x80 } else { 0 };
    let body = Payload::new(BytesMut::from([&[0, 1, code, flags][..], bytes].concat().as_slice()));
    values(body, &parameters, &mut Vec::new(), &HashMap::new()).map(Option::unwrap)
}

fn check(code: u8, unsigned: bool, planned: DataType, bytes: &[u8], (kind, expected): (DataType, &str)) {
    let row = read(code, unsigned, planned, bytes).unwrap();
    let column = row.column(0);
    assert_eq!(column.data_type(), &kind, "{code}");
    assert_eq!(array_value_to_string(column, 0).unwrap(), expected, "{code}");
}

#[test]
fn values_of_every_type() {
    use DataType::*;
    use arrow::datatypes::TimeUnit::Microsecond;
    check(1, false, Utf8, &[0xff], (Int64, "-1"));
    check(1, true, Utf8, &[0xff], (Int64, "255"));
    check(2, false, Utf8, &[0, 0x80], (Int64, "-32768"));
    check(13, true, Utf8, &[0xe8, 7], (Int64, "2024"));
    check(3, true, Utf8, &[0xff; 4], (Int64, "4294967295"));
    check(9, false, Utf8, &[0xff; 4], (Int64, "-1"));
    check(8, false, Utf8, &[0xff; 8], (Int64, "-1"));
    check(8, true, Utf8, &[0xff; 8], (UInt64, "18446744073709551615"));
    check(8, true, Utf8, &[1, 0, 0, 0, 0, 0, 0, 0], (Int64, "1"));
    check(4, false, Utf8, &1.5_f32.to_le_bytes(), (Float32, "1.5"));
    check(5, false, Utf8, &0.1_f64.to_le_bytes(), (Float64, "0.1"));
    check(246, false, Utf8, b"\x05-1.25", (Decimal128(3, 2), "-1.25"));
    check(0, false, Utf8, b"\x03007", (Decimal128(3, 0), "7"));
    check(253, false, Utf8, b"\x03\xc3\xa4b", (Utf8, "äb"));
    check(253, false, Utf8, b"\x01\xff", (Binary, "ff"));
    check(252, false, Utf8, b"\x01a", (Binary, "61"));
    check(10, false, Utf8, &[4, 0xe8, 7, 2, 29], (Date32, "2024-02-29"));
    check(
        12,
        false,
        Utf8,
        &[7, 0xb2, 7, 1, 1, 1, 2, 3],
        (Timestamp(Microsecond, None), "1970-01-01T01:02:03"),
    );
    check(
        7,
        false,
        Utf8,
        &[11, 0xb1, 7, 12, 31, 23, 59, 59, 1, 0, 0, 0],
        (Timestamp(Microsecond, None), "1969-12-31T23:59:59.000001"),
    );
    check(11, false, Utf8, &[8, 0, 0, 0, 0, 0, 1, 2, 3], (Time64(Microsecond), "01:02:03"));
    check(11, false, Utf8, &[0], (Time64(Microsecond), "00:00:00"));
    let span = read(11, false, Utf8, &[12, 1, 1, 0, 0, 0, 0, 0, 1, 5, 0, 0, 0]).unwrap();
    assert_eq!(span.column(0).data_type(), &Duration(Microsecond));
}

#[test]
fn texts_become_what_the_plan_wants_if_they_can() {
    use DataType::*;
    check(254, false, Int64, b"\x0212", (Int64, "12"));
    check(254, false, Int64, b"\x03abc", (Utf8, "abc"));
    check(254, false, Date32, b"\x0a2024-01-02", (Date32, "2024-01-02"));
    check(254, false, Binary, b"\x01a", (Binary, "61"));
    check(254, false, Utf8, b"\x0212", (Utf8, "12"));
}

#[test]
fn nulls_have_the_type_that_is_known() {
    let parameters =
        Schema::new(vec![Field::new("$1", DataType::Date32, true), Field::new("$2", DataType::Utf8, true)]);
    let body = Payload::new(BytesMut::from([0b11, 1, 6, 0, 8, 0].as_slice()));
    let row = values(body, &parameters, &mut Vec::new(), &HashMap::new()).unwrap().unwrap();
    assert_eq!((row.column(0).null_count(), row.column(0).data_type()), (1, &DataType::Date32));
    assert_eq!((row.column(1).null_count(), row.column(1).data_type()), (1, &DataType::Int64));
}

#[test]
fn types_are_remembered() {
    let parameters = Schema::new(vec![Field::new("$1", DataType::Utf8, true)]);
    let mut types = vec![ParameterType { code: 1, is_unsigned: false }];
    let row = |types: &mut Vec<ParameterType>, bytes: &[u8]| {
        values(Payload::new(BytesMut::from(bytes)), &parameters, types, &HashMap::new())
    };
    let found = row(&mut types, &[0, 0, 7]).unwrap().unwrap();
    assert_eq!(array_value_to_string(found.column(0), 0).unwrap(), "7");
    assert!(row(&mut Vec::new(), &[0, 0, 7]).is_err());
    assert!(
        values(Payload::new(BytesMut::new()), &Schema::empty(), &mut Vec::new(), &HashMap::new())
            .unwrap()
            .is_none()
    );
}

#[test]
fn values_that_cannot_be_are_refused() {
    for (code, bytes) in [
        (8, &[1, 2, 3][..]),
        (253, b"\x05abc"),
        (246, b"\x011"[..1].as_ref()),
        (246, b"\x021e"),
        (246, b"\x01-"),
        (10, &[0]),
        (10, &[4, 0xe8, 7, 2, 30]),
        (10, &[4, 0xe7, 7, 2, 29]),
        (10, &[4, 0x10, 0x27, 1, 1]),
        (12, &[7, 0xe8, 7, 1, 1, 24, 0, 0]),
        (12, &[11, 0xe8, 7, 1, 1, 0, 0, 0, 0x40, 0x42, 0x0f, 0]),
        (12, &[5, 0xe8, 7, 1, 1, 0]),
        (11, &[8, 0, 0, 0, 0, 0, 0, 60, 0]),
        (11, &[9]),
        (255, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff"),
        (200, b"\x01a"),
    ] {
        assert!(read(code, false, DataType::Utf8, bytes).is_err(), "{code} {bytes:?}");
    }
}
