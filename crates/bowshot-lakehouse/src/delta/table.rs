//! The table that DataFusion sees of a Delta table that others write: the library's, without what its log does not prove of
//! the values of files. Bounds of floating-point numbers leave NaN out there as they do in the files ([`bowshot_formats::parquet::footers`]), those of
//! texts are cut off, those of points in time are in milliseconds, and the library takes a bound that is missing for a value.

use crate::delta::deletion_vector_check::Checked;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use async_trait::async_trait;
use bowshot_formats::parquet::footers::ReaderFactory;
use bowshot_formats::table_version::{TableVersion, Versioned};
use bowshot_kernels::nan;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, Statistics};
use datafusion::config::ConfigOptions;
use datafusion::datasource::TableType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileGroup, FileScanConfig, FileScanConfigBuilder, FileSource, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion_datasource::compute_all_files_statistics;
use std::sync::Arc;

/// A Delta table that others write, as its log had it when it was looked up.
#[derive(Debug)]
pub struct DeltaFolderTable {
    pub(crate) name: String,
    pub(crate) provider: Arc<dyn TableProvider>,
    pub(crate) vectors: Arc<Checked>,
    /// See [`Versioned::settled_version`].
    pub(crate) version: Option<TableVersion>,
}

impl Versioned for DeltaFolderTable {
    bowshot_api::getters!(name: &str);

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
    bowshot_api::delegate! { provider:
        fn schema(&self) -> SchemaRef;
        fn table_type(&self) -> TableType;
        fn statistics(&self) -> Option<Statistics>;
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
        with_one_nan(plan.transform_up(with_proven_bounds).data()?)
    }

    /// No filter on columns with doubtful bounds reaches the scan, and none is left to it alone: NULL partitions let all rows pass.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let schema = self.schema();
        let mut answers = self.provider.supports_filters_pushdown(filters)?;
        for (answer, filter) in answers.iter_mut().zip(filters) {
            if reads_doubtful(filter, &schema) {
                *answer = TableProviderFilterPushDown::Unsupported;
            } else if *answer == TableProviderFilterPushDown::Exact {
                *answer = TableProviderFilterPushDown::Inexact;
            }
        }
        Ok(answers)
    }
}

/// The library reads the files: what it gives gets the one NaN here.
fn with_one_nan(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = plan.schema();
    if !schema.fields().iter().any(|field| nan::has_floats(field.data_type())) {
        return Ok(plan);
    }
    let (function, config) = (nan::function(), Arc::new(ConfigOptions::default()));
    let columns = schema.fields().iter().enumerate().map(|(at, field)| {
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), at));
        let expr = if nan::has_floats(field.data_type()) {
            let (name, function) = (function.name(), Arc::clone(&function));
            let (field, config) = (Arc::clone(field), Arc::clone(&config));
            Arc::new(ScalarFunctionExpr::new(name, function, vec![column], field, config))
        } else {
            column
        };
        ProjectionExpr { expr, alias: field.name().clone() }
    });
    Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), plan)?))
}

fn reads_doubtful(filter: &Expr, schema: &Schema) -> bool {
    let of_column =
        |name: &str| schema.field_with_name(name).is_ok_and(|field| is_doubtful(field.data_type()));
    filter.column_refs().iter().any(|column| of_column(&column.name))
}

/// Whether there may be values outside of the bounds that logs have.
fn is_doubtful(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(fields) => fields.iter().any(|field| is_doubtful(field.data_type())),
        DataType::List(field) | DataType::LargeList(field) | DataType::Map(field, _) => {
            is_doubtful(field.data_type())
        }
        // Writers make floating-point numbers of them, which round what has more digits.
        DataType::Decimal128(digits, _) => u32::from(*digits) > f64::DIGITS,
        other => other.is_floating(),
    }
}

/// A scan that rules out rows only by bounds that hold. Conditions of joins and sorts reach it later, too.
fn with_proven_bounds(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let scan = plan
        .downcast_ref::<DataSourceExec>()
        .and_then(DataSourceExec::downcast_to_file_source::<ParquetSource>);
    let Some((config, source)) = scan else {
        return Ok(Transformed::no(plan));
    };
    let schema = Arc::clone(source.table_schema().table_schema());
    let mut config = FileScanConfig::clone(config);
    // Where rows are counted, to leave out deleted ones, the library lets no conditions in, nor another source.
    if let (true, Some(factory)) =
        (source.table_schema().virtual_columns().is_empty(), source.parquet_file_reader_factory())
    {
        let factory = Arc::new(ReaderFactory(Arc::clone(factory)));
        config.file_source = Arc::new(source.clone().with_parquet_file_reader_factory(factory));
    }
    let groups = std::mem::take(&mut config.file_groups);
    let groups = groups.into_iter().map(|group| proven_group(group, &schema)).collect();
    let (groups, mut statistics) = compute_all_files_statistics(groups, Arc::clone(&schema), true, false)?;
    if statistics.column_statistics.is_empty() {
        statistics.column_statistics = Statistics::unknown_column(&schema);
    }
    let config = FileScanConfigBuilder::from(config).with_file_groups(groups).with_statistics(statistics);
    Ok(Transformed::yes(DataSourceExec::from_data_source(config.build())))
}

fn proven_group(group: FileGroup, schema: &Schema) -> FileGroup {
    let files = group.into_inner().into_iter().map(|file| PartitionedFile {
        statistics: file.statistics.map(|statistics| Arc::new(proven(&statistics, schema))),
        ..file
    });
    FileGroup::new(files.collect())
}

fn proven(statistics: &Statistics, schema: &Schema) -> Statistics {
    let mut statistics = statistics.clone();
    for (column, field) in statistics.column_statistics.iter_mut().zip(schema.fields()) {
        for bound in [&mut column.min_value, &mut column.max_value] {
            *bound = match std::mem::take(bound) {
                Precision::Exact(value) if !value.is_null() && is_value(field.data_type()) => {
                    Precision::Exact(value)
                }
                _ => Precision::Absent,
            };
        }
    }
    statistics
}

/// Whether the bounds that logs have are values of the column.
fn is_value(data_type: &DataType) -> bool {
    match data_type {
        // Of the file itself, which is added to each of its rows.
        DataType::Dictionary(..) => true,
        other => other.is_integer() || matches!(other, DataType::Date32),
    }
}
