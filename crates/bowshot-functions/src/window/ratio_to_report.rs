//! `ratio_to_report(x) OVER (…)`: a value divided by the sum of its partition.

use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array};
use datafusion::arrow::compute::sum;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{
    LimitEffect, PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_expr::PhysicalExpr;
use std::sync::Arc;

#[derive(Debug, PartialEq, Eq, Hash)]
struct Share {
    signature: Signature,
}

pub(super) fn ratio_to_report() -> Arc<WindowUDF> {
    let signature = Signature::exact(vec![DataType::Float64], Volatility::Immutable);
    Arc::new(WindowUDF::from(Share { signature }))
}

impl WindowUDFImpl for Share {
    fn name(&self) -> &str {
        "ratio_to_report"
    }

    bowshot_api::getters!(signature: &Signature);

    fn partition_evaluator(&self, _given: PartitionEvaluatorArgs<'_>) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(Shares))
    }

    fn field(&self, given: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(given.name(), DataType::Float64, true)))
    }

    fn limit_effect(&self, _given: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        // Every row counts for the sum.
        LimitEffect::Unknown
    }
}

#[derive(Debug)]
struct Shares;

impl PartitionEvaluator for Shares {
    fn evaluate_all(&mut self, values: &[ArrayRef], _rows: usize) -> Result<ArrayRef> {
        let Some(values) = values.first().and_then(|values| values.as_primitive_opt::<Float64Type>()) else {
            return internal_err!("ratio_to_report takes numbers");
        };
        let total = sum(values).filter(|total| *total != 0.0);
        let shares: Float64Array = values.iter().map(|value| Some(value? / total?)).collect();
        Ok(Arc::new(shares))
    }
}
