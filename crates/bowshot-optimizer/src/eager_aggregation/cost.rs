//! Where grouping before joins saves more than it costs, by what statistics tell.
//!
//! The unit is a number that is hashed, or a row that looks for its partner in a join. Grouping by two numbers costs each row some
//! three units and has to save that: with texts among the keys above it does from two rows to a group on, with numbers alone
//! hardly below ten.

use super::levels::{Level, is_long};
use crate::join_order::statistics::Facts;
use datafusion::common::JoinSide;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::aggregates::AggregateExec;
use std::sync::Arc;

/// A text is hashed, compared and copied.
const TEXT: f64 = 6.0;
/// A key of which there is one value.
const CONSTANT: f64 = 0.25;
/// The new plan has to seem cheaper by a fifth: estimates are rough.
const WORTHWHILE: f64 = 0.8;
/// Fewer rows are grouped sooner than all of this is thought through.
const LEAST_ROWS: f64 = 20_000.0;

/// The level at which rows are grouped, if it is worth it.
pub(super) fn best(partial: &AggregateExec, levels: &[Level], partitions: usize) -> Option<usize> {
    if !levels.iter().any(is_join) {
        return None;
    }
    let facts: Vec<Facts> = levels.iter().map(|level| Facts::of(&level.plan)).collect::<Option<_>>()?;
    let functions = partial.aggr_expr().len() as f64;
    let schema = partial.input().schema();
    let keys = partial.group_expr().expr().iter();
    let keys: f64 = keys.map(|(key, _)| if is_long(&schema, key) { TEXT } else { 1.0 }).sum();
    let (mut above, mut best) = (facts.first()?.rows * (1.0 + keys + functions), None);
    let mut most_saved = 0.0;
    for (at, (level, of)) in levels.iter().zip(&facts).enumerate() {
        if is_below_join(levels, at) && level.may_be_grouped() {
            let eager = cost(level, of, functions, partitions).map(|(own, share)| own + share * above);
            if let Some(eager) =
                eager.filter(|eager| *eager < WORTHWHILE * above && above - eager > most_saved)
            {
                (most_saved, best) = (above - eager, Some(at));
            }
        }
        if is_join(level)
            && let Some(side) = facts.get(at + 1)
        {
            above += side.rows;
        }
    }
    best
}

/// Whether a join is between a level and the aggregation.
pub(super) fn is_below_join(levels: &[Level], at: usize) -> bool {
    levels.get(..at).is_some_and(|above| above.iter().any(is_join))
}

fn is_join(level: &Level) -> bool {
    level.side != JoinSide::None
}

/// What grouping the rows of a level costs, and which part of them goes on. Each partition has groups of its own.
fn cost(level: &Level, facts: &Facts, functions: f64, partitions: usize) -> Option<(f64, f64)> {
    if facts.rows < LEAST_ROWS {
        return None;
    }
    let schema = level.plan.schema();
    let (mut values, mut keys) = (1.0, 0.0);
    for at in &level.needed {
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(schema.field(*at).name(), *at));
        let distinct = facts.column(&column).distinct?.max(1.0);
        values *= distinct;
        keys += match is_long(&schema, &column) {
            _ if distinct <= 1.0 => CONSTANT,
            true => TEXT,
            false => 1.0,
        };
    }
    let partitions = partitions.max(1) as f64;
    let rows = facts.rows / partitions;
    // Of so many values, those that some row of the partition has.
    let groups = values * (1.0 - (-rows / values).exp());
    Some((facts.rows * (1.0 + keys + functions), (groups / rows).min(1.0)))
}
