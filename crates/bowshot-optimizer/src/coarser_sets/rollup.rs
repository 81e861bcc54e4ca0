//! Grouping sets of which each is within the one before, as those of ROLLUP are: the groups of each set are computed from those of the one
//! before, so that no row is hashed for more than one set. Groups of all sets leave the operator, each once in its partition.

use super::{no_rows, of_sets};
use datafusion::arrow::array::{ArrayRef, Int8Array, new_null_array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::aggregates::{
    AggregateExec, AggregateMode, PhysicalGroupBy, evaluate_group_by,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::lock::Mutex;
use futures::stream::{self, StreamExt, TryStreamExt};
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

/// The numbers of the sets from the finest one on, if each is within the one before.
pub(super) fn order(sets: &PhysicalGroupBy) -> Option<Vec<usize>> {
    let keys = |at: &usize| sets.groups().get(*at).map_or(0, |set| keys_of(set).len());
    let mut order: Vec<usize> = (0..sets.groups().len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(keys(at)));
    let is_within = |pair: &[usize]| match pair {
        [wide, narrow] => {
            let sets = sets.groups().get(*wide).zip(sets.groups().get(*narrow));
            sets.is_some_and(|(wide, narrow)| wide.iter().zip(narrow).all(|(wide, narrow)| !wide || *narrow))
        }
        _ => false,
    };
    order.windows(2).all(is_within).then_some(order)
}

fn keys_of(set: &[bool]) -> Vec<usize> {
    set.iter().enumerate().filter(|(_, left_out)| !**left_out).map(|(at, _)| at).collect()
}

/// The aggregation that all steps have in common.
#[derive(Debug)]
pub(super) struct Sets {
    pub(super) sets: PhysicalGroupBy,
    /// Of `sets`, from the finest one on.
    pub(super) order: Vec<usize>,
    pub(super) functions: Vec<Arc<AggregateFunctionExpr>>,
    /// The states of functions that have seen no row.
    pub(super) without_rows: Arc<[ArrayRef]>,
    /// What the functions read, once.
    pub(super) input_schema: SchemaRef,
    /// Keys, the number of the set, and states.
    pub(super) schema: SchemaRef,
}

/// For groups of the finest set, those of all sets.
#[derive(Debug)]
pub(super) struct GroupsOfSets {
    input: Arc<dyn ExecutionPlan>,
    sets: Arc<Sets>,
    properties: Arc<PlanProperties>,
}

impl GroupsOfSets {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, sets: Arc<Sets>) -> Self {
        let known = input.properties();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&sets.schema)),
            Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            known.emission_type,
            known.boundedness,
        );
        Self { input, sets, properties: Arc::new(properties) }
    }
}

impl DisplayAs for GroupsOfSets {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupingSetsExec: sets={}, each from the one before", self.sets.order.len())
    }
}

impl ExecutionPlan for GroupsOfSets {
    fn name(&self) -> &'static str {
        "GroupingSetsExec"
    }

    bowshot_api::getters!(properties: &Arc<PlanProperties>);

    // The expressions are columns of the input, which no rule changes.
    crate::one_input!(input, |plan, input| Self::new(input, Arc::clone(&plan.sets)));

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let finest = self.input.execute(partition, Arc::clone(&context))?;
        let steps = self.sets.steps(&finest.schema(), &context)?;
        let running = Running { finest: Some(finest), steps, sets: Arc::clone(&self.sets), seen: false };
        let batches = stream::try_unfold(running, |mut running| async move {
            let batches = running.next().await?;
            Ok::<_, DataFusionError>(batches.map(|batches| (batches, running)))
        });
        let batches = batches.map_ok(|batches| stream::iter(batches.into_iter().map(Ok))).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.sets.schema), batches)))
    }
}

