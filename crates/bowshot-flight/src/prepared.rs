//! Prepared statements: created and closed by actions, bound by DoPut (`put.rs`), run by `statement.rs`.

use crate::caller::Caller;
use crate::handles::{PreparedHandle, TransactionHandle, scope};
use crate::proto::ActionCreatePreparedStatementResult;
use crate::statement::described;
use crate::ticket::substrait;
use arrow_flight::sql::{
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest,
    ActionCreatePreparedSubstraitPlanRequest,
};
use bowshot_api::{ErrorKind, Prepared, Result, Session};

/// Prepares a statement in the session of its transaction, else in the caller's.
///
/// Whoever runs the handle runs it within that transaction: the statement is of no use after its end.
///
/// Updates carry an encapsulated schema without fields and `is_update`, since clients tell updates from queries by
/// either, and some cannot read empty bytes. Where a statement without rows answers one (dialect `mysql`), it is a query to
/// them, or they would not read that row.
pub(crate) async fn create(
    caller: &Caller,
    request: ActionCreatePreparedStatementRequest,
) -> Result<ActionCreatePreparedStatementResult> {
    let transaction = TransactionHandle::from_command(request.transaction_id.as_ref())?;
    let (session, transaction) = scope(caller, transaction).await?;
    Ok(created(session.as_ref(), &session.prepare(&request.query, transaction).await?))
}

/// As [`create`], of a Substrait plan.
pub(crate) async fn create_substrait(
    caller: &Caller,
    request: ActionCreatePreparedSubstraitPlanRequest,
) -> Result<ActionCreatePreparedStatementResult> {
    let transaction = TransactionHandle::from_command(request.transaction_id.as_ref())?;
    let plan = substrait(request.plan)?;
    let (session, transaction) = scope(caller, transaction).await?;
    Ok(created(session.as_ref(), &session.prepare_substrait(&plan, transaction).await?))
}

fn created(session: &dyn Session, prepared: &Prepared) -> ActionCreatePreparedStatementResult {
    let handle = PreparedHandle { session: session.id(), statement: prepared.id };
    let schema = described(session, &prepared.description);
    let is_update = prepared.description.is_update && schema.fields().is_empty();
    ActionCreatePreparedStatementResult {
        prepared_statement_handle: handle.encode(),
        dataset_schema: bowshot_ipc::schema_bytes(&schema),
        parameter_schema: bowshot_ipc::schema_bytes(&prepared.description.parameters),
        is_update: Some(is_update),
    }
}

/// Closes a statement; closed ones are ignored.
pub(crate) async fn close(caller: &Caller, request: &ActionClosePreparedStatementRequest) -> Result<()> {
    let handle = PreparedHandle::decode(&request.prepared_statement_handle)?;
    match handle.session(caller) {
        Ok(session) => session.close_prepared(handle.statement).await,
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
