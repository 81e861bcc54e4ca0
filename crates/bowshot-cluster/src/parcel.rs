//! The plan of a task on its way: bytes of ours in a message of datafusion-distributed, which would write only what DataFusion
//! itself knows.

use bowshot_engine::portable::Portable;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
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
        portable: &Portable,
        context: &TaskContext,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (bytes, properties) = (portable.encode(plan, context)?, Arc::clone(plan.properties()));
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
pub(crate) struct ParcelCodec(pub(crate) Portable);

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
        self.0.decode(buf, ctx)
    }
}
