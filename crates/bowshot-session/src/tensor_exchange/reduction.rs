//! Sums the contributions of a round; only the sum is stored. A contribution is validated before any of it counts.

use arrow::array::{Array, ArrayRef, AsArray, FixedSizeListArray, Float32Array, Float64Array};
use arrow::datatypes::{DataType, FieldRef, Float32Type, Float64Type, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use bowshot_api::{Error, ErrorKind, Reduction, Result};
use std::sync::Arc;

const MAX_NUMBERS: usize = 1 << 25;
const WEIGHT: &str = "weight";

/// The schema of contributions and of results.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub(super) sent: SchemaRef,
    pub(super) given: SchemaRef,
    weight: Option<usize>,
    pub(super) numbers: usize,
}

impl Shape {
    /// # Errors
    /// `Invalid` for columns that are no tensors of floating-point numbers; `LimitReached` for too many numbers.
    pub(super) fn of(sent: &SchemaRef, combination: Reduction) -> Result<Self> {
        let weight = sent.index_of(WEIGHT).ok().filter(|_| combination == Reduction::WeightedMean);
        if combination == Reduction::WeightedMean
            && weight.is_none_or(|at| *sent.field(at).data_type() != DataType::Float64)
        {
            return Err(Error::invalid("a weighted mean needs a column `weight` of doubles"));
        }
        let tensors: Vec<_> =
            sent.fields().iter().enumerate().filter(|(at, _)| Some(*at) != weight).collect();
        let mut numbers = 0_usize;
        for (_, field) in &tensors {
            numbers = numbers.saturating_add(numbers_of(field.data_type()).ok_or_else(|| {
                Error::invalid(format!(
                    "invalid column `{}`: expected a tensor of floats or doubles",
                    field.name()
                ))
                .with_hint("send columns of the type arrow.fixed_shape_tensor, or of single numbers")
            })?);
        }
        if numbers == 0 || numbers > MAX_NUMBERS {
            return Err(Error::new(
                ErrorKind::LimitReached,
                format!("a contribution has {numbers} numbers, and may have 1 to {MAX_NUMBERS}"),
            ));
        }
        let fields: Vec<_> = tensors.into_iter().map(|(_, field)| Arc::clone(field)).collect();
        let given = Arc::new(Schema::new_with_metadata(fields, sent.metadata().clone()));
        Ok(Self { sent: Arc::clone(sent), given, weight, numbers })
    }
}

fn numbers_of(kind: &DataType) -> Option<usize> {
    match kind {
        DataType::Float32 | DataType::Float64 => Some(1),
        DataType::FixedSizeList(item, length) => match item.data_type() {
            DataType::Float32 | DataType::Float64 => usize::try_from(*length).ok(),
            _ => None,
        },
        _ => None,
    }
}

pub(super) struct Contribution {
    columns: Vec<ArrayRef>,
    weight: f64,
}

impl Contribution {
    /// # Errors
    /// `Invalid` for anything but one row of numbers.
    pub(super) fn of(batch: &RecordBatch, shape: &Shape) -> Result<Self> {
        if batch.num_rows() != 1 {
            let rows = batch.num_rows();
            return Err(Error::invalid(format!("a contribution is one row, and this one has {rows}"))
                .with_hint("send one batch of one row for each round, a column for each tensor"));
        }
        let mut weight = 1.0;
        let mut columns = Vec::with_capacity(batch.num_columns());
        for (at, (column, field)) in batch.columns().iter().zip(batch.schema_ref().fields()).enumerate() {
            let numbers = flat(column);
            let finite = match numbers.data_type() {
                DataType::Float32 => {
                    numbers.as_primitive::<Float32Type>().values().iter().all(|x| x.is_finite())
                }
                _ => numbers.as_primitive::<Float64Type>().values().iter().all(|x| x.is_finite()),
            };
            if column.null_count() > 0 || numbers.null_count() > 0 || !finite {
                let name = field.name();
                return Err(Error::invalid(format!("column `{name}` has NULL, NaN or infinity in it"))
                    .with_hint("the contribution was ignored: check the computed values, and join again"));
            }
            if Some(at) == shape.weight {
                weight = numbers.as_primitive::<Float64Type>().values().first().copied().unwrap_or(0.0);
            } else {
                columns.push(numbers);
            }
        }
        if weight <= 0.0 {
            return Err(Error::invalid("a weight is greater than zero"));
        }
        Ok(Self { columns, weight })
    }
}

/// The values of a column's only row.
fn flat(column: &ArrayRef) -> ArrayRef {
    match column.as_fixed_size_list_opt() {
        Some(list) => list.value(0),
        None => Arc::clone(column),
    }
}

#[derive(Debug, Default)]
pub(super) struct Sums {
    columns: Vec<Vec<f64>>,
    weight: f64,
    pub(super) count: usize,
}

impl Sums {
    pub(super) fn add(&mut self, given: &Contribution) {
        self.columns.resize_with(given.columns.len(), Vec::new);
        for (sums, column) in self.columns.iter_mut().zip(&given.columns) {
            sums.resize(column.len(), 0.0);
            match column.data_type() {
                DataType::Float32 => {
                    let values = column.as_primitive::<Float32Type>().values();
                    sums.iter_mut().zip(values).for_each(|(sum, x)| *sum += f64::from(*x) * given.weight);
                }
                _ => {
                    let values = column.as_primitive::<Float64Type>().values();
                    sums.iter_mut().zip(values).for_each(|(sum, x)| *sum += x * given.weight);
                }
            }
        }
        self.weight += given.weight;
        self.count += 1;
    }

    /// The result of the round.
    ///
    /// # Errors
    /// None for contributions of this shape.
    pub(super) fn combined(self, shape: &Shape, combination: Reduction) -> Result<RecordBatch> {
        let parts = if combination == Reduction::Sum { 1.0 } else { self.weight };
        let is_finite = |(sums, field): (&Vec<f64>, &FieldRef)| {
            let single = matches!(kind_of(field.data_type()), DataType::Float32);
            let most = if single { f64::from(f32::MAX) } else { f64::MAX };
            sums.iter().all(|sum| (sum / parts).abs() <= most)
        };
        if !self.columns.iter().zip(shape.given.fields()).all(is_finite) {
            return Err(Error::invalid("the contributions together are too large for their type")
                .with_hint("send smaller numbers, or smaller weights"));
        }
        let columns = self.columns.into_iter().zip(shape.given.fields()).map(|(sums, field)| {
            let numbers = sums.into_iter().map(|sum| sum / parts);
            match field.data_type() {
                DataType::FixedSizeList(item, length) => {
                    let numbers = array(numbers, item.data_type());
                    Arc::new(FixedSizeListArray::new(Arc::clone(item), *length, numbers, None)) as ArrayRef
                }
                kind => array(numbers, kind),
            }
        });
        let combined = RecordBatch::try_new(Arc::clone(&shape.given), columns.collect());
        combined.map_err(|error| Error::internal("contributions cannot be combined").with_source(error))
    }
}

fn kind_of(column: &DataType) -> &DataType {
    match column {
        DataType::FixedSizeList(item, _) => item.data_type(),
        kind => kind,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the nearest value is meant")]
fn array(numbers: impl Iterator<Item = f64>, kind: &DataType) -> ArrayRef {
    match kind {
        DataType::Float32 => Arc::new(Float32Array::from_iter_values(numbers.map(|x| x as f32))),
        _ => Arc::new(Float64Array::from_iter_values(numbers)),
    }
}
