//! Aggregates of numbers whose state is a few numbers: products, moments, exact sums.

use crate::define::{Function, aggregate};
use crate::scalar_udf::no_overload;
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue, exec_err, internal_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use std::sync::Arc;

/// How many numbers the largest state has.
const NUMBERS: usize = 5;
type State = [f64; NUMBERS];

/// One aggregate: what a value does to its state, what two states are together, and what comes out.
#[derive(Debug, Clone, Copy)]
struct Row {
    name: &'static str,
    start: State,
    add: fn(&mut State, f64),
    merge: fn(&mut State, &State),
    finish: fn(&State) -> Option<f64>,
}

pub(crate) const FUNCTIONS: &[Function] = &[
    aggregate("product", "the product of the values", || made(PRODUCT)),
    aggregate("geomean", "the geometric mean of the values", || made(GEOMEAN)).aliases(&["geometric_mean"]),
    aggregate("fsum", "the sum of the values without the errors of rounding", || made(FSUM))
        .aliases(&["kahan_sum", "sumkahan"]),
    aggregate("favg", "the average of the values without the errors of rounding", || made(FAVG)),
    aggregate("kurtosis", "the excess kurtosis of the values as a sample", || made(KURTOSIS)),
    aggregate("kurtosis_pop", "the excess kurtosis of the values as a population", || made(KURTOSIS_POP)),
    aggregate("skewness", "the skewness of the values", || made(SKEWNESS)),
    aggregate("sem", "the standard error of the mean", || made(SEM)),
];

/// The product and how many there are.
const PRODUCT: Row = Row {
    name: "product",
    start: [0.0, 1.0, 0.0, 0.0, 0.0],
    add: |[count, product, ..], value| {
        *count += 1.0;
        *product *= value;
    },
    merge: |[count, product, ..], [more, by, ..]| {
        *count += more;
        *product *= by;
    },
    finish: |[count, product, ..]| (*count > 0.0).then_some(*product),
};

/// The sum of the logarithms.
const GEOMEAN: Row = Row {
    name: "geomean",
    start: [0.0; NUMBERS],
    add: |state, value| add_exactly(state, value.ln()),
    merge: merge_exactly,
    finish: |[count, sum, rest, ..]| (*count > 0.0).then(|| ((sum + rest) / count).exp()),
};

const FSUM: Row = Row {
    name: "fsum",
    add: add_exactly,
    finish: |[count, sum, rest, ..]| (*count > 0.0).then_some(exact(*sum, *rest)),
    ..GEOMEAN
};

const FAVG: Row = Row {
    name: "favg",
    finish: |[count, sum, rest, ..]| (*count > 0.0).then(|| exact(*sum, *rest) / count),
    ..FSUM
};

const KURTOSIS: Row = Row {
    name: "kurtosis",
    start: [0.0; NUMBERS],
    add: |state, value| merge_moments(state, &[1.0, value, 0.0, 0.0, 0.0]),
    merge: merge_moments,
    finish: |[count, _, second, _, fourth]| {
        let n = *count;
        if n <= 3.0 || *second == 0.0 {
            return None;
        }
        let (m2, m4) = (second / n, fourth / n);
        Some((n - 1.0) * ((n + 1.0) * m4 / (m2 * m2) - 3.0 * (n - 1.0)) / ((n - 2.0) * (n - 3.0)))
    },
};

const KURTOSIS_POP: Row = Row {
    name: "kurtosis_pop",
    finish: |[count, _, second, _, fourth]| {
        (*count > 1.0 && *second != 0.0).then(|| count * fourth / (second * second) - 3.0)
    },
    ..KURTOSIS
};

const SKEWNESS: Row = Row {
    name: "skewness",
    finish: |[count, _, second, third, _]| {
        let n = *count;
        if n <= 2.0 || *second == 0.0 {
            return None;
        }
        let population = (third / n) / (second / n).powf(1.5);
        Some((n * (n - 1.0)).sqrt() / (n - 2.0) * population)
    },
    ..KURTOSIS
};

