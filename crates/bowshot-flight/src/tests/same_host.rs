//! Clients on this machine: what they are told, and how calls, connections and the socket end. Rows in memory, limits and
//! hostile clients are tested by the package for Python.

use super::*;
use crate::same_host::frames::{self, Frame, Frames, Wire};
use crate::same_host::{SameHost, SharedLimits};
use bowshot_ipc::shared::Encapsulated;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tokio::net::UnixStream;

const LIMITS: SharedLimits =
    SharedLimits { connection_bytes: 64 << 20, user_bytes: 64 << 20, total_bytes: 64 << 20 };

fn place() -> PathBuf {
    std::env::temp_dir().join(format!("bowshot-test-{}.sock", uuid::Uuid::new_v4().simple()))
}

async fn open(limits: SharedLimits, users_only: bool) -> (Port, PathBuf) {
    let path = place();
    let socket = SameHost::open(&path, limits).unwrap();
    let choices = Choices { same_host: Some(socket), ..Choices::default() };
    (Port::open_as(Limits::default(), users_only, choices).await, path)
}

/// A client with the socket.
struct Local {
    wire: Arc<Wire>,
    frames: Frames,
}

/// What a call gave.
#[derive(Debug, Default)]
struct Given {
    rows: usize,
    /// Rows by memory, and numbers of the memories.
    memories: Vec<u32>,
    code: i32,
    message: String,
    result: Option<Bytes>,
}

impl Local {
    async fn connect(path: &Path) -> (Self, Bytes) {
        let wire = Arc::new(Wire::new(UnixStream::connect(path).await.unwrap(), Duration::ZERO));
        let mut local = Self { frames: Frames::new(Arc::clone(&wire), 1 << 30), wire };
        let hello = local.frame().await;
        assert_eq!((hello.kind, &hello.payload[..8]), (frames::HELLO, &b"BOWSHOT\x01"[..]));
        let id = hello.payload.slice(8..);
        (local, id)
    }

    async fn frame(&mut self) -> Frame {
        tokio::time::timeout(PATIENCE, self.frames.next()).await.unwrap().unwrap().expect("one more frame")
    }

    async fn call(&mut self, kind: u8, headers: &[(&str, &str)], body: impl Into<Bytes>) {
        let mut head = Vec::from((headers.len() as u16).to_le_bytes());
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            head.extend((text.len() as u16).to_le_bytes());
            head.extend(text.as_bytes());
        }
        self.wire.send(kind, &[head.into(), body.into()], None).await.unwrap();
    }

    async fn get(&mut self, headers: &[(&str, &str)], ticket: impl Into<Bytes>) -> Given {
        self.call(frames::GET, headers, ticket).await;
        self.given().await
    }

    async fn given(&mut self) -> Given {
        let mut given = Given::default();
        loop {
            let Frame { kind, payload, descriptor } = self.frame().await;
            match kind {
                frames::SCHEMA => assert!(bowshot_ipc::read_schema_bytes(&payload).is_ok()),
                frames::BYTES => given.rows += rows(&read(payload.slice(1..))),
                frames::MEMORY => {
                    given.memories.push(u32::from_le_bytes(payload[..4].try_into().unwrap()));
                    let length = u64::from_le_bytes(payload[4..].try_into().unwrap());
                    let mut bytes = vec![0; length as usize];
                    File::from(descriptor.unwrap()).read_exact_at(&mut bytes, 0).unwrap();
                    given.rows += rows(&read(bytes.into()));
                }
                frames::RESULT => given.result = Some(payload),
                frames::END => {
                    given.code = i32::from_le_bytes(payload[..4].try_into().unwrap());
                    let length = u32::from_le_bytes(payload[4..8].try_into().unwrap()) as usize;
                    given.message = String::from_utf8(payload[8..8 + length].to_vec()).unwrap();
                    return given;
                }
                frames::TAKEN => {}
                other => panic!("a frame of kind {other}"),
            }
            if matches!(kind, frames::BYTES | frames::MEMORY) {
                self.wire.send(frames::TAKEN, &[], None).await.unwrap();
            }
        }
    }
}

