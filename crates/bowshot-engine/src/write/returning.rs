//! RETURNING: a query over the rows that a statement has changed, planned with the statement and run before it counts.

use crate::catalog::Visible;
use crate::catalog::lazy_state::LazyState;
use crate::error::classify;
use crate::execute::Execution;
use crate::execute::progress::ProgressMeter;
use crate::write::{change, not_in, rows, scalar_rows};
use bowshot_api::catalog_names::{CHANGE_SCHEMA, TARGET};
use bowshot_api::{BatchStream, Error, Layout, Result};
use bowshot_tables::{Definition, Segment, Storage, Table};
use bowshot_types::{result_metadata, storage_type};
use datafusion::arrow::array::{ArrayRef, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::common::TableReference;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::datasource::provider_as_source;
use datafusion::execution::SessionState;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, ident, lit};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    Ident, SelectItem, Statement, TableAlias, TableFactor, TableWithJoins,
};
use futures::FutureExt;
use futures::StreamExt;
use futures::future::BoxFuture;
use std::sync::{Arc, OnceLock};

/// Changed rows up to which making operators is what takes the time.
const MAX_ROWS: u64 = 1_000;
/// Bytes of a result up to which it goes along with the answer, and nobody counts them.
const MAX_READY_BYTES: usize = 64 << 10;

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Returning {
    /// A query over the target, which stands for the changed rows.
    plan: LogicalPlan,
    /// The columns of the result before they are laid out, once somebody has asked for them.
    schema: OnceLock<SchemaRef>,
    /// `None` for what is told whatever has changed.
    definition: Option<Arc<Definition>>,
    /// For EXPLAIN ANALYZE, in how much detail the plan of the statement is told.
    measured: Option<Detail>,
}

/// How much of a plan is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    Plain,
    Verbose,
}

impl Returning {
    /// One row of what a statement tells beside what it does.
    ///
    /// # Errors
    /// When the row cannot be planned; does not happen with values.
    pub(crate) fn row(values: Vec<(&str, Expr)>) -> Result<Self> {
        let (names, values): (Vec<&str>, Vec<Expr>) = values.into_iter().unzip();
        let columns =
            names.iter().enumerate().map(|(at, name)| ident(format!("column{}", at + 1)).alias(*name));
        let plan = LogicalPlanBuilder::values(vec![values])
            .and_then(|row| row.project(columns))
            .and_then(LogicalPlanBuilder::build)
            .map_err(classify)?;
        Ok(Self::query(plan))
    }

    /// The plan of the statement itself, with what running it took.
    ///
    /// # Errors
    /// As [`Self::row`].
    pub(crate) fn measured_plan(detail: Detail) -> Result<Self> {
        let row = Self::row(vec![("plan_type", lit("")), ("plan", lit(""))])?;
        Ok(Self { measured: Some(detail), ..row })
    }

    /// The rows of a query beside the changes of a statement.
    pub(crate) fn query(plan: LogicalPlan) -> Self {
        Self { plan, schema: OnceLock::new(), definition: None, measured: None }
    }

    /// The columns of [`Returned::table`].
    pub(crate) fn table_schema(&self, state: &SessionState) -> SchemaRef {
        nullable(self.schema(state))
    }

    /// The columns of the result before they are laid out: those that clients are told of when the statement is described.
    pub(crate) fn schema(&self, state: &SessionState) -> &SchemaRef {
        self.schema.get_or_init(|| result_metadata::analysed_schema(state, &self.plan))
    }

    /// In how much detail the plan of the statement is returned, if it is.
    pub(crate) fn measured(&self) -> Option<Detail> {
        self.measured
    }

    /// The query, whose schema is that of the result.
    pub(crate) fn plan(&self) -> &LogicalPlan {
        &self.plan
    }
}