impl Sets {
    /// The aggregations behind the finest one, each of which waits for groups of the one before.
    fn steps(&self, finest: &SchemaRef, context: &Arc<TaskContext>) -> Result<Vec<Step>> {
        let numbers = self.numbers()?;
        let states = self.sets.expr().len();
        let mut steps = Vec::with_capacity(self.order.len());
        for number in &self.order {
            let (Some(set), Some(id)) = (self.sets.groups().get(*number), numbers.get(*number)) else {
                return internal_err!("there is no set {number}");
            };
            let keys = keys_of(set);
            let of_keys = keys.iter().map(|at| Arc::clone(&finest.fields()[*at]));
            // Without keys all groups are one, by a key that they have in common: states of functions are those of groups then.
            let constant = keys.is_empty().then(|| Arc::new(Field::new("total", DataType::Int8, false)));
            let of_states = finest.fields().iter().skip(states).cloned();
            let fields: Vec<_> = of_keys.chain(constant).chain(of_states).collect();
            let feed = Arc::new(Feed::new(Arc::new(Schema::new(fields))));
            let rows =
                if steps.is_empty() { None } else { Some(self.step(&feed, keys.len().max(1), context)?) };
            steps.push(Step { keys, id: id.clone(), feed, rows });
        }
        Ok(steps)
    }

    fn step(
        &self,
        feed: &Arc<Feed>,
        keys: usize,
        context: &Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let schema = Arc::clone(&feed.schema);
        let keys = schema.fields().iter().take(keys).enumerate().map(|(at, field)| {
            (Arc::new(Column::new(field.name(), at)) as Arc<dyn PhysicalExpr>, field.name().clone())
        });
        let groups = AggregateExec::try_new(
            AggregateMode::PartialReduce,
            PhysicalGroupBy::new_single(keys.collect()),
            self.functions.clone(),
            vec![None; self.functions.len()],
            Arc::clone(feed) as Arc<dyn ExecutionPlan>,
            Arc::clone(&self.input_schema),
        )?;
        groups.execute(0, Arc::clone(context))
    }

    /// The number of each set, as the aggregation above tells them apart.
    fn numbers(&self) -> Result<Vec<ScalarValue>> {
        let row = no_rows(&self.without_rows, &self.schema, self.sets.expr().len())?;
        let sets = evaluate_group_by(&self.sets, &row)?;
        let numbers = sets.iter().map(|set| match set.last() {
            Some(number) => ScalarValue::try_from_array(number, 0),
            None => internal_err!("a grouping set has a number"),
        });
        numbers.collect()
    }
}

/// One set while its groups are computed.
struct Step {
    keys: Vec<usize>,
    id: ScalarValue,
    feed: Arc<Feed>,
    /// Its groups, until they have ended; the finest set has none here.
    rows: Option<SendableRecordBatchStream>,
}

/// What one look at a step gives.
enum Look {
    Groups(RecordBatch),
    End,
    /// It needs groups of the set before.
    Hungry,
}

impl Step {
    async fn look(&mut self) -> Result<Look> {
        let Some(rows) = &mut self.rows else { return Ok(Look::Hungry) };
        let feed = &self.feed;
        let look = poll_fn(|context| match rows.poll_next_unpin(context) {
            Poll::Ready(Some(batch)) => Poll::Ready(batch.map(Look::Groups)),
            Poll::Ready(None) => Poll::Ready(Ok(Look::End)),
            Poll::Pending if feed.is_empty() => Poll::Ready(Ok(Look::Hungry)),
            Poll::Pending => Poll::Pending,
        });
        let look = look.await?;
        if matches!(look, Look::End) {
            self.rows = None;
        }
        Ok(look)
    }

    fn leading(&self) -> usize {
        self.keys.len().max(1)
    }

    /// Groups of the set before as this one reads them.
    fn fed(&self, before: &Self, groups: &RecordBatch, is_finest: bool) -> Result<RecordBatch> {
        let states = if is_finest { before.keys.len() } else { before.leading() };
        let keys = self.keys.iter().map(|key| match before.keys.binary_search(key) {
            Ok(at) => Ok(Arc::clone(groups.column(at))),
            Err(_) => internal_err!("a set has a key that the one before it lacks"),
        });
        let mut columns = keys.collect::<Result<Vec<ArrayRef>>>()?;
        if columns.is_empty() {
            columns.push(Arc::new(Int8Array::from(vec![0; groups.num_rows()])));
        }
        columns.extend(groups.columns().iter().skip(states).cloned());
        Ok(RecordBatch::try_new(Arc::clone(&self.feed.schema), columns)?)
    }

