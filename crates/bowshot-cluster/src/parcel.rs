//! The plan of a task on its way: bytes of ours in a message of datafusion-distributed, which would write only what DataFusion
//! itself knows. Where the rows are to stay there, what is needed for that goes before it.

use crate::sink::EndpointSink;
use bowshot_engine::plan_codec::PlanCodec;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_datafusion_err, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use std::fmt;
use std::sync::Arc;

/// A plan as bytes, which stands for it until it arrives.
#[derive(Debug)]
pub(crate) struct Parcel {
    bytes: Vec<u8>,
    properties: Arc<PlanProperties>,
}

impl Parcel {
    /// The plan as bytes. `context` has the functions that there are where it arrives.
    pub(crate) fn of(
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

impl DisplayAs for Parcel {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ExecutionPlan for Parcel {
    fn name(&self) -> &'static str {
        "Parcel"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

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
        internal_err!("a plan on its way does not run")
    }
}

/// Writes and reads [`Parcel`]s.
#[derive(Debug)]
pub(crate) struct ParcelCodec(pub(crate) PlanCodec);

impl PhysicalExtensionCodec for ParcelCodec {
    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        _proto_converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        match node.downcast_ref::<Parcel>() {
            Some(parcel) => {
                buf.extend_from_slice(&parcel.bytes);
                Ok(())
            }
            None => internal_err!("`{}` is not packed", node.name()),
        }
    }

    fn try_decode(
        &self,
        buf: &[u8],
        _inputs: &[Arc<dyn ExecutionPlan>],
        ctx: &TaskContext,
        _proto_converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let short = || internal_datafusion_err!("a plan of another node is cut off");
        let (length, rest) = buf.split_first_chunk::<4>().ok_or_else(short)?;
        let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| short())?;
        let (sink, plan) = rest.split_at_checked(length).ok_or_else(short)?;
        let plan = self.0.decode(plan, ctx)?;
        match sink.is_empty() {
            true => Ok(plan),
            false => Ok(Arc::new(EndpointSink::from_bytes(sink, plan)?)),
        }
    }
}
