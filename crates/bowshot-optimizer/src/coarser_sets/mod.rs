//! Grouping sets from the groups of the finest one. For `GROUP BY ROLLUP (a, b)` DataFusion groups every row three times; here rows
//! are grouped by (a, b), and those groups, with the states of their aggregates, by the coarser sets: each from the one before where they
//! are within one another ([`rollup`]), else all from the finest one.

mod rollup;

use crate::common_subplans::SharedWork;
use crate::floats::extreme_in_order;
use crate::join_order::statistics::Facts;
use crate::node_rule::Replacement;
use datafusion::arrow::array::{ArrayRef, BooleanArray, new_null_array};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::config::ConfigOptions;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    EquivalenceProperties, GroupsAccumulatorAdapter, Partitioning, PhysicalExpr,
};
use datafusion::physical_plan::aggregates::{
    AggregateExec, AggregateMode, PhysicalGroupBy, evaluate_group_by,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use futures::stream::{self, StreamExt, TryStreamExt};
use std::fmt;
use std::sync::Arc;

/// Aggregates whose answer does not depend on the order of rows. Those that look for the first, most frequent or a middle value
/// are left out, also where they only estimate it.
const MERGEABLE: [&str; 19] = [
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "corr",
    "count",
    "covar_pop",
    "covar_samp",
    "max",
    "min",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "sum",
    "var",
    "var_pop",
    "var_samp",
];
/// Keys of grouping sets of which few combinations are expected, where nothing is known of them.
const MOST_KEYS: usize = 4;
const ROWS_OF_A_GROUP: f64 = 4.0;

/// Must run before `grouping_sets`, which hides the properties of the grouping sets that are left.
pub(super) fn from_finest_set(node: &Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Replacement {
    if !config.extensions.get::<SharedWork>().is_some_and(|wanted| wanted.grouping_sets) {
        return Ok(None);
    }
    Ok(node.downcast_ref::<AggregateExec>().map(from_finest).transpose()?.flatten())
}

/// The first step of an aggregation by sets as three: groups of the finest set, one row for each of them and each set, groups of
/// all sets. `None` for other aggregations, and where the sets have no finest one or states cannot be put together.
fn from_finest(partial: &AggregateExec) -> Replacement {
    let sets = partial.group_expr();
    let has_finest = sets.groups().iter().any(|set| set.iter().all(|left_out| !left_out));
    if *partial.mode() != AggregateMode::Partial
        || !sets.has_grouping_set()
        || sets.expr().is_empty()
        || sets.groups().len() < 2
        || !has_finest
        || partial.limit_options().is_some()
        || !partial.aggr_expr().iter().all(|function| is_mergeable(function))
    {
        return Ok(None);
    }
    let order = rollup::order(sets);
    if order.is_none() && !has_few_groups(partial) {
        return Ok(None);
    }
    let functions = partial.aggr_expr().to_vec();
    let without_rows = states_without_rows(&functions, &partial.input_schema())?;
    let finest = AggregateExec::try_new(
        AggregateMode::Partial,
        PhysicalGroupBy::new_single(sets.expr().to_vec()),
        functions.clone(),
        partial.filter_expr().to_vec(),
        Arc::clone(partial.input()),
        partial.input_schema(),
    )?;
    let columns = sets.expr().iter().enumerate().map(|(at, (_, name))| {
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(name, at));
        (column, name.clone())
    });
    let of_columns =
        PhysicalGroupBy::new(columns.collect(), sets.null_expr().to_vec(), sets.groups().to_vec(), true);
    if let Some(order) = order {
        // Rules that look for aggregations do not see these.
        let in_order = functions.iter().map(|function| {
            let in_order = extreme_in_order(function, partial.input_schema())?;
            Ok(in_order.unwrap_or_else(|| Arc::clone(function)))
        });
        let functions = in_order.collect::<Result<_>>()?;
        let (input_schema, schema) = (partial.input_schema(), partial.schema());
        let sets = rollup::Sets { sets: of_columns, order, functions, without_rows, input_schema, schema };
        return Ok(Some(Arc::new(rollup::GroupsOfSets::new(Arc::new(finest), Arc::new(sets)))));
    }
    let rows = RowsOfSets::new(Arc::new(finest), Arc::new(of_columns), without_rows, partial.schema());
    let filters = vec![None; functions.len()];
    let of_all_sets = AggregateExec::try_new(
        AggregateMode::PartialReduce,
        sets.as_final(),
        functions,
        filters,
        Arc::new(rows),
        partial.input_schema(),
    )?;
    Ok((of_all_sets.schema() == partial.schema()).then(|| Arc::new(of_all_sets) as Arc<_>))
}

/// Whether the states of an aggregate give the same answer in whatever steps they are put together.
pub(crate) fn is_mergeable(function: &AggregateFunctionExpr) -> bool {
    MERGEABLE.contains(&function.fun().name()) && !function.is_distinct() && function.order_bys().is_empty()
}

/// What has the states of an aggregate for all groups.
pub(crate) fn accumulator_of_groups(
    function: &Arc<AggregateFunctionExpr>,
) -> Result<Box<dyn GroupsAccumulator>> {
    if function.groups_accumulator_supported() {
        return function.create_groups_accumulator();
    }
    let of_rows = Arc::clone(function);
    Ok(Box::new(GroupsAccumulatorAdapter::new(move || of_rows.create_accumulator())))
}

/// Whether there seem to be far fewer groups than rows: with as many, the step in between is work for nothing.
fn has_few_groups(partial: &AggregateExec) -> bool {
    let keys = partial.group_expr().expr();
    if keys.len() > MOST_KEYS {
        return false;
    }
    Facts::of(partial.input()).is_none_or(|input| {
        let groups: f64 = keys.iter().filter_map(|(key, _)| input.column(key).distinct).product();
        groups * ROWS_OF_A_GROUP <= input.rows
    })
}

/// The states of aggregates that have seen no row, as those that work by groups have them.
fn states_without_rows(
    functions: &[Arc<AggregateFunctionExpr>],
    schema: &SchemaRef,
) -> Result<Arc<[ArrayRef]>> {
    let mut states = Vec::new();
    let no_row = BooleanArray::from(vec![false]);
    for function in functions {
        let mut accumulator = accumulator_of_groups(function)?;
        let arguments = function.expressions();
        let arguments = arguments.iter().map(|argument| Ok(new_null_array(&argument.data_type(schema)?, 1)));
        let arguments = arguments.collect::<Result<Vec<_>>>()?;
        accumulator.update_batch(&arguments, &[0], Some(&no_row), 1)?;
        states.extend(accumulator.state(EmitTo::All)?);
    }
    Ok(states.into())
}

/// For each group of the finest set a row of each set, with NULL for what the set does not group by, and its number.
#[derive(Debug)]
struct RowsOfSets {
    input: Arc<dyn ExecutionPlan>,
    sets: Arc<PhysicalGroupBy>,
    /// The states of aggregates that have seen no row.
    without_rows: Arc<[ArrayRef]>,
    properties: Arc<PlanProperties>,
}

impl RowsOfSets {
    fn new(
        input: Arc<dyn ExecutionPlan>,
        sets: Arc<PhysicalGroupBy>,
        without_rows: Arc<[ArrayRef]>,
        schema: SchemaRef,
    ) -> Self {
        let known = input.properties();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            known.emission_type,
            known.boundedness,
        );
        Self { input, sets, without_rows, properties: Arc::new(properties) }
    }
}