    /// Groups of this set as all sets have them.
    fn shown(&self, groups: &RecordBatch, sets: &Sets, is_finest: bool) -> Result<RecordBatch> {
        let rows = groups.num_rows();
        let keys = sets.sets.expr().len();
        let states = if is_finest { keys } else { self.leading() };
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(sets.schema.fields().len());
        for (at, field) in sets.schema.fields().iter().take(keys).enumerate() {
            columns.push(match self.keys.binary_search(&at) {
                Ok(place) => Arc::clone(groups.column(place)),
                Err(_) => new_null_array(field.data_type(), rows),
            });
        }
        columns.push(self.id.to_array_of_size(rows)?);
        columns.extend(groups.columns().iter().skip(states).cloned());
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&sets.schema), columns, &options)?)
    }
}

struct Running {
    /// Groups of the finest set, until they have ended.
    finest: Option<SendableRecordBatchStream>,
    /// All sets, the finest one first.
    steps: Vec<Step>,
    sets: Arc<Sets>,
    seen: bool,
}

impl Running {
    /// Groups of some set. Each batch goes on to the next set, which has read what it had before, so no set has more than one waiting.
    async fn next(&mut self) -> Result<Option<Vec<RecordBatch>>> {
        'all: loop {
            for at in (1..self.steps.len()).rev() {
                if self.steps[at].rows.is_none() {
                    continue;
                }
                match self.steps[at].look().await? {
                    Look::Groups(groups) => return self.give(at, &groups).map(Some),
                    Look::End => {
                        self.end(at);
                        continue 'all;
                    }
                    Look::Hungry => {}
                }
            }
            let Some(finest) = &mut self.finest else { return self.totals() };
            match finest.next().await {
                Some(groups) => {
                    let groups = groups?;
                    if groups.num_rows() > 0 {
                        self.seen = true;
                        return self.give(0, &groups).map(Some);
                    }
                }
                None => {
                    self.finest = None;
                    self.end(0);
                }
            }
        }
    }

    fn give(&self, at: usize, groups: &RecordBatch) -> Result<Vec<RecordBatch>> {
        let step = &self.steps[at];
        if let Some(next) = self.steps.get(at + 1) {
            next.feed.push(next.fed(step, groups, at == 0)?)?;
        }
        Ok(vec![step.shown(groups, &self.sets, at == 0)?])
    }

    fn end(&self, at: usize) {
        if let Some(next) = self.steps.get(at + 1) {
            next.feed.sender.close_channel();
        }
    }

    /// The grand totals of no rows, which are rows too.
    fn totals(&mut self) -> Result<Option<Vec<RecordBatch>>> {
        if std::mem::replace(&mut self.seen, true) {
            return Ok(None);
        }
        let sets = &self.sets;
        let row = no_rows(&sets.without_rows, &sets.schema, sets.sets.expr().len())?;
        let is_total = |set: &[bool]| set.iter().all(|left_out| *left_out);
        let totals = of_sets(&row, &sets.sets, &sets.schema, is_total)?;
        Ok(if totals.is_empty() { None } else { Some(totals) })
    }
}

/// Batches that one set hands to the next, one at a time: both are polled by one task.
#[derive(Debug)]
struct Feed {
    sender: UnboundedSender<RecordBatch>,
    /// Until it is read.
    receiver: Mutex<Option<UnboundedReceiver<RecordBatch>>>,
    waiting: Arc<AtomicUsize>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl Feed {
    fn new(schema: SchemaRef) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let (sender, receiver) = unbounded();
        let receiver = Mutex::new(Some(receiver));
        Self { sender, receiver, waiting: Arc::default(), schema, properties: Arc::new(properties) }
    }

    fn push(&self, batch: RecordBatch) -> Result<()> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        match self.sender.unbounded_send(batch) {
            Ok(()) => Ok(()),
            Err(_) => internal_err!("groups of a grouping set have ended before those that they are made of"),
        }
    }

    /// Whether there is nothing to read, but may be later.
    fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) == 0 && !self.sender.is_closed()
    }
}

impl DisplayAs for Feed {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ExecutionPlan for Feed {
    fn name(&self) -> &'static str {
        "Feed"
    }

    bowshot_api::getters!(properties: &Arc<PlanProperties>);

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("groups of a set have no inputs") }
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, _partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let Some(receiver) = self.receiver.try_lock().and_then(|mut receiver| receiver.take()) else {
            return internal_err!("groups of a set are read once");
        };
        let waiting = Arc::clone(&self.waiting);
        let batches = receiver.map(move |batch| {
            waiting.fetch_sub(1, Ordering::Relaxed);
            Ok(batch)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches)))
    }
}
