//! Integer division, remainders, signs.

use crate::condition::{binary, case, two};
use crate::define::{Function, functions};
use crate::values::Kind::{self, Float as Number, Int as Whole, Same};
use crate::values::{Arguments, Float, Int, Int64, Real, map1, map2};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err};
use datafusion::logical_expr::{Operator, lit};

fn by_zero() -> DataFusionError {
    exec_datafusion_err!("division by zero")
}

fn too_large() -> DataFusionError {
    exec_datafusion_err!("bigint out of range")
}

fn is_whole(arguments: &Arguments) -> Result<bool> {
    Ok(*arguments.data_type(0)? == DataType::Int64)
}

/// The quotient without its fraction. A division by zero is an error, in MySQL null.
fn div(arguments: &Arguments) -> Result<ArrayRef> {
    let mysql = arguments.is_mysql();
    if is_whole(arguments)? {
        return map2::<Int, Int, Int64, Result<Option<i64>>>(arguments, |one, other| match other {
            0 if mysql => Ok(None),
            0 => Err(by_zero()),
            _ => one.checked_div(other).ok_or_else(too_large).map(Some),
        });
    }
    map2::<Float, Float, Real, Result<Option<f64>>>(arguments, |one, other| match other {
        0.0 if mysql => Ok(None),
        0.0 => Err(by_zero()),
        _ => Ok(Some((one / other).trunc())),
    })
}

/// DuckDB's `fdiv` and `fmod`: towards minus infinity.
fn floored(one: f64, other: f64) -> f64 {
    (one / other).floor()
}

/// The remainder that is never negative for a positive divisor.
fn pmod(arguments: &Arguments) -> Result<ArrayRef> {
    if is_whole(arguments)? {
        return map2::<Int, Int, Int64, Result<i64>>(arguments, |one, other| {
            let rest = one.checked_rem(other).ok_or_else(by_zero)?;
            if rest < 0 { (rest + other).checked_rem(other).ok_or_else(by_zero) } else { Ok(rest) }
        });
    }
    map2::<Float, Float, Real, _>(arguments, |one: f64, other: f64| {
        let rest = one % other;
        if rest < 0.0 { (rest + other) % other } else { rest }
    })
}

fn sign(arguments: &Arguments) -> Result<ArrayRef> {
    if is_whole(arguments)? {
        return map1::<Int, Int64, _>(arguments, i64::signum);
    }
    map1::<Float, Real, _>(arguments, |number: f64| {
        if number == 0.0 || number.is_nan() { number.abs() } else { number.signum() }
    })
}

/// The next even number away from zero.
fn even(number: f64) -> f64 {
    let halves = (number.abs() / 2.0).ceil() * 2.0;
    if number < 0.0 { -halves } else { halves }
}

const EITHER: &[&[Kind]] = &[&[Whole, Whole], &[Number, Number]];
const TWO: &[&[Kind]] = &[&[Number, Number]];

pub(super) const REWRITES: &[Function] = functions! {
    rewrite;
    "mod": &[&[Same, Same]], Like(0), |args| {
        let [one, other] = two(args)?;
        Ok(binary(one, Operator::Modulo, other))
    } => "the remainder, with the sign of the dividend";
    "add": &[&[Same, Same]], Like(0), |args| {
        let [one, other] = two(args)?;
        Ok(binary(one, Operator::Plus, other))
    } => "the sum";
    "subtract": &[&[Same, Same]], Like(0), |args| {
        let [one, other] = two(args)?;
        Ok(binary(one, Operator::Minus, other))
    } => "the difference";
    "try_divide": &[&[Number, Number]], Float, |args| {
        let [one, other] = two(args)?;
        let zero = binary(other.clone(), Operator::Eq, lit(0.0));
        Ok(case(
            zero,
            lit(datafusion::common::ScalarValue::Float64(None)),
            binary(one, Operator::Divide, other),
        ))
    } => "the quotient, null for a division by zero";
};

pub(super) const FUNCTIONS: &[Function] = functions! {
    scalar;
    "multiply": EITHER, Like(0), |a| {
        if is_whole(a)? {
            return map2::<Int, Int, Int64, Result<i64>>(a, |one, other| {
                one.checked_mul(other).ok_or_else(too_large)
            });
        }
        map2::<Float, Float, Real, _>(a, |one: f64, other: f64| one * other)
    } => "the product";
    "div": EITHER, Like(0), div => "the quotient without its fraction";
    "divide": EITHER, Like(0), |a| {
        if is_whole(a)? {
            return div(a);
        }
        map2::<Float, Float, Real, Result<f64>>(a, |one, other| match other {
            0.0 => Err(by_zero()),
            _ => Ok(one / other),
        })
    } => "what `//` gives: the quotient, of whole numbers without its fraction, of others a DOUBLE";
    "fdiv": TWO, Float, |a| map2::<Float, Float, Real, _>(a, floored) => "the quotient rounded down";
    "fmod": TWO, Float,
        |a| map2::<Float, Float, Real, _>(a, |one: f64, other: f64| one - other * floored(one, other)) =>
        "the remainder of the quotient that is rounded down";
    "pmod": EITHER, Like(0), pmod => "the remainder that is not negative";
    "sign" "signum": &[&[Whole], &[Number]], Like(0), sign => "-1, 0 or 1";
    "even": &[&[Number]], Float, |a| map1::<Float, Real, _>(a, even) =>
        "rounded away from zero to an even number";
};
