//! What one session has in the engine: its settings, its own tables and its view of the catalogs. Makes plans ready to run.

pub(crate) mod authorization;
mod cacheable_plan;
pub(crate) mod copy_rows;
pub(crate) mod current_user;
pub(crate) mod distributed_query;
pub(crate) mod engine;
mod external_database;
pub(crate) mod key_lookup;
mod listing;
pub(crate) mod literal_query;
mod parameter_metadata;
mod pipe_rows;
mod plan_binding;
mod plan_cache;
mod plan_templates;
mod planning;
mod query;
pub(crate) mod row_keys;
mod scratch;
mod search_path;
mod sorted_joins;
mod statement_literals;
pub(crate) mod template;
pub(crate) mod transaction;
mod update_by_key;
pub(crate) mod utility;
pub(crate) mod view_rewriting;
mod visibility_group;
pub(crate) mod write;

use crate::authorize::AuthorizedPlan;
use crate::catalog::lazy_state::{LazyState, SpareState};
use crate::catalog::{CatalogParts, Visible};
use crate::distribution::Distribution;
use crate::error::classify;
use crate::execute::{Execution, Parallelism};
use crate::models;
use crate::plan::{self, parameters};
use crate::reuse::{Asked, Purpose, Reuse};
use crate::write::ddl::Stores;
use bowshot_api::{Error as ApiError, ErrorKind, Layout, Principal, Result};
use bowshot_optimizer::common_subplans::SharedWork;
use bowshot_policy::snapshot::Pinned;
use bowshot_policy::snapshot::commit::SessionTables;
use bowshot_policy::{SeenFiles, SessionAccess};
use bowshot_query_task::{QueryTask, run_blocking_if};
use bowshot_system_catalog::client::ClientSlot;
use bowshot_system_catalog::functions::sequences::GivenNumbers;
use bowshot_system_catalog::functions::{Facts, SeededRandom};
use bowshot_system_catalog::named_locks::SessionLocks;
use bowshot_types::result_metadata;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::config::{ConfigNonZeroUsize, ConfigOptions};
use datafusion::execution::SessionState;
use datafusion::execution::context::SessionContext;
use engine::{Shared, own_tables};
use futures::FutureExt;
use futures::future::BoxFuture;
use plan_cache::SessionPlans;
use query::Run;
use std::sync::Arc;
use tokio::task::{JoinError, block_in_place};

/// The engine's part of one session. Clones share all.
#[derive(Clone)]
pub struct EngineSession {
    context: SessionContext,
    shared: Arc<Shared>,
    principal: Principal,
    tables: Arc<SessionTables>,
    gate: Arc<SessionAccess>,
    client: ClientSlot,
    seeded: SeededRandom,
    locks: SessionLocks,
    numbers: GivenNumbers,
    scratch: bool,
    spare: Arc<SpareState>,
    plans: Arc<SessionPlans>,
    /// Whether it asks what somebody may ask later, and nobody has asked yet.
    ahead: bool,
}

impl std::fmt::Debug for EngineSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineSession").field("id", &self.context.session_id()).finish_non_exhaustive()
    }
}

impl EngineSession {
    pub(crate) fn new(
        context: SessionContext,
        principal: &Principal,
        tables: SessionTables,
        shared: Arc<Shared>,
    ) -> Self {
        let scratch = shared.scratch;
        current_user::functions(principal).into_iter().for_each(|function| context.register_udf(function));
        let (principal, tables, client) = (principal.clone(), Arc::new(tables), ClientSlot::default());
        let (spare, seeded) = (SpareState::new(&shared.spare_states), SeededRandom::default());
        let numbers = GivenNumbers::default();
        let (plans, locks) =
            (SessionPlans::new(&shared.plans, &principal.name), SessionLocks::new(&shared.locks));
        let gate = Arc::new(SessionAccess::new(&shared.access, &principal, &tables));
        if !scratch {
            models::functions_without_models().into_iter().for_each(|function| {
                context.register_udf(function.as_ref().clone());
            });
            bowshot_policy::user_attribute(&gate)
                .into_iter()
                .for_each(|function| context.register_udf(function));
            let facts = Facts {
                principal: principal.clone(),
                session_access: Arc::clone(&gate),
                tables: Arc::new(seen_parts(&shared, &gate)),
                client: client.clone(),
                seeded: seeded.clone(),
                locks: locks.clone(),
                numbers: numbers.clone(),
            };
            crate::catalog::table_functions::register(&context, &Arc::new(facts));
        }
        let ahead = false;
        Self {
            context,
            shared,
            principal,
            tables,
            gate,
            client,
            seeded,
            locks,
            numbers,
            scratch,
            spare,
            plans,
            ahead,
        }
    }

