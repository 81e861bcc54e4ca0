//! Parquet's source with errors that name the file: DataFusion's own reader says what is wrong with a page, not where.
//! Everything but the errors and the NaN of a sign ([`bowshot_kernels::nan`]) is passed through, and nothing that was made of
//! shared pages (`DataFile::resident`) before these are known to be unchanged.

use crate::column_casts::{ColumnAdapters, are_made_here, needs_casts};
use crate::data_file::Lease;
use crate::decoded_columns::{ColumnPlanner, ColumnScan, Scan};
use crate::parquet::encrypted;
use crate::parquet::footers::ReaderFactory;
use crate::row_source::PlannedFile;
use crate::snapshot_store::SnapshotStore;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::error::ArrowError;
use bowshot_kernels::nan::{has_floats, rows_with_one_nan};
use bowshot_object_store::{Error, find_error};
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::config::TableParquetOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::CachedParquetFileReaderFactory;
use datafusion::datasource::physical_plan::{
    FileGroup, FileOpener, FileScanConfig, FileSource, ParquetSource,
};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, Column, DynamicFilterPhysicalExpr, InListExpr, IsNotNullExpr, IsNullExpr, Literal, NotExpr,
};
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, PhysicalSortExpr, ScalarFunctionExpr};
use datafusion::physical_plan::filter_pushdown::{FilterPushdownPropagation, PushedDown};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{DisplayFormatType, PhysicalExpr, SortOrderPushdownResult};
use datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner, Morselizer};
use futures::StreamExt;
use futures::future::ready;
use futures::stream::{self, BoxStream};
use object_store::ObjectStore;
use std::fmt;
use std::ops::Deref;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

#[derive(Clone)]
pub struct NamedSource {
    inner: Arc<dyn FileSource>,
    /// Keeps the handles of the table's files.
    lease: Arc<Lease>,
    columns: ColumnScan,
    batch_rows: usize,
    filters_early: bool,
}

/// Reads Parquet files of a store as plain Arrow, with the footers that are cached.
pub fn parquet_source(
    store: &Arc<SnapshotStore>,
    state: &dyn Session,
    schema: TableSchema,
) -> Arc<dyn FileSource> {
    let mut options = TableParquetOptions::new();
    options.global = state.config_options().execution.parquet.clone();
    options.global.schema_force_view_types = false;
    let hint = options.global.metadata_size_hint;
    let cache = state.runtime_env().cache_manager.get_file_metadata_cache();
    let store = Arc::clone(store) as Arc<dyn ObjectStore>;
    let footers = ReaderFactory(Arc::new(CachedParquetFileReaderFactory::new(store, cache)));
    let mut source = ParquetSource::new(schema)
        .with_table_parquet_options(options)
        .with_parquet_file_reader_factory(Arc::new(footers));
    if let Some(hint) = hint {
        source = source.with_metadata_size_hint(hint);
    }
    Arc::new(source)
}

impl NamedSource {
    pub fn new(inner: Arc<dyn FileSource>, lease: Arc<Lease>, columns: ColumnScan) -> Self {
        Self { inner, lease, columns, batch_rows: 8192, filters_early: false }
    }

    /// For scans of few of many rows: columns that conditions do not ask for are decoded for the rows that fulfil them alone.
    #[must_use]
    pub fn filtering_early(self) -> Self {
        Self { filters_early: true, ..self }
    }

    /// DataFusion's own source, which leaves out rows while it reads or not.
    fn filtering(&self, early: bool) -> Arc<dyn FileSource> {
        match self.inner.downcast_ref::<ParquetSource>() {
            Some(source) if self.filters_early => Arc::new(source.clone().with_pushdown_filters(early)),
            _ => Arc::clone(&self.inner),
        }
    }

    pub fn inner(&self) -> &dyn FileSource {
        self.inner.as_ref()
    }

