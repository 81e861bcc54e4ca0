//! What all files of one scan have in common: the columns it wants, and what is made of them.

use super::cache::ColumnCache;
use super::dynamic_filters;
use super::{FileColumns, MIN_FILE_BYTES};
use crate::row_source::PlannedFile;
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, SchemaRef};
use bowshot_kernels::nan::rows_with_one_nan;
use datafusion::common::Result;
use datafusion::common::cast::as_boolean_array;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileScanConfig, FileSource, ParquetFileReaderFactory, ParquetSource,
};
use datafusion::error::DataFusionError;
use datafusion::physical_expr::expressions::{Column, DynamicFilterPhysicalExpr};
use datafusion::physical_expr::projection::{ProjectionExprs, Projector};
use datafusion::physical_expr::utils::{Guarantee, LiteralGuarantee, collect_columns};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr, conjunction, split_conjunction};
use datafusion::physical_plan::metrics::{Count, MetricBuilder};
use std::sync::Arc;

#[derive(Debug, Clone)]
pub struct ColumnScan {
    cache: Arc<ColumnCache>,
    /// Whether nobody but this server writes the files, so that also fresh ones cannot change without a trace.
    pub(crate) owned: bool,
}

impl ColumnScan {
    /// For files that others write.
    pub fn of_found(cache: &Arc<ColumnCache>) -> Self {
        Self { cache: Arc::clone(cache), owned: false }
    }

    /// For files that are written once, by this server.
    pub fn of_owned(cache: &Arc<ColumnCache>) -> Self {
        Self { cache: Arc::clone(cache), owned: true }
    }
}

#[derive(Debug)]
pub struct Scan {
    table: ColumnScan,
    pub(super) partition: usize,
    pub(super) factory: Arc<dyn ParquetFileReaderFactory>,
    /// The columns in the files, and after them those of partitions.
    pub(super) table_schema: SchemaRef,
    pub(super) file_schema: SchemaRef,
    /// Whether only some rows are wanted, which says nothing about the use of a whole column.
    pub(super) limited: bool,
    pub(super) predicate: Option<Arc<dyn PhysicalExpr>>,
    /// The columns that are read from files.
    pub(super) read_schema: SchemaRef,
    /// What the scan gives, made of the columns that are read and those of partitions behind them.
    projector: Projector,
    /// Places among the partitions' columns that the projection uses.
    partitions: Vec<usize>,
    projected: SchemaRef,
    /// The query's own conditions, over the columns that the projection is made of.
    own: Option<Arc<dyn PhysicalExpr>>,
    /// Columns that must have one of a few values.
    pub(super) looked_up: Vec<String>,
    /// Conditions of joins above, over the columns that are read.
    pub(super) learned: Vec<Arc<dyn PhysicalExpr>>,
    batch_rows: usize,
    /// Column chunks that were found in memory, and that were put there.
    pub(super) found: Count,
    pub(super) kept: Count,
    pub(super) read: Count,
}

impl Scan {
    /// What a source is about to scan; `None` if nothing of it can be kept.
    pub fn prepare(
        table: &ColumnScan,
        source: &dyn FileSource,
        config: &FileScanConfig,
        partition: usize,
        batch_rows: usize,
    ) -> Option<Self> {
        let parquet = source.downcast_ref::<ParquetSource>().filter(|_| table.cache.is_on())?;
        // A scan that filters by itself is asked for exactly the rows that pass.
        if parquet.table_parquet_options().global.pushdown_filters || config.expr_adapter_factory.is_some() {
            return None;
        }
        let schema = source.table_schema();
        let file_schema = Arc::clone(schema.file_schema());
        let projection = source.projection()?;
        let places = projection.column_indices();
        let known = file_schema.fields().len() + schema.table_partition_cols().len();
        let (columns, partitions): (Vec<usize>, Vec<usize>) =
            places.iter().partition(|place| **place < file_schema.fields().len());
        if columns.is_empty() || places.iter().any(|place| *place >= known) || !is_of_rows(projection) {
            return None;
        }
        // DataFusion's source reads only the wanted fields of a structure, and orders what it reads as was promised.
        let structured = |place: &usize| matches!(file_schema.field(*place).data_type(), DataType::Struct(_));
        if columns.iter().any(structured) || config.preserve_order || !config.output_ordering.is_empty() {
            return None;
        }
        let table_schema = Arc::clone(schema.table_schema());
        let projected = Arc::new(table_schema.project(&places).ok()?);
        let projector = over(projection, &places).ok()?.make_projector(&projected).ok()?;
        let predicate = source.filter();
        let counter = |name| MetricBuilder::new(source.metrics()).counter(name, partition);
        Some(Self {
            partition,
            factory: Arc::clone(parquet.parquet_file_reader_factory()?),
            limited: config.limit.is_some(),
            looked_up: predicate.as_ref().map(looked_up).unwrap_or_default(),
            learned: predicate
                .as_ref()
                .map(|all| dynamic_filters::conditions(all, &columns, &file_schema))
                .unwrap_or_default(),
            own: predicate.as_ref().and_then(|all| own_conditions(all, &places)),
            read_schema: Arc::new(file_schema.project(&columns).ok()?),
            partitions: partitions.iter().map(|place| place - file_schema.fields().len()).collect(),
            found: counter("column_chunks_from_memory"),
            kept: counter("column_chunks_into_memory"),
            read: counter("bytes_scanned"),
            table: table.clone(),
            table_schema,
            file_schema,
            predicate,
            projector,
            projected,
            batch_rows: batch_rows.max(1),
        })
    }