    /// Releases the locks that the session has taken.
    pub fn release_locks(&self) {
        self.locks.release_all();
    }

    /// Who is asked about settings and named statements.
    pub(crate) fn client(&self) -> &ClientSlot {
        &self.client
    }

    /// A session that asks ahead what one of `principal` would ask. It has no tables of its own.
    pub(crate) fn ahead(context: SessionContext, principal: &Principal, shared: &Arc<Shared>) -> Self {
        let tables = SessionTables::new(Arc::clone(&shared.parts.tables), own_tables(0));
        Self { ahead: true, ..Self::new(context, principal, tables, Arc::clone(shared)) }
    }

    /// Why its plans are looked at: what is asked ahead is no use of a join that counts.
    pub(crate) fn purpose(&self) -> Purpose {
        if self.ahead { Purpose::Show } else { Purpose::Run }
    }

    /// Whether its questions are remembered, to be asked ahead with the next tables.
    fn asks_again(&self) -> bool {
        !self.ahead && self.reuse().remembers_texts()
    }

    /// What a plan asks, if that is remembered.
    pub(crate) fn asked(&self, plan: &AuthorizedPlan, layout: Layout) -> Option<Asked> {
        let text = Arc::clone(plan.text().filter(|_| self.asks_again())?);
        let config = self.context.state_ref().read().config().clone();
        Some(Asked { text, principal: self.principal.clone(), config, layout })
    }

    /// The tables as they are now.
    pub fn pin(&self) -> Pinned {
        self.tables.pin()
    }

    /// The newest state of the tables, and what a transaction that began with `base` makes of it.
    ///
    /// # Errors
    /// `Conflict` when it has changed what another one has changed since.
    pub(crate) fn rebased(&self, base: &Pinned, changed: &Pinned) -> Result<[Pinned; 2]> {
        self.tables.rebased(base, changed)
    }

    /// Makes what a transaction has changed visible, all at once: to everybody, and of the session's own tables to itself; with it the
    /// materialized views that commits refresh. May block, since a commit may wait for the disk and for other commits: on the query
    /// runtime it does so where it is, and from elsewhere on a thread for that. Once begun, it goes on even if nobody waits for it.
    ///
    /// # Errors
    /// `Conflict` when another one was first, and where such a view cannot be refreshed.
    pub async fn commit(&self, base: &Pinned, changed: &Pinned) -> Result<()> {
        if base.is_same(changed) {
            return Ok(());
        }
        self.gate.check_commit(base)?;
        if !self.touches_views(base, changed) {
            match self.commit_as_is(base, changed).await {
                // A view may have come meanwhile.
                Err(error) if error.kind() == ErrorKind::Conflict && self.touches_views(base, changed) => {}
                done => return done,
            }
        }
        let (session, base, changed) = (self.clone(), base.clone(), changed.clone());
        // Its type would be too deep for those that wait for a commit.
        let work: BoxFuture<'static, _> =
            async move { session.commit_with_views(&base, &changed).await }.boxed();
        if self.shared.runtime.is_here() {
            return work.await;
        }
        let committed = match QueryTask::current() {
            Some(task) => self.shared.runtime.spawn(task.inside(work)),
            None => self.shared.runtime.spawn(work),
        };
        committed.await.unwrap_or_else(|error| Err(broken(error)))
    }

