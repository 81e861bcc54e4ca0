//! How many rows a relation has and how the values of its columns are distributed, as far as statistics say. All of it is an
//! estimate; a plan is correct whatever it says.

use super::selectivity;
use crate::integers;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{ColumnStatistics, JoinType, ScalarValue, Statistics};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use std::sync::Arc;

/// A column whose values are at least so dense within their range, and not more than it has, has each of them once, as keys
/// do.
const DENSE: f64 = 0.05;
/// Dates that are further apart are not all dates: some stand for "never" or "always".
const DATES_DAYS: f64 = 250.0 * 365.25;
/// Semi and anti joins leave at least this part of the rows.
const LEAST_SHARE: f64 = 0.01;

#[derive(Debug, Clone)]
pub(crate) struct Facts {
    /// Rows that the relation gives.
    pub(crate) rows: f64,
    /// Rows before conditions took some away.
    pub(super) all_rows: f64,
    pub(super) columns: Vec<ColumnFacts>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ColumnFacts {
    /// Different values, before conditions on other columns took some away.
    pub(crate) distinct: Option<f64>,
    /// The least and the greatest value.
    pub(super) range: Option<(f64, f64)>,
    /// Distance of neighbouring values; 0 where there is none.
    pub(super) step: f64,
    pub(super) key: Key,
    /// Whether a condition says which values there are.
    pub(super) pinned: bool,
    /// The part of the rows that have no value.
    pub(super) nulls: Option<f64>,
}

/// Whether a column has each of its values once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Key {
    #[default]
    No,
    /// There are not more rows than values between the least and the greatest.
    Perhaps,
    Yes,
}

impl Facts {
    /// The facts of a plan's rows; `None` if nothing says how many there are.
    pub(crate) fn of(plan: &Arc<dyn ExecutionPlan>) -> Option<Self> {
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let input = Self::of(projection.input())?;
            let columns = projection.expr().iter().map(|chosen| input.column(&chosen.expr)).collect();
            return Some(Self { columns, ..input });
        }
        if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            let input = selectivity::filtered(Self::of(filter.input())?, filter.predicate());
            return Some(match filter.projection() {
                Some(chosen) => {
                    Self { columns: chosen.iter().map(|column| input.columns[*column]).collect(), ..input }
                }
                None => input,
            });
        }
        if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
            return Self::of_groups(aggregate);
        }
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            return Self::of_join(join);
        }
        match plan.children().as_slice() {
            [input] if keeps_rows(plan.as_ref(), input) => Self::of(input),
            _ => Self::of_statistics(plan),
        }
    }

    fn of_statistics(plan: &Arc<dyn ExecutionPlan>) -> Option<Self> {
        let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new()).ok()?;
        let rows = count(&statistics)?;
        let schema = plan.schema();
        let types = schema.fields().iter().map(|field| field.data_type());
        let mut columns: Vec<ColumnFacts> = types
            .zip(&statistics.column_statistics)
            .map(|(data_type, column)| ColumnFacts::of(column, data_type, rows))
            .collect();
        columns.resize(schema.fields().len(), ColumnFacts::default());
        Some(Self { rows, all_rows: rows, columns })
    }

    fn of_groups(aggregate: &AggregateExec) -> Option<Self> {
        let input = Self::of(aggregate.input())?;
        let keys: Vec<ColumnFacts> =
            aggregate.group_expr().expr().iter().map(|(key, _)| input.column(key)).collect();
        let groups: f64 = keys.iter().map(|key| key.distinct.unwrap_or(input.rows)).product();
        let rows = groups.min(input.rows).max(1.0);
        let key = if keys.len() == 1 { Key::Yes } else { Key::No };
        let keys = keys.into_iter().map(|column| ColumnFacts { key, ..column });
        let others = aggregate.schema().fields().len();
        let mut columns: Vec<ColumnFacts> = keys.collect();
        columns.resize(others, ColumnFacts::default());
        Some(Self { rows, all_rows: groups.min(input.all_rows).max(rows), columns })
    }

    /// The rows of a join that is not taken apart.
    fn of_join(join: &HashJoinExec) -> Option<Self> {
        let (mut left, mut right) = (Self::of(join.left())?, Self::of(join.right())?);
        let (matching_left, matching_right) = matching(join, &left, &right);
        let some = |share: f64| share.clamp(LEAST_SHARE, 1.0);
        let inner = (left.rows * matching_left).max(right.rows * matching_right);
        let (rows, all_rows) = match join.join_type() {
            JoinType::LeftSemi => (left.rows * some(matching_left), left.all_rows),
            JoinType::RightSemi => (right.rows * some(matching_right), right.all_rows),
            // All rows, and whether they have a partner.
            JoinType::LeftMark => (left.rows, left.all_rows),
            JoinType::RightMark => (right.rows, right.all_rows),
            JoinType::LeftAnti => (left.rows * some(1.0 - matching_left), left.all_rows),
            JoinType::RightAnti => (right.rows * some(1.0 - matching_right), right.all_rows),
            JoinType::Inner => (inner, left.all_rows.max(right.all_rows)),
            JoinType::Left => (inner.max(left.rows), left.all_rows.max(right.all_rows)),
            JoinType::Right => (inner.max(right.rows), left.all_rows.max(right.all_rows)),
            JoinType::Full => (left.rows + right.rows, left.all_rows + right.all_rows),
        };
        if matches!(join.join_type(), JoinType::Left | JoinType::Full) {
            right.may_lack(matching_left);
        }
        if matches!(join.join_type(), JoinType::Right | JoinType::Full) {
            left.may_lack(matching_right);
        }
        let mut columns = match join.join_type() {
            JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => left.columns,
            JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => right.columns,
            _ => [left.columns, right.columns].concat(),
        };
        if matches!(join.join_type(), JoinType::LeftMark | JoinType::RightMark) {
            columns.push(ColumnFacts::default());
        }
        if let Some(chosen) = &join.projection {
            columns = chosen.iter().map(|column| columns.get(*column).copied().unwrap_or_default()).collect();
        }
        Some(Self { rows: rows.max(1.0), all_rows: all_rows.max(rows), columns })
    }

    /// An outer join gives the columns of a side that has rows for that part of the other side's.
    fn may_lack(&mut self, matching: f64) {
        for column in &mut self.columns {
            column.nulls = Some(1.0 - matching * (1.0 - column.nulls.unwrap_or(0.0)));
            column.key = Key::No;
        }
    }

    /// What is known of an expression: something if it is a column, perhaps with a constant added.
    pub(crate) fn column(&self, expression: &Arc<dyn PhysicalExpr>) -> ColumnFacts {
        let of = |column: &Column| self.columns.get(column.index()).copied().unwrap_or_default();
        if let Some(column) = expression.downcast_ref::<Column>() {
            return of(column);
        }
        let shifted = integers::shifted(expression).map(of);
        shifted.map_or_else(ColumnFacts::default, |column| ColumnFacts { range: None, step: 0.0, ..column })
    }

    /// The combinations of values of columns, of which there are not more than rows.
    fn combination<'a>(&self, columns: impl Iterator<Item = &'a Arc<dyn PhysicalExpr>>) -> ColumnFacts {
        let all =
            columns.map(|column| self.column(column).distinct.unwrap_or(self.all_rows)).product::<f64>();
        ColumnFacts { distinct: Some(all.min(self.all_rows)), ..ColumnFacts::default() }
    }
}

