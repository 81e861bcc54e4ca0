//! Arguments of a batch and the array that a function makes of them.
//!
//! A function names what it reads and what it writes (`map2::<Text, Int, Str, _>(arguments, |text, number| …)`); nulls give
//! null, constants are read from one row. Functions that look at nulls themselves use `fill` and readers.

mod output;
mod overload_resolution;
mod read;

pub(crate) use output::{
    Blob, Cell, Days, Flag, Int64, Lapse, Moments, Nanos, Output, Real, Slice, Stamps, Str, StrList,
};
pub(crate) use overload_resolution::{Kind, choose};
pub(crate) use read::{
    Bool, Bytes, Column, Date, Float, Int, Interval, Moment, Stamp, Text, Time, offset_at, offset_micros,
};

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_datafusion_err, exec_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use std::sync::Arc;

/// The most bytes of text that a function may make of one batch.
pub(crate) const MOST_BYTES: usize = 256 << 20;

#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) function: &'static str,
    pub(crate) rows: usize,
    pub(crate) config: Arc<ConfigOptions>,
    /// The type that the planner knows of the result.
    pub(crate) gives: DataType,
    columns: Vec<Given>,
}

#[derive(Debug)]
struct Given {
    array: ArrayRef,
    constant: bool,
}

impl Arguments {
    /// `constant`: one row stands for all.
    pub(crate) fn new(function: &'static str, args: ScalarFunctionArgs, constant: bool) -> Result<Self> {
        let columns = args.args.into_iter().map(|value| match value {
            ColumnarValue::Array(array) => Ok(Given { array, constant: false }),
            ColumnarValue::Scalar(scalar) => Ok(Given { array: scalar.to_array()?, constant: true }),
        });
        Ok(Self {
            function,
            rows: if constant { 1 } else { args.number_rows },
            config: args.config_options,
            gives: args.return_field.data_type().clone(),
            columns: columns.collect::<Result<_>>()?,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.columns.len()
    }

    fn given(&self, position: usize) -> Result<&Given> {
        self.columns.get(position).ok_or_else(|| {
            exec_datafusion_err!("argument {} of `{}` is missing", position + 1, self.function)
        })
    }

    /// The argument as the array that it is: of one row if it is constant.
    pub(crate) fn array(&self, position: usize) -> Result<&ArrayRef> {
        Ok(&self.given(position)?.array)
    }

    pub(crate) fn full(&self, position: usize) -> Result<ArrayRef> {
        let given = self.given(position)?;
        if !given.constant || self.rows == 1 {
            return Ok(Arc::clone(&given.array));
        }
        let indices = arrow::array::UInt32Array::from_value(0, self.rows);
        Ok(arrow::compute::take(&given.array, &indices, None)?)
    }

    pub(crate) fn data_type(&self, position: usize) -> Result<&DataType> {
        Ok(self.given(position)?.array.data_type())
    }

    pub(crate) fn read<'a, C: Column<'a>>(&'a self, position: usize) -> Result<Rows<'a, C>> {
        let given = self.given(position)?;
        Ok(Rows { reader: C::open(&given.array)?, constant: given.constant })
    }

    /// Reads an argument that may be left out.
    pub(crate) fn read_if_given<'a, C: Column<'a>>(&'a self, position: usize) -> Result<Option<Rows<'a, C>>> {
        if position < self.len() { self.read(position).map(Some) } else { Ok(None) }
    }

    /// The dialect of the session, in lower case.
    pub(crate) fn is_mysql(&self) -> bool {
        self.config.sql_parser.dialect.to_string().eq_ignore_ascii_case("mysql")
    }

    /// Refuses a text of so many bytes before it is made.
    pub(crate) fn check_size(&self, bytes: usize) -> Result<()> {
        if bytes > MOST_BYTES {
            return exec_err!(
                "the result of `{}` is larger than {} MiB; ask for a shorter text or fewer rows",
                self.function,
                MOST_BYTES >> 20
            );
        }
        Ok(())
    }
}

pub(crate) struct Rows<'a, C: Column<'a>> {
    reader: C::Reader,
    constant: bool,
}

impl<'a, C: Column<'a>> Rows<'a, C> {
    pub(crate) fn get(&self, row: usize) -> Result<Option<C::Item>> {
        C::get(&self.reader, if self.constant { 0 } else { row })
    }
}

/// The value of a row of an argument that may be left out; then it is `absent`.
pub(crate) fn get_or<'a, C: Column<'a>>(
    argument: Option<&Rows<'a, C>>,
    row: usize,
    absent: C::Item,
) -> Result<Option<C::Item>> {
    argument.map_or(Ok(Some(absent)), |rows| rows.get(row))
}

pub(crate) fn fill<O: Output, R: Cell<O::Item>>(
    arguments: &Arguments,
    mut make: impl FnMut(usize) -> R,
) -> Result<ArrayRef> {
    let mut output = O::new(arguments.rows);
    for row in 0..arguments.rows {
        output.push(arguments, make(row).cell()?)?;
    }
    Ok(output.finish())
}

pub(crate) fn map1<'a, A, O, R>(arguments: &'a Arguments, make: impl FnMut(A::Item) -> R) -> Result<ArrayRef>
where
    A: Column<'a>,
    O: Output,
    R: Cell<O::Item>,
{
    map_at::<A, O, R>(arguments, 0, make)
}

/// What `make` gives for each value of the argument at this position.
pub(crate) fn map_at<'a, A, O, R>(
    arguments: &'a Arguments,
    position: usize,
    mut make: impl FnMut(A::Item) -> R,
) -> Result<ArrayRef>
where
    A: Column<'a>,
    O: Output,
    R: Cell<O::Item>,
{
    let first = arguments.read::<A>(position)?;
    fill::<O, Result<Option<O::Item>>>(arguments, |row| {
        first.get(row)?.map_or(Ok(None), |first| make(first).cell())
    })
}

pub(crate) fn map2<'a, A, B, O, R>(
    arguments: &'a Arguments,
    mut make: impl FnMut(A::Item, B::Item) -> R,
) -> Result<ArrayRef>
where
    A: Column<'a>,
    B: Column<'a>,
    O: Output,
    R: Cell<O::Item>,
{
    let (first, second) = (arguments.read::<A>(0)?, arguments.read::<B>(1)?);
    fill::<O, Result<Option<O::Item>>>(arguments, |row| match (first.get(row)?, second.get(row)?) {
        (Some(first), Some(second)) => make(first, second).cell(),
        _ => Ok(None),
    })
}

