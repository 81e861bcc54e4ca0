//! The SQL name of an Arrow type, in each of the ways in which clients read it. `DESCRIBE`, `SHOW`, `information_schema`
//! and `pg_catalog` all ask here, so that they say the same.

use super::declared::{DECLARED, Declared};
use super::enums::EnumType;
use bowshot_api::variant::is_variant_type;
use datafusion::arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion::sql::sqlparser::ast::Ident;

/// An identifier as it is stored: lower case unless it was quoted.
pub fn identifier(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_ascii_lowercase() }
}

/// The name as `CREATE TABLE` takes it, with the length that was declared: `DECIMAL(10,2)`, `INTEGER[]`, `VARCHAR(20)`. Arrow's
/// own for types that SQL has no name for.
pub fn sql(field: &Field) -> String {
    if let Some(of) = EnumType::declared(field) {
        return of.sql();
    }
    if let Some(declared) = field.metadata().get(DECLARED) {
        return declared.clone();
    }
    match extension(field) {
        Some(name) => name.to_ascii_uppercase(),
        None => sql_type(field.data_type()),
    }
}

/// See [`sql`].
pub fn sql_type(data_type: &DataType) -> String {
    let name = match data_type {
        DataType::Null => "NULL",
        DataType::Boolean => "BOOLEAN",
        DataType::Int8 => "TINYINT",
        DataType::Int16 => "SMALLINT",
        DataType::Int32 => "INTEGER",
        DataType::Int64 => "BIGINT",
        DataType::UInt8 => "TINYINT UNSIGNED",
        DataType::UInt16 => "SMALLINT UNSIGNED",
        DataType::UInt32 => "INTEGER UNSIGNED",
        DataType::UInt64 => "BIGINT UNSIGNED",
        DataType::Float16 | DataType::Float32 => "REAL",
        DataType::Float64 => "DOUBLE",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "VARCHAR",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "BYTEA",
        DataType::Date32 | DataType::Date64 => "DATE",
        DataType::Interval(_) | DataType::Duration(_) => "INTERVAL",
        other => return with_parts(other),
    };
    name.to_owned()
}

/// Types that have a precision, or other types in them.
fn with_parts(data_type: &DataType) -> String {
    match data_type {
        DataType::FixedSizeBinary(length) => format!("BINARY({length})"),
        DataType::Timestamp(unit, zone) => {
            let zone = if zone.is_some() { " WITH TIME ZONE" } else { "" };
            format!("TIMESTAMP{}{zone}", precision(*unit))
        }
        DataType::Time32(unit) | DataType::Time64(unit) => format!("TIME{}", precision(*unit)),
        DataType::Decimal32(digits, scale)
        | DataType::Decimal64(digits, scale)
        | DataType::Decimal128(digits, scale)
        | DataType::Decimal256(digits, scale) => format!("DECIMAL({digits},{scale})"),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => format!("{}[]", sql(item)),
        DataType::FixedSizeList(item, length) => format!("{}[{length}]", sql(item)),
        of if is_variant_type(of) => "VARIANT".to_owned(),
        DataType::Struct(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|field| format!("{} {}", quoted(field.name()), sql(field))).collect();
            format!("STRUCT<{}>", fields.join(", "))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) => {
                let parts: Vec<String> = pair.iter().map(|field| sql(field)).collect();
                format!("MAP({})", parts.join(", "))
            }
            other => format!("MAP({other})"),
        },
        DataType::Dictionary(_, values) => sql_type(values),
        DataType::RunEndEncoded(_, values) => sql(values),
        other => other.to_string(),
    }
}

/// Six digits are what a type without a number has.
fn precision(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "(0)",
        TimeUnit::Millisecond => "(3)",
        TimeUnit::Microsecond => "",
        TimeUnit::Nanosecond => "(9)",
    }
}

/// Digits after the second.
pub fn second_digits(data_type: &DataType) -> Option<i32> {
    let unit = match data_type {
        DataType::Timestamp(unit, _) | DataType::Time32(unit) | DataType::Time64(unit) => *unit,
        DataType::Date32 | DataType::Date64 => return Some(0),
        DataType::Interval(_) | DataType::Duration(_) => return Some(6),
        _ => return None,
    };
    Some(match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    })
}

