//! Clients on this machine: how calls and the socket end. What they are told, rows in memory, limits, credentials and hostile
//! clients are tested by the package for Python.

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

async fn open() -> (Port, PathBuf) {
    let path = place();
    let socket = SameHost::open(&path, LIMITS).unwrap();
    let choices = Choices { same_host: Some(socket), ..Choices::default() };
    (Port::open_as(Limits::default(), false, choices).await, path)
}

struct Local {
    wire: Arc<Wire>,
    frames: Frames,
}

/// What a call gave.
#[derive(Debug, Default)]
struct Given {
    rows: usize,
    code: i32,
    message: String,
}

impl Local {
    async fn connect(path: &Path) -> Self {
        let wire = Arc::new(Wire::new(UnixStream::connect(path).await.unwrap(), Duration::ZERO));
        let mut local = Self { frames: Frames::new(Arc::clone(&wire), 1 << 30), wire };
        let hello = local.frame().await;
        assert_eq!((hello.kind, &hello.payload[..8]), (frames::HELLO, &b"BOWSHOT\x01"[..]));
        local
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
                    let length = u64::from_le_bytes(payload[4..].try_into().unwrap());
                    let mut bytes = vec![0; length as usize];
                    File::from(descriptor.unwrap()).read_exact_at(&mut bytes, 0).unwrap();
                    given.rows += rows(&read(bytes.into()));
                }
                frames::END => {
                    given.code = i32::from_le_bytes(payload[..4].try_into().unwrap());
                    let length = u32::from_le_bytes(payload[4..8].try_into().unwrap()) as usize;
                    given.message = String::from_utf8(payload[8..8 + length].to_vec()).unwrap();
                    return given;
                }
                frames::RESULT | frames::TAKEN => {}
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
async fn errors_are_those_of_the_network() {
    let (port, path) = open().await;
    let mut local = Local::connect(&path).await;
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
    let mut other = Local::connect(&path).await;
    assert_eq!(other.get(&[], "rows 1").await.rows, 1);
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
