//! Texts of statements.

use super::Port;

#[tokio::test]
async fn statements_of_a_text_run_in_turn() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    for (sql, expected) in [
        ("", "I ZI"),
        (" ;-- nothing\n;", "I ZI"),
        ("rows 2", "T[n 20] D[0] D[1] C[ROWS] ZI"),
        ("rows 1; insert; rows 0", "T[n 20] D[0] C[ROWS] C[INSERT 0 3] T[n 20] C[ROWS] ZI"),
        ("rows 1; fail; rows 2", "T[n 20] D[0] C[ROWS] E[22012: divide by zero] ZI"),
        (
            "rows 1; wrong",
            "T[n 20] D[0] C[ROWS] E[42601: syntax error: unexpected `x` at line 1, column 4: 12] ZI",
        ),
    ] {
        assert_eq!(client.query(sql).await, expected, "{sql}");
    }
    let answer = client.query("bad").await;
    assert!(
        answer.starts_with("E[XX000: internal error (request ") && !answer.contains("secret"),
        "{answer}"
    );
}

#[tokio::test]
async fn transactions_fail_until_they_end() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    let aborted = "E[25P02: current transaction is aborted, commands ignored until end of transaction block]";
    for (sql, expected) in [
        ("begin", "C[BEGIN] ZT".to_owned()),
        ("begin", "N[25001: there is already a transaction in progress] C[BEGIN] ZT".to_owned()),
        ("fail", "E[22012: divide by zero] ZE".to_owned()),
        ("rows 1", format!("{aborted} ZE")),
        ("begin", format!("{aborted} ZE")),
        ("rollback to a", "C[ROLLBACK] ZT".to_owned()),
        ("fail", "E[22012: divide by zero] ZE".to_owned()),
        ("commit", "C[ROLLBACK] ZI".to_owned()),
        ("commit", "N[25P01: there is no transaction in progress] C[COMMIT] ZI".to_owned()),
        ("begin; insert; commit", "C[BEGIN] C[INSERT 0 3] C[COMMIT] ZI".to_owned()),
    ] {
        assert_eq!(client.query(sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn statements_of_one_text_are_one_transaction() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    port.server.effects();
    for (sql, effects) in [
        ("insert", &["insert"][..]),
        ("insert; insert", &["(begin)", "insert", "insert", "(Commit)"]),
        ("insert a; wrong", &["(begin)", "insert a", "(Rollback)"]),
        ("rows 1; fail", &["(begin)", "(Rollback)"]),
        // What stands before BEGIN belongs to it; behind COMMIT another transaction begins.
        (
            "insert a; begin; insert b; commit; insert c; insert d",
            &[
                "(begin)", "insert a", "begin", "insert b", "commit", "(begin)", "insert c", "insert d",
                "(Commit)",
            ],
        ),
        ("insert a; commit; insert b", &["(begin)", "insert a", "(Commit)", "insert b"]),
        (
            "insert a; rollback; insert b; fail",
            &["(begin)", "insert a", "(Rollback)", "(begin)", "insert b", "(Rollback)"],
        ),
        ("begin; insert", &["begin", "insert"]),
        ("commit; insert", &["commit", "insert"]),
    ] {
        client.query(sql).await;
        assert_eq!(port.server.effects(), effects, "{sql}");
    }
}

#[tokio::test]
async fn a_panic_ends_its_connection_alone() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    client.send(b'Q', b"panic\0").await;
    assert_eq!(super::shown(&[client.next().await.unwrap()]), "E[XX000: the server has a defect]");
    assert_eq!(client.next().await, None);
    port.server.until(|counts| counts.sessions == 0).await;
    assert_eq!(port.connect().await.query("rows 1").await, "T[n 20] D[0] C[ROWS] ZI");
}
