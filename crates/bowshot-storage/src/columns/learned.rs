//! Rows that a join has learned not to need, once it has read its other side: they leave before anything is made of them.

use super::scan::moved;
use arrow::array::{Array, BooleanArray, RecordBatch};
use arrow::compute::{filter_record_batch, prep_null_mask_filter};
use arrow::datatypes::{DataType, Schema};
use datafusion::common::cast::as_boolean_array;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, DynamicFilterPhysicalExpr};
use datafusion::physical_expr::split_conjunction;
use std::sync::Arc;

/// Rows leave if at most one of so many stays: copying those that stay has its price.
const STAYING_SHARE: usize = 4;
/// Batches without success, after which a condition is tried only now and then.
const PATIENCE: u32 = 4;
/// How seldom that is.
const SELDOM: u32 = 16;

/// The parts of a predicate that joins fill in while the query runs, over the columns at these places. Only conditions on
/// bare columns: an expression may fail for rows that a filter above takes away first. And only on values that are equal
/// exactly where their bits are: to a join -0.0 is 0.0, to the conditions that it fills in it is not.
pub(super) fn conditions(
    predicate: &Arc<dyn PhysicalExpr>,
    places: &[usize],
    schema: &Schema,
) -> Vec<Arc<dyn PhysicalExpr>> {
    let conditions = split_conjunction(predicate).into_iter().filter(|part| {
        let children = part.children();
        part.downcast_ref::<DynamicFilterPhysicalExpr>().is_some()
            && !children.is_empty()
            && children.iter().all(|child| {
                child.downcast_ref::<Column>().is_some_and(|column| {
                    places.contains(&column.index()) && is_exact(schema.field(column.index()).data_type())
                })
            })
    });
    conditions.filter_map(|condition| moved(Arc::clone(condition), places).ok()).collect()
}

fn is_exact(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::Boolean => true,
        other => {
            other.is_integer()
                || other.is_decimal()
                || (other.is_temporal() && !matches!(other, DataType::Interval(_)))
        }
    }
}

/// How well conditions did so far, in one run of batches.
#[derive(Debug, Default)]
pub(super) struct Learned {
    idle: u32,
}

impl Learned {
    /// The rows that may be needed: some of these, or all.
    pub(super) fn apply(&mut self, conditions: &[Arc<dyn PhysicalExpr>], rows: RecordBatch) -> RecordBatch {
        if conditions.is_empty() {
            return rows;
        }
        let due = self.idle < PATIENCE || self.idle.is_multiple_of(SELDOM);
        match due.then(|| staying(conditions, &rows)).flatten() {
            Some(few) => {
                self.idle = 0;
                few
            }
            None => {
                self.idle = self.idle.saturating_add(1);
                rows
            }
        }
    }
}

/// The rows that pass, if they are few. A condition that fails says nothing: the join above decides anyway.
fn staying(conditions: &[Arc<dyn PhysicalExpr>], rows: &RecordBatch) -> Option<RecordBatch> {
    let mut passing: Option<BooleanArray> = None;
    for condition in conditions {
        let mask = condition.evaluate(rows).ok()?.into_array(rows.num_rows()).ok()?;
        let mask = as_boolean_array(&mask).ok()?;
        let mask = if mask.null_count() > 0 { prep_null_mask_filter(mask) } else { mask.clone() };
        passing = Some(match passing {
            Some(others) => arrow::compute::and(&others, &mask).ok()?,
            None => mask,
        });
    }
    let passing = passing.filter(|mask| mask.true_count() <= rows.num_rows() / STAYING_SHARE)?;
    filter_record_batch(rows, &passing).ok()
}
