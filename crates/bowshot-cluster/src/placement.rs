//! Whether a plan runs on several nodes, and on which: if it reads enough, and everything that would leave can be encoded
//! ([`bowshot_engine::plan_codec`]). Rows in memory stay here, in a stage with one task. Scalar subqueries are computed first, each placed by
//! itself.

use crate::channels::{ANSWER_TIMEOUT, Channels, CoordinatorChannels};
use crate::connection_error::is_connection_lost;
use crate::endpoint_sink::EndpointSink;
use crate::endpoints::{PlacedEndpoints, Reach};
use crate::file_splitting;
use crate::membership::{Cluster, Member};
use crate::node_url::{is_loopback, node_url};
use crate::signed_tickets::SignedTicket;
use crate::stages::QueryStages;
use crate::task_codec::TaskCodec;
use crate::worker;
use async_trait::async_trait;
use bowshot_api::{BatchStream, Error, ErrorKind, Principal, QueryId};
use bowshot_engine::WeakEngine;
use bowshot_engine::distribution::{Distribution, Placed, PlanOnNodes, not_here};
use bowshot_engine::endpoints::{ResultEndpoints, Spread};
use bowshot_engine::plan_codec::PlanCodec;
use bowshot_files::plan_codec::{is_portable, scanned_bytes};
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, plan_datafusion_err};
use datafusion::error::DataFusionError;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{SessionState, SessionStateBuilder, TaskContext};
use datafusion::logical_expr::{EmptyRelation, LogicalPlan};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, Partitioning, ReplaceChildrenOptions,
};
use datafusion::prelude::SessionConfig;
use datafusion_distributed::{
    BroadcastExec, DesiredTaskCountEvent, DesiredTaskCountEventResponse, DistributedExec, DistributedExt,
    DistributedLeafExec, NetworkBoundary, NetworkBoundaryExt, NetworkCoalesceExec, RouteTasksEvent,
    RouteTasksEventResponse, RouteTasksHandler, SessionStateBuilderExt, Worker, WorkerResolver,
    display_plan_ascii,
};
use futures::future::{BoxFuture, FutureExt, join_all};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;
use url::Url;
use uuid::Uuid;

/// Partitions must not take files of others: each task has its own.
const NO_STEALING: (&str, &str) = ("datafusion.execution.enable_file_stream_work_stealing", "false");

/// Settings of placement.
#[derive(Debug, Clone)]
pub struct Placement {
    /// Bytes of files for each thread of a node above which a scan uses other nodes.
    pub bytes_per_thread: usize,
    /// Most open files of other nodes' scans.
    pub max_open_files: usize,
}

/// The nodes of the cluster, as this one sees them.
pub(crate) struct Nodes {
    engine: WeakEngine,
    cluster: Cluster,
    channels: Arc<Channels>,
    worker: Worker,
    portable: PlanCodec,
    placement: Placement,
    stages: QueryStages,
    /// The context of tasks on other nodes, for the options of the last session.
    part: Mutex<Option<CachedContext>>,
}

type Options = Vec<(String, String)>;
type CachedContext = (Options, Arc<TaskContext>);

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nodes").field("members", &self.cluster.members()).finish_non_exhaustive()
    }
}

impl Nodes {
    pub(crate) fn new(
        engine: WeakEngine,
        (cluster, channels): (Cluster, Arc<Channels>),
        (worker, portable): (Worker, PlanCodec),
        (placement, stages): (Placement, QueryStages),
    ) -> Self {
        Self { engine, cluster, channels, worker, portable, placement, stages, part: Mutex::default() }
    }

