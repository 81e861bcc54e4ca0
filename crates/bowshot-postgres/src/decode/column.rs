//! A column that is filled value by value.

use super::numeric::Numerics;
use super::{array, binary, text};
use crate::encode::{Kind, PgType};
use crate::frontend_messages::Format;
use crate::status::Failure;
use arrow::array::timezone::Tz;
use arrow::array::{
    Array, ArrayRef, BinaryBuilder, BooleanBuilder, Date32Builder, Float32Builder, Float64Builder,
    Int16Builder, Int32Builder, Int64Builder, IntervalMonthDayNanoBuilder, ListArray, StringBuilder,
    Time64MicrosecondBuilder, TimestampMicrosecondBuilder,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, IntervalMonthDayNano};
use std::sync::Arc;

pub(crate) struct Column {
    values: Values,
    /// The type of the finished column.
    target: Option<DataType>,
    /// The time zone of instants whose text names none; `None` is UTC.
    zone: Option<Tz>,
}

pub(super) enum Values {
    Bool(BooleanBuilder),
    Int2(Int16Builder),
    Int4(Int32Builder),
    Int8(Int64Builder),
    Oid(Int64Builder),
    Float4(Float32Builder),
    Float8(Float64Builder),
    Numeric(Numerics),
    Text(StringBuilder),
    Json(StringBuilder),
    Jsonb(StringBuilder),
    Bytea(BinaryBuilder),
    Date(Date32Builder),
    Time(Time64MicrosecondBuilder),
    Timestamp(TimestampMicrosecondBuilder),
    Timestamptz(TimestampMicrosecondBuilder),
    Interval(IntervalMonthDayNanoBuilder),
    /// As canonical text, which is what UUIDs are in Bowshot.
    Uuid(StringBuilder),
    List(List),
}

/// Lists: where each ends, whether it is valid, and all their elements.
pub(super) struct List {
    ends: Vec<usize>,
    there: Vec<bool>,
    pub(super) element: u32,
    pub(super) items: Box<Column>,
    pub(super) count: usize,
}

impl Column {
    /// A column of a PostgreSQL type, which [`Column::finish`] converts to `target`.
    pub(crate) fn new(kind: PgType, target: Option<DataType>) -> Self {
        let values = match kind.kind {
            _ if kind.is_array => Values::List(List {
                ends: Vec::new(),
                there: Vec::new(),
                element: kind.element_oid(),
                items: Box::new(Self::new(PgType::scalar(kind.kind), None)),
                count: 0,
            }),
            Kind::Bool => Values::Bool(BooleanBuilder::new()),
            Kind::Int2 => Values::Int2(Int16Builder::new()),
            Kind::Int4 => Values::Int4(Int32Builder::new()),
            Kind::Int8 => Values::Int8(Int64Builder::new()),
            Kind::Oid => Values::Oid(Int64Builder::new()),
            Kind::Float4 => Values::Float4(Float32Builder::new()),
            Kind::Float8 => Values::Float8(Float64Builder::new()),
            Kind::Numeric => Values::Numeric(Numerics::default()),
            Kind::Text => Values::Text(StringBuilder::new()),
            Kind::Json => Values::Json(StringBuilder::new()),
            Kind::Jsonb => Values::Jsonb(StringBuilder::new()),
            Kind::Bytea => Values::Bytea(BinaryBuilder::new()),
            Kind::Date => Values::Date(Date32Builder::new()),
            Kind::Time => Values::Time(Time64MicrosecondBuilder::new()),
            Kind::Timestamp => Values::Timestamp(TimestampMicrosecondBuilder::new()),
            Kind::Timestamptz => {
                Values::Timestamptz(TimestampMicrosecondBuilder::new().with_timezone("+00:00"))
            }
            Kind::Interval => Values::Interval(IntervalMonthDayNanoBuilder::new()),
            Kind::Uuid => Values::Uuid(StringBuilder::new()),
        };
        Self { values, target, zone: None }
    }

    /// The same in the time zone of a session.
    pub(crate) fn in_zone(mut self, zone: Option<Tz>) -> Self {
        if let Values::List(list) = &mut self.values {
            list.items.zone = zone;
        }
        self.zone = zone;
        self
    }

    /// Reads one value; `None` is null.
    pub(crate) fn push(&mut self, value: Option<&[u8]>, format: Format) -> Result<(), Failure> {
        match (value, format) {
            (None, _) => {
                self.values.push_null();
                Ok(())
            }
            (Some(bytes), Format::Binary) => binary::push(&mut self.values, bytes),
            (Some(bytes), Format::Text) => {
                let text =
                    std::str::from_utf8(bytes).map_err(|_| Failure::new("22021", "a text is not UTF-8"))?;
                text::push(&mut self.values, text, self.zone)
            }
        }
    }

