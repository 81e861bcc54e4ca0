//! The protocol as a client sees it, byte for byte, over sockets, with a small server behind the server API.

mod connection;
mod copy;
mod parameter_status;
mod prepared;
mod query;
mod tls;

use crate::serve;
use bowshot_api::Limits;
use bowshot_rowwire::ListenOptions;
use bowshot_test_server::PATIENCE;
use bytes::{BufMut, BytesMut};
use std::ops::Deref;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A listener with a small server behind it.
struct Port(bowshot_test_server::Port);

impl Deref for Port {
    type Target = bowshot_test_server::Port;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Port {
    async fn open(limits: Limits, users_only: bool, options: ListenOptions) -> Self {
        let serve = |listener, server, until| serve(listener, server, options, until);
        Self(bowshot_test_server::Port::open(limits, users_only, serve).await)
    }

    async fn new() -> Self {
        Self::open(Limits::default(), false, ListenOptions::default()).await
    }

    async fn raw(&self) -> Client<TcpStream> {
        Client(TcpStream::connect(self.address).await.unwrap())
    }

    /// A session of a server without users.
    async fn connect(&self) -> Client<TcpStream> {
        let mut client = self.raw().await;
        client.start(&[("user", "ada")]).await;
        client.until_ready().await;
        client
    }
}

/// A client that knows nothing but messages.
struct Client<S>(S);

/// A message of the server: tag and content.
type Answer = (char, Vec<u8>);

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    async fn start(&mut self, parameters: &[(&str, &str)]) {
        let mut body = BytesMut::new();
        body.put_i32(3 << 16);
        for (name, value) in parameters {
            body.put_slice(name.as_bytes());
            body.put_u8(0);
            body.put_slice(value.as_bytes());
            body.put_u8(0);
        }
        body.put_u8(0);
        self.0.write_i32(i32::try_from(body.len()).unwrap() + 4).await.unwrap();
        self.0.write_all(&body).await.unwrap();
    }

    async fn send(&mut self, tag: u8, body: &[u8]) {
        let mut message = BytesMut::new();
        message.put_u8(tag);
        message.put_i32(i32::try_from(body.len()).unwrap() + 4);
        message.put_slice(body);
        self.0.write_all(&message).await.unwrap();
    }

    /// The next message; `None` when the server has ended the connection.
    async fn next(&mut self) -> Option<Answer> {
        let message = async {
            let tag = self.0.read_u8().await.ok()?;
            let length = usize::try_from(self.0.read_i32().await.ok()?).unwrap() - 4;
            let mut body = vec![0; length];
            self.0.read_exact(&mut body).await.ok()?;
            Some((char::from(tag), body))
        };
        timeout(PATIENCE, message).await.expect("an answer")
    }

    /// All messages up to ReadyForQuery.
    async fn until_ready(&mut self) -> Vec<Answer> {
        let mut found = Vec::new();
        while let Some(answer) = self.next().await {
            let is_last = answer.0 == 'Z';
            found.push(answer);
            if is_last {
                return found;
            }
        }
        panic!("the connection ended: {}", shown(&found));
    }

    /// What a text is answered with, for people.
    async fn query(&mut self, sql: &str) -> String {
        self.send(b'Q', &zero_ended(sql)).await;
        shown(&self.until_ready().await)
    }

    async fn parse(&mut self, name: &str, sql: &str, types: &[u32]) {
        let mut body = BytesMut::from(zero_ended(name).as_slice());
        body.put_slice(&zero_ended(sql));
        body.put_u16(u16::try_from(types.len()).unwrap());
        types.iter().for_each(|oid| body.put_u32(*oid));
        self.send(b'P', &body).await;
    }

    async fn bind(&mut self, portal: &str, statement: &str, formats: (i16, i16), values: &[Option<&[u8]>]) {
        let mut body = BytesMut::from(zero_ended(portal).as_slice());
        body.put_slice(&zero_ended(statement));
        body.put_slice(&[0, 1]);
        body.put_i16(formats.0);
        body.put_u16(u16::try_from(values.len()).unwrap());
        for value in values {
            body.put_i32(value.map_or(-1, |value| i32::try_from(value.len()).unwrap()));
            body.put_slice(value.unwrap_or_default());
        }
        body.put_slice(&[0, 1]);
        body.put_i16(formats.1);
        self.send(b'B', &body).await;
    }

    async fn execute(&mut self, portal: &str, rows: i32) {
        let mut body = BytesMut::from(zero_ended(portal).as_slice());
        body.put_i32(rows);
        self.send(b'E', &body).await;
    }

    async fn sync(&mut self) -> String {
        self.send(b'S', b"").await;
        shown(&self.until_ready().await)
    }
}

fn zero_ended(text: &str) -> Vec<u8> {
    [text.as_bytes(), b"\0"].concat()
}

/// Messages with what is of interest in them.
fn shown(answers: &[Answer]) -> String {
    let one = |(tag, body): &Answer| match tag {
        'Z' => format!("Z{}", char::from(body[0])),
        'E' | 'N' => format!("{tag}[{}]", fields(body)),
        'C' => format!("C[{}]", String::from_utf8_lossy(&body[..body.len() - 1])),
        'D' => format!("D[{}]", values(body).join("|")),
        'T' => format!("T[{}]", columns(body).join("|")),
        'S' => format!("S[{}]", String::from_utf8_lossy(&body[..body.len() - 1]).replace('\0', " ")),
        'd' => format!("d[{}]", String::from_utf8_lossy(body).trim_end_matches('\n')),
        't' => format!(
            "t{:?}",
            body[2..]
                .chunks(4)
                .map(|oid| oid[2..].iter().fold(0_u32, |all, byte| all << 8 | u32::from(*byte)))
                .collect::<Vec<_>>()
        ),
        other => other.to_string(),
    };
    answers.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// Code, message and place of an error.
fn fields(body: &[u8]) -> String {
    let parts = body.split(|byte| *byte == 0).filter(|part| !part.is_empty());
    let wanted = parts.filter(|part| matches!(part[0], b'C' | b'M' | b'P'));
    wanted.map(|part| String::from_utf8_lossy(&part[1..]).into_owned()).collect::<Vec<_>>().join(": ")
}

fn values(body: &[u8]) -> Vec<String> {
    let mut rest = &body[2..];
    let mut found = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        match usize::try_from(i32::from_be_bytes(*length)) {
            Err(_) => {
                found.push("NULL".to_owned());
                rest = after;
            }
            Ok(length) => {
                found.push(String::from_utf8_lossy(&after[..length]).into_owned());
                rest = &after[length..];
            }
        }
    }
    found
}

fn columns(body: &[u8]) -> Vec<String> {
    let mut rest = &body[2..];
    let mut found = Vec::new();
    while let Some(end) = rest.iter().position(|byte| *byte == 0) {
        let name = String::from_utf8_lossy(&rest[..end]).into_owned();
        let oid = u32::from_be_bytes(rest[end + 7..end + 11].try_into().unwrap());
        found.push(format!("{name} {oid}"));
        rest = &rest[end + 19..];
    }
    found
}