pub(crate) fn map3<'a, A, B, C, O, R>(
    arguments: &'a Arguments,
    mut make: impl FnMut(A::Item, B::Item, C::Item) -> R,
) -> Result<ArrayRef>
where
    A: Column<'a>,
    B: Column<'a>,
    C: Column<'a>,
    O: Output,
    R: Cell<O::Item>,
{
    let (first, second) = (arguments.read::<A>(0)?, arguments.read::<B>(1)?);
    let third = arguments.read::<C>(2)?;
    fill::<O, Result<Option<O::Item>>>(arguments, |row| {
        match (first.get(row)?, second.get(row)?, third.get(row)?) {
            (Some(first), Some(second), Some(third)) => make(first, second, third).cell(),
            _ => Ok(None),
        }
    })
}

/// What was made of the last text: patterns are nearly always the same for all rows.
#[derive(Debug)]
pub(crate) struct Memo<T> {
    last: Option<(String, T)>,
}

impl<T> Memo<T> {
    pub(crate) const fn new() -> Self {
        Self { last: None }
    }

    pub(crate) fn get(&mut self, text: &str, make: impl FnOnce(&str) -> Result<T>) -> Result<&T> {
        if self.last.as_ref().is_none_or(|(last, _)| last != text) {
            self.last = Some((text.to_owned(), make(text)?));
        }
        match &self.last {
            Some((_, made)) => Ok(made),
            None => exec_err!("no pattern"),
        }
    }
}
