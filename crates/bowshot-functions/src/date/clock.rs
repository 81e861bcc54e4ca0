//! The clock: the time at which a statement began, and the time at which a row is computed.

use crate::define::{Function, Gives, scalar};
use crate::values::{Arguments, Moments, Stamps, fill, map1};
use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, TimeUnit};
use chrono::{DateTime, Utc};
use datafusion::common::{Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Shows {
    Date,
    UtcDate,
    Time,
    UtcTime,
    Stamp,
    UtcStamp,
    Moment,
}

/// The functions of the time at which the statement began.
const CLOCKS: &[(&str, Shows, &[&str])] = &[
    ("curdate", Shows::Date, &["today", "current_local_date"]),
    ("utc_date", Shows::UtcDate, &[]),
    ("curtime", Shows::Time, &["localtime", "current_localtime"]),
    ("utc_time", Shows::UtcTime, &[]),
    ("localtimestamp", Shows::Stamp, &["current_localtimestamp", "getdate"]),
    ("utc_timestamp", Shows::UtcStamp, &["sysutcdatetime"]),
    ("transaction_timestamp", Shows::Moment, &["statement_timestamp", "get_current_timestamp"]),
];

/// All of them, as DataFusion calls them.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let made = CLOCKS.iter().map(|(name, shows, aliases)| {
        // A number of digits may follow, which all our times have.
        let forms = vec![TypeSignature::Nullary, TypeSignature::Exact(vec![DataType::Int64])];
        let signature = Signature::one_of(forms, Volatility::Stable);
        let aliases = aliases.iter().map(|&alias| alias.to_owned()).collect();
        ScalarUDF::new_from_impl(Clock { name, shows: *shows, aliases, signature })
    });
    made.collect()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Clock {
    name: &'static str,
    shows: Shows,
    aliases: Vec<String>,
    signature: Signature,
}

impl Clock {
    fn value(&self, now: DateTime<Utc>, config: &ConfigOptions) -> ScalarValue {
        let utc = now.timestamp_micros();
        let zone = config.execution.time_zone.as_deref().and_then(super::parse::zone_named);
        let local = zone.map_or(utc, |zone| utc.saturating_add(crate::values::offset_micros(zone, utc)));
        let day = |micros: i64| i32::try_from(micros.div_euclid(super::calendar::DAY)).ok();
        let clock = |micros: i64| Some(micros.rem_euclid(super::calendar::DAY) * 1000);
        match self.shows {
            Shows::Date => ScalarValue::Date32(day(local)),
            Shows::UtcDate => ScalarValue::Date32(day(utc)),
            Shows::Time => ScalarValue::Time64Nanosecond(clock(local)),
            Shows::UtcTime => ScalarValue::Time64Nanosecond(clock(utc)),
            Shows::Stamp => ScalarValue::TimestampMicrosecond(Some(local), None),
            Shows::UtcStamp => ScalarValue::TimestampMicrosecond(Some(utc), None),
            Shows::Moment => ScalarValue::TimestampMicrosecond(Some(utc), Some("UTC".into())),
        }
    }
}

impl ScalarUDFImpl for Clock {
    bowshot_api::getters!(name: &str, aliases: &[String], signature: &Signature);

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(match self.shows {
            Shows::Date | Shows::UtcDate => DataType::Date32,
            Shows::Time | Shows::UtcTime => DataType::Time64(TimeUnit::Nanosecond),
            Shows::Stamp | Shows::UtcStamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            Shows::Moment => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(self.value(Utc::now(), &args.config_options)))
    }

    fn simplify(&self, _args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let now = context.query_execution_start_time().unwrap_or_else(Utc::now);
        let value = self.value(now, context.config_options());
        Ok(ExprSimplifyResult::Simplified(Expr::Literal(value, None)))
    }
}

/// The rows of this table that are clocks stand in it for the documentation.
pub(super) const FUNCTIONS: &[Function] = &[
    crate::define::stock("now", "when the statement began").note("also `current_timestamp`"),
    crate::define::stock("current_date", "today in the time zone of the session"),
    crate::define::stock("current_time", "the time in the time zone of the session"),
    crate::define::listed("curdate", "today").aliases(&["today", "current_local_date"]),
    crate::define::listed("curtime", "the time of the day").aliases(&["localtime", "current_localtime"]),
    crate::define::listed("localtimestamp", "when the statement began, without time zone")
        .aliases(&["current_localtimestamp", "getdate"]),
    crate::define::listed("utc_date", "today in UTC"),
    crate::define::listed("utc_time", "the time of the day in UTC"),
    crate::define::listed("utc_timestamp", "when the statement began in UTC, without time zone")
        .aliases(&["sysutcdatetime"]),
    crate::define::listed("transaction_timestamp", "when the statement began")
        .aliases(&["statement_timestamp", "get_current_timestamp"]),
    scalar("clock_timestamp", "the time at which the row is computed", &[&[]], Gives::Moment, |a| {
        fill::<Moments, _>(a, |_| Utc::now().timestamp_micros())
    })
    .volatile(),
    scalar(
        "sysdate",
        "the time at which the row is computed, without time zone",
        &[&[]],
        Gives::Stamp,
        |a| fill::<Stamps, _>(a, |_| Utc::now().timestamp_micros()),
    )
    .volatile(),
    scalar(
        "unix_timestamp",
        "seconds since 1970: now, or of a timestamp, by a pattern if there is one",
        &[&[], &[crate::values::Kind::Stamp], &[crate::values::Kind::Text, crate::values::Kind::Text]],
        Gives::Int,
        unix_timestamp,
    )
    .aliases(&["to_unix_timestamp"])
    .stable(),
    crate::define::stock("to_local_time", "a timestamp with time zone on the clock of its zone"),
    crate::define::stock("to_time", "the time of a text"),
    crate::define::stock("to_unixtime", "seconds since 1970 of a timestamp or text"),
];

fn unix_timestamp(arguments: &Arguments) -> Result<ArrayRef> {
    match arguments.len() {
        0 => fill::<crate::values::Int64, _>(arguments, |_| Utc::now().timestamp()),
        1 => map1::<crate::values::Moment, crate::values::Int64, _>(arguments, |micros: i64| {
            micros.div_euclid(1_000_000)
        }),
        _ => super::pattern::read_seconds(arguments),
    }
}