    /// The kept columns of a file, if it is one whose columns may be kept.
    pub(super) fn columns_of(&self, file: &PlannedFile) -> Option<Arc<FileColumns>> {
        let data = &file.data;
        let steady = self.table.owned || data.is_settled();
        (steady && data.size() >= MIN_FILE_BYTES).then(|| data.columns(&self.table.cache))
    }

    /// What the scan gives for rows of a file, in batches that are not larger than was asked for.
    pub(super) fn project(&self, rows: &RecordBatch, file: &PartitionedFile) -> Result<Vec<RecordBatch>> {
        let constant = |place: &usize| -> Result<ArrayRef> {
            let value = file.partition_values.get(*place).ok_or_else(|| {
                datafusion::common::internal_datafusion_err!("a file came without the value of its partition")
            })?;
            value.to_array_of_size(rows.num_rows())
        };
        let columns = rows.columns().iter().cloned().map(Ok);
        let columns = columns.chain(self.partitions.iter().map(constant)).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        let all = RecordBatch::try_new_with_options(Arc::clone(&self.projected), columns, &options)?;
        let batch = self.projector.project_batch(&all).or_else(|error| self.project_passing(&all, error))?;
        let starts = (0..batch.num_rows()).step_by(self.batch_rows);
        Ok(starts.map(|at| batch.slice(at, self.batch_rows.min(batch.num_rows() - at))).collect())
    }

    /// The projection of the rows that pass, after it failed for all of them. The failure may be that of a row which does not
    /// pass, and which DataFusion's source would not have read: expressions may be moved below a filter.
    fn project_passing(&self, all: &RecordBatch, error: DataFusionError) -> Result<RecordBatch> {
        let passing = self.own.as_ref().and_then(|own| {
            let all = rows_with_one_nan(all.clone()).ok()?;
            let mask = own.evaluate(&all).ok()?.into_array(all.num_rows()).ok()?;
            filter_record_batch(&all, as_boolean_array(&mask).ok()?).ok()
        });
        let Some(passing) = passing else { return Err(error) };
        self.projector.project_batch(&passing)
    }
}

/// The parts of a predicate that the query itself has, over the columns at these places, as far as those are enough.
fn own_conditions(predicate: &Arc<dyn PhysicalExpr>, places: &[usize]) -> Option<Arc<dyn PhysicalExpr>> {
    let parts = split_conjunction(predicate).into_iter().filter(|part| {
        let columns = collect_columns(part);
        part.downcast_ref::<DynamicFilterPhysicalExpr>().is_none()
            && columns.iter().all(|column| places.contains(&column.index()))
    });
    let parts: Vec<_> = parts.map(|part| moved(Arc::clone(part), places)).collect::<Result<_>>().ok()?;
    (!parts.is_empty()).then(|| conjunction(parts))
}

/// Columns of which a query's own conditions say that they have one of a few values.
fn looked_up(predicate: &Arc<dyn PhysicalExpr>) -> Vec<String> {
    let own = split_conjunction(predicate).into_iter();
    let own = own.filter(|part| part.downcast_ref::<DynamicFilterPhysicalExpr>().is_none());
    let found = LiteralGuarantee::analyze(&conjunction(own.map(Arc::clone)));
    let found = found.into_iter().filter(|found| found.guarantee == Guarantee::In);
    found.map(|found| found.column.name().to_owned()).collect()
}

/// Whether expressions depend on the values of a row alone, and not on its file or its place in there.
fn is_of_rows(projection: &ProjectionExprs) -> bool {
    projection.expr_iter().all(|expression| {
        let mut pure = true;
        let walked = expression.apply(|node| {
            let function = node.downcast_ref::<ScalarFunctionExpr>();
            pure &= function.is_none_or(|function| {
                !matches!(function.fun().name(), "input_file_name" | "file_row_index")
            });
            Ok(if pure { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
        });
        walked.is_ok() && pure
    })
}

/// A projection over the columns at these places alone.
fn over(projection: &ProjectionExprs, places: &[usize]) -> Result<ProjectionExprs> {
    projection.clone().try_map_exprs(|expression| moved(expression, places))
}

/// An expression whose columns are found at the place of their place.
pub(super) fn moved(expression: Arc<dyn PhysicalExpr>, places: &[usize]) -> Result<Arc<dyn PhysicalExpr>> {
    expression
        .transform_up(|node| {
            let place = node.downcast_ref::<Column>().map(|column| {
                (column.name().to_owned(), places.iter().position(|place| *place == column.index()))
            });
            Ok(match place {
                Some((name, Some(position))) => {
                    Transformed::yes(Arc::new(Column::new(&name, position)) as Arc<dyn PhysicalExpr>)
                }
                _ => Transformed::no(node),
            })
        })
        .data()
}
