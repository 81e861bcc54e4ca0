//! Arrow columns as the features of a forest.

use crate::error::{Error, Result};
use crate::forest::{Forest, Number};
use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;

/// Where the features of a forest come from, where they are not simply the columns.
#[derive(Debug)]
pub(crate) struct Inputs {
    /// How many columns there are.
    pub(crate) columns: usize,
    /// For each feature its column and what happens to it first.
    pub(crate) features: Vec<Feature>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Feature {
    pub(crate) column: usize,
    pub(crate) steps: Vec<Step>,
}

/// What happens to a value before the forest sees it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// This is added.
    Plus(f64),
    /// It is multiplied by this.
    Times(f64),
    /// It is divided by this.
    Over(f64),
    /// Another value takes the place of this one, or of what is missing.
    Replace { value: f64, by: f64 },
}

/// True for types that are numbers to a model.
pub(crate) fn is_numeric(kind: &DataType) -> bool {
    kind.is_numeric() || matches!(kind, DataType::Boolean | DataType::Null)
}

/// Scores of all rows, row by row.
pub(crate) fn scores<P, S>(
    forest: &Forest<P::Native, S>,
    inputs: Option<&Inputs>,
    columns: &[ArrayRef],
) -> Result<Vec<f64>>
where
    P: ArrowPrimitiveType,
    P::Native: Number,
    S: Number,
{
    let rows = columns.first().map_or(0, |column| column.len());
    let columns = columns.iter().map(numbers::<P>).collect::<Result<Vec<_>>>()?;
    Ok(forest.scores(rows, |feature, first, into| match inputs {
        None => values(&columns[feature], first, into),
        Some(inputs) => {
            let feature = &inputs.features[feature];
            values(&columns[feature.column], first, into);
            for step in &feature.steps {
                into.iter_mut().for_each(|value| *value = step.of(*value));
            }
        }
    }))
}

/// The column in the type that the forest compares in.
fn numbers<P: ArrowPrimitiveType>(column: &ArrayRef) -> Result<PrimitiveArray<P>> {
    let column = cast(column, &P::DATA_TYPE).map_err(|error| Error::input(error.to_string()))?;
    Ok(column.as_primitive::<P>().clone())
}

/// The values from a row on; NULL is what models call missing.
fn values<P>(column: &PrimitiveArray<P>, first: usize, into: &mut [P::Native])
where
    P: ArrowPrimitiveType,
    P::Native: Number,
{
    into.copy_from_slice(&column.values()[first..first + into.len()]);
    if column.null_count() > 0 {
        for (row, value) in into.iter_mut().enumerate() {
            if column.is_null(first + row) {
                *value = P::Native::of(f64::NAN);
            }
        }
    }
}

impl Step {
    /// What becomes of a value, in its own arithmetic.
    fn of<T: Number>(&self, value: T) -> T {
        match self {
            Step::Plus(other) => T::of(value.wide() + other),
            Step::Times(other) => T::of(value.wide() * other),
            Step::Over(other) => T::of(value.wide() / other),
            Step::Replace { value: replaced, by } if replaced.is_nan() && value.missing() => T::of(*by),
            Step::Replace { value: replaced, by } if value == T::of(*replaced) => T::of(*by),
            Step::Replace { .. } => value,
        }
    }
}
