//! `CAST(x AS SIGNED)` and `CAST(x AS UNSIGNED)` of MySQL, which fail for no value: integers and texts keep their bits, so that -1 is
//! the greatest unsigned number; other numbers are rounded, and end where the type ends; the digits of a time are the number.

use super::functions::{only, whole};
use bowshot_functions::{PlanFunction, plan_function};
use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, UInt64Array};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type, UInt64Type};
use datafusion::arrow::util::display::FormatOptions;
use datafusion::common::Result;
use datafusion::logical_expr::{ScalarUDF, Signature, Volatility};
use std::sync::Arc;

pub(super) const STRICT: CastOptions<'static> =
    CastOptions { safe: false, format_options: FormatOptions::new() };
const WHOLE: DataType = DataType::Decimal128(38, 0);

pub(super) fn functions() -> [ScalarUDF; 2] {
    [Integer::Signed, Integer::Unsigned]
        .map(|integer| plan_function(integer, Signature::any(1, Volatility::Immutable)))
}

pub(super) fn signed() -> ScalarUDF {
    let [signed, _] = functions();
    signed
}

/// The values as signed numbers.
pub(super) fn signed_values(given: &[ArrayRef]) -> Result<ArrayRef> {
    Integer::Signed.compute(given)
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Integer {
    Signed,
    Unsigned,
}

impl PlanFunction for Integer {
    fn name(&self) -> &'static str {
        match self {
            Self::Signed => bowshot_sql::rewrite::CAST_TO_SIGNED,
            Self::Unsigned => bowshot_sql::rewrite::CAST_TO_UNSIGNED,
        }
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(match self {
            Self::Signed => DataType::Int64,
            Self::Unsigned => DataType::UInt64,
        })
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, arguments: &[ArrayRef]) -> Result<ArrayRef> {
        let given = only(arguments)?;
        if given.data_type().is_integer() {
            return self.same_bits(given);
        }
        let (least, greatest) = match self {
            _ if given.data_type().is_string() => (i128::from(i64::MIN), i128::from(u64::MAX)),
            Self::Signed => (i128::from(i64::MIN), i128::from(i64::MAX)),
            Self::Unsigned => (0, i128::from(u64::MAX)),
        };
        let numbers = whole_numbers(given)?;
        let numbers = numbers.into_iter().map(|number| number.map(|number| number.clamp(least, greatest)));
        Ok(match self {
            Self::Signed => {
                Arc::new(numbers.map(|number| number.map(|it| it as i64)).collect::<Int64Array>())
            }
            Self::Unsigned => {
                Arc::new(numbers.map(|number| number.map(|it| it as u64)).collect::<UInt64Array>())
            }
        })
    }
}

impl Integer {
    /// Integers of another width, and those of the other sign with the same bits.
    fn same_bits(&self, given: &ArrayRef) -> Result<ArrayRef> {
        let is_unsigned = given.data_type().is_unsigned_integer();
        let wide = if is_unsigned { DataType::UInt64 } else { DataType::Int64 };
        let wide = cast_with_options(given, &wide, &STRICT)?;
        Ok(match self {
            Self::Signed if is_unsigned => {
                Arc::new(wide.as_primitive::<UInt64Type>().unary::<_, Int64Type>(|number| number as i64))
            }
            Self::Unsigned if !is_unsigned => {
                Arc::new(wide.as_primitive::<Int64Type>().unary::<_, UInt64Type>(|number| number as u64))
            }
            _ => wide,
        })
    }
}

/// The whole numbers that values are.
fn whole_numbers(given: &ArrayRef) -> Result<Vec<Option<i128>>> {
    if given.data_type().is_floating() {
        let rounded = whole(given).unwrap_or_else(|| Arc::clone(given));
        let rounded = cast_with_options(&rounded, &DataType::Float64, &STRICT)?;
        let numbers = rounded.as_primitive::<Float64Type>().iter();
        return Ok(numbers.map(|number| number.map(|number| number as i128)).collect());
    }
    if given.data_type().is_string() || given.data_type().is_temporal() {
        let is_time = given.data_type().is_temporal();
        let texts = cast_with_options(given, &DataType::Utf8, &STRICT)?;
        let number = |text: &str| if is_time { digits_of_time(text) } else { leading_number(text) };
        return Ok(texts.as_string::<i32>().iter().map(|text| text.map(number)).collect());
    }
    let given = match given.data_type() {
        DataType::Boolean | DataType::Null => &cast_with_options(given, &DataType::Int64, &STRICT)?,
        _ => given,
    };
    let numbers = cast_with_options(given, &WHOLE, &STRICT)?;
    Ok(numbers.as_primitive::<Decimal128Type>().iter().collect())
}

/// The whole number that a text begins with, or 0.
fn leading_number(text: &str) -> i128 {
    let text = text.trim_start();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.bytes().map_while(|digit| digit.is_ascii_digit().then(|| i128::from(digit - b'0')));
    let number = digits.fold(0_i128, |number, digit| number.saturating_mul(10).saturating_add(digit));
    number.saturating_mul(sign)
}

/// `2024-02-29T10:11:12.5+02:00` is 20240229101112.
fn digits_of_time(text: &str) -> i128 {
    let whole = text.get(.."2024-02-29T10:11:12".len()).unwrap_or(text);
    let whole = whole.split_once('.').map_or(whole, |(whole, _)| whole);
    let digits = whole.bytes().filter(u8::is_ascii_digit);
    digits.fold(0, |number, digit| number * 10 + i128::from(digit - b'0'))
}
