//! The reference: plain DataFusion in this process, configured as the corpus' own runner configures it.

use super::driven;
use super::pair::{Failure, Observed};
use datafusion::execution::context::SessionContext;
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionConfig;
use datafusion_sqllogictest::{DFOutput, convert_batches, convert_schema_to_types};
use sqllogictest::DBOutput;
use std::sync::Arc;

/// Partitions of every plan: EXPLAIN texts in the corpus depend on it.
const TARGET_PARTITIONS: usize = 4;

/// The configuration of a session, for both sides.
pub fn session_config() -> SessionConfig {
    SessionConfig::new().with_target_partitions(TARGET_PARTITIONS)
}

/// One session of plain DataFusion.
pub struct Local {
    context: SessionContext,
    observed: Observed,
}

impl Local {
    /// A fresh session whose outcomes go to `observed`.
    pub fn new(observed: Observed) -> Self {
        Self { context: SessionContext::new_with_config(session_config()), observed }
    }

    async fn query(&self, sql: &str) -> Result<DFOutput, Failure> {
        let frame = self.context.sql(sql).await?;
        let task = Arc::new(frame.task_ctx());
        let plan = frame.create_physical_plan().await?;
        let schema = plan.schema();
        let types = convert_schema_to_types(schema.fields());
        let batches = collect(plan, task).await?;
        let rows = convert_batches(&schema, batches, false)?;
        if rows.is_empty() && types.is_empty() {
            return Ok(DBOutput::StatementComplete(0));
        }
        Ok(DBOutput::Rows { types, rows })
    }
}

driven!(Local);
