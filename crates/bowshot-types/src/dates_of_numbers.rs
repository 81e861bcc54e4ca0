//! Integers as dates and timestamps: MySQL reads their digits as YYYYMMDD[hhmmss], PostgreSQL has no such cast. Arrow would take
//! them for days or seconds since 1970.

use super::casts::Columns;
use super::functions::only;
use super::names::sql_type;
use super::planner::refused;
use bowshot_api::{Error, Reason};
use bowshot_functions::{PlanFunction, plan_function};
use datafusion::arrow::array::{ArrayRef, AsArray, StringArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::config::Dialect;
use datafusion::logical_expr::expr::{Cast, TryCast};
use datafusion::logical_expr::{Expr, ExprSchemable, ScalarUDF, Signature, Volatility};
use std::sync::Arc;

/// A cast of an integer to a date or timestamp, as the dialect has it; other expressions as they are.
///
/// # Errors
/// `CannotCoerce` in dialect `postgres`.
pub(super) fn cast(mut expr: Expr, columns: &Columns, dialect: &Dialect) -> Result<Transformed<Expr>> {
    let (Expr::Cast(Cast { expr: inner, field }) | Expr::TryCast(TryCast { expr: inner, field })) = &mut expr
    else {
        return Ok(Transformed::no(expr));
    };
    let to = field.data_type();
    if !matches!(to, DataType::Date32 | DataType::Timestamp(..)) {
        return Ok(Transformed::no(expr));
    }
    let from = inner.get_type(columns.all());
    match (from, dialect) {
        (Ok(from), Dialect::PostgreSQL) if from.is_integer() => {
            let [from, to] = [&from, to].map(|of| sql_type(of).to_lowercase());
            Err(refused(
                Error::invalid(format!("cannot cast type {from} to {to}")).with_reason(Reason::CannotCoerce),
            ))
        }
        (Ok(from), Dialect::MySQL) if from.is_integer() => {
            **inner = function().call(vec![std::mem::take(inner.as_mut())]);
            Ok(Transformed::yes(expr))
        }
        _ => Ok(Transformed::no(expr)),
    }
}

/// The function that makes texts of such integers.
pub(super) fn function() -> ScalarUDF {
    plan_function(DateOfNumber, Signature::any(1, Volatility::Immutable))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DateOfNumber;

impl PlanFunction for DateOfNumber {
    fn name(&self) -> &'static str {
        "__bowshot_date_of_number"
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, arguments: &[ArrayRef]) -> Result<ArrayRef> {
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        let numbers = cast_with_options(only(arguments)?, &DataType::Int64, &strict)?;
        let texts = numbers.as_primitive::<Int64Type>().iter().map(|number| number.map(date_text));
        Ok(Arc::new(texts.collect::<StringArray>()))
    }
}

/// A number as the text of a timestamp. One that is none stays its digits, which are no timestamp either.
fn date_text(number: i64) -> String {
    let Some(digits) = with_century(number) else { return number.to_string() };
    let (date, time) = (digits / 1_000_000, digits % 1_000_000);
    let (year, month, day) = (date / 10_000, date / 100 % 100, date % 100);
    let (hour, minute, second) = (time / 10_000, time / 100 % 100, time % 100);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// YYYYMMDDhhmmss of a number without a time, or with two digits of the year: 70 to 99 are of the 20th century.
fn with_century(number: i64) -> Option<i64> {
    match number {
        101..=691_231 => Some((number + 20_000_000) * 1_000_000),
        700_101..=991_231 => Some((number + 19_000_000) * 1_000_000),
        10_000_101..=99_991_231 => Some(number * 1_000_000),
        101_000_000..=691_231_235_959 => Some(number + 20_000_000_000_000),
        700_101_000_000..=991_231_235_959 => Some(number + 19_000_000_000_000),
        10_000_101_000_000..=99_991_231_235_959 => Some(number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::date_text;

    #[test]
    fn digits_are_read_as_mysql_does() {
        for (number, expected) in [
            (20_240_229, "2024-02-29 00:00:00"),
            (20_240_229_101_112, "2024-02-29 10:11:12"),
            (240_229, "2024-02-29 00:00:00"),
            (700_101, "1970-01-01 00:00:00"),
            (991_231_235_959, "1999-12-31 23:59:59"),
            (101, "2000-01-01 00:00:00"),
            (20_241_301, "2024-13-01 00:00:00"),
            (0, "0"),
            (-20_240_229, "-20240229"),
            (691_232, "691232"),
            (99_991_232, "99991232"),
        ] {
            assert_eq!(date_text(number), expected, "{number}");
        }
    }
}
