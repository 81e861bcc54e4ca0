//! Choices between values, and what is known of their types.
//!
//! Choices become CASE before a query runs: what is not chosen is not computed.

mod coalesce;
mod conjunction;
mod decode;
mod types;

use crate::define::{Function, Gives, made, rewrite, scalar, stock};
use crate::values::Kind::{Any, Bool as Truth, Float, Int as Whole, Same, Text as Words};
use crate::values::{
    Arguments, Bool, Flag, Float as Real, Int, Int64, Real as Doubles, Text, fill, map1, map2,
};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::functions::core;
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

pub use conjunction::balanced;
pub(crate) use decode::decode;

pub(crate) const FUNCTIONS: &[Function] = &[
    rewrite("if", "the second value if the condition holds, else the third", &[&[Truth, Same, Same]], Gives::Like(1), choice)
        .aliases(&["iff", "iif"]),
    stock("nvl", "the first value, the second if it is null").aliases(&["ifnull"]),
    stock("nvl2", "the second value if the first is not null, else the third"),
    made("nullif", "null if both values are equal, else the first", || coalesce::choice(core::nullif())),
    made("coalesce", "the first value that is not null", || coalesce::choice(core::coalesce())),
    made("greatest", "the greatest value; nulls are passed over", || coalesce::choice(core::greatest())),
    made("least", "the least value; nulls are passed over", || coalesce::choice(core::least())),
    made("decode", "the result that belongs to the first search value that equals the expression, `decode(x, 1, 'one', 'many')`; with two arguments the bytes of a text", decode)
        .note("formats `hex`, `base64`, `escape`"),
    rewrite("isnull", "whether a value is null; with two values the first that is not", &[&[Any], &[Same, Same]], Gives::By(null_type), |args| {
        match <[Expr; 1]>::try_from(args) {
            Ok([value]) => Ok(value.is_null()),
            Err(both) => first_known(both),
        }
    }),
    rewrite("isnotnull", "whether a value is not null", &[&[Any]], Gives::Bool, |args| Ok(one(args)?.is_not_null())),
    scalar("zeroifnull", "0 for null", &[&[Whole], &[Float]], Gives::Like(0), |a| match a.data_type(0)? {
        DataType::Int64 => {
            let numbers = a.read::<Int>(0)?;
            fill::<Int64, Result<Option<i64>>>(a, |row| Ok(Some(numbers.get(row)?.unwrap_or(0))))
        }
        _ => {
            let numbers = a.read::<Real>(0)?;
            fill::<Doubles, Result<Option<f64>>>(a, |row| Ok(Some(numbers.get(row)?.unwrap_or(0.0))))
        }
    }),
    scalar("nullifzero", "null for 0", &[&[Whole], &[Float]], Gives::Like(0), |a| match a.data_type(0)? {
        DataType::Int64 => map1::<Int, Int64, _>(a, |number: i64| (number != 0).then_some(number)),
        _ => map1::<Real, Doubles, _>(a, |number: f64| (number != 0.0).then_some(number)),
    }),
    rewrite("equal_null", "whether two values are equal, or both null", &[&[Same, Same]], Gives::Bool, |args| {
        let [left, right] = two(args)?;
        Ok(binary(left, Operator::IsNotDistinctFrom, right))
    }),
    scalar("xor", "exactly one of two truths; the bits that differ of two numbers", &[&[Truth, Truth], &[Whole, Whole]], Gives::Like(0), |a| {
        match a.data_type(0)? {
            DataType::Boolean => map2::<Bool, Bool, Flag, _>(a, |left: bool, right: bool| left != right),
            _ => map2::<Int, Int, Int64, _>(a, |left: i64, right: i64| left ^ right),
        }
    }),
    scalar("error", "fails with this message", &[&[Words]], Gives::Text, raise).aliases(&["raise_error"]).volatile(),
    scalar("typeof", "the type in SQL's words, as DuckDB names it", &[&[Any]], Gives::Text, |a| types::name(a, types::of_duckdb)),
    scalar("pg_typeof", "the type as PostgreSQL names it", &[&[Any]], Gives::Text, |a| types::name(a, types::of_postgresql)),
];

fn null_type(given: &[DataType]) -> Result<DataType> {
    Ok(match given {
        [_] => DataType::Boolean,
        given => given.first().cloned().unwrap_or(DataType::Null),
    })
}

fn raise(arguments: &Arguments) -> Result<ArrayRef> {
    let texts = arguments.read::<Text>(0)?;
    fill::<crate::values::Str, Result<Option<String>>>(arguments, |row| match texts.get(row)? {
        Some(text) => exec_err!("{text}"),
        None => Ok(None),
    })
}

pub(crate) fn one(args: Vec<Expr>) -> Result<Expr> {
    match <[Expr; 1]>::try_from(args) {
        Ok([value]) => Ok(value),
        Err(args) => plan_err!("one argument is expected, not {}", args.len()),
    }
}

pub(crate) fn two(args: Vec<Expr>) -> Result<[Expr; 2]> {
    <[Expr; 2]>::try_from(args).or_else(|args| plan_err!("two arguments are expected, not {}", args.len()))
}

pub(crate) fn binary(left: Expr, operator: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), operator, Box::new(right)))
}

pub(crate) fn case(when: Expr, then: Expr, otherwise: Expr) -> Expr {
    Expr::Case(Case::new(None, vec![(Box::new(when), Box::new(then))], Some(Box::new(otherwise))))
}

fn choice(args: Vec<Expr>) -> Result<Expr> {
    match <[Expr; 3]>::try_from(args) {
        Ok([when, then, otherwise]) => Ok(case(when, then, otherwise)),
        Err(args) => plan_err!("three arguments are expected, not {}", args.len()),
    }
}

fn first_known(args: Vec<Expr>) -> Result<Expr> {
    let [first, second] = two(args)?;
    Ok(case(first.clone().is_not_null(), first, second))
}
