//! An operator that passes its input on, but does not report its ordering, for rules that draw wrong conclusions from it.

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, Statistics};
use datafusion::config::ConfigOptions;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use std::fmt;
use std::sync::Arc;

/// What is forgotten of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// Order and partitions, for good.
    All,
    /// The order, until the operator is taken out again.
    Order,
    /// The order and what is constant, for good.
    Constants,
}

#[derive(Debug)]
pub struct DropOrdering {
    input: Arc<dyn ExecutionPlan>,
    forgotten: Dropped,
    properties: Arc<PlanProperties>,
}

impl DropOrdering {
    /// Forgets all but how many rows there may be.
    pub(super) fn of_all(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self::before(input, Dropped::All))
    }

    /// Forgets the order, until it is [`Self::lifted`].
    pub(super) fn of_order(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self::before(input, Dropped::Order))
    }

    /// Forgets the order and which columns have one value.
    pub(super) fn of_constants(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self::before(input, Dropped::Constants))
    }

    /// For one that forgets constants of one that does, the latter.
    pub(super) fn once(node: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
        let of_constants = |node: &Arc<dyn ExecutionPlan>| {
            node.downcast_ref::<Self>().is_some_and(|one| one.forgotten == Dropped::Constants)
        };
        let input = &node.downcast_ref::<Self>()?.input;
        (of_constants(node) && of_constants(input)).then(|| Arc::clone(input))
    }

    /// The plan without those that forget the order.
    pub(super) fn lifted(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            Ok(match node.downcast_ref::<Self>() {
                Some(one) if one.forgotten == Dropped::Order => Transformed::yes(Arc::clone(&one.input)),
                _ => Transformed::no(node),
            })
        })
        .data()
    }

    pub fn forgotten(plan: &dyn ExecutionPlan) -> Option<Dropped> {
        plan.downcast_ref::<Self>().map(|one| one.forgotten)
    }

    pub fn of(input: Arc<dyn ExecutionPlan>, forgotten: Dropped) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self::before(input, forgotten))
    }

    fn before(input: Arc<dyn ExecutionPlan>, forgotten: Dropped) -> Self {
        let partitioning = input.output_partitioning();
        let partitioning = match forgotten {
            Dropped::All => Partitioning::UnknownPartitioning(partitioning.partition_count()),
            Dropped::Order | Dropped::Constants => partitioning.clone(),
        };
        let known = input.properties();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            partitioning,
            known.emission_type,
            known.boundedness,
        );
        Self { input, forgotten, properties: Arc::new(properties) }
    }
}

impl DisplayAs for DropOrdering {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ExecutionPlan for DropOrdering {
    fn name(&self) -> &'static str {
        match self.forgotten {
            Dropped::All => "GroupingSets",
            Dropped::Order => "Unordered",
            Dropped::Constants => "PartsOfRows",
        }
    }

    bowshot_api::getters!(properties: &Arc<PlanProperties>);

    crate::one_input!(input, |plan, input| Self::before(input, plan.forgotten));

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    crate::statistics_of_input!(|plan, input| match plan.forgotten {
        Dropped::All => {
            let num_rows = input.num_rows.to_inexact();
            Arc::new(Statistics { num_rows, ..Statistics::new_unknown(&plan.schema()) })
        }
        Dropped::Order | Dropped::Constants => Arc::clone(input),
    });

    fn gather_filters_for_pushdown(
        &self,
        _phase: FilterPushdownPhase,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _config: &ConfigOptions,
    ) -> Result<FilterDescription> {
        if self.forgotten == Dropped::Constants {
            FilterDescription::from_children(filters, &self.children())
        } else {
            Ok(FilterDescription::all_unsupported(&filters, &self.children()))
        }
    }

    fn handle_child_pushdown_result(
        &self,
        _phase: FilterPushdownPhase,
        result: ChildPushdownResult,
        _config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        Ok(FilterPushdownPropagation::if_all(result))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
