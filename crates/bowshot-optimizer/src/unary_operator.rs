//! What operators with one input have in common.

/// The methods about the statistics of such an operator, which are made of those of its input.
#[macro_export]
macro_rules! statistics_of_input {
    (|$plan:ident, $input:ident| $statistics:expr) => {
        fn child_stats_requests(
            &self,
            partition: Option<usize>,
        ) -> Vec<::datafusion::physical_plan::statistics::ChildStats> {
            vec![::datafusion::physical_plan::statistics::ChildStats::At(partition)]
        }

        fn statistics_from_inputs(
            &self,
            inputs: &[::std::sync::Arc<::datafusion::common::Statistics>],
            _: &::datafusion::physical_plan::statistics::StatisticsArgs,
        ) -> ::datafusion::common::Result<::std::sync::Arc<::datafusion::common::Statistics>> {
            let $plan = self;
            match inputs {
                [$input] => Ok($statistics),
                _ => ::datafusion::common::internal_err!("this operator has one input"),
            }
        }
    };
}

/// The methods about the input and the expressions of such an operator: the field that the input is in, the operator with another one, and
/// the expressions that it computes, if it has any.
#[macro_export]
macro_rules! one_input {
    ($field:ident, |$plan:ident, $input:ident| $with:expr) => {
        $crate::one_input!(@of_input $field, |$plan, $input| $with);

        fn apply_expressions(
            &self,
            _: &mut dyn FnMut(
                &::std::sync::Arc<dyn ::datafusion::physical_plan::PhysicalExpr>,
            ) -> ::datafusion::common::Result<
                ::datafusion::common::tree_node::TreeNodeRecursion,
            >,
        ) -> ::datafusion::common::Result<::datafusion::common::tree_node::TreeNodeRecursion> {
            Ok(::datafusion::common::tree_node::TreeNodeRecursion::Continue)
        }
    };
    ($field:ident, |$plan:ident, $input:ident| $with:expr, |$of:ident| $expressions:expr) => {
        $crate::one_input!(@of_input $field, |$plan, $input| $with);

        fn apply_expressions(
            &self,
            visit: &mut dyn FnMut(
                &::std::sync::Arc<dyn ::datafusion::physical_plan::PhysicalExpr>,
            ) -> ::datafusion::common::Result<
                ::datafusion::common::tree_node::TreeNodeRecursion,
            >,
        ) -> ::datafusion::common::Result<::datafusion::common::tree_node::TreeNodeRecursion> {
            let $of = self;
            ::datafusion::physical_plan::execution_plan::apply_expression_roots($expressions, visit)
        }
    };
    (@of_input $field:ident, |$plan:ident, $input:ident| $with:expr) => {
        fn children(&self) -> Vec<&::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>> {
            vec![&self.$field]
        }

        fn with_new_children(
            self: ::std::sync::Arc<Self>,
            mut children: Vec<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>>,
        ) -> ::datafusion::common::Result<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>> {
            let $plan = &self;
            match (children.pop(), children.is_empty()) {
                (Some($input), true) => Ok(::std::sync::Arc::new($with)),
                _ => ::datafusion::common::internal_err!("this operator has one input"),
            }
        }
    };
}