/// Plans `RETURNING items`. `name` is what the statement calls the table.
///
/// # Errors
/// As a query over the table; `Unsupported` with parameters, which the statement's other part has.
pub(crate) fn planned<'a>(
    items: &'a [SelectItem],
    table: &'a Arc<Table>,
    name: &'a Ident,
    visible: &'a Visible,
) -> BoxFuture<'a, Result<Returning>> {
    async move {
        let mut query = change::template()?;
        let select = change::select_of(&mut query)?;
        select.projection = items.to_vec();
        let mut target = bowshot_sql::read_query("SELECT 1 FROM t AS t")?;
        let mut from: Vec<TableWithJoins> = change::select_of(&mut target)?.from.drain(..).collect();
        if let Some(TableFactor::Table { name: place, alias: Some(TableAlias { name: alias, .. }), .. }) =
            from.first_mut().map(|from| &mut from.relation)
        {
            (*place, *alias) = (change::target_name(), name.clone());
        }
        select.from = from;
        let mut statement = Statement::Query(query);
        not_in::aware(&mut statement)?;
        let definition = Definition { storage: Storage::Memory, ..table.definition().as_ref().clone() };
        let definition = Arc::new(definition);
        let target = Arc::new(Table::new(definition.as_ref().clone())).provider();
        let name = TableReference::partial(CHANGE_SCHEMA, TARGET);
        let visible =
            visible.with_target(storage_type::as_declared(target, &definition, name).map_err(classify)?);
        let statement = Parsed::Statement(Box::new(statement));
        let plan = crate::plan::logical(&visible.state(), statement).await.map_err(classify)?;
        crate::plan::allowed::check_readable(&plan)?;
        if !plan.get_parameter_fields().map_err(classify)?.is_empty() {
            return Err(Error::unsupported("RETURNING takes no parameters")
                .with_hint("compute with the columns that it returns in the client"));
        }
        Ok(Returning { definition: Some(definition), ..Returning::query(plan) })
    }
    .boxed()
}

/// What is returned of a few rows, without operators. `None` where that takes a plan.
fn computed(plan: &LogicalPlan, changed: &Table, state: &LazyState) -> Option<Vec<RecordBatch>> {
    if changed.rows() > MAX_ROWS || !scalar_rows::are_scalar(plan) {
        return None;
    }
    changed.batches().map(|rows| scalar_rows::rows(plan, Some(&rows.ok()?), state)).collect()
}

/// The query over rows, in the place of the tables that stand for them beside [`TARGET`].
pub(crate) fn with_tables(
    plan: &LogicalPlan,
    tables: &[(String, Arc<dyn TableProvider>)],
) -> Result<LogicalPlan> {
    let query = plan.clone().transform_up_with_subqueries(|node| match node {
        LogicalPlan::TableScan(mut scan) if scan.table_name.schema() == Some(CHANGE_SCHEMA) => {
            let Some((_, rows)) = tables.iter().find(|(name, _)| name == scan.table_name.table()) else {
                return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
            };
            scan.source = provider_as_source(Arc::clone(rows));
            Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
        }
        other => Ok(Transformed::no(other)),
    });
    query.data().map_err(classify)
}

