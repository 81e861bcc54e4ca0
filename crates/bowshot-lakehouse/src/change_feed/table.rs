//! The table that DataFusion sees of the changes: for files that are read alike one scan, and all of them together.

use super::feed::{Feed, Part};
use super::relabel::Relabelled;
use crate::table::LakeFile;
use arrow::datatypes::{FieldRef, SchemaRef};
use async_trait::async_trait;
use bowshot_formats::data_file::Lease;
use bowshot_formats::decoded_columns::ColumnScan;
use bowshot_formats::parquet::source::{NamedSource, parquet_source};
use bowshot_formats::snapshot_store::SnapshotStore;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, project_schema};
use datafusion::datasource::TableType;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, FileSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use datafusion_datasource::compute_all_files_statistics;
use std::sync::Arc;

/// The changes of a Delta table as a table of DataFusion. It has no version: nothing that is computed of it is kept.
#[derive(Debug)]
pub(crate) struct ChangesTable {
    pub(crate) feed: Arc<Feed>,
    pub(crate) store: Arc<SnapshotStore>,
}

#[async_trait]
impl TableProvider for ChangesTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.feed.schema)
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
        let schema = project_schema(&self.feed.schema, projection)?;
        let wanted = projection.cloned().unwrap_or_else(|| (0..self.feed.schema.fields().len()).collect());
        let lease = self.feed.lease();
        let of_part = |part: &Part| {
            let files = self.files(part, &wanted, (state, Arc::clone(&lease), limit))?;
            under_table_names(files, &schema)
        };
        let plans = self.feed.parts.iter().map(of_part).collect::<Result<Vec<_>>>()?;
        match plans.len() {
            0 => Ok(Arc::new(EmptyExec::new(schema))),
            _ => UnionExec::try_new(plans),
        }
    }

    /// Conditions are evaluated above the scan, and reach it as physical ones, which rule out files, row groups and pages.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}

impl ChangesTable {
    fn files(
        &self,
        part: &Part,
        wanted: &[usize],
        (state, lease, limit): (&dyn Session, Arc<Lease>, Option<usize>),
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = TableSchema::builder(Arc::clone(&part.file_schema))
            .with_table_partition_cols(part.partition_fields.clone())
            .build();
        let whole = Arc::clone(schema.table_schema());
        let columns = ColumnScan::of_found(self.store.columns());
        let parquet = parquet_source(&self.store, state, schema);
        let source: Arc<dyn FileSource> = Arc::new(NamedSource::new(parquet, lease, columns));
        let files = FileGroup::new(part.files.iter().map(LakeFile::planned).collect());
        let groups = files.split_files(state.config().target_partitions());
        let (groups, statistics) = compute_all_files_statistics(groups, whole, true, false)?;
        let projection = wanted.iter().filter_map(|place| part.places.get(*place).copied()).collect();
        let config = FileScanConfigBuilder::new(self.store.url().clone(), source)
            .with_file_groups(groups)
            .with_statistics(statistics)
            .with_projection_indices(Some(projection))?
            .with_limit(limit);
        Ok(DataSourceExec::from_data_source(config.build()))
    }
}

impl Feed {
    /// Keeps the files' handles open until the last holder is gone.
    fn lease(&self) -> Arc<Lease> {
        let files = self.parts.iter().flat_map(|part| &part.files);
        Lease::shared(&self.lease, || files.map(|file| Arc::clone(&file.file.data)).collect())
    }
}

fn under_table_names(files: Arc<dyn ExecutionPlan>, schema: &SchemaRef) -> Result<Arc<dyn ExecutionPlan>> {
    let there = files.schema();
    let pairs = || there.fields().iter().zip(schema.fields());
    if pairs().all(|(there, field)| there.name() == field.name() && there.data_type() == field.data_type()) {
        return Ok(files);
    }
    let of_column = |(place, (there, field)): (usize, (&FieldRef, &FieldRef))| {
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(there.name(), place));
        let expr: Arc<dyn PhysicalExpr> = match there.data_type() == field.data_type() {
            true => column,
            false => Arc::new(Relabelled::new(column, field.data_type())),
        };
        ProjectionExpr { expr, alias: field.name().clone() }
    };
    let expressions: Vec<ProjectionExpr> = pairs().enumerate().map(of_column).collect();
    Ok(Arc::new(ProjectionExec::try_new(expressions, files)?))
}
