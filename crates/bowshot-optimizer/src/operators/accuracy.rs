//! Aggregates that allocate at once as many numbers as the statement says: the accuracy is limited.

use bowshot_api::Error;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::Expr;

/// Centroids of a digest at most. The errors of one with a tenth of them are hard to measure.
const MOST: u64 = 100_000;

/// How many arguments come before the accuracy: the value, its weight, and the fraction.
const BEFORE: [(&str, usize); 2] = [("approx_percentile_cont", 2), ("approx_percentile_cont_with_weight", 3)];

/// Refuses an accuracy that is too large, or that only the running statement would tell.
pub(super) fn check(function: &str, arguments: &[Expr]) -> Result<()> {
    let before = BEFORE.iter().find(|(name, _)| *name == function).map(|(_, before)| *before);
    let Some(accuracy) = before.and_then(|before| arguments.get(before)) else { return Ok(()) };
    if number(accuracy).is_some_and(|number| number <= MOST) {
        return Ok(());
    }
    let message =
        format!("the accuracy of `{function}` is a whole number of at most {MOST}, and not `{accuracy}`");
    let error = Error::invalid(message).with_hint("100 is the default; 1000 is more than enough");
    Err(DataFusionError::External(Box::new(error)))
}

fn number(expr: &Expr) -> Option<u64> {
    match expr {
        Expr::Literal(value, _) => match value.cast_to(&DataType::UInt64) {
            Ok(ScalarValue::UInt64(number)) => number,
            _ => None,
        },
        Expr::Cast(cast) => number(&cast.expr),
        Expr::Alias(alias) => number(&alias.expr),
        _ => None,
    }
}
