//! Statements in all the ways that they come in, and their results.

use super::*;
use arrow_flight::sql::{
    ActionClosePreparedStatementRequest, CommandGetCatalogs, CommandPreparedStatementQuery,
    CommandStatementIngest, DoPutPreparedStatementResult,
};

#[tokio::test]
async fn prepared_statements_keep_their_handle() {
    let (port, mut client) = Port::open().await.with_client().await;
    let prepared = prepare(&mut client, "?", None).await;
    assert_eq!(prepared.is_update, Some(false));
    let parameters = bowshot_ipc::read_schema_bytes(&prepared.parameter_schema).unwrap();
    assert_eq!(parameters.fields().len(), 1);
    let handle = prepared.prepared_statement_handle;
    let query = any(&CommandPreparedStatementQuery { prepared_statement_handle: handle.clone() });

    let batches = [numbers(vec![1, 2]), numbers(vec![3])];
    let bound = client.put(upload(command(query.clone()), &batches)).await.unwrap();
    let bound = DoPutPreparedStatementResult::decode(bound).unwrap();
    assert_eq!(bound.prepared_statement_handle, Some(handle.clone()));
    // The handle is good on another connection of the same caller, as command and as ticket.
    let mut other = port.client().await;
    let info = other.info(query.clone()).await.unwrap().into_inner();
    assert_eq!(rows(&other.get(ticket_of(&info)).await.unwrap()), 3);
    assert_eq!(rows(&other.get(query.clone()).await.unwrap()), 3);

    let close = any(&ActionClosePreparedStatementRequest { prepared_statement_handle: handle });
    assert_eq!(client.action("ClosePreparedStatement", close.clone()).await.unwrap(), None);
    assert_eq!(client.action("ClosePreparedStatement", close.clone()).await.unwrap(), None);
    assert_eq!(code_of(client.info(query.clone()).await), Code::NotFound);
    drop(client);
    port.until(|counts| counts.sessions == 0).await;
    let stale = other.info(query).await.unwrap_err();
    assert_eq!(stale.code(), Code::NotFound);
    assert!(stale.message().contains("prepare the statement again"), "{}", stale.message());
    assert_eq!(other.action("ClosePreparedStatement", close).await.unwrap(), None);
}

#[tokio::test]
async fn uploads_that_are_refused() {
    let limits = Limits { max_parameter_rows: 2, ..Limits::default() };
    let (_port, mut client) = Port::open_with(limits, false).await.with_client().await;
    let handle = prepare(&mut client, "?", None).await.prepared_statement_handle;
    let bind = any(&CommandPreparedStatementQuery { prepared_statement_handle: handle });
    let first =
        |descriptor| vec![FlightData { flight_descriptor: Some(descriptor), ..FlightData::default() }];
    let mut broken = upload(command(bind.clone()), &[numbers(vec![1])]);
    broken[1].data_body = Bytes::new();
    for (messages, expected) in [
        (vec![], Code::InvalidArgument),
        (vec![FlightData::default()], Code::InvalidArgument),
        (first(FlightDescriptor::new_path(vec!["t".to_owned()])), Code::InvalidArgument),
        (first(command(any(&CommandStatementIngest::default()))), Code::InvalidArgument),
        (first(command(any(&CommandGetCatalogs {}))), Code::InvalidArgument),
        (first(command(b"INSERT".to_vec())), Code::InvalidArgument),
        (upload(command(bind), &[numbers(vec![1, 2, 3])]), Code::ResourceExhausted),
        (broken, Code::InvalidArgument),
    ] {
        let status = client.put(messages).await.unwrap_err();
        assert_eq!(status.code(), expected, "{status:?}");
    }
}
