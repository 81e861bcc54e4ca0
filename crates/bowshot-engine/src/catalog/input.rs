//! The rows that a client sends along with its statement, as the table that the statement reads.

use crate::execute::input_scan::{Guess, InputScan};
use async_trait::async_trait;
use bowshot_policy::snapshot::input::StreamedTable;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, Result};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableSource, TableType};
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// The table of one statement.
#[derive(Debug)]
pub(crate) struct InputTable {
    table: Arc<StreamedTable>,
    guess: Guess,
}

impl InputTable {
    pub(crate) fn provider(table: &Arc<StreamedTable>, guess: Guess) -> Arc<dyn TableProvider> {
        Arc::new(Self { table: Arc::clone(table), guess })
    }
}

/// Whether a plan that has this source reads the rows of the client.
pub(crate) fn is_input(source: &Arc<dyn TableSource>) -> bool {
    source_as_provider(source).is_ok_and(|table| table.downcast_ref::<InputTable>().is_some())
}

#[async_trait]
impl TableProvider for InputTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.table.schema())
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = self.table.schema();
        let all = || (0..schema.fields().len()).collect();
        let columns = projection.cloned().unwrap_or_else(all);
        let condition = match conjunction(filters.iter().cloned()) {
            Some(condition) => {
                let schema = DFSchema::try_from(schema.as_ref().clone())?;
                Some(state.create_physical_expr(condition, &schema)?)
            }
            None => None,
        };
        Ok(Arc::new(InputScan::new(Arc::clone(&self.table), columns, condition, self.guess)?))
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        filters
            .iter()
            .map(|filter| {
                Ok(if is_of_one_row(filter)? {
                    TableProviderFilterPushDown::Exact
                } else {
                    TableProviderFilterPushDown::Unsupported
                })
            })
            .collect()
    }
}

/// Whether a condition asks nothing but a row of the table, and the same each time.
fn is_of_one_row(condition: &Expr) -> Result<bool> {
    let other = condition.exists(|part| {
        let asks_more = matches!(
            part,
            Expr::ScalarSubquery(_)
                | Expr::InSubquery(_)
                | Expr::Exists(_)
                | Expr::SetComparison(_)
                | Expr::OuterReferenceColumn(..)
        );
        Ok(asks_more || part.is_volatile_node())
    })?;
    Ok(!other)
}