    /// The column as an array.
    pub(crate) fn finish(self) -> Result<ArrayRef, Failure> {
        let array = self.values.finish()?;
        match self.target {
            Some(target) if &target != array.data_type() => {
                let strict = CastOptions { safe: false, ..CastOptions::default() };
                cast_with_options(&array, &target, &strict).map_err(|error| {
                    Failure::new("22P02", format!("a value does not fit its column: {error}"))
                })
            }
            _ => Ok(array),
        }
    }
}

impl Values {
    fn push_null(&mut self) {
        match self {
            Self::Bool(builder) => builder.append_null(),
            Self::Int2(builder) => builder.append_null(),
            Self::Int4(builder) => builder.append_null(),
            Self::Int8(builder) | Self::Oid(builder) => builder.append_null(),
            Self::Float4(builder) => builder.append_null(),
            Self::Float8(builder) => builder.append_null(),
            Self::Numeric(numbers) => numbers.push_null(),
            Self::Text(builder) | Self::Json(builder) | Self::Jsonb(builder) | Self::Uuid(builder) => {
                builder.append_null();
            }
            Self::Bytea(builder) => builder.append_null(),
            Self::Date(builder) => builder.append_null(),
            Self::Time(builder) => builder.append_null(),
            Self::Timestamp(builder) | Self::Timestamptz(builder) => builder.append_null(),
            Self::Interval(builder) => builder.append_null(),
            Self::List(list) => list.end(false),
        }
    }

    fn finish(self) -> Result<ArrayRef, Failure> {
        Ok(match self {
            Self::Bool(mut builder) => Arc::new(builder.finish()),
            Self::Int2(mut builder) => Arc::new(builder.finish()),
            Self::Int4(mut builder) => Arc::new(builder.finish()),
            Self::Int8(mut builder) | Self::Oid(mut builder) => Arc::new(builder.finish()),
            Self::Float4(mut builder) => Arc::new(builder.finish()),
            Self::Float8(mut builder) => Arc::new(builder.finish()),
            Self::Numeric(numbers) => numbers.finish()?,
            Self::Text(mut builder)
            | Self::Json(mut builder)
            | Self::Jsonb(mut builder)
            | Self::Uuid(mut builder) => Arc::new(builder.finish()),
            Self::Bytea(mut builder) => Arc::new(builder.finish()),
            Self::Date(mut builder) => Arc::new(builder.finish()),
            Self::Time(mut builder) => Arc::new(builder.finish()),
            Self::Timestamp(mut builder) | Self::Timestamptz(mut builder) => Arc::new(builder.finish()),
            Self::Interval(mut builder) => Arc::new(builder.finish()),
            Self::List(list) => Arc::new(list.finish()?),
        })
    }

    /// Adds an interval in PostgreSQL's units.
    pub(super) fn push_interval(
        builder: &mut IntervalMonthDayNanoBuilder,
        (months, days, micros): (i32, i32, i64),
    ) -> Result<(), Failure> {
        let nanos =
            micros.checked_mul(1_000).ok_or_else(|| Failure::new("22008", "interval out of range"))?;
        builder.append_value(IntervalMonthDayNano::new(months, days, nanos));
        Ok(())
    }

    /// Adds a list.
    pub(super) fn push_list(
        list: &mut List,
        items: impl Iterator<Item = Result<Option<array::Item>, Failure>>,
        format: Format,
    ) -> Result<(), Failure> {
        for item in items {
            list.items.push(item?.as_deref(), format)?;
            list.count += 1;
        }
        list.end(true);
        Ok(())
    }
}

/// A UUID in its canonical form.
pub(super) fn canonical(bytes: [u8; 16]) -> String {
    let digits = format!("{:032x}", u128::from_be_bytes(bytes));
    let part = |range| digits.get(range).unwrap_or_default();
    [part(0..8), part(8..12), part(12..16), part(16..20), part(20..32)].join("-")
}

impl List {
    fn end(&mut self, there: bool) {
        self.ends.push(self.count);
        self.there.push(there);
    }

    fn finish(self) -> Result<ListArray, Failure> {
        let items = self.items.finish()?;
        let lengths = self.ends.iter().scan(0, |before, end| {
            let length = end - *before;
            *before = *end;
            Some(length)
        });
        if i32::try_from(self.count).is_err() {
            return Err(Failure::new("54000", "the lists of a column have too many elements"));
        }
        let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
        ListArray::try_new(
            field,
            OffsetBuffer::from_lengths(lengths),
            items,
            Some(NullBuffer::from(self.there)),
        )
        .map_err(|error| Failure::new("XX000", format!("lists make no column: {error}")))
    }
}
