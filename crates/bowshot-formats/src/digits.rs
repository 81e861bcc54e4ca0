//! Digits of numbers in texts: which type holds all numbers of a column as they are written. A whole number never loses a digit;
//! those of a fraction beyond what 64 bits hold are rounded, as everywhere.

use crate::csv::values::sign;
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType};

/// Digits that each floating-point number of 64 bits keeps.
const SAFE_DIGITS: usize = 15;
const MAX_DIGITS: usize = DECIMAL128_MAX_PRECISION as usize;
/// The least number of one digit more.
const LEAST_TOO_LARGE: i128 = 10_i128.pow(DECIMAL128_MAX_PRECISION as u32);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Digits {
    /// Before the decimal point.
    whole: usize,
    /// Behind it.
    fraction: usize,
    /// Some are no plain digits: `1e5`, `nan`.
    scientific: bool,
    /// Some are whole numbers that are none of 64 bits of floating point.
    inexact: bool,
}

impl Digits {
    /// Of one number, with `.` for its point.
    pub(crate) fn of(number: &[u8]) -> Self {
        let digits = unsigned(number);
        let mut parts = digits.splitn(2, |byte| *byte == b'.');
        let (whole, fraction) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let scientific = !whole.iter().chain(fraction).all(u8::is_ascii_digit);
        Self {
            whole: whole.len(),
            fraction: fraction.len(),
            scientific,
            inexact: !scientific && !is_exact(number),
        }
    }

    pub(crate) fn unite(&mut self, other: Self) {
        self.whole = self.whole.max(other.whole);
        self.fraction = self.fraction.max(other.fraction);
        self.scientific |= other.scientific;
        self.inexact |= other.inexact;
    }

    /// The type of whole numbers that 64 bits do not hold.
    pub(crate) fn huge_type(self) -> DataType {
        match self.whole <= MAX_DIGITS {
            true => DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0),
            false => DataType::Utf8,
        }
    }

    /// The type of numbers of which some have a fraction.
    pub(crate) fn real_type(self) -> DataType {
        let scale = i8::try_from(self.fraction).ok().filter(|_| self.whole + self.fraction <= MAX_DIGITS);
        match scale {
            _ if !self.inexact => DataType::Float64,
            Some(scale) if !self.scientific => DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale),
            _ => DataType::Utf8,
        }
    }
}

/// Whether 64 bits of floating point give a number back as it is written, if it is a whole one: `9007199254740993` is not.
pub(crate) fn is_exact(number: &[u8]) -> bool {
    let digits = unsigned(number);
    if digits.len() <= SAFE_DIGITS || !digits.iter().all(u8::is_ascii_digit) {
        return true;
    }
    let Ok(text) = std::str::from_utf8(digits) else { return false };
    let Ok(real) = text.parse::<f64>() else { return false };
    // Within 38 digits the number is compared, beyond that its shortest form.
    let same = |whole: u128| whole < 1 << 127 && real as u128 == whole;
    text.parse().is_ok_and(same) || real.to_string() == text
}

/// A decimal number in units of `10^-scale`; `None` if it has digits that those do not hold.
pub(crate) fn decimal(number: &[u8], scale: i8) -> Option<i128> {
    let digits = unsigned(number);
    let mut parts = digits.splitn(2, |byte| *byte == b'.');
    let (whole, fraction) = (parts.next()?, parts.next().unwrap_or_default());
    let scale = usize::try_from(scale).ok()?;
    let (kept, rest) = fraction.split_at(scale.min(fraction.len()));
    let zeros = std::iter::repeat_n(&b'0', scale - kept.len());
    let plain = whole.iter().chain(kept).all(u8::is_ascii_digit) && rest.iter().all(|byte| *byte == b'0');
    if !plain || digits.len() == usize::from(digits.contains(&b'.')) {
        return None;
    }
    let add = |value: i128, digit: &u8| value.checked_mul(10)?.checked_add(i128::from(digit - b'0'));
    let value =
        whole.iter().chain(kept).chain(zeros).try_fold(0, add).filter(|value| *value < LEAST_TOO_LARGE)?;
    Some(if number.first() == Some(&b'-') { -value } else { value })
}

fn unsigned(number: &[u8]) -> &[u8] {
    sign(number).1
}

#[cfg(test)]
mod tests {
    use super::{Digits, decimal, is_exact};

    #[test]
    fn whole_numbers_are_exact_or_said_not_to_be() {
        for (number, exact) in [
            ("9007199254740992", true),
            ("9007199254740993", false),
            ("-9007199254740993", false),
            ("18446744073709551616", true),
            ("18446744073709551617", false),
            ("100000000000000000000", true),
            // The shortest text of the number that it is, as programs write it.
            ("123456789012345680000", true),
            ("123456789012345678901234567890123456789012345", false),
            ("0.12345678901234567890", true),
            ("1e300", true),
        ] {
            assert_eq!(is_exact(number.as_bytes()), exact, "{number}");
        }
    }

    #[test]
    fn the_type_holds_all_digits() {
        for (numbers, expected) in [
            (&["1", "2.5"][..], "Float64"),
            (&["9007199254740993", "2.5"], "Decimal128(38, 1)"),
            (&["9007199254740993", "1e5"], "Utf8"),
            (&["9007199254740993", "0.1234567890123456789012345"], "Utf8"),
            (&["1", "0.1234567890123456789012345"], "Float64"),
        ] {
            let mut digits = Digits::default();
            numbers.iter().for_each(|number| digits.unite(Digits::of(number.as_bytes())));
            assert_eq!(digits.real_type().to_string(), expected, "{numbers:?}");
        }
    }

    #[test]
    fn decimals_lose_nothing() {
        for (number, scale, expected) in [
            ("9007199254740993", 1, Some(90_071_992_547_409_930)),
            ("-1.50", 1, Some(-15)),
            ("1.55", 1, None),
            (".5", 1, Some(5)),
            ("1e3", 0, None),
            (".", 0, None),
            ("", 0, None),
            ("-", 2, None),
            ("99999999999999999999999999999999999999", 0, Some(10_i128.pow(38) - 1)),
            ("99999999999999999999999999999999999999", 1, None),
        ] {
            assert_eq!(decimal(number.as_bytes(), scale), expected, "{number}");
        }
    }
}
