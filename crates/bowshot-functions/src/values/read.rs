//! Arguments, value by value.

use crate::date::parse::{instant_of_text, stamp_of_text};
use arrow::array::timezone::Tz;
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Float64Array, Int64Array,
    IntervalMonthDayNanoArray, StringArray, Time64NanosecondArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{
    DataType, Date32Type, Float64Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    Time64NanosecondType, TimestampMicrosecondType,
};
use bowshot_api::{offset_of_clock, offset_of_instant};
use datafusion::common::{Result, exec_datafusion_err};

pub(crate) trait Column<'a> {
    type Reader: 'a;
    type Item;
    fn open(array: &'a ArrayRef) -> Result<Self::Reader>;
    fn get(reader: &Self::Reader, row: usize) -> Result<Option<Self::Item>>;
}

/// Markers whose arrays have one value for each row.
macro_rules! plain {
    ($($name:ident, $array:ty, $item:ty, $cast:expr;)*) => {$(
        pub(crate) struct $name;

        impl<'a> Column<'a> for $name {
            type Reader = &'a $array;
            type Item = $item;

            fn open(array: &'a ArrayRef) -> Result<&'a $array> {
                let cast: fn(&'a ArrayRef) -> Option<&'a $array> = $cast;
                cast(array).ok_or_else(|| unexpected(array))
            }

            fn get(reader: &&'a $array, row: usize) -> Result<Option<$item>> {
                let reader: &'a $array = reader;
                Ok(reader.is_valid(row).then(|| reader.value(row)))
            }
        }
    )*};
}

plain! {
    Text, StringArray, &'a str, |array| array.as_string_opt::<i32>();
    Bytes, BinaryArray, &'a [u8], |array| array.as_binary_opt::<i32>();
    Int, Int64Array, i64, |array| array.as_primitive_opt::<Int64Type>();
    Float, Float64Array, f64, |array| array.as_primitive_opt::<Float64Type>();
    Bool, BooleanArray, bool, |array| array.as_boolean_opt();
    Time, Time64NanosecondArray, i64, |array| array.as_primitive_opt::<Time64NanosecondType>();
    Interval, IntervalMonthDayNanoArray, IntervalMonthDayNano, |array| array.as_primitive_opt::<IntervalMonthDayNanoType>();
}

fn unexpected(array: &ArrayRef) -> datafusion::common::DataFusionError {
    exec_datafusion_err!("a value of type {} is not expected here", array.data_type())
}

/// Microseconds between UTC and local time, by the clock on the wall.
pub(crate) fn offset_at(zone: Tz, local: i64) -> i64 {
    i64::from(offset_of_clock(zone, local.div_euclid(SECOND))) * SECOND
}

/// Something that denotes a date or a point in time.
pub(crate) enum Times<'a> {
    Days(&'a Date32Array),
    Micros(&'a TimestampMicrosecondArray, Option<Tz>),
    Text(&'a StringArray),
}

impl<'a> Times<'a> {
    fn open(array: &'a ArrayRef) -> Result<Self> {
        match array.data_type() {
            DataType::Date32 => {
                array.as_primitive_opt::<Date32Type>().map(Self::Days).ok_or_else(|| unexpected(array))
            }
            DataType::Timestamp(_, zone) => {
                let zone = zone.as_deref().map(str::parse::<Tz>).transpose()?;
                let micros = array.as_primitive_opt::<TimestampMicrosecondType>();
                micros.map(|micros| Self::Micros(micros, zone)).ok_or_else(|| unexpected(array))
            }
            _ => array.as_string_opt::<i32>().map(Self::Text).ok_or_else(|| unexpected(array)),
        }
    }

    fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Days(array) => array.is_null(row),
            Self::Micros(array, _) => array.is_null(row),
            Self::Text(array) => array.is_null(row),
        }
    }
}

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// Microseconds between UTC and local time at that moment.
pub(crate) fn offset_micros(zone: Tz, utc: i64) -> i64 {
    i64::from(offset_of_instant(zone, utc.div_euclid(SECOND))) * SECOND
}

/// Microseconds since 1970-01-01 00:00 of the clock on the wall: of a timestamp with time zone, in its zone.
pub(crate) struct Stamp;

impl<'a> Column<'a> for Stamp {
    type Reader = Times<'a>;
    type Item = i64;

    fn open(array: &'a ArrayRef) -> Result<Times<'a>> {
        Times::open(array)
    }

    fn get(reader: &Times<'a>, row: usize) -> Result<Option<i64>> {
        if reader.is_null(row) {
            return Ok(None);
        }
        match reader {
            Times::Days(days) => Ok(i64::from(days.value(row)).checked_mul(DAY)),
            Times::Micros(micros, None) => Ok(Some(micros.value(row))),
            Times::Micros(micros, Some(zone)) => {
                let utc = micros.value(row);
                Ok(Some(utc.saturating_add(offset_micros(*zone, utc))))
            }
            Times::Text(text) => stamp_of_text(text.value(row)).map(Some),
        }
    }
}

/// Microseconds since 1970-01-01 00:00 UTC; what has no zone is in UTC.
pub(crate) struct Moment;

impl<'a> Column<'a> for Moment {
    type Reader = Times<'a>;
    type Item = i64;

    fn open(array: &'a ArrayRef) -> Result<Times<'a>> {
        Times::open(array)
    }

    fn get(reader: &Times<'a>, row: usize) -> Result<Option<i64>> {
        match reader {
            Times::Micros(micros, _) => Ok(micros.is_valid(row).then(|| micros.value(row))),
            Times::Text(text) => text.is_valid(row).then(|| instant_of_text(text.value(row))).transpose(),
            Times::Days(_) => Stamp::get(reader, row),
        }
    }
}

/// Days since 1970-01-01.
pub(crate) struct Date;

impl<'a> Column<'a> for Date {
    type Reader = Times<'a>;
    type Item = i32;

    fn open(array: &'a ArrayRef) -> Result<Times<'a>> {
        Times::open(array)
    }

    fn get(reader: &Times<'a>, row: usize) -> Result<Option<i32>> {
        let micros = Stamp::get(reader, row)?;
        Ok(micros.and_then(|micros| i32::try_from(micros.div_euclid(DAY)).ok()))
    }
}
