//! `coalesce`, in which a text beside dates, times, intervals, bytes or booleans is one of them: `coalesce(d, '2024-01-31')`. To
//! DataFusion they have no common type.

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::functions::core::coalesce::CoalesceFunc;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::type_coercion::binary::type_union_resolution;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature,
};
use std::sync::Arc;

pub(crate) fn coalesce() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(Coalesce::default()))
}

/// See the module.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
struct Coalesce {
    stock: CoalesceFunc,
}

/// The type of values among texts that are such values.
fn among_texts(given: &[DataType]) -> Option<DataType> {
    let others: Vec<DataType> = given.iter().filter(|of| !of.is_string() && !of.is_null()).cloned().collect();
    let common = type_union_resolution(&others)?;
    let is_read = common.is_temporal() || matches!(common, DataType::Boolean | DataType::Binary);
    is_read.then_some(common)
}

impl ScalarUDFImpl for Coalesce {
    fn name(&self) -> &str {
        self.stock.name()
    }

    fn signature(&self) -> &Signature {
        self.stock.signature()
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let common = self.stock.coerce_types(given);
        match among_texts(given) {
            Some(of) if common.is_err() => Ok(vec![of; given.len()]),
            _ => common,
        }
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        self.stock.return_type(given)
    }

    fn return_field_from_args(&self, given: ReturnFieldArgs) -> Result<FieldRef> {
        self.stock.return_field_from_args(given)
    }

    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.stock.simplify(args, context)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.stock.invoke_with_args(args)
    }

    fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.stock.conditional_arguments(args)
    }

    fn short_circuits(&self) -> bool {
        self.stock.short_circuits()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.stock.documentation()
    }
}
