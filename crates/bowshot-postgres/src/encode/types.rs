//! The table of types, from Arrow to PostgreSQL, with the OIDs of `pg_type`, and the types that clients may declare for
//! parameters. Documented in docs/reference/postgres.md.

use arrow::datatypes::{DataType, Field};
use bowshot_rowwire::encode::has_type;

/// A scalar type of PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Numeric,
    Text,
    Bytea,
    Date,
    Time,
    Timestamp,
    Timestamptz,
    Interval,
    Uuid,
    Json,
    /// As `Json`, with a byte for the version before its binary form.
    Jsonb,
    /// Only as parameters: an unsigned number of 32 bits.
    Oid,
}

/// Type, its identifier, that of its arrays, and the length of its binary form, -1 where it differs.
const KINDS: &[(Kind, u32, u32, i16)] = &[
    (Kind::Bool, 16, 1000, 1),
    (Kind::Bytea, 17, 1001, -1),
    (Kind::Int8, 20, 1016, 8),
    (Kind::Int2, 21, 1005, 2),
    (Kind::Int4, 23, 1007, 4),
    (Kind::Text, 25, 1009, -1),
    (Kind::Json, 114, 199, -1),
    (Kind::Float4, 700, 1021, 4),
    (Kind::Float8, 701, 1022, 8),
    (Kind::Date, 1082, 1182, 4),
    (Kind::Time, 1083, 1183, 8),
    (Kind::Timestamp, 1114, 1115, 8),
    (Kind::Timestamptz, 1184, 1185, 8),
    (Kind::Interval, 1186, 1187, 16),
    (Kind::Numeric, 1700, 1231, -1),
    (Kind::Uuid, 2950, 2951, 16),
    (Kind::Jsonb, 3802, 3807, -1),
    (Kind::Oid, 26, 1028, 4),
    // Texts of other names, for parameters: "char", name, bpchar, varchar, unknown. Columns are varchar too.
    (Kind::Text, 18, 1002, -1),
    (Kind::Text, 19, 1003, -1),
    (Kind::Text, 1042, 1014, -1),
    (Kind::Text, 1043, 1015, -1),
    (Kind::Text, 705, 0, -1),
];

/// Metadata of columns of the catalog that are `int2vector` or `oidvector`.
const VECTOR: &str = "bowshot:int2vector";
const OIDS: &str = "bowshot:oidvector";
/// Their types.
const INT2VECTOR: u32 = 22;
const OIDVECTOR: u32 = 30;
/// The OIDs of `varchar` and its array.
const VARCHAR: u32 = 1043;
const VARCHARS: u32 = 1015;

/// The PostgreSQL type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PgType {
    pub(crate) kind: Kind,
    pub(crate) is_array: bool,
    /// An `int2vector` or `oidvector`, written as `1 2`.
    pub(super) is_vector: bool,
    /// A text declared as VARCHAR.
    is_varchar: bool,
    modifier: i32,
}

impl PgType {
    /// The type of a column.
    pub(crate) fn from_field(field: &Field) -> Self {
        // Only lists: a cast to text keeps the metadata.
        if matches!(field.data_type(), DataType::List(_)) {
            if field.metadata().contains_key(VECTOR) {
                return Self { is_array: true, is_vector: true, ..Self::scalar(Kind::Int2) };
            }
            if field.metadata().contains_key(OIDS) {
                return Self { is_array: true, is_vector: true, ..Self::scalar(Kind::Int4) };
            }
        }
        match field.data_type() {
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::FixedSizeList(item, _) => Self::of_list(item),
            DataType::Dictionary(_, value) => {
                Self::from_field(&field.clone().with_data_type(value.as_ref().clone()))
            }
            DataType::RunEndEncoded(_, values) => {
                Self::from_field(&field.clone().with_data_type(values.data_type().clone()))
            }
            data_type => {
                let kind = kind(field);
                let is_varchar = kind == Kind::Text && has_type(field, "varchar");
                Self { modifier: modifier(data_type), is_varchar, ..Self::scalar(kind) }
            }
        }
    }

    /// Lists of lists are JSON, since arrays of PostgreSQL are rectangular.
    fn of_list(item: &Field) -> Self {
        let item = Self::from_field(item);
        if item.is_array { Self::scalar(Kind::Json) } else { Self { is_array: true, ..item } }
    }

    /// A scalar type.
    pub(crate) fn scalar(kind: Kind) -> Self {
        Self { kind, is_array: false, is_vector: false, is_varchar: false, modifier: -1 }
    }

    /// The type with an OID, if its values can be read.
    pub(crate) fn from_oid(oid: u32) -> Option<Self> {
        KINDS.iter().find_map(|(kind, scalar, array, _)| {
            let is_array = *array == oid && oid != 0;
            (is_array || *scalar == oid).then_some(Self { is_array, ..Self::scalar(*kind) })
        })
    }

    pub(crate) fn oid(self) -> u32 {
        if self.is_vector {
            return if self.kind == Kind::Int2 { INT2VECTOR } else { OIDVECTOR };
        }
        if self.is_varchar {
            return if self.is_array { VARCHARS } else { VARCHAR };
        }
        let found = KINDS.iter().find(|(kind, ..)| *kind == self.kind);
        found.map_or(25, |(_, scalar, array, _)| if self.is_array { *array } else { *scalar })
    }

    /// The identifier of the type of the elements.
    pub(crate) fn element_oid(self) -> u32 {
        Self { is_array: false, is_vector: false, ..self }.oid()
    }

    pub(crate) fn length(self) -> i16 {
        let found = KINDS.iter().find(|(kind, ..)| *kind == self.kind && !self.is_array);
        found.map_or(-1, |(.., length)| *length)
    }

    pub(crate) fn modifier(self) -> i32 {
        self.modifier
    }
}

fn kind(field: &Field) -> Kind {
    match field.data_type() {
        DataType::Boolean => Kind::Bool,
        DataType::Int8 | DataType::UInt8 | DataType::Int16 => Kind::Int2,
        DataType::UInt16 | DataType::Int32 => Kind::Int4,
        DataType::UInt32 | DataType::Int64 => Kind::Int8,
        DataType::Float16 | DataType::Float32 => Kind::Float4,
        DataType::Float64 => Kind::Float8,
        DataType::UInt64
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => Kind::Numeric,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View if has_type(field, "jsonb") => Kind::Jsonb,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View if has_type(field, "json") => Kind::Json,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View if has_type(field, "uuid") => Kind::Uuid,
        DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Kind::Text,
        DataType::FixedSizeBinary(16) if has_type(field, "uuid") => Kind::Uuid,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            Kind::Bytea
        }
        DataType::Date32 | DataType::Date64 => Kind::Date,
        DataType::Time32(_) | DataType::Time64(_) => Kind::Time,
        DataType::Timestamp(_, None) => Kind::Timestamp,
        DataType::Timestamp(_, Some(_)) => Kind::Timestamptz,
        DataType::Duration(_) | DataType::Interval(_) => Kind::Interval,
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

/// Precision and scale of a numeric, as `atttypmod` has them.
fn modifier(data_type: &DataType) -> i32 {
    match data_type {
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale)
            if *scale >= 0 =>
        {
            ((i32::from(*precision) << 16) | i32::from(*scale)) + 4
        }
        _ => -1,
    }
}
