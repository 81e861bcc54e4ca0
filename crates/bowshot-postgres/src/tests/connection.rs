//! How connections begin and end: start-up, passwords, limits, cancel, clients that go away, shutdown.

use super::{PATIENCE, Port, shown};
use bowshot_api::Limits;
use bowshot_rowwire::ListenOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

#[tokio::test]
async fn a_session_begins_with_the_options_of_its_client() {
    let port = Port::new().await;
    let mut client = port.raw().await;
    client
        .start(&[
            ("user", "ada"),
            ("database", "other"),
            ("application_name", "a"),
            ("options", "-c TimeZone=UTC"),
        ])
        .await;
    let answers = client.until_ready().await;
    let text =
        String::from_utf8_lossy(&answers.iter().flat_map(|answer| answer.1.clone()).collect::<Vec<_>>())
            .into_owned();
    for status in
        ["server_version\x0016", "client_encoding\0UTF8", "integer_datetimes\0on", "application_name\0a"]
    {
        assert!(text.contains(status), "{status}");
    }
    assert!(answers.iter().any(|(tag, body)| *tag == 'K' && body.len() == 8));
    let set = port.server.effects().join(", ");
    for name in ["dialect", "catalog", "application_name", "TimeZone"] {
        assert!(set.contains(name), "{set}");
    }
    client.send(b'X', b"").await;
    port.server.until(|counts| counts.sessions == 0).await;
}

#[tokio::test]
async fn passwords_are_asked_for_where_there_are_users() {
    let port = Port::open(Limits::default(), true, ListenOptions::default()).await;
    for (password, good) in [("pw", true), ("no", false), ("", false)] {
        let mut client = port.raw().await;
        client.start(&[("user", "ada")]).await;
        assert_eq!(client.next().await.unwrap(), ('R', vec![0, 0, 0, 3]));
        client.send(b'p', &super::zero_ended(password)).await;
        let answer = client.next().await.unwrap();
        assert_eq!(answer.0, if good { 'R' } else { 'E' }, "{password}");
        if !good {
            assert!(shown(&[answer]).starts_with("E[28P01: "));
        }
    }
}

#[tokio::test]
async fn passwords_are_proven_where_that_is_possible() {
    let port = Port::open(Limits::default(), true, ListenOptions::default()).await;
    let begin = |mechanism: &str, length: i32, first: &str| {
        [mechanism.as_bytes(), &[0], &length.to_be_bytes(), first.as_bytes()].concat()
    };
    for (first, last, expected) in [
        (begin("SCRAM-SHA-256", 5, "first"), "last", "R"),
        (begin("SCRAM-SHA-256", 5, "first"), "lost", "E[28P01: wrong user or password"),
        (begin("SCRAM-SHA-256", 5, "worst"), "", "E[08P01: malformed"),
        (begin("SCRAM-SHA-256-PLUS", 5, "first"), "", "E[08P01: client selected an invalid SASL"),
        (begin("SCRAM-SHA-256", -1, ""), "", "E[08P01: malformed SASL message"),
        (begin("SCRAM-SHA-256", 6, "first"), "", "E[08P01: malformed SASL message"),
        (b"SCRAM-SHA-256".to_vec(), "", "E[08P01: "),
        (Vec::new(), "", "E[08P01: "),
    ] {
        let mut client = port.raw().await;
        client.start(&[("user", "prover")]).await;
        assert_eq!(client.next().await.unwrap(), ('R', b"\0\0\0\x0aSCRAM-SHA-256\0\0".to_vec()));
        client.send(b'p', &first).await;
        let mut answer = client.next().await.unwrap();
        if answer.0 == 'R' {
            assert_eq!(answer.1, b"\0\0\0\x0bchallenge");
            client.send(b'p', last.as_bytes()).await;
            answer = client.next().await.unwrap();
        }
        if expected == "R" {
            assert_eq!(answer, ('R', b"\0\0\0\x0cproof".to_vec()));
            assert_eq!(client.next().await.unwrap(), ('R', vec![0; 4]));
        } else {
            let shown = shown(&[answer]);
            assert!(shown.starts_with(expected), "{shown}");
        }
    }
}

#[tokio::test]
async fn encryption_is_refused_without_a_certificate_and_the_session_goes_on() {
    let port = Port::new().await;
    let mut client = port.raw().await;
    for code in [80_877_104_i32, 80_877_103] {
        client.0.write_i32(8).await.unwrap();
        client.0.write_i32(code).await.unwrap();
        assert_eq!(client.0.read_u8().await.unwrap(), b'N');
    }
    client.start(&[("user", "ada")]).await;
    client.until_ready().await;
    let mut old = port.raw().await;
    old.0.write_all(&[0, 0, 0, 8, 0, 2, 0, 0]).await.unwrap();
    assert!(shown(&[old.next().await.unwrap()]).starts_with("E[0A000: unsupported frontend protocol 2.0"));
}

#[tokio::test]
async fn nonsense_ends_the_connection() {
    let port = Port::new().await;
    for bytes in [
        b"GET / HTTP/1.1\r\n\r\n".as_ref(),
        b"\0\0\0\x04",
        b"\xff\xff\xff\xff\0\0\0\0",
        b"\0\0\0\x09\0\x03\0\0x",
    ] {
        let mut client = port.raw().await;
        client.0.write_all(bytes).await.unwrap();
        let mut rest = Vec::new();
        _ = timeout(PATIENCE, client.0.read_to_end(&mut rest)).await.expect("an end");
    }
    let mut client = port.connect().await;
    client.0.write_all(b"Q\x7f\xff\xff\xff").await.unwrap();
    assert!(shown(&[client.next().await.unwrap()]).starts_with("E[54000: "));
    let mut client = port.connect().await;
    client.send(b'?', b"").await;
    assert!(shown(&[client.next().await.unwrap()]).starts_with("E[08P01: "));
    port.server.until(|counts| counts.sessions == 0).await;
}

#[tokio::test]
async fn there_are_only_so_many_connections() {
    let limits = Limits { max_connections: 1, ..Limits::default() };
    let port = Port::open(limits, false, ListenOptions::default()).await;
    let first = port.connect().await;
    let mut second = port.raw().await;
    second.start(&[("user", "ada")]).await;
    assert!(shown(&[second.next().await.unwrap()]).starts_with("E[53300: "));
    drop(first);
    port.server.until(|counts| counts.sessions == 0).await;
}

#[tokio::test]
async fn a_slow_reader_keeps_the_rest_of_the_result_away() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    client.send(b'Q', b"rows 20000000\0").await;
    port.server.until(|counts| counts.streams == 1).await;
    assert_eq!(client.next().await.unwrap().0, 'T');
    drop(client);
    port.server.until(|counts| counts.streams + counts.sessions == 0).await;
}

#[tokio::test]
async fn idle_sessions_end_with_the_server() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    port.stop();
    assert!(shown(&[client.next().await.unwrap()]).starts_with("E[57P01: "));
    assert_eq!(client.next().await, None);
    port.0.stopped().await;
}
