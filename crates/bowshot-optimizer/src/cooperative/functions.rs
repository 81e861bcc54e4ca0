//! Functions with results far larger than their input, or that take unexpectedly long: they run on a part of a batch at a time,
//! so that the query can end in between, and not at all where the result would be too large.

use bowshot_api::Error;
use bowshot_query_task::{QueryTask, step};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::kernels::length::length;
use datafusion::arrow::compute::{CastOptions, cast_with_options, concat};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::sort_properties::ExprProperties;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl};
use std::ops::Range;
use std::sync::Arc;

/// Bytes or steps that are done in one go.
const PART: u64 = 16 << 20;
const MAX_VALUE_BYTES: u64 = 1 << 30;
/// Steps for one value: a second or two.
const MAX_VALUE_STEPS: u64 = 1_000_000_000;

const FUNCTIONS: [(&str, Cost); 14] = [
    ("repeat", Cost::Times),
    ("lpad", Cost::Length),
    ("rpad", Cost::Length),
    ("space", Cost::First),
    ("array_repeat", Cost::Elements),
    ("array_repeat_of", Cost::Elements),
    ("array_resize", Cost::Length8),
    ("range", Cost::Series),
    ("generate_series", Cost::Series),
    ("replace", Cost::Replaced),
    ("levenshtein", Cost::Product),
    ("strpos", Cost::Text),
    ("translate", Cost::Text),
    ("regexp_replace", Cost::Matched),
];

/// How much a row may give, or how long it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Cost {
    /// Bytes of the first text as often as the second number says.
    Times,
    /// Up to four bytes for each character of a length, the second number.
    Length,
    /// As many bytes as the first number says.
    First,
    /// The first value as often as the second number says.
    Elements,
    /// Values of eight bytes, as many as the second number says.
    Length8,
    /// Values of eight bytes from one number to another.
    Series,
    /// The first text, with each second one replaced by the third.
    Replaced,
    /// The third text in the place of each character of the first one, at worst.
    Matched,
    /// Steps for each pair of characters of two texts.
    Product,
    /// Steps for each character of the first text.
    Text,
}

/// Puts guards in the place of functions that need them.
pub fn guard(state: &mut SessionState) -> Result<()> {
    for (name, cost) in FUNCTIONS {
        let Ok(inner) = state.udf(name) else { continue };
        state.register_udf(Arc::new(ScalarUDF::new_from_impl(Guarded { inner, cost })))?;
    }
    Ok(())
}

/// A function that is asked for a part at a time.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Guarded {
    inner: Arc<ScalarUDF>,
    cost: Cost,
}

impl Guarded {
    fn part(&self, args: &ScalarFunctionArgs, rows: &Range<usize>) -> Result<ArrayRef> {
        let length = rows.end - rows.start;
        let values = args.args.iter().map(|value| match value {
            ColumnarValue::Array(array) => ColumnarValue::Array(array.slice(rows.start, length)),
            ColumnarValue::Scalar(scalar) => ColumnarValue::Scalar(scalar.clone()),
        });
        let part = ScalarFunctionArgs { args: values.collect(), number_rows: length, ..args.clone() };
        step(|| self.inner.invoke_with_args(part))?.into_array(length)
    }
}

/// What one value, and all of a batch, would cost. What one may cost cannot be configured: who asks for more asks for what makes
/// no sense.
fn check(cost: Cost, largest: u64, whole: u64) -> Result<()> {
    let refused = |error: Error| DataFusionError::External(Box::new(error));
    if cost == Cost::Product || cost == Cost::Text {
        if largest <= MAX_VALUE_STEPS {
            return Ok(());
        }
        return Err(refused(
            Error::invalid("the texts are too long to be compared")
                .with_hint("compare shorter ones, such as `left(text, 1000)`"),
        ));
    }
    if largest > MAX_VALUE_BYTES {
        let message = format!("a value of {largest} bytes is larger than the limit of {MAX_VALUE_BYTES}");
        return Err(refused(Error::invalid(message).with_hint("ask for shorter values")));
    }
    if cost == Cost::Matched {
        // Of all rows together it would be far too much, as hardly any character is replaced.
        return Ok(());
    }
    QueryTask::current().map_or(Ok(()), |job| job.check_piece(whole)).map_err(refused)
}

