//! The table that DataFusion sees of a Delta table that others write: the library's, without the bounds of floating-point
//! numbers, which leave NaN out in its log as they do in the files ([`crate::footers`]).

use crate::delta_vectors::Checked;
use crate::footers::ReaderFactory;
use crate::version::{TableVersion, Versioned};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, Statistics};
use datafusion::datasource::TableType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileSource, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// A Delta table that others write, as its log had it when it was looked up.
#[derive(Debug)]
pub(crate) struct DeltaFolderTable {
    pub(crate) name: String,
    pub(crate) provider: Arc<dyn TableProvider>,
    /// Whose vectors the library may read.
    pub(crate) vectors: Arc<Checked>,
    /// See [`Versioned::settled_version`].
    pub(crate) version: Option<TableVersion>,
}

impl Versioned for DeltaFolderTable {
    fn name(&self) -> &str {
        &self.name
    }

    fn settled_version(&self) -> Option<TableVersion> {
        self.version
    }

    /// Always: what the log says of a version is never changed, nor are the files that it names.
    fn is_pinned(&self) -> bool {
        true
    }
}

#[async_trait]
impl TableProvider for DeltaFolderTable {
    fn schema(&self) -> SchemaRef {
        self.provider.schema()
    }

    fn table_type(&self) -> TableType {
        self.provider.table_type()
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.vectors.still()?;
        let plan = self.provider.scan(state, projection, filters, limit).await?;
        plan.transform_up(without_bounds).data()
    }

    /// Filters on floating-point columns stay above the scan: the log would rule out files by them. No filter is left to the
    /// scan alone: the library says that of those on partition columns, and of constants, but a NULL among them lets all
    /// rows through.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let schema = self.schema();
        let mut answers = self.provider.supports_filters_pushdown(filters)?;
        for (answer, filter) in answers.iter_mut().zip(filters) {
            if reads_floats(filter, &schema) {
                *answer = TableProviderFilterPushDown::Unsupported;
            } else if *answer == TableProviderFilterPushDown::Exact {
                *answer = TableProviderFilterPushDown::Inexact;
            }
        }
        Ok(answers)
    }

    fn statistics(&self) -> Option<Statistics> {
        self.provider.statistics()
    }
}

fn reads_floats(filter: &Expr, schema: &Schema) -> bool {
    let of_column =
        |name: &str| schema.field_with_name(name).is_ok_and(|field| has_floats(field.data_type()));
    filter.column_refs().iter().any(|column| of_column(&column.name))
}

fn has_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(fields) => fields.iter().any(|field| has_floats(field.data_type())),
        DataType::List(field) | DataType::LargeList(field) | DataType::Map(field, _) => {
            has_floats(field.data_type())
        }
        other => other.is_floating(),
    }
}

/// A scan of files whose row groups, pages and files rule out rows by no bounds of floating-point numbers. Conditions
/// come to it later too, of joins and of sorts that have found their first rows.
fn without_bounds(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let scan = plan
        .downcast_ref::<DataSourceExec>()
        .and_then(DataSourceExec::downcast_to_file_source::<ParquetSource>);
    let Some((config, source)) = scan else {
        return Ok(Transformed::no(plan));
    };
    // Where rows are counted, to leave out deleted ones, the library lets no conditions in, nor another source.
    let (true, Some(factory)) =
        (source.table_schema().virtual_columns().is_empty(), source.parquet_file_reader_factory())
    else {
        return Ok(Transformed::no(plan));
    };
    let factory = Arc::new(ReaderFactory(Arc::clone(factory)));
    let schema = Arc::clone(source.table_schema().table_schema());
    let mut config = FileScanConfig::clone(config);
    config.file_source = Arc::new(source.clone().with_parquet_file_reader_factory(factory));
    config.file_groups = config.file_groups.into_iter().map(|group| group_without(group, &schema)).collect();
    Ok(Transformed::yes(DataSourceExec::from_data_source(config)))
}

fn group_without(group: FileGroup, schema: &Schema) -> FileGroup {
    let all = group.file_statistics(None).map(|statistics| statistics_without(statistics, schema));
    let files = group.into_inner().into_iter().map(|file| PartitionedFile {
        statistics: file.statistics.map(|statistics| statistics_without(&statistics, schema)),
        ..file
    });
    let group = FileGroup::new(files.collect());
    match all {
        Some(all) => group.with_statistics(all),
        None => group,
    }
}

fn statistics_without(statistics: &Statistics, schema: &Schema) -> Arc<Statistics> {
    let mut statistics = statistics.clone();
    for (column, field) in statistics.column_statistics.iter_mut().zip(schema.fields()) {
        if has_floats(field.data_type()) {
            (column.min_value, column.max_value) = (Precision::Absent, Precision::Absent);
        }
    }
    Arc::new(statistics)
}
