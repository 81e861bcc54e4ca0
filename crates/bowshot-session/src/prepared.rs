//! Prepared statements of one session: text, plan and bound parameters.

use arrow::record_batch::RecordBatch;
use bowshot_api::{Error, ErrorKind, Limits, Reason, Result, StatementId, TransactionId, allocations};
use bowshot_engine::{AuthorizedPlan, is_key_lookup};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// A plan pins the files of its tables; older plans are made again from the text.
const PLAN_AGE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub(crate) struct PreparedStatement {
    pub(crate) sql: Arc<str>,
    pub(crate) parameters: Arc<Vec<RecordBatch>>,
    pub(crate) transaction: Option<TransactionId>,
    parameter_bytes: usize,
    plan: AuthorizedPlan,
    /// Whether name resolution has changed since its plan was made.
    is_expired: bool,
}

impl PreparedStatement {
    pub(crate) fn new(sql: &str, plan: AuthorizedPlan, transaction: Option<TransactionId>) -> Self {
        let (sql, parameters) = (Arc::from(sql), Arc::default());
        Self { sql, parameters, transaction, parameter_bytes: 0, plan, is_expired: false }
    }

    fn bytes(&self) -> usize {
        self.sql.len().saturating_add(self.parameter_bytes)
    }

    /// The plan, unless it is too old, or for one execution. That of a key lookup reads no files of others, but one table of this
    /// server: it is as good as its snapshot, however old it is.
    pub(crate) fn fresh_plan(&self) -> Option<&AuthorizedPlan> {
        let is_young = self.plan.made().elapsed() < PLAN_AGE || is_key_lookup(&self.plan);
        (is_young && !self.is_expired && self.plan.is_reusable()).then_some(&self.plan)
    }
}

#[derive(Debug, Default)]
pub(crate) struct PreparedStatements {
    statements: Mutex<HashMap<StatementId, PreparedStatement>>,
}

impl PreparedStatements {
    pub(crate) fn add(&self, statement: PreparedStatement, limits: &Limits) -> Result<StatementId> {
        let mut statements = self.statements.lock();
        if statements.len() >= limits.max_prepared_statements {
            let message = format!("{} prepared statements are open in this session", statements.len());
            return Err(Error::new(ErrorKind::LimitReached, message)
                .with_hint("close some, or raise `limits.max_prepared_statements`"));
        }
        check_bytes(&statements, statement.bytes(), limits)?;
        let id = StatementId::random();
        statements.insert(id, statement);
        Ok(id)
    }

    pub(crate) fn get(&self, id: StatementId) -> Result<PreparedStatement> {
        self.statements.lock().get(&id).cloned().ok_or_else(|| not_found(id))
    }

    /// Replaces the parameters of a statement.
    ///
    /// # Errors
    /// `NotFound`; `LimitReached` when the session would hold too much, and then the statement has no parameters.
    pub(crate) fn bind(&self, id: StatementId, parameters: Vec<RecordBatch>, limits: &Limits) -> Result<()> {
        // A column from a client shares the whole message that it arrived in.
        let bytes = allocations(parameters.iter().flat_map(RecordBatch::columns)).values().sum::<u64>();
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let mut statements = self.statements.lock();
        let statement = statements.get_mut(&id).ok_or_else(|| not_found(id))?;
        (statement.parameters, statement.parameter_bytes) = (Arc::default(), 0);
        check_bytes(&statements, bytes, limits)?;
        if let Some(statement) = statements.get_mut(&id) {
            (statement.parameters, statement.parameter_bytes) = (Arc::new(parameters), bytes);
        }
        Ok(())
    }

    pub(crate) fn replan(&self, id: StatementId, plan: &AuthorizedPlan) {
        if let Some(statement) = self.statements.lock().get_mut(&id) {
            statement.plan = plan.clone();
            statement.is_expired = false;
        }
    }

    pub(crate) fn expire_plans(&self) {
        self.statements.lock().values_mut().for_each(|statement| statement.is_expired = true);
    }

    pub(crate) fn remove(&self, id: StatementId) {
        self.statements.lock().remove(&id);
    }

    pub(crate) fn clear(&self) {
        self.statements.lock().clear();
    }

    pub(crate) fn count(&self) -> usize {
        self.statements.lock().len()
    }
}

fn check_bytes(
    statements: &HashMap<StatementId, PreparedStatement>,
    more: usize,
    limits: &Limits,
) -> Result<()> {
    let held = statements.values().fold(more, |sum, statement| sum.saturating_add(statement.bytes()));
    let limit = limits.max_prepared_bytes;
    if held <= limit {
        return Ok(());
    }
    let message = format!(
        "prepared statements of this session would hold {} bytes of text and parameters, more than the limit of {limit}",
        held
    );
    Err(Error::new(ErrorKind::LimitReached, message)
        .with_hint("bind fewer rows at a time, close statements, or raise `limits.max_prepared_bytes`"))
}

fn not_found(id: StatementId) -> Error {
    Error::not_found(format!("prepared statement {id} not found"))
        .with_reason(Reason::UndefinedStatement)
        .with_hint("prepare it again")
}