impl DisplayAs for RowsOfSets {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupingSetsExec: sets={}", self.sets.groups().len())
    }
}

impl ExecutionPlan for RowsOfSets {
    fn name(&self) -> &'static str {
        "GroupingSetsExec"
    }

    bowshot_api::getters!(properties: &Arc<PlanProperties>);

    // The expressions are columns of the input, which no rule changes.
    crate::one_input!(input, |plan, input| Self::new(
        input,
        Arc::clone(&plan.sets),
        Arc::clone(&plan.without_rows),
        plan.schema(),
    ));

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let (schema, sets) = (self.schema(), Arc::clone(&self.sets));
        let rows = State { input, sets, without_rows: Arc::clone(&self.without_rows), seen: false };
        let batches = stream::try_unfold(Some(rows), {
            let schema = Arc::clone(&schema);
            move |rows| next(rows, Arc::clone(&schema))
        });
        let batches = batches.map_ok(|batches| stream::iter(batches.into_iter().map(Ok))).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

struct State {
    input: SendableRecordBatchStream,
    sets: Arc<PhysicalGroupBy>,
    without_rows: Arc<[ArrayRef]>,
    seen: bool,
}

/// The rows of all sets of the next batch. Behind the last one comes the grand total of no rows, which is a row too.
async fn next(state: Option<State>, schema: SchemaRef) -> Result<Option<(Vec<RecordBatch>, Option<State>)>> {
    let Some(mut state) = state else { return Ok(None) };
    while let Some(batch) = state.input.next().await {
        let batch = batch?;
        if batch.num_rows() == 0 {
            continue;
        }
        state.seen = true;
        return Ok(Some((of_sets(&batch, &state.sets, &schema, |_| true)?, Some(state))));
    }
    if state.seen {
        return Ok(None);
    }
    let nothing = no_rows(&state.without_rows, &schema, state.sets.expr().len())?;
    let is_total = |set: &[bool]| set.iter().all(|left_out| *left_out);
    Ok(Some((of_sets(&nothing, &state.sets, &schema, is_total)?, None)))
}