    fn morselizer(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Box<dyn Morselizer>> {
        let inner = self.inner.create_morselizer(store, config, partition)?;
        let scan = Scan::prepare(&self.columns, self.inner.as_ref(), config, partition, self.batch_rows);
        let lease = Arc::clone(&self.lease);
        Ok(Box::new(NamedMorselizer { inner: inner.into(), scan: scan.map(Arc::new), lease }))
    }

    fn wrap(&self, inner: Arc<dyn FileSource>) -> Arc<dyn FileSource> {
        Arc::new(Self { inner, ..self.clone() })
    }
}

impl FileSource for NamedSource {
    bowshot_api::delegate! { inner:
        fn create_file_opener(&self, store: Arc<dyn ObjectStore>, config: &FileScanConfig, partition: usize)
            -> Result<Arc<dyn FileOpener>>;
        fn table_schema(&self) -> &TableSchema;
        fn filter(&self) -> Option<Arc<dyn PhysicalExpr>>;
        fn projection(&self) -> Option<&ProjectionExprs>;
        fn metrics(&self) -> &ExecutionPlanMetricsSet;
        fn file_type(&self) -> &str;
        fn fmt_extra(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result;
        fn supports_repartitioning(&self) -> bool;
        fn reorder_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile>;
        fn apply_expressions(&self, f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>)
            -> Result<TreeNodeRecursion>;
    }

    fn create_morselizer(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Box<dyn Morselizer>> {
        // Our own files have everything as their tables have it.
        if !self.columns.owned
            && let Some(adapters) = adapters(config, self.inner.table_schema().file_schema())
        {
            let mut config = config.clone();
            config.expr_adapter_factory = Some(Arc::new(adapters));
            return self.morselizer(store, &config, partition);
        }
        self.morselizer(store, config, partition)
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        let inner = self.inner.with_batch_size(batch_size);
        Arc::new(Self { inner, batch_rows: batch_size, ..self.clone() })
    }

    fn repartitioned(
        &self,
        target_partitions: usize,
        min_size: usize,
        ordering: Option<LexOrdering>,
        config: &FileScanConfig,
    ) -> Result<Option<FileScanConfig>> {
        // The configuration that comes back is a copy of the given one, with this source in it.
        self.inner.repartitioned(target_partitions, min_size, ordering, config)
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let columns = self.inner.table_schema().file_schema();
        let early = self.filters_early && filters.iter().all(|filter| is_harmless(filter.as_ref(), columns));
        // The conditions stay above the scan all the same: here they only save work.
        let answers = vec![PushedDown::No; filters.len()];
        let pushed = self.filtering(early).try_pushdown_filters(filters, config)?;
        Ok(FilterPushdownPropagation {
            filters: if self.filters_early { answers } else { pushed.filters },
            updated_node: pushed
                .updated_node
                .map(|inner| Arc::new(Self { inner, filters_early: early, ..self.clone() }) as _),
        })
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
        properties: &EquivalenceProperties,
    ) -> Result<SortOrderPushdownResult<Arc<dyn FileSource>>> {
        Ok(match self.inner.try_pushdown_sort(order, properties)? {
            SortOrderPushdownResult::Exact { inner } => {
                SortOrderPushdownResult::Exact { inner: self.wrap(inner) }
            }
            SortOrderPushdownResult::Inexact { inner } => {
                SortOrderPushdownResult::Inexact { inner: self.wrap(inner) }
            }
            SortOrderPushdownResult::Unsupported => SortOrderPushdownResult::Unsupported,
        })
    }

    /// What is computed of floating-point numbers stays above the scan: within it they do not have the one NaN yet.
    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        if let Some(inner) = self.inner.projection() {
            let columns = inner.project_schema(self.inner.table_schema().table_schema())?;
            if !projection.expr_iter().all(|expr| passes_floats_on(expr.as_ref(), &columns)) {
                return Ok(None);
            }
        }
        Ok(self.inner.try_pushdown_projection(projection)?.map(|inner| self.wrap(inner)))
    }
}

/// What brings the columns of all files to those of the table, where DataFusion's own adapter would not.
fn adapters(config: &FileScanConfig, table: &Schema) -> Option<ColumnAdapters> {
    let mut casts = table.fields().iter().any(|field| are_made_here(field.data_type()));
    let mut any_case = false;
    let mut last: Option<&SchemaRef> = None;
    for file in config.file_groups.iter().flat_map(FileGroup::iter) {
        let Some(planned) = file.extension::<PlannedFile>() else { continue };
        any_case |= planned.named.is_some();
        // Most files share their columns with the one before.
        let columns = &planned.facts.columns;
        let is_known = last.replace(columns).is_some_and(|last| Arc::ptr_eq(last, columns));
        casts |= !is_known && needs_casts(planned.named.as_deref().unwrap_or(table), columns);
    }
    (casts || any_case).then_some(ColumnAdapters { any_case })
}

#[derive(Debug)]
struct NamedMorselizer {
    inner: Arc<dyn Morselizer>,
    /// By way of the kept columns, if the scan can take it.
    scan: Option<Arc<Scan>>,
    lease: Arc<Lease>,
}

impl Morselizer for NamedMorselizer {
    fn plan_file(&self, file: PartitionedFile) -> Result<Box<dyn MorselPlanner>> {
        let Some(planned) = file.extension::<PlannedFile>().cloned() else {
            return self.inner.plan_file(file);
        };
        let kept = self.scan.as_ref().and_then(|scan| ColumnPlanner::of(scan, &self.inner, &file, &planned));
        let planned = Leased { planned, _lease: Arc::clone(&self.lease) };
        let inner = match kept {
            Some(planner) => planner,
            None => name_errors(self.inner.plan_file(file), &planned)?,
        };
        Ok(Box::new(Named { inner, planned }))
    }
}

/// A file whose handle and pages stay until its last row is made: the plan may be gone by then.
#[derive(Debug, Clone)]
struct Leased {
    planned: PlannedFile,
    _lease: Arc<Lease>,
}

impl Deref for Leased {
    type Target = PlannedFile;

