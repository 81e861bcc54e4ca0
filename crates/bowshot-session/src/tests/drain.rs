//! Draining: nothing new starts, running work ends in time or is cut off.

use super::writing::store;
use super::{ENDLESS, LONG, becomes_idle, server, small, with_session};
use crate::Drained;
use arrow::array::RecordBatch;
use bowshot_api::{ErrorKind, Limits, OptionValue, Request, Server};
use futures::{StreamExt, TryStreamExt};
use std::time::Duration;

#[tokio::test]
async fn a_reader_that_has_left_does_not_hold_up_a_drain() {
    let (server, session) = with_session(server(small())).await;
    session.set_option("endpoints", Some(OptionValue::Int64(2))).await.expect("sets");
    let answer = session.start(&Request::sql(LONG)).await.expect("starts");
    for partition in 0..answer.partitions {
        drop(server.attach(session.principal(), answer.query, partition).await.expect("attaches"));
    }
    // Less than a drain waits for a client that has not come.
    let drained = tokio::time::timeout(Duration::from_millis(4_500), server.drain()).await;
    assert_eq!(drained.expect("in time"), Drained::InTime);
}

#[tokio::test]
async fn a_client_that_does_not_come_for_its_rows_holds_up_a_drain_for_a_moment() {
    let (server, session) = with_session(server(small())).await;
    session.start(&Request::sql(LONG)).await.expect("starts");
    let drained = tokio::time::timeout(Duration::from_secs(60), server.drain()).await;
    assert_eq!(drained.expect("in time"), Drained::InTime);
}

#[tokio::test]
async fn a_drain_that_cuts_off_says_so() {
    let (server, session) =
        with_session(server(Limits { drain_timeout: Duration::from_millis(100), ..small() })).await;
    let answer = session.start(&Request::sql(LONG)).await.expect("starts");
    let mut stream = server.attach(session.principal(), answer.query, 0).await.expect("attaches");
    stream.next().await.expect("a batch").expect("reads");
    assert_eq!(server.drain().await, Drained::CutOff);
    let rest: Result<Vec<_>, _> = stream.try_collect().await;
    assert_eq!(rest.expect_err("cut off").kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn a_client_that_waits_for_its_first_row_holds_up_a_drain() {
    let (server, session) =
        with_session(server(Limits { drain_timeout: Duration::from_millis(100), ..small() })).await;
    let waiting = tokio::spawn(async move { session.start(&Request::sql(ENDLESS)).await });
    // Longer than a client may take to come for rows that are ready.
    tokio::time::sleep(Duration::from_millis(5_500)).await;
    assert_eq!(server.drain().await, Drained::CutOff);
    assert_eq!(waiting.await.expect("ends").expect_err("cut off").kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn an_open_cursor_takes_no_slot_and_holds_up_no_drain() {
    let limits = Limits { max_running_queries: 1, queue_timeout: Duration::from_secs(10), ..small() };
    let (server, session) = with_session(store(limits)).await;
    let declared = format!("DECLARE c CURSOR WITH HOLD FOR {LONG}");
    session.update(&Request::sql(declared)).await.expect("declares");
    let answer = session.start(&Request::sql("FETCH 5 FROM c")).await.expect("fetches");
    let stream = server.attach(session.principal(), answer.query, 0).await.expect("attaches");
    let rows: Vec<RecordBatch> = stream.try_collect().await.expect("reads");
    assert_eq!(rows.iter().map(RecordBatch::num_rows).sum::<usize>(), 5);
    let drained = tokio::time::timeout(Duration::from_secs(60), server.drain()).await;
    assert_eq!(drained.expect("in time"), Drained::InTime);
    session.close().await;
    becomes_idle(&server).await;
}
