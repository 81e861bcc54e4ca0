//! `date_part` and `extract`: DataFusion's parts, which its optimiser knows, and those that it lacks.

use super::calendar::{SECOND, julian_day, split};
use super::difference::invalid_value;
use super::fields::{Field, epoch_seconds, part_of};
use crate::values::{Arguments, Int64, Kind, Moment, Real, Stamp, choose, fill, map_at};
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Field as Column, FieldRef, Int64Type, TimeUnit};
use datafusion::common::{Result, ScalarValue, exec_err, internal_datafusion_err, plan_err};
use datafusion::functions::datetime;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// `date_part` of PostgreSQL and DuckDB.
pub(crate) fn date_part() -> Arc<ScalarUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(DatePart { signature, stock: datetime::date_part() }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DatePart {
    signature: Signature,
    stock: Arc<ScalarUDF>,
}

/// How a part is computed, and so its type.
#[derive(Debug, Clone, Copy)]
enum PartKind {
    Stock,
    Epoch,
    /// Seconds with six decimal places.
    Seconds,
    /// Milliseconds with three.
    Milliseconds,
    Julian,
    /// Seconds that the zone is ahead of UTC, divided by this and taken modulo the other.
    Zone(i64, i64),
    Whole(Field),
}

fn part_named(name: &str, of: &DataType) -> Option<PartKind> {
    let lower = name.trim().to_ascii_lowercase();
    let known_to_all = matches!(
        lower.as_str(),
        "year" | "quarter" | "month" | "week" | "day" | "doy" | "dow" | "hour" | "minute"
    );
    if known_to_all && !matches!(of, DataType::Interval(_) | DataType::Duration(_)) {
        return Some(PartKind::Stock);
    }
    Some(match lower.as_str() {
        "epoch" | "epoch_seconds" => PartKind::Epoch,
        "timezone" => PartKind::Zone(1, i64::MAX),
        "timezone_hour" => PartKind::Zone(3600, i64::MAX),
        "timezone_minute" => PartKind::Zone(60, 60),
        _ => match Field::named(&lower)? {
            Field::Second => PartKind::Seconds,
            Field::Millisecond => PartKind::Milliseconds,
            Field::Julian => PartKind::Julian,
            field => PartKind::Whole(field),
        },
    })
}

impl PartKind {
    fn data_type(self) -> DataType {
        match self {
            Self::Stock => DataType::Int32,
            Self::Epoch | Self::Julian => DataType::Float64,
            Self::Seconds => DataType::Decimal128(8, 6),
            Self::Milliseconds => DataType::Decimal128(8, 3),
            Self::Zone(..) | Self::Whole(_) => DataType::Int64,
        }
    }

    fn of(self, arguments: &Arguments) -> Result<ArrayRef> {
        match self {
            Self::Stock => exec_err!("`date_part` was called with a part that is not its own"),
            Self::Epoch => epoch_seconds(arguments, 1),
            Self::Seconds | Self::Milliseconds => {
                let micros = part_of(arguments, 1, Field::Microsecond)?;
                let micros = micros.as_primitive::<Int64Type>();
                let decimal = micros.unary::<_, Decimal128Type>(i128::from);
                let places = if matches!(self, Self::Seconds) { 6 } else { 3 };
                Ok(Arc::new(decimal.with_precision_and_scale(8, places)?))
            }
            Self::Julian => map_at::<Stamp, Real, Result<f64>>(arguments, 1, |micros| {
                let day = micros.rem_euclid(86_400 * SECOND) as f64 / (86_400 * SECOND) as f64;
                Ok(julian_day(split(micros)?.date()) as f64 + day)
            }),
            Self::Zone(divisor, modulus) => {
                let (local, utc) = (arguments.read::<Stamp>(1)?, arguments.read::<Moment>(1)?);
                fill::<Int64, Result<Option<i64>>>(arguments, |row| {
                    let both = local.get(row)?.zip(utc.get(row)?);
                    Ok(both.map(|(local, utc)| (local - utc) / SECOND / divisor % modulus))
                })
            }
            Self::Whole(field) => part_of(arguments, 1, field),
        }
    }
}

fn name_of(scalar: Option<&ScalarValue>) -> Option<&str> {
    scalar.and_then(|scalar| scalar.try_as_str()).flatten()
}

impl DatePart {
    fn part(name: Option<&str>, of: &DataType) -> Result<PartKind> {
        let Some(name) = name else {
            return plan_err!("the part of `date_part` must be a constant, such as 'year'");
        };
        part_named(name, of).ok_or_else(|| invalid_value(format!("`{name}` is not a part of a date or time")))
    }
}

impl ScalarUDFImpl for DatePart {
    fn name(&self) -> &str {
        "date_part"
    }

    bowshot_api::getters!(signature: &Signature);

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        const FORMS: &[&[Kind]] =
            &[&[Kind::Text, Kind::Stamp], &[Kind::Text, Kind::Time], &[Kind::Text, Kind::Interval]];
        let Some(mut chosen) = choose(FORMS, given) else {
            return plan_err!("`date_part` takes the name of a part and a date, time, timestamp or interval");
        };
        if let (Some(last), Some(given)) = (chosen.last_mut(), given.last()) {
            match given {
                // As they are: a cast would hide columns from the optimiser.
                DataType::Timestamp(..) => *last = given.clone(),
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                    *last = DataType::Timestamp(TimeUnit::Microsecond, None);
                }
                _ => {}
            }
        }
        Ok(chosen)
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Err(internal_datafusion_err!("the type of a part follows from its name"))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let of = args.arg_fields.get(1).map_or(&DataType::Null, |field| field.data_type());
        let part = Self::part(name_of(args.scalar_arguments.first().copied().flatten()), of)?;
        Ok(Arc::new(Column::new("date_part", part.data_type(), true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let of = args.arg_fields.get(1).map_or(DataType::Null, |field| field.data_type().clone());
        let part = match args.args.first() {
            Some(ColumnarValue::Scalar(name)) => Self::part(name_of(Some(name)), &of)?,
            _ => Self::part(None, &of)?,
        };
        if matches!(part, PartKind::Stock) {
            return self.stock.invoke_with_args(args);
        }
        let constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let arguments = Arguments::new("date_part", in_micros(args)?, constant)?;
        let array = part.of(&arguments)?;
        if constant && array.len() == 1 {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?));
        }
        Ok(ColumnarValue::Array(array))
    }

    // DataFusion's own has rules for filters on years.
    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let name = match args.first() {
            Some(Expr::Literal(name, _)) => name_of(Some(name)),
            _ => None,
        };
        let of = args.get(1).map_or(Ok(DataType::Null), |value| context.get_data_type(value))?;
        Ok(match Self::part(name, &of)? {
            PartKind::Stock => ExprSimplifyResult::Simplified(self.stock.call(args)),
            _ => ExprSimplifyResult::Original(args),
        })
    }
}

/// Timestamps come in all units; the parts are taken of microseconds.
fn in_micros(mut args: ScalarFunctionArgs) -> Result<ScalarFunctionArgs> {
    if let Some(value) = args.args.get_mut(1)
        && let DataType::Timestamp(unit, zone) = value.data_type()
        && unit != TimeUnit::Microsecond
    {
        let micros = DataType::Timestamp(TimeUnit::Microsecond, zone);
        *value = match &*value {
            ColumnarValue::Array(array) => ColumnarValue::Array(cast(array, &micros)?),
            ColumnarValue::Scalar(scalar) => ColumnarValue::Scalar(scalar.cast_to(&micros)?),
        };
    }
    Ok(args)
}
