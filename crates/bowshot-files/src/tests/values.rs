//! Values that a type does not hold as they are written: kept in another type, or refused with their place.

use super::csv::with_options;
use super::{World, says, write, write_parquet};
use arrow::array::{
    ArrayRef, Decimal128Array, FixedSizeBinaryArray, Int32Array, Int64Array, RecordBatch, UInt64Array,
};
use bowshot_api::ErrorKind;
use parquet::arrow::ARROW_SCHEMA_META_KEY;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::basic::{LogicalType, Repetition};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::Type;
use std::path::Path;
use std::sync::Arc;
use tempfile::tempdir;

const ROWS: usize = 20_480;

#[tokio::test(flavor = "multi_thread")]
async fn whole_numbers_of_json_keep_their_digits() {
    let folder = tempdir().unwrap();
    for (number, (usual, late, types, sql, expected)) in [
        ("9007199254740993", "1.5", "a Decimal128(38, 1)", "cast(max(a) as varchar)", "9007199254740993.0"),
        (
            "1",
            "18446744073709551616",
            "a Decimal128(38, 0)",
            "cast(max(a) as varchar)",
            "18446744073709551616",
        ),
        ("9007199254740993", "1e300", "a Utf8", "max(a)", "9007199254740993"),
        ("1.5", "9007199254740993", "a Decimal128(38, 1)", "cast(max(a) as varchar)", "9007199254740993.0"),
        (
            "[1]",
            "[18446744073709551616]",
            "a List(Decimal128(38, 0))",
            "cast(max(a[1]) as varchar)",
            "18446744073709551616",
        ),
        ("1", "1.5", "a Float64", "cast(sum(a) as varchar)", "20481.5"),
    ]
    .into_iter()
    .enumerate()
    {
        let path = folder.path().join(format!("{number}/t.json"));
        write(&path, format!("{}{{\"a\":{late}}}\n", format!("{{\"a\":{usual}}}\n").repeat(ROWS)));
        let world = with_options(&path, "");
        let number = late.trim_matches(['[', ']']);
        says(&world.error("select a from t").await, ErrorKind::Conflict, &["t.json", "line 20481", number]);
        assert_eq!(world.types("t").await, types, "{usual} {late}");
        assert_eq!(world.value(&format!("select {sql} from t")).await, expected, "{usual} {late}");
    }
    let path = folder.path().join("early.json");
    write(&path, "{\"a\":9007199254740993}\n{\"a\":1.5}\n");
    assert_eq!(World::open(&[&path]).types("early").await, "a Decimal128(38, 1)");
    // Each file shows one type alone.
    let files = folder.path().join("files");
    write(&files.join("1.json"), "{\"a\":9007199254740993}\n");
    write(&files.join("2.json"), "{\"a\":1.5}\n");
    let world = with_options(&files, "");
    says(
        &world.error("select a from t").await,
        ErrorKind::Corrupt,
        &["1.json", "line 1", "`9007199254740993` in column `a` is no value of type Float64"],
    );
    assert_eq!(
        with_options(&files, "types=a:VARCHAR").value("select max(a) from t").await,
        "9007199254740993"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn json_without_rows_is_a_table_without_rows() {
    let folder = tempdir().unwrap();
    for (name, text) in [("list", "[]"), ("spaced", " [\n] \n"), ("nothing", "")] {
        let path = folder.path().join(format!("{name}.json"));
        write(&path, text);
        let world = World::open(&[&path]);
        assert_eq!(world.types(name).await, "json Utf8", "{name}");
        assert_eq!(world.value(&format!("select count(*) from {name}")).await, "0", "{name}");
        assert_eq!(world.value(&format!("select count(json) from {name}")).await, "0", "{name}");
        let world = with_options(&path, "columns=a:INTEGER,b:DATE");
        assert_eq!(world.types("t").await, "a Int32, b Date32", "{name}");
    }
    write(&folder.path().join("parts/1.json"), "[]");
    write(&folder.path().join("parts/2.json"), "[{\"a\":1}]");
    let world = World::open(&[&folder.path().join("parts")]);
    assert_eq!(world.types("parts").await, "a Int64");
    assert_eq!(world.value("select sum(a) from parts").await, "1");
    let path = folder.path().join("open.json");
    write(&path, "[");
    says(&World::open(&[&path]).error("select * from open").await, ErrorKind::Corrupt, &["open.json"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn types_of_csv_take_no_value_that_they_change() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let usual = "1,true,2024-01-01,2024-01-01T10:00:00,1.5,10:00:00\n".repeat(ROWS);
    for (row, told) in [
        (
            "007,true,2024-01-01,2024-01-01T10:00:00,1.5,10:00:00",
            "`007` in column `a` is no value of type Int64",
        ),
        ("+1,true,2024-01-01,2024-01-01T10:00:00,1.5,10:00:00", "`+1` in column `a`"),
        ("1,1,2024-01-01,2024-01-01T10:00:00,1.5,10:00:00", "`1` in column `b` is no value of type Boolean"),
        ("1,yes,2024-01-01,2024-01-01T10:00:00,1.5,10:00:00", "`yes` in column `b`"),
        (
            "1,true,2024-01-01T10:00:00,2024-01-01T10:00:00,1.5,10:00:00",
            "`2024-01-01T10:00:00` in column `c`",
        ),
        (
            "1,true,2024-01-01,2024-01-01T10:00:00+02:00,1.5,10:00:00",
            "`2024-01-01T10:00:00+02:00` in column `d`",
        ),
        ("1,true,2024-01-01,2024-01-01T10:00:00.5,1.5,10:00:00", "`2024-01-01T10:00:00.5` in column `d`"),
        ("1,true,2024-01-01,2024-01-01T10:00:00,007.5,10:00:00", "`007.5` in column `e`"),
        (
            "1,true,2024-01-01,2024-01-01T10:00:00,9007199254740993,10:00:00",
            "`9007199254740993` in column `e`",
        ),
        (
            "1,true,2024-01-01,2024-01-01T10:00:00,1.5,10:00:00.123456789",
            "`10:00:00.123456789` in column `f`",
        ),
        ("1,true,2024-01-01,2024-01-01T10:00:00,1.5,10:00:00+02:00", "`10:00:00+02:00` in column `f`"),
    ] {
        write(&path, format!("a,b,c,d,e,f\n{usual}{row}\n"));
        let world = with_options(&path, "");
        let error = world.error("select * from t").await;
        says(&error, ErrorKind::Corrupt, &["t.csv", "line 20482", told]);
        assert!(error.hint().is_some_and(|hint| hint.contains("types=") && hint.contains("sample_size")));
        // Who leaves such lines out loses this one; who has all of them looked at gets a text.
        assert_eq!(with_options(&path, "ignore_errors=true").value("select count(*) from t").await, "20480");
        let value = told.split('`').nth(1).unwrap();
        let column = told.split('`').nth(3).unwrap();
        let sql = format!("select count(*) from t where {column} = '{value}'");
        let all = with_options(&path, "sample_size=-1");
        if !value.starts_with('9') && !value.ends_with(".5") && !value.ends_with("T10:00:00") {
            assert_eq!(all.value(&sql).await, "1", "{row}");
        }
    }
    write(&path, format!("a,b,c,d,e,f\n{usual}007,1,2024-01-01,2024-01-01T10:00:00,1.5,10:00:00\n"));
    let world = with_options(&path, "types=a:BIGINT,b:BOOLEAN");
    assert_eq!(world.value("select count(*) from t where a = 7 and b").await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_line_of_another_width_is_no_title_by_guess() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("t.csv");
    write(&path, "John\nAnn,Lee,NY\nBob,Ray,LA\n");
    let error = with_options(&path, "").error("select * from t").await;
    says(&error, ErrorKind::Corrupt, &["t.csv", "line 1", "one value above a table of 3 columns"]);
    assert!(error.hint().is_some_and(|hint| hint.contains("`skip`") && hint.contains("header=false")));
    assert_eq!(with_options(&path, "header=false").value("select count(*) from t").await, "3");
    assert_eq!(with_options(&path, "skip=1").value("select max(\"Ann\") from t").await, "Bob");
    for (text, types) in [
        ("Friends\n\nname,city\nAnn,NY\nBob,LA\n", "name Utf8, city Utf8"),
        ("Friends\nname,age\nAnn,7\nBob,8\n", "name Utf8, age Int64"),
        ("1\n2,3\n4,5\n", "column_1 Int64, column_2 Int64"),
    ] {
        write(&path, text);
        assert_eq!(with_options(&path, "").types("t").await, types);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_has_a_pattern_for_its_name_is_meant_alone() {
    let folder = tempdir().unwrap();
    write(&folder.path().join("a?c.csv"), "n\n1\n");
    write(&folder.path().join("abc.csv"), "n\n2\n");
    let world = World::open(&[folder.path()]);
    for (pattern, expected) in [("a?c.csv", 1), ("a[b]c.csv", 1), ("a*.csv", 2)] {
        let paths = vec![pattern.to_owned()];
        let table = world
            .catalog
            .named(pattern, paths, bowshot_formats::read_options::ReadOptions::default())
            .await
            .unwrap();
        let rows = world.context.read_table(table).unwrap().count().await.unwrap();
        assert_eq!(rows, expected, "{pattern}");
    }
}

#[tokio::test]
async fn folders_of_one_value_are_text_and_times_are_times() {
    let folder = tempdir().unwrap();
    for (number, (values, types)) in [
        (&["007", "7"][..], "k Utf8"),
        (&["01", "02"], "k Int64"),
        (&["-0", "0"], "k Utf8"),
        (&["2024-01-01", "2024-02-29"], "k Date32"),
        (&["2024-01-01%2000%3A00%3A00", "2024-01-02%2010%3A00%3A00"], "k Timestamp(µs)"),
        (&["2024-01-01 00%3A00%3A00", "2024-01-02 10%3A00%3A00.25"], "k Timestamp(µs)"),
        (&["2024-01-01%2000%3A00%3A00.000000001"], "k Timestamp(ns)"),
        (&["2024-01-01%2000%3A00%3A00Z"], "k Timestamp(µs, \"UTC\")"),
        (&["2024-01-01%2000%3A00%3A00", "2024-01-01T00%3A00%3A00"], "k Utf8"),
        (&["2024-01-01%2000%3A00%3A00", "2024-01-01"], "k Utf8"),
    ]
    .into_iter()
    .enumerate()
    {
        let path = folder.path().join(format!("t{number}"));
        for (row, value) in values.iter().enumerate() {
            write(&path.join(format!("k={value}/1.csv")), format!("n\n{row}\n"));
        }
        let world = World::named("t", &path);
        assert_eq!(world.types("t").await, format!("n Int64, {types}"), "{values:?}");
        assert_eq!(
            world.value("select count(distinct k) from t").await,
            values.len().to_string(),
            "{values:?}"
        );
        if types.starts_with("k Timestamp(µs)") {
            let sql = "select count(*) from t where k >= timestamp '2024-01-02 10:00:00'";
            assert_eq!(world.value(sql).await, "1", "{values:?}");
        }
    }
}

fn one(column: ArrayRef) -> RecordBatch {
    RecordBatch::try_from_iter([("a", column)]).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_of_several_files_have_the_type_that_holds_both() {
    let folder = tempdir().unwrap();
    let decimal =
        |value: i128| Arc::new(Decimal128Array::from(vec![value]).with_precision_and_scale(5, 2).unwrap());
    for (number, (one_column, other, types, expected)) in [
        (
            Arc::new(Int32Array::from(vec![7])) as ArrayRef,
            decimal(150) as ArrayRef,
            "a Decimal128(12, 2)",
            "7.00 1.50",
        ),
        (
            Arc::new(Int64Array::from(vec![-1])),
            Arc::new(UInt64Array::from(vec![u64::MAX])),
            "a Decimal128(20, 0)",
            "18446744073709551615 -1",
        ),
        (
            Arc::new(arrow::array::Date32Array::from(vec![1])),
            Arc::new(arrow::array::TimestampSecondArray::from(vec![1])),
            "a Timestamp(s)",
            "1970-01-02T00:00:00 1970-01-01T00:00:01",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let path = folder.path().join(format!("t{number}"));
        write_parquet(&path.join("1.parquet"), &one(one_column));
        write_parquet(&path.join("2.parquet"), &one(other));
        let world = World::named("t", &path);
        assert_eq!(world.types("t").await, types);
        let sql = "select cast(max(a) as varchar) || ' ' || cast(min(a) as varchar) from t";
        assert_eq!(world.value(sql).await, expected, "{types}");
    }
}

/// A file as Polars writes one of an integer of 64 bits and one of 128.
fn write_wide(path: &Path) {
    const SAID: &str = "/////6cAAAAEAAAA8v///xQAAAAEAAEAAAAKAAsACAAKAAQA+P///wwAAAAIAAgAAAAEAAIAAAA0AAAABAAAAMD///8gAAAA\
                        EAAAAAgAAAABAgAAAAAAALj///+AAAAAAQAAAAEAAABoAAAA7P///zgAAAAgAAAAGAAAAAECAAAQABIABAAQABEACAAAAAwAAAAA\
                        APT///9AAAAAAQAAAAgACQAEAAgAAgAAAGlkAA==";
    let wide = FixedSizeBinaryArray::try_from_iter([[1_u8; 16], [2; 16]].into_iter()).unwrap();
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("id", ids, true),
        ("h", Arc::new(wide) as ArrayRef, true),
    ]);
    let said = KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), SAID.to_owned());
    let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![said])).build();
    let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
    let (batch, file) = (batch.unwrap(), std::fs::File::create(path).unwrap());
    let mut writer = ArrowWriter::try_new_with_options(file, batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// A file without rows as DuckDB writes one of a number and a VARIANT.
fn write_variant(path: &Path) {
    let parts = "message m { required int32 id; required group h { required binary metadata; optional binary value; } }";
    let parts = parse_message_type(parts).unwrap();
    let (id, group) = (&parts.get_fields()[0], &parts.get_fields()[1]);
    let variant = Type::group_type_builder("h")
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(Some(LogicalType::variant(Some(1))))
        .with_fields(group.get_fields().to_vec());
    let fields = vec![Arc::clone(id), Arc::new(variant.build().unwrap())];
    let shape = Arc::new(Type::group_type_builder("m").with_fields(fields).build().unwrap());
    let file = std::fs::File::create(path).unwrap();
    SerializedFileWriter::new(file, shape, Arc::default()).unwrap().close().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_of_types_that_are_not_read_are_refused_alone() {
    let folder = tempdir().unwrap();
    write_wide(&folder.path().join("wide.parquet"));
    write_variant(&folder.path().join("variant.parquet"));
    let world = World::open(&[folder.path()]);
    for (table, why, rows) in [("wide", "more than 64 bits", "2"), ("variant", "VARIANT", "0")] {
        assert_eq!(world.value(&format!("select count(id) from {table}")).await, rows);
        for what in ["*", "h", "count(h)"] {
            let (sql, file) = (format!("select {what} from {table}"), format!("{table}.parquet"));
            says(&world.error(&sql).await, ErrorKind::Unsupported, &["column `h`", &file, why]);
        }
    }
}
