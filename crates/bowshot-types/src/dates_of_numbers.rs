//! Numbers as dates, timestamps, times and bytes: MySQL reads their digits as YYYYMMDD[hhmmss], PostgreSQL has no such cast. Arrow
//! would take them for days or seconds since 1970, or for the bytes of the number.

use super::casts::Columns;
use super::functions::only;
use super::mysql_integers::{self, STRICT};
use super::names::sql_type;
use super::planner::refused;
use bowshot_api::{Error, Reason};
use bowshot_functions::{PlanFunction, plan_function};
use datafusion::arrow::array::{ArrayRef, AsArray, StringArray};
use datafusion::arrow::compute::cast_with_options;
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, TimeUnit};
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::config::Dialect;
use datafusion::logical_expr::expr::{Cast, TryCast};
use datafusion::logical_expr::{Expr, ExprSchemable, ScalarUDF, Signature, Volatility};
use std::sync::Arc;

/// Marks a parameter whose value MySQL assigns to a column.
const MYSQL_ASSIGNED: &str = "bowshot:mysql_assigned";

/// A cast of a number to a date, a timestamp, a time or bytes, as the dialect has it; other expressions as they are.
///
/// # Errors
/// `CannotCoerce` where the dialect has no such cast.
pub(super) fn cast(mut expr: Expr, columns: &Columns, dialect: &Dialect) -> Result<Transformed<Expr>> {
    let (Expr::Cast(Cast { expr: inner, field }) | Expr::TryCast(TryCast { expr: inner, field })) = &mut expr
    else {
        return Ok(Transformed::no(expr));
    };
    let to = field.data_type();
    let is_time =
        matches!(to, DataType::Date32 | DataType::Timestamp(..) | DataType::Time32(_) | DataType::Time64(_));
    if !is_time && *to != DataType::Binary {
        return Ok(Transformed::no(expr));
    }
    let Some(from) = inner.get_type(columns.all()).ok().filter(DataType::is_numeric) else {
        return Ok(Transformed::no(expr));
    };
    match dialect {
        Dialect::MySQL => {
            **inner = text_of(std::mem::take(inner.as_mut()), to);
            Ok(Transformed::yes(expr))
        }
        _ if is_time && *dialect != Dialect::PostgreSQL => Ok(Transformed::no(expr)),
        _ => {
            let [from, to] = [&from, to].map(|of| sql_type(of).to_lowercase());
            Err(refused(
                Error::invalid(format!("cannot cast type {from} to {to}")).with_reason(Reason::CannotCoerce),
            ))
        }
    }
}

/// A number as the text that MySQL reads as a value of the type.
fn text_of(number: Expr, to: &DataType) -> Expr {
    match to {
        DataType::Time32(_) | DataType::Time64(_) => function(Reads::Clock).call(vec![number]),
        DataType::Date32 | DataType::Timestamp(..) => function(Reads::Moment).call(vec![number]),
        _ => Expr::Cast(Cast::new(Box::new(number), DataType::Utf8)),
    }
}

/// Whether Arrow casts values of a type to another one where SQL assigns none: numbers as times or bytes, and times as numbers.
pub fn lacks_assignment(from: &DataType, to: &DataType) -> bool {
    use DataType::{Date32, Date64, Time32, Time64, Timestamp};
    let is_time = |of: &DataType| matches!(of, Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..));
    from.is_numeric() && (is_time(to) || to.is_binary()) || is_time(from) && to.is_numeric()
}

/// What is assigned to a column of another type, where Arrow would make something else of it than SQL: a number as a time or as
/// bytes, or a time as a number. MySQL takes the digits of a time for the number; the other dialects have no such assignment.
///
/// # Errors
/// `DatatypeMismatch` in these dialects.
pub fn assigned(
    value: Expr,
    (from, to): (&DataType, &DataType),
    dialect: &Dialect,
) -> Result<Transformed<Expr>> {
    if !lacks_assignment(from, to) {
        return Ok(Transformed::no(value));
    }
    if *dialect != Dialect::MySQL {
        let [from, to] = [from, to].map(|of| sql_type(of).to_lowercase());
        let message = format!("a column of type {to} cannot take an expression of type {from}");
        return Err(refused(
            Error::invalid(message)
                .with_reason(Reason::DatatypeMismatch)
                .with_hint("cast it in the statement"),
        ));
    }
    let given =
        if from.is_numeric() { text_of(value, to) } else { mysql_integers::signed().call(vec![value]) };
    Ok(Transformed::yes(Expr::Cast(Cast::new(Box::new(given), to.clone()))))
}

/// The same of the values of a parameter in MySQL.
///
/// # Errors
/// For digits that are no such value.
pub fn mysql_assigned_values(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let given = std::slice::from_ref(values);
    let read = match to {
        _ if !values.data_type().is_numeric() => mysql_integers::signed_values(given)?,
        DataType::Time32(_) | DataType::Time64(_) => Reads::Clock.compute(given)?,
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => {
            let moment = DataType::Timestamp(TimeUnit::Second, None);
            cast_with_options(&Reads::Moment.compute(given)?, &moment, &STRICT)?
        }
        _ => cast_with_options(values, &DataType::Utf8, &STRICT)?,
    };
    Ok(cast_with_options(&read, to, &STRICT)?)
}

/// The field of a parameter that is assigned to a column. In MySQL it says so: the dialect is not known where values are bound.
pub fn assigned_parameter(column: &Field, dialect: &Dialect) -> Field {
    let mut metadata = column.metadata().clone();
    if *dialect == Dialect::MySQL {
        metadata.insert(MYSQL_ASSIGNED.to_owned(), String::new());
    }
    column.clone().with_metadata(metadata)
}

/// Whether a parameter is assigned as MySQL assigns.
pub fn is_mysql_assigned(parameter: &Field) -> bool {
    parameter.metadata().contains_key(MYSQL_ASSIGNED)
}

/// The functions that make texts of such numbers.
pub(super) fn functions() -> [ScalarUDF; 2] {
    [Reads::Moment, Reads::Clock].map(function)
}

fn function(reads: Reads) -> ScalarUDF {
    plan_function(reads, Signature::any(1, Volatility::Immutable))
}

/// What the digits of a number are read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Reads {
    Moment,
    Clock,
}

impl PlanFunction for Reads {
    fn name(&self) -> &'static str {
        match self {
            Self::Moment => "__bowshot_date_of_number",
            Self::Clock => "__bowshot_time_of_number",
        }
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, arguments: &[ArrayRef]) -> Result<ArrayRef> {
        let numbers = cast_with_options(only(arguments)?, &DataType::Int64, &STRICT)?;
        let text = match self {
            Self::Moment => date_text,
            Self::Clock => time_text,
        };
        let texts = numbers.as_primitive::<Int64Type>().iter().map(|number| number.map(text));
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

/// The same of a time of day: 101112 is 10:11:12.
fn time_text(number: i64) -> String {
    let sign = if number < 0 { "-" } else { "" };
    let digits = number.unsigned_abs();
    format!("{sign}{:02}:{:02}:{:02}", digits / 10_000, digits / 100 % 100, digits % 100)
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
