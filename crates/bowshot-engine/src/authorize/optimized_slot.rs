//! The optimized plan of an authorized one, for its next run. It is as good as the authorized plan that it belongs to, with the same
//! options of the session, on whatever rows the tables have then.

use bowshot_api::Layout;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::LogicalPlan;
use parking_lot::Mutex;
use std::sync::Arc;

/// What a plan was optimized for.
#[derive(Debug, Clone)]
pub(crate) struct OptimizedFor {
    /// Whoever changes a setting makes other options: these are held, and cannot change in place.
    pub(crate) options: Arc<ConfigOptions>,
    pub(crate) partitions: usize,
    pub(crate) layout: Layout,
}

impl PartialEq for OptimizedFor {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.options, &other.options)
            && self.partitions == other.partitions
            && self.layout == other.layout
    }
}

/// An optimized plan, in which parameters have no values and tables no rows yet, and the schema of its rows.
#[derive(Debug)]
pub(crate) struct Optimized {
    pub(crate) made_for: OptimizedFor,
    pub(crate) plan: LogicalPlan,
    pub(crate) schema: SchemaRef,
}

/// What is known of the next run of a plan.
#[derive(Debug, Clone, Default)]
pub(crate) enum NextRun {
    /// The plan has not run.
    #[default]
    Unknown,
    /// It is optimized anew each time.
    Anew,
    /// It may use this.
    Reuses(Arc<Optimized>),
}

/// The optimized plan of an authorized plan, kept for its next run.
#[derive(Debug, Default)]
pub(crate) struct OptimizedSlot(Mutex<NextRun>);

impl OptimizedSlot {
    pub(crate) fn get(&self) -> NextRun {
        self.0.lock().clone()
    }

    pub(crate) fn put(&self, next: NextRun) {
        let before = std::mem::replace(&mut *self.0.lock(), next);
        drop(before);
    }
}
