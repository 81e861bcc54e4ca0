//! The table of types, from Arrow to MySQL ("Column Definition", `enum_field_types` in MySQL's `field_types.h`). Documented
//! in docs/reference/mysql.md.

use crate::server_packets::{BINARY, UTF8MB4};
use arrow::datatypes::{DataType, Field, TimeUnit};
use bowshot_rowwire::encode::has_type;

/// A type of MySQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// TINYINT(1), MySQL's truth value.
    Bool,
    Tiny,
    Short,
    Long,
    LongLong,
    Float,
    Double,
    Decimal,
    Null,
    Text,
    Bytes,
    Date,
    Time,
    Datetime,
    /// A timestamp in the time zone of the session.
    Timestamp,
    Json,
}

/// The type of a column, as its definition is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ColumnType {
    pub(crate) kind: Kind,
    is_unsigned: bool,
    is_not_null: bool,
    /// Digits of a decimal, or of fractions of seconds.
    digits: u8,
    decimals: u8,
}

const NOT_NULL: u16 = 1;
const BLOB: u16 = 1 << 4;
const UNSIGNED: u16 = 1 << 5;
const BINARY_COMPARED: u16 = 1 << 7;
/// "Any number of decimals."
const NOT_FIXED: u8 = 31;
/// Characters of a VARCHAR, four bytes each.
const TEXT_BYTES: u32 = 65_535 * 4;

impl ColumnType {
    /// The type of a column.
    pub(crate) fn from_field(field: &Field) -> Self {
        let kind = kind(field);
        let (digits, decimals) = match field.data_type() {
            DataType::Dictionary(_, value) => {
                return Self::from_field(&field.clone().with_data_type(value.as_ref().clone()));
            }
            DataType::RunEndEncoded(_, values) => {
                return Self::from_field(&field.clone().with_data_type(values.data_type().clone()));
            }
            DataType::Decimal32(precision, scale)
            | DataType::Decimal64(precision, scale)
            | DataType::Decimal128(precision, scale)
            | DataType::Decimal256(precision, scale) => decimal(*precision, *scale),
            DataType::Time32(unit)
            | DataType::Time64(unit)
            | DataType::Timestamp(unit, _)
            | DataType::Duration(unit) => (0, fraction(*unit)),
            DataType::Float16 | DataType::Float32 | DataType::Float64 => (0, NOT_FIXED),
            _ => (0, 0),
        };
        Self {
            kind,
            is_unsigned: field.data_type().is_unsigned_integer(),
            is_not_null: !field.is_nullable(),
            digits,
            decimals,
        }
    }

    /// A parameter, whose type is unknown.
    pub(crate) const ANY: Self =
        Self { kind: Kind::Text, is_unsigned: false, is_not_null: false, digits: 0, decimals: 0 };

    pub(crate) fn code(self) -> u8 {
        match self.kind {
            Kind::Bool | Kind::Tiny => 1,
            Kind::Short => 2,
            Kind::Long => 3,
            Kind::Float => 4,
            Kind::Double => 5,
            Kind::Null => 6,
            Kind::Timestamp => 7,
            Kind::LongLong => 8,
            Kind::Date => 10,
            Kind::Time => 11,
            Kind::Datetime => 12,
            Kind::Json => 245,
            Kind::Decimal => 246,
            Kind::Bytes => 252,
            Kind::Text => 253,
        }
    }

    /// The type as a column of a table is declared.
    pub(crate) fn sql(self) -> String {
        let decimals = if self.decimals == 0 { String::new() } else { format!("({})", self.decimals) };
        let name = match self.kind {
            Kind::Bool => "tinyint(1)".to_owned(),
            Kind::Tiny => "tinyint".to_owned(),
            Kind::Short => "smallint".to_owned(),
            Kind::Long => "int".to_owned(),
            Kind::LongLong => "bigint".to_owned(),
            Kind::Float => "float".to_owned(),
            Kind::Double => "double".to_owned(),
            Kind::Decimal => format!("decimal({},{})", self.digits, self.decimals),
            Kind::Null | Kind::Text => "text".to_owned(),
            Kind::Bytes => "longblob".to_owned(),
            Kind::Date => "date".to_owned(),
            Kind::Time => format!("time{decimals}"),
            Kind::Datetime => format!("datetime{decimals}"),
            Kind::Timestamp => format!("timestamp{decimals}"),
            Kind::Json => "json".to_owned(),
        };
        if self.is_unsigned { format!("{name} unsigned") } else { name }
    }

