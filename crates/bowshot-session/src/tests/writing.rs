//! Statements that change tables: how long they may run, and what the log tells of them.

use super::*;
use arrow::array::Int64Array;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use bowshot_api::{BatchStream, IfExists, IfMissing, Ingest};
use std::collections::BTreeMap;

/// Does not end in the time of a test, and gives its rows one after the other.
const ENDLESS_INSERT: &str =
    "INSERT INTO t SELECT value FROM generate_series(1, 10000000000000) AS s(value) WHERE value < 0";

pub(super) fn store(limits: Limits) -> Arc<Bowshot> {
    let config = EngineConfig { threads: 2, ..EngineConfig::default() };
    let engine = Engine::without_files(&config, None, 64 << 20).expect("the engine starts");
    let server = Bowshot::new(engine, Authenticator::anonymous(), limits, Arc::new(QueryLog::default()));
    server.set_ready();
    server
}

async fn run(session: &Arc<dyn Session>, sql: &str) -> Option<u64> {
    session.update(&Request::sql(sql)).await.expect(sql)
}

/// Statement, outcome and error of all that the log has.
fn log(server: &Bowshot) -> Vec<[String; 3]> {
    let log = server.shared.context.log.rows(&Principal::anonymous()).expect("the log");
    let column = |name: &str| {
        let column = log.column_by_name(name).expect("a column").as_string::<i32>().clone();
        column.iter().map(|value| value.unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let rows = column("statement").into_iter().zip(column("outcome")).zip(column("error"));
    rows.map(|((statement, outcome), error)| [statement, outcome, error]).collect()
}

fn into(table: &str) -> Ingest {
    Ingest {
        catalog: None,
        schema_name: None,
        table: table.to_owned(),
        temporary: false,
        if_missing: IfMissing::Create,
        if_exists: IfExists::Append,
        transaction: None,
        options: BTreeMap::new(),
    }
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]))
}

#[tokio::test]
async fn ingests_that_ask_for_what_there_is_not() {
    let (_server, session) = with_session(store(small())).await;
    let temporary = Ingest { temporary: true, ..into("t") };
    let placed = "a temporary table cannot be created in a given schema or catalog";
    for (ingest, expected) in [
        (Ingest { schema_name: Some("s".to_owned()), ..temporary.clone() }, placed),
        (Ingest { catalog: Some("c".to_owned()), ..temporary }, placed),
        (
            Ingest { options: BTreeMap::from([("speed".to_owned(), "11".to_owned())]), ..into("t") },
            "unknown ingest option `speed`",
        ),
    ] {
        let error = session.ingest(&ingest, BatchStream::from_batches(schema(), vec![])).await;
        assert_eq!(error.expect_err(expected).message(), expected);
    }
}

#[tokio::test]
async fn the_statement_timeout_ends_a_statement_that_writes() {
    let (server, session) = with_session(store(small())).await;
    run(&session, "CREATE TABLE t (a BIGINT)").await;
    session.set_option("statement_timeout_ms", Some(OptionValue::String("50".into()))).await.expect("sets");
    let error = session.update(&Request::sql(ENDLESS_INSERT)).await.expect_err("too long");
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    let rows = BatchStream::new(schema(), futures::stream::pending().boxed());
    let error = session.ingest(&into("t"), rows).await.expect_err("too long");
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    session.set_option("statement_timeout_ms", None).await.expect("sets");
    assert_eq!(run(&session, "DELETE FROM t").await, Some(0));
    let failed: Vec<_> = log(&server).into_iter().filter(|[_, outcome, _]| outcome == "failed").collect();
    let [[first, ..], [second, _, reason]] = failed.as_slice() else { panic!("{failed:?}") };
    assert_eq!([first.as_str(), second], [ENDLESS_INSERT, "bulk ingest into t"]);
    assert!(reason.contains("50 ms"), "{reason}");
    session.close().await;
    becomes_idle(&server).await;
}

#[tokio::test]
async fn what_was_written_or_failed_is_in_the_log() {
    let (server, session) = with_session(store(small())).await;
    run(&session, "CREATE TABLE t (a BIGINT NOT NULL)").await;
    let batch = |values: Vec<Option<i64>>| {
        RecordBatch::try_new(schema(), vec![Arc::new(Int64Array::from(values))]).expect("fits")
    };
    let rows = |values| BatchStream::from_batches(schema(), vec![batch(values)]);
    session.ingest(&into("t"), rows(vec![Some(1)])).await.expect("fits");
    session.ingest(&into("t"), rows(vec![None])).await.expect_err("NULL");
    session.update(&Request::sql("INSERT INTO t VALUES (NULL)")).await.expect_err("NULL");
    let endless = Request::sql(ENDLESS_INSERT);
    let waiting = tokio::time::timeout(Duration::from_millis(100), session.update(&endless));
    assert!(waiting.await.is_err(), "it ended");
    // What runs on the query threads hears a moment later that nobody waits for it.
    assert!(becomes(|| server.status().running_queries == 0).await, "it ends");
    // A statement whose caller has left is shown as running until its work has noticed.
    let over = log(&server).into_iter().filter(|[_, outcome, _]| outcome != "running");
    let told: Vec<[String; 2]> = over.map(|[sql, outcome, _]| [sql, outcome]).collect();
    let told: Vec<[&str; 2]> = told.iter().map(|[sql, outcome]| [sql.as_str(), outcome.as_str()]).collect();
    assert_eq!(
        told,
        [
            ["CREATE TABLE t (a BIGINT NOT NULL)", "finished"],
            ["bulk ingest into t", "finished"],
            ["bulk ingest into t", "failed"],
            ["INSERT INTO t VALUES (NULL)", "failed"],
            [ENDLESS_INSERT, "cancelled"],
        ]
    );
}

