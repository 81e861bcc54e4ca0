//! The program's own client against the front end: what it reads, what it tells about errors, and what it leaves behind.

use super::{PATIENCE, Port};
use crate::client::{Client, Columns, Error, Login, Target};
use arrow::datatypes::Int64Type;
use arrow::{array::AsArray, record_batch::RecordBatch};
use arrow_flight::CancelStatus;
use bowshot_api::{Limits, OptionValue, Secret};
use futures::{StreamExt, TryStreamExt};

async fn connect(port: &Port, login: Login) -> Result<Client, Error> {
    Client::connect(&Target::new(format!("grpc://{}", port.address), login)).await
}

async fn anonymous(port: &Port) -> Client {
    connect(port, Login::Anonymous).await.unwrap()
}

#[tokio::test]
async fn a_large_result_arrives_whole() {
    let port = Port::open().await;
    let query = anonymous(&port).await.execute("rows 9000000").await.unwrap();
    assert_eq!(query.schema().fields().len(), 1);
    let batches: Vec<RecordBatch> = query.batches().try_collect().await.unwrap();
    assert!(batches.len() > 1, "cut into messages");
    let values =
        batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec());
    assert!(values.eq(0..9_000_000));
    port.until(|counts| counts.streams == 0).await;
}

#[tokio::test]
async fn dropping_the_batches_ends_the_stream_on_the_server() {
    let port = Port::open().await;
    let query = anonymous(&port).await.execute("wait").await.unwrap();
    let mut batches = query.batches();
    assert_eq!(batches.next().await.unwrap().unwrap().num_rows(), 1);
    port.until(|counts| counts.streams == 1).await;
    drop(batches);
    port.until(|counts| counts.streams == 0).await;
}

#[tokio::test]
async fn errors_carry_the_message_of_the_server() {
    let port = Port::open().await;
    let client = anonymous(&port).await;
    let error = client.execute("bad").await.unwrap_err();
    assert!(error.to_string().starts_with("internal error"), "{error}");
    let query = client.execute("break").await.unwrap();
    let outcome: Result<Vec<RecordBatch>, Error> = query.batches().try_collect().await;
    assert!(matches!(outcome, Err(Error::Server(_))), "{outcome:?}");
    let query = client.execute("rows 1").await.unwrap();
    assert_eq!(query.batches().count().await, 1);
    let again: Result<Vec<RecordBatch>, Error> = query.batches().try_collect().await;
    assert!(again.unwrap_err().to_string().contains("not found"));
}

#[tokio::test]
async fn a_cancelled_query_says_so() {
    let port = Port::open().await;
    let client = anonymous(&port).await;
    let query = client.execute("wait").await.unwrap();
    assert_eq!(query.cancel().await.unwrap(), CancelStatus::Cancelled);
    let outcome: Result<Vec<RecordBatch>, Error> = query.batches().try_collect().await;
    assert!(outcome.unwrap_err().is_cancelled());
}

#[tokio::test]
async fn tables_options_and_the_end_of_the_session() {
    let port = Port::open().await;
    let client = anonymous(&port).await;
    let tables = client.tables(None, Columns::Include).await.unwrap();
    assert_eq!(tables.iter().map(|table| table.name.as_str()).collect::<Vec<_>>(), ["t1", "t2"]);
    assert_eq!(tables[0].columns.as_ref().unwrap().field(0).name(), "n");
    assert_eq!(client.tables(Some("%2"), Columns::Omit).await.unwrap().len(), 1);
    client.set_option("schema", Some(OptionValue::String("s".into()))).await.unwrap();
    client.set_option("schema", None).await.unwrap();
    let error = client.set_option("colour", Some(OptionValue::Bool(true))).await.unwrap_err();
    assert!(error.to_string().contains("`colour`"));
    client.close().await.unwrap();
    port.until(|counts| counts.sessions == 0).await;
}

#[tokio::test]
async fn a_password_becomes_a_token() {
    let port = Port::open_with(Limits::default(), true).await;
    let login = |password: &str| Login::Password { user: "ada".into(), password: Secret::new(password) };
    assert!(matches!(connect(&port, login("wrong")).await, Err(Error::Server(_))));
    let client = connect(&port, login("pw")).await.unwrap();
    let query = client.execute("rows 2").await.unwrap();
    assert_eq!(query.batches().map(|batch| batch.unwrap().num_rows()).collect::<Vec<_>>().await, [2]);
    let anonymous = connect(&port, Login::Anonymous).await.unwrap();
    assert!(matches!(anonymous.execute("rows 1").await, Err(Error::Server(_))));
}

#[tokio::test]
async fn nobody_listens() {
    let port = Port::open().await;
    let uri = format!("grpc://{}", port.address);
    let mut port = port;
    let _ = port.shutdown.take().unwrap().send(());
    tokio::time::timeout(PATIENCE, &mut port.served).await.unwrap().unwrap().unwrap();
    let error = Client::connect(&Target::new(&uri, Login::Anonymous)).await.unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with(&format!("cannot connect to `{uri}`: ")), "{text}");
    assert!(text.contains("refused"), "{text}");
}
