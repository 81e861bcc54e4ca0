//! Dates and times as numbers: days and microseconds since 1970-01-01.

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use arrow::error::ArrowError;

/// Microseconds of a day.
pub const DAY_MICROS: i64 = 86_400_000_000;

/// A number of a unit in microseconds, rounded towards the past; `None` if they do not fit.
#[inline]
pub fn micros(value: i64, unit: TimeUnit) -> Option<i64> {
    match unit {
        TimeUnit::Second => value.checked_mul(1_000_000),
        TimeUnit::Millisecond => value.checked_mul(1_000),
        TimeUnit::Microsecond => Some(value),
        TimeUnit::Nanosecond => Some(value.div_euclid(1_000)),
    }
}

/// Year, month and day of a number of days since 1970-01-01, in the Gregorian calendar (H. Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms").
#[inline]
pub fn civil_date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The whole numbers below an array of times, timestamps or durations.
pub fn ticks(array: &ArrayRef) -> Result<PrimitiveArray<Int64Type>, ArrowError> {
    let stored = match array.data_type() {
        DataType::Time32(_) => DataType::Int32,
        _ => DataType::Int64,
    };
    let numbers = arrow::array::make_array(array.to_data().into_builder().data_type(stored).build()?);
    let numbers = arrow::compute::cast(&numbers, &DataType::Int64)?;
    Ok(numbers.as_primitive::<Int64Type>().clone())
}
