//! Columns of tables of other databases: their type here, the expression that is selected, how values are encoded, and which comparisons
//! can be pushed down.

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use std::sync::Arc;

/// A column of a table.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    /// Name and type here. Nullable in most cases, whatever the database declares.
    pub(crate) field: FieldRef,
    /// The expression that selects its values.
    pub(crate) sent: String,
    /// Its quoted name.
    pub(crate) named: String,
    pub(crate) given: ValueEncoding,
    pub(crate) compares: Comparison,
    /// Its declared type in the database, to which inserted values are cast.
    pub(crate) declared: String,
    /// A constant of its type, for SQLite's driver, which takes types from values.
    pub(crate) witness: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueEncoding {
    /// Arrow values of the type of the column.
    AsIs,
    DecimalText,
    /// Booleans as 0 and 1.
    Numbers,
    /// Bytes as hexadecimal digits.
    Digits,
    /// Timestamps with another name for UTC, or in another unit.
    Moment,
    /// Days, some of which stand for `infinity`.
    FiniteDays,
    /// Microseconds, some of which stand for `infinity`.
    FiniteMicros,
}

/// Which comparisons mean the same in the database as here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// Only IS NULL.
    Nothing,
    /// All comparisons: integers, decimals, dates, timestamps, booleans.
    All,
    /// Texts whose equality is that of their bytes. Their order depends on a collation.
    EqualTexts,
    /// Texts with a collation that may treat different texts as equal.
    CoarseTexts,
    /// Texts that are compared as here after a cast to bytes.
    ByteTexts,
    /// Dates and timestamps that may be invalid, such as `0000-00-00`.
    Days,
    /// Floating-point numbers: databases disagree on NaN and on the sign of zero.
    Floats,
}

impl Column {
    /// A column that is selected by its name.
    pub(crate) fn plain(name: &str, named: &str, data_type: DataType, compares: Comparison) -> Self {
        Self {
            field: Arc::new(Field::new(name, data_type, true)),
            sent: named.to_owned(),
            named: named.to_owned(),
            given: ValueEncoding::AsIs,
            compares,
            declared: String::new(),
            witness: "NULL",
        }
    }

    pub(crate) fn with_expression(self, sent: String) -> Self {
        Self { sent, ..self }
    }

    pub(crate) fn with_encoding(self, given: ValueEncoding) -> Self {
        Self { given, ..self }
    }

    /// The same without nulls: a null is an error when it is read.
    pub(crate) fn not_null(self) -> Self {
        let field = self.field.as_ref().clone().with_nullable(false);
        Self { field: Arc::new(field), ..self }
    }

    pub(crate) fn with_type_sample(self, witness: &'static str) -> Self {
        Self { witness, ..self }
    }

    pub(crate) fn with_declared_type(self, declared: &str) -> Self {
        Self { declared: declared.to_owned(), ..self }
    }
}

pub(crate) fn schema(columns: &[Column]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(|column| Arc::clone(&column.field)).collect::<Fields>()))
}

/// A timestamp in UTC.
pub(crate) fn utc() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// A column with the type of the driver; `None` for types that are read as text.
pub(crate) fn from_driver(name: &str, named: &str, given: &DataType) -> Option<Column> {
    use DataType as T;
    let column = |data_type: T, compares| Column::plain(name, named, data_type, compares);
    Some(match given {
        T::Int8 | T::Int16 | T::Int32 | T::Int64 | T::UInt8 | T::UInt16 | T::UInt32 | T::UInt64 => {
            column(given.clone(), Comparison::All)
        }
        T::Boolean | T::Date32 | T::Decimal128(..) => column(given.clone(), Comparison::All),
        T::Timestamp(TimeUnit::Microsecond, None) => column(given.clone(), Comparison::All),
        T::Timestamp(_, None) => column(given.clone(), Comparison::Nothing),
        T::Timestamp(_, Some(_)) => column(utc(), Comparison::All).with_encoding(ValueEncoding::Moment),
        T::Float32 | T::Float64 => column(given.clone(), Comparison::Floats),
        T::Utf8 | T::LargeUtf8 | T::Utf8View => column(T::Utf8, Comparison::CoarseTexts),
        T::Time32(_) | T::Time64(_) | T::Binary | T::LargeBinary | T::FixedSizeBinary(_) | T::Interval(_) => {
            column(given.clone(), Comparison::Nothing)
        }
        T::Decimal256(..) | T::Duration(_) | T::Date64 | T::Float16 => {
            column(given.clone(), Comparison::Nothing)
        }
        T::List(_) | T::LargeList(_) | T::Struct(_) | T::FixedSizeList(..) if is_carried(given) => {
            column(given.clone(), Comparison::Nothing)
        }
        _ => return None,
    })
}

/// Whether values of a type may be nested in others.
fn is_carried(data_type: &DataType) -> bool {
    use DataType as T;
    match data_type {
        T::List(inner) | T::LargeList(inner) | T::FixedSizeList(inner, _) => is_carried(inner.data_type()),
        T::Struct(fields) => fields.iter().all(|field| is_carried(field.data_type())),
        other => {
            other.is_primitive()
                || matches!(other, T::Utf8 | T::LargeUtf8 | T::Binary | T::LargeBinary | T::Boolean)
        }
    }
}
