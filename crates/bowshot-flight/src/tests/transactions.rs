//! Transactions: what belongs to them, over which connection, and how they end.

use super::*;
use arrow_flight::sql::{
    ActionBeginSavepointRequest, ActionBeginSavepointResult, ActionBeginTransactionRequest,
    ActionBeginTransactionResult, ActionClosePreparedStatementRequest, ActionEndSavepointRequest,
    ActionEndTransactionRequest, CommandPreparedStatementQuery, CommandPreparedStatementUpdate,
    CommandStatementQuery, CommandStatementUpdate,
};
use bowshot_api::TransactionId;

async fn begin(client: &mut Client) -> Bytes {
    let body = client.action("BeginTransaction", any(&ActionBeginTransactionRequest {})).await;
    let result: ActionBeginTransactionResult =
        Any::decode(body.unwrap().unwrap()).unwrap().unpack().unwrap().unwrap();
    result.transaction_id
}

async fn end(client: &mut Client, transaction_id: &Bytes, action: i32) -> Result<Option<Bytes>, Status> {
    let request = ActionEndTransactionRequest { transaction_id: transaction_id.clone(), action };
    client.action("EndTransaction", any(&request)).await
}

async fn save(client: &mut Client, transaction_id: &Bytes, name: &str) -> Result<Bytes, Status> {
    let request =
        ActionBeginSavepointRequest { transaction_id: transaction_id.clone(), name: name.to_owned() };
    let body = client.action("BeginSavepoint", any(&request)).await?.unwrap();
    let result: ActionBeginSavepointResult = Any::decode(body).unwrap().unpack().unwrap().unwrap();
    Ok(result.savepoint_id)
}

async fn end_savepoint(client: &mut Client, savepoint_id: &Bytes, action: i32) -> Result<(), Status> {
    let request = ActionEndSavepointRequest { savepoint_id: savepoint_id.clone(), action };
    client.action("EndSavepoint", any(&request)).await.map(|body| assert_eq!(body, None))
}

/// The transaction of a handle, as the session below the door knows it.
fn id_of(handle: &Bytes) -> Option<TransactionId> {
    TransactionId::from_slice(&handle[16..])
}

fn query(text: &str, transaction_id: Option<Bytes>) -> Vec<u8> {
    any(&CommandStatementQuery { query: text.to_owned(), transaction_id })
}

fn update(text: &str, transaction_id: Option<Bytes>) -> Vec<FlightData> {
    let update = CommandStatementUpdate { query: text.to_owned(), transaction_id };
    let flight_descriptor = Some(command(any(&update)));
    vec![FlightData { flight_descriptor, ..FlightData::default() }]
}

#[tokio::test]
async fn a_prepared_statement_stays_in_its_transaction() {
    let (port, mut client) = Port::open().await.with_client().await;
    let transaction = begin(&mut client).await;
    let within = |text: &str| (text.to_owned(), id_of(&transaction));
    let handle = prepare(&mut client, "?", Some(transaction.clone())).await.prepared_statement_handle;
    let bind = any(&CommandPreparedStatementQuery { prepared_statement_handle: handle.clone() });
    client.put(upload(command(bind.clone()), &[numbers(vec![1, 2])])).await.unwrap();
    assert_eq!(rows(&client.get(bind.clone()).await.unwrap()), 2);
    assert_eq!(port.server.runs(), [within("rows 2")]);
    let update = prepare(&mut client, "update", Some(transaction.clone())).await.prepared_statement_handle;
    let update = any(&CommandPreparedStatementUpdate { prepared_statement_handle: update });
    // Rows to bind, many at once, in another connection's call.
    let mut other = port.client().await;
    other.put(upload(command(update), &[numbers(vec![1, 2]), numbers(vec![3])])).await.unwrap();
    assert_eq!(port.server.runs(), [within("update")]);

    end(&mut client, &transaction, 1).await.unwrap();
    let status = client.info(bind).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert!(status.message().contains("transaction not found"), "{}", status.message());
    let close = any(&ActionClosePreparedStatementRequest { prepared_statement_handle: handle });
    assert_eq!(client.action("ClosePreparedStatement", close).await.unwrap(), None);
}