/// Digits, the base in which they are counted, and those behind the point.
pub fn number_digits(data_type: &DataType) -> Option<(i32, i32, Option<i32>)> {
    Some(match data_type {
        DataType::Int8 | DataType::UInt8 => (8, 2, Some(0)),
        DataType::Int16 | DataType::UInt16 => (16, 2, Some(0)),
        DataType::Int32 | DataType::UInt32 => (32, 2, Some(0)),
        DataType::Int64 | DataType::UInt64 => (64, 2, Some(0)),
        DataType::Float16 => (11, 2, None),
        DataType::Float32 => (24, 2, None),
        DataType::Float64 => (53, 2, None),
        DataType::Decimal32(digits, scale)
        | DataType::Decimal64(digits, scale)
        | DataType::Decimal128(digits, scale)
        | DataType::Decimal256(digits, scale) => (i32::from(*digits), 10, Some(i32::from(*scale))),
        _ => return None,
    })
}

/// The same in decimal digits, as MySQL has them of all numbers.
pub fn decimal_digits(data_type: &DataType) -> Option<(i32, i32, Option<i32>)> {
    let digits = match data_type {
        DataType::Int8 | DataType::UInt8 => 3,
        DataType::Int16 | DataType::UInt16 => 5,
        DataType::Int32 | DataType::UInt32 => 10,
        DataType::Int64 => 19,
        DataType::UInt64 => 20,
        DataType::Float16 | DataType::Float32 => return Some((12, 10, None)),
        DataType::Float64 => return Some((22, 10, None)),
        _ => return number_digits(data_type),
    };
    Some((digits, 10, Some(0)))
}

/// The same as clients of PostgreSQL know it: a text that nobody declared as VARCHAR is one of their type `text`.
pub fn standard_of_postgres(field: &Field) -> String {
    let plain = Declared::of(field).is_none() && extension(field).is_none();
    if field.data_type().is_string() && plain { "text".to_owned() } else { standard(field) }
}

/// A default as PostgreSQL writes it: a text that is written out with its type.
pub fn default_of_postgres(default: &str, field: &Field) -> String {
    let text = default.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    let is_text = text.is_some_and(|text| !text.replace("''", "").contains('\''));
    let has_name = !field.data_type().is_nested() && !matches!(Declared::of(field), Some(Declared::Enum(_)));
    if is_text && has_name {
        format!("{default}::{}", standard_of_postgres(field))
    } else {
        default.to_owned()
    }
}

/// The name in `information_schema.columns.data_type` and `format_type`: the standard's, in lower case and without numbers.
pub fn standard(field: &Field) -> String {
    match (Declared::of(field), extension(field)) {
        (_, Some(name)) => name.to_owned(),
        (Some(Declared::Char(_)), None) => "character".to_owned(),
        (Some(Declared::Enum(_)), None) => "USER-DEFINED".to_owned(),
        (Some(Declared::Varchar(_)), None) => "character varying".to_owned(),
        (_, None) => standard_type(field.data_type()),
    }
}

/// See [`standard`].
pub(crate) fn standard_type(data_type: &DataType) -> String {
    let name = match data_type {
        DataType::Float64 => "double precision",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "character varying",
        DataType::Timestamp(_, None) => "timestamp without time zone",
        DataType::Timestamp(_, Some(_)) => "timestamp with time zone",
        DataType::Time32(_) | DataType::Time64(_) => "time without time zone",
        of if of.is_decimal() => "numeric",
        of if of.is_list() => "ARRAY",
        of if is_variant_type(of) => "variant",
        DataType::Struct(_) => "struct",
        DataType::Map(..) => "map",
        DataType::Dictionary(_, values) => return standard_type(values),
        DataType::RunEndEncoded(_, values) => return standard(values),
        other => return sql_type(other).to_ascii_lowercase(),
    };
    name.to_owned()
}

