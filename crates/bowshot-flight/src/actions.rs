//! The actions. Core Flight actions have raw protobuf bodies, those of Flight SQL are wrapped in `Any`.

use crate::caller::Caller;
use crate::proto::{
    ActionCreatePreparedStatementResult, CloseSessionRequest, GetSessionOptionsRequest, PREPARED_RESULT_URL,
    SetSessionOptionsRequest,
};
use crate::statement::{endpoint, timestamp};
use crate::ticket::{TicketPayload, any, command};
use crate::{prepared, session_options, transaction};
use arrow_flight::sql::{ActionCancelQueryResult, Any, Command, ProstMessageExt};
use arrow_flight::{
    Action, ActionType, CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, FlightEndpoint,
    FlightInfo, RenewFlightEndpointRequest,
};
use bowshot_api::{CancelOutcome, Error, QueryId, Result};
use bytes::Bytes;
use prost::Message;

/// Names and descriptions for ListActions.
const SUPPORTED: [(&str, &str); 12] = [
    ("CancelFlightInfo", "stop a query: CancelFlightInfoRequest, answers CancelFlightInfoResult"),
    ("RenewFlightEndpoint", "keep a result longer: RenewFlightEndpointRequest, answers FlightEndpoint"),
    (
        "SetSessionOptions",
        "set or reset session options: SetSessionOptionsRequest, answers the names that failed",
    ),
    ("GetSessionOptions", "all session options: GetSessionOptionsRequest, answers GetSessionOptionsResult"),
    ("CloseSession", "end the session: CloseSessionRequest, answers CloseSessionResult"),
    ("CreatePreparedStatement", "prepare a statement: ActionCreatePreparedStatementRequest in Any"),
    ("ClosePreparedStatement", "forget a prepared statement: ActionClosePreparedStatementRequest in Any"),
    ("BeginTransaction", "begin a transaction: ActionBeginTransactionRequest in Any"),
    ("EndTransaction", "commit a transaction or roll it back: ActionEndTransactionRequest in Any"),
    ("BeginSavepoint", "mark a point of a transaction: ActionBeginSavepointRequest in Any"),
    ("EndSavepoint", "forget a savepoint or return to it: ActionEndSavepointRequest in Any"),
    ("CancelQuery", "stop a query, the older form of CancelFlightInfo: ActionCancelQueryRequest in Any"),
];

