//! `timezone(zone, time)`, which `time AT TIME ZONE zone` stands for: a timestamp without a zone is read in that zone and becomes
//! an instant; an instant becomes the local time of that zone.

use bowshot_api::{Error, Reason};
use chrono::{DateTime, LocalResult, NaiveDateTime, Offset, TimeDelta, TimeZone};
use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, TimestampMicrosecondArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef, TimeUnit, TimestampMicrosecondType};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, cast as expr_cast,
};
use std::sync::Arc;

/// The zone of a session; UTC without one.
pub fn of(config: &ConfigOptions) -> Arc<str> {
    config.execution.time_zone.as_deref().map_or_else(|| Arc::from("UTC"), Arc::from)
}

/// A query whose instants are labelled with a zone, in which whoever reads the result shows them.
pub(super) fn shown(plan: LogicalPlan, zone: &Arc<str>) -> LogicalPlan {
    let other = |field: &FieldRef| match field.data_type() {
        DataType::Timestamp(unit, Some(there)) if there != zone => {
            Some(DataType::Timestamp(*unit, Some(Arc::clone(zone))))
        }
        _ => None,
    };
    let gives_rows = !matches!(
        plan,
        LogicalPlan::Explain(_)
            | LogicalPlan::Analyze(_)
            | LogicalPlan::DescribeTable(_)
            | LogicalPlan::Dml(_)
            | LogicalPlan::Ddl(_)
            | LogicalPlan::Copy(_)
            | LogicalPlan::Statement(_)
    );
    if !gives_rows || !plan.schema().fields().iter().any(|field| other(field).is_some()) {
        return plan;
    }
    let columns = plan.schema().columns().into_iter().zip(plan.schema().fields());
    let columns: Vec<Expr> = columns
        .map(|(column, field)| match other(field) {
            Some(data_type) => {
                let (relation, name) = (column.relation.clone(), column.name.clone());
                expr_cast(Expr::Column(column), data_type).alias_qualified(relation, name)
            }
            None => Expr::Column(column),
        })
        .collect();
    // Columns of the same name cannot be told from one another: they keep the label that they have.
    let labelled =
        LogicalPlanBuilder::from(plan.clone()).project(columns).and_then(LogicalPlanBuilder::build);
    labelled.unwrap_or(plan)
}

