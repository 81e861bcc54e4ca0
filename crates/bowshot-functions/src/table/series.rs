//! `generate_series` and `range` as tables: of numbers, and of dates and moments with an interval between them.

use super::{literals, of_array};
use crate::nested::bounded;
use datafusion::arrow::array::{ArrayRef, TimestampMicrosecondArray};
use datafusion::arrow::datatypes::{
    DataType, Field, IntervalMonthDayNano, IntervalUnit, Schema, TimeUnit, TimestampMicrosecondType,
};
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, plan_err};
use datafusion::functions_table::generate_series::{GenSeriesArgs, GenerateSeriesTable};
use std::sync::Arc;

/// The table function of that name, whose one column has the name, too.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) name: &'static str,
    /// Whether the last value is one of the series.
    pub(super) with_end: bool,
}

impl TableFunctionImpl for Series {
    fn call_with_args(&self, given: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let arguments = literals(self.name, given.exprs())?;
        let temporal = |value: &ScalarValue| {
            matches!(value.data_type(), DataType::Date32 | DataType::Date64 | DataType::Timestamp(..))
        };
        match arguments.as_slice() {
            [start, stop, step] if temporal(start) || temporal(stop) => self.moments(start, stop, step),
            [_, ..] if arguments.len() <= 3 => self.numbers(&arguments),
            _ => plan_err!("{} takes one to three arguments", self.name),
        }
    }
}

impl Series {
    fn numbers(&self, arguments: &[ScalarValue]) -> Result<Arc<dyn TableProvider>> {
        // A text beside a number is a literal without a type, as `generate_series(1, '3')`.
        let has_number = arguments.iter().any(|value| value.data_type().is_integer());
        let is_number = |of: &DataType| of.is_integer() || of.is_null() || (has_number && of.is_string());
        if let Some(other) = arguments.iter().map(ScalarValue::data_type).find(|of| !is_number(of)) {
            return plan_err!(
                "{} takes whole numbers, or two dates or timestamps and an interval, not {other}",
                self.name
            );
        }
        let numbers = arguments.iter().map(whole_number).collect::<Result<Vec<_>>>()?;
        let (start, end, step) = match numbers.as_slice() {
            [Some(end)] => (0, *end, 1),
            [Some(start), Some(end)] => (*start, *end, 1),
            [Some(start), Some(end), Some(step)] => (*start, *end, *step),
            _ => return Ok(self.table(GenSeriesArgs::ContainsNull { name: self.name })),
        };
        if step == 0 {
            return plan_err!("step size cannot equal zero");
        }
        Ok(self.table(GenSeriesArgs::Int64Args {
            start,
            end,
            step,
            include_end: self.with_end,
            name: self.name,
        }))
    }

    fn table(&self, arguments: GenSeriesArgs) -> Arc<dyn TableProvider> {
        let schema = Schema::new(vec![Field::new(self.name, DataType::Int64, false)]);
        Arc::new(GenerateSeriesTable::new(Arc::new(schema), arguments))
    }

    fn moments(
        &self,
        start: &ScalarValue,
        stop: &ScalarValue,
        step: &ScalarValue,
    ) -> Result<Arc<dyn TableProvider>> {
        let zone = match (start.data_type(), stop.data_type()) {
            (DataType::Timestamp(_, Some(zone)), _) | (_, DataType::Timestamp(_, Some(zone))) => Some(zone),
            _ => None,
        };
        let of = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
        let moment = |value: &ScalarValue| -> Result<Option<i64>> {
            match value.cast_to(&of)? {
                ScalarValue::TimestampMicrosecond(moment, _) => Ok(moment),
                _ => Ok(None),
            }
        };
        let step = match step.cast_to(&DataType::Interval(IntervalUnit::MonthDayNano))? {
            ScalarValue::IntervalMonthDayNano(step) => step,
            _ => None,
        };
        let values = match (moment(start)?, moment(stop)?, step) {
            (Some(start), Some(stop), Some(step)) => self.between(start, stop, step, zone.as_deref())?,
            _ => Vec::new(),
        };
        let values: ArrayRef = Arc::new(TimestampMicrosecondArray::from(values).with_timezone_opt(zone));
        of_array(self.name, values)
    }

    fn between(
        &self,
        start: i64,
        stop: i64,
        step: IntervalMonthDayNano,
        zone: Option<&str>,
    ) -> Result<Vec<i64>> {
        let zone = zone.unwrap_or("+00:00").parse()?;
        let forth = step.months > 0 || step.days > 0 || step.nanoseconds > 0;
        let back = step.months < 0 || step.days < 0 || step.nanoseconds < 0;
        if forth == back {
            return plan_err!("step size cannot equal zero or mix signs");
        }
        let mut values = Vec::new();
        let mut moment = start;
        while if forth { moment < stop } else { moment > stop } || (self.with_end && moment == stop) {
            values.push(moment);
            bounded(self.name, values.len(), size_of::<i64>())?;
            moment = TimestampMicrosecondType::add_month_day_nano(moment, step, zone)
                .ok_or_else(|| exec_datafusion_err!("timestamp out of range in {}", self.name))?;
            if values.last() == Some(&moment) {
                return plan_err!("step size cannot be less than a microsecond");
            }
        }
        Ok(values)
    }
}

fn whole_number(value: &ScalarValue) -> Result<Option<i64>> {
    let text = value.try_as_str().flatten().map(|text| ScalarValue::from(text.trim()));
    match text.as_ref().unwrap_or(value).cast_to(&DataType::Int64)? {
        ScalarValue::Int64(number) => Ok(number),
        _ => Ok(None),
    }
}