pub(crate) fn list() -> Vec<ActionType> {
    SUPPORTED
        .iter()
        .map(|(name, text)| ActionType { r#type: (*name).to_owned(), description: (*text).to_owned() })
        .collect()
}

/// Runs an action; returns the body of its result, if it has one.
pub(crate) async fn run(caller: &Caller, action: &Action) -> Result<Option<Bytes>> {
    match action.r#type.as_str() {
        "CancelFlightInfo" => cancel_flight_info(caller, raw(action)?).await,
        "RenewFlightEndpoint" => renew(caller, raw(action)?),
        "SetSessionOptions" => {
            let request: SetSessionOptionsRequest = raw(action)?;
            Ok(Some(session_options::set(caller, request).await?.encode_to_vec().into()))
        }
        "GetSessionOptions" => {
            let _: GetSessionOptionsRequest = raw(action)?;
            Ok(Some(session_options::get(caller).await?.encode_to_vec().into()))
        }
        "CloseSession" => {
            let _: CloseSessionRequest = raw(action)?;
            Ok(Some(session_options::close(caller).await?.encode_to_vec().into()))
        }
        "CreatePreparedStatement"
        | "CreatePreparedSubstraitPlan"
        | "ClosePreparedStatement"
        | "CancelQuery"
        | "BeginTransaction"
        | "EndTransaction"
        | "BeginSavepoint"
        | "EndSavepoint" => sql_action(caller, action).await,
        other => {
            let shown: String = other.chars().take(100).collect();
            Err(Error::unsupported(format!("unknown action `{shown}`"))
                .with_hint("ListActions names the actions of this server"))
        }
    }
}

async fn sql_action(caller: &Caller, action: &Action) -> Result<Option<Bytes>> {
    let name = action.r#type.as_str();
    let wrapped = any(&action.body).ok_or_else(|| malformed(name))?;
    match (name, command(wrapped)?) {
        ("CreatePreparedStatement", Command::ActionCreatePreparedStatementRequest(request)) => {
            Ok(Some(prepared_result(&prepared::create(caller, request).await?)))
        }
        ("CreatePreparedSubstraitPlan", Command::ActionCreatePreparedSubstraitPlanRequest(request)) => {
            Ok(Some(prepared_result(&prepared::create_substrait(caller, request).await?)))
        }
        ("ClosePreparedStatement", Command::ActionClosePreparedStatementRequest(request)) => {
            prepared::close(caller, &request).await?;
            Ok(None)
        }
        ("BeginTransaction", Command::ActionBeginTransactionRequest(_)) => {
            Ok(Some(transaction::begin(caller).await?.as_any().encode_to_vec().into()))
        }
        ("EndTransaction", Command::ActionEndTransactionRequest(request)) => {
            transaction::end(caller, &request).await?;
            Ok(None)
        }
        ("BeginSavepoint", Command::ActionBeginSavepointRequest(request)) => {
            let result = transaction::begin_savepoint(caller, &request).await?;
            Ok(Some(result.as_any().encode_to_vec().into()))
        }
        ("EndSavepoint", Command::ActionEndSavepointRequest(request)) => {
            transaction::end_savepoint(caller, &request).await?;
            Ok(None)
        }
        ("CancelQuery", Command::ActionCancelQueryRequest(request)) => {
            let info =
                FlightInfo::decode(request.info).map_err(|error| malformed(name).with_source(error))?;
            // The results of the two cancel actions have the same numbers.
            let result = cancel(caller, &info).await? as i32;
            Ok(Some(ActionCancelQueryResult { result }.as_any().encode_to_vec().into()))
        }
        _ => Err(malformed(name)),
    }
}

fn prepared_result(result: &ActionCreatePreparedStatementResult) -> Bytes {
    let value = result.encode_to_vec().into();
    Any { type_url: PREPARED_RESULT_URL.to_owned(), value }.encode_to_vec().into()
}

async fn cancel_flight_info(caller: &Caller, request: CancelFlightInfoRequest) -> Result<Option<Bytes>> {
    let info = request.info.ok_or_else(|| malformed("CancelFlightInfo"))?;
    let status = cancel(caller, &info).await? as i32;
    Ok(Some(CancelFlightInfoResult { status }.encode_to_vec().into()))
}

/// Stops every query that the endpoints of a FlightInfo belong to.
async fn cancel(caller: &Caller, info: &FlightInfo) -> Result<CancelStatus> {
    let mut queries: Vec<QueryId> = Vec::new();
    for endpoint in &info.endpoint {
        if let Some(query) = query_of(endpoint)?
            && !queries.contains(&query)
        {
            queries.push(query);
        }
    }
    let mut status = CancelStatus::NotCancellable;
    for query in queries {
        if caller.server().cancel(caller.principal(), query).await? == CancelOutcome::Cancelled {
            status = CancelStatus::Cancelled;
        }
    }
    Ok(status)
}

fn renew(caller: &Caller, request: RenewFlightEndpointRequest) -> Result<Option<Bytes>> {
    let old = request.endpoint.ok_or_else(|| malformed("RenewFlightEndpoint"))?;
    let query = query_of(&old)?.ok_or_else(|| {
        Error::invalid("the endpoint does not expire").with_hint("its ticket can be redeemed at any time")
    })?;
    let expires = caller.server().renew(caller.principal(), query)?;
    let ticket = old.ticket.map(|ticket| ticket.ticket).unwrap_or_default();
    let mut renewed = endpoint(ticket, Some(timestamp(expires)));
    renewed.app_metadata = old.app_metadata;
    Ok(Some(renewed.encode_to_vec().into()))
}

/// The query of an endpoint; `None` for tickets of metadata and of SQL text.
fn query_of(endpoint: &FlightEndpoint) -> Result<Option<QueryId>> {
    let ticket = endpoint.ticket.as_ref().ok_or_else(|| Error::invalid("the endpoint has no ticket"))?;
    Ok(match TicketPayload::decode(&ticket.ticket)? {
        TicketPayload::Query(ticket) => Some(ticket.query),
        TicketPayload::Statement(..) | TicketPayload::Prepared(_) | TicketPayload::Command(_) => None,
    })
}

fn raw<M: Message + Default>(action: &Action) -> Result<M> {
    M::decode(action.body.clone()).map_err(|error| malformed(&action.r#type).with_source(error))
}

fn malformed(action: &str) -> Error {
    Error::invalid(format!("malformed body of action `{action}`")).with_hint(
        "the core Flight actions take the request message itself, those of Flight SQL take it in Any",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancel_statuses_have_the_same_numbers_in_both_actions() {
        for status in [CancelStatus::Cancelled, CancelStatus::Cancelling, CancelStatus::NotCancellable] {
            let older = ActionCancelQueryResult { result: status as i32 };
            assert_eq!(format!("{:?}", older.result()), format!("{status:?}"));
        }
    }
}
