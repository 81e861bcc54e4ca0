//! `date_trunc`: points in time, times of the day and intervals cut to a unit, those with a time zone on the clock of their
//! zone. All in microseconds, in which the years up to 9999 have a place; DataFusion's goes through nanoseconds.

use super::arithmetic::moved_type;
use super::calendar::{DAY, HOUR, MINUTE, SECOND, interval as span_of, out_of_range};
use super::constructors::known_zone;
use super::difference::{field_named, first_day_in};
use super::fields::Field;
use crate::define::{Function, Gives, scalar};
use crate::values::Kind::{self, Interval as Span, Stamp as At, Text as Words, Time as Clock};
use crate::values::{
    Arguments, Interval, Lapse, Memo, Moment, Nanos, Stamp, Stamps, Text, Time, fill, map2, offset_at,
    offset_micros,
};
use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, IntervalMonthDayNano, TimestampMicrosecondType};
use datafusion::common::{Result, exec_err};
use std::sync::Arc;

/// Microseconds of a unit that is always as long.
fn fixed(unit: Field) -> Option<i64> {
    Some(match unit {
        Field::Nanosecond | Field::Microsecond => 1,
        Field::Millisecond => 1000,
        Field::Second => SECOND,
        Field::Minute => MINUTE,
        Field::Hour => HOUR,
        Field::Day => DAY,
        _ => return None,
    })
}

/// When the unit began, on the same clock.
fn start(unit: Field, micros: i64) -> Result<i64> {
    if let Some(length) = fixed(unit) {
        return micros.checked_sub(micros.rem_euclid(length)).ok_or_else(out_of_range);
    }
    match unit {
        Field::Week
        | Field::Month
        | Field::Quarter
        | Field::Year
        | Field::Decade
        | Field::Century
        | Field::Millennium => {
            let day = i32::try_from(micros.div_euclid(DAY)).map_err(|_| out_of_range())?;
            i64::from(first_day_in(day, unit)?).checked_mul(DAY).ok_or_else(out_of_range)
        }
        _ => exec_err!("a timestamp cannot be cut to the unit `{unit:?}`"),
    }
}

/// The moment at which the unit began on the clock of a zone.
fn start_in(unit: Field, utc: i64, zone: Tz) -> Result<i64> {
    let offset = offset_micros(zone, utc);
    let begun = start(unit, utc.saturating_add(offset))?;
    // Hours that the clock shows twice stay apart.
    let within = fixed(unit).is_some_and(|length| length < DAY);
    let offset = if within { offset } else { offset_at(zone, begun) };
    begun.checked_sub(offset).ok_or_else(out_of_range)
}

fn start_at(unit: Field, micros: i64, zone: Option<Tz>) -> Result<i64> {
    match zone {
        Some(zone) => start_in(unit, micros, zone),
        None => start(unit, micros),
    }
}

fn of_interval(unit: Field, span: IntervalMonthDayNano) -> Result<IntervalMonthDayNano> {
    let (months, days, micros) = (i64::from(span.months), i64::from(span.days), span.nanoseconds / 1000);
    let of_months = |unit: i64| span_of(months - months % unit, 0, 0);
    match unit {
        Field::Millennium => of_months(12_000),
        Field::Century => of_months(1200),
        Field::Decade => of_months(120),
        Field::Year => of_months(12),
        Field::Quarter => of_months(3),
        Field::Month => of_months(1),
        Field::Day => span_of(months, days, 0),
        unit => match fixed(unit) {
            Some(length) => span_of(months, days, micros - micros % length),
            None => exec_err!("an interval cannot be cut to the unit `{unit:?}`"),
        },
    }
}

fn of_clock(unit: Field, nanos: i64) -> Result<i64> {
    match fixed(unit).filter(|length| *length < DAY) {
        Some(length) => Ok(nanos - nanos % (length * 1000)),
        None => exec_err!("a time of the day cannot be cut to the unit `{unit:?}`"),
    }
}

