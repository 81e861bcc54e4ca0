//! How far a running plan is: rows that its leaves have produced against the rows that their statistics promise.

use crate::execute::statistics::rows;
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// Reads the metrics of a running plan's leaves.
#[derive(Debug, Clone, Default)]
pub struct ProgressMeter {
    leaves: Vec<Leaf>,
}

#[derive(Debug, Clone)]
struct Leaf {
    plan: Arc<dyn ExecutionPlan>,
    promised: usize,
}

impl ProgressMeter {
    /// Remembers the leaves of a plan that promise a number of rows.
    pub(crate) fn new(plan: &Arc<dyn ExecutionPlan>) -> Self {
        let mut leaves = Vec::new();
        collect(plan, &mut leaves);
        Self { leaves }
    }

    /// Share of the work done, 0 to 1; 0 where no leaf promises anything.
    pub fn fraction(&self) -> f64 {
        let promised: usize = self.leaves.iter().map(|leaf| leaf.promised).sum();
        if promised == 0 {
            return 0.0;
        }
        let produced: usize = self.leaves.iter().map(Leaf::produced).sum();
        produced as f64 / promised as f64
    }
}

impl Leaf {
    fn produced(&self) -> usize {
        let rows = self.plan.metrics().and_then(|metrics| metrics.output_rows()).unwrap_or(0);
        rows.min(self.promised)
    }
}

fn collect(plan: &Arc<dyn ExecutionPlan>, leaves: &mut Vec<Leaf>) {
    let children = plan.children();
    if children.is_empty()
        && let Some(promised) = rows(plan.as_ref()).and_then(|(rows, _)| (rows > 0).then_some(rows))
    {
        leaves.push(Leaf { plan: Arc::clone(plan), promised });
    }
    for child in children {
        collect(child, leaves);
    }
}
