//! How connections begin and end: passwords, limits, KILL, clients that go away, shutdown.

use super::{CLIENT, Port};
use crate::capability::{PLUGIN_AUTH, PROTOCOL_41};
use bowshot_api::Limits;
use bowshot_rowwire::ListenOptions;

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
