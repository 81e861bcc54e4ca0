//! Numeric functions that DataFusion lacks, or for which PostgreSQL and DuckDB raise errors where DataFusion returns infinity or NaN.

mod bits;
mod ceil_floor;
mod domain_errors;
mod format;
mod integer_division;
mod rounding;

use crate::define::{Function, made, stock};
use ceil_floor::Way;
use datafusion::functions::math;

pub(crate) use format::{in_base, with_commas};

pub(crate) const FUNCTIONS: &[&[Function]] = &[
    STOCK,
    domain_errors::FUNCTIONS,
    integer_division::FUNCTIONS,
    integer_division::REWRITES,
    rounding::FUNCTIONS,
    bits::FUNCTIONS,
    format::FUNCTIONS,
];

const STOCK: &[Function] = &[
    stock("abs", "the absolute value"),
    stock("acosh", "the inverse hyperbolic cosine"),
    stock("asinh", "the inverse hyperbolic sine"),
    stock("atan", "the inverse tangent"),
    stock("atan2", "the inverse tangent of a quotient"),
    stock("atanh", "the inverse hyperbolic tangent"),
    stock("cbrt", "the cube root"),
    made("ceil", "the nearest integer that is not less", || ceil_floor::made(math::ceil(), Way::Up))
        .aliases(&["ceiling"]),
    stock("cos", "the cosine"),
    stock("cosh", "the hyperbolic cosine"),
    stock("cot", "the cotangent"),
    stock("degrees", "radians in degrees"),
    stock("exp", "e to this power"),
    stock("factorial", "the product of the numbers up to this one"),
    made("floor", "the nearest integer that is not greater", || ceil_floor::made(math::floor(), Way::Down)),
    stock("gcd", "the greatest common divisor").aliases(&["greatest_common_divisor"]),
    stock("isnan", "whether it is not a number"),
    stock("iszero", "whether it is 0"),
    stock("lcm", "the least common multiple").aliases(&["least_common_multiple"]),
    stock("nanvl", "the first value, the second if it is not a number"),
    stock("pi", "the number π"),
    stock("power", "a number to a power").aliases(&["pow"]),
    stock("radians", "degrees in radians"),
    stock("random", "a random number from 0 up to, but not, 1").aliases(&["rand"]),
    made("round", "rounded to a number of decimal places, half away from zero", || {
        ceil_floor::made(math::round(), Way::Nearest)
    })
    .note("a floating-point number without a number of places: half to even"),
    stock("sin", "the sine"),
    stock("sinh", "the hyperbolic sine"),
    stock("tan", "the tangent"),
    stock("tanh", "the hyperbolic tangent"),
];
