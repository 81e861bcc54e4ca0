//! Our operators, and scans of Parquet files: one byte for the kind, then what it has beside its inputs.

use super::functions::Functions;
use super::{expressions, stays};
use bowshot_files::plan_codec::{self, PortableFile, PortableFiles, PortableScan};
use bowshot_optimizer::cooperative::batch_limits::ShortBatches;
use bowshot_optimizer::{DropOrdering, Dropped};
use datafusion::common::{Result, internal_datafusion_err, internal_err};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, WindowUDF};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr_common::physical_expr::proto_decode::PhysicalExprDecodeCtx;
use datafusion::physical_expr_common::physical_expr::proto_encode::PhysicalExprEncodeCtx;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{
    PhysicalExtensionCodec, PhysicalPlanDecodeContext, PhysicalProtoConverterExtension,
};
use datafusion_proto::protobuf::{PhysicalExprNode, PhysicalPlanNode};
use prost::Message;
use std::sync::Arc;

const OTHER: u8 = 0;
const SCAN: u8 = 1;
const SHORT_BATCHES: u8 = 2;
const FORGETFUL: u8 = 3;

const FORGOTTEN: [Dropped; 3] = [Dropped::All, Dropped::Order, Dropped::Constants];

/// What writes and reads one plan.
#[derive(Debug)]
pub(super) struct Codec {
    pub(super) files: Arc<PortableFiles>,
    pub(super) others: Arc<dyn PhysicalExtensionCodec>,
    pub(super) functions: Functions,
}

/// A scan of Parquet files.
#[derive(Clone, PartialEq, Message)]
struct ScanMessage {
    /// DataFusion's own scan.
    #[prost(message, optional, tag = "1")]
    plan: Option<PhysicalPlanNode>,
    /// What its rows have to fulfil.
    #[prost(message, optional, tag = "2")]
    condition: Option<PhysicalExprNode>,
    /// The files, as JSON.
    #[prost(bytes = "vec", tag = "3")]
    files: Vec<u8>,
    /// Whether the files are read in their order.
    #[prost(bool, tag = "4")]
    in_order: bool,
}

impl Codec {
    fn write_scan(
        &self,
        scan: PortableScan,
        converter: &dyn PhysicalProtoConverterExtension,
        into: &mut Vec<u8>,
    ) -> Result<()> {
        let condition = scan.condition.map(|condition| converter.physical_expr_to_proto(&condition, self));
        let message = ScanMessage {
            plan: Some(converter.execution_plan_to_proto(&scan.plan, self)?),
            condition: condition.transpose()?,
            files: serde_json::to_vec(&scan.files)
                .map_err(|error| internal_datafusion_err!("paths cannot be written down: {error}"))?,
            in_order: scan.in_order,
        };
        into.push(SCAN);
        message
            .encode(into)
            .map_err(|error| internal_datafusion_err!("a scan cannot be written down: {error}"))
    }

    fn read_scan(
        &self,
        bytes: &[u8],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let message = ScanMessage::decode(bytes)
            .map_err(|error| internal_datafusion_err!("a scan cannot be read: {error}"))?;
        let files: Vec<PortableFile> = serde_json::from_slice(&message.files)
            .map_err(|error| internal_datafusion_err!("the files of a scan cannot be read: {error}"))?;
        let Some(plan) = message.plan else { return internal_err!("a scan without a plan") };
        let reading = PhysicalPlanDecodeContext::new(context, self);
        let plan = converter.proto_to_execution_plan(&plan, &reading)?;
        let schema = plan_codec::table_schema(plan.as_ref())?;
        let condition = message
            .condition
            .map(|condition| converter.proto_to_physical_expr(&condition, &schema, &reading))
            .transpose()?;
        self.files.put_together(PortableScan { plan, condition, files, in_order: message.in_order })
    }
}

impl PhysicalExtensionCodec for Codec {
    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        proto_converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        if let Some(scan) = plan_codec::taken_apart(node.as_ref())? {
            return self.write_scan(scan, proto_converter, buf);
        }
        if let Some(rows) = ShortBatches::rows(node.as_ref()) {
            buf.push(SHORT_BATCHES);
            buf.extend((rows as u64).to_le_bytes());
            return Ok(());
        }
        if let Some(forgotten) = DropOrdering::forgotten(node.as_ref()) {
            let place = FORGOTTEN.iter().position(|known| *known == forgotten);
            buf.extend([FORGETFUL, place.and_then(|place| u8::try_from(place).ok()).unwrap_or(u8::MAX)]);
            return Ok(());
        }
        let start = buf.len();
        buf.push(OTHER);
        let name = node.name().to_owned();
        self.others.try_encode(node, buf, proto_converter).map_err(|_| {
            buf.truncate(start);
            stays(format!("`{name}`"))
        })
    }

    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        ctx: &TaskContext,
        proto_converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (buf, inputs) {
            ([OTHER, rest @ ..], inputs) => self.others.try_decode(rest, inputs, ctx, proto_converter),
            ([SCAN, rest @ ..], []) => self.read_scan(rest, ctx, proto_converter),
            ([SHORT_BATCHES, rest @ ..], [input]) => {
                let rows = <[u8; 8]>::try_from(rest).map(u64::from_le_bytes);
                match rows.ok().and_then(|rows| usize::try_from(rows).ok()).filter(|rows| *rows > 0) {
                    Some(rows) => Ok(ShortBatches::of(Arc::clone(input), rows)),
                    None => internal_err!("batches have rows"),
                }
            }
            ([FORGETFUL, place], [input]) => match FORGOTTEN.get(usize::from(*place)) {
                Some(forgotten) => Ok(DropOrdering::of(Arc::clone(input), *forgotten)),
                None => internal_err!("nobody knows what is forgotten"),
            },
            _ => internal_err!("these bytes are no operator of ours"),
        }
    }

    fn try_encode_udf(&self, node: &ScalarUDF, buf: &mut Vec<u8>) -> Result<()> {
        self.functions.write_scalar(node, buf)
    }

    fn try_decode_udf(&self, name: &str, buf: &[u8]) -> Result<Arc<ScalarUDF>> {
        Functions::read_scalar(name, buf)
    }

    fn try_encode_udaf(&self, node: &AggregateUDF, buf: &mut Vec<u8>) -> Result<()> {
        self.functions.write_aggregate(node, buf)
    }

    fn try_decode_udaf(&self, name: &str, buf: &[u8]) -> Result<Arc<AggregateUDF>> {
        Functions::read_aggregate(name, buf)
    }

    fn try_encode_udwf(&self, node: &WindowUDF, buf: &mut Vec<u8>) -> Result<()> {
        self.functions.write_window(node, buf)
    }

    fn try_decode_udwf(&self, name: &str, buf: &[u8]) -> Result<Arc<WindowUDF>> {
        Functions::read_window(name, buf)
    }

    fn try_encode_higher_order_function(&self, node: &HigherOrderUDF, _buf: &mut Vec<u8>) -> Result<()> {
        self.functions.check_higher_order(node)
    }

    fn try_encode_expr(
        &self,
        node: &Arc<dyn PhysicalExpr>,
        buf: &mut Vec<u8>,
        _ctx: &PhysicalExprEncodeCtx<'_>,
    ) -> Result<()> {
        expressions::write(node, buf)
    }

    fn try_decode_expr(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn PhysicalExpr>],
        _ctx: &PhysicalExprDecodeCtx<'_>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        expressions::read(buf, inputs)
    }
}
