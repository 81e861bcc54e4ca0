//! `CAST(x AS SIGNED)` and `CAST(x AS UNSIGNED)` of MySQL, which fail for no value: integers and texts keep their bits, so that -1 is
//! the greatest unsigned number; other numbers are rounded, and end where the type ends; the digits of a time are the number.

use super::functions::{only, whole};
use bowshot_functions::{PlanFunction, plan_function};
use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, UInt64Array};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Float64Type};
use datafusion::arrow::util::display::FormatOptions;
use datafusion::common::Result;
use datafusion::logical_expr::{ScalarUDF, Signature, Volatility};
use std::sync::Arc;

const STRICT: CastOptions<'static> = CastOptions { safe: false, format_options: FormatOptions::new() };
const WHOLE: DataType = DataType::Decimal128(38, 0);

pub(super) fn functions() -> [ScalarUDF; 2] {
    [Integer::Signed, Integer::Unsigned]
        .map(|integer| plan_function(integer, Signature::any(1, Volatility::Immutable)))
}

pub(super) fn signed() -> ScalarUDF {
    let [signed, _] = functions();
    signed
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
        let keeps_bits = given.data_type().is_integer() || given.data_type().is_string();
        let (least, greatest) = match self {
            _ if keeps_bits => (i128::from(i64::MIN), i128::from(u64::MAX)),
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
