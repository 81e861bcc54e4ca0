//! Prepares, describes and binds statements of a session.

use super::ClientSession;
use crate::prepared::PreparedStatement;
use crate::query::{self, AuthorizedStatement};
use crate::request_task::Start;
use arrow::datatypes::Schema;
use arrow::record_batch::RecordBatch;
use bowshot_api::{Description, Prepared, Result, Statement, StatementId, TransactionId};
use bowshot_engine::{AuthorizedPlan, answers_at_once, is_key_lookup};
use bowshot_query_task::run_blocking_if;
use std::sync::Arc;

/// Bytes of values that are checked where they arrive.
const SMALL_VALUES: usize = 16 << 10;

impl ClientSession {
    /// A prepared key lookup with its plan, if that may be used as it is. Binding and describing it takes microseconds, less
    /// than a task. `None` within a transaction, whose statements wait for one another, and where a service decides.
    pub(super) fn current_lookup(&self, id: StatementId) -> Option<AuthorizedStatement> {
        if self.engine.has_decider() || self.transactions.current().is_some() {
            return None;
        }
        let prepared = self.prepared.get(id).ok().filter(|prepared| prepared.transaction.is_none())?;
        let plan = prepared.fresh_plan().filter(|plan| plan.is_small() && is_key_lookup(plan))?.clone();
        let has_parameters = !plan.planned().parameters().fields().is_empty();
        let pinned = self.engine.pin().isolated(self.isolation());
        let is_current = has_parameters && plan.pinned().is_same(&pinned) && self.engine.still_allows(&plan);
        let (sql, parameters) = (prepared.sql, prepared.parameters);
        is_current.then_some(AuthorizedStatement { sql, plan, parameters })
    }

    /// Where a statement begins: here, if its plan is known and answers at once.
    pub(super) fn start_of(&self, statement: &Statement) -> Start {
        match statement {
            Statement::Sql(sql) => self.start_of_text(sql),
            Statement::Prepared(id) => self.start_of_prepared(*id),
            Statement::Substrait(_) => Start::OnQueryRuntime,
        }
    }

    /// The same for values that are bound, of which many take longer to be checked.
    pub(super) fn start_of_binding(&self, id: StatementId, parameters: &[RecordBatch]) -> Start {
        if Self::is_small_row(parameters) { self.start_of_prepared(id) } else { Start::OnQueryRuntime }
    }

    fn start_of_prepared(&self, id: StatementId) -> Start {
        let is_quick = self.prepared.get(id).is_ok_and(|prepared| match prepared.fresh_plan() {
            Some(plan) => plan.is_small() && answers_at_once(plan),
            None => self.engine.has_quick_plan(&prepared.sql),
        });
        if is_quick { Start::Here } else { Start::OnQueryRuntime }
    }

    pub(super) fn start_of_text(&self, sql: &str) -> Start {
        if self.engine.has_quick_plan(sql) { Start::Here } else { Start::OnQueryRuntime }
    }

    /// Whether there is one row of few bytes.
    pub(super) fn is_small_row(parameters: &[RecordBatch]) -> bool {
        matches!(parameters, [row] if row.num_rows() == 1 && row.get_array_memory_size() <= SMALL_VALUES)
    }

    /// Call it on the query runtime, except for key lookups: types are inferred again with bound values.
    fn description(&self, plan: &AuthorizedPlan, bound: Option<&RecordBatch>) -> Result<Description> {
        let layout = self.layout();
        let is_update = plan.action().is_update();
        let schema = match (self.transactions.cursors().fetched(plan.action()), bound) {
            (Some(schema), _) => schema,
            _ if is_update => Arc::new(Schema::empty()),
            (None, Some(rows)) => self.engine.bound_schema(plan, rows, layout)?,
            (None, None) => self.engine.schema(plan, layout),
        };
        let reads_only = !plan.action().acts();
        Ok(Description { schema, parameters: self.engine.parameters(plan), is_update, reads_only })
    }

    pub(super) fn describe_authorized(&self, authorized: &AuthorizedStatement) -> Result<Description> {
        let bound = authorized.parameters.iter().find(|batch| batch.num_rows() > 0);
        self.description(&authorized.plan, bound)
    }

    pub(super) async fn describe_statement(&self, statement: &Statement) -> Result<Description> {
        let pinned = self.pin(self.transaction_of(statement)?).await?;
        let authorized = Box::pin(query::authorize(self, statement, &pinned)).await?;
        let describing = async { self.describe_authorized(&authorized) };
        run_blocking_if(!authorized.plan.is_small(), describing).await
    }

    pub(super) async fn prepared_from(
        &self,
        sql: &str,
        transaction: Option<TransactionId>,
    ) -> Result<Prepared> {
        let plan = Box::pin(query::plan(self, sql, &self.pin(transaction).await?)).await?;
        let preparing = async { self.add_prepared(sql, &plan, transaction) };
        run_blocking_if(!plan.is_small(), preparing).await
    }

    /// Prepares a text whose plan is known and answers at once: that takes microseconds, less than a task. `None` within a
    /// transaction, whose statements wait for one another.
    pub(super) fn prepare_known(
        &self,
        sql: &str,
        transaction: Option<TransactionId>,
    ) -> Option<Result<Prepared>> {
        let is_short = sql.len() <= self.server.context.limits.max_sql_bytes;
        if transaction.is_some() || self.transactions.current().is_some() || !is_short {
            return None;
        }
        let plan = self.engine.quick_plan(sql, &self.engine.pin().isolated(self.isolation()))?;
        Some(self.add_prepared(sql, &plan, None))
    }

    fn add_prepared(
        &self,
        sql: &str,
        plan: &AuthorizedPlan,
        transaction: Option<TransactionId>,
    ) -> Result<Prepared> {
        let description = self.description(plan, None)?;
        let statement = PreparedStatement::new(sql, plan.clone(), transaction);
        let id = self.prepared.add(statement, &self.server.context.limits)?;
        Ok(Prepared { id, description })
    }

    pub(super) fn bind_authorized(
        &self,
        id: StatementId,
        authorized: &AuthorizedStatement,
        parameters: Vec<RecordBatch>,
    ) -> Result<()> {
        for batch in &parameters {
            self.engine.check_parameters(&authorized.plan, batch)?;
        }
        self.prepared.bind(id, parameters, &self.server.context.limits)
    }

    pub(super) async fn bind_parameters(&self, id: StatementId, parameters: Vec<RecordBatch>) -> Result<()> {
        let statement = Statement::Prepared(id);
        let pinned = self.pin(self.transaction_of(&statement)?).await?;
        let authorized = Box::pin(query::authorize(self, &statement, &pinned)).await?;
        self.bind_authorized(id, &authorized, parameters)
    }
}
