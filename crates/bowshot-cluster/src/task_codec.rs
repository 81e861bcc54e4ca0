//! The plan of a task as bytes in a message of datafusion-distributed, which could encode only plans of DataFusion itself. If its rows stay on
//! the node, the endpoint precedes the plan.

use crate::endpoint_sink::EndpointSink;
use bowshot_engine::plan_codec::PlanCodec;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_datafusion_err, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use std::fmt;
use std::sync::Arc;

/// A plan as bytes until it is decoded.
#[derive(Debug)]
pub(crate) struct EncodedTask {
    bytes: Vec<u8>,
    properties: Arc<PlanProperties>,
}

impl EncodedTask {
    /// Encodes a plan. `context` has the functions of the receiving node.
    pub(crate) fn encode(
        plan: &Arc<dyn ExecutionPlan>,
        portable: &PlanCodec,
        context: &TaskContext,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let properties = Arc::clone(plan.properties());
        let (sink, plan) = match plan.downcast_ref::<EndpointSink>() {
            Some(sink) => (sink.to_bytes()?, sink.input()),
            None => (Vec::new(), plan),
        };
        let length = u32::try_from(sink.len())
            .map_err(|_| internal_datafusion_err!("the description of an endpoint is too long"))?;
        let bytes = [&length.to_le_bytes()[..], &sink, &portable.encode(plan, context)?].concat();
        Ok(Arc::new(Self { bytes, properties }))
    }
}

impl DisplayAs for EncodedTask {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ExecutionPlan for EncodedTask {
    fn name(&self) -> &'static str {
        "EncodedTask"
    }

    bowshot_api::getters!(properties: &Arc<PlanProperties>);

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn with_new_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, _partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        internal_err!("an encoded task cannot run")
    }
}

/// Encodes and decodes [`EncodedTask`]s.
#[derive(Debug)]
pub(crate) struct TaskCodec(pub(crate) PlanCodec);

impl PhysicalExtensionCodec for TaskCodec {
    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        _proto_converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        match node.downcast_ref::<EncodedTask>() {
            Some(task) => {
                buf.extend_from_slice(&task.bytes);
                Ok(())
            }
            None => internal_err!("cannot encode `{}`", node.name()),
        }
    }

    fn try_decode(
        &self,
        buf: &[u8],
        _inputs: &[Arc<dyn ExecutionPlan>],
        ctx: &TaskContext,
        _proto_converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let short = || internal_datafusion_err!("a plan of another node is truncated");
        let (length, rest) = buf.split_first_chunk::<4>().ok_or_else(short)?;
        let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| short())?;
        let (sink, plan) = rest.split_at_checked(length).ok_or_else(short)?;
        let plan = self.0.decode(plan, ctx)?;
        if sink.is_empty() { Ok(plan) } else { Ok(Arc::new(EndpointSink::from_bytes(sink, plan)?)) }
    }
}
