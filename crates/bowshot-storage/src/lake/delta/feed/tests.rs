//! What becomes of the words of a log: which rows, which values, which columns.

use super::super::file_columns::{Lacking, NOWHERE, is_read_as};
use super::*;
use crate::lake::columns::numbered;
use parquet::arrow::arrow_reader::RowSelector;

fn column(name: &str, data_type: DataType, is_partition: bool) -> ChangeColumn {
    let in_files = Field::new(format!("own-{name}"), data_type.clone(), true).with_metadata(numbered(1));
    ChangeColumn { field: Arc::new(Field::new(name, data_type, true)), in_files, is_partition }
}

fn change(values: &[(&str, Option<&str>)]) -> Change {
    let given = values.iter().map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned)));
    Change { path: "p".to_owned(), partition: Some(given.collect()), done: Done::Recorded }
}

fn selectors(rows: Rows, count: usize) -> Option<Vec<RowSelector>> {
    let left = left(&rows, count, Path::new("f")).unwrap();
    left.map(|left| left.map(Vec::<RowSelector>::from).unwrap_or_default())
}

#[test]
fn rows_are_those_that_are_left_or_those_alone() {
    let without = |places: &[u64]| Rows::Without(Arc::new(places.to_vec()));
    assert_eq!(selectors(Rows::All, 3), Some(Vec::new()));
    assert_eq!(selectors(without(&[]), 3), Some(Vec::new()));
    assert_eq!(selectors(without(&[0]), 3), Some(vec![RowSelector::skip(1), RowSelector::select(2)]));
    assert_eq!(selectors(without(&[0, 1, 2]), 3), None);
    assert_eq!(selectors(Rows::Only(vec![2]), 3), Some(vec![RowSelector::skip(2), RowSelector::select(1)]));
    assert_eq!(selectors(Rows::All, 0), None);
    for beyond in [without(&[3]), Rows::Only(vec![0, 3])] {
        let told = left(&beyond, 3, Path::new("f")).unwrap_err().to_string();
        assert!(told.contains("does not have"), "{told}");
    }
    assert_eq!(lacking(&[1, 3, 5], &[3, 4]), [1, 5]);
}

#[test]
fn partitions_have_the_values_of_the_log() {
    let columns = [column("a", DataType::Int32, true), column("b", DataType::Utf8, false)];
    let value = |values: &[(&str, Option<&str>)]| partition(&change(values), &columns);
    assert_eq!(value(&[("own-a", Some("7"))]).unwrap(), [ScalarValue::Int32(Some(7))]);
    assert_eq!(value(&[("own-a", None)]).unwrap(), [ScalarValue::Int32(None)]);
    assert_eq!(value(&[("own-a", Some(""))]).unwrap(), [ScalarValue::Int32(None)]);
    for (values, word) in [
        (&[("own-a", Some("x"))][..], "partition `a`"),
        (&[][..], "not grouped by `a`"),
        (&[("own-a", Some("7")), ("own-b", Some("y"))][..], "grouped by `own-b`"),
    ] {
        let told = value(values).unwrap_err();
        assert!(told.contains(word), "{told}");
    }
    let unsaid = Change { partition: None, ..change(&[]) };
    assert!(partition(&unsaid, &columns).is_err());
    assert_eq!(partition(&unsaid, &columns[1..]).unwrap(), Vec::<ScalarValue>::new());
}

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
fn columns_are_found_by_name_or_by_number() {
    let columns = [column("a", DataType::Int64, false), column("p", DataType::Int64, true)];
    let field =
        |name: &str, number: i32| Field::new(name, DataType::Int64, true).with_metadata(numbered(number));
    let names = |fields: Vec<Field>, by_number: bool| {
        names_in(&Schema::new(fields), &columns, (by_number, Path::new("f")))
    };
    assert_eq!(names(vec![field("own-a", 9)], false).unwrap(), ["own-a"]);
    assert_eq!(names(vec![field("was", 1)], false).unwrap(), ["own-a"]);
    assert_eq!(names(vec![field("was", 1)], true).unwrap(), ["was"]);
    assert_eq!(names(vec![Field::new("own-a", DataType::Int32, true)], true).unwrap(), ["own-a"]);
    // The column of this name is another one.
    let other = names(vec![field("own-a", 9)], true).unwrap();
    assert!(other[0].starts_with(NOWHERE), "{other:?}");
    let told = names(vec![Field::new("own-a", DataType::Utf8, true)], false).unwrap_err().to_string();
    assert!(told.contains("column `a` is Utf8"), "{told}");
}

#[test]
fn columns_lie_where_a_part_says() {
    let columns = [
        column("p", DataType::Utf8, true),
        column("a", DataType::Int64, false),
        column("q", DataType::Int32, true),
        column("b", DataType::Int64, false),
    ];
    let names = ["own-a".to_owned(), "was-b".to_owned()];
    for (is_recorded, kind) in [(false, 4), (true, 2)] {
        let part = Part::new(&columns, &names, is_recorded);
        let all: Vec<&FieldRef> = part.file_schema.fields().iter().chain(&part.partition_fields).collect();
        let found: Vec<&str> = part.places.iter().map(|place| all[*place].name().as_str()).collect();
        assert_eq!(
            found,
            ["own-p", "own-a", "own-q", "was-b", CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP]
        );
        assert_eq!(part.places[4], kind);
    }
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