/// The name as MySQL's `SHOW COLUMNS` has it.
pub fn mysql(field: &Field) -> String {
    if let Some(name) = extension(field) {
        return if name == "uuid" { "char(36)" } else { "json" }.to_owned();
    }
    let with_digits = |name: &str| match second_digits(field.data_type()) {
        Some(digits) if digits > 0 && declared_digits(field) != Some(0) => {
            format!("{name}({})", declared_digits(field).unwrap_or(6))
        }
        _ => name.to_owned(),
    };
    match field.data_type() {
        DataType::Timestamp(_, None) => return with_digits("datetime"),
        DataType::Time32(_) | DataType::Time64(_) => return with_digits("time"),
        _ => {}
    }
    if let Some(EnumType { labels, .. }) = EnumType::declared(field) {
        let labels = labels.iter().map(|label| format!("'{}'", label.replace('\'', "''")));
        return format!("enum({})", labels.collect::<Vec<_>>().join(","));
    }
    if let Some(declared) = field.metadata().get(DECLARED) {
        return declared.to_ascii_lowercase();
    }
    let name = match field.data_type() {
        DataType::Boolean => "tinyint(1)",
        DataType::Int32 => "int",
        DataType::UInt32 => "int unsigned",
        DataType::Float16 | DataType::Float32 => "float",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "varchar",
        of if of.is_binary() => "blob",
        DataType::Timestamp(_, Some(_)) => "timestamp",
        other => return sql_type(other).to_ascii_lowercase(),
    };
    name.to_owned()
}

/// Digits of a second that were declared for a column, fewer than its type has.
pub fn declared_digits(field: &Field) -> Option<u32> {
    match Declared::of(field)? {
        Declared::Timestamp(digits) | Declared::TimestampTz(digits) | Declared::Time(digits) => Some(digits),
        _ => None,
    }
}

/// PostgreSQL's number, name and length of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostgresType {
    pub oid: i64,
    pub name: &'static str,
    pub length: i32,
    /// Number of the type of arrays of it.
    pub array: i64,
}

/// Types by number, name, length and the number of arrays of them.
macro_rules! known_types {
    ($($oid:literal $name:literal $length:literal $array:literal),* $(,)?) => {
        [$(PostgresType { oid: $oid, name: $name, length: $length, array: $array }),*]
    };
}

/// The types that PostgreSQL knows, by their numbers.
pub const POSTGRES_TYPES: [PostgresType; 39] = known_types! {
    16 "bool" 1 1000, 17 "bytea" -1 1001, 18 "char" 1 1002, 19 "name" 64 1003, 20 "int8" 8 1016,
    21 "int2" 2 1005, 22 "int2vector" -1 1006, 23 "int4" 4 1007, 24 "regproc" 4 1008, 25 "text" -1 1009,
    26 "oid" 4 1028, 28 "xid" 4 1011, 30 "oidvector" -1 1013, 114 "json" -1 199, 700 "float4" 4 1021,
    701 "float8" 8 1022, 705 "unknown" -2 0, 1042 "bpchar" -1 1014, 1043 "varchar" -1 1015,
    1082 "date" 4 1182, 1083 "time" 8 1183, 1114 "timestamp" 8 1115, 1184 "timestamptz" 8 1185,
    1186 "interval" 16 1187, 1700 "numeric" -1 1231, 2205 "regclass" 4 2210, 2206 "regtype" 4 2211,
    2249 "record" -1 2287, 2275 "cstring" -2 1263, 2276 "any" 4 0, 2277 "anyarray" -1 0, 2278 "void" 4 0,
    2279 "trigger" 4 0, 2283 "anyelement" 4 0, 2950 "uuid" 16 2951, 3802 "jsonb" -1 3807,
    3838 "event_trigger" 4 0, 4089 "regnamespace" 4 4090, 4096 "regrole" 4 4097,
};

/// The PostgreSQL type that holds the values of a column, the item's for a list.
pub fn postgres(field: &Field) -> PostgresType {
    let oid = match (extension(field), Declared::of(field)) {
        (Some("uuid"), _) => 2950,
        (Some("jsonb"), _) => 3802,
        (Some(_), _) => 114,
        (None, Some(Declared::Varchar(_) | Declared::PlainVarchar)) => 1043,
        (None, Some(Declared::Char(_))) => 1042,
        (None, _) => postgres_oid(field.data_type()),
    };
    let [text] = known_types! { 25 "text" -1 1009 };
    POSTGRES_TYPES.into_iter().find(|known| known.oid == oid).unwrap_or(text)
}

