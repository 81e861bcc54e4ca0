//! What operators with one input and no expressions have in common.

/// The methods about the input of such an operator: the field that it is in, and the operator with another one.
#[macro_export]
macro_rules! one_input {
    ($field:ident, |$plan:ident, $input:ident| $with:expr) => {
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
}
