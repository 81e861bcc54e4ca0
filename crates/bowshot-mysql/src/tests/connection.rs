//! How connections begin and end: passwords, limits, KILL, clients that go away, shutdown.

use super::{CLIENT, Port};
use crate::capability::{PLUGIN_AUTH, PROTOCOL_41, SSL};
use bowshot_api::Limits;
use bowshot_rowwire::ListenOptions;

#[tokio::test]
async fn a_session_begins_with_its_dialect_and_database() {
    let port = Port::new().await;
    let client = port.connect_as(CLIENT, "main").await;
    assert_eq!(port.server.effects(), ["dialect = Some(String(\"mysql\"))", "USE `main`"]);
    drop(client);
    port.server.until(|counts| counts.sessions == 0).await;
    let mut client = port.raw().await;
    assert_eq!(client.greeting().await & SSL, 0, "no encryption is offered without a certificate");
    client.hello(CLIENT, "ada", "nowhere").await;
    assert!(super::error(&client.next().await.unwrap()).starts_with("E[1049 "));
    assert_eq!(client.next().await, None);
    port.server.until(|counts| counts.sessions == 0).await;
}

#[tokio::test]
async fn passwords_are_asked_for_where_there_are_users() {
    let port = Port::open(Limits::default(), true, ListenOptions::default()).await;
    for (password, code) in [(&b"pw"[..], 0), (b"no", 1045), (b"", 1045), (b"\xff", 1045)] {
        let mut client = port.raw().await;
        client.greeting().await;
        client.hello(CLIENT, "ada", "").await;
        assert_eq!(client.next().await.unwrap(), b"\xfemysql_clear_password\0");
        client.send(&[password, b"\0"].concat()).await;
        let answer = client.next().await.unwrap();
        match code {
            0 => assert_eq!(answer[0], 0),
            _ => assert!(super::error(&answer).starts_with("E[1045 28000"), "{password:?}"),
        }
    }
    port.server.until(|counts| counts.sessions == 0).await;
}

#[tokio::test]
async fn a_session_begins_again() {
    let port = Port::new().await;
    let mut client = port.connect_as(CLIENT, "main").await;
    let (id, ..) = client.prepare("rows 1").await.unwrap();
    client.query("SET autocommit = 0").await;
    port.server.effects();
    client.command(0x1f, b"").await;
    assert_eq!(client.result(false).await.0, "OK[0 auto]");
    assert_eq!(port.server.effects(), ["dialect = Some(String(\"mysql\"))", "USE `main`"]);
    client.execute(id, 0, b"").await;
    assert!(client.result(true).await.0.starts_with("E[1243 "));
    client.command(0x11, b"bob\0\x00\0\x2d\0mysql_native_password\0").await;
    assert_eq!(client.result(false).await.0, "OK[0 auto]");
    assert_eq!(port.server.effects(), ["dialect = Some(String(\"mysql\"))"]);
    port.server.until(|counts| counts.sessions == 1).await;
    client.command(0x11, b"bob").await;
    assert!(client.result(false).await.0.starts_with("E[1835 "));
    assert_eq!(client.next().await, None);
    port.server.until(|counts| counts.sessions == 0).await;
}

#[tokio::test]
async fn there_are_only_so_many_connections() {
    let limits = Limits { max_connections: 1, ..Limits::default() };
    let port = Port::open(limits, false, ListenOptions::default()).await;
    let first = port.connect().await;
    let mut second = port.raw().await;
    assert!(super::error(&second.next().await.unwrap()).starts_with("E[1040 08004"));
    assert_eq!(second.next().await, None);
    drop(first);
    port.server.until(|counts| counts.sessions == 0).await;
}

#[tokio::test]
async fn a_kill_ends_what_runs_and_nothing_else() {
    let port = Port::new().await;
    let (mut client, mut other) = (port.connect().await, port.connect().await);
    for (sql, running) in [("hang", "hanging"), ("wait", "streams")] {
        client.command(3, sql.as_bytes()).await;
        port.server
            .until(|counts| if running == "hanging" { counts.hanging == 1 } else { counts.streams == 1 })
            .await;
        assert_eq!(other.query(&format!("KILL QUERY {}", client.id)).await, "OK[0 auto]");
        let answer = client.result(false).await.0;
        assert!(answer.ends_with("E[1317 70100query execution was interrupted]"), "{answer}");
        port.server.until(|counts| counts.hanging + counts.streams == 0).await;
    }
    other.query(&format!("KILL QUERY {}", client.id)).await;
    assert_eq!(client.query("rows 1").await, "T[n 8] D[0] EOF[auto]");
    assert!(other.query("KILL 999999").await.starts_with("E[1094 "));
    assert_eq!(other.query("SELECT CONNECTION_ID()").await, "T[n 8|s 253] EOF[auto]");
    other.command(0x0c, &client.id.to_le_bytes()).await;
    assert_eq!(other.result(false).await.0, "OK[0 auto]");
    client.number = 0;
    assert_eq!(super::error(&client.next().await.unwrap()), "E[1317 70100the connection was killed]");
    assert_eq!(client.next().await, None);
    port.server.until(|counts| counts.sessions == 1).await;
}

#[tokio::test]
async fn a_client_that_goes_takes_its_statement_along() {
    let port = Port::new().await;
    for sql in ["hang", "wait"] {
        let mut client = port.connect().await;
        client.command(3, sql.as_bytes()).await;
        port.server.until(|counts| counts.hanging + counts.streams == 1).await;
        drop(client);
        port.server.until(|counts| counts.hanging + counts.streams + counts.sessions == 0).await;
    }
}

#[tokio::test]
async fn idle_sessions_end_with_the_server() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    port.stop();
    assert!(super::error(&client.next().await.unwrap()).starts_with("E[1053 08S01"));
    assert_eq!(client.next().await, None);
    port.0.stopped().await;
}

#[tokio::test]
async fn a_client_that_has_not_loaded_its_plugin_is_switched_to_one_that_it_has() {
    let port = Port::new().await;
    let mut client = port.raw().await;
    client.greeting().await;
    let head = [&(PROTOCOL_41 | PLUGIN_AUTH).to_le_bytes()[..], &[0; 28]].concat();
    client.send(&[&head[..], b"ada\0\0dummy_fallback_auth\0"].concat()).await;
    let switch = client.next().await.unwrap();
    assert!(switch.starts_with(b"\xfemysql_native_password\0"), "{switch:?}");
    client.send(b"").await;
    assert_eq!(client.next().await.map(|answer| answer[0]), Some(0));
}
