//! Bytes that are not HTTP/2, or only begin as such, on connections of their own.

use super::random::Random;
use super::run::Client;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
/// How long we look at what the server does with it.
const PATIENCE: Duration = Duration::from_millis(20);

/// Sends garbage and closes. The answer does not matter; the next call shows that the server lives.
pub async fn garbage(client: &mut Client, random: &mut Random) {
    let length = random.below(2_000);
    let noise = random.bytes(length);
    let bytes = match random.below(7) {
        0 => noise,
        1 => b"GET / HTTP/1.1\r\nhost: x\r\n\r\n".to_vec(),
        2 => [PREFACE, &noise].concat(),
        3 => [PREFACE, SETTINGS, &frame(random, &noise)].concat(),
        4 => PREFACE[..random.below(PREFACE.len())].to_vec(),
        5 => [PREFACE, SETTINGS, &frame(random, &[]).repeat(100)].concat(),
        _ => vec![0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03],
    };
    client.count("raw bytes");
    let Ok(mut stream) = TcpStream::connect(client.address()).await else {
        client.fail("raw bytes", "the server takes no connection".to_owned(), &bytes);
        return;
    };
    if stream.write_all(&bytes).await.is_ok() {
        let mut answer = [0; 1024];
        let _ = tokio::time::timeout(PATIENCE, stream.read(&mut answer)).await;
    }
}

/// One HTTP/2 frame with a true length and an arbitrary head.
fn frame(random: &mut Random, payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u32;
    let mut frame = length.to_be_bytes()[1..].to_vec();
    frame.push(random.below(12) as u8);
    frame.push(random.bits() as u8);
    frame.extend_from_slice(&(random.below(4) as u32).to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}