impl ColumnFacts {
    fn of(statistics: &ColumnStatistics, data_type: &DataType, rows: f64) -> Self {
        let ends = (statistics.min_value.get_value(), statistics.max_value.get_value());
        let value = |value: Option<&ScalarValue>| value.and_then(number);
        let step = step(data_type);
        let range = value(ends.0)
            .zip(value(ends.1))
            .filter(|(least, greatest)| least <= greatest && greatest - least < longest(data_type));
        let width = range.filter(|_| step > 0.0).map(|(least, greatest)| (greatest - least) / step + 1.0);
        // Of several files, what is told may be the number of one of them.
        let several = matches!(ends, (Some(least), Some(greatest)) if least != greatest);
        let told = statistics.distinct_count.get_value().map(|count| *count as f64);
        let told = told.filter(|told| *told > 1.0 || !several);
        let key = match (told, width) {
            (Some(told), _) if told >= rows => Key::Yes,
            (None, Some(width)) if rows <= width && rows >= width * DENSE => Key::Yes,
            (None, Some(width)) if rows <= width => Key::Perhaps,
            _ => Key::No,
        };
        let nulls = statistics.null_count.get_value().map(|count| (*count as f64 / rows.max(1.0)).min(1.0));
        let distinct = told.or(width).map(|distinct| distinct.min(rows).max(1.0));
        Self { distinct, range, step, key, pinned: false, nulls }
    }

    /// The facts of a column of which only so many values are left.
    pub(super) fn pinned(self, values: usize) -> Self {
        let values = values as f64;
        let distinct = Some(self.distinct.map_or(values, |distinct| distinct.min(values)));
        Self { distinct, pinned: true, nulls: Some(0.0), ..self }
    }

    /// The facts of those values alone that lie in a range, and which part of the values that is.
    pub(super) fn within(self, least: f64, greatest: f64) -> (Self, f64) {
        let Some((from, to)) = self.range else { return (self, 1.0) };
        let (least, greatest) = (least.max(from), greatest.min(to));
        let width = to - from + self.step;
        let share = if least > greatest {
            0.0
        } else if width > 0.0 {
            ((greatest - least + self.step) / width).clamp(0.0, 1.0)
        } else {
            1.0
        };
        let distinct = self.distinct.map(|distinct| (distinct * share).max(1.0));
        let range = Some(if least > greatest { (from, from) } else { (least, greatest) });
        (Self { distinct, range, ..self }, share)
    }
}