    async fn on_nodes(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        state: &SessionState,
        (members, spread): (&[Member], Option<&Spread>),
    ) -> Result<Option<PlanOnNodes>> {
        let Some(engine) = self.engine.upgrade() else { return Ok(None) };
        let mut options = engine.own_options(state);
        options.push((NO_STEALING.0.to_owned(), NO_STEALING.1.to_owned()));
        let part = self.part(&engine, options.clone())?;
        let mut config = self.config(state, (options, &part), members)?;
        let Some(plan) = self.split(Arc::clone(plan), &config, (state, &part)).await? else {
            return Ok(None);
        };
        let (plan, endpoints) = match spread.and_then(|spread| self.spread(&plan, members, spread)) {
            Some((plan, endpoints)) => (plan, Some(endpoints)),
            None => (plan, None),
        };
        // If only subqueries run on several nodes, the rest may have several partitions.
        let plan = match plan.properties().partitioning.partition_count() {
            1 => plan,
            _ => Arc::new(CoalescePartitionsExec::new(plan)),
        };
        let shown = display_plan_ascii(plan.as_ref(), false);
        let runtime = Arc::clone(state.runtime_env());
        // The context lives as long as the plan runs.
        let noted = self.stages.note(&plan, members, &self.cluster.myself().address)?;
        config.set_extension(Arc::new(noted));
        let none = (HashMap::new(), HashMap::new(), HashMap::new(), HashMap::new());
        let id = state.session_id().to_owned();
        let context = TaskContext::new(None, id, config, none.0, none.1, none.2, none.3, runtime);
        let nodes = members.iter().map(|member| member.address.clone()).collect();
        Ok(Some(PlanOnNodes { plan, context: Arc::new(context), nodes, shown, endpoints }))
    }

    /// The plan whose rows stay on the nodes of its last stage, if clients can reach these, and there are not more nodes
    /// than the client wants endpoints.
    fn spread(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        members: &[Member],
        spread: &Spread,
    ) -> Option<(Arc<dyn ExecutionPlan>, Arc<dyn ResultEndpoints>)> {
        let run = Uuid::new_v4();
        let (plan, tasks) =
            with_sinks(plan, |stage| Arc::new(EndpointSink::new(stage, run, spread.handout.clone())))?;
        let nodes: Vec<Member> = members.iter().take(tasks).cloned().collect();
        let are_reached = nodes.iter().all(|node| !node.public.is_empty());
        if !are_reached || !(2..=spread.most).contains(&tasks) || nodes.len() != tasks {
            return None;
        }
        let reach = self.reach();
        Some((plan, Arc::new(PlacedEndpoints::new(reach, run, spread.handout.clone(), nodes))))
    }

    fn reach(&self) -> Reach {
        let (cluster, channels) = (self.cluster.clone(), Arc::clone(&self.channels));
        Reach { cluster, channels, engine: self.engine.clone() }
    }

    /// The context of tasks on other nodes for these options.
    fn part(&self, engine: &bowshot_engine::Engine, options: Options) -> Result<Arc<TaskContext>> {
        let mut last = self.part.lock();
        if let Some((of, context)) = last.as_ref()
            && *of == options
        {
            return Ok(Arc::clone(context));
        }
        let state =
            engine.state_of_part(SessionStateBuilder::new(), &options, worker::copy_distributed_options)?;
        let context = state.task_ctx();
        *last = Some((options, Arc::clone(&context)));
        Ok(context)
    }

