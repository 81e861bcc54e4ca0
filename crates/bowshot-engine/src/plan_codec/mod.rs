//! Plans as bytes from which another node of the same build makes the same plan: DataFusion's messages with our nodes, expressions
//! and functions in them. Nothing travels that would mean something else there: a function goes by name only if the session has
//! the very same one under it; rows in memory, rights to be checked and unknown nodes stay. The error says what stays, and the
//! plan runs where it was made.

mod converter;
mod expressions;
mod functions;
mod nodes;

use crate::error::classify;
use bowshot_api::Error;
use bowshot_storage::portable::{PortableFiles, is_portable};
use converter::{Converter, Values};
use datafusion::common::exec_err;
use datafusion::common::tree_node::TreeNode;
use datafusion::datasource::sink::DataSinkExec;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion_proto::bytes::{
    physical_plan_from_bytes_with_proto_converter, physical_plan_to_bytes_with_proto_converter,
};
use datafusion_proto::physical_plan::{DeduplicatingProtoConverter, PhysicalExtensionCodec};
use functions::Functions;
use std::sync::Arc;

/// What one process writes and reads plans with.
#[derive(Debug, Clone)]
pub struct PlanCodec {
    files: Arc<PortableFiles>,
    others: Arc<dyn PhysicalExtensionCodec>,
}

impl PlanCodec {
    /// `files` are those that scans of other nodes read here; `others` writes and reads the nodes of plans that the engine does
    /// not know.
    pub fn new(files: PortableFiles, others: Arc<dyn PhysicalExtensionCodec>) -> Self {
        Self { files: Arc::new(files), others }
    }

    /// Whether a plan can travel and is one where it arrives, before values of its subqueries are known.
    ///
    /// # Errors
    /// What keeps it here.
    pub fn check(&self, plan: &Arc<dyn ExecutionPlan>, context: &TaskContext) -> Result<(), Error> {
        let bytes = self.written(plan, context, Values::NotYet).map_err(why)?;
        self.decode(&bytes, context).map(drop).map_err(why)
    }

    /// The plan as bytes. Subqueries of which it takes single values have run.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn encode(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        context: &TaskContext,
    ) -> datafusion::common::Result<Vec<u8>> {
        self.written(plan, context, Values::Known)
    }

    /// The plan of such bytes. Everything but bytes of [`Self::encode`] is refused.
    ///
    /// # Errors
    /// When the bytes are not those of a plan, a function is not known, or a file is another one here.
    pub fn decode(
        &self,
        bytes: &[u8],
        context: &TaskContext,
    ) -> datafusion::common::Result<Arc<dyn ExecutionPlan>> {
        let codec = self.codec(Functions::of(context));
        let converter = DeduplicatingProtoConverter::default();
        let plan = physical_plan_from_bytes_with_proto_converter(bytes, context, &codec, &converter)?;
        match plan.exists(|node| Ok(!may_come(node.as_ref())))? {
            true => exec_err!("a plan of another node has a part that none of its kind has"),
            false => Ok(plan),
        }
    }

    fn written(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        context: &TaskContext,
        values: Values,
    ) -> datafusion::common::Result<Vec<u8>> {
        let codec = self.codec(Functions::of(context));
        let bytes =
            physical_plan_to_bytes_with_proto_converter(Arc::clone(plan), &codec, &Converter(values))?;
        Ok(bytes.to_vec())
    }

    fn codec(&self, functions: Functions) -> nodes::Codec {
        nodes::Codec { files: Arc::clone(&self.files), others: Arc::clone(&self.others), functions }
    }
}

/// What [`stays`] has said, if it has: DataFusion makes a text of it on the way, with the whole plan behind.
fn why(error: DataFusionError) -> Error {
    let said = error.to_string();
    let said = said.split_once(STAYS).map(|(before, _)| {
        let start = before.rfind(EXTERNAL).map_or(0, |start| start + EXTERNAL.len());
        Error::unsupported(format!("{}{STAYS}", &before[start..]))
    });
    said.unwrap_or_else(|| classify(error))
}

const STAYS: &str = " does not leave the node of its session";
const EXTERNAL: &str = "External error: ";

/// Whether an operator may come from another node: DataFusion's messages have sinks, and scans of any file, too.
fn may_come(node: &dyn ExecutionPlan) -> bool {
    let from_database = || node.name().starts_with("Network");
    let reads_nothing = || node.is::<EmptyExec>() || node.is::<PlaceholderRowExec>();
    let leaf = node.children().is_empty();
    !node.is::<DataSinkExec>() && (!leaf || is_portable(node) || reads_nothing() || from_database())
}

/// What does not travel.
fn stays(what: impl std::fmt::Display) -> DataFusionError {
    let error = Error::unsupported(format!("{what}{STAYS}"));
    DataFusionError::External(Box::new(error))
}