    pub(crate) fn character_set(self) -> u16 {
        if self.kind == Kind::Text { UTF8MB4 } else { BINARY }
    }

    /// The longest text of a value.
    pub(crate) fn length(self) -> u32 {
        let fraction = if self.decimals == 0 { 0 } else { u32::from(self.decimals) + 1 };
        match self.kind {
            Kind::Bool => 1,
            Kind::Null => 0,
            Kind::Tiny => 4,
            Kind::Short => 6,
            Kind::Long => 11,
            Kind::LongLong => 20,
            Kind::Float => 12,
            Kind::Double => 22,
            Kind::Decimal => u32::from(self.digits) + 2,
            Kind::Text => TEXT_BYTES,
            Kind::Bytes | Kind::Json => u32::MAX,
            Kind::Date => 10,
            Kind::Time => 10 + fraction,
            Kind::Datetime | Kind::Timestamp => 19 + fraction,
        }
    }

    pub(crate) fn flags(self) -> u16 {
        let mut flags = match self.kind {
            Kind::Bytes | Kind::Json => BLOB | BINARY_COMPARED,
            Kind::Date | Kind::Time | Kind::Datetime | Kind::Timestamp => BINARY_COMPARED,
            // Not for numbers: with the flag, clients take a truth value for bytes.
            _ => 0,
        };
        if self.is_unsigned {
            flags |= UNSIGNED;
        }
        if self.is_not_null {
            flags |= NOT_NULL;
        }
        flags
    }

    pub(crate) fn decimals(self) -> u8 {
        self.decimals
    }
}

fn kind(field: &Field) -> Kind {
    match field.data_type() {
        DataType::Null => Kind::Null,
        DataType::Boolean => Kind::Bool,
        DataType::Int8 | DataType::UInt8 => Kind::Tiny,
        DataType::Int16 | DataType::UInt16 => Kind::Short,
        DataType::Int32 | DataType::UInt32 => Kind::Long,
        DataType::Int64 | DataType::UInt64 => Kind::LongLong,
        DataType::Float16 | DataType::Float32 => Kind::Float,
        DataType::Float64 => Kind::Double,
        DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => Kind::Decimal,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
            if has_type(field, "json") || has_type(field, "jsonb") =>
        {
            Kind::Json
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Interval(_) => Kind::Text,
        DataType::FixedSizeBinary(16) if has_type(field, "uuid") => Kind::Text,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            Kind::Bytes
        }
        DataType::Date32 | DataType::Date64 => Kind::Date,
        DataType::Time32(_) | DataType::Time64(_) | DataType::Duration(_) => Kind::Time,
        DataType::Timestamp(_, None) => Kind::Datetime,
        DataType::Timestamp(_, Some(_)) => Kind::Timestamp,
        DataType::Struct(_)
        | DataType::Map(..)
        | DataType::Union(..)
        | DataType::List(_)
        | DataType::LargeList(_)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::FixedSizeList(..)
        | DataType::Dictionary(..)
        | DataType::RunEndEncoded(..) => Kind::Json,
    }
}

/// A negative scale means zeros before the point.
fn decimal(precision: u8, scale: i8) -> (u8, u8) {
    match u8::try_from(scale) {
        Ok(scale) => (precision.max(scale), scale),
        Err(_) => (precision.saturating_add(scale.unsigned_abs()), 0),
    }
}

/// Digits of fractions of seconds.
pub(super) fn fraction(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond | TimeUnit::Nanosecond => 6,
    }
}
