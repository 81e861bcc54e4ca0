//! Numerics: PostgreSQL stores a scale with each value, Arrow one for the whole column. The values are collected as digits,
//! and the column gets the precision and scale that they need.

use super::invalid;
use crate::status::Failure;
use arrow::array::{ArrayRef, Decimal128Array, Decimal256Array};
use arrow::datatypes::i256;
use arrow::error::ArrowError;
use std::sync::Arc;

/// Digits of Arrow's widest decimal.
const MOST_DIGITS: usize = 76;
const MOST_DIGITS_128: usize = 38;

/// A number without its decimal point: its digits, and how many zeros follow them before the point.
struct Number {
    negative: bool,
    digits: String,
    zeros: usize,
    scale: usize,
}

#[derive(Default)]
pub(super) struct Numerics {
    values: Vec<Option<Number>>,
    whole: usize,
    scale: usize,
}

impl Numerics {
    pub(super) fn push_null(&mut self) {
        self.values.push(None);
    }

    /// Adds a number that is written in decimal digits, perhaps with an exponent.
    pub(super) fn push(&mut self, text: &str) -> Result<(), Failure> {
        let number =
            number(text).ok_or_else(|| match text.to_ascii_lowercase().trim_start_matches(['+', '-']) {
                "nan" | "infinity" | "inf" => {
                    Failure::new("22003", format!("cannot store \"{text}\" as a numeric"))
                        .with_hint("use a double")
                }
                _ => invalid("numeric", text),
            })?;
        self.whole = self.whole.max((number.digits.len() + number.zeros).saturating_sub(number.scale));
        self.scale = self.scale.max(number.scale);
        // Checked for each value: an exponent can stand for more digits than there is memory.
        self.check()?;
        self.values.push(Some(number));
        Ok(())
    }

    /// The digits of the column, if Arrow has so many.
    fn check(&self) -> Result<usize, Failure> {
        let precision = (self.whole + self.scale).max(1);
        if precision > MOST_DIGITS {
            let message = format!("a numeric needs {precision} digits, and the limit is {MOST_DIGITS}");
            return Err(Failure::new("22003", message));
        }
        Ok(precision)
    }

    pub(super) fn finish(self) -> Result<ArrayRef, Failure> {
        let precision = self.check()?;
        let scale = self.scale;
        let digits = self.values.into_iter().map(|value| value.map(|number| number.at(scale)));
        let shape = (u8::try_from(precision).unwrap_or(u8::MAX), i8::try_from(scale).unwrap_or(i8::MAX));
        let array = if precision > MOST_DIGITS_128 { wide(digits, shape) } else { narrow(digits, shape) };
        array.map_err(|error| Failure::new("22003", format!("numerics make no column: {error}")))
    }
}

type Built = Result<ArrayRef, ArrowError>;

fn narrow(digits: impl Iterator<Item = Option<String>>, (precision, scale): (u8, i8)) -> Built {
    let values: Decimal128Array =
        digits.map(|digits| digits.and_then(|digits| digits.parse::<i128>().ok())).collect();
    Ok(Arc::new(values.with_precision_and_scale(precision, scale)?))
}

fn wide(digits: impl Iterator<Item = Option<String>>, (precision, scale): (u8, i8)) -> Built {
    let values: Decimal256Array =
        digits.map(|digits| digits.and_then(|digits| i256::from_string(&digits))).collect();
    Ok(Arc::new(values.with_precision_and_scale(precision, scale)?))
}

impl Number {
    /// Sign and digits with this scale.
    fn at(&self, scale: usize) -> String {
        let zeros = "0".repeat((scale + self.zeros).saturating_sub(self.scale));
        format!("{}0{}{zeros}", if self.negative { "-" } else { "" }, self.digits)
    }
}

fn number(text: &str) -> Option<Number> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i16>().ok()?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if mantissa.len() == usize::from(mantissa.contains('.')) || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let scale = i64::try_from(fraction.len()).ok()? - i64::from(exponent);
    let digits = format!("{whole}{fraction}").trim_start_matches('0').to_owned();
    let zeros = if digits.is_empty() { 0 } else { usize::try_from(-scale).unwrap_or(0) };
    let scale = usize::try_from(scale).unwrap_or(0);
    Some(Number { negative: text.starts_with('-'), digits, zeros, scale })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exponent_takes_no_memory() {
        let number = number("-1.5e32767").expect("a number");
        assert_eq!((number.digits.as_str(), number.zeros, number.scale), ("15", 32_766, 0));
        let mut numbers = Numerics::default();
        assert!(numbers.push("1e75").is_ok());
        assert_eq!(numbers.push("0.01").map_err(|failure| failure.code), Err("22003"));
        assert_eq!(numbers.values.len(), 1, "the first that does not fit is not kept");
    }
}
