//! Values of a log, and types of files, as those of the table.

use super::super::file_columns::{Lacking, is_read_as};
use super::*;

#[test]
fn values_are_read_as_the_protocol_writes_them() {
    let micros = |text: &str, zone: Option<Arc<str>>| match value_of(
        Some(text),
        &DataType::Timestamp(TimeUnit::Microsecond, zone),
    )
    .unwrap()
    {
        ScalarValue::TimestampMicrosecond(value, _) => value,
        other => unreachable!("{other} is no time"),
    };
    assert_eq!(micros("1970-01-01 00:00:01", Some("UTC".into())), Some(1_000_000));
    assert_eq!(micros("1970-01-01T00:00:01.5Z", Some("UTC".into())), Some(1_500_000));
    assert_eq!(micros("1970-01-01 00:00:01", None), Some(1_000_000));
    let text = |text: &str, data_type: DataType| value_of(Some(text), &data_type).unwrap();
    // Of every type, as the protocol has it.
    assert_eq!(text("", DataType::Utf8), ScalarValue::Utf8(None));
    let decimal = |number: &str| text(number, DataType::Decimal128(10, 2));
    assert_eq!(decimal("1.5"), ScalarValue::Decimal128(Some(150), 10, 2));
    assert_eq!(decimal("-3"), ScalarValue::Decimal128(Some(-300), 10, 2));
    assert_eq!(decimal("1E+2"), ScalarValue::Decimal128(Some(10_000), 10, 2));
    let words = DataType::Dictionary(Box::new(DataType::UInt16), Box::new(DataType::Utf8));
    for (word, meant) in [("", None), ("x", Some("x".to_owned()))] {
        let of_dictionary = ScalarValue::Utf8(meant);
        assert_eq!(text(word, words.clone()), of_dictionary.cast_to(&words).unwrap());
    }
    assert!(
        value_of(None, &words).unwrap().is_null() && value_of(None, &DataType::Binary).unwrap().is_null()
    );
    assert!(value_of(Some("x"), &DataType::Binary).is_err());
    assert_eq!(text("true", DataType::Boolean), ScalarValue::Boolean(Some(true)));
    assert_eq!(text("2024-02-29", DataType::Date32), ScalarValue::Date32(Some(19_782)));
    assert_eq!(text("1.50", DataType::Decimal128(5, 2)), ScalarValue::Decimal128(Some(150), 5, 2));
}

#[test]
fn types_of_files_are_read_as_wider_ones_of_tables() {
    use DataType as T;
    let of = |fields: &[(&str, T)]| {
        let fields = fields.iter().map(|(name, data_type)| Field::new(*name, data_type.clone(), true));
        T::Struct(fields.collect())
    };
    let map = |value: T| {
        let pair =
            T::Struct(vec![Field::new("key", T::Utf8, false), Field::new("value", value, true)].into());
        T::Map(Arc::new(Field::new("key_value", pair, false)), false)
    };
    let (short, long) = (of(&[("x", T::Int32)]), of(&[("x", T::Int64), ("y", T::Utf8)]));
    for (file, table, is_read) in [
        (T::Int32, T::Int64, true),
        (T::Int64, T::Int32, false),
        (T::Utf8, T::Int64, false),
        (T::Utf8View, T::Utf8, true),
        (T::Decimal128(10, 2), T::Decimal128(12, 2), true),
        (T::Decimal128(10, 2), T::Decimal128(12, 1), false),
        (
            T::Timestamp(TimeUnit::Nanosecond, None),
            T::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            true,
        ),
        (short.clone(), long.clone(), true),
        (long.clone(), short.clone(), false),
        (map(short.clone()), map(long.clone()), false),
        (map(short.clone()), map(of(&[("x", T::Int64)])), true),
        (T::new_list(short, true), T::new_list(long, true), true),
    ] {
        assert_eq!(is_read_as(&file, &table, Lacking::Null), is_read, "{file} {table}");
    }
}
