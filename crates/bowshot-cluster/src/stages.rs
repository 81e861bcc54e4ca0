//! `system.query_stages`: the stages of statements that this node runs on several nodes.

use crate::membership::Member;
use bowshot_api::{Error, QueryId};
use bowshot_query_task::QueryTask;
use datafusion::arrow::array::{ArrayRef, StringArray, TimestampMicrosecondArray, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_distributed::{NetworkBoundaryExt, NetworkBroadcastExec, NetworkShuffleExec};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Plans that run on several nodes now.
#[derive(Debug, Clone, Default)]
pub struct QueryStages(Arc<Mutex<Plans>>);

#[derive(Debug, Default)]
struct Plans {
    next: u64,
    running: BTreeMap<u64, Running>,
}

#[derive(Debug)]
struct Running {
    query: Option<QueryId>,
    started: SystemTime,
    stages: Vec<Stage>,
}

#[derive(Debug)]
struct Stage {
    number: usize,
    /// A node for each task.
    nodes: Vec<String>,
    /// How its rows are exchanged.
    exchange: &'static str,
    /// Its operators, the last one first.
    operators: String,
}

impl QueryStages {
    /// A row for each task of each stage.
    pub fn rows(&self) -> bowshot_api::Result<RecordBatch> {
        let plans = self.0.lock();
        let mut tasks = Vec::new();
        for run in plans.running.values() {
            for stage in &run.stages {
                tasks.extend(stage.nodes.iter().enumerate().map(|(task, node)| (run, stage, task, node)));
            }
        }
        let number = |of: usize| u64::try_from(of).unwrap_or(u64::MAX);
        let starts = tasks.iter().map(|(run, ..)| micros(run.started));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(
                tasks.iter().map(|(run, ..)| run.query.map(|id| id.to_string())).collect::<StringArray>(),
            ),
            Arc::new(UInt64Array::from_iter_values(tasks.iter().map(|(_, stage, ..)| number(stage.number)))),
            Arc::new(UInt64Array::from_iter_values(tasks.iter().map(|(_, _, task, _)| number(*task)))),
            Arc::new(tasks.iter().map(|(_, _, _, node)| Some(node.as_str())).collect::<StringArray>()),
            Arc::new(tasks.iter().map(|(_, stage, ..)| Some(stage.exchange)).collect::<StringArray>()),
            Arc::new(tasks.iter().map(|(_, stage, ..)| Some(&*stage.operators)).collect::<StringArray>()),
            Arc::new(TimestampMicrosecondArray::from_iter_values(starts).with_timezone("+00:00")),
        ];
        RecordBatch::try_new(Arc::new(Self::schema()), columns)
            .map_err(|error| Error::internal("the stages do not fit their table").with_source(error))
    }

    /// The columns of those rows.
    #[must_use]
    pub fn schema() -> Schema {
        let text = |name: &str, nullable| Field::new(name, DataType::Utf8, nullable);
        let count = |name: &str| Field::new(name, DataType::UInt64, false);
        let started = DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()));
        Schema::new(vec![
            text("query_id", true),
            count("stage"),
            count("task"),
            text("node", false),
            text("exchange", false),
            text("operators", false),
            Field::new("started", started, false),
        ])
    }

    /// Records a running plan of the current statement until the returned value is dropped.
    pub(crate) fn note(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        members: &[Member],
        myself: &str,
    ) -> Result<Noted> {
        let stages = stages(plan, members, myself)?;
        let query = QueryTask::current().and_then(|job| job.query());
        let run = Running { query, started: SystemTime::now(), stages };
        let mut plans = self.0.lock();
        let key = plans.next;
        plans.next += 1;
        plans.running.insert(key, run);
        Ok(Noted { of: self.clone(), key })
    }
}

/// A running plan.
pub(crate) struct Noted {
    of: QueryStages,
    key: u64,
}

bowshot_api::debug_fields!(Noted { key });

impl Drop for Noted {
    fn drop(&mut self) {
        let mut plans = self.of.0.lock();
        plans.running.remove(&self.key);
    }
}

/// The stages of a plan; the last one runs on this node.
fn stages(plan: &Arc<dyn ExecutionPlan>, members: &[Member], myself: &str) -> Result<Vec<Stage>> {
    let mut found = vec![Stage {
        number: 0,
        nodes: vec![myself.to_owned()],
        exchange: "client",
        operators: operators(plan)?,
    }];
    plan.apply(|node| {
        if let Some(boundary) = node.as_network_boundary() {
            let stage = boundary.input_stage();
            let exchange = if node.is::<NetworkShuffleExec>() {
                "shuffle"
            } else if node.is::<NetworkBroadcastExec>() {
                "broadcast"
            } else {
                "coalesce"
            };
            let all = members.iter().map(|member| member.address.as_str()).cycle();
            let nodes = match stage.task_count() {
                1 => vec![myself.to_owned()],
                count => all.take(count).map(str::to_owned).collect(),
            };
            let operators = match node.children().first() {
                Some(child) => operators(child)?,
                None => String::new(),
            };
            found.push(Stage { number: stage.num(), nodes, exchange, operators });
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// The operators of a stage, from its root down to its input stages.
fn operators(stage: &Arc<dyn ExecutionPlan>) -> Result<String> {
    let mut names: Vec<String> = Vec::new();
    stage.apply(|node| {
        if node.is_network_boundary() {
            return Ok(TreeNodeRecursion::Jump);
        }
        let name = node.name().trim_end_matches("Exec");
        if names.last().is_none_or(|last| last != name) {
            names.push(name.to_owned());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(names.join(", "))
}

fn micros(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
