//! Prepared statements.

use super::{CLIENT, Port};
use crate::capability::DEPRECATE_EOF;
use bowshot_api::Limits;
use bowshot_rowwire::ListenOptions;

#[tokio::test]
async fn statements_of_all_sorts_can_be_prepared() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    port.server.effects();
    let (insert, columns, parameters) = client.prepare("insert").await.unwrap();
    assert_eq!((columns, parameters), (0, 0));
    let (begin, ..) = client.prepare("START TRANSACTION").await.unwrap();
    client.execute(begin, 0, b"").await;
    assert_eq!(client.result(true).await.0, "OK[0 trans auto]");
    client.execute(insert, 0, b"").await;
    assert_eq!(client.result(true).await.0, "OK[3 trans auto]");
    assert_eq!(port.server.effects(), ["BEGIN", "insert"]);
    for (sql, code) in [("wrong", 1064), ("rows 1; rows 1", 1064), ("", 1064), ("fetch @@a", 1193)] {
        assert!(client.prepare(sql).await.unwrap_err().starts_with(&format!("E[{code} ")), "{sql}");
    }
}

#[tokio::test]
async fn cursors_give_so_many_rows_at_a_time() {
    let port = Port::new().await;
    for capabilities in [CLIENT, CLIENT & !DEPRECATE_EOF] {
        let mut client = port.connect_as(capabilities, "").await;
        let (id, ..) = client.prepare("rows 2500").await.unwrap();
        client.execute(id, 1, b"").await;
        assert_eq!(client.next().await.unwrap(), [1]);
        client.next().await.unwrap();
        assert_eq!(super::end(&client.next().await.unwrap()).0, "auto cursor");
        for (rows, expected) in [(1_000, 1_000), (1_500, 1_500)] {
            client.command(0x1c, &[&id.to_le_bytes()[..], &u32::to_le_bytes(rows)].concat()).await;
            let (shown, _) = client.rows(Some(&[])).await;
            assert_eq!(shown.matches('B').count(), expected);
            assert!(shown.ends_with("EOF[auto cursor]"));
        }
        client.command(0x1c, &[&id.to_le_bytes()[..], &[5, 0, 0, 0]].concat()).await;
        assert_eq!(client.rows(Some(&[])).await.0, "EOF[auto last]");
        client.command(0x1c, &[&id.to_le_bytes()[..], &[5, 0, 0, 0]].concat()).await;
        assert!(client.rows(Some(&[])).await.0.starts_with("E[1421 "));
        client.execute(id, 1, b"").await;
        for _ in 0..3 {
            client.next().await.unwrap();
        }
        client.command(0x1a, &id.to_le_bytes()).await;
        assert_eq!(client.result(true).await.0, "OK[0 auto]");
        port.server.until(|counts| counts.streams == 0).await;
        client.command(0x19, &id.to_le_bytes()).await;
        client.execute(id, 0, b"").await;
        assert!(client.result(true).await.0.starts_with("E[1243 "));
    }
}

#[tokio::test]
async fn long_values_come_in_parts_and_within_the_limit() {
    let limits = Limits { max_message_bytes: 2 << 20, ..Limits::default() };
    let port = Port::open(limits, false, ListenOptions::default()).await;
    let mut client = port.connect().await;
    let (id, ..) = client.prepare("echo 1").await.unwrap();
    let part = |size: usize| [&id.to_le_bytes()[..], &[0, 0], &vec![b'x'; size]].concat();
    client.command(0x18, &part(2)).await;
    client.command(0x18, &part(3)).await;
    client.execute(id, 0, &[0, 1, 253, 0]).await;
    assert!(client.result(true).await.0.contains("B[00, 00, 05, 78, 78, 78, 78, 78]"));
    for _ in 0..3 {
        client.command(0x18, &part(1 << 20)).await;
    }
    client.execute(id, 0, &[0, 1, 253, 0]).await;
    assert!(client.result(true).await.0.starts_with("E[1153 "));
    client.execute(id, 0, &[1, 0]).await;
    assert!(client.result(true).await.0.contains("B[00, 04]"));
    // What has been left is free again.
    for _ in 0..5 {
        client.command(0x18, &part(1 << 20)).await;
        client.command(0x1a, &id.to_le_bytes()).await;
        assert_eq!(client.result(true).await.0, "OK[0 auto]");
    }
    client.command(0x18, &part(1)).await;
    client.execute(id, 0, &[0, 1, 253, 0]).await;
    assert!(client.result(true).await.0.contains("B[00, 00, 01, 78]"));
    client.command(0x18, &[&id.to_le_bytes()[..], &[9, 0], b"x"].concat()).await;
    client.execute(id, 0, &[1, 0]).await;
    assert!(client.result(true).await.0.starts_with("E[1210 "));
}

#[tokio::test]
async fn values_that_do_not_fit_are_refused() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    let (id, ..) = client.prepare("echo 1").await.unwrap();
    for (values, code) in [
        (&[0, 0][..], 1210),
        (&[], 1835),
        (&[0], 1835),
        (&[0, 1, 8, 0, 1], 1835),
        (&[0, 1, 253, 0, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], 1835),
        (&[0, 1, 99, 0, 1], 1210),
        (&[0, 1, 12, 0, 4, 0xe8, 7, 13, 1], 1292),
        (&[0, 1, 246, 0, 1, b'x'], 1292),
    ] {
        client.execute(id, 0, values).await;
        assert!(client.result(true).await.0.starts_with(&format!("E[{code} ")), "{values:?}");
    }
    let limits = Limits { max_prepared_statements: 1, ..Limits::default() };
    let port = Port::open(limits, false, ListenOptions::default()).await;
    let mut client = port.connect().await;
    client.prepare("rows 1").await.unwrap();
    assert!(client.prepare("rows 1").await.unwrap_err().starts_with("E[1461 "));
}
