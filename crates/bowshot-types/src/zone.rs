//! Casts between instants and times without a zone: the latter are what the clock of a zone shows, mostly the session's. Arrow's
//! own casts fail where a clock is set, and know nothing of the years from 2100 on.
use bowshot_api::{Error, Reason, offset_of_clock, offset_of_instant};
use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef, Int64Type, TimeUnit};
use datafusion::common::{Result, ScalarValue, internal_err, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, cast as expr_cast,
};
use std::sync::Arc;

/// The function that gives what a clock shows.
const CLOCK: &str = "__bowshot_clock";

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

/// Whether a clock in the zone shows UTC.
pub(super) fn is_utc(zone: &str) -> bool {
    matches!(zone, "UTC" | "+00:00")
}

/// A day, or a time without a zone, as the instant at which the clock of a zone shows it; with its type before and after.
pub(super) fn as_instant(time: Expr, (from, to): (&DataType, &DataType), zone: &Arc<str>) -> Expr {
    let time = match (from, to) {
        // Neither Arrow nor the function makes an instant of a day.
        (DataType::Date32 | DataType::Date64, DataType::Timestamp(unit, _)) => {
            expr_cast(time, DataType::Timestamp(*unit, None))
        }
        _ => time,
    };
    expr_cast(if is_utc(zone) { time } else { instant_of(time, zone) }, to.clone())
}

/// The instant at which the clock of a zone shows a time.
pub(super) fn instant_of(time: Expr, zone: &Arc<str>) -> Expr {
    call(Side::Instant, time, zone)
}

/// What the clock of a zone shows at an instant.
pub(super) fn clock_of(instant: Expr, zone: &Arc<str>) -> Expr {
    call(Side::Clock, instant, zone)
}

fn call(to: Side, time: Expr, zone: &Arc<str>) -> Expr {
    let zone = Expr::Literal(ScalarValue::Utf8(Some(zone.to_string())), None);
    function(to).call(vec![zone, time])
}

/// Whether an expression is what the clock of a zone shows at an instant.
pub fn is_clock(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if call.func.name() == CLOCK)
}

/// The functions of a zone and a time that such casts become. An offset such as `+02:00` is east of Greenwich, other than for
/// `AT TIME ZONE`.
pub(super) fn functions() -> [ScalarUDF; 2] {
    [Side::Instant, Side::Clock].map(function)
}

fn function(to: Side) -> ScalarUDF {
    ScalarUDF::new_from_impl(InZone { to, signature: Signature::user_defined(Volatility::Immutable) })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Side {
    Instant,
    Clock,
}

impl Side {
    fn of(time: &DataType) -> Self {
        if matches!(time, DataType::Timestamp(_, Some(_))) { Self::Instant } else { Self::Clock }
    }

    fn other(self) -> Self {
        match self {
            Self::Instant => Self::Clock,
            Self::Clock => Self::Instant,
        }
    }

    /// The type of such times, in the unit of others.
    fn data_type(self, time: &DataType) -> DataType {
        let unit = match time {
            DataType::Timestamp(unit, _) => *unit,
            _ => TimeUnit::Microsecond,
        };
        DataType::Timestamp(unit, (self == Self::Instant).then(|| "UTC".into()))
    }
}

/// Times of one side. What is there already stays: where branches of a CASE meet, a time may have become an instant since the call
/// was made.
#[derive(Debug, PartialEq, Eq, Hash)]
struct InZone {
    to: Side,
    signature: Signature,
}

impl ScalarUDFImpl for InZone {
    fn name(&self) -> &'static str {
        match self.to {
            Side::Instant => "__bowshot_instant",
            Side::Clock => CLOCK,
        }
    }

    bowshot_api::getters!(signature: &Signature);

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [_, time] => Ok(self.to.data_type(time)),
            _ => plan_err!("`{}` takes a zone and a time stamp", self.name()),
        }
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let [_, time] = arguments else {
            return plan_err!("`{}` takes a zone and a time stamp", self.name());
        };
        Ok(vec![DataType::Utf8, time.clone()])
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [ColumnarValue::Scalar(zone), times] = arguments.args.as_slice() else {
            return internal_err!("`{}` takes one zone and a time stamp", self.name());
        };
        let zone = zone.try_as_str().flatten().unwrap_or_default();
        let made = |times: &ArrayRef| match Side::of(times.data_type()) == self.to {
            true => Ok(cast(times, &self.to.data_type(times.data_type()))?),
            false => in_zone(times, zone),
        };
        match times {
            ColumnarValue::Array(times) => made(times).map(ColumnarValue::Array),
            ColumnarValue::Scalar(time) => {
                ScalarValue::try_from_array(&made(&time.to_array()?)?, 0).map(ColumnarValue::Scalar)
            }
        }
    }
}

fn parsed(zone: &str) -> Result<Tz> {
    zone.trim().parse::<Tz>().map_err(|_| {
        let error = Error::invalid(format!("time zone \"{zone}\" not recognized"))
            .with_hint("write a name such as 'Europe/Berlin', or an offset such as '+02:00'");
        DataFusionError::External(Box::new(error))
    })
}

/// Instants on the clock of a zone, or the other way around.
///
/// # Errors
/// For zones that are none, and times out of range.
pub(super) fn in_zone(times: &ArrayRef, zone: &str) -> Result<ArrayRef> {
    let DataType::Timestamp(unit, _) = times.data_type() else {
        return internal_err!("only a time stamp has a time zone, and this is {}", times.data_type());
    };
    let (zone, per_second) = (parsed(zone)?, per_second(*unit));
    let side = Side::of(times.data_type());
    let numbers = cast(times, &DataType::Int64)?;
    let moved = numbers.as_primitive::<Int64Type>().try_unary::<_, Int64Type, _>(|number| {
        let moved = match side {
            Side::Instant => local(zone, number, per_second),
            Side::Clock => instant(zone, number, per_second),
        };
        moved.ok_or_else(out_of_range)
    })?;
    Ok(cast(&moved, &side.other().data_type(times.data_type()))?)
}

pub(super) fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

fn out_of_range() -> DataFusionError {
    let error = Error::invalid("timestamp out of range").with_reason(Reason::DatetimeOutOfRange);
    DataFusionError::External(Box::new(error))
}

/// What the clock of a zone shows at an instant, both since 1970 in parts of a second.
fn local(zone: Tz, instant: i64, per_second: i64) -> Option<i64> {
    let offset = i64::from(offset_of_instant(zone, instant.div_euclid(per_second)));
    instant.checked_add(offset * per_second)
}

/// The instant at which the clock of a zone shows something, both since 1970 in parts of a second.
pub(super) fn instant(zone: Tz, clock: i64, per_second: i64) -> Option<i64> {
    let offset = i64::from(offset_of_clock(zone, clock.div_euclid(per_second)));
    clock.checked_sub(offset * per_second)
}