fn of_sets(
    batch: &RecordBatch,
    sets: &PhysicalGroupBy,
    schema: &SchemaRef,
    wanted: impl Fn(&[bool]) -> bool,
) -> Result<Vec<RecordBatch>> {
    let states = batch.columns().get(sets.expr().len()..).unwrap_or_default();
    let keys = evaluate_group_by(sets, batch)?.into_iter().zip(sets.groups());
    let wanted = keys.filter(|(_, set)| wanted(set));
    let rows = wanted.map(|(keys, _)| {
        let columns = keys.into_iter().chain(states.iter().cloned()).collect();
        RecordBatch::try_new(Arc::clone(schema), columns).map_err(DataFusionError::from)
    });
    rows.collect()
}

fn no_rows(states: &[ArrayRef], schema: &SchemaRef, keys: usize) -> Result<RecordBatch> {
    let fields = schema.fields();
    let of_keys = fields.iter().take(keys).map(|field| new_null_array(field.data_type(), 1));
    let columns: Vec<ArrayRef> = of_keys.chain(states.iter().cloned()).collect();
    // The number of the set stands between the two.
    let fields = fields.iter().enumerate().filter(|(at, _)| *at != keys);
    let fields: Vec<_> = fields.map(|(_, field)| field.as_ref().clone().with_nullable(true)).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_sessions::{answer, session};
    use datafusion::arrow::array::{Decimal128Array, Float64Array, Int64Array, StringArray};
    use datafusion::datasource::MemTable;
    use datafusion::physical_plan::displayable;
    use datafusion::prelude::{SessionConfig, SessionContext};

    /// A table with NULLs in its keys and values, in three partitions of which one is empty.
    fn context(grouping_sets: bool) -> SessionContext {
        let wanted = SharedWork { grouping_sets, ..SharedWork::default() };
        let config = SessionConfig::new().with_target_partitions(3).with_option_extension(wanted);
        let context = session(config, crate::physical(false));
        let part = |from: i64, to: i64| {
            let keys = (from..to).map(|n| (n % 5 > 0).then_some(n % 5));
            let names = (from..to).map(|n| (n % 7 > 0).then(|| format!("name {}", n % 3)));
            let prices =
                Decimal128Array::from_iter((from..to).map(|n| (n % 4 > 0).then_some(i128::from(n) * 7)));
            let columns: Vec<(&str, ArrayRef)> = vec![
                ("a", Arc::new(Int64Array::from_iter(keys))),
                ("b", Arc::new(StringArray::from_iter(names))),
                ("price", Arc::new(prices.with_precision_and_scale(9, 2).unwrap())),
                ("x", Arc::new(Float64Array::from_iter((from..to).map(|n| (n % 9 > 0).then_some(n as f64))))),
            ];
            vec![
                RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true)))
                    .unwrap(),
            ]
        };
        let schema = part(0, 1)[0].schema();
        let parts = vec![part(0, 400), Vec::new(), part(400, 1_000)];
        context.register_table("t", Arc::new(MemTable::try_new(schema, parts).unwrap())).unwrap();
        context
    }

    #[tokio::test]
    async fn only_sets_with_a_finest_one_and_plain_aggregates() {
        for (query, expected) in [
            ("sum(x) FROM t GROUP BY ROLLUP (a, b)", true),
            ("sum(x) FROM t GROUP BY GROUPING SETS ((a), (b))", false),
            ("count(DISTINCT x) FROM t GROUP BY ROLLUP (a, b)", false),
            ("array_agg(x ORDER BY x) FROM t GROUP BY ROLLUP (a, b)", false),
            ("array_agg(x) FROM t GROUP BY ROLLUP (a, b)", false),
            ("sum(x) FROM t GROUP BY ROLLUP (a, b, x, price, x + 1)", true),
            ("sum(x) FROM t GROUP BY CUBE (a, b, x, price, x + 1)", false),
        ] {
            let frame = context(true).sql(&format!("SELECT a, b, {query}")).await;
            let Ok(frame) = frame else { continue };
            let plan = frame.create_physical_plan().await.unwrap();
            let shown = displayable(plan.as_ref()).indent(false).to_string();
            assert_eq!(shown.contains("GroupingSetsExec"), expected, "{shown}");
        }
    }

    #[tokio::test]
    async fn answers_are_those_of_all_sets_at_once() {
        let (one_by_one, at_once) = (context(true), context(false));
        let functions = "count(*), count(x), sum(x), avg(price), min(b), max(x), sum(x) FILTER (WHERE a > 2)";
        for rest in [
            "GROUP BY ROLLUP (a, b)",
            "WHERE x < 0 GROUP BY ROLLUP (a, b)",
            "WHERE x = 5 GROUP BY ROLLUP (b, a)",
            "GROUP BY ROLLUP (a, b, x, price, x + 1)",
            "GROUP BY GROUPING SETS ((a, b), (b), (b), ())",
            "WHERE x < 0 GROUP BY GROUPING SETS ((b, a), (), (a), ())",
            "GROUP BY CUBE (a, b)",
        ] {
            let sql = format!("SELECT a, b, grouping(a), grouping(b), {functions} FROM t {rest}");
            assert_eq!(answer(&one_by_one, &sql).await, answer(&at_once, &sql).await, "{sql}");
        }
    }
}
