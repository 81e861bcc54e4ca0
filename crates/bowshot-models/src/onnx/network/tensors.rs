//! Arrow columns as the inputs of a graph, and what comes out of one.

use super::Input;
use crate::error::{Error, Result};
use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{Float32Type, Float64Type, Int32Type, Int64Type};

/// The type of an input's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Float,
    Double,
    Integer,
    Small,
    Truth,
}

impl Kind {
    /// By its number in `onnx.proto`.
    pub(super) fn of(elements: i32) -> Option<Self> {
        Some(match elements {
            1 => Self::Float,
            11 => Self::Double,
            7 => Self::Integer,
            6 => Self::Small,
            9 => Self::Truth,
            _ => return None,
        })
    }
}

/// Rows of one input, row by row.
#[derive(Debug)]
pub(super) struct Tensor {
    pub(super) width: usize,
    pub(super) numbers: Numbers,
}

/// Numbers of one type.
#[derive(Debug, Clone)]
pub(super) enum Numbers {
    Floats(Vec<f32>),
    Doubles(Vec<f64>),
    Integers(Vec<i64>),
    Small(Vec<i32>),
    Truths(Vec<bool>),
    Texts(Vec<String>),
}

/// What a graph gives.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) shape: Vec<usize>,
    pub(super) numbers: Numbers,
}

impl Output {
    pub(super) fn count(&self) -> usize {
        match &self.numbers {
            Numbers::Floats(numbers) => numbers.len(),
            Numbers::Doubles(numbers) => numbers.len(),
            Numbers::Integers(numbers) => numbers.len(),
            Numbers::Small(numbers) => numbers.len(),
            Numbers::Truths(numbers) => numbers.len(),
            Numbers::Texts(texts) => texts.len(),
        }
    }

    pub(super) fn append_to(&self, all: &mut Vec<f64>) -> Result<()> {
        match &self.numbers {
            Numbers::Floats(numbers) => all.extend(numbers.iter().map(|number| f64::from(*number))),
            Numbers::Doubles(numbers) => all.extend_from_slice(numbers),
            _ => return Err(super::lost()),
        }
        Ok(())
    }
}

/// The columns of one input, in its type.
#[derive(Debug)]
pub(super) enum Source {
    Floats(Vec<PrimitiveArray<Float32Type>>),
    Doubles(Vec<PrimitiveArray<Float64Type>>),
    Integers(Vec<PrimitiveArray<Int64Type>>),
    Small(Vec<PrimitiveArray<Int32Type>>),
    Truths(Vec<PrimitiveArray<Float64Type>>),
}

pub(super) fn sources(inputs: &[Input], columns: &[ArrayRef]) -> Result<Vec<Source>> {
    let mut rest = columns;
    inputs
        .iter()
        .map(|input| {
            let (own, others) = rest
                .split_at_checked(input.width)
                .ok_or_else(|| Error::input("there are too few columns for the ONNX inputs"))?;
            rest = others;
            Ok(match input.kind {
                Kind::Float => Source::Floats(numbers(own)?),
                Kind::Double => Source::Doubles(numbers(own)?),
                Kind::Integer => Source::Integers(whole(own, input)?),
                Kind::Small => Source::Small(whole(own, input)?),
                Kind::Truth => Source::Truths(whole(own, input)?),
            })
        })
        .collect()
}

fn numbers<P: ArrowPrimitiveType>(columns: &[ArrayRef]) -> Result<Vec<PrimitiveArray<P>>> {
    let number = |column: &ArrayRef| {
        let column = cast(column, &P::DATA_TYPE).map_err(|error| Error::input(error.to_string()))?;
        Ok(column.as_primitive::<P>().clone())
    };
    columns.iter().map(number).collect()
}

/// Types that have no number for what is missing.
fn whole<P: ArrowPrimitiveType>(columns: &[ArrayRef], input: &Input) -> Result<Vec<PrimitiveArray<P>>> {
    let columns = numbers::<P>(columns)?;
    if columns.iter().any(|column| column.null_count() > 0) {
        return Err(Error::input(format!(
            "the ONNX input `{}` takes integers and cannot be NULL",
            input.name
        )));
    }
    Ok(columns)
}

impl Source {
    /// Some rows.
    pub(super) fn block(&self, first: usize, length: usize) -> Tensor {
        match self {
            Self::Floats(columns) => Tensor {
                width: columns.len(),
                numbers: Numbers::Floats(rows(columns, first, length, f32::NAN)),
            },
            Self::Doubles(columns) => Tensor {
                width: columns.len(),
                numbers: Numbers::Doubles(rows(columns, first, length, f64::NAN)),
            },
            Self::Integers(columns) => {
                Tensor { width: columns.len(), numbers: Numbers::Integers(rows(columns, first, length, 0)) }
            }
            Self::Small(columns) => {
                Tensor { width: columns.len(), numbers: Numbers::Small(rows(columns, first, length, 0)) }
            }
            Self::Truths(columns) => {
                let truths = rows(columns, first, length, 0.0).into_iter().map(|truth| truth != 0.0);
                Tensor { width: columns.len(), numbers: Numbers::Truths(truths.collect()) }
            }
        }
    }
}

/// Columns as rows; NULL is what models call missing.
fn rows<P: ArrowPrimitiveType>(
    columns: &[PrimitiveArray<P>],
    first: usize,
    length: usize,
    missing: P::Native,
) -> Vec<P::Native> {
    let width = columns.len();
    let mut all = vec![missing; width * length];
    for (at, column) in columns.iter().enumerate() {
        let values = &column.values()[first..first + length];
        for (row, value) in values.iter().enumerate() {
            if column.is_valid(first + row) {
                all[row * width + at] = *value;
            }
        }
    }
    all
}
