//! Operators that hide others from one of DataFusion's rules while it runs, and report less or more than those.

use super::node_rule::{Rule, run_by};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use std::fmt;
use std::sync::Arc;

type Plan = Arc<dyn ExecutionPlan>;
type Put = fn(Plan) -> Result<Transformed<Plan>>;

/// The rules, those of these names kept from operators that `put` puts barriers around.
pub(super) fn with_barriers(rules: Vec<Rule>, names: &[&str], put: Put) -> Vec<Rule> {
    run_by(rules, names, move |rule, plan, config| {
        let closed = plan.transform_up(put)?;
        let optimized = rule.optimize(closed.data, config)?;
        if closed.transformed { Barrier::lifted(optimized) } else { Ok(optimized) }
    })
}

/// Gives what its input gives. It takes no conditions from above, since that is what operators do by themselves.
#[derive(Debug)]
pub(super) struct Barrier {
    input: Arc<dyn ExecutionPlan>,
    says: Says,
}

/// The statistics that a barrier gives.
#[derive(Debug, Clone, Copy)]
enum Says {
    OfInput,
    /// This number of rows, instead of that of its input.
    Rows(usize),
    Nothing,
}

impl Barrier {
    pub(super) fn before(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self { input, says: Says::OfInput })
    }

    pub(super) fn without_statistics(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self { input, says: Says::Nothing })
    }

    pub(super) fn with_rows(input: Arc<dyn ExecutionPlan>, rows: usize) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self { input, says: Says::Rows(rows) })
    }

    pub(super) fn lifted(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            Ok(match node.downcast_ref::<Self>() {
                Some(barrier) => Transformed::yes(Arc::clone(&barrier.input)),
                None => Transformed::no(node),
            })
        })
        .data()
    }
}

/// The statistics of so many rows, which are as large as those that are known.
fn with_row_count(known: &Statistics, rows: usize) -> Statistics {
    let mut statistics = known.clone();
    let bytes = known.total_byte_size.get_value().zip(known.num_rows.get_value());
    statistics.total_byte_size = match bytes {
        Some((bytes, of)) => Precision::Inexact((*bytes as f64 / (*of).max(1) as f64 * rows as f64) as usize),
        None => Precision::Absent,
    };
    statistics.num_rows = Precision::Inexact(rows);
    statistics
}

impl DisplayAs for Barrier {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ExecutionPlan for Barrier {
    fn name(&self) -> &str {
        "Barrier"
    }

    bowshot_api::delegate! { input:
        fn properties(&self) -> &Arc<PlanProperties>;
        fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream>;
    }

    crate::one_input!(input, |plan, input| Self { input, says: plan.says });

    crate::statistics_of_input!(|barrier, input| match barrier.says {
        Says::OfInput => Arc::clone(input),
        Says::Nothing => Arc::new(Statistics::new_unknown(&barrier.schema())),
        Says::Rows(rows) => Arc::new(with_row_count(input, rows)),
    });
}
