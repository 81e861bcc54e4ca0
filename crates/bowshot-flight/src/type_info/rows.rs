//! The type table.

use arrow_flight::sql::XdbcDataType::{
    self, XdbcBigint, XdbcBit, XdbcDate, XdbcDatetime, XdbcDecimal, XdbcDouble, XdbcInteger, XdbcInterval,
    XdbcReal, XdbcSmallint, XdbcTime, XdbcTimestamp, XdbcTinyint, XdbcUnknownType, XdbcVarbinary,
    XdbcVarchar,
};
use arrow_flight::sql::XdbcDatetimeSubcode::{
    self, XdbcSubcodeTime, XdbcSubcodeTimestamp, XdbcSubcodeTimestampWithTimezone, XdbcSubcodeYear,
};
use arrow_flight::sql::metadata::XdbcTypeInfo;
use arrow_flight::sql::{Nullable, Searchable};

/// One type as `CommandGetXdbcTypeInfo` lists it.
#[derive(Debug, Clone, Copy)]
pub(super) struct TypeRow {
    pub(super) name: &'static str,
    /// Concise XDBC code.
    pub(super) data_type: XdbcDataType,
    /// Verbose XDBC code: `DATETIME` for the three temporal types, otherwise the same.
    pub(super) sql_data_type: XdbcDataType,
    pub(super) datetime_subcode: Option<XdbcDatetimeSubcode>,
    pub(super) column_size: Option<i32>,
    pub(super) literal_prefix: Option<&'static str>,
    pub(super) literal_suffix: Option<&'static str>,
    pub(super) create_params: &'static [&'static str],
    pub(super) case_sensitive: bool,
    /// Basic is every predicate but `LIKE`.
    pub(super) searchable: Searchable,
    /// `None` for everything but numbers.
    pub(super) unsigned: Option<bool>,
    /// Smallest and largest scale.
    pub(super) scales: Option<(i32, i32)>,
    pub(super) radix: Option<i32>,
}

impl TypeRow {
    pub(super) fn info(&self) -> XdbcTypeInfo {
        XdbcTypeInfo {
            type_name: self.name.to_owned(),
            data_type: self.data_type,
            column_size: self.column_size,
            literal_prefix: self.literal_prefix.map(str::to_owned),
            literal_suffix: self.literal_suffix.map(str::to_owned),
            create_params: Some(self.create_params.iter().map(|name| (*name).to_owned()).collect()),
            nullable: Nullable::NullabilityNullable,
            case_sensitive: self.case_sensitive,
            searchable: self.searchable,
            unsigned_attribute: self.unsigned,
            fixed_prec_scale: false,
            auto_increment: self.unsigned.map(|_| false),
            local_type_name: Some(self.name.to_owned()),
            minimum_scale: self.scales.map(|(minimum, _)| minimum),
            maximum_scale: self.scales.map(|(_, maximum)| maximum),
            sql_data_type: self.sql_data_type,
            datetime_subcode: self.datetime_subcode,
            num_prec_radix: self.radix,
            interval_precision: None,
        }
    }
}

/// Every type that a result of Bowshot can have.
pub(super) const TYPES: &[TypeRow] = &[
    TypeRow { column_size: Some(1), ..plain("BOOLEAN", XdbcBit) },
    integer("TINYINT", XdbcTinyint, 3, false),
    integer("TINYINT UNSIGNED", XdbcTinyint, 3, true),
    integer("SMALLINT", XdbcSmallint, 5, false),
    integer("SMALLINT UNSIGNED", XdbcSmallint, 5, true),
    integer("INTEGER", XdbcInteger, 10, false),
    integer("INTEGER UNSIGNED", XdbcInteger, 10, true),
    integer("BIGINT", XdbcBigint, 19, false),
    integer("BIGINT UNSIGNED", XdbcBigint, 20, true),
    TypeRow { scales: None, ..integer("REAL", XdbcReal, 7, false) },
    TypeRow { scales: None, ..integer("DOUBLE", XdbcDouble, 15, false) },
    TypeRow {
        create_params: &["precision", "scale"],
        scales: Some((0, 76)),
        ..integer("DECIMAL", XdbcDecimal, 76, false)
    },
    TypeRow {
        column_size: Some(i32::MAX),
        create_params: &["length"],
        case_sensitive: true,
        searchable: Searchable::Full,
        ..quoted("VARCHAR", XdbcVarchar, "'")
    },
    TypeRow { column_size: Some(i32::MAX), ..quoted("VARBINARY", XdbcVarbinary, "X'") },
    // Its subcode has the number of another name.
    temporal("DATE", XdbcDate, XdbcSubcodeYear, 10, "DATE '"),
    TypeRow { scales: Some((0, 9)), ..temporal("TIME", XdbcTime, XdbcSubcodeTime, 18, "TIME '") },
    TypeRow {
        scales: Some((0, 9)),
        ..temporal("TIMESTAMP", XdbcTimestamp, XdbcSubcodeTimestamp, 29, "TIMESTAMP '")
    },
    TypeRow {
        scales: Some((0, 9)),
        ..temporal(
            "TIMESTAMP WITH TIME ZONE",
            XdbcTimestamp,
            XdbcSubcodeTimestampWithTimezone,
            35,
            "TIMESTAMPTZ '",
        )
    },
    quoted("INTERVAL", XdbcInterval, "INTERVAL '"),
    plain("ARRAY", XdbcUnknownType),
    plain("MAP", XdbcUnknownType),
    plain("NULL", XdbcUnknownType),
    plain("STRUCT", XdbcUnknownType),
    plain("UNION", XdbcUnknownType),
];

const fn plain(name: &'static str, data_type: XdbcDataType) -> TypeRow {
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
        searchable: Searchable::Basic,
        unsigned: None,
        scales: None,
        radix: None,
    }
}

const fn integer(name: &'static str, data_type: XdbcDataType, digits: i32, unsigned: bool) -> TypeRow {
    TypeRow {
        column_size: Some(digits),
        unsigned: Some(unsigned),
        scales: Some((0, 0)),
        radix: Some(10),
        ..plain(name, data_type)
    }
}

const fn quoted(name: &'static str, data_type: XdbcDataType, prefix: &'static str) -> TypeRow {
    TypeRow { literal_prefix: Some(prefix), literal_suffix: Some("'"), ..plain(name, data_type) }
}

const fn temporal(
    name: &'static str,
    data_type: XdbcDataType,
    subcode: XdbcDatetimeSubcode,
    size: i32,
    prefix: &'static str,
) -> TypeRow {
    TypeRow {
        sql_data_type: XdbcDatetime,
        datetime_subcode: Some(subcode),
        column_size: Some(size),
        ..quoted(name, data_type, prefix)
    }
}