#[tokio::test]
async fn transactions_and_savepoints_end_as_they_are_told() {
    let (port, mut client) = Port::open().await.with_client().await;
    let transaction = begin(&mut client).await;
    let (first, second) = (
        save(&mut client, &transaction, "a").await.unwrap(),
        save(&mut client, &transaction, "").await.unwrap(),
    );
    end_savepoint(&mut client, &second, 1).await.unwrap();
    end_savepoint(&mut client, &first, 2).await.unwrap();
    assert_eq!(end(&mut client, &transaction, 1).await.unwrap(), None);
    let undone = begin(&mut client).await;
    assert_eq!(end(&mut client, &undone, 2).await.unwrap(), None);
    let ends = ["ended savepoint Commit", "ended savepoint Rollback", "ended Commit", "ended Rollback"];
    assert_eq!(port.server.effects(), [&["saved a", "saved "][..], &ends].concat());
    for handle in [transaction, undone] {
        assert_eq!(code_of(end(&mut client, &handle, 1).await), Code::NotFound);
        assert_eq!(code_of(save(&mut client, &handle, "b").await), Code::NotFound);
        assert_eq!(code_of(client.info(query("rows 1", Some(handle.clone()))).await), Code::NotFound);
        assert_eq!(code_of(client.put(update("update", Some(handle))).await), Code::NotFound);
    }
    assert_eq!(code_of(end_savepoint(&mut client, &first, 1).await), Code::NotFound);
    assert!(port.server.effects().is_empty());
}

#[tokio::test]
async fn ends_that_are_not_told_and_handles_of_nobody_are_refused() {
    let (port, mut client) = Port::open().await.with_client().await;
    let transaction = begin(&mut client).await;
    let savepoint = save(&mut client, &transaction, "a").await.unwrap();
    port.server.effects();
    for action in [0, 3, -1] {
        assert_eq!(code_of(end(&mut client, &transaction, action).await), Code::InvalidArgument);
        assert_eq!(code_of(end_savepoint(&mut client, &savepoint, action).await), Code::InvalidArgument);
    }
    for handle in [Bytes::new(), Bytes::from_static(b"txn"), Bytes::from(vec![7; 31])] {
        let status = end(&mut client, &handle, 1).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().contains("was not issued by this server"), "{}", status.message());
        assert_eq!(code_of(save(&mut client, &handle, "b").await), Code::InvalidArgument);
        assert_eq!(code_of(end_savepoint(&mut client, &handle, 1).await), Code::InvalidArgument);
    }
    let foreign = Some(Bytes::from_static(b"txn"));
    assert_eq!(code_of(client.info(query("rows 1", foreign.clone())).await), Code::InvalidArgument);
    assert_eq!(code_of(client.get(query("rows 1", foreign.clone())).await), Code::InvalidArgument);
    assert_eq!(code_of(client.put(update("update", foreign)).await), Code::InvalidArgument);
    assert!(port.server.effects().is_empty());
    end(&mut client, &transaction, 1).await.unwrap();
}

#[tokio::test]
async fn nobody_else_ends_a_transaction() {
    let (port, mut ada) = Port::open_with(Limits::default(), true).await.with_client().await;
    ada.headers = vec![("authorization", "Basic YWRhOnB3".to_owned())];
    let transaction = begin(&mut ada).await;
    let mut bob = port.client().await;
    bob.headers = vec![("authorization", "Basic Ym9iOnB3".to_owned())];
    let status = end(&mut bob, &transaction, 1).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert!(status.message().contains("begin a new transaction"), "{}", status.message());
    assert_eq!(code_of(bob.info(query("rows 1", Some(transaction.clone()))).await), Code::NotFound);
    assert!(port.server.effects().is_empty());
    end(&mut ada, &transaction, 1).await.unwrap();
}
