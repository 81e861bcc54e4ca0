//! A state of a table as DataFusion sees it: the rows in files, then those in memory.

use super::Table;
use super::file_scan::FileScan;
use super::scan::TableSource;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::datasource::TableType;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::union::UnionExec;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct TableRows {
    table: Arc<Table>,
    /// The table's columns, and after them the address if it has been asked for.
    schema: SchemaRef,
}

impl TableRows {
    pub(super) fn new(table: Arc<Table>) -> Self {
        Self { schema: table.operator_schema(), table }
    }

    pub(super) fn addressed(table: Arc<Table>, column: &str) -> Self {
        let address = Arc::new(Field::new(column, DataType::UInt64, false));
        let schema = table.operator_schema();
        let fields: Vec<_> = schema.fields().iter().cloned().chain([address]).collect();
        Self { schema: Arc::new(Schema::new(fields)), table }
    }

    pub(super) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The table, unless addresses of rows are asked for too.
    pub(super) fn whole(&self) -> Option<&Arc<Table>> {
        (self.schema.fields().len() == self.table.schema().fields().len()).then_some(&self.table)
    }

    fn in_memory(
        &self,
        state: &dyn Session,
        projection: &[usize],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let source = TableSource::new(&self.table, &self.schema, limit, state.config())?;
        Ok(DataSourceExec::from_data_source(source.with_projection(projection.to_vec())?))
    }

    /// Reads the footers that nobody has read yet, where that may mean to wait for a store: on threads that may wait.
    async fn look_at_files(&self) -> Result<()> {
        if !self.table.waits_for_files() {
            return Ok(());
        }
        let table = Arc::clone(&self.table);
        let looked = tokio::task::spawn_blocking(move || table.look_at_files()).await;
        let looked = looked.map_err(|error| DataFusionError::External(Box::new(error)))?;
        looked.map_err(|error| DataFusionError::External(Box::new(bowshot_api::Error::from(error))))
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
        let projection = projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        self.look_at_files().await?;
        let in_files = match self.table.disk() {
            Some(disk) => {
                let (table, schema) = (self.table.as_ref(), &self.schema);
                FileScan { table, schema, disk, state }.plan(&projection, limit)?
            }
            None => None,
        };
        match in_files {
            None => self.in_memory(state, &projection, limit),
            Some(files) if !self.table.shared_segments().iter().any(|segment| segment.memory().is_some()) => {
                Ok(files)
            }
            Some(files) => UnionExec::try_new(vec![files, self.in_memory(state, &projection, limit)?]),
        }
    }

    /// Files are read by the conditions, and give more rows than fulfil them.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = if self.table.disk().is_some() {
            TableProviderFilterPushDown::Inexact
        } else {
            TableProviderFilterPushDown::Unsupported
        };
        Ok(vec![support; filters.len()])
    }
}
