//! The Arrow type, and what is declared beyond it, for the name of a type in SQL.

use super::custom;
use super::declared::Declared;
use super::enums::EnumType;
use super::names::identifier;
use bowshot_api::Error;
use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, IntervalUnit, TimeUnit};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, BinaryLength, CharacterLength, DataType as SqlType, ExactNumberInfo, StructField,
    TimezoneInfo,
};
use std::sync::Arc;

/// Digits and scale of a number that says neither: unbounded in PostgreSQL, which Arrow has no place for.
pub(super) const PLAIN_DECIMAL: (u8, i8) = (38, 10);
/// Digits of a whole number of 128 bits.
pub(super) const DIGITS_OF_128_BITS: u8 = 39;
/// Digits of a second that a time has.
const DIGITS: u64 = 6;
/// The zone that instants are kept in.
const UTC: &str = "UTC";
/// How deep types may stand in one another.
const MAX_DEPTH: usize = 32;

/// Maps SQL type names to Arrow types.
#[derive(Debug, Clone, Copy)]
pub struct Types;

impl TypePlanner for Types {
    fn plan_type_field(&self, sql_type: &SqlType) -> Result<Option<FieldRef>> {
        self.field(sql_type, 0).map(|field| Some(Arc::new(field)))
    }
}

impl Types {
    pub(super) fn field(&self, sql_type: &SqlType, depth: usize) -> Result<Field> {
        if depth > MAX_DEPTH {
            return Err(refused(Error::invalid(format!(
                "types stand deeper than {MAX_DEPTH} in one another"
            ))));
        }
        if let Some(data_type) = whole_number(sql_type) {
            return Ok(plain(data_type));
        }
        Ok(match sql_type {
            SqlType::Nullable(inner) | SqlType::LowCardinality(inner) => return self.field(inner, depth + 1),
            SqlType::Custom(name, modifiers) => return custom::field(self, name, modifiers, depth),
            SqlType::Boolean | SqlType::Bool | SqlType::Bit(None | Some(1)) => plain(DataType::Boolean),
            SqlType::Real | SqlType::Float4 | SqlType::Float32 => plain(DataType::Float32),
            SqlType::Float(info) => plain(float(info)),
            SqlType::Double(_) | SqlType::DoublePrecision | SqlType::Float8 | SqlType::Float64 => {
                plain(DataType::Float64)
            }
            SqlType::Numeric(info) | SqlType::Decimal(info) | SqlType::Dec(info) => decimal(info)?,
            SqlType::BigNumeric(ExactNumberInfo::None) | SqlType::BigDecimal(ExactNumberInfo::None) => {
                plain(DataType::Decimal256(76, 38))
            }
            SqlType::BigNumeric(info) | SqlType::BigDecimal(info) => decimal(info)?,
            SqlType::Date | SqlType::Date32 => plain(DataType::Date32),
            SqlType::Interval { .. } => plain(DataType::Interval(IntervalUnit::MonthDayNano)),
            SqlType::JSON => json(&Declared::Json),
            SqlType::JSONB => json(&Declared::Jsonb),
            SqlType::Uuid => Declared::Uuid.field(DataType::Utf8),
            _ => match texts_and_bytes(sql_type).or_else(|| Self::times(sql_type)) {
                Some(field) => field?,
                None => self.nested(sql_type, depth)?,
            },
        })
    }

