//! The rules of drivers: every standard code, each in the member that they read.

use super::*;
use arrow::array::AsArray;
use arrow::datatypes::{Int32Type, Int64Type, UInt32Type};
use arrow_flight::sql::SqlInfo;
use bowshot_api::Languages;
use std::collections::BTreeMap;
use std::time::Duration;

fn about() -> About {
    About {
        name: "Bowshot".to_owned(),
        version: "1.2.3".to_owned(),
        arrow_version: "59".to_owned(),
        languages: Languages::default(),
    }
}

fn members_by_code(requested: &[u32]) -> BTreeMap<u32, i8> {
    let batch = answer(&about(), &Limits::default(), requested).unwrap();
    let codes = batch.column(0).as_primitive::<UInt32Type>();
    let values = batch.column(1).as_union();
    (0..batch.num_rows()).map(|row| (codes.value(row), values.type_id(row))).collect()
}

/// The table of the JDBC, ODBC and Go drivers.
fn expected_member(code: u32) -> i8 {
    match code {
        0..=2 | 6 | 7 | 504 | 513 | 514 | 529..=531 => 0,
        503 | 505 | 507 | 541..=555 | 557..=562 => 2,
        8 | 100 | 101 | 522 | 525 | 526 | 528 | 533..=535 | 538 | 540 | 564 | 567..=571 => 3,
        508..=512 => 4,
        517 => 5,
        _ => 1,
    }
}

#[test]
fn all_standard_codes_in_the_members_that_drivers_read() {
    let expected: BTreeMap<u32, i8> =
        (0..=11).chain([100, 101]).chain(500..=576).map(|code| (code, expected_member(code))).collect();
    assert_eq!(members_by_code(&[]), expected);
    for code in expected.keys() {
        assert!(SqlInfo::try_from(i32::try_from(*code).unwrap()).is_ok(), "{code}");
    }
}

#[test]
fn requested_codes_only_and_unknown_ones_have_no_row() {
    assert_eq!(members_by_code(&[8, 0, 4711, 10_000, 0]), BTreeMap::from([(0, 0), (8, 3)]));
    assert!(members_by_code(&[99_999]).is_empty());
}

#[test]
fn languages_are_those_of_the_server() {
    let told = |languages: Languages| {
        let about = About { languages, ..about() };
        let batch = answer(&about, &Limits::default(), &[3, 4, 5, 6, 7]).unwrap();
        let values = batch.column(1).as_union();
        let truth = |row: usize| values.value(row).as_boolean().value(0);
        let text = |row: usize| values.value(row).as_string::<i32>().value(0).to_owned();
        (truth(1), truth(2), text(3), text(4))
    };
    assert_eq!(told(Languages::default()), (true, false, String::new(), String::new()));
    let versions = ["0.54".to_owned(), "0.75".to_owned()];
    let plans = Languages { sql: false, substrait: Some(versions) };
    assert_eq!(told(plans), (false, true, "0.54".to_owned(), "0.75".to_owned()));
}

#[test]
fn values_are_where_the_offsets_point() {
    let batch = answer(&about(), &Limits::default(), &[1, 4, 504, 508]).unwrap();
    let values = batch.column(1).as_union();
    assert_eq!(values.value(0).as_string::<i32>().value(0), "1.2.3");
    assert!(values.value(1).as_boolean().value(0));
    assert_eq!(values.value(2).as_string::<i32>().value(0), "\"");
    let words = values.value(3).as_list::<i32>().value(0);
    assert!(words.as_string::<i32>().iter().flatten().any(|word| word == "SELECT"));
}

#[test]
fn what_drivers_ask_before_they_write() {
    let limits = Limits { transaction_timeout: Duration::from_secs(90), ..Limits::default() };
    let number = |code: u32| {
        let batch = answer(&about(), &limits, &[code]).unwrap();
        let value = batch.column(1).as_union().value(0);
        match value.data_type() {
            DataType::Boolean => i64::from(value.as_boolean().value(0)),
            DataType::Int32 => i64::from(value.as_primitive::<Int32Type>().value(0)),
            _ => value.as_primitive::<Int64Type>().value(0),
        }
    };
    let expected = [
        (SqlInfo::FlightSqlServerReadOnly, 0),
        (SqlInfo::FlightSqlServerTransaction, 2),
        (SqlInfo::FlightSqlServerBulkIngestion, 1),
        (SqlInfo::FlightSqlServerIngestTransactionsSupported, 1),
        (SqlInfo::FlightSqlServerTransactionTimeout, 90_000),
        (SqlInfo::SqlDdlCatalog, 0),
        (SqlInfo::SqlDdlSchema, 1),
        (SqlInfo::SqlDdlTable, 1),
        (SqlInfo::SqlDefaultTransactionIsolation, 3),
        (SqlInfo::SqlTransactionsSupported, 1),
        (SqlInfo::SqlSupportedTransactionsIsolationLevels, 1 << 2 | 1 << 3 | 1 << 4),
        (SqlInfo::SqlDataDefinitionCausesTransactionCommit, 0),
        (SqlInfo::SqlDataDefinitionsInTransactionsIgnored, 0),
        (SqlInfo::SqlBatchUpdatesSupported, 1),
        (SqlInfo::SqlSavepointsSupported, 1),
    ];
    for (code, value) in expected {
        assert_eq!(number(u32::try_from(code as i32).unwrap()), value, "{code:?}");
    }
}

#[test]
fn union_as_the_go_and_cpp_clients_compare_it() {
    let list = |data_type| DataType::List(Arc::new(Field::new("item", data_type, true)));
    let entries = DataType::Struct(
        vec![Field::new("key", DataType::Int32, false), Field::new("value", list(DataType::Int32), true)]
            .into(),
    );
    let fields = UnionFields::from_fields(vec![
        Field::new("string_value", DataType::Utf8, false),
        Field::new("bool_value", DataType::Boolean, false),
        Field::new("bigint_value", DataType::Int64, false),
        Field::new("int32_bitmask", DataType::Int32, false),
        Field::new("string_list", list(DataType::Utf8), false),
        Field::new(
            "int32_to_int32_list_map",
            DataType::Map(Arc::new(Field::new("entries", entries, false)), false),
            false,
        ),
    ]);
    let expected = Schema::new(vec![
        Field::new("info_name", DataType::UInt32, false),
        Field::new("value", DataType::Union(fields, UnionMode::Dense), false),
    ]);
    assert_eq!(*schema(), expected);
    assert_eq!(*answer(&about(), &Limits::default(), &[]).unwrap().schema(), expected);
}

#[test]
fn words_are_sorted_and_unique() {
    for words in [
        keywords::KEYWORDS,
        keywords::NUMERIC_FUNCTIONS,
        keywords::STRING_FUNCTIONS,
        keywords::SYSTEM_FUNCTIONS,
        keywords::DATETIME_FUNCTIONS,
    ] {
        assert!(words.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
