//! The reference: plain DataFusion in this process, configured as the corpus' own runner configures it.

use super::pair::{Failure, Observed};
use async_trait::async_trait;
use datafusion::execution::context::SessionContext;
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionConfig;
use datafusion_sqllogictest::{DFColumnType, DFOutput, convert_batches, convert_schema_to_types};
use sqllogictest::{AsyncDB, DBOutput};
use std::sync::Arc;
use std::time::Duration;

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

#[async_trait]
impl AsyncDB for Local {
    type Error = Failure;
    type ColumnType = DFColumnType;

    async fn run(&mut self, sql: &str) -> Result<DFOutput, Failure> {
        let outcome = Box::pin(self.query(sql)).await;
        self.observed.put(&outcome);
        outcome
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        "DataFusion"
    }

    async fn sleep(duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}
