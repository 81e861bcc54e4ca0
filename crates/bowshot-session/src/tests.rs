//! The server API over a real engine with temporary catalogs: what is bounded, freed, refused and logged.

mod copying;
mod drain;
mod prepared_statements;
mod readers;
mod writing;

use crate::{Bowshot, QueryLog};
use arrow::array::{AsArray, RecordBatch};
use bowshot_access::Authenticator;
use bowshot_api::{
    Delivery, ErrorKind, Limits, OptionValue, Principal, Request, Server, ServerStatus, Session, Statement,
};
use bowshot_engine::{Engine, EngineConfig};
use futures::{StreamExt, TryStreamExt};
use std::sync::Arc;
use std::time::Duration;

/// Rows enough to overflow every buffer of these tests many times over.
const LONG: &str = "SELECT value, value + 1 AS next FROM generate_series(1, 3000000) AS s(value)";
/// Does not end in the time of a test.
const ENDLESS: &str = "SELECT count(*) FROM generate_series(1, 10000000000000) AS s(value)";

fn server(limits: Limits) -> Arc<Bowshot> {
    let config = EngineConfig { threads: 2, ..EngineConfig::default() };
    let engine = Engine::scratch(&config).expect("the engine starts");
    let server = Bowshot::new(engine, Authenticator::anonymous(), limits, Arc::new(QueryLog::default()));
    server.set_ready();
    server
}

fn small() -> Limits {
    Limits { result_buffer_bytes: 1 << 20, ..Limits::default() }
}

async fn session(server: &Arc<Bowshot>) -> Arc<dyn Session> {
    server.open_session(&Principal::anonymous()).await.expect("a session opens")
}

async fn with_session(server: Arc<Bowshot>) -> (Arc<Bowshot>, Arc<dyn Session>) {
    let session = session(&server).await;
    (server, session)
}

async fn rows(server: &Arc<Bowshot>, request: &Request) -> usize {
    let session = session(server).await;
    let answer = session.start(request).await.expect("the query starts");
    let mut rows = 0;
    for partition in 0..answer.partitions {
        let stream = server.attach(session.principal(), answer.query, partition).await.expect("attaches");
        let batches: Vec<RecordBatch> = stream.try_collect().await.expect("reads");
        rows += batches.iter().map(RecordBatch::num_rows).sum::<usize>();
    }
    session.close().await;
    rows
}

/// Waits until a condition holds; the test's own time limit is the only clock.
async fn becomes(holds: impl Fn() -> bool) -> bool {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.is_ok()
}

/// Waits until the server holds nothing any more.
async fn becomes_idle(server: &Arc<Bowshot>) {
    let is_idle = becomes(|| server.status() == ServerStatus::default()).await;
    assert!(is_idle, "the server still holds {:?}", server.status());
}

#[tokio::test]
async fn a_result_is_read_once_and_leaves_nothing() {
    let server = server(small());
    assert_eq!(rows(&server, &Request::sql(LONG)).await, 3_000_000);
    becomes_idle(&server).await;
}

#[tokio::test]
async fn a_small_result_comes_with_the_answer_for_those_who_take_it() {
    let (server, session) = with_session(server(small())).await;
    let asked = |sql: &str, at_once: bool| Request { at_once, ..Request::sql(sql) };
    for (request, given) in [
        (asked("SELECT 7 AS n", true), Some(1)),
        (asked("SELECT 7 AS n", false), None),
        (asked(LONG, true), None),
        (Request { delivery: Some(Delivery::Spool), ..asked("SELECT 7 AS n", true) }, None),
    ] {
        let answer = session.start(&request).await.expect("starts");
        let rows = answer.batches.as_ref().map(|all| all.iter().map(RecordBatch::num_rows).sum::<usize>());
        assert_eq!(rows, given, "{request:?}");
        let attached = server.attach(session.principal(), answer.query, 0).await;
        assert_eq!(attached.is_ok(), given.is_none(), "{request:?}");
        drop(attached);
        if given.is_none() {
            _ = server.cancel(session.principal(), answer.query).await;
        }
    }
    session.close().await;
    becomes_idle(&server).await;
}