fn postgres_oid(data_type: &DataType) -> i64 {
    match data_type {
        DataType::Boolean => 16,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => 17,
        DataType::Int64 | DataType::UInt32 => 20,
        DataType::Int8 | DataType::UInt8 | DataType::Int16 => 21,
        DataType::Int32 | DataType::UInt16 => 23,
        DataType::Float16 | DataType::Float32 => 700,
        DataType::Float64 => 701,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => 25,
        DataType::Date32 | DataType::Date64 => 1082,
        DataType::Time32(_) | DataType::Time64(_) => 1083,
        DataType::Timestamp(_, None) => 1114,
        DataType::Timestamp(_, Some(_)) => 1184,
        DataType::Interval(_) | DataType::Duration(_) => 1186,
        DataType::UInt64 => 1700,
        of if of.is_decimal() => 1700,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => postgres(item).oid,
        DataType::Dictionary(_, values) => postgres_oid(values),
        DataType::RunEndEncoded(_, values) => postgres(values).oid,
        // Nested values are texts to those who do not know them.
        _ => 25,
    }
}

/// Characters or bytes that were declared as the most of a column.
pub fn declared_length(field: &Field) -> Option<i32> {
    match Declared::of(field)? {
        Declared::Varchar(length) | Declared::Char(length) | Declared::Varbinary(length) => {
            i32::try_from(length).ok()
        }
        _ => None,
    }
}

/// The type that a field carries beyond its Arrow type.
fn extension(field: &Field) -> Option<&'static str> {
    if is_variant_type(field.data_type()) {
        return Some("variant");
    }
    match Declared::of(field) {
        Some(Declared::Json) => return Some("json"),
        Some(Declared::Jsonb) => return Some("jsonb"),
        Some(Declared::Uuid) => return Some("uuid"),
        _ => {}
    }
    match field.metadata().get("ARROW:extension:name").map(String::as_str) {
        Some("arrow.json") => Some("json"),
        Some("arrow.uuid") => Some("uuid"),
        _ => None,
    }
}

/// A name as it must be written: quotes only where they are needed.
pub fn quoted(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !is_keyword(name);
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

fn is_keyword(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    datafusion::sql::sqlparser::keywords::ALL_KEYWORDS.binary_search(&upper.as_str()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_client_reads_its_own_names() {
        for (data_type, ours, standards, mysqls, postgress) in [
            (DataType::Int32, "INTEGER", "integer", "int", "int4"),
            (DataType::UInt64, "BIGINT UNSIGNED", "bigint unsigned", "bigint unsigned", "numeric"),
            (DataType::Utf8, "VARCHAR", "character varying", "varchar", "text"),
            (DataType::Decimal128(10, 2), "DECIMAL(10,2)", "numeric", "decimal(10,2)", "numeric"),
            (
                DataType::Timestamp(TimeUnit::Microsecond, None),
                "TIMESTAMP",
                "timestamp without time zone",
                "datetime(6)",
                "timestamp",
            ),
            (
                DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
                "TIMESTAMP(9) WITH TIME ZONE",
                "timestamp with time zone",
                "timestamp",
                "timestamptz",
            ),
            (DataType::new_list(DataType::Int64, true), "BIGINT[]", "ARRAY", "bigint[]", "int8"),
            (
                DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
                "VARCHAR",
                "character varying",
                "varchar",
                "text",
            ),
        ] {
            let field = Field::new("a", data_type, true);
            assert_eq!(sql(&field), ours);
            assert_eq!(standard(&field), standards);
            assert_eq!(mysql(&field), mysqls);
            assert_eq!(postgres(&field).name, postgress);
        }
    }

    #[test]
    fn extension_types_have_their_own_names() {
        let named = |name: &str| {
            let about = [("ARROW:extension:name".to_owned(), name.to_owned())].into();
            Field::new("a", DataType::Utf8, true).with_metadata(about)
        };
        assert_eq!([sql(&named("arrow.json")), sql(&named("arrow.uuid"))], ["JSON", "UUID"]);
        assert_eq!(postgres(&named("arrow.uuid")).oid, 2950);
    }
}
