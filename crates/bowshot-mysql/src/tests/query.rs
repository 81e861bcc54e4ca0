//! Texts of statements.

use super::{CLIENT, Port};
use crate::capability::DEPRECATE_EOF;

#[tokio::test]
async fn statements_are_answered() {
    let port = Port::new().await;
    for capabilities in [CLIENT, CLIENT & !DEPRECATE_EOF] {
        let mut client = port.connect_as(capabilities, "").await;
        for (sql, expected) in [
            ("", "E[1065 42000query was empty]"),
            (" ;-- nothing\n;", "E[1065 42000query was empty]"),
            ("/* nothing; */ -- at all", "OK[0 auto]"),
            ("rows 2", "T[n 8] D[0] D[1] EOF[auto]"),
            ("rows 0;", "T[n 8] EOF[auto]"),
            ("insert", "OK[3 auto]"),
            ("/*!40101 insert */", "OK[3 auto]"),
            ("fail", "E[1365 22012divide by zero]"),
            ("wrong", "E[1064 42000syntax error: unexpected `x` at line 1, column 4]"),
            ("missing", "E[1146 42S02table `t` not found]"),
            ("double", "E[1062 23000duplicate key]"),
            ("slow", "E[3024 HY000too slow]"),
            ("SHOW CREATE TABLE a.t", "T[n 8|s 253] EOF[auto]"),
            ("SELECT @@nothing", "E[1193 HY000unknown system variable 'nothing']"),
        ] {
            assert_eq!(client.query(sql).await, expected, "{sql}");
        }
        let answer = client.query("bad").await;
        assert!(
            answer.starts_with("E[1105 HY000internal error (request ") && !answer.contains("secret"),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn transactions_are_told_and_begin_by_themselves_without_autocommit() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    port.server.effects();
    for (sql, expected, effects) in [
        ("begin", "OK[0 trans auto]", &["BEGIN"][..]),
        ("insert", "OK[3 trans auto]", &["insert"]),
        ("START TRANSACTION READ ONLY", "OK[0 trans auto]", &["COMMIT", "BEGIN READ ONLY"]),
        ("rollback", "OK[0 auto]", &["ROLLBACK"]),
        ("commit", "OK[0 auto]", &[]),
        ("SET autocommit=0", "OK[0]", &[]),
        ("rows 1", "T[n 8] D[0] EOF[]", &[]),
        ("insert", "OK[3 trans]", &["BEGIN", "insert"]),
        ("create t", "OK[3]", &["COMMIT", "create t"]),
        ("insert", "OK[3 trans]", &["BEGIN", "insert"]),
        ("SET @@session.autocommit = ON", "OK[0 auto]", &["COMMIT"]),
        ("SET SESSION TRANSACTION READ ONLY", "OK[0 auto]", &[]),
        (
            "insert",
            "E[1792 25006cannot execute statement in a READ ONLY transaction; `SET SESSION TRANSACTION READ WRITE`]",
            &[],
        ),
        ("begin", "OK[0 trans auto]", &["BEGIN READ ONLY"]),
        ("SET autocommit=2", "E[1231 42000variable 'autocommit' can't be set to the value of '2']", &[]),
    ] {
        assert_eq!(client.query(sql).await, expected, "{sql}");
        assert_eq!(port.server.effects(), effects, "{sql}");
    }
}

#[tokio::test]
async fn what_is_set_is_kept_by_the_session() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    port.server.effects();
    for (sql, code) in [
        ("SET NAMES utf8mb4", ""),
        ("SET NAMES latin1", "1115"),
        ("SET character_set_results = NULL", ""),
        ("SET sql_mode = CONCAT(@@sql_mode, ',A')", ""),
        ("SET colour = red", "1193"),
        ("SET version = 9", "1238"),
        ("SET wait_timeout = x", "1231"),
        ("SET transaction_isolation = 'READ-COMMITTED'", ""),
        ("SET @x = 1", ""),
        ("SET @x = f(1)", "1064"),
        ("USE nowhere", "1049"),
        ("USE `main`", ""),
    ] {
        let answer = client.query(sql).await;
        let expected = if code.is_empty() { "OK[".to_owned() } else { format!("E[{code} ") };
        assert!(answer.starts_with(&expected), "{sql}: {answer}");
    }
    let set = port.server.effects().join(", ");
    for effect in ["sql_mode = Some(String(\",A\"))", "String(\"read committed\")", "USE `main`"] {
        assert!(set.contains(effect), "{effect}: {set}");
    }
}

#[tokio::test]
async fn a_select_gives_as_many_rows_as_the_session_says() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    for (sql, expected) in [
        ("SET SQL_SELECT_LIMIT = 2", "OK[0 auto]"),
        ("(rows 5)", "T[n 8] D[0] D[1] EOF[auto]"),
        ("rows 3", "T[n 8] D[0] D[1] D[2] EOF[auto]"),
        ("SET SQL_SELECT_LIMIT = 0", "OK[0 auto]"),
        ("(rows 5)", "T[n 8] EOF[auto]"),
        ("SET SQL_SELECT_LIMIT = DEFAULT", "OK[0 auto]"),
        ("(rows 3)", "T[n 8] D[0] D[1] D[2] EOF[auto]"),
    ] {
        assert_eq!(client.query(sql).await, expected, "{sql}");
    }
    assert!(client.query("SET sql_select_limit = many").await.starts_with("E[1231 "));
    port.server.until(|counts| counts.streams == 0).await;
}

#[tokio::test]
async fn commands_without_a_statement() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    client.command(0x0e, b"").await;
    assert_eq!(client.result(false).await.0, "OK[0 auto]");
    client.command(9, b"").await;
    assert!(client.next().await.unwrap().starts_with(b"Sessions: "));
    client.command(2, b"main").await;
    assert_eq!(client.result(false).await.0, "OK[0 auto]");
    client.command(2, b"nowhere").await;
    assert!(client.result(false).await.0.starts_with("E[1049 "));
    client.command(4, b"t\0").await;
    for name in ["n 8", "s 253"] {
        assert_eq!(super::column(&client.next().await.unwrap()), name);
    }
    assert_eq!(client.next().await.unwrap()[0], 0xfe);
    for command in [5, 6, 7, 8, 0x0d, 0x12, 0x1e, 0x77] {
        client.command(command, b"x").await;
        assert_eq!(client.result(false).await.0, "E[1047 08S01unknown command]");
    }
    client.command(1, b"").await;
    assert_eq!(client.next().await, None);
    port.server.until(|counts| counts.sessions == 0).await;
}

#[tokio::test]
async fn a_panic_ends_its_connection_alone() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    assert_eq!(client.query("panic").await, "E[1105 HY000the server has a defect]");
    assert_eq!(client.next().await, None);
    port.server.until(|counts| counts.sessions == 0).await;
    assert_eq!(port.connect().await.query("rows 1").await, "T[n 8] D[0] EOF[auto]");
}
