//! The rows of a statement that changes tables, on their way from its query, and what stands for columns that have none.

use crate::catalog::defaults::Computed;
use crate::catalog::identity;
use crate::catalog::lazy_state::LazyState;
use crate::error::classify;
use crate::execute::file_views::{self, FileViews};
use crate::write::apply::Absent;
use bowshot_api::{Origin, Result};
use bowshot_optimizer::cooperative;
use bowshot_storage::tables::{Definition, TableStore};
use bowshot_types::storage_type;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use std::sync::Arc;

/// Rows of a batch on its way into a table: scans of the table pay for each.
pub(crate) const BATCH_ROWS: usize = 64 << 10;

/// The rows of a statement's query, and what they may be views of.
pub(crate) type Rows<S> = (S, Option<Arc<dyn Origin>>);

/// To be called when rows have been written, before that counts.
pub(crate) fn checked(origin: Option<&Arc<dyn Origin>>) -> Result<()> {
    origin.map_or(Ok(()), |origin| origin.check())
}

/// Runs the query of such a statement.
///
/// # Errors
/// From planning it.
pub(crate) async fn stream(
    state: &SessionState,
    plan: &LogicalPlan,
) -> Result<Rows<SendableRecordBatchStream>> {
    started(state, physical(state, plan).await?)
}

/// Runs the plan of such a query.
///
/// # Errors
/// When it cannot begin.
pub(crate) fn started(
    state: &SessionState,
    physical: Arc<dyn ExecutionPlan>,
) -> Result<Rows<SendableRecordBatchStream>> {
    let config = state.config().clone().with_batch_size(BATCH_ROWS);
    let context = TaskContext::from(state).with_session_config(config);
    let views = FileViews::of(physical.as_ref());
    let batches = execute_stream(physical, Arc::new(context)).map_err(classify)?;
    Ok((file_views::watched(batches, views.as_ref()), file_views::origin(views)))
}

/// The plan of such a query.
///
/// # Errors
/// From planning it.
pub(crate) async fn physical(state: &SessionState, plan: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
    let physical =
        bowshot_query_task::run_planning(async { state.create_physical_plan(plan).await.map_err(classify) })
            .await?;
    cooperative::ensure(physical).map_err(classify)
}

/// The defaults of all columns, computed once where they do not differ from row to row.
pub(crate) async fn absent_values(
    definition: &Definition,
    state: &LazyState,
    store: &Arc<TableStore>,
) -> Result<Vec<Absent>> {
    let mut values = Vec::with_capacity(definition.columns.len());
    for column in &definition.columns {
        let identity = definition.identity(column.field.name());
        values.push(match (&column.default, identity) {
            (_, Some(identity)) => {
                Absent::Numbered(identity::numbering(identity, definition.is_durable()), Arc::clone(store))
            }
            (Some(default), None) => {
                let default = Computed::plan(default, &storage_type::logical(&column.field), state)?;
                if default.is_volatile { Absent::Each(default) } else { Absent::Value(default.value()?) }
            }
            (None, None) => Absent::Null,
        });
    }
    Ok(values)
}
