//! Statements in steps.

use super::Port;

#[tokio::test]
async fn after_an_error_everything_waits_for_sync() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    client.parse("", "wrong", &[]).await;
    client.bind("", "", (0, 0), &[]).await;
    client.execute("", 0).await;
    assert!(client.sync().await.ends_with("column 4: 4] ZI"));
    client.parse("", "insert", &[]).await;
    client.send(b'D', b"S\0").await;
    client.bind("", "", (0, 0), &[]).await;
    client.execute("", 0).await;
    assert_eq!(client.sync().await, "1 t[] n 2 C[INSERT 0 3] ZI");
}

#[tokio::test]
async fn statements_between_two_syncs_are_one_transaction() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    port.server.effects();
    for (texts, effects) in [
        (&["insert a"][..], &["insert a"][..]),
        (&["insert a", "insert b"], &["(begin)", "insert a", "insert b", "(Commit)"]),
        (&["insert a", "fail", "insert b"], &["(begin)", "insert a", "(Rollback)"]),
        (
            &["insert a", "begin", "insert b", "commit"],
            &["(begin)", "insert a", "begin", "insert b", "commit"],
        ),
    ] {
        for sql in texts {
            client.parse("", sql, &[]).await;
            client.bind("", "", (0, 0), &[]).await;
            client.execute("", 0).await;
        }
        let answer = client.sync().await;
        assert!(answer.ends_with("ZI"), "{texts:?}: {answer}");
        assert_eq!(port.server.effects(), effects, "{texts:?}");
    }
}

#[tokio::test]
async fn what_does_not_fit_is_refused() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    for (sql, types, values, format, expected) in [
        ("rows 1; rows 1", &[][..], &[][..], 0, "42601"),
        ("echo 1", &[23], &[], 0, "08P01"),
        ("echo 1", &[23], &[Some(b"x".as_ref())], 0, "22P02"),
        ("echo 1", &[23], &[Some(b"99999999999")], 0, "22003"),
        ("echo 1", &[23], &[Some(b"abc")], 1, "22P03"),
        ("echo 1", &[999_999], &[Some(b"a\0c")], 1, "42704"),
        ("echo 1", &[25], &[Some(b"\xff")], 0, "22021"),
    ] {
        client.parse("", sql, types).await;
        client.bind("", "", (format, 0), values).await;
        let answer = client.sync().await;
        assert!(answer.contains(&format!("E[{expected}: ")), "{sql}: {answer}");
    }
    client.bind("", "nowhere", (0, 0), &[]).await;
    assert_eq!(client.sync().await, "E[26000: prepared statement \"nowhere\" does not exist] ZI");
    client.parse("twice", "rows 1", &[]).await;
    client.parse("twice", "rows 1", &[]).await;
    assert_eq!(client.sync().await, "1 E[42P05: prepared statement \"twice\" already exists] ZI");
    assert_eq!(client.query("DEALLOCATE twice").await, "C[DEALLOCATE] ZI");
    client.parse("twice", "", &[]).await;
    client.bind("", "twice", (0, 0), &[]).await;
    client.execute("", 0).await;
    assert_eq!(client.sync().await, "1 2 I ZI");
}
