//! Dynamic filters of joins: drops rows before their other columns are built.

use super::scan::moved;
use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow::compute::prep_null_mask_filter;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::cast::as_boolean_array;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, DynamicFilterPhysicalExpr};
use datafusion::physical_expr::split_conjunction;
use datafusion::physical_expr::utils::collect_columns;
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

#[derive(Debug)]
pub(super) struct Learned {
    conditions: Vec<Condition>,
    /// The columns that conditions ask for: their places among those that are read, and their schema.
    places: Vec<usize>,
    schema: SchemaRef,
    /// Batches that stayed whole, one after the other.
    idle: Idle,
}

#[derive(Debug)]
struct Condition {
    /// Over the columns that conditions ask for.
    expression: Arc<dyn PhysicalExpr>,
    /// Batches most of whose rows passed, one after the other.
    idle: Idle,
}

impl Learned {
    /// `conditions` are over the columns that are read, which have this schema.
    pub(super) fn new(conditions: &[Arc<dyn PhysicalExpr>], schema: &Schema) -> Self {
        let columns = conditions.iter().flat_map(collect_columns);
        let mut places: Vec<usize> = columns.map(|column| column.index()).collect();
        places.sort_unstable();
        places.dedup();
        let condition = |expression: &Arc<dyn PhysicalExpr>| {
            let expression = moved(Arc::clone(expression), &places).ok()?;
            Some(Condition { expression, idle: Idle::default() })
        };
        let (conditions, schema) = match schema.project(&places) {
            Ok(schema) => (conditions.iter().filter_map(condition).collect(), schema),
            Err(_) => (Vec::new(), Schema::empty()),
        };
        Self { conditions, places, schema: Arc::new(schema), idle: Idle::default() }
    }

    /// The places of the columns that [`Self::passing`] has a use for now.
    pub(super) fn places(&self) -> &[usize] {
        if self.conditions.is_empty() || !self.idle.is_due() { &[] } else { &self.places }
    }

    /// The rows that may be needed, if they are few: else all may. `columns` has those at [`Self::places`].
    pub(super) fn passing(&mut self, columns: &[Option<ArrayRef>], rows: usize) -> Option<BooleanArray> {
        if self.conditions.is_empty() || rows == 0 {
            return None;
        }
        let few =
            if self.idle.is_due() { self.asked_for(columns).and_then(|rows| self.few(&rows)) } else { None };
        self.idle.count(few.is_none());
        few
    }

    fn asked_for(&self, columns: &[Option<ArrayRef>]) -> Option<RecordBatch> {
        let columns = self.places.iter().map(|place| columns.get(*place).cloned().flatten());
        RecordBatch::try_new(Arc::clone(&self.schema), columns.collect::<Option<_>>()?).ok()
    }

    fn few(&mut self, rows: &RecordBatch) -> Option<BooleanArray> {
        let few = rows.num_rows() / STAYING_SHARE;
        let anew = self.idle.was_patient();
        let mut passing: Option<BooleanArray> = None;
        for condition in &mut self.conditions {
            let Some(mask) = condition.passing(rows, anew) else { continue };
            let all = match passing {
                Some(others) => arrow::compute::and(&others, &mask).ok()?,
                None => mask,
            };
            // Looking rows up in the table of a join has its price too.
            let enough = all.true_count() == 0;
            passing = Some(all);
            if enough {
                break;
            }
        }
        passing.filter(|mask| mask.true_count() <= few)
    }
}

impl Condition {
    /// Which rows pass; `None` if it was of no use lately and is not tried `anew`, or if it fails: the join above decides.
    fn passing(&mut self, rows: &RecordBatch, anew: bool) -> Option<BooleanArray> {
        let mask = if anew || self.idle.is_due() { self.mask(rows) } else { None };
        let most = rows.num_rows() - rows.num_rows() / STAYING_SHARE;
        self.idle.count(mask.as_ref().is_none_or(|mask| mask.true_count() > most));
        mask
    }

    fn mask(&self, rows: &RecordBatch) -> Option<BooleanArray> {
        let mask = self.expression.evaluate(rows).ok()?.into_array(rows.num_rows()).ok()?;
        let mask = as_boolean_array(&mask).ok()?;
        Some(if mask.null_count() > 0 { prep_null_mask_filter(mask) } else { mask.clone() })
    }
}

/// How often something was in vain, one time after the other.
#[derive(Debug, Default)]
struct Idle(u32);

impl Idle {
    /// Whether it is worth another try.
    fn is_due(&self) -> bool {
        !self.was_patient() || self.0.is_multiple_of(SELDOM)
    }

    fn was_patient(&self) -> bool {
        self.0 >= PATIENCE
    }

    fn count(&mut self, in_vain: bool) {
        self.0 = if in_vain { self.0.saturating_add(1) } else { 0 };
    }
}
