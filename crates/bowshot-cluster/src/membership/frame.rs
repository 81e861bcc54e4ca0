//! Lines and frames on a connection between nodes. Both have a limit, and no memory is reserved for an announced length.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Longest line, without its end.
const LONGEST_LINE: usize = 200;
const LARGEST_FRAME: u32 = 2 << 20;

/// Reads a line of printable ASCII byte by byte, so that nothing after it is consumed.
pub(crate) async fn read_line(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<String> {
    let mut line = String::new();
    loop {
        match stream.read_u8().await? {
            b'\n' => return Ok(line),
            byte @ b' '..=b'~' if line.len() < LONGEST_LINE => line.push(char::from(byte)),
            _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "invalid line")),
        }
    }
}

pub(crate) async fn write_line(stream: &mut (impl AsyncWrite + Unpin), line: &str) -> io::Result<()> {
    stream.write_all(format!("{line}\n").as_bytes()).await?;
    stream.flush().await
}

pub(crate) async fn read_frame<T: DeserializeOwned>(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<T> {
    let length = stream.read_u32().await?;
    if length > LARGEST_FRAME {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a message of {length} bytes")));
    }
    let mut body = Vec::new();
    stream.take(u64::from(length)).read_to_end(&mut body).await?;
    if body.len() != length as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_slice(&body).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

pub(crate) async fn write_frame(
    stream: &mut (impl AsyncWrite + Unpin),
    message: &impl Serialize,
) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len()).ok().filter(|length| *length <= LARGEST_FRAME);
    let Some(length) = length else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the message is too large"));
    };
    stream.write_all(&[&length.to_be_bytes()[..], &body].concat()).await?;
    stream.flush().await
}
