//! Values of every type in text and binary, and bytes that are none.

use super::{Column, row};
use crate::encode::{PgType, Rows};
use crate::frontend_messages::Format::{Binary, Text};
use arrow::array::Array;
use bytes::BytesMut;

/// What a text becomes when it is read, in the text that it then has; or the code of the error.
fn read(oid: u32, text: &str) -> String {
    match row([(oid, Text, Some(text.as_bytes()))].into_iter(), None) {
        Ok(rows) => written(&rows, crate::frontend_messages::Format::Text)
            .map_or("NULL".into(), |text| String::from_utf8(text).unwrap()),
        Err(failure) => failure.code.to_owned(),
    }
}

fn written(
    rows: &arrow::record_batch::RecordBatch,
    format: crate::frontend_messages::Format,
) -> Option<Vec<u8>> {
    let mut out = BytesMut::new();
    Rows::new(rows, None).unwrap().data_row(0, &[format], &mut out).unwrap();
    (out[7] != 255).then(|| out[11..].to_vec())
}

#[test]
fn instants_without_a_time_zone_are_in_that_of_the_session() {
    for (oid, text, expected) in [
        (1184, "2024-01-01 10:00:00", "2024-01-01 09:00:00+00"),
        (1184, "2024-07-01 10:00", "2024-07-01 08:00:00+00"),
        (1184, "2024-03-31 02:30:00", "2024-03-31 01:30:00+00"),
        (1184, "2024-01-01", "2023-12-31 23:00:00+00"),
        (1184, "2024-01-01 10:00+05", "2024-01-01 05:00:00+00"),
        (1114, "2024-01-01 10:00", "2024-01-01 10:00:00"),
        (1185, r#"{"2024-01-01 10:00:00"}"#, r#"{"2024-01-01 09:00:00+00"}"#),
    ] {
        let berlin = "Europe/Berlin".parse().ok();
        let rows = row([(oid, Text, Some(text.as_bytes()))].into_iter(), berlin).unwrap();
        assert_eq!(String::from_utf8(written(&rows, Text).unwrap()).unwrap(), expected, "{text}");
    }
}

#[test]
fn texts_are_read_as_postgresql_reads_them() {
    for (oid, text, expected) in [
        (16, "t", "t"),
        (16, " FALSE ", "f"),
        (16, "of", "f"),
        (16, "o", "22P02"),
        (21, "-32768", "-32768"),
        (21, "32768", "22003"),
        (23, " 7 ", "7"),
        (20, "1.5", "22P02"),
        (20, "", "22P02"),
        (26, "4294967295", "4294967295"),
        (700, "1.5", "1.5"),
        (701, "-Infinity", "-Infinity"),
        (701, "nan", "NaN"),
        (701, "x", "22P02"),
        (1700, "1.50", "1.50"),
        (1700, "-.5", "-0.5"),
        (1700, "1E+3", "1000"),
        (1700, "1.5e-3", "0.0015"),
        (1700, "NaN", "22003"),
        (1700, "1e9999999", "22P02"),
        (1700, "1e5000", "22003"),
        (1700, "1e32767", "22003"),
        (1700, "1e-8000", "22003"),
        (1700, "0e32767", "0"),
        (1700, "25e-1", "2.5"),
        (1700, "1.25e1", "12.5"),
        (1700, ".", "22P02"),
        (1700, "1.2.3", "22P02"),
        (1231, "{1e32767,1e32767}", "22003"),
        (1700, "99999999999999999999999999999999999999999.5", "99999999999999999999999999999999999999999.5"),
        (1700, "--1", "22P02"),
        (25, " a ", " a "),
        (1043, "a", "a"),
        (17, r"\xDEADbeef", r"\xdeadbeef"),
        (17, r"\xabc", "22P02"),
        (17, r"a\\b\001", r"\x615c6201"),
        (17, r"a\9", "22P02"),
        (1082, "2024-02-29", "2024-02-29"),
        (1082, "2023-02-29", "22007"),
        (1083, "12:34:56.5", "12:34:56.5"),
        (1114, "2024-01-02 03:04:05.000006", "2024-01-02 03:04:05.000006"),
        (1114, "2024-01-02 03:04", "2024-01-02 03:04:00"),
        (1114, "2024-01-02 03:04:05+02", "2024-01-02 03:04:05"),
        (1114, "2024-01-02 03:04 x", "22007"),
        (1114, "infinity", "22008"),
        (1184, "-Infinity", "22008"),
        (1082, "infinity", "22008"),
        (1082, "0044-03-15 BC", "22008"),
        (1083, "24:00", "22008"),
        (1184, "2024-01-02 03:04:05+02", "2024-01-02 01:04:05+00"),
        (1184, "2024-01-02 03:04 +02", "2024-01-02 01:04:00+00"),
        (1184, "2024-01-02", "2024-01-02 00:00:00+00"),
        (1186, "1 year 2 months 3 days 04:05:06", "1 year 2 mons 3 days 04:05:06"),
        (2950, "{07070707-0707-0707-0707-070707070707}", "07070707-0707-0707-0707-070707070707"),
        (2950, "07", "22P02"),
        (3802, r#"{"a": 1}"#, r#"{"a": 1}"#),
        (1007, "{1, 2,NULL}", "{1,2,NULL}"),
        (1007, "{}", "{}"),
        (1007, "[2:3]={1,2}", "{1,2}"),
        (1007, "{1,,2}", "22P02"),
        (1007, "{{1}}", "22P02"),
        (1007, "{1", "22P02"),
        (1009, r#"{"a,b", c d ,"x\"y",\,,""}"#, r#"{"a,b","c d","x\"y",",",""}"#),
        (1009, r#"{"a}"#, "22P02"),
        (424_242, "anything", "anything"),
    ] {
        assert_eq!(read(oid, text), expected, "{oid} {text}");
    }
}

#[test]
fn binary_values_come_back_as_they_were() {
    let array = [
        0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 23, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 7, 255, 255, 255,
        255,
    ];
    for (oid, bytes) in [
        (16, b"\x01".as_ref()),
        (21, b"\xff\xfe"),
        (23, b"\x00\x00\x00\x07"),
        (20, b"\x80\x00\x00\x00\x00\x00\x00\x00"),
        (700, b"\x3f\x80\x00\x00"),
        (701, b"\x3f\xf0\x00\x00\x00\x00\x00\x00"),
        (1700, b"\x00\x02\x00\x00\x40\x00\x00\x02\x00\x01\x13\x88"),
        (25, "ä".as_bytes()),
        (17, b"\x00\xff"),
        (1082, b"\x00\x00\x00\x01"),
        (1083, b"\x00\x00\x00\x00\x00\x00\x00\x01"),
        (1114, b"\xff\xff\xff\xff\xff\xff\xff\xff"),
        (1184, b"\x00\x00\x00\x00\x00\x00\x00\x01"),
        (1186, b"\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03"),
        (1007, &array),
        (1007, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 23]),
    ] {
        let rows = row([(oid, Binary, Some(bytes))].into_iter(), None).unwrap();
        assert_eq!(written(&rows, Binary).as_deref(), Some(bytes), "{oid}");
    }
    let uuid = row([(2950, Binary, Some([7_u8; 16].as_ref()))].into_iter(), None).unwrap();
    assert_eq!(written(&uuid, Text).as_deref(), Some(b"07070707-0707-0707-0707-070707070707".as_ref()));
    let jsonb = row([(3802, Binary, Some(b"\x01{}".as_ref()))].into_iter(), None).unwrap();
    assert_eq!(written(&jsonb, Text).as_deref(), Some(b"{}".as_ref()));
}

#[test]
fn malformed_binary_values_are_refused() {
    let long_array = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23, 0x7f, 255, 255, 255, 0, 0, 0, 1];
    let wrong_element = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 25, 0, 0, 0, 0, 0, 0, 0, 1];
    let long_element = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23, 0, 0, 0, 1, 0, 0, 0, 1, 0x7f, 255, 255, 255];
    let two_dimensions = [0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 23];
    for (oid, bytes, code) in [
        (16, b"".as_ref(), "22P03"),
        (23, b"\x00", "22P03"),
        (20, b"\x00\x00\x00\x00\x00\x00\x00\x00\x00", "22P03"),
        (1700, b"\x00\x01", "22P03"),
        (25, b"\xff", "22021"),
        (3802, b"{}", "22P03"),
        (3802, b"", "22P03"),
        (1082, b"\x7f\xff\xff\xfe", "22008"),
        (1114, b"\x7f\xff\xff\xff\xff\xff\xff\xfe", "22008"),
        (1186, b"\x7f\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00", "22008"),
        (2950, b"\x00", "22P03"),
        (1007, b"\x00\x00\x00\x01", "22P03"),
        (1007, &long_array, "22P03"),
        (1007, &wrong_element, "42804"),
        (1007, &long_element, "22P03"),
        (1007, &two_dimensions, "0A000"),
        (424_242, b"\x00", "42704"),
        (9_999, b"a", "42704"),
    ] {
        let failure = row([(oid, Binary, Some(bytes))].into_iter(), None).unwrap_err();
        assert_eq!(failure.code, code, "{oid} {bytes:?}");
    }
}

#[test]
fn columns_become_what_is_wanted() {
    let kind = |oid| PgType::from_oid(oid).unwrap();
    let mut column = Column::new(kind(1700), Some(arrow::datatypes::DataType::UInt64));
    for text in [Some("1"), None, Some("18446744073709551615")] {
        column.push(text.map(str::as_bytes), Text).unwrap();
    }
    let array = column.finish().unwrap();
    assert_eq!((array.len(), array.null_count()), (3, 1));
    let mut column = Column::new(kind(1700), Some(arrow::datatypes::DataType::UInt64));
    column.push(Some(b"-1"), Text).unwrap();
    assert_eq!(column.finish().unwrap_err().code, "22P02");
}
