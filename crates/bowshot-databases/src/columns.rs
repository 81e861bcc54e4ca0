//! Columns of tables of other databases: what is asked for, how it comes, what it is here, and what may be compared there.

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use std::sync::Arc;

/// A column of a table.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    /// Name and type here. It may have nulls, whatever most databases say.
    pub(crate) field: FieldRef,
    /// The expression that gives its values.
    pub(crate) sent: String,
    /// Its name as it is written there.
    pub(crate) named: String,
    /// How its values come.
    pub(crate) given: Given,
    pub(crate) compares: Compares,
    /// Its type there, as the database calls it: what rows that are added are cast to.
    pub(crate) declared: String,
    /// A constant of its type, where types are taken from values.
    pub(crate) witness: &'static str,
}

/// How a driver gives the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Given {
    /// As they are here.
    AsIs,
    /// As the text of a decimal.
    DecimalText,
    /// As 0 and 1.
    Numbers,
    /// As the hexadecimal digits of its bytes; anything else is no such value.
    Digits,
    /// As a point in time with another name for UTC, or with another unit.
    Moment,
    /// As days of which some stand for what is no day.
    FiniteDays,
    /// As microseconds of which some stand for what is no moment.
    FiniteMicros,
}

/// Which conditions mean the same in the database as here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compares {
    /// IS NULL alone.
    Nothing,
    /// All comparisons: whole numbers, decimals, days, moments, truth values.
    All,
    /// Texts whose equality is that of their bytes. Their order depends on a collation.
    EqualTexts,
    /// Texts of which more may be equal there than here.
    CoarseTexts,
    /// Texts whose bytes, when they are asked for, have the equality and the order of here.
    ByteTexts,
    /// Days and moments among which there may be some that are none.
    Days,
    /// Floating-point numbers: NaN and the two zeros are not everywhere the same.
    Floats,
}

impl Column {
    /// A column that comes as it is.
    pub(crate) fn plain(name: &str, named: &str, data_type: DataType, compares: Compares) -> Self {
        Self {
            field: Arc::new(Field::new(name, data_type, true)),
            sent: named.to_owned(),
            named: named.to_owned(),
            given: Given::AsIs,
            compares,
            declared: String::new(),
            witness: "NULL",
        }
    }

    /// The same with another expression for its values.
    pub(crate) fn sent_as(self, sent: String) -> Self {
        Self { sent, ..self }
    }

    pub(crate) fn given_as(self, given: Given) -> Self {
        Self { given, ..self }
    }

    /// The same without nulls. One that comes nevertheless is an error.
    pub(crate) fn never_null(self) -> Self {
        let field = self.field.as_ref().clone().with_nullable(false);
        Self { field: Arc::new(field), ..self }
    }

    pub(crate) fn witnessed_by(self, witness: &'static str) -> Self {
        Self { witness, ..self }
    }

    pub(crate) fn declared_as(self, declared: &str) -> Self {
        Self { declared: declared.to_owned(), ..self }
    }
}

/// The columns as a schema.
pub(crate) fn schema(columns: &[Column]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(|column| Arc::clone(&column.field)).collect::<Fields>()))
}

/// A point in time in UTC.
pub(crate) fn utc() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// A column with the type that a driver gives; `None` for types that are not taken from drivers.
pub(crate) fn of_driver(name: &str, named: &str, given: &DataType) -> Option<Column> {
    use DataType as T;
    let column = |data_type: T, compares| Column::plain(name, named, data_type, compares);
    Some(match given {
        T::Int8 | T::Int16 | T::Int32 | T::Int64 | T::UInt8 | T::UInt16 | T::UInt32 | T::UInt64 => {
            column(given.clone(), Compares::All)
        }
        T::Boolean | T::Date32 | T::Decimal128(..) => column(given.clone(), Compares::All),
        T::Timestamp(TimeUnit::Microsecond, None) => column(given.clone(), Compares::All),
        T::Timestamp(_, None) => column(given.clone(), Compares::Nothing),
        T::Timestamp(_, Some(_)) => column(utc(), Compares::All).given_as(Given::Moment),
        T::Float32 | T::Float64 => column(given.clone(), Compares::Floats),
        T::Utf8 | T::LargeUtf8 | T::Utf8View => column(T::Utf8, Compares::CoarseTexts),
        T::Time32(_) | T::Time64(_) | T::Binary | T::LargeBinary | T::FixedSizeBinary(_) | T::Interval(_) => {
            column(given.clone(), Compares::Nothing)
        }
        T::Decimal256(..) | T::Duration(_) | T::Date64 | T::Float16 => {
            column(given.clone(), Compares::Nothing)
        }
        T::List(_) | T::LargeList(_) | T::Struct(_) | T::FixedSizeList(..) if is_carried(given) => {
            column(given.clone(), Compares::Nothing)
        }
        _ => return None,
    })
}

/// Whether values of a type are taken as they are inside of others.
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
