//! There is one NaN. The processor gives NaN of infinities (`x - x`, `0 * x`) the sign of a negative number, and with it another
//! place in every order than the NaN that is written: it would be another group, and less than all numbers.

use crate::rules::expressions::{in_plan, is_arithmetic};
use bowshot_kernels::floats::with_one_nan;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use std::sync::{Arc, LazyLock};

static ONE_NAN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(ScalarUDF::from(OneNan::new())));

pub(super) fn function() -> Arc<ScalarUDF> {
    Arc::clone(&ONE_NAN)
}

/// See the module. Types must have been settled before.
#[derive(Debug)]
pub(in crate::rules) struct OnlyOneNan;

impl AnalyzerRule for OnlyOneNan {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        in_plan(plan, |expr, schema| expr.transform_up(|node| Ok(canonical(node, schema))))
    }

    fn name(&self) -> &'static str {
        "only_one_nan"
    }
}

/// What is computed, with the one NaN. Within what is computed further it does not matter yet.
fn canonical(mut node: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let makes_nan = match &node {
        Expr::BinaryExpr(binary) if is_arithmetic(binary.op) => {
            is_floating(&binary.left, schema) && is_floating(&binary.right, schema)
        }
        Expr::Negative(of) => is_floating(of, schema),
        // The analysis runs on what was analysed before, too.
        Expr::ScalarFunction(call) if is_canonical(call) => match call.args.as_slice() {
            [inner @ Expr::ScalarFunction(call)] if is_canonical(call) => {
                return Transformed::yes(inner.clone());
            }
            _ => false,
        },
        _ => false,
    };
    if !makes_nan {
        return Transformed::no(node);
    }
    match &mut node {
        Expr::BinaryExpr(binary) => {
            bare(&mut binary.left);
            bare(&mut binary.right);
        }
        Expr::Negative(of) => bare(of),
        _ => {}
    }
    Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(function(), vec![node])))
}

/// What is below arithmetic has been looked at: a long sum is not asked for its type at each of its levels.
fn is_floating(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::ScalarFunction(call) if is_canonical(call) => true,
        Expr::BinaryExpr(binary) if is_arithmetic(binary.op) => false,
        other => other.get_type(schema).is_ok_and(|of| of.is_floating()),
    }
}

fn is_canonical(call: &ScalarFunction) -> bool {
    call.func.inner().is::<OneNan>()
}

fn bare(expr: &mut Expr) {
    let Expr::ScalarFunction(call) = expr else { return };
    if is_canonical(call)
        && let Some(inner) = call.args.pop()
    {
        *expr = inner;
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OneNan {
    signature: Signature,
}

impl OneNan {
    const NAME: &'static str = "__one_nan";

    fn new() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for OneNan {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// The one of what is computed, so that columns keep their names.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let [of] = args else { return internal_err!("`{}` takes one number", Self::NAME) };
        Ok(of.schema_name().to_string())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [of] => Ok(of.clone()),
            _ => internal_err!("`{}` takes one number", Self::NAME),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<_> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(Self::NAME, self.return_type(&types)?, nullable)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn output_ordering(&self, _input: &[ExprProperties]) -> Result<SortProperties> {
        Ok(SortProperties::Unordered)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(ColumnarValue::Array(array)) => Ok(ColumnarValue::Array(with_one_nan(&array))),
            Some(ColumnarValue::Scalar(scalar)) => {
                let one = with_one_nan(&scalar.to_array()?);
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&one, 0)?))
            }
            None => internal_err!("`{}` takes one number", Self::NAME),
        }
    }
}