    async fn commit_as_is(&self, base: &Pinned, changed: &Pinned) -> Result<()> {
        let (tables, base, changed) = (Arc::clone(&self.tables), base.clone(), changed.clone());
        let commit = move || tables.commit(&base, &changed);
        if self.shared.runtime.is_here() {
            return block_in_place(commit);
        }
        let committed = self.shared.runtime.handle().spawn_blocking(commit);
        committed.await.unwrap_or_else(|error| Err(broken(error)))
    }

    pub(crate) fn visible(&self, pinned: &Pinned) -> Visible {
        let access = self.gate.access(pinned);
        let seen = self.gate.seen(pinned, &access);
        let parts = if access.is_everything() {
            self.shared.parts.clone()
        } else {
            seen_parts(&self.shared, &self.gate)
        };
        let tables = (seen, pinned.clone(), access);
        Visible::new(parts, self.principal.clone(), tables, self.context.clone()).with_client(
            self.client.clone(),
            &self.tables.pin(),
            &self.gate,
        )
    }

    /// What is kept of what was computed.
    pub(crate) fn reuse(&self) -> &Arc<dyn Reuse> {
        &self.shared.parts.reuse
    }

    pub(crate) fn distribution(&self) -> &dyn Distribution {
        self.shared.distribution()
    }

    pub(crate) fn stores(&self) -> Stores {
        Stores { shared: Arc::clone(&self.tables.shared), own: Arc::clone(&self.tables.own) }
    }

    /// [`Self::state`], when it is needed. Not for scratch sessions.
    pub(crate) fn lazy_state(&self, pinned: &Pinned) -> LazyState {
        LazyState::with_spare(self.visible(pinned), &self.spare)
    }

    pub(crate) fn options(&self) -> Arc<ConfigOptions> {
        Arc::clone(self.context.state_ref().read().config_options())
    }

    /// The session's settings with the catalogs of one moment.
    pub(crate) fn state(&self, pinned: &Pinned) -> SessionState {
        if self.scratch {
            return self.context.state();
        }
        let mut state = self.spare.with(self.visible(pinned));
        if self.seeded.is_seeded() {
            // Several partitions would draw the numbers in another order each time.
            state.config_mut().options_mut().execution.target_partitions = 1;
        }
        if self.distribution().is_active()
            && let Some(shared) = state.config_mut().options_mut().extensions.get_mut::<SharedWork>()
        {
            // Rows that several parts of a plan read are on one node, and would keep the plan there. States of groups in joins
            // have not been tried on several nodes.
            (shared.subplans, shared.grouping_sets, shared.eager_aggregation) = (false, false, false);
            // Their operators do not travel.
            (shared.ranked_windows, shared.hashed_windows) = (false, false);
        }
        state
    }

    /// The statements of a text.
    pub fn statements(&self, sql: &str) -> Vec<String> {
        if self.scratch {
            return vec![sql.to_owned()];
        }
        let statements = bowshot_sql::split(sql, plan::dialect(&self.options()));
        statements.into_iter().map(ToOwned::to_owned).collect()
    }

    /// The schema that running the plan gives; no fields for a plan that acts.
    pub fn schema(&self, plan: &AuthorizedPlan, layout: Layout) -> SchemaRef {
        let planned = plan.planned();
        if let Some(returning) = plan.returning() {
            return layout.schema(returning.schema(&self.context.state_ref().read()));
        }
        if let Some(form) = key_lookup::form_of(plan) {
            return form.schema(planned.form(), layout);
        }
        if planned.parameters().fields().is_empty() {
            if let Some(schema) = self.schema_of_run(plan, layout) {
                return schema;
            }
            return result_metadata::result_schema(&self.context.state_ref().read(), planned.plan(), layout);
        }
        // Coercion would settle the types of parameters before they have values.
        result_metadata::unbound_schema(planned.plan(), layout)
    }

