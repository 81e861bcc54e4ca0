//! The HTTP front end of the real program.

use crate::program::TestServer;

#[tokio::test(flavor = "multi_thread")]
async fn metrics_follow_what_happens() {
    let server = TestServer::start(&[]);
    for gauge in [
        "bowshot_sessions",
        "bowshot_running_queries",
        "bowshot_queued_queries",
        "bowshot_open_results",
        "bowshot_result_buffer_bytes",
        "bowshot_result_spill_bytes",
        "bowshot_query_memory_bytes",
        "bowshot_prepared_statements",
        "bowshot_open_transactions",
        "bowshot_table_bytes",
    ] {
        assert_eq!(server.metric(gauge), 0.0, "{gauge} on a server that nobody has used");
    }
    let client = server.client().await;
    let query = client.execute("SELECT * FROM orders").await.expect("start");
    assert_eq!(server.metric("bowshot_sessions"), 1.0);
    assert_eq!(server.metric("bowshot_open_results"), 1.0);
    query.cancel().await.expect("cancel");
    server.wait_for_metric("bowshot_open_results", 0.0);
    server.wait_for_metric("bowshot_running_queries", 0.0);
    client.close().await.expect("close");
    server.wait_for_metric("bowshot_sessions", 0.0);
}
