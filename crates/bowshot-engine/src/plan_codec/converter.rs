//! How expressions are encoded: by themselves, but values of subqueries as the constants that they are by then.

use super::stays;
use datafusion::arrow::datatypes::Schema;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_expr::scalar_subquery::ScalarSubqueryExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::from_proto::parse_physical_expr_with_converter;
use datafusion_proto::physical_plan::to_proto::serialize_physical_expr_with_converter;
use datafusion_proto::physical_plan::{
    PhysicalExtensionCodec, PhysicalPlanDecodeContext, PhysicalPlanNodeExt, PhysicalProtoConverterExtension,
};
use datafusion_proto::protobuf::{PhysicalExprNode, PhysicalPlanNode};
use std::sync::Arc;

/// What is known of the values of subqueries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    /// The plan is only looked at.
    NotYet,
    /// They are there.
    Known,
}

/// Encodes expressions; values of subqueries become constants.
pub(super) struct Converter(pub(super) Values);

impl Converter {
    fn value(&self, of: &ScalarSubqueryExpr) -> Result<ScalarValue> {
        let schema = Schema::empty();
        if self.0 == Values::NotYet {
            return ScalarValue::try_from(&PhysicalExpr::data_type(of, &schema)?);
        }
        match of.evaluate(&RecordBatch::new_empty(Arc::new(schema)))? {
            ColumnarValue::Scalar(value) => Ok(value),
            ColumnarValue::Array(_) => Err(stays("a column of a subquery")),
        }
    }
}

impl PhysicalProtoConverterExtension for Converter {
    fn proto_to_execution_plan(
        &self,
        proto: &PhysicalPlanNode,
        ctx: &PhysicalPlanDecodeContext<'_>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        proto.try_into_physical_plan_with_context(ctx, self)
    }

    fn execution_plan_to_proto(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        codec: &dyn PhysicalExtensionCodec,
    ) -> Result<PhysicalPlanNode> {
        PhysicalPlanNode::try_from_physical_plan_with_converter(Arc::clone(plan), codec, self)
    }

    fn proto_to_physical_expr(
        &self,
        proto: &PhysicalExprNode,
        input_schema: &Schema,
        ctx: &PhysicalPlanDecodeContext<'_>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        parse_physical_expr_with_converter(proto, input_schema, ctx, self)
    }

    fn physical_expr_to_proto(
        &self,
        expr: &Arc<dyn PhysicalExpr>,
        codec: &dyn PhysicalExtensionCodec,
    ) -> Result<PhysicalExprNode> {
        let Some(subquery) = expr.downcast_ref::<ScalarSubqueryExpr>() else {
            return serialize_physical_expr_with_converter(expr, codec, self);
        };
        let value: Arc<dyn PhysicalExpr> = Arc::new(Literal::new(self.value(subquery)?));
        serialize_physical_expr_with_converter(&value, codec, self)
    }
}
