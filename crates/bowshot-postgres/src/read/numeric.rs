//! Numerics: PostgreSQL keeps the digits of each value, Arrow one precision and scale for the whole column. They are gathered as
//! digits, and the column is as wide as it has to be.

use super::invalid;
use crate::status::Failure;
use arrow::array::{ArrayRef, Decimal128Array, Decimal256Array};
use arrow::datatypes::i256;
use arrow::error::ArrowError;
use std::sync::Arc;

/// Digits that Arrow's widest decimal has.
const MOST_DIGITS: usize = 76;
const MOST_DIGITS_128: usize = 38;

/// A number without its point.
struct Number {
    negative: bool,
    digits: String,
    scale: usize,
}

/// See the module.
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
                    Failure::new("22003", format!("\"{text}\" cannot be kept as a numeric"))
                        .with_hint("use a double")
                }
                _ => invalid("numeric", text),
            })?;
        self.whole = self.whole.max(number.digits.len().saturating_sub(number.scale));
        self.scale = self.scale.max(number.scale);
        self.values.push(Some(number));
        Ok(())
    }

    pub(super) fn finish(self) -> Result<ArrayRef, Failure> {
        let precision = (self.whole + self.scale).max(1);
        if precision > MOST_DIGITS {
            let message = format!("a numeric needs {precision} digits, and the limit is {MOST_DIGITS}");
            return Err(Failure::new("22003", message));
        }
        let scale = self.scale;
        let digits = self.values.into_iter().map(|value| value.map(|number| number.at(scale)));
        let shape = (u8::try_from(precision).unwrap_or(u8::MAX), i8::try_from(scale).unwrap_or(i8::MAX));
        let array = match precision > MOST_DIGITS_128 {
            false => narrow(digits, shape),
            true => wide(digits, shape),
        };
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
    /// Sign and digits with this many of them behind the point.
    fn at(&self, scale: usize) -> String {
        let zeros = "0".repeat(scale.saturating_sub(self.scale));
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
    let mut digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let scale = i64::try_from(fraction.len()).ok()? - i64::from(exponent);
    if scale < 0 {
        // At most as many as an exponent of 16 bits says.
        digits.push_str(&"0".repeat(usize::try_from(-scale).ok()?));
    }
    let digits = digits.trim_start_matches('0').to_owned();
    Some(Number { negative: text.starts_with('-'), digits, scale: usize::try_from(scale).unwrap_or(0) })
}