/// The parts of two relations' rows that find a partner, if one key of each is compared.
fn shares(left: &Facts, one: &ColumnFacts, right: &Facts, other: &ColumnFacts) -> (f64, f64) {
    let values =
        |facts: &Facts, column: &ColumnFacts| column.distinct.unwrap_or(facts.all_rows).min(facts.rows);
    let all = |facts: &Facts, column: &ColumnFacts| column.distinct.unwrap_or(facts.all_rows).max(1.0);
    let (ours, theirs) = (values(left, one), values(right, other));
    ((theirs / all(left, one)).min(1.0), (ours / all(right, other)).min(1.0))
}

/// The parts of two relations' rows that find a partner in a join. Where those are taken away, keys that each find one would leave
/// nothing, but not all combinations of values occur: the parts are between those of single keys and of all combinations.
fn matching(join: &HashJoinExec, left: &Facts, right: &Facts) -> (f64, f64) {
    let by_key =
        join.on().iter().map(|(one, other)| shares(left, &left.column(one), right, &right.column(other)));
    let by_key = by_key.fold((1.0_f64, 1.0_f64), |all, next| (all.0.min(next.0), all.1.min(next.1)));
    if !matches!(join.join_type(), JoinType::LeftAnti | JoinType::RightAnti) {
        return by_key;
    }
    let ours = left.combination(join.on().iter().map(|(one, _)| one));
    let theirs = right.combination(join.on().iter().map(|(_, other)| other));
    let combined = shares(left, &ours, right, &theirs);
    ((by_key.0 * combined.0.min(by_key.0)).sqrt(), (by_key.1 * combined.1.min(by_key.1)).sqrt())
}

/// Whether an operator gives each row of its input once, with the same columns.
fn keeps_rows(plan: &dyn ExecutionPlan, input: &Arc<dyn ExecutionPlan>) -> bool {
    plan.fetch().is_none()
        && matches!(plan.cardinality_effect(), CardinalityEffect::Equal)
        && plan.schema().fields() == input.schema().fields()
}

fn count(statistics: &Statistics) -> Option<f64> {
    statistics.num_rows.get_value().map(|rows| (*rows as f64).max(1.0))
}

/// Distance of neighbouring values of a type; 0 where there is none to speak of.
fn step(data_type: &DataType) -> f64 {
    match data_type {
        DataType::Decimal128(_, 0) => 1.0,
        // As `number` counts: in milliseconds.
        DataType::Date64 => 86_400_000.0,
        other if other.is_integer() || other.is_temporal() => 1.0,
        _ => 0.0,
    }
}

/// How far apart the least and the greatest value of a type may be to be both of the ordinary kind.
fn longest(data_type: &DataType) -> f64 {
    let in_day = match data_type {
        DataType::Date32 => 1.0,
        DataType::Date64 | DataType::Timestamp(TimeUnit::Millisecond, _) => 86.4e6,
        DataType::Timestamp(TimeUnit::Second, _) => 86.4e3,
        DataType::Timestamp(TimeUnit::Microsecond, _) => 86.4e9,
        DataType::Timestamp(TimeUnit::Nanosecond, _) => 86.4e12,
        _ => f64::INFINITY,
    };
    DATES_DAYS * in_day
}

/// A value as a number, for the types of which the distance of two values means something.
pub(super) fn number(value: &ScalarValue) -> Option<f64> {
    Some(match value {
        ScalarValue::Int8(value) => f64::from((*value)?),
        ScalarValue::Int16(value) => f64::from((*value)?),
        ScalarValue::Int32(value) | ScalarValue::Date32(value) | ScalarValue::Time32Second(value) => {
            f64::from((*value)?)
        }
        ScalarValue::Time32Millisecond(value) => f64::from((*value)?),
        ScalarValue::Int64(value)
        | ScalarValue::Date64(value)
        | ScalarValue::Time64Microsecond(value)
        | ScalarValue::Time64Nanosecond(value)
        | ScalarValue::TimestampSecond(value, _)
        | ScalarValue::TimestampMillisecond(value, _)
        | ScalarValue::TimestampMicrosecond(value, _)
        | ScalarValue::TimestampNanosecond(value, _) => (*value)? as f64,
        ScalarValue::UInt8(value) => f64::from((*value)?),
        ScalarValue::UInt16(value) => f64::from((*value)?),
        ScalarValue::UInt32(value) => f64::from((*value)?),
        ScalarValue::UInt64(value) => (*value)? as f64,
        ScalarValue::Float32(value) => f64::from((*value)?),
        ScalarValue::Float64(value) => (*value)?,
        ScalarValue::Decimal128(value, _, scale) => (*value)? as f64 / 10_f64.powi(i32::from(*scale)),
        _ => return None,
    })
    .filter(|number| number.is_finite())
}
