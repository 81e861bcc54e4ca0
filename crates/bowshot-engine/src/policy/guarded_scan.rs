//! The scan of a table of which somebody sees a part: a leaf of the physical plan, with a plan of its own behind it.
//!
//! Joins compare their keys, and sorts with a limit their columns, with what they have found in their own rows so far (dynamic
//! filters). Of columns that are shown as they are, these comparisons pass the guard as those with constants do, so that the
//! table skips what cannot be wanted; the guard says that it holds none of them, and they are held again above it.

use super::guard::told;
use super::shown::Shown;
use bowshot_storage::tables::EntryName;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_expr::expressions::{Column, DynamicFilterPhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::filter_pushdown::FilterPushdown;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::filter_pushdown::{
    ChildFilterDescription, ChildPushdownResult, FilterDescription, FilterPushdownPhase,
    FilterPushdownPropagation,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
};
use futures::StreamExt;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct GuardedScan {
    name: EntryName,
    inner: Arc<dyn ExecutionPlan>,
    /// The same before comparisons passed, for another run.
    fresh: Arc<dyn ExecutionPlan>,
    shown: Arc<Shown>,
    /// Columns whose comparisons may pass.
    passing: Arc<BTreeSet<String>>,
    properties: Arc<PlanProperties>,
}

impl GuardedScan {
    pub(super) fn of(
        name: EntryName,
        inner: Arc<dyn ExecutionPlan>,
        (shown, passing): (Shown, BTreeSet<String>),
    ) -> Arc<dyn ExecutionPlan> {
        let below = inner.properties();
        let schema = &shown.schema;
        // Neither order nor distribution of what is hidden below.
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(schema)),
            Partitioning::UnknownPartitioning(below.partitioning.partition_count()),
            below.emission_type,
            below.boundedness,
        ));
        let fresh = Arc::clone(&inner);
        Arc::new(Self { name, inner, fresh, shown: Arc::new(shown), passing: Arc::new(passing), properties })
    }

    /// Whether a filter is made of comparisons of columns that are shown as they are. What it compares with is another's, and it
    /// may not be there yet.
    fn passes(&self, filter: &Arc<dyn PhysicalExpr>) -> bool {
        let Some(filter) = filter.downcast_ref::<DynamicFilterPhysicalExpr>() else { return false };
        filter.children().into_iter().all(|part| {
            part.downcast_ref::<Column>().is_some_and(|column| self.passing.contains(column.name()))
        })
    }
}

/// The plan behind a guard, for who must look at the files that rows may be views of.
pub(crate) fn inside(plan: &dyn ExecutionPlan) -> Option<&Arc<dyn ExecutionPlan>> {
    plan.downcast_ref::<GuardedScan>().map(|guard| &guard.inner)
}

impl DisplayAs for GuardedScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: table={}", ExecutionPlan::name(self), self.name)
    }
}

impl ExecutionPlan for GuardedScan {
    fn name(&self) -> &'static str {
        "GuardedScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("a guarded table is a leaf") }
    }

    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        result: ChildPushdownResult,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let filters = result.parent_filters.iter().map(|asked| Arc::clone(&asked.filter));
        let passing: Vec<_> = filters.filter(|filter| self.passes(filter)).collect();
        let held_above = FilterPushdownPropagation::all_unsupported(result);
        if phase != FilterPushdownPhase::Post || passing.is_empty() {
            return Ok(held_above);
        }
        let inner = below(&self.inner, passing, config)?;
        Ok(held_above.with_updated_node(Arc::new(Self { inner, ..self.clone() })))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let fresh = reset_plan_states(Arc::clone(&self.fresh))?;
        Ok(Arc::new(Self { inner: Arc::clone(&fresh), fresh, ..Self::clone(&self) }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let inner = self.inner.execute(partition, context).map_err(|error| told(error, &self.name))?;
        let (shown, name) = (Arc::clone(&self.shown), self.name.clone());
        let batches = inner.map(move |batch| match batch {
            Ok(batch) => shown.of(&batch),
            Err(error) => Err(told(error, &name)),
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.shown.schema), batches)))
    }
}

/// The plan with filters passed down as far as its operators let them.
fn below(
    plan: &Arc<dyn ExecutionPlan>,
    filters: Vec<Arc<dyn PhysicalExpr>>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let asking: Arc<dyn ExecutionPlan> = Arc::new(Asking { input: Arc::clone(plan), filters });
    let asked = FilterPushdown::new_post_optimization().optimize(asking, config)?;
    match asked.children().as_slice() {
        [below] => Ok(Arc::clone(below)),
        _ => internal_err!("filters were passed down from an operator that has gone"),
    }
}

/// An operator that has nothing but filters for what is below it. It never runs.
#[derive(Debug)]
struct Asking {
    input: Arc<dyn ExecutionPlan>,
    filters: Vec<Arc<dyn PhysicalExpr>>,
}

impl DisplayAs for Asking {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ExecutionPlan::name(self))
    }
}

impl ExecutionPlan for Asking {
    fn name(&self) -> &'static str {
        "Asking"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Arc::new(Self { input, filters: self.filters.clone() })),
            _ => internal_err!("one operator is asked"),
        }
    }

    fn gather_filters_for_pushdown(
        &self,
        _: FilterPushdownPhase,
        _: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let own = ChildFilterDescription::from_child(&[], &self.input)?;
        Ok(FilterDescription::new().with_child(own.with_self_filters(self.filters.clone())))
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        internal_err!("an operator that asks was to run")
    }
}
