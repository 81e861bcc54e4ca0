//! Prepared statements of one session: text, plan, and the parameters bound last.

use arrow::record_batch::RecordBatch;
use bowshot_api::{Error, ErrorKind, Limits, Result, StatementId, batch_bytes};
use bowshot_engine::AuthorizedPlan;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A plan holds the files that its tables had when it was made; past this age it is made again from the text.
const PLAN_AGE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub(crate) struct PreparedStatement {
    pub(crate) sql: Arc<str>,
    pub(crate) parameters: Arc<Vec<RecordBatch>>,
    plan: AuthorizedPlan,
    planned: Instant,
}

impl PreparedStatement {
    pub(crate) fn new(sql: &str, plan: AuthorizedPlan) -> Self {
        Self { sql: Arc::from(sql), parameters: Arc::default(), plan, planned: Instant::now() }
    }

    /// Bytes that the client has sent for it.
    fn bytes(&self) -> usize {
        self.sql.len() + parameter_bytes(&self.parameters)
    }

    /// The plan, unless it is too old to be believed.
    pub(crate) fn fresh_plan(&self) -> Option<&AuthorizedPlan> {
        (self.planned.elapsed() < PLAN_AGE).then_some(&self.plan)
    }
}

#[derive(Debug, Default)]
pub(crate) struct PreparedStatements {
    statements: Mutex<HashMap<StatementId, PreparedStatement>>,
}

impl PreparedStatements {
    fn lock(&self) -> MutexGuard<'_, HashMap<StatementId, PreparedStatement>> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, statement: PreparedStatement, limits: &Limits) -> Result<StatementId> {
        let mut statements = self.lock();
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
        self.lock().get(&id).cloned().ok_or_else(|| not_found(id))
    }

    /// Replaces the parameters of a statement.
    ///
    /// # Errors
    /// `NotFound`; `LimitReached` when the session would hold too much, and then the statement has no parameters.
    pub(crate) fn bind(&self, id: StatementId, parameters: Vec<RecordBatch>, limits: &Limits) -> Result<()> {
        let mut statements = self.lock();
        statements.get_mut(&id).ok_or_else(|| not_found(id))?.parameters = Arc::default();
        check_bytes(&statements, parameter_bytes(&parameters), limits)?;
        if let Some(statement) = statements.get_mut(&id) {
            statement.parameters = Arc::new(parameters);
        }
        Ok(())
    }

    pub(crate) fn replan(&self, id: StatementId, plan: &AuthorizedPlan) {
        if let Some(statement) = self.lock().get_mut(&id) {
            statement.plan = plan.clone();
            statement.planned = Instant::now();
        }
    }

    pub(crate) fn remove(&self, id: StatementId) {
        self.lock().remove(&id);
    }

    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }
}

fn parameter_bytes(parameters: &[RecordBatch]) -> usize {
    parameters.iter().map(batch_bytes).sum()
}

fn check_bytes(
    statements: &HashMap<StatementId, PreparedStatement>,
    more: usize,
    limits: &Limits,
) -> Result<()> {
    let held: usize = statements.values().map(PreparedStatement::bytes).sum();
    let limit = limits.max_prepared_bytes;
    if held.saturating_add(more) <= limit {
        return Ok(());
    }
    let message = format!(
        "prepared statements of this session would hold {} bytes of text and parameters, more than the limit of {limit}",
        held.saturating_add(more)
    );
    Err(Error::new(ErrorKind::LimitReached, message)
        .with_hint("bind fewer rows at a time, close statements, or raise `limits.max_prepared_bytes`"))
}

fn not_found(id: StatementId) -> Error {
    Error::not_found(format!("prepared statement {id} not found")).with_hint("prepare it again")
}