impl Cost {
    /// For each row. Unknown arguments cost nothing: the function says what is wrong with them.
    fn of(self, args: &[ColumnarValue], rows: usize) -> Result<Vec<u64>> {
        let number = |at: usize| Numbers::of(args.get(at), rows, false);
        let text = |at: usize| Numbers::of(args.get(at), rows, true);
        let each = |cost: &dyn Fn(usize) -> u64| Ok((0..rows).map(cost).collect());
        match self {
            Self::Times => {
                let (text, times) = (text(0)?, number(1)?);
                each(&|row| text.at(row).saturating_mul(times.at(row)))
            }
            Self::Length => {
                let length = number(1)?;
                each(&|row| length.at(row).saturating_mul(4))
            }
            Self::First => {
                let length = number(0)?;
                each(&|row| length.at(row))
            }
            Self::Length8 => {
                let length = number(1)?;
                each(&|row| length.at(row).saturating_mul(8))
            }
            Self::Elements => {
                let (width, times) = (width(args.first(), rows), number(1)?);
                each(&|row| times.at(row).saturating_mul(width))
            }
            Self::Series => series(args, rows),
            Self::Replaced => {
                let (whole, from, to) = (text(0)?, text(1)?, text(2)?);
                each(&|row| {
                    (whole.at(row) / from.at(row).max(1)).saturating_mul(to.at(row)).max(whole.at(row))
                })
            }
            Self::Matched => {
                let (whole, to) = (text(0)?, text(2)?);
                each(&|row| whole.at(row).saturating_mul(to.at(row).max(1)))
            }
            Self::Product => {
                let (one, other) = (text(0)?, text(1)?);
                each(&|row| one.at(row).saturating_mul(other.at(row)))
            }
            Self::Text => {
                let text = text(0)?;
                each(&|row| text.at(row))
            }
        }
    }
}

fn width(value: Option<&ColumnarValue>, rows: usize) -> u64 {
    match value {
        Some(ColumnarValue::Array(array)) => (array.get_array_memory_size() / rows.max(1)).max(8) as u64,
        Some(ColumnarValue::Scalar(scalar)) => scalar.size().max(8) as u64,
        None => 8,
    }
}

fn series(args: &[ColumnarValue], rows: usize) -> Result<Vec<u64>> {
    let is_whole = |value: &ColumnarValue| value.data_type().is_integer() || value.data_type().is_null();
    if !args.iter().all(is_whole) {
        // Of dates and times: years of seconds at most, which the memory of the query bounds.
        return Ok(vec![0; rows]);
    }
    let number = |at: usize| Numbers::of(args.get(at), rows, false);
    let (first, second, step) = (number(0)?, number(1)?, number(2)?);
    let length = |row: usize| {
        let (start, end) =
            if args.len() < 2 { (0, first.raw(row)) } else { (first.raw(row), second.raw(row)) };
        let step = if args.len() < 3 { 1 } else { step.raw(row) };
        let span = i128::from(end) - i128::from(start);
        let count = if step == 0 { 0 } else { (span / i128::from(step)).max(0) + 1 };
        u64::try_from(count.saturating_mul(8)).unwrap_or(u64::MAX)
    };
    Ok((0..rows).map(length).collect())
}

/// Whole numbers, or lengths of texts and lists, for each row or the same for all.
struct Numbers(Option<Int64Array>);

impl Numbers {
    fn of(value: Option<&ColumnarValue>, rows: usize, lengths: bool) -> Result<Self> {
        let array = match value {
            None => return Ok(Self(None)),
            Some(ColumnarValue::Array(array)) => Arc::clone(array),
            Some(ColumnarValue::Scalar(scalar)) => scalar.to_array_of_size(rows.min(1))?,
        };
        let array = if lengths {
            let plain = match array.data_type() {
                DataType::Utf8View => cast(&array, &DataType::LargeUtf8)?,
                _ => array,
            };
            match length(plain.as_ref()) {
                Ok(lengths) => lengths,
                Err(_) => return Ok(Self(None)),
            }
        } else {
            array
        };
        match cast(&array, &DataType::Int64) {
            Ok(numbers) => Ok(Self(numbers.as_primitive_opt::<Int64Type>().cloned())),
            Err(_) => Ok(Self(None)),
        }
    }

    /// Less than nothing is nothing.
    fn at(&self, row: usize) -> u64 {
        u64::try_from(self.raw(row)).unwrap_or(0)
    }

    fn raw(&self, row: usize) -> i64 {
        let Some(numbers) = &self.0 else { return 0 };
        let row = if numbers.len() == 1 { 0 } else { row };
        if row < numbers.len() && numbers.is_valid(row) { numbers.value(row) } else { 0 }
    }
}

fn cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    Ok(cast_with_options(array, to, &CastOptions { safe: true, ..CastOptions::default() })?)
}

