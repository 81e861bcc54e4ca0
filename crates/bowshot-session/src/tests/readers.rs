//! Readers that are slow, leave, or let rows lie: the server bounds what it buffers and frees what nobody reads.

use super::{LONG, becomes, becomes_idle, rows, server, session, small, with_session};
use crate::Bowshot;
use arrow::array::{AsArray, RecordBatch};
use bowshot_api::{
    BatchStream, CancelOutcome, ErrorKind, Limits, OptionValue, QueryId, Request, Server, Session,
};
use futures::{StreamExt, TryStreamExt};
use std::sync::Arc;
use std::time::Duration;

#[tokio::test]
async fn a_slow_reader_holds_up_the_work_and_not_the_memory() {
    let (server, session) = with_session(server(small())).await;
    let answer = session.start(&Request::sql(LONG)).await.expect("starts");
    let mut stream = server.attach(session.principal(), answer.query, 0).await.expect("attaches");
    for _ in 0..20 {
        stream.next().await.expect("a batch").expect("reads");
        let held = server.status().result_buffer_bytes;
        assert!(held <= 2 << 20, "{held} bytes are buffered");
        assert_eq!(server.status().result_spill_bytes, 0);
    }
    drop(stream);
    session.close().await;
    becomes_idle(&server).await;
}

#[tokio::test]
async fn a_partition_that_nobody_reads_spills_and_the_others_go_on() {
    let (server, session) = with_session(server(small())).await;
    session.set_option("endpoints", Some(OptionValue::Int64(3))).await.expect("sets");
    // A round-robin exchange below: each partition gets rows whether or not it is read.
    let sql = "SELECT value, sum(value) OVER (PARTITION BY value) AS total FROM generate_series(1, 600000) AS s(value)";
    let answer = session.start(&Request::sql(sql)).await.expect("starts");
    assert_eq!(answer.partitions, 3);
    assert!(!answer.ordered);
    let mut total = 0;
    for partition in 0..answer.partitions {
        let stream = server.attach(session.principal(), answer.query, partition).await.expect("attaches");
        let batches: Vec<RecordBatch> = stream.try_collect().await.expect("reads");
        total += batches.iter().map(RecordBatch::num_rows).sum::<usize>();
    }
    assert_eq!(total, 600_000);
    session.close().await;
    becomes_idle(&server).await;
}

#[tokio::test]
async fn a_reader_that_lets_rows_lie_loses_its_query() {
    let (server, session) =
        with_session(server(Limits { reader_timeout: Duration::from_millis(200), ..small() })).await;
    let answer = session.start(&Request::sql(LONG)).await.expect("starts");
    let stream = server.attach(session.principal(), answer.query, 0).await.expect("attaches");
    assert!(becomes(|| server.status().running_queries == 0).await, "the slot is free");
    let rest: Result<Vec<_>, _> = stream.try_collect().await;
    let error = rest.expect_err("ended");
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.message().contains("read no rows"), "{error}");
    session.close().await;
    becomes_idle(&server).await;
}

#[tokio::test]
async fn a_reader_that_leaves_early_is_logged_as_cancelled() {
    let (server, session) = with_session(server(small())).await;
    let answer = session.start(&Request::sql(LONG)).await.expect("starts");
    let mut stream = server.attach(session.principal(), answer.query, 0).await.expect("attaches");
    stream.next().await.expect("a batch").expect("reads");
    drop(stream);
    assert_eq!(rows(&server, &Request::sql("SELECT 1")).await, 1);
    let log = server.shared.context.log.rows(session.principal()).expect("the log");
    let outcomes = log.column_by_name("outcome").expect("a column").as_string::<i32>().iter().flatten();
    assert_eq!(outcomes.collect::<Vec<_>>(), ["cancelled", "finished"]);
}

#[tokio::test]
async fn a_client_that_reads_one_endpoint_after_another_is_not_stalled() {
    let (server, session) =
        with_session(server(Limits { reader_timeout: Duration::from_secs(1), ..small() })).await;
    session.set_option("endpoints", Some(OptionValue::Int64(2))).await.expect("sets");
    let sql = "SELECT value, sum(value) OVER (PARTITION BY value) AS total FROM generate_series(1, 600000) AS s(value)";
    let answer = session.start(&Request::sql(sql)).await.expect("starts");
    assert_eq!(answer.partitions, 2);
    let first = server.attach(session.principal(), answer.query, 0).await.expect("attaches");
    let second = server.attach(session.principal(), answer.query, 1).await.expect("attaches");
    let mut rows = 0;
    for mut stream in [first, second] {
        while let Some(batch) = stream.next().await {
            rows += batch.expect("reads").num_rows();
            tokio::time::sleep(Duration::from_millis(40)).await;
        }
        // Time for a sweep between one endpoint and the next.
        drop(stream);
        tokio::time::sleep(Duration::from_millis(600)).await;
    }
    assert_eq!(rows, 600_000);
}

/// A query that has ended, with rows on disk for two readers, of which the first one has taken a batch.
async fn half_read_on_disk(server: &Arc<Bowshot>) -> (Arc<dyn Session>, QueryId, BatchStream) {
    let session = session(server).await;
    session.set_option("endpoints", Some(OptionValue::Int64(2))).await.expect("sets");
    let sql = "SELECT value, sum(value) OVER (PARTITION BY value) AS total FROM generate_series(1, 600000) AS s(value)";
    let answer = session.start(&Request::sql(sql)).await.expect("starts");
    let (owner, wait) = (session.principal().clone(), Duration::from_secs(10));
    while !server.progress(&owner, answer.query, Some(0.0), wait).await.expect("goes on").done {}
    let mut first = server.attach(&owner, answer.query, 0).await.expect("attaches");
    first.next().await.expect("a batch").expect("reads");
    assert!(server.status().result_spill_bytes > 0, "{:?}", server.status());
    (session, answer.query, first)
}

#[tokio::test]
async fn a_reader_of_rows_on_disk_hears_of_a_cancel() {
    let server = server(small());
    let (session, query, first) = half_read_on_disk(&server).await;
    let outcome = server.cancel(session.principal(), query).await.expect("cancels");
    assert_eq!(outcome, CancelOutcome::Cancelled);
    session.close().await;
    // Its space is free while the reader is still there.
    becomes_idle(&server).await;
    let rest: Result<Vec<_>, _> = first.try_collect().await;
    assert_eq!(rest.expect_err("cancelled").kind(), ErrorKind::Cancelled);
}

#[tokio::test]
async fn a_reader_that_lets_rows_lie_on_disk_loses_its_query() {
    let server = server(Limits { reader_timeout: Duration::from_millis(300), ..small() });
    let (session, _, first) = half_read_on_disk(&server).await;
    assert!(becomes(|| server.status().result_spill_bytes == 0).await, "the space is free");
    let rest: Result<Vec<_>, _> = first.try_collect().await;
    assert_eq!(rest.expect_err("cut off").kind(), ErrorKind::Timeout);
    session.close().await;
}
