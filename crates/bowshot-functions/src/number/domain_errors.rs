//! Functions of real numbers outside of their domain: an error as in PostgreSQL and DuckDB, or NULL as in MySQL.

use crate::define::{Function, functions};
use crate::values::Kind::{self, Float as Number, Int as Whole};
use crate::values::{Arguments, Flag, Float, Int, Real, fill, map1, map2};
use arrow::array::ArrayRef;
use datafusion::common::{Result, exec_err};

/// Applies a function where it is defined.
fn within(
    arguments: &Arguments,
    complaint: fn(f64) -> Option<&'static str>,
    compute: fn(f64) -> f64,
) -> Result<ArrayRef> {
    let mysql = arguments.is_mysql();
    map1::<Float, Real, Result<Option<f64>>>(arguments, |number| match complaint(number) {
        Some(_) if mysql => Ok(None),
        Some(complaint) => exec_err!("{complaint}"),
        None => Ok(Some(compute(number))),
    })
}

fn logarithm(number: f64) -> Option<&'static str> {
    if number == 0.0 {
        Some("cannot take logarithm of zero")
    } else if number < 0.0 {
        Some("cannot take logarithm of a negative number")
    } else {
        None
    }
}

fn root(number: f64) -> Option<&'static str> {
    (number < 0.0).then_some("cannot take square root of a negative number")
}

fn unit(number: f64) -> Option<&'static str> {
    (number.abs() > 1.0).then_some("input is out of range: it must lie between -1 and 1")
}

fn anywhere(_number: f64) -> Option<&'static str> {
    None
}

fn log(arguments: &Arguments) -> Result<ArrayRef> {
    if arguments.len() == 1 {
        return within(arguments, logarithm, f64::log10);
    }
    let mysql = arguments.is_mysql();
    map2::<Float, Float, Real, Result<Option<f64>>>(arguments, |base, number| {
        let complaint = logarithm(base).or_else(|| logarithm(number));
        match complaint
            .or((base == 1.0).then_some("division by zero: the logarithm to base 1 is not defined"))
        {
            Some(_) if mysql => Ok(None),
            Some(complaint) => exec_err!("{complaint}"),
            // What is a power of the base must come out exact.
            None if base == 10.0 => Ok(Some(number.log10())),
            None if base == 2.0 => Ok(Some(number.log2())),
            None => Ok(Some(number.ln() / base.ln())),
        }
    })
}

/// The gamma function by Lanczos, to about fifteen digits.
fn gamma(number: f64) -> f64 {
    if number < 0.5 {
        return std::f64::consts::PI / ((std::f64::consts::PI * number).sin() * gamma(1.0 - number));
    }
    if number.fract() == 0.0 && number <= 21.0 {
        return (1..number as u64).map(|factor| factor as f64).product();
    }
    log_gamma(number).exp()
}

fn log_gamma(number: f64) -> f64 {
    const COEFFICIENTS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if number < 0.5 {
        let sine = (std::f64::consts::PI * number).sin().abs();
        return (std::f64::consts::PI / sine).ln() - log_gamma(1.0 - number);
    }
    let number = number - 1.0;
    let sum = COEFFICIENTS.iter().enumerate().fold(0.999_999_999_999_809_9, |sum, (index, coefficient)| {
        sum + coefficient / (number + index as f64 + 1.0)
    });
    let shifted = number + 7.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (number + 0.5) * shifted.ln() - shifted + sum.ln()
}

fn pole(number: f64) -> Option<&'static str> {
    if number == 0.0 {
        Some("cannot take gamma of zero")
    } else if number < 0.0 && number.fract() == 0.0 {
        Some("the gamma function has no value at negative integers")
    } else {
        None
    }
}

/// The error function, by a series that does not cancel, and far out by a continued fraction.
fn erf(number: f64) -> f64 {
    if number.abs() > 3.0 {
        return (1.0 - erfc(number.abs())).copysign(number);
    }
    let (mut term, mut sum, mut odd) = (number, number, 1.0);
    while term.abs() > sum.abs() * 1e-17 && odd < 400.0 {
        odd += 2.0;
        term *= 2.0 * number * number / odd;
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-number * number).exp() * sum
}

fn erfc(number: f64) -> f64 {
    if number < 3.0 {
        return 1.0 - erf(number);
    }
    let fraction = (1..60).rev().fold(number, |below, step| number + f64::from(step) / 2.0 / below);
    (-number * number).exp() / fraction / std::f64::consts::PI.sqrt()
}

/// The next number that a double can hold on the way to the other one.
fn next_after(from: f64, to: f64) -> f64 {
    if from.is_nan() || to.is_nan() {
        f64::NAN
    } else if from < to {
        from.next_up()
    } else if from > to {
        from.next_down()
    } else {
        to
    }
}

fn width_bucket(arguments: &Arguments) -> Result<ArrayRef> {
    let (values, lows) = (arguments.read::<Float>(0)?, arguments.read::<Float>(1)?);
    let (highs, counts) = (arguments.read::<Float>(2)?, arguments.read::<Int>(3)?);
    fill::<crate::values::Int64, Result<Option<i64>>>(arguments, |row| {
        let (Some(value), Some(low)) = (values.get(row)?, lows.get(row)?) else { return Ok(None) };
        let (Some(high), Some(count)) = (highs.get(row)?, counts.get(row)?) else { return Ok(None) };
        bucket_of(value, (low, high), count).map(Some)
    })
}