    /// `None` for types that are no times.
    fn times(sql_type: &SqlType) -> Option<Result<Field>> {
        Some(match sql_type {
            SqlType::Datetime(digits) | SqlType::TimestampNtz(digits) => timestamp(*digits, None),
            SqlType::Datetime64(digits, None) => timestamp(Some(*digits), None),
            SqlType::Datetime64(digits, Some(_)) => timestamp(Some(*digits), Some(UTC.into())),
            SqlType::Timestamp(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
                timestamp(*digits, None)
            }
            SqlType::Timestamp(digits, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone) => {
                timestamp(*digits, Some(UTC.into()))
            }
            SqlType::Time(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => time(*digits),
            SqlType::Time(..) => Err(refused(
                Error::unsupported("times of day with a time zone are not supported")
                    .with_hint("use TIME, or TIMESTAMP WITH TIME ZONE"),
            )),
            _ => return None,
        })
    }

    fn nested(&self, sql_type: &SqlType, depth: usize) -> Result<Field> {
        Ok(match sql_type {
            SqlType::Array(
                ArrayElemTypeDef::AngleBracket(item)
                | ArrayElemTypeDef::Parenthesis(item)
                | ArrayElemTypeDef::SquareBracket(item, None),
            ) => self.array(item, depth, DataType::List)?,
            SqlType::Array(ArrayElemTypeDef::SquareBracket(item, Some(length))) => {
                let length = i32::try_from(*length)
                    .map_err(|_| refused(Error::invalid(format!("an array cannot have {length} items"))))?;
                self.array(item, depth, |item| DataType::FixedSizeList(item, length))?
            }
            SqlType::Struct(parts, _) | SqlType::Tuple(parts) => self.structure(parts, depth)?,
            SqlType::Map(key, value) => map(self.part("key", key, depth)?, self.part("value", value, depth)?),
            SqlType::Enum(members, _) => EnumType::from_members(members).field(),
            other => return Err(unknown(other)),
        })
    }

    /// The type of an array, with what is declared for its items.
    pub(super) fn array(
        &self,
        item: &SqlType,
        depth: usize,
        array: impl FnOnce(FieldRef) -> DataType,
    ) -> Result<Field> {
        let of_item = self.field(item, depth + 1)?;
        let array = array(Arc::new(Field::new("item", of_item.data_type().clone(), true)));
        Ok(match Declared::of(&of_item).and_then(Declared::of_items) {
            Some(declared) => declared.field(array),
            None => with_labels(plain(array), item),
        })
    }

    /// A type within another. What is declared beyond it is not held against values there.
    pub(super) fn part(&self, name: &str, sql_type: &SqlType, depth: usize) -> Result<Field> {
        Ok(Field::new(name, self.field(sql_type, depth + 1)?.data_type().clone(), true))
    }

    fn structure(&self, parts: &[StructField], depth: usize) -> Result<Field> {
        let parts = parts.iter().enumerate().map(|(index, part)| {
            let name = part.field_name.as_ref().map_or_else(|| format!("c{index}"), identifier);
            self.part(&name, &part.field_type, depth)
        });
        Ok(plain(DataType::Struct(parts.collect::<Result<Fields>>()?)))
    }
}

/// The field of an array, with the labels that its elements are held against where they are of an enumerated type.
fn with_labels(array: Field, item: &SqlType) -> Field {
    match item {
        SqlType::Enum(members, _) => {
            Declared::Enum(EnumType::from_members(members)).field(array.data_type().clone())
        }
        SqlType::Array(
            ArrayElemTypeDef::AngleBracket(item)
            | ArrayElemTypeDef::Parenthesis(item)
            | ArrayElemTypeDef::SquareBracket(item, _),
        ) => with_labels(array, item),
        _ => array,
    }
}

/// Bits of the mantissa decide; FLOAT alone is the small one, as in DuckDB and MySQL. PostgreSQL's is another type by now.
fn float(info: &ExactNumberInfo) -> DataType {
    match info {
        ExactNumberInfo::Precision(bits) if *bits > 24 => DataType::Float64,
        _ => DataType::Float32,
    }
}

pub(super) fn plain(data_type: DataType) -> Field {
    Field::new("", data_type, true)
}

/// Text with Arrow's canonical mark.
fn json(declared: &Declared) -> Field {
    let field = declared.field(DataType::Utf8);
    let mut metadata = field.metadata().clone();
    metadata.insert("ARROW:extension:name".to_owned(), "arrow.json".to_owned());
    metadata.insert("ARROW:extension:metadata".to_owned(), String::new());
    field.with_metadata(metadata)
}

pub(super) fn map(key: Field, value: Field) -> Field {
    let entries = DataType::Struct(Fields::from(vec![key.with_nullable(false), value]));
    plain(DataType::Map(Arc::new(Field::new("entries", entries, false)), false))
}

fn whole_number(sql_type: &SqlType) -> Option<DataType> {
    Some(match sql_type {
        SqlType::TinyInt(_) => DataType::Int8,
        SqlType::SmallInt(_) | SqlType::Int2(_) | SqlType::Int16 => DataType::Int16,
        SqlType::Int(_) | SqlType::Integer(_) | SqlType::Int4(_) | SqlType::MediumInt(_) | SqlType::Int32 => {
            DataType::Int32
        }
        SqlType::BigInt(_) | SqlType::Int8(_) | SqlType::Int64 | SqlType::Signed | SqlType::SignedInteger => {
            DataType::Int64
        }
        SqlType::TinyIntUnsigned(_) | SqlType::UTinyInt | SqlType::UInt8 => DataType::UInt8,
        SqlType::SmallIntUnsigned(_) | SqlType::Int2Unsigned(_) | SqlType::USmallInt | SqlType::UInt16 => {
            DataType::UInt16
        }
        SqlType::IntUnsigned(_)
        | SqlType::IntegerUnsigned(_)
        | SqlType::Int4Unsigned(_)
        | SqlType::MediumIntUnsigned(_)
        | SqlType::UInt32 => DataType::UInt32,
        SqlType::BigIntUnsigned(_)
        | SqlType::Int8Unsigned(_)
        | SqlType::UBigInt
        | SqlType::UInt64
        | SqlType::Unsigned
        | SqlType::UnsignedInteger => DataType::UInt64,
        // 128 bits have 39 digits, one more than a decimal of that width.
        SqlType::HugeInt | SqlType::UHugeInt | SqlType::Int128 | SqlType::UInt128 => {
            DataType::Decimal256(DIGITS_OF_128_BITS, 0)
        }
        SqlType::Int256 | SqlType::UInt256 => DataType::Decimal256(DECIMAL256_MAX_PRECISION, 0),
        _ => return None,
    })
}

/// `None` for types that are neither.
fn texts_and_bytes(sql_type: &SqlType) -> Option<Result<Field>> {
    let length = |length: &Option<CharacterLength>| match length {
        Some(CharacterLength::IntegerLength { length, .. }) => Some(*length),
        Some(CharacterLength::Max) | None => None,
    };
    let limited = |length: Option<u64>, declared: fn(u64) -> Declared, data_type: DataType| match length {
        Some(0) => Err(refused(Error::invalid("the length of a type must be at least 1"))),
        Some(length) => Ok(declared(length).field(data_type)),
        None => Ok(plain(data_type)),
    };
    Some(match sql_type {
        SqlType::Varchar(given)
        | SqlType::Nvarchar(given)
        | SqlType::CharacterVarying(given)
        | SqlType::CharVarying(given) => limited(length(given), Declared::Varchar, DataType::Utf8),
        SqlType::Char(given) | SqlType::Character(given) => {
            limited(length(given), Declared::Char, DataType::Utf8)
        }
        SqlType::FixedString(length) => limited(Some(*length), Declared::Char, DataType::Utf8),
        SqlType::Text
        | SqlType::TinyText
        | SqlType::MediumText
        | SqlType::LongText
        | SqlType::String(_)
        | SqlType::Clob(_)
        | SqlType::CharacterLargeObject(_)
        | SqlType::CharLargeObject(_) => Ok(plain(DataType::Utf8)),
        SqlType::Binary(length) => limited(*length, Declared::Varbinary, DataType::Binary),
        SqlType::Varbinary(Some(BinaryLength::IntegerLength { length })) => {
            limited(Some(*length), Declared::Varbinary, DataType::Binary)
        }
        SqlType::Varbinary(_)
        | SqlType::Bytea
        | SqlType::Bytes(_)
        | SqlType::Blob(_)
        | SqlType::TinyBlob
        | SqlType::MediumBlob
        | SqlType::LongBlob => Ok(plain(DataType::Binary)),
        _ => return None,
    })
}

pub(super) fn decimal(info: &ExactNumberInfo) -> Result<Field> {
    let (precision, scale) = match *info {
        ExactNumberInfo::None => {
            return Ok(plain(DataType::Decimal128(PLAIN_DECIMAL.0, PLAIN_DECIMAL.1)));
        }
        ExactNumberInfo::Precision(precision) => (precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (precision, scale),
    };
    let fits = precision >= 1
        && precision <= u64::from(DECIMAL256_MAX_PRECISION)
        && scale.unsigned_abs() <= precision;
    match (u8::try_from(precision), i8::try_from(scale)) {
        (Ok(precision), Ok(scale)) if fits && precision <= DECIMAL128_MAX_PRECISION => {
            Ok(plain(DataType::Decimal128(precision, scale)))
        }
        (Ok(precision), Ok(scale)) if fits => Ok(plain(DataType::Decimal256(precision, scale))),
        _ => Err(refused(
            Error::invalid(format!("DECIMAL({precision}, {scale}) is not possible"))
                .with_hint("it has 1 to 76 digits, and not more of them behind the point"),
        )),
    }
}

/// A time stamp with so many digits of a second: those that fit no unit of Arrow's are rounded away.
pub(super) fn timestamp(digits: Option<u64>, zone: Option<Arc<str>>) -> Result<Field> {
    let unit = unit_of(digits)?;
    let instant = zone.is_some();
    let data_type = DataType::Timestamp(unit, zone);
    Ok(match digits.and_then(|digits| u32::try_from(digits).ok()) {
        Some(digits) if u64::from(digits) < DIGITS && instant => {
            Declared::TimestampTz(digits).field(data_type)
        }
        Some(digits) if u64::from(digits) < DIGITS => Declared::Timestamp(digits).field(data_type),
        _ => plain(data_type),
    })
}

fn time(digits: Option<u64>) -> Result<Field> {
    let data_type = DataType::Time64(unit_of(digits)?);
    Ok(match digits.and_then(|digits| u32::try_from(digits).ok()) {
        Some(digits) if u64::from(digits) < DIGITS => Declared::Time(digits).field(data_type),
        _ => plain(data_type),
    })
}

fn unit_of(digits: Option<u64>) -> Result<TimeUnit> {
    match digits.unwrap_or(DIGITS) {
        0..=DIGITS => Ok(TimeUnit::Microsecond),
        7..=9 => Ok(TimeUnit::Nanosecond),
        more => Err(refused(
            Error::invalid(format!("a second has no {more} digits")).with_hint("it has 0 to 9, 6 by default"),
        )),
    }
}

/// A type that there is none for, with what to use instead where that is known.
fn unknown(sql_type: &SqlType) -> DataFusionError {
    let hint = match sql_type {
        SqlType::Bit(_) | SqlType::BitVarying(_) | SqlType::VarBit(_) => "use BOOLEAN, VARCHAR or BYTEA",
        SqlType::DecimalUnsigned(_)
        | SqlType::DecUnsigned(_)
        | SqlType::FloatUnsigned(_)
        | SqlType::RealUnsigned
        | SqlType::DoubleUnsigned(_)
        | SqlType::DoublePrecisionUnsigned => "leave UNSIGNED out, and add CHECK (column >= 0)",
        SqlType::Array(_) => "say what its items are: `INTEGER[]`",
        SqlType::Set(_) => "use VARCHAR[]",
        SqlType::Union(_) => "use a STRUCT with a column for each type",
        _ => "the types are listed in docs/how-to/tables.md",
    };
    refused(Error::unsupported(format!("type {sql_type} is not supported")).with_hint(hint))
}

pub(super) fn refused(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