fn nullable(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Columns in the types of a schema.
fn in_types(schema: &SchemaRef, columns: &[ArrayRef], rows: usize) -> Result<RecordBatch> {
    let columns = columns.iter().zip(schema.fields()).map(|(column, field)| cast(column, field.data_type()));
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let columns = columns.collect::<std::result::Result<Vec<_>, _>>();
    let batch = columns
        .and_then(|columns| RecordBatch::try_new_with_options(SchemaRef::clone(schema), columns, &options));
    batch.map_err(|error| classify(error.into()))
}

/// The result of RETURNING: computed before the statement counts, so that one whose result fails has changed nothing.
#[derive(Debug)]
pub struct Returned {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    /// Of the memory that all queries share; given back when the last row has gone.
    held: MemoryReservation,
}

impl Returned {
    /// No rows yet, in the columns that the statement was described with.
    pub(crate) fn new(returning: &Returning, state: &SessionState) -> Self {
        let held = MemoryConsumer::new("RETURNING").register(&state.runtime_env().memory_pool);
        Self { schema: Arc::clone(returning.schema(state)), batches: Vec::new(), held }
    }

    /// Adds what is returned of these rows.
    ///
    /// # Errors
    /// From running the query; `LimitReached` for more rows than memory takes.
    pub(crate) async fn add(
        &mut self,
        returning: &Returning,
        changed: Vec<Arc<Segment>>,
        state: &LazyState,
    ) -> Result<()> {
        let query = match &returning.definition {
            None => returning.plan.clone(),
            Some(definition) => {
                let changed = Arc::new(Table::new(definition.as_ref().clone()).append(changed));
                if let Some(batches) = computed(&returning.plan, &changed, state) {
                    return batches.into_iter().try_for_each(|batch| self.hold(batch));
                }
                with_tables(&returning.plan, &[(TARGET.to_owned(), changed.provider())])?
            }
        };
        let (mut stream, _) = rows::stream(state, &query).await?;
        while let Some(batch) = stream.next().await {
            self.hold(batch.map_err(classify)?)?;
        }
        Ok(())
    }

    fn hold(&mut self, batch: RecordBatch) -> Result<()> {
        self.held.try_grow(batch.get_array_memory_size()).map_err(classify)?;
        self.batches.push(batch);
        Ok(())
    }

    /// The rows as a table for the other parts of the statement, which goes before this does.
    ///
    /// # Errors
    /// When a column cannot be what it was told to be; does not happen.
    pub(crate) fn table(&self) -> Result<Arc<dyn TableProvider>> {
        let schema = nullable(&self.schema);
        let batches = self.batches.iter().map(|batch| in_types(&schema, batch.columns(), batch.num_rows()));
        let batches = batches.collect::<Result<Vec<_>>>()?;
        let table = MemTable::try_new(SchemaRef::clone(&schema), vec![batches]).map_err(classify)?;
        Ok(Arc::new(table))
    }

    /// Adds the plan that a statement ran, as EXPLAIN ANALYZE of a query shows it.
    ///
    /// # Errors
    /// When the texts are no batch; does not happen.
    pub(crate) fn add_plan(&mut self, plan: &dyn ExecutionPlan, detail: Detail, changed: u64) -> Result<()> {
        let shown = match detail {
            Detail::Plain => DisplayableExecutionPlan::with_metrics(plan).indent(false).to_string(),
            Detail::Verbose => DisplayableExecutionPlan::with_full_metrics(plan).indent(true).to_string(),
        };
        let shown = bowshot_sql::rewrite::unmarked(&shown);
        let texts = ["Plan with Metrics".to_owned(), format!("Change: rows={changed}\n{shown}")];
        let columns = texts.map(|text| Arc::new(StringArray::from(vec![text])) as ArrayRef);
        self.hold(in_types(&self.schema, &columns, 1)?)
    }

    /// The rows as the result of a query.
    ///
    /// # Errors
    /// When rows do not fit the layout; does not happen.
    pub fn execution(self, layout: Layout) -> Result<Execution> {
        let schema = layout.schema(&self.schema);
        let rows = self.batches.iter().map(RecordBatch::num_rows).sum::<usize>();
        let (target, held) = (SchemaRef::clone(&schema), self.held);
        let is_small = held.size() <= MAX_READY_BYTES;
        let batches = self.batches.into_iter().map(move |batch| {
            let bytes = batch.get_array_memory_size();
            let laid_out = layout.apply(batch, &target);
            held.shrink(bytes);
            laid_out
        });
        let stream = if is_small {
            BatchStream::from_batches(SchemaRef::clone(&schema), batches.collect::<Result<_>>()?)
        } else {
            BatchStream::new(SchemaRef::clone(&schema), futures::stream::iter(batches).boxed())
        };
        let (rows, progress) = (u64::try_from(rows).ok(), ProgressMeter::default());
        Ok(Execution { schema, streams: vec![stream], ordered: true, rows, progress, opening: None })
    }
}