/// As in DuckDB, of the deviation of the population.
const SEM: Row = Row {
    name: "sem",
    finish: |[count, _, second, ..]| (*count > 0.0).then(|| (second / count).sqrt() / count.sqrt()),
    ..KURTOSIS
};

/// Neumaier's sum: what rounding takes away is kept beside it.
fn add_exactly(state: &mut State, value: f64) {
    let [count, sum, rest, ..] = state;
    *count += 1.0;
    let total = *sum + value;
    *rest += if sum.abs() >= value.abs() { (*sum - total) + value } else { (value - total) + *sum };
    *sum = total;
}

fn merge_exactly(state: &mut State, [more, sum, rest, ..]: &State) {
    add_exactly(state, *sum);
    let [count, _, kept, ..] = state;
    *count += more - 1.0;
    *kept += rest;
}

/// The rest is no number where the sum is infinite.
fn exact(sum: f64, rest: f64) -> f64 {
    if sum.is_finite() { sum + rest } else { sum }
}

/// The count, the mean, and the sums of the second to fourth powers of the distances from it (Pébay 2008).
fn merge_moments(state: &mut State, other: &State) {
    let ([na, ma, a2, a3, a4], [nb, mb, b2, b3, b4]) = (*state, *other);
    if nb == 0.0 {
        return;
    }
    let n = na + nb;
    let d = mb - ma;
    let (dn, d2) = (d / n, d * d);
    let fourth = d2 * d2 * na * nb * (na * na - na * nb + nb * nb) / (n * n * n)
        + 6.0 * d2 * (na * na * b2 + nb * nb * a2) / (n * n)
        + 4.0 * dn * (na * b3 - nb * a3);
    let third = d2 * d * na * nb * (na - nb) / (n * n) + 3.0 * dn * (na * b2 - nb * a2);
    *state = [n, ma + dn * nb, a2 + b2 + d2 * na * nb / n, a3 + b3 + third, a4 + b4 + fourth];
}

#[derive(Debug)]
struct Moments {
    row: Row,
    signature: Signature,
}

fn made(row: Row) -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(Moments { row, signature: Signature::user_defined(Volatility::Immutable) }))
}

crate::define::same_by!(Moments, row.name);

impl AggregateUDFImpl for Moments {
    fn name(&self) -> &str {
        self.row.name
    }

    bowshot_api::getters!(signature: &Signature);

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        match given {
            [of] if of.is_numeric() || of.is_null() => Ok(vec![DataType::Float64]),
            _ => no_overload(self.row.name, given),
        }
    }

    fn return_type(&self, _given: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn state_fields(&self, given: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let field = |index| Field::new(format!("{}[{index}]", given.name), DataType::Float64, false);
        Ok((0..NUMBERS).map(|index| Arc::new(field(index))).collect())
    }

    fn accumulator(&self, given: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if given.is_distinct {
            return exec_err!(
                "DISTINCT is not supported in {}: take the distinct values in a subquery",
                self.row.name
            );
        }
        Ok(Box::new(Group { row: self.row, state: self.row.start }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

#[derive(Debug)]
struct Group {
    row: Row,
    state: State,
}

impl Accumulator for Group {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(values) = values.first().and_then(|values| values.as_primitive_opt::<Float64Type>()) else {
            return internal_err!("{} takes numbers", self.row.name);
        };
        values.iter().flatten().for_each(|value| (self.row.add)(&mut self.state, value));
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let columns =
            states.iter().filter_map(|column| column.as_primitive_opt::<Float64Type>()).collect::<Vec<_>>();
        let length = columns.first().map_or(0, |column| column.len());
        if columns.len() != NUMBERS {
            return internal_err!("a state of {} has {} numbers", self.row.name, columns.len());
        }
        for row in 0..length {
            let mut other = self.row.start;
            other.iter_mut().zip(&columns).for_each(|(number, column)| *number = column.value(row));
            // The count comes first in every state.
            if other.first().is_some_and(|count| *count > 0.0) {
                (self.row.merge)(&mut self.state, &other);
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(self.state.iter().map(|number| ScalarValue::Float64(Some(*number))).collect())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64((self.row.finish)(&self.state)))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}
