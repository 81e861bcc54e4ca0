//! NUMERIC from texts, with exponents as PostgreSQL reads them, and from numbers with more digits than a NUMERIC without a scale
//! has here. PostgreSQL keeps all digits, so a number that would lose all of them is an error, not zero.

use super::planner::PLAIN_DECIMAL;
use bowshot_api::{Error, Reason};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, StringArray};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Float64Type};
use datafusion::common::Result;
use datafusion::error::DataFusionError;
use std::borrow::Cow;
use std::sync::Arc;

/// More digits than a decimal has.
const MANY_DIGITS: usize = 76;
const PLAIN: DataType = DataType::Decimal128(PLAIN_DECIMAL.0, PLAIN_DECIMAL.1);

/// Whether numbers of a type can have so many digits behind the point that none of them are kept.
pub(super) fn may_lose_all(from: &DataType, to: &DataType) -> bool {
    *to == PLAIN
        && match from {
            DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => *scale > PLAIN_DECIMAL.1,
            other => other.is_floating(),
        }
}

/// Whether a cast of decimals drops digits. DataFusion compares a decimal without its cast, and takes 2.40 for more than 2 where its
/// cast to an integer is compared; it looks through no function.
pub(super) fn rounds(from: &DataType, to: &DataType) -> bool {
    let scale = |of: &DataType| match of {
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) => Some(*scale),
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => Some(*scale),
        _ => None,
    };
    matches!((scale(from), scale(to)), (Some(from), Some(to)) if to < from)
}

/// Texts or numbers as decimals; where it is tried, what is none is NULL.
pub(super) fn values(given: &ArrayRef, to: &DataType, tries: bool) -> Result<ArrayRef> {
    let options = CastOptions { safe: tries, ..CastOptions::default() };
    let is_text = given.data_type().is_string();
    let given = if is_text { in_digits(&cast(given, &DataType::Utf8)?, to) } else { Arc::clone(given) };
    let read = cast_with_options(&given, to, &options)?;
    if *to != PLAIN {
        return Ok(read);
    }
    let decimals = read.as_primitive::<Decimal128Type>();
    let zeros: Vec<usize> =
        (0..decimals.len()).filter(|row| decimals.is_valid(*row) && decimals.value(*row) == 0).collect();
    if zeros.is_empty() {
        return Ok(read);
    }
    let is_zero: Box<dyn Fn(usize) -> bool> = if is_text {
        let texts = given.as_string::<i32>().clone();
        Box::new(move |row| !texts.value(row).bytes().any(|byte| matches!(byte, b'1'..=b'9')))
    } else {
        let numbers = cast(&given, &DataType::Float64)?.as_primitive::<Float64Type>().clone();
        Box::new(move |row| numbers.value(row) == 0.0)
    };
    match zeros.iter().any(|row| !is_zero(*row)) {
        false => Ok(read),
        true if tries => {
            let kept = decimals.iter().enumerate();
            let kept = kept.map(|(row, value)| value.filter(|value| *value != 0 || is_zero(row)));
            let kept = kept.collect::<Decimal128Array>();
            Ok(Arc::new(kept.with_precision_and_scale(PLAIN_DECIMAL.0, PLAIN_DECIMAL.1)?))
        }
        true => Err(too_small()),
    }
}

fn too_small() -> DataFusionError {
    let digits = PLAIN_DECIMAL.1;
    let error = Error::invalid(format!(
        "a number is too small for NUMERIC, which keeps {digits} digits behind the point"
    ))
    .with_reason(Reason::OutOfRange)
    .with_hint("write NUMERIC(precision, scale) with as many digits as are needed, or DOUBLE");
    DataFusionError::External(Box::new(error))
}

/// The texts as Arrow reads them: without exponents, and without more digits than it takes.
fn in_digits(texts: &ArrayRef, to: &DataType) -> ArrayRef {
    let scale = match to {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => usize::try_from(*scale).unwrap_or(0),
        _ => 0,
    };
    let asks = |text: &str| text.len() > MANY_DIGITS || text.contains(['e', 'E']);
    let given = texts.as_string::<i32>();
    if !given.iter().flatten().any(asks) {
        return Arc::clone(texts);
    }
    let plain = given.iter().map(|text| {
        let text = text?;
        let plain = if asks(text) { without_exponent(text, scale) } else { None };
        Some(plain.map_or(Cow::Borrowed(text), Cow::Owned))
    });
    Arc::new(plain.collect::<StringArray>())
}

/// `1.5e3` as `1500.`, with one digit behind those that are kept, by which is rounded; the last one says that a number was none.
fn without_exponent(text: &str, scale: usize) -> Option<String> {
    let text = text.trim();
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i64 = exponent.parse().ok()?;
    let (sign, number) = match mantissa.strip_prefix('-') {
        Some(number) => ("-", number),
        None => ("", mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let point = i64::try_from(whole.len()).ok()?.saturating_add(exponent);
    let (whole, mut fraction) = match usize::try_from(point) {
        // As zero may be written with any exponent, its digits are not written out.
        Ok(point) if point >= digits.len() => {
            let zeros = (point - digits.len()).min(MANY_DIGITS + 1);
            (format!("{digits}{}", "0".repeat(zeros)), String::new())
        }
        Ok(point) => (digits.get(..point)?.to_owned(), digits.get(point..)?.to_owned()),
        Err(_) => {
            let zeros = usize::try_from(point.unsigned_abs()).ok()?.min(MANY_DIGITS);
            (String::new(), format!("{}{digits}", "0".repeat(zeros)))
        }
    };
    if let Some((kept, rest)) = fraction.split_at_checked(scale + 1) {
        let last = if rest.bytes().any(|digit| digit != b'0') { "1" } else { "" };
        fraction = format!("{kept}{last}");
    }
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    Some(format!("{sign}{whole}.{fraction}"))
}