    fn config(
        &self,
        state: &SessionState,
        (options, part): (Options, &Arc<TaskContext>),
        members: &[Member],
    ) -> Result<SessionConfig> {
        let urls = members.iter().map(|member| node_url(&member.address)).collect::<Result<Vec<_>>>()?;
        let myself = node_url(&self.cluster.myself().address)?;
        let is_one_machine = urls.iter().all(is_loopback);
        let places = TaskRouting { all: urls.clone(), myself: myself.clone() };
        let outgoing = CoordinatorChannels {
            channels: Arc::clone(&self.channels),
            portable: self.portable.clone(),
            context: Arc::clone(part),
        };
        let mut config = state
            .config()
            .clone()
            .with_distributed_worker_resolver(Workers(urls))
            .with_distributed_channel_resolver(outgoing)
            .with_distributed_user_codec(TaskCodec(self.portable.clone()))
            .with_distributed_local_worker_context(self.worker.to_local_worker_context(myself))
            .with_distributed_desired_task_count_handler(one_partition_in_one_task)
            .with_distributed_scale_up_leaf_node_handler(file_splitting::split_files)
            .with_distributed_route_tasks_handler(places)
            .with_distributed_passthrough_headers(worker::header(&options)?)?
            .with_distributed_file_scan_config_bytes_per_partition(self.placement.bytes_per_thread)?;
        config.options_mut().set(NO_STEALING.0, NO_STEALING.1)?;
        match is_one_machine {
            // Compression would cost a fifth of the processor time, and save nothing on one machine.
            true => config.with_distributed_compression(None),
            false => Ok(config),
        }
    }

    /// Splits the plan into stages on several nodes; `None` if that gains nothing.
    fn split<'a>(
        &'a self,
        plan: Arc<dyn ExecutionPlan>,
        config: &'a SessionConfig,
        (state, part): (&'a SessionState, &'a Arc<TaskContext>),
    ) -> BoxFuture<'a, Result<Option<Arc<dyn ExecutionPlan>>>> {
        async move {
            if plan.is::<ScalarSubqueryExec>() {
                return self.split_each(plan, config, (state, part)).await;
            }
            let mut config = config.clone();
            // Inputs of a union may run on any node, but rows in memory may not.
            if plan.exists(|node| Ok(node.is::<UnionExec>()))? && !all_portable(&plan)? {
                config = config.with_distributed_children_isolator_unions(false)?;
            }
            let planner = SessionStateBuilder::new()
                .with_config(config)
                .with_runtime_env(Arc::clone(state.runtime_env()))
                .with_query_planner(Arc::new(FixedPlan(Arc::clone(&plan))))
                .with_distributed_planner()
                .build();
            let nothing = LogicalPlan::EmptyRelation(EmptyRelation {
                produce_one_row: false,
                schema: Arc::new(DFSchema::empty()),
            });
            let split = planner.query_planner().create_physical_plan(&nothing, &planner).await?;
            if !split.exists(|node| Ok(node.is::<DistributedExec>()))? {
                return Ok(None);
            }
            if plan.exists(|node| Ok(node.is::<ScalarSubqueryExec>()))? {
                return Err(plan_datafusion_err!("a subquery inside it must be evaluated first"));
            }
            // The last stage stays here, without the plans of earlier stages.
            by_itself(Arc::clone(&split))?;
            for stage in stages(&split)? {
                let stays = |error| DataFusionError::External(Box::new(error));
                self.portable.check(&by_itself(stage)?, part).map_err(stays)?;
            }
            Ok(Some(split))
        }
        .boxed()
    }

    /// Splits the plan and each of its scalar subqueries.
    async fn split_each(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &SessionConfig,
        (state, part): (&SessionState, &Arc<TaskContext>),
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let (mut children, mut any) = (Vec::new(), false);
        for child in plan.children() {
            let split = self.split(Arc::clone(child), config, (state, part)).await?;
            any |= split.is_some();
            children.push(split.unwrap_or_else(|| Arc::clone(child)));
        }
        let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        if any { plan.replace_children(children, recompute).map(Some) } else { Ok(None) }
    }
}

#[async_trait]
impl Distribution for Nodes {
    fn is_active(&self) -> bool {
        self.cluster.workers().len() > 1
    }

    async fn place(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        state: &SessionState,
        spread: Option<&Spread>,
    ) -> Placed {
        let members = self.cluster.workers();
        let threads = state.config().target_partitions();
        let least = (self.placement.bytes_per_thread as u64).saturating_mul(threads as u64);
        if members.len() < 2 {
            return Placed::Here(None);
        }
        if scanned(plan) <= least {
            return Placed::Here(Some("it reads too little data to gain from more nodes".to_owned()));
        }
        match self.on_nodes(plan, state, (&members, spread)).await {
            Ok(Some(plan)) => Placed::OnNodes(plan),
            Ok(None) => Placed::Here(Some("no part of it gains from more".to_owned())),
            Err(error) => Placed::Here(Some(reason(&error))),
        }
    }