/// See the module.
pub fn at_time_zone() -> ScalarUDF {
    ScalarUDF::new_from_impl(AtTimeZone::default())
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct AtTimeZone {
    signature: Signature,
}

impl Default for AtTimeZone {
    fn default() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for AtTimeZone {
    fn name(&self) -> &str {
        "timezone"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [_, DataType::Timestamp(_, Some(_))] => Ok(DataType::Timestamp(TimeUnit::Microsecond, None)),
            [_, _] => Ok(instants()),
            _ => plan_err!("timezone() takes a zone and a time stamp"),
        }
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let [zone, time] = arguments else {
            return plan_err!("timezone() takes a zone and a time stamp");
        };
        if !matches!(zone, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null) {
            return plan_err!("a time zone is a text such as 'Europe/Berlin' or '+02:00'");
        }
        let time = match time {
            DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
            // A text or a day is an instant of the session's zone to PostgreSQL; here it says no zone.
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => {
                DataType::Timestamp(TimeUnit::Microsecond, None)
            }
            DataType::Date32 | DataType::Date64 => DataType::Timestamp(TimeUnit::Microsecond, None),
            other => return plan_err!("AT TIME ZONE takes a time stamp, not {other}"),
        };
        Ok(vec![DataType::Utf8, time])
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        let scalar = arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let [zones, times] = arguments.args.as_slice() else {
            return exec_err!("timezone() takes a zone and a time stamp");
        };
        let times = times.to_array(if scalar { 1 } else { rows })?;
        let moved = match zones {
            ColumnarValue::Scalar(zone) => match zone.try_as_str().flatten() {
                Some(zone) => in_zone(&times, &parsed(zone)?)?,
                None => nothing(&times),
            },
            ColumnarValue::Array(zones) => {
                let zones = cast(zones, &DataType::Utf8)?;
                in_zones(&times, zones.as_string::<i32>())?
            }
        };
        if scalar {
            return ScalarValue::try_from_array(&moved, 0).map(ColumnarValue::Scalar);
        }
        Ok(ColumnarValue::Array(moved))
    }
}

fn instants() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

fn parsed(zone: &str) -> Result<Tz> {
    zone.trim().parse::<Tz>().map_err(|_| {
        let error = Error::invalid(format!("time zone \"{zone}\" not recognized"))
            .with_hint("write a name such as 'Europe/Berlin', or an offset such as '+02:00'");
        DataFusionError::External(Box::new(error))
    })
}

fn nothing(times: &ArrayRef) -> ArrayRef {
    let made = if is_instant(times) { DataType::Timestamp(TimeUnit::Microsecond, None) } else { instants() };
    datafusion::arrow::array::new_null_array(&made, times.len())
}

fn is_instant(times: &ArrayRef) -> bool {
    matches!(times.data_type(), DataType::Timestamp(_, Some(_)))
}

fn in_zone(times: &ArrayRef, zone: &Tz) -> Result<ArrayRef> {
    let instant = is_instant(times);
    let moved: TimestampMicrosecondArray = times
        .as_primitive::<TimestampMicrosecondType>()
        .try_unary(|micros| shifted(micros, zone, instant))?;
    Ok(finished(moved, instant))
}

fn in_zones(times: &ArrayRef, zones: &datafusion::arrow::array::StringArray) -> Result<ArrayRef> {
    let instant = is_instant(times);
    let moved = times.as_primitive::<TimestampMicrosecondType>().iter().zip(zones).map(|(micros, zone)| {
        let (Some(micros), Some(zone)) = (micros, zone) else { return Ok(None) };
        shifted(micros, &parsed(zone)?, instant).map(Some)
    });
    Ok(finished(moved.collect::<Result<TimestampMicrosecondArray>>()?, instant))
}

fn finished(moved: TimestampMicrosecondArray, instant: bool) -> ArrayRef {
    if instant { Arc::new(moved) } else { Arc::new(moved.with_timezone("UTC")) }
}

/// An instant on the clock of a zone, or the other way around.
fn shifted(micros: i64, zone: &Tz, instant: bool) -> Result<i64> {
    let out_of_range = || {
        DataFusionError::External(Box::new(
            Error::invalid("timestamp out of range").with_reason(Reason::DatetimeOutOfRange),
        ))
    };
    let clock = DateTime::from_timestamp_micros(micros).ok_or_else(out_of_range)?.naive_utc();
    let moved = if instant {
        let offset = zone.offset_from_utc_datetime(&clock).fix();
        clock.checked_add_offset(offset)
    } else {
        local(zone, clock)
    };
    moved.map(|moved| moved.and_utc().timestamp_micros()).ok_or_else(out_of_range)
}

/// The instant of what the clock of a zone shows, both in microseconds since 1970. See [`local`].
pub(super) fn instant(zone: &Tz, micros: i64) -> Option<i64> {
    let clock = DateTime::from_timestamp_micros(micros)?.naive_utc();
    local(zone, clock).map(|instant| instant.and_utc().timestamp_micros())
}

/// The instant of a clock. One that is there twice is the later, in standard time; one that is skipped is that after the
/// gap, as the clock would show had it not been set: both as PostgreSQL has it.
fn local(zone: &Tz, clock: NaiveDateTime) -> Option<NaiveDateTime> {
    let offset = match zone.offset_from_local_datetime(&clock) {
        LocalResult::Single(offset) => offset.fix(),
        LocalResult::Ambiguous(first, second) => {
            let (first, second) = (first.fix(), second.fix());
            if first.local_minus_utc() < second.local_minus_utc() { first } else { second }
        }
        LocalResult::None => {
            let before = clock.checked_sub_signed(TimeDelta::try_days(1)?)?;
            zone.offset_from_local_datetime(&before).earliest()?.fix()
        }
    };
    clock.checked_sub_offset(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_a_zone_and_back() {
        let micros = |text: &str| text.parse::<NaiveDateTime>().unwrap().and_utc().timestamp_micros();
        let berlin = parsed("Europe/Berlin").unwrap();
        for (clock, utc) in [
            ("2024-01-01T12:00:00", "2024-01-01T11:00:00"),
            ("2024-07-01T12:00:00", "2024-07-01T10:00:00"),
            ("2024-10-27T02:30:00", "2024-10-27T01:30:00"),
        ] {
            assert_eq!(shifted(micros(clock), &berlin, false).unwrap(), micros(utc), "{clock}");
            assert_eq!(shifted(micros(utc), &berlin, true).unwrap(), micros(clock), "{utc}");
        }
        assert_eq!(
            shifted(micros("2024-03-31T02:30:00"), &berlin, false).unwrap(),
            micros("2024-03-31T01:30:00")
        );
        assert!(parsed("Nowhere/Land").is_err());
    }
}
