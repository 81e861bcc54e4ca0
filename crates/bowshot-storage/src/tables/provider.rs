//! A state of a table as DataFusion sees it.

use super::Table;
use super::scan::TableSource;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::datasource::TableType;
use datafusion::datasource::source::DataSourceExec;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// The rows of a table, with their addresses or without.
#[derive(Debug)]
pub(super) struct TableRows {
    table: Arc<Table>,
    /// The table's columns, and after them the address if it has been asked for.
    schema: SchemaRef,
}

impl TableRows {
    pub(super) fn new(table: Arc<Table>) -> Self {
        Self { schema: table.schema(), table }
    }

    pub(super) fn addressed(table: Arc<Table>, column: &str) -> Self {
        let address = Arc::new(Field::new(column, DataType::UInt64, false));
        let fields: Vec<_> = table.schema().fields().iter().cloned().chain([address]).collect();
        Self { schema: Arc::new(Schema::new(fields)), table }
    }
}

#[async_trait]
impl TableProvider for TableRows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let source = TableSource::new(&self.table, &self.schema, limit, state.config())?;
        let source = match projection {
            Some(projection) => source.with_projection(projection.clone())?,
            None => source,
        };
        Ok(DataSourceExec::from_data_source(source))
    }
}