    async fn lost(&self, plan: &Placed, error: &Error) -> bool {
        let Placed::OnNodes(plan) = plan else { return false };
        if !matches!(error.kind(), ErrorKind::Internal | ErrorKind::Unavailable) {
            return false;
        }
        let myself = self.cluster.myself().address;
        let others = plan.nodes.iter().filter(|address| **address != myself);
        let lost = join_all(others.map(|address| self.is_lost(address))).await.into_iter().any(|lost| lost);
        // The node may be back, but the rows in transit are lost.
        lost || is_connection_lost(error)
    }

    async fn redeem(
        &self,
        principal: &Principal,
        (query, index): (QueryId, usize),
        ticket: &[u8],
    ) -> Result<BatchStream, Error> {
        let index = u32::try_from(index).map_err(|_| not_here(query))?;
        let asked = (query, index, principal);
        let ticket = SignedTicket::check(&self.cluster, ticket, asked, SystemTime::now());
        self.reach().rows(ticket.ok_or_else(|| not_here(query))?, principal).await
    }
}

impl Nodes {
    /// Whether a node with tasks is lost. Others may have noticed before.
    async fn is_lost(&self, address: &str) -> bool {
        if !self.cluster.workers().iter().any(|member| member.address == address) {
            return true;
        }
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, self.cluster.connect(address)).await;
        let lost = !matches!(answer, Ok(Ok(_)));
        if lost {
            self.cluster.report_failure(address);
            self.channels.forget(address);
        }
        lost
    }
}

/// The reason why a plan stays here.
fn reason(error: &DataFusionError) -> String {
    match error.find_root() {
        DataFusionError::External(inner) => match inner.downcast_ref::<Error>() {
            Some(error) => error.message().to_owned(),
            None => inner.to_string(),
        },
        DataFusionError::Plan(message) => message.clone(),
        // Internal errors of DataFusion end with an address for reports.
        other => {
            let said = other.strip_backtrace();
            let said = said.lines().next().unwrap_or_default();
            format!("it cannot be cut into stages ({})", said.trim_end_matches('.'))
        }
    }
}