/// Rows in parts that cost about [`PART`] each.
fn parts(costs: &[u64]) -> Vec<Range<usize>> {
    let (mut parts, mut start, mut sum) = (Vec::new(), 0, 0_u64);
    for (row, cost) in costs.iter().enumerate() {
        if row > start && sum.saturating_add(*cost) > PART {
            parts.push(start..row);
            (start, sum) = (row, 0);
        }
        sum = sum.saturating_add(*cost);
    }
    parts.push(start..costs.len());
    parts
}

impl ScalarUDFImpl for Guarded {
    bowshot_functions::stock_methods!(inner:
        name, aliases, schema_name, signature, return_type, return_field_from_args, simplify,
        is_strict, short_circuits, output_ordering, coerce_types, documentation
    );

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let costs = self.cost.of(&args.args, rows)?;
        let whole = costs.iter().fold(0_u64, |sum, cost| sum.saturating_add(*cost));
        check(self.cost, costs.iter().copied().max().unwrap_or(0), whole)?;
        if constant || whole <= PART {
            return step(|| self.inner.invoke_with_args(args));
        }
        let done: Vec<ArrayRef> =
            parts(&costs).iter().map(|rows| self.part(&args, rows)).collect::<Result<_>>()?;
        let done: Vec<&dyn Array> = done.iter().map(AsRef::as_ref).collect();
        Ok(ColumnarValue::Array(concat(&done)?))
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let inner = Arc::new(self.inner.inner().with_updated_config(config)?);
        Some(ScalarUDF::new_from_impl(Self { inner, cost: self.cost }))
    }

    bowshot_api::delegate! { inner:
        fn evaluate_bounds(&self, input: &[&Interval]) -> Result<Interval>;
        fn propagate_constraints(&self, interval: &Interval, inputs: &[&Interval]) -> Result<Option<Vec<Interval>>>;
        fn preserves_lex_ordering(&self, inputs: &[ExprProperties]) -> Result<bool>;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::common::ScalarValue;
    use datafusion::prelude::SessionContext;

    async fn one(sql: &str) -> Result<String> {
        let mut state = SessionContext::new().state();
        guard(&mut state)?;
        let batches = SessionContext::new_with_state(state).sql(sql).await?.collect().await?;
        let column = batches.first().map(|batch| Arc::clone(batch.column(0)));
        Ok(format!("{:?}", ScalarValue::try_from_array(&column.unwrap(), 0)?))
    }

    #[tokio::test]
    async fn what_would_be_too_large_is_refused_before_it_is_made() {
        for sql in [
            "SELECT repeat(arrow_cast('x', 'LargeUtf8'), 100000000000000)",
            "SELECT repeat('abc', 9223372036854775807)",
            "SELECT length(repeat(v, 1000000000)) FROM (VALUES ('abc'), ('d')) AS t(v)",
            "SELECT lpad('x', 2000000000)",
            "SELECT rpad('x', 2000000000, 'yz')",
            "SELECT array_repeat(1, 1000000000000)",
            "SELECT array_repeat(v, 1000000000) FROM (VALUES (1), (2)) AS t(v)",
            "SELECT array_resize([1], 1000000000000, 0)",
            "SELECT range(1000000000000)",
            "SELECT generate_series(1, 9223372036854775807)",
            "SELECT range(9223372036854775807, -9223372036854775807, -1)",
        ] {
            let error = one(sql).await.expect_err(sql).to_string();
            assert!(error.contains("larger than the limit"), "{sql}: {error}");
        }
    }

    #[tokio::test]
    async fn parts_give_what_the_whole_gives() {
        for (sql, expected) in [
            (
                "SELECT sum(length(repeat(v, 10000))) FROM (SELECT concat('ab', value % 1) AS v FROM range(2000))",
                "Int64(60000000)",
            ),
            ("SELECT repeat('ab', 3)", "Utf8(\"ababab\")"),
            ("SELECT repeat(NULL, 3)", "Utf8View(NULL)"),
            ("SELECT array_length(range(5, 1, -2))", "UInt64(2)"),
            (
                "SELECT sum(levenshtein(repeat('a', 3000), repeat('b', 3000 + v::INT))) FROM (SELECT value % 3 AS v FROM range(9))",
                "Int64(27009)",
            ),
            (
                "SELECT sum(array_length(array_repeat(v, 1000))) FROM (SELECT value AS v FROM range(10000))",
                "UInt64(10000000)",
            ),
        ] {
            assert_eq!(one(sql).await.expect(sql), expected, "{sql}");
        }
    }
}
