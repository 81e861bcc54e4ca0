//! The actions on transactions and savepoints.

use crate::caller::Caller;
use crate::handles::{SavepointHandle, TransactionHandle};
use crate::proto::EndSavepoint;
use arrow_flight::sql::{
    ActionBeginSavepointRequest, ActionBeginSavepointResult, ActionBeginTransactionResult,
    ActionEndSavepointRequest, ActionEndTransactionRequest, EndTransaction,
};
use bowshot_api::{Error, Result, TransactionEnd};

pub(crate) async fn begin(caller: &Caller) -> Result<ActionBeginTransactionResult> {
    let session = caller.session().await?;
    let handle = TransactionHandle::new(caller, session.as_ref(), session.begin().await?);
    Ok(ActionBeginTransactionResult { transaction_id: handle.encode() })
}

/// Commits a transaction or rolls it back; its savepoints go with it.
pub(crate) async fn end(caller: &Caller, request: &ActionEndTransactionRequest) -> Result<()> {
    let handle = TransactionHandle::decode(&request.transaction_id)?;
    let end = match EndTransaction::try_from(request.action) {
        Ok(EndTransaction::Commit) => TransactionEnd::Commit,
        Ok(EndTransaction::Rollback) => TransactionEnd::Rollback,
        Ok(EndTransaction::Unspecified) | Err(_) => {
            return Err(Error::invalid("the request does not say how the transaction ends")
                .with_hint("set `action` to commit or rollback"));
        }
    };
    handle.session(caller).await?.end(handle.transaction, end).await
}

pub(crate) async fn begin_savepoint(
    caller: &Caller,
    request: &ActionBeginSavepointRequest,
) -> Result<ActionBeginSavepointResult> {
    let handle = TransactionHandle::decode(&request.transaction_id)?;
    let session = handle.session(caller).await?;
    let savepoint = session.savepoint(handle.transaction, &request.name).await?;
    let handle = SavepointHandle::new(caller, session.as_ref(), savepoint);
    Ok(ActionBeginSavepointResult { savepoint_id: handle.encode() })
}

pub(crate) async fn end_savepoint(caller: &Caller, request: &ActionEndSavepointRequest) -> Result<()> {
    let handle = SavepointHandle::decode(&request.savepoint_id)?;
    let end = match EndSavepoint::try_from(request.action) {
        Ok(EndSavepoint::Release) => TransactionEnd::Commit,
        Ok(EndSavepoint::Rollback) => TransactionEnd::Rollback,
        Ok(EndSavepoint::Unspecified) | Err(_) => {
            return Err(Error::invalid("the request does not say how the savepoint ends")
                .with_hint("set `action` to release or rollback"));
        }
    };
    handle.session(caller).await?.end_savepoint(handle.savepoint, end).await
}