/// Bytes of the files that a plan reads.
fn scanned(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    let mut bytes: u64 = 0;
    let walked = plan.apply(|node| {
        bytes = bytes.saturating_add(scanned_bytes(node.as_ref()).unwrap_or(0));
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_or(0, |_| bytes)
}

fn all_portable(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let stays = plan.exists(|node| Ok(node.children().is_empty() && !is_portable(node.as_ref())))?;
    Ok(!stays)
}

/// The plan with an operator on top of its last distributed stage, and the number of its tasks. `None` if the coordinating
/// node does more than collect its rows.
fn with_sinks(
    plan: &Arc<dyn ExecutionPlan>,
    sink: impl FnOnce(Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan>,
) -> Option<(Arc<dyn ExecutionPlan>, usize)> {
    let only_child = |plan: &Arc<dyn ExecutionPlan>| match plan.children().as_slice() {
        [child] => Some(Arc::clone(child)),
        _ => None,
    };
    let with_child = |plan: Arc<dyn ExecutionPlan>, child| {
        let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        plan.replace_children(vec![child], recompute).ok()
    };
    let head = plan.is::<DistributedExec>().then(|| only_child(plan))??;
    let collects = head.downcast_ref::<CoalescePartitionsExec>()?.fetch().is_none();
    let boundary = collects.then(|| only_child(&head))??;
    let tasks = boundary.downcast_ref::<NetworkCoalesceExec>()?.input_stage().task_count();
    let stage = only_child(&boundary)?;
    let boundary = with_child(boundary, sink(stage))?;
    let plan = with_child(Arc::clone(plan), with_child(head, boundary)?)?;
    Some((plan, tasks))
}

/// The plans of all stages but the last one.
fn stages(plan: &Arc<dyn ExecutionPlan>) -> Result<Vec<Arc<dyn ExecutionPlan>>> {
    let mut stages = Vec::new();
    plan.apply(|node| {
        if node.is_network_boundary() {
            stages.extend(node.children().into_iter().map(Arc::clone));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(stages)
}

/// A stage as its tasks see it: earlier stages have only their schema and partitioning, and rows that stay here are
/// empty.
fn by_itself(stage: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let by_itself = stage.transform_down(|node| {
        if let Some(leaf) = node.downcast_ref::<DistributedLeafExec>()
            && let Some(first) = leaf.variants().first()
        {
            return Ok(Transformed::new(Arc::clone(first), true, TreeNodeRecursion::Jump));
        }
        let boundary = node.is_network_boundary();
        if !boundary && (!node.children().is_empty() || is_portable(node.as_ref())) {
            return Ok(Transformed::no(node));
        }
        Ok(Transformed::new(no_rows(&node)?, true, TreeNodeRecursion::Jump))
    });
    by_itself.data()
}

/// An empty plan with the schema and partitioning of an operator. The partitioning matters: two inputs with the same hash
/// partitioning may be joined partition by partition.
fn no_rows(node: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let partitioning = &node.properties().partitioning;
    let empty = EmptyExec::new(node.schema());
    Ok(match partitioning {
        Partitioning::Hash(..) => Arc::new(RepartitionExec::try_new(Arc::new(empty), partitioning.clone())?),
        _ => Arc::new(empty.with_partitions(partitioning.partition_count())),
    })
}

/// One partition is one task. A plan has one partition where an operator needs all rows: to
/// count, number, sort or limit them, or to group them without a repartition. In several
/// tasks each would do so with its own rows. Only a broadcast may be one partition in each. A leaf that
/// cannot be encoded is read in one task on this node.
fn one_partition_in_one_task(
    event: DesiredTaskCountEvent<'_>,
) -> Option<Result<DesiredTaskCountEventResponse>> {
    let plan = event.plan;
    let handed_to_all = plan.is::<CoalescePartitionsExec>()
        && plan.children().first().is_some_and(|child| child.is::<BroadcastExec>());
    let one = plan.properties().partitioning.partition_count() == 1 && !handed_to_all;
    let stays = plan.children().is_empty() && !is_portable(plan.as_ref());
    (one || stays).then(|| Ok(DesiredTaskCountEventResponse::maximum(1)))
}

/// A task of a stage always goes to the same node, which may have its columns in memory. A single task
/// runs on this node, whose rows in memory it may read.
#[derive(Debug)]
struct TaskRouting {
    all: Vec<Url>,
    myself: Url,
}

impl RouteTasksHandler for TaskRouting {
    fn handle(&self, event: RouteTasksEvent<'_>) -> Option<Result<RouteTasksEventResponse>> {
        let urls = match event.task_count {
            1 => vec![self.myself.clone()],
            count => self.all.iter().cycle().take(count).cloned().collect(),
        };
        Some(Ok(RouteTasksEventResponse::new(urls)))
    }
}

/// The nodes that a plan was placed on.
struct Workers(Vec<Url>);

impl WorkerResolver for Workers {
    fn get_urls(&self) -> Result<Vec<Url>> {
        Ok(self.0.clone())
    }
}

/// Returns a plan that exists already.
#[derive(Debug)]
struct FixedPlan(Arc<dyn ExecutionPlan>);

#[async_trait]
impl QueryPlanner for FixedPlan {
    async fn create_physical_plan(
        &self,
        _logical_plan: &LogicalPlan,
        _session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::clone(&self.0))
    }
}