fn read(stream: Bytes) -> Vec<RecordBatch> {
    let mut decoder = Decoder::new();
    let mut batches = Vec::new();
    for message in Encapsulated::new(stream) {
        let (header, body) = message.unwrap();
        if let Decoded::Batch(batch) = decoder.decode(&header, body).unwrap() {
            batches.push(batch);
        }
    }
    batches
}

#[tokio::test]
async fn clients_on_this_machine_are_told() {
    let (port, path) = open(LIMITS, false).await;
    let mut client = port.client().await;
    let told = |answer: &Response<FlightInfo>| {
        answer.metadata().get("x-bowshot-same-host").map(|text| text.to_str().unwrap().to_owned())
    };
    assert_eq!(told(&client.info("rows 1").await.unwrap()), None, "who does not ask is not told");
    client.headers = vec![("x-bowshot-same-host", "1".to_owned())];
    let text = told(&client.info("rows 1").await.unwrap()).unwrap();
    let (id, told_path) = text.split_once(' ').unwrap();
    assert_eq!(told_path, path.to_str().unwrap());
    let (_, greeted) = Local::connect(&path).await;
    assert_eq!(id, uuid::Uuid::from_slice(&greeted).unwrap().simple().to_string());
    drop(port);
    let gone = async {
        while path.exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("the socket goes with its server");
}

#[tokio::test]
async fn each_call_shows_its_credentials() {
    let (_port, path) = open(LIMITS, true).await;
    let (mut local, _) = Local::connect(&path).await;
    let refused = local.get(&[], "rows 1").await;
    assert_eq!((refused.code, refused.rows), (16, 0), "{refused:?}");
    let known = local.get(&[("authorization", "Bearer token-ada-1")], "rows 1").await;
    assert_eq!((known.code, known.rows), (0, 1), "{known:?}");
    let refused = local.get(&[], "rows 1").await;
    assert_eq!(refused.code, 16, "the connection is nobody's: {refused:?}");
}

#[tokio::test]
async fn errors_are_those_of_the_network() {
    let (port, path) = open(LIMITS, false).await;
    let (mut local, _) = Local::connect(&path).await;
    let mut client = port.client().await;
    let info = client.info("rows 2").await.unwrap().into_inner();
    assert_eq!(local.get(&[], ticket_of(&info)).await.rows, 2);
    let again = local.get(&[], ticket_of(&info)).await;
    assert_eq!(again.code, Code::NotFound as i32, "{again:?}");
    let bad = local.get(&[], "bad").await;
    assert_eq!(bad.code, Code::Internal as i32);
    assert!(!bad.message.contains("secret"), "{bad:?}");
    let cookie = local.get(&[("cookie", "arrow_flight_session_id=nonsense")], "rows 1").await;
    assert_eq!(cookie.code, Code::NotFound as i32, "{cookie:?}");
    let panic = local.get(&[], "panic").await;
    assert_eq!(panic.code, Code::Internal as i32, "{panic:?}");
    // After a panic nothing more is believed of this connection, and of no other.
    assert!(local.frames.next().await.unwrap().is_none());
    let (mut other, _) = Local::connect(&path).await;
    assert_eq!(other.get(&[], "rows 1").await.rows, 1);
}

#[tokio::test]
async fn a_client_that_goes_stops_its_rows() {
    let (port, path) = open(LIMITS, false).await;
    let (mut local, _) = Local::connect(&path).await;
    local.call(frames::GET, &[], "wait").await;
    assert_eq!(local.frame().await.kind, frames::SCHEMA);
    assert_eq!(local.frame().await.kind, frames::BYTES, "rows that are there do not wait for others");
    port.until(|counts| counts.streams == 1).await;
    drop(local);
    port.until(|counts| *counts == Counts::default()).await;
}

#[tokio::test]
async fn a_socket_takes_the_place_of_one_that_was_left_and_of_nothing_else() {
    let path = place();
    let first = SameHost::open(&path, LIMITS).unwrap();
    let taken = SameHost::open(&path, LIMITS).unwrap_err();
    assert_eq!(taken.kind(), std::io::ErrorKind::AddrInUse);
    drop(first);
    assert!(!path.exists());
    // As a server that was killed leaves it.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    drop(SameHost::open(&path, LIMITS).unwrap());
    std::fs::write(&path, "a file").unwrap();
    let refused = SameHost::open(&path, LIMITS).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::AlreadyExists);
    std::fs::remove_file(&path).unwrap();
}
