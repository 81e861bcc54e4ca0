//! Rows into tables: by command and by path, whole and broken.

use super::lifecycle::bare_call;
use super::*;
use arrow::datatypes::Schema;
use arrow_flight::sql::{CommandStatementIngest, DoPutUpdateResult, TableDefinitionOptions};
use futures::StreamExt;
use std::sync::atomic::{AtomicUsize, Ordering};

fn ingest(table: &str) -> CommandStatementIngest {
    let options = TableDefinitionOptions { if_not_exist: 1, if_exists: 2 };
    CommandStatementIngest {
        table_definition_options: Some(options),
        table: table.to_owned(),
        ..CommandStatementIngest::default()
    }
}

fn into(table: &str) -> FlightDescriptor {
    command(any(&ingest(table)))
}

fn written(answer: Bytes) -> i64 {
    DoPutUpdateResult::decode(answer).unwrap().record_count
}

/// Checks what has been written since the last look.
fn check(port: &Port, effect: &str, batches: &[RecordBatch]) {
    assert_eq!(port.server.effects(), [format!("wrote {} into {effect}", rows(batches))]);
    assert_eq!(std::mem::take(&mut *port.server.written.lock()), batches);
}

#[tokio::test]
async fn no_rows_are_rows_too_if_there_is_a_schema() {
    let (port, mut client) = Port::open().await.with_client().await;
    let mut only_schema = upload(into("t"), &[numbers(vec![])]);
    only_schema.truncate(1);
    // Some clients send the descriptor first and the schema in a message of its own.
    let mut apart = upload(into("t"), &[numbers(vec![])]);
    let flight_descriptor = apart[0].flight_descriptor.take();
    apart.insert(0, FlightData { flight_descriptor, ..FlightData::default() });
    for messages in [only_schema, apart, upload(into("t"), &[numbers(vec![])])] {
        assert_eq!(written(client.put(messages).await.unwrap()), 0);
        check(&port, "t Create Append", &[]);
    }
}

#[tokio::test]
async fn streams_that_are_refused_write_nothing() {
    let (port, mut client) = Port::open().await.with_client().await;
    let rows = [numbers(vec![1]), numbers(vec![2])];
    let whole = upload(into("t"), &rows);
    let descriptor = |ingest: &CommandStatementIngest| command(any(ingest));
    let mut unsaid = ingest("t");
    unsaid.table_definition_options = None;
    let foreign = CommandStatementIngest { transaction_id: Some("txn".into()), ..ingest("t") };
    let unknown = CommandStatementIngest { transaction_id: Some(vec![7; 32].into()), ..ingest("t") };
    let change = |change: fn(&mut Vec<FlightData>)| {
        let mut messages = whole.clone();
        change(&mut messages);
        messages
    };
    for (messages, expected) in [
        (upload(descriptor(&unsaid), &rows), Code::InvalidArgument),
        (upload(descriptor(&foreign), &rows), Code::InvalidArgument),
        (upload(descriptor(&unknown), &rows), Code::NotFound),
        (change(|messages| messages[0].data_header = Bytes::new()), Code::InvalidArgument),
        (change(|messages| messages[0].data_header = Bytes::from_static(b"hello")), Code::InvalidArgument),
        (change(|messages| messages[2].data_header = Bytes::from_static(b"hello")), Code::InvalidArgument),
        (change(|messages| messages[2].data_body = Bytes::new()), Code::InvalidArgument),
        (change(|messages| messages.push(messages[0].clone())), Code::InvalidArgument),
        (change(|messages| messages.truncate(1)).split_off(1), Code::InvalidArgument),
    ] {
        let status = client.put(messages).await.unwrap_err();
        assert_eq!(status.code(), expected, "{status:?}");
        assert!(port.server.effects().is_empty());
    }
    port.until(|counts| counts.streams == 0).await;
    assert!(client.put(whole).await.is_ok());
}

#[tokio::test]
async fn a_message_that_ends_early_writes_nothing() {
    let port = Port::open().await;
    let messages = upload(into("t"), &[numbers(vec![1]), numbers(vec![2])]);
    let frames: Vec<Vec<u8>> = messages.iter().map(|message| framed(message.encode_to_vec())).collect();
    let mut ends: Vec<usize> = Vec::new();
    for frame in &frames {
        ends.push(ends.last().unwrap_or(&0) + frame.len());
    }
    let whole = frames.concat();
    // Five bytes behind an end there is a length without its message.
    let behind = ends.iter().map(|end| end + 5).filter(|cut| *cut < whole.len()).collect::<Vec<_>>();
    for cut in (1..whole.len()).step_by(11).chain(behind).filter(|cut| !ends.contains(cut)) {
        let headers = bare_call(&port, "DoPut", "20S", whole[..cut].to_vec()).await;
        assert_eq!(headers["grpc-status"], "3", "{cut} of {}: {headers:?}", whole.len());
        assert!(port.server.effects().is_empty());
    }
    assert_eq!(bare_call(&port, "DoPut", "20S", whole).await.get("grpc-status"), None);
    assert_eq!(port.server.effects().len(), 1);
}

#[tokio::test]
async fn a_client_that_falls_silent_is_let_go() {
    let limits = Limits { reader_timeout: Duration::from_millis(100), ..Limits::default() };
    let (port, mut client) = Port::open_with(limits, false).await.with_client().await;
    let whole = upload(into("t"), &[numbers(vec![1])]);
    for sent in 0..=whole.len() {
        let messages = futures::stream::iter(whole[..sent].to_vec()).chain(futures::stream::pending());
        let request = client.request(messages);
        let answer = tokio::time::timeout(PATIENCE, client.rpc.do_put(request)).await.unwrap();
        let status = answer.map(|_| ()).unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded, "{sent}");
        assert!(status.message().contains("limits.reader_timeout"), "{}", status.message());
    }
    port.until(|counts| counts.streams == 0).await;
    assert!(port.server.effects().is_empty());
}

#[tokio::test]
async fn a_slow_table_slows_its_client() {
    const OFFERED: usize = 256;
    let (port, mut client) = Port::open().await.with_client().await;
    let first = upload(into("stuck"), &[numbers((0..1 << 17).collect())]);
    let taken = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&taken);
    let rows = first.last().cloned().unwrap();
    let more = futures::stream::iter(std::iter::repeat_n(rows, OFFERED)).inspect(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    let request = client.request(futures::stream::iter(first).chain(more));
    let call = client.rpc.do_put(request);
    assert!(tokio::time::timeout(Duration::from_secs(1), call).await.is_err(), "nobody takes the rows");
    // A megabyte each: what is under way fits the window of the stream, and a little more in the client.
    assert!(taken.load(Ordering::Relaxed) < 32, "{taken:?}");
    port.until(|counts| counts.streams == 0).await;
    assert!(port.server.effects().is_empty());
}

#[tokio::test]
async fn a_table_without_columns_comes_through() {
    let (_port, mut client) = Port::open().await.with_client().await;
    let empty = RecordBatch::new_empty(Arc::new(Schema::empty()));
    assert_eq!(written(client.put(upload(into("t"), &[empty])).await.unwrap()), 0);
}
