//! Functions that rules put into plans. No statement calls them by name.

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::functions::utils::make_scalar_function;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

/// One such function. Its result may be NULL where an argument may.
pub trait PlanFunction: Debug + Eq + Hash + Send + Sync + 'static {
    /// The name, by which plans that come from other nodes find it.
    fn name(&self) -> &'static str;

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType>;

    fn compute(&self, arguments: &[ArrayRef]) -> Result<ArrayRef>;

    /// Whether NULL in an argument always gives NULL.
    fn is_strict(&self) -> bool {
        false
    }
}

/// The function as DataFusion calls it.
pub fn plan_function(function: impl PlanFunction, signature: Signature) -> ScalarUDF {
    ScalarUDF::new_from_impl(InPlan { function, signature })
}

/// What [`plan_function`] was given, if it has made the function.
pub fn plan_function_of<F: PlanFunction>(function: &ScalarUDF) -> Option<&F> {
    function.inner().downcast_ref::<InPlan<F>>().map(|made| &made.function)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct InPlan<F> {
    function: F,
    signature: Signature,
}

impl<F: PlanFunction> ScalarUDFImpl for InPlan<F> {
    bowshot_api::delegate! { function:
        fn name(&self) -> &str;
        fn return_type(&self, arguments: &[DataType]) -> Result<DataType>;
        fn is_strict(&self) -> bool;
    }

    bowshot_api::getters!(signature: &Signature);

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> =
            arguments.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = arguments.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.function.name(), self.function.return_type(&types)?, nullable)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        make_scalar_function(|arrays| self.function.compute(arrays), Vec::new())(&arguments.args)
    }
}