fn cut(arguments: &Arguments) -> Result<ArrayRef> {
    match arguments.data_type(1)? {
        DataType::Interval(_) => {
            map2::<Text, Interval, Lapse, Result<IntervalMonthDayNano>>(arguments, |unit, span| {
                of_interval(field_named(unit)?, span)
            })
        }
        DataType::Time64(_) => map2::<Text, Time, Nanos, Result<i64>>(arguments, |unit, nanos| {
            of_clock(field_named(unit)?, nanos)
        }),
        DataType::Timestamp(_, zone) => of_timestamps(arguments, zone.as_deref()),
        _ => map2::<Text, Stamp, Stamps, Result<i64>>(arguments, |unit, micros| {
            start(field_named(unit)?, micros)
        }),
    }
}

fn of_timestamps(arguments: &Arguments, zone: Option<&str>) -> Result<ArrayRef> {
    let own = zone.map(known_zone).transpose()?;
    let cut = match one_unit(arguments)? {
        Some(unit) => with_one_unit(arguments, unit, own)?,
        None => row_by_row(arguments, own)?,
    };
    Ok(Arc::new(cut.with_timezone_opt(zone)))
}

/// The unit, if it is the same for all rows, and no other zone is named.
fn one_unit(arguments: &Arguments) -> Result<Option<Field>> {
    let names = arguments.array(0)?;
    match names.as_string_opt::<i32>() {
        Some(names) if names.len() == 1 && names.is_valid(0) && arguments.len() == 2 => {
            field_named(names.value(0)).map(Some)
        }
        _ => Ok(None),
    }
}

fn with_one_unit(arguments: &Arguments, unit: Field, zone: Option<Tz>) -> Result<TimestampMicrosecondArray> {
    let moments = arguments.full(1)?;
    let Some(moments) = moments.as_primitive_opt::<TimestampMicrosecondType>() else {
        return exec_err!("a timestamp in microseconds is expected");
    };
    match fixed(unit) {
        // What is behind a NULL may be any number.
        Some(length) if zone.is_none() || length <= SECOND => {
            Ok(moments.unary(|micros| micros.wrapping_sub(micros.rem_euclid(length))))
        }
        _ => moments.try_unary(|micros| start_at(unit, micros, zone)),
    }
}

fn row_by_row(arguments: &Arguments, own: Option<Tz>) -> Result<TimestampMicrosecondArray> {
    let (units, moments) = (arguments.read::<Text>(0)?, arguments.read::<Moment>(1)?);
    let zones = arguments.read_if_given::<Text>(2)?;
    let (mut unit, mut zone) = (Memo::new(), Memo::new());
    let made = fill::<Stamps, Result<Option<i64>>>(arguments, |row| {
        let (Some(name), Some(micros)) = (units.get(row)?, moments.get(row)?) else { return Ok(None) };
        let field = *unit.get(name, field_named)?;
        let zone = match &zones {
            None => own,
            Some(zones) => match zones.get(row)? {
                Some(name) => Some(*zone.get(name, known_zone)?),
                None => return Ok(None),
            },
        };
        start_at(field, micros, zone).map(Some)
    })?;
    Ok(made.as_primitive::<TimestampMicrosecondType>().clone())
}

fn cut_type(given: &[DataType]) -> Result<DataType> {
    match given.get(1) {
        Some(of @ (DataType::Interval(_) | DataType::Time64(_))) => Ok(of.clone()),
        _ => moved_type(given, 1),
    }
}

const FORMS: &[&[Kind]] = &[&[Words, At], &[Words, Clock], &[Words, Span], &[Words, At, Words]];

pub(super) const FUNCTIONS: &[Function] =
    &[scalar("date_trunc", "a timestamp cut to a unit", FORMS, Gives::By(cut_type), cut)
        .aliases(&["datetrunc"])];
