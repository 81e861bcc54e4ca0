//! Tables over other tables, such as one with access rules or with defaults. What is declared of a column that passes through
//! unchanged is looked up in the table below.

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, Statistics};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// A table whose columns, or some of them, are those of another table.
pub trait TableLayer: TableProvider {
    /// The table that a column comes from unchanged; `None` for a column that this table computes.
    fn below(&self, column: &str) -> Option<&dyn TableProvider>;
}

/// A [`TableLayer`] as a table of a plan. DataFusion finds the concrete type of a table, not a trait of it.
#[derive(Debug)]
pub struct LayeredTable(Arc<dyn TableLayer>);

impl LayeredTable {
    /// The layer as a table.
    pub fn wrap(layer: impl TableLayer) -> Arc<dyn TableProvider> {
        Arc::new(Self(Arc::new(layer)))
    }

    /// The outermost layer of a table, if it is of this type.
    pub fn layer<T: TableLayer>(table: &dyn TableProvider) -> Option<&T> {
        let layer: &dyn TableProvider = &*table.downcast_ref::<Self>()?.0;
        layer.downcast_ref()
    }
}

/// The table below all layers that a column comes from unchanged; `None` for a column that a layer computes.
pub(crate) fn source_of<'t>(table: &'t dyn TableProvider, column: &str) -> Option<&'t dyn TableProvider> {
    match table.downcast_ref::<LayeredTable>() {
        Some(layered) => source_of(layered.0.below(column)?, column),
        None => Some(table),
    }
}

#[async_trait]
impl TableProvider for LayeredTable {
    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.scan(state, projection, filters, limit).await
    }

    bowshot_api::delegate! { 0:
        fn schema(&self) -> SchemaRef;
        fn table_type(&self) -> TableType;
        fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>>;
        fn statistics(&self) -> Option<Statistics>;
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        self.0.get_column_default(column)
    }
}
