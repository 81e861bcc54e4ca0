//! What others send to the internal port.

use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

#[tokio::test]
async fn another_secret_is_refused() {
    let first = start(settings(&[])).await;
    let wrong = Security::SharedSecret(Secret::new("another secret of some length"));
    let text = refused(Cluster::start(Settings { security: wrong, ..settings(&[&address(&first)]) }).await);
    assert!(text.contains("another secret"), "{text}");
    assert_eq!(first.members().len(), 1);
}

#[tokio::test]
async fn a_secret_is_for_this_machine_only() {
    for (listen, advertise) in [("0.0.0.0:0", Some("127.0.0.1:9".to_owned())), ("192.0.2.1:0", None)] {
        let listen = listen.parse().expect("an address");
        let text = refused(Cluster::start(Settings { listen, advertise, ..settings(&[]) }).await);
        assert!(text.contains("bowshot cluster init"), "{text}");
    }
    let short = Security::SharedSecret(Secret::new("short"));
    let text = refused(Cluster::start(Settings { security: short, ..settings(&[]) }).await);
    assert!(text.contains("16 bytes"), "{text}");
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused() {
    let base = settings(&[]);
    let short = Duration::from_millis(60);
    for bad in [
        Settings { heartbeat: Duration::ZERO, ..base.clone() },
        Settings { suspect_after: short, ..base.clone() },
        Settings { dead_after: short, ..base.clone() },
        Settings { join: vec!["nowhere".to_owned()], ..base.clone() },
        Settings { advertise: Some("host:0".to_owned()), ..base.clone() },
    ] {
        assert!(!refused(Cluster::start(bad).await).is_empty());
    }
}

/// Sends bytes and reads what comes until the other side closes.
async fn send(to: &Cluster, bytes: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(address(to)).await.expect("connected");
    // The other side may have closed before all is written.
    _ = socket.write_all(bytes).await;
    let mut answer = Vec::new();
    let read = timeout(PATIENCE, socket.read_to_end(&mut answer)).await.expect("closed within seconds");
    // A reset is an end, too.
    _ = read;
    answer
}

#[tokio::test]
async fn garbage_is_closed_without_a_word() {
    let node = start(settings(&[])).await;
    for bytes in [
        &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        &[0; 5_000],
        &[b'a'; 5_000],
        b"bowshot-cluster/1 members\n",
        b"bowshot-cluster/1 secret \n",
        b"bowshot-cluster/1 secret 00\n",
        b"\n",
    ] {
        assert_eq!(send(&node, bytes).await, b"");
    }
    let hello = format!("bowshot-cluster/1 secret {}\n{}\n", "0".repeat(64), "1".repeat(64));
    let answer = String::from_utf8(send(&node, hello.as_bytes()).await).expect("a line");
    assert!(answer.ends_with("\nno\n"), "{answer}");
    // It is as it was.
    let second = start(settings(&[&address(&node)])).await;
    all_alive(&[&node, &second]).await;
}

#[tokio::test]
async fn those_that_say_nothing_do_not_keep_others_out() {
    let node = start(settings(&[])).await;
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(TcpStream::connect(address(&node)).await.expect("connected"));
    }
    let began = Instant::now();
    for mut socket in silent {
        let mut byte = [0];
        let read = timeout(PATIENCE, socket.read(&mut byte)).await.expect("closed within seconds");
        assert!(matches!(read, Ok(0) | Err(_)));
    }
    assert!(began.elapsed() < PATIENCE);
    let second = start(settings(&[&address(&node)])).await;
    all_alive(&[&node, &second]).await;
}

#[tokio::test]
async fn members_that_send_nonsense_are_closed() {
    let node = start(settings(&[])).await;
    let keys = crate::membership::security::Keys::load(&settings(&[]).security).expect("a secret");
    for bytes in [&u32::MAX.to_be_bytes()[..], b"\0\0\0\x05hello", b"\0\0\0\x02{}", b"\0\0\0\x00"] {
        let purpose = crate::membership::security::Purpose::Members;
        let mut wire = keys.dial(&address(&node), purpose).await.expect("it is a member");
        wire.write_all(bytes).await.expect("written");
        let mut answer = Vec::new();
        _ = timeout(PATIENCE, wire.read_to_end(&mut answer)).await.expect("closed within seconds");
        assert_eq!(answer, b"");
    }
    let stranger = crate::membership::security::Purpose::Work(uuid::Uuid::new_v4());
    let error = keys.dial(&address(&node), stranger).await.expect_err("no member");
    assert!(error.to_string().contains("not known yet"), "{error}");
}
