//! A client that sees every byte: requests as text, answers with what ended them.

use super::PATIENCE;
use std::net::SocketAddr;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// Whether the body came to its end as its head says.
    pub(super) is_whole: bool,
}

impl Reply {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("text")
    }

    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// Kind and message of the error.
    pub(super) fn error(&self) -> String {
        let error = &self.json()["error"];
        format!("{} {}: {}", self.status, error["kind"].as_str().unwrap(), error["message"].as_str().unwrap())
    }
}

pub(super) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "host") {
        text.push_str("host: localhost\r\n");
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if !headers.iter().any(|(name, _)| *name == "transfer-encoding" || *name == "content-length") {
        text.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    let mut bytes = format!("{text}\r\n").into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// A connection with a request on it.
pub(super) async fn send(address: SocketAddr, request: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("connect");
    // The server may hang up before everything is written.
    _ = stream.write_all(request).await;
    stream
}

/// One answer, up to the end of the connection.
pub(super) async fn receive(stream: &mut (impl AsyncRead + Unpin)) -> Reply {
    parse(&receive_bytes(stream).await)
}

/// All that comes until the connection ends, in order or not.
pub(super) async fn receive_bytes(stream: &mut (impl AsyncRead + Unpin)) -> Vec<u8> {
    let mut bytes = Vec::new();
    _ = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("in time");
    bytes
}

fn parse(bytes: &[u8]) -> Reply {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no head: {}", String::from_utf8_lossy(bytes)));
    let head = std::str::from_utf8(&bytes[..end]).expect("a head of text");
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers: Vec<(String, String)> = lines
        .map(|line| line.split_once(": ").unwrap_or((line, "")))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let rest = &bytes[end + 4..];
    let header =
        |wanted: &str| headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone());
    let (body, is_whole) = if header("transfer-encoding").as_deref() == Some("chunked") {
        unchunk(rest)
    } else {
        let length = header("content-length").and_then(|length| length.parse().ok());
        (rest.to_vec(), length.is_none_or(|length: usize| length == rest.len()))
    };
    Reply { status, headers, body, is_whole }
}

fn unchunk(mut bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") else { return (body, false) };
        let size = std::str::from_utf8(&bytes[..end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        bytes = &bytes[end + 2..];
        if size == 0 {
            return (body, bytes == b"\r\n");
        }
        let there = size.min(bytes.len());
        body.extend_from_slice(&bytes[..there]);
        if bytes.len() < size + 2 {
            return (body, false);
        }
        bytes = &bytes[size + 2..];
    }
}
