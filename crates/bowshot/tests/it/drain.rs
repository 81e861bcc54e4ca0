//! SIGTERM: running queries finish, new ones are refused, the exit code tells whether anything was cut off.

use crate::program::{Signal, TestServer, show};
use futures::TryStreamExt;

/// More rows than fit into buffers and sockets, so that the query runs until it is read.
const LONG: &str = "SELECT value, value + 1 AS next FROM generate_series(1, 20000000) AS s(value)";
/// Never ends by itself.
const ENDLESS: &str = "SELECT count(*) FROM generate_series(1, 100000000) AS a(value), generate_series(1, 100000000) AS b(value) WHERE a.value + b.value = 0";

#[test]
fn an_idle_server_ends_at_once() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut server = TestServer::start(&[]);
        server.signal(signal);
        assert_eq!(server.wait(), Some(0), "{signal}");
        assert!(server.log().contains("draining"), "{}", server.log());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_runs_is_read_to_its_end() {
    let mut server = TestServer::start(&[]);
    let client = server.client().await;
    let other = server.client().await;
    assert!(show(&other, "SELECT 1 AS one").await.contains("| 1 "));
    let query = client.execute(LONG).await.expect("start");
    let mut batches = query.batches();
    let mut rows = batches.try_next().await.expect("a batch").expect("not empty").num_rows();
    server.signal(Signal::SIGTERM);
    server.wait_for_line("draining");
    let (status, body) = server.get("/ready");
    assert_eq!(status, 503, "{body}");
    assert_eq!(server.get("/health").0, 200);
    let refused = show(&other, "SELECT 2 AS two").await;
    assert!(refused.starts_with("error: ") && refused.contains("drain"), "{refused}");
    while let Some(batch) = batches.try_next().await.expect("the stream goes on") {
        rows += batch.num_rows();
    }
    assert_eq!(rows, 20_000_000);
    drop((batches, query, client, other));
    assert_eq!(server.wait(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_does_not_end_is_cut_off() {
    let mut server = TestServer::start(&["--set", "limits.drain_timeout=100ms"]);
    let client = server.client().await;
    let asking = tokio::spawn(async move { show(&client, ENDLESS).await });
    server.wait_for_metric("bowshot_running_queries", 1.0);
    server.signal(Signal::SIGTERM);
    assert_eq!(server.wait(), Some(1));
    assert!(server.log().contains("error: the drain timeout is over"), "{}", server.log());
    let told = asking.await.expect("no panic");
    assert!(told.starts_with("error: "), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_at_once() {
    let mut server = TestServer::start(&["--set", "limits.drain_timeout=1h"]);
    let client = server.client().await;
    let asking = tokio::spawn(async move { show(&client, ENDLESS).await });
    server.wait_for_metric("bowshot_running_queries", 1.0);
    server.signal(Signal::SIGTERM);
    server.wait_for_line("draining");
    server.signal(Signal::SIGTERM);
    assert_eq!(server.wait(), Some(1));
    assert!(server.log().contains("second SIGTERM"), "{}", server.log());
    let told = asking.await.expect("no panic");
    assert!(told.starts_with("error: "), "{told}");
}