    fn deref(&self) -> &PlannedFile {
        &self.planned
    }
}

/// A planner or morsel of one file.
#[derive(Debug)]
struct Named<T> {
    inner: T,
    planned: Leased,
}

impl MorselPlanner for Named<Box<dyn MorselPlanner>> {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        let Self { inner, planned } = *self;
        let Some(mut plan) = name_errors(inner.plan(), &planned)? else {
            return Ok(None);
        };
        let planner = |inner, planned: &Leased| {
            Box::new(Named { inner, planned: planned.clone() }) as Box<dyn MorselPlanner>
        };
        let morsels = plan.take_morsels().into_iter();
        let morsels = morsels
            .map(|inner| Box::new(Named { inner, planned: planned.clone() }) as Box<dyn Morsel>)
            .collect();
        let ready = plan.take_ready_planners().into_iter().map(|inner| planner(inner, &planned)).collect();
        let mut named = MorselPlan::new().with_morsels(morsels).with_planners(ready);
        if let Some(pending) = plan.take_pending_planner() {
            named.set_pending_planner(async move {
                let inner = name_errors(pending.await, &planned)?;
                Ok(planner(inner, &planned))
            });
        }
        Ok(Some(named))
    }
}

impl Morsel for Named<Box<dyn Morsel>> {
    fn into_stream(self: Box<Self>) -> BoxStream<'static, Result<RecordBatch>> {
        let Self { inner, planned } = *self;
        let at_end = Some(planned.clone());
        // A page of noise can make a decoder panic; that is the file's fault and ends this query only.
        let caught = AssertUnwindSafe(inner.into_stream()).catch_unwind();
        caught
            .map(move |batch| {
                let undecodable =
                    |_| Err(Error::corrupt(planned.data.path(), "its pages cannot be decoded").into());
                let batch = name_errors(batch.unwrap_or_else(undecodable), &planned)?;
                Ok(rows_with_one_nan(batch)?)
            })
            // Rows that a filter within the reader took away were made of the pages too.
            .chain(stream::iter(at_end).filter_map(|file| ready(check_pages(&file).err().map(Err))))
            .boxed()
    }
}

/// Whether an expression does not depend on values of floats: they are not among its columns, or pass unchanged.
fn passes_floats_on(expr: &dyn PhysicalExpr, columns: &Schema) -> bool {
    if expr.downcast_ref::<Column>().is_some() || expr.downcast_ref::<Literal>().is_some() {
        return true;
    }
    let is_field = |call: &ScalarFunctionExpr| call.fun().name() == "get_field";
    if expr.downcast_ref::<ScalarFunctionExpr>().is_some_and(is_field) {
        return expr.children().iter().all(|child| passes_floats_on(child.as_ref(), columns));
    }
    let mut used = expr.children().into_iter().flat_map(collect_columns);
    !used.any(|column| columns.fields().get(column.index()).is_none_or(|field| has_floats(field.data_type())))
}

/// Whether a condition cannot fail, and says the same of the values as they are in files as of those that the scan gives: floats
/// may have another NaN there, and to a join, but to no condition, both zeros are equal.
fn is_harmless(condition: &dyn PhysicalExpr, columns: &Schema) -> bool {
    if let Some(column) = condition.downcast_ref::<Column>() {
        let field = columns.fields().get(column.index()).map(|field| field.data_type());
        return field
            .is_some_and(|of| !has_floats(of) && !of.is_nested() && !matches!(of, DataType::Interval(_)));
    }
    let is_comparison = |operator: &Operator| {
        use Operator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
        matches!(operator, And | Eq | Gt | GtEq | Lt | LtEq | NotEq | Or)
    };
    let is_plain = condition.downcast_ref::<Literal>().is_some()
        || condition.downcast_ref::<InListExpr>().is_some()
        || condition.downcast_ref::<IsNullExpr>().is_some()
        || condition.downcast_ref::<IsNotNullExpr>().is_some()
        || condition.downcast_ref::<NotExpr>().is_some()
        || condition.downcast_ref::<DynamicFilterPhysicalExpr>().is_some()
        || condition.downcast_ref::<BinaryExpr>().is_some_and(|expr| is_comparison(expr.op()));
    is_plain && condition.children().into_iter().all(|child| is_harmless(child.as_ref(), columns))
}

/// Keeps errors that name a file, and those of expressions and limits; all others come from decoding this file.
fn name_errors<T>(result: Result<T>, planned: &PlannedFile) -> Result<T> {
    // Whatever came of pages that somebody changed meanwhile, the change is the reason.
    check_pages(planned)?;
    result.map_err(|error| {
        if let Some(found) = find_error(&error) {
            return DataFusionError::External(Box::new(found));
        }
        if !is_decoding(error.find_root()) {
            return error;
        }
        if let Some(fault) = planned.data.fault() {
            return fault.clone().into();
        }
        encrypted::told(&planned.data, Error::corrupt(planned.data.path(), error.find_root())).into()
    })
}

fn check_pages(planned: &PlannedFile) -> Result<()> {
    Ok(planned.data.check_pages()?)
}

fn is_decoding(root: &DataFusionError) -> bool {
    match root {
        DataFusionError::ParquetError(_) => true,
        DataFusionError::ArrowError(error, _) => {
            matches!(error.as_ref(), ArrowError::ParquetError(_) | ArrowError::IoError(..))
        }
        _ => false,
    }
}