    /// The parameters of a plan as clients are told of them.
    pub fn parameters(&self, plan: &AuthorizedPlan) -> SchemaRef {
        parameter_metadata::parameters(plan)
    }

    /// Checks that a batch of parameters fits the plan.
    ///
    /// # Errors
    /// `Invalid`, naming the parameter.
    pub fn check_parameters(&self, plan: &AuthorizedPlan, rows: &RecordBatch) -> Result<()> {
        let planned = plan.planned();
        let Some(form) = key_lookup::form_of(plan) else {
            return parameters::check(planned.plan(), planned.parameters(), rows);
        };
        parameters::check_count(planned.parameters(), rows)?;
        if rows.num_rows() > 0 {
            parameters::computed_values(&form.parameters, planned.parameters(), rows)?;
        }
        Ok(())
    }

    /// The schema of the result once `rows` are bound: parameters of unknown type take the type of their value.
    ///
    /// # Errors
    /// `Invalid`, naming the parameter.
    pub fn bound_schema(
        &self,
        plan: &AuthorizedPlan,
        rows: &RecordBatch,
        layout: Layout,
    ) -> Result<SchemaRef> {
        if plan.returning().is_some() {
            return Ok(self.schema(plan, layout));
        }
        let planned = plan.planned();
        if let Some(form) = key_lookup::form_of(plan) {
            // Parameters are in its condition and its limit alone, and coercion changes no column.
            return Ok(form.schema(planned.form(), layout));
        }
        let values = parameters::values(planned.plan(), planned.parameters(), rows, 0)?;
        if let Some(schema) = self.schema_of_run(plan, layout)
            && cacheable_plan::have_types_of(&values, planned.plan())
        {
            return Ok(schema);
        }
        let bound = parameters::bind_values(planned.plan(), values)?;
        Ok(result_metadata::result_schema(&self.context.state_ref().read(), &bound, layout))
    }

    /// Makes a plan ready to run. Statements with effects take effect here. To be called on the query runtime.
    ///
    /// # Errors
    /// From binding, optimising and physical planning.
    pub fn execute<'a>(
        &'a self,
        plan: &'a AuthorizedPlan,
        parameters: &'a [RecordBatch],
        parallelism: Parallelism,
        layout: Layout,
    ) -> BoxFuture<'a, Result<Execution>> {
        async move {
            if let Some(execution) = self.look_up(plan, parameters, layout).await? {
                return Ok(execution);
            }
            let mut state = self.state(plan.pinned());
            if let Parallelism::Streams(streams) | Parallelism::Nodes { streams: Some(streams), .. } =
                parallelism
                && !self.seeded.is_seeded()
            {
                let partitions = &mut state.config_mut().options_mut().execution.target_partitions;
                *partitions = streams.max(*partitions);
            }
            if plan.is_endless() {
                // Its rows go out as they come, in the order of their commits: no step may gather a batch of them.
                let options = &mut state.config_mut().options_mut().execution;
                options.target_partitions = 1;
                options.batch_size = ConfigNonZeroUsize::try_new(1).map_err(classify)?;
            }
            let run = Run { plan, layout, parallelism, state };
            let preparing = async {
                if parameters.is_empty() {
                    Box::pin(query::prepare(self, &run)).await
                } else {
                    Box::pin(query::prepare_bound(self, &run, parameters)).await
                }
            };
            let execution = run_blocking_if(!plan.is_small(), preparing).await?;
            if !self.scratch {
                self.spare.keep(run.state, &self.context);
            }
            Ok(execution)
        }
        .boxed()
    }
}

fn broken(error: JoinError) -> ApiError {
    ApiError::internal("the commit broke down").with_source(error)
}

/// The parts of the catalogs, of the tables of files those alone that the session may see.
fn seen_parts(shared: &Shared, gate: &Arc<SessionAccess>) -> CatalogParts {
    let main = Arc::new(SeenFiles::new(&shared.parts.main, gate));
    CatalogParts { main, ..shared.parts.clone() }
}