#[tokio::test]
async fn a_commit_shows_temporary_and_shared_tables_or_neither() {
    let server = store(small());
    let (first, second) = (session(&server).await, session(&server).await);
    run(&first, "BEGIN").await;
    run(&first, "CREATE TEMPORARY TABLE own (a BIGINT)").await;
    run(&first, "CREATE TABLE t (a BIGINT)").await;
    run(&second, "CREATE TABLE t (a TEXT)").await;
    let error = first.update(&Request::sql("COMMIT")).await.expect_err("the second one was first");
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let error = first.start(&Request::sql("SELECT * FROM own")).await.expect_err("not kept");
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

#[tokio::test]
async fn there_are_only_so_many_catalogs() {
    let (_server, session) = with_session(store(small())).await;
    run(&session, "BEGIN").await;
    // One is there, with one schema.
    for number in 1..1_000 {
        run(&session, &format!("CREATE DATABASE c{number}")).await;
    }
    let error = session.update(&Request::sql("CREATE DATABASE more")).await.expect_err("too many");
    assert_eq!(error.kind(), ErrorKind::LimitReached, "{error}");
    run(&session, "DROP DATABASE c1").await;
    run(&session, "CREATE DATABASE more").await;
}

#[tokio::test]
async fn views_that_multiply_are_refused() {
    let (_server, session) = with_session(store(small())).await;
    run(&session, "CREATE TABLE t (a BIGINT)").await;
    run(&session, "CREATE VIEW v0 AS SELECT a FROM t").await;
    let next = |level: usize| {
        let below = level - 1;
        format!("CREATE VIEW v{level} AS SELECT x.a FROM v{below} AS x, v{below} AS y")
    };
    let mut level = 0;
    let error = loop {
        level += 1;
        if let Err(error) = session.update(&Request::sql(next(level))).await {
            break error;
        }
        assert!(level < 32, "nothing stops it");
    };
    assert_eq!(error.kind(), ErrorKind::LimitReached, "{error}");
    assert!(error.message().contains("5000 operators"), "{error}");
    assert!(level > 5, "view {level} was refused");
    let wide = format!(
        "SELECT count(*) FROM {}",
        (0..100).map(|n| format!("v{} AS x{n}", level - 1)).collect::<Vec<_>>().join(", ")
    );
    for sql in [wide.clone(), format!("DELETE FROM t USING ({wide}) AS z"), format!("INSERT INTO t {wide}")] {
        let error = session.describe(&Statement::Sql(sql.clone())).await.expect_err(&sql);
        assert_eq!(error.kind(), ErrorKind::LimitReached, "{error}");
    }
    // A view that grows under another one.
    run(&session, "CREATE VIEW low AS SELECT a FROM t").await;
    run(&session, "CREATE VIEW high AS SELECT x.a FROM low AS x, low AS y").await;
    run(&session, &format!("CREATE OR REPLACE VIEW low AS SELECT a FROM v{}", level - 1)).await;
    let error = session.start(&Request::sql("SELECT * FROM high")).await.expect_err("too large");
    assert_eq!(error.kind(), ErrorKind::LimitReached, "{error}");
}

#[tokio::test]
async fn rows_are_locked_until_their_transaction_ends() {
    let server = store(small());
    let (first, second) = (session(&server).await, session(&server).await);
    run(&first, "CREATE TABLE t (a BIGINT PRIMARY KEY, n BIGINT)").await;
    run(&first, "INSERT INTO t VALUES (1, 0), (2, 0)").await;
    let change = |n: i64| Request::sql(format!("UPDATE t SET n = n + {n} WHERE a = 1"));
    for end in ["COMMIT", "ROLLBACK"] {
        run(&first, "BEGIN ISOLATION LEVEL READ COMMITTED").await;
        first.update(&change(1)).await.expect("nobody else is there");
        run(&second, "UPDATE t SET n = n + 1 WHERE a = 2").await;
        let waiting = {
            let (second, change) = (Arc::clone(&second), change(10));
            tokio::spawn(async move { second.update(&change).await })
        };
        let waits = || server.shared.live.by_principal(&Principal::anonymous());
        assert!(
            becomes(|| waits().iter().any(|it| it.state().waits_for().is_some_and(|on| on.contains("row"))))
                .await
        );
        run(&first, end).await;
        assert_eq!(waiting.await.expect("runs").expect("has the lock"), Some(1));
    }
    // The session that holds a lock closes.
    run(&first, "BEGIN").await;
    first.update(&change(100)).await.expect("nobody else is there");
    first.close().await;
    assert_eq!(second.update(&change(1000)).await.expect("has the lock"), Some(1));
    let stayed = Request::sql("SELECT a FROM t WHERE (a = 1 AND n = 1021) OR (a = 2 AND n = 2)");
    assert_eq!(rows(&server, &stayed).await, 2);
    run(&second, "DROP TABLE t").await;
    second.close().await;
    becomes_idle(&server).await;
}