#[tokio::test]
async fn somebody_elses_result_is_not_found() {
    let (server, session) = with_session(server(small())).await;
    let answer = session.start(&Request::sql("SELECT 1")).await.expect("starts");
    let stranger = Principal::user("mallory");
    for error in [
        server.attach(&stranger, answer.query, 0).await.expect_err("foreign"),
        server.cancel(&stranger, answer.query).await.expect_err("foreign"),
        server.renew(&stranger, answer.query).expect_err("foreign"),
        server.find_session(session.id(), &stranger).expect_err("foreign"),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}

#[tokio::test]
async fn a_full_disk_budget_fails_the_query_and_not_the_server() {
    let (server, session) = with_session(server(Limits { result_spill_bytes: 4 << 20, ..small() })).await;
    let request = Request { delivery: Some(Delivery::Spool), ..Request::sql(LONG) };
    let answer = session.start(&request).await.expect("starts");
    let stream = server.attach(session.principal(), answer.query, 0).await.expect("attaches");
    let error = stream.try_collect::<Vec<_>>().await.expect_err("too much for the disk");
    assert_eq!(error.kind(), ErrorKind::LimitReached);
    session.close().await;
    server.cancel(&Principal::anonymous(), answer.query).await.expect("known");
    assert_eq!(rows(&server, &Request::sql("SELECT 1")).await, 1);
    becomes_idle(&server).await;
}

#[tokio::test]
async fn joins_that_only_count_can_be_cancelled() {
    let (server, session) = with_session(server(small())).await;
    let numbers = "generate_series(1, 300000)";
    for join in ["a.value < b.value", "a.value % 2 = b.value % 2"] {
        let sql = format!("SELECT count(*) FROM {numbers} AS a(value) JOIN {numbers} AS b(value) ON {join}");
        let request = Request { delivery: Some(Delivery::Spool), ..Request::sql(sql) };
        for _ in 0..4 {
            let answer = session.start(&request).await.expect("starts");
            tokio::time::sleep(Duration::from_millis(100)).await;
            server.cancel(session.principal(), answer.query).await.expect("cancels");
        }
        assert_eq!(rows(&server, &Request::sql("SELECT 1")).await, 1);
    }
    session.close().await;
    becomes_idle(&server).await;
}

#[tokio::test]
async fn a_statement_may_take_longer_to_its_first_row_than_a_result_may_wait() {
    let (_server, session) =
        with_session(server(Limits { result_timeout: Duration::from_millis(1), ..small() })).await;
    // The sweep comes every half second; this takes longer than that on any machine.
    let sql = "SELECT count(*) FROM generate_series(1, 60000) AS a(value) JOIN generate_series(1, 60000) AS b(value) ON a.value < b.value";
    session.start(&Request::sql(sql)).await.expect("the result has not expired while its caller waits");
}

#[tokio::test]
async fn a_full_line_is_refused_and_a_slot_comes_back() {
    let limits = Limits { max_running_queries: 1, max_queued_queries: 0, ..small() };
    let (server, session) = with_session(server(limits)).await;
    let request = Request { delivery: Some(Delivery::Spool), ..Request::sql(ENDLESS) };
    let answer = session.start(&request).await.expect("starts");
    let error = session.start(&Request::sql("SELECT 1")).await.expect_err("full");
    assert_eq!(error.kind(), ErrorKind::LimitReached);
    server.cancel(session.principal(), answer.query).await.expect("cancels");
    session.start(&Request::sql("SELECT 1")).await.expect("the slot is free");
}

#[tokio::test]
async fn statements_that_reach_files_or_the_engine_are_refused() {
    let (_server, session) = with_session(server(small())).await;
    for sql in [
        "COPY (SELECT 1) TO '/tmp/bowshot-test.csv'",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '/tmp/bowshot-test.csv'",
        "BEGIN TRANSACTION",
    ] {
        let error = session.describe(&Statement::Sql(sql.to_owned())).await.expect_err(sql);
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{sql}: {error}");
    }
}

#[tokio::test]
async fn a_spooled_result_that_is_read_again_is_logged_as_finished() {
    let (server, session) = with_session(server(small())).await;
    let request = Request { delivery: Some(Delivery::Spool), ..Request::sql(LONG) };
    let answer = session.start(&request).await.expect("starts");
    let mut broken = server.attach(session.principal(), answer.query, 0).await.expect("attaches");
    broken.next().await.expect("a batch").expect("reads");
    drop(broken);
    let again = server.attach(session.principal(), answer.query, 0).await.expect("attaches");
    let batches: Vec<RecordBatch> = again.try_collect().await.expect("reads");
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 3_000_000);
    let log = server.shared.context.log.rows(session.principal()).expect("the log");
    let outcomes = log.column_by_name("outcome").expect("a column").as_string::<i32>().iter().flatten();
    assert_eq!(outcomes.collect::<Vec<_>>(), ["finished"]);
}