fn bucket_of(value: f64, (low, high): (f64, f64), count: i64) -> Result<i64> {
    if count <= 0 {
        return exec_err!("count must be greater than zero");
    }
    if value.is_nan() || low.is_nan() || high.is_nan() {
        return exec_err!("operand, lower bound, and upper bound cannot be NaN");
    }
    if low == high {
        return exec_err!("lower bound cannot equal upper bound");
    }
    let (value, low, high) = if low < high { (value, low, high) } else { (-value, -low, -high) };
    if value < low {
        return Ok(0);
    }
    if value >= high {
        return Ok(count.saturating_add(1));
    }
    let bucket = ((value - low) / (high - low) * count as f64).floor() as i64;
    Ok(bucket.min(count - 1) + 1)
}

const ONE: &[&[Kind]] = &[&[Number]];
const TWO: &[&[Kind]] = &[&[Number, Number]];

pub(super) const FUNCTIONS: &[Function] = functions! {
    scalar;
    "ln": ONE, Float, |a| within(a, logarithm, f64::ln) => "the natural logarithm";
    "log10": ONE, Float, |a| within(a, logarithm, f64::log10) => "the logarithm to base 10";
    "log2": ONE, Float, |a| within(a, logarithm, f64::log2) => "the logarithm to base 2";
    "log": &[&[Number], &[Number, Number]], Float, |a| {
        if a.is_mysql() && a.len() == 1 { within(a, logarithm, f64::ln) } else { log(a) }
    } =>
        "the logarithm to base 10, or `log(base, x)`", note("in dialect `mysql` `log(x)` is the natural one");
    "log1p": ONE, Float, |a| within(a, anywhere, f64::ln_1p) => "the natural logarithm of 1 + x";
    "expm1": ONE, Float, |a| within(a, anywhere, f64::exp_m1) => "e to a power, minus 1";
    "sqrt": ONE, Float, |a| within(a, root, f64::sqrt) => "the square root";
    "acos": ONE, Float, |a| within(a, unit, f64::acos) => "the inverse cosine";
    "asin": ONE, Float, |a| within(a, unit, f64::asin) => "the inverse sine";
    "sec": ONE, Float, |a| within(a, anywhere, |x| 1.0 / x.cos()) => "the secant";
    "csc": ONE, Float, |a| within(a, anywhere, |x| 1.0 / x.sin()) => "the cosecant";
    "sind": ONE, Float, |a| within(a, anywhere, |x| degrees(x, f64::sin)) => "the sine of degrees";
    "cosd": ONE, Float, |a| within(a, anywhere, |x| degrees(x, f64::cos)) => "the cosine of degrees";
    "tand": ONE, Float, |a| within(a, anywhere, |x| degrees(x, f64::sin) / degrees(x, f64::cos)) =>
        "the tangent of degrees";
    "cotd": ONE, Float, |a| within(a, anywhere, |x| degrees(x, f64::cos) / degrees(x, f64::sin)) =>
        "the cotangent of degrees";
    "asind": ONE, Float, |a| within(a, unit, |x| tidy(x.asin().to_degrees())) =>
        "the inverse sine in degrees";
    "acosd": ONE, Float, |a| within(a, unit, |x| tidy(x.acos().to_degrees())) =>
        "the inverse cosine in degrees";
    "atand": ONE, Float, |a| within(a, anywhere, |x| tidy(x.atan().to_degrees())) =>
        "the inverse tangent in degrees";
    "atan2d": TWO, Float,
        |a| map2::<Float, Float, Real, _>(a, |y: f64, x: f64| tidy(y.atan2(x).to_degrees())) =>
        "the inverse tangent of a quotient in degrees";
    "hypot": TWO, Float, |a| map2::<Float, Float, Real, _>(a, f64::hypot) => "the length of the diagonal";
    "gamma": ONE, Float, |a| within(a, pole, gamma) => "the gamma function";
    "lgamma": ONE, Float, |a| within(a, pole, log_gamma) => "the logarithm of the gamma function";
    "erf": ONE, Float, |a| within(a, anywhere, erf) => "the error function";
    "erfc": ONE, Float, |a| within(a, anywhere, erfc) => "1 minus the error function";
    "signbit": ONE, Bool, |a| map1::<Float, Flag, _>(a, f64::is_sign_negative) =>
        "whether the sign is a minus";
    "nextafter": TWO, Float, |a| map2::<Float, Float, Real, _>(a, next_after) =>
        "the next double on the way to the second number";
    "isinf": ONE, Bool, |a| map1::<Float, Flag, _>(a, f64::is_infinite) => "whether it is infinite";
    "width_bucket": &[&[Number, Number, Number, Whole]], Int, width_bucket =>
        "in which of equally wide buckets a number lies";
    "e": &[&[]], Float, |a| fill::<Real, _>(a, |_| std::f64::consts::E) => "the number e";
};

/// Exact at the multiples of 30 degrees, as PostgreSQL's functions of degrees are.
fn degrees(number: f64, function: fn(f64) -> f64) -> f64 {
    let found = function((number % 360.0).to_radians());
    let halves = (found * 2.0).round();
    if (found * 2.0 - halves).abs() < 1e-12 { halves / 2.0 } else { found }
}

/// Whole degrees where rounding alone keeps them from that.
fn tidy(degrees: f64) -> f64 {
    let whole = degrees.round();
    if (degrees - whole).abs() < 1e-12 { whole } else { degrees }
}
