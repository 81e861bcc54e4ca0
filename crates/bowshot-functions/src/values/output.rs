//! Builders of result arrays.

use super::Arguments;
use arrow::array::{
    ArrayBuilder, ArrayRef, BinaryBuilder, BooleanBuilder, Date32Builder, Float64Builder, Int64Builder,
    IntervalMonthDayNanoBuilder, ListBuilder, StringBuilder, Time64NanosecondBuilder,
    TimestampMicrosecondBuilder,
};
use arrow::datatypes::IntervalMonthDayNano;
use datafusion::common::{DataFusionError, Result};
use std::marker::PhantomData;
use std::sync::Arc;

/// What a function may give for a row: a value, perhaps none, perhaps an error.
pub(crate) trait Cell<T> {
    fn cell(self) -> Result<Option<T>>;
}

impl<T> Cell<T> for T {
    fn cell(self) -> Result<Option<T>> {
        Ok(Some(self))
    }
}

impl<T> Cell<T> for Option<T> {
    fn cell(self) -> Result<Option<T>> {
        Ok(self)
    }
}

impl<T> Cell<T> for Result<T, DataFusionError> {
    fn cell(self) -> Result<Option<T>> {
        self.map(Some)
    }
}

impl<T> Cell<T> for Result<Option<T>, DataFusionError> {
    fn cell(self) -> Result<Option<T>> {
        self
    }
}

/// An array in the making.
pub(crate) trait Output {
    type Item;
    fn new(rows: usize) -> Self;
    fn push(&mut self, arguments: &Arguments, value: Option<Self::Item>) -> Result<()>;
    fn finish(self) -> ArrayRef;
}

/// Outputs whose values have a fixed width.
macro_rules! fixed {
    ($($(#[$doc:meta])* $name:ident, $item:ty, $builder:ident $(.$with:ident($given:literal))?;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name($builder);

        impl Output for $name {
            type Item = $item;

            fn new(rows: usize) -> Self {
                Self($builder::with_capacity(rows)$(.$with($given))?)
            }

            fn push(&mut self, _arguments: &Arguments, value: Option<$item>) -> Result<()> {
                self.0.append_option(value);
                Ok(())
            }

            fn finish(mut self) -> ArrayRef {
                Arc::new(self.0.finish())
            }
        }
    )*};
}

fixed! {
    Int64, i64, Int64Builder;
    Real, f64, Float64Builder;
    Flag, bool, BooleanBuilder;
    Days, i32, Date32Builder;
    Nanos, i64, Time64NanosecondBuilder;
    Stamps, i64, TimestampMicrosecondBuilder;
    /// Microseconds since 1970 in UTC.
    Moments, i64, TimestampMicrosecondBuilder.with_timezone("UTC");
    Lapse, IntervalMonthDayNano, IntervalMonthDayNanoBuilder;
}

/// Text that is made for each row.
pub(crate) type Str = Texts<String>;
/// Text that is a part of what was given.
pub(crate) type Slice<'a> = Texts<&'a str>;

pub(crate) struct Texts<T>(StringBuilder, PhantomData<T>);

impl<T: AsRef<str>> Output for Texts<T> {
    type Item = T;

    fn new(_rows: usize) -> Self {
        Self(StringBuilder::new(), PhantomData)
    }

    fn push(&mut self, arguments: &Arguments, value: Option<T>) -> Result<()> {
        if let Some(value) = &value {
            arguments.check_size(self.0.values_slice().len().saturating_add(value.as_ref().len()))?;
        }
        self.0.append_option(value);
        Ok(())
    }

    fn finish(mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

pub(crate) struct Blob(BinaryBuilder);

impl Output for Blob {
    type Item = Vec<u8>;

    fn new(_rows: usize) -> Self {
        Self(BinaryBuilder::new())
    }

    fn push(&mut self, arguments: &Arguments, value: Option<Vec<u8>>) -> Result<()> {
        if let Some(value) = &value {
            arguments.check_size(self.0.values_slice().len().saturating_add(value.len()))?;
        }
        self.0.append_option(value);
        Ok(())
    }

    fn finish(mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

pub(crate) struct StrList(ListBuilder<StringBuilder>);

impl Output for StrList {
    type Item = Vec<Option<String>>;

    fn new(rows: usize) -> Self {
        Self(ListBuilder::with_capacity(StringBuilder::new(), rows))
    }

    fn push(&mut self, arguments: &Arguments, value: Option<Self::Item>) -> Result<()> {
        let Some(texts) = value else {
            self.0.append_null();
            return Ok(());
        };
        // Sixteen bytes for each text bound the offsets too.
        let bytes =
            self.0.values().values_slice().len().saturating_add(self.0.values().len().saturating_mul(16));
        arguments.check_size(texts.iter().flatten().map(String::len).fold(bytes, usize::saturating_add))?;
        for text in texts {
            self.0.values().append_option(text);
        }
        self.0.append(true);
        Ok(())
    }

    fn finish(mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}
