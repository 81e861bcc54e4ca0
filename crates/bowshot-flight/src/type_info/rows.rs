//! The type table.

/// One type as `CommandGetXdbcTypeInfo` lists it.
#[derive(Debug, Clone, Copy)]
pub(super) struct TypeRow {
    pub(super) name: &'static str,
    /// Concise XDBC code.
    pub(super) data_type: i32,
    /// Verbose XDBC code: `DATETIME` for the three temporal types, otherwise the same.
    pub(super) sql_data_type: i32,
    pub(super) datetime_subcode: Option<i32>,
    pub(super) column_size: Option<i32>,
    pub(super) literal_prefix: Option<&'static str>,
    pub(super) literal_suffix: Option<&'static str>,
    pub(super) create_params: &'static [&'static str],
    pub(super) case_sensitive: bool,
    pub(super) searchable: i32,
    /// `None` for everything but numbers.
    pub(super) unsigned: Option<bool>,
    /// Smallest and largest scale.
    pub(super) scales: Option<(i32, i32)>,
    pub(super) radix: Option<i32>,
}

/// `NULLABILITY_NULLABLE`
pub(super) const NULLABLE: i32 = 1;
/// `SEARCHABLE_BASIC`: every predicate but `LIKE`.
const BASIC: i32 = 2;
/// `SEARCHABLE_FULL`
const FULL: i32 = 3;

const UNKNOWN: i32 = 0;
const DECIMAL: i32 = 3;
const INTEGER: i32 = 4;
const SMALLINT: i32 = 5;
const REAL: i32 = 7;
const DOUBLE: i32 = 8;
const DATETIME: i32 = 9;
const INTERVAL: i32 = 10;
const VARCHAR: i32 = 12;
const DATE: i32 = 91;
const TIME: i32 = 92;
const TIMESTAMP: i32 = 93;
const VARBINARY: i32 = -3;
const BIGINT: i32 = -5;
const TINYINT: i32 = -6;
const BIT: i32 = -7;

/// Every type that a result of Bowshot can have.
pub(super) const TYPES: &[TypeRow] = &[
    TypeRow { column_size: Some(1), ..plain("BOOLEAN", BIT) },
    integer("TINYINT", TINYINT, 3, false),
    integer("TINYINT UNSIGNED", TINYINT, 3, true),
    integer("SMALLINT", SMALLINT, 5, false),
    integer("SMALLINT UNSIGNED", SMALLINT, 5, true),
    integer("INTEGER", INTEGER, 10, false),
    integer("INTEGER UNSIGNED", INTEGER, 10, true),
    integer("BIGINT", BIGINT, 19, false),
    integer("BIGINT UNSIGNED", BIGINT, 20, true),
    TypeRow { scales: None, ..integer("REAL", REAL, 7, false) },
    TypeRow { scales: None, ..integer("DOUBLE", DOUBLE, 15, false) },
    TypeRow {
        create_params: &["precision", "scale"],
        scales: Some((0, 76)),
        ..integer("DECIMAL", DECIMAL, 76, false)
    },
    TypeRow {
        column_size: Some(i32::MAX),
        create_params: &["length"],
        case_sensitive: true,
        searchable: FULL,
        ..quoted("VARCHAR", VARCHAR, "'")
    },
    TypeRow { column_size: Some(i32::MAX), ..quoted("VARBINARY", VARBINARY, "X'") },
    temporal("DATE", DATE, 1, 10, "DATE '"),
    TypeRow { scales: Some((0, 9)), ..temporal("TIME", TIME, 2, 18, "TIME '") },
    TypeRow { scales: Some((0, 9)), ..temporal("TIMESTAMP", TIMESTAMP, 3, 29, "TIMESTAMP '") },
    TypeRow {
        scales: Some((0, 9)),
        ..temporal("TIMESTAMP WITH TIME ZONE", TIMESTAMP, 5, 35, "TIMESTAMPTZ '")
    },
    quoted("INTERVAL", INTERVAL, "INTERVAL '"),
    plain("ARRAY", UNKNOWN),
    plain("MAP", UNKNOWN),
    plain("NULL", UNKNOWN),
    plain("STRUCT", UNKNOWN),
    plain("UNION", UNKNOWN),
];

const fn plain(name: &'static str, data_type: i32) -> TypeRow {
    TypeRow {
        name,
        data_type,
        sql_data_type: data_type,
        datetime_subcode: None,
        column_size: None,
        literal_prefix: None,
        literal_suffix: None,
        create_params: &[],
        case_sensitive: false,
        searchable: BASIC,
        unsigned: None,
        scales: None,
        radix: None,
    }
}

const fn integer(name: &'static str, data_type: i32, digits: i32, unsigned: bool) -> TypeRow {
    TypeRow {
        column_size: Some(digits),
        unsigned: Some(unsigned),
        scales: Some((0, 0)),
        radix: Some(10),
        ..plain(name, data_type)
    }
}

const fn quoted(name: &'static str, data_type: i32, prefix: &'static str) -> TypeRow {
    TypeRow { literal_prefix: Some(prefix), literal_suffix: Some("'"), ..plain(name, data_type) }
}

const fn temporal(
    name: &'static str,
    data_type: i32,
    subcode: i32,
    size: i32,
    prefix: &'static str,
) -> TypeRow {
    TypeRow {
        sql_data_type: DATETIME,
        datetime_subcode: Some(subcode),
        column_size: Some(size),
        ..quoted(name, data_type, prefix)
    }
}
