//! The protocol as a client sees it, byte for byte, over sockets, with a small server behind the server API.

mod connection;
mod hostile;
mod prepared;
mod query;
mod tls;

use crate::capability::{CONNECT_WITH_DB, DEPRECATE_EOF, PLUGIN_AUTH, PLUGIN_AUTH_LENENC, PROTOCOL_41};
use crate::serve;
use bowshot_api::Limits;
use bowshot_rowwire::ListenOptions;
use bowshot_test_server::PATIENCE;
use bytes::{BufMut, BytesMut};
use std::ops::Deref;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// What most clients can.
const CLIENT: u32 = PROTOCOL_41 | PLUGIN_AUTH | PLUGIN_AUTH_LENENC | DEPRECATE_EOF;

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
        Client { stream: TcpStream::connect(self.address).await.unwrap(), number: 0, has_eof: false }
    }

    /// A session of a server without users.
    async fn connect(&self) -> Client<TcpStream> {
        self.connect_as(CLIENT, "").await
    }

    async fn connect_as(&self, capabilities: u32, database: &str) -> Client<TcpStream> {
        let mut client = self.raw().await;
        client.greeting().await;
        client.hello(capabilities, "ada", database).await;
        assert_eq!(client.next().await.map(|answer| answer[0]), Some(0));
        client.number = 0;
        client
    }
}

/// A client that knows nothing but packets.
struct Client<S> {
    stream: S,
    number: u8,
    has_eof: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    /// The first packet of the server; the version and the capabilities are looked at.
    async fn greeting(&mut self) -> u32 {
        let greeting = self.next().await.unwrap();
        assert!(greeting.starts_with(b"\x0a8.0.36-Bowshot-"), "{greeting:?}");
        let end = greeting.iter().position(|byte| *byte == 0).unwrap();
        assert!(greeting.ends_with(b"\0caching_sha2_password\0"));
        let low = u32::from(u16::from_le_bytes([greeting[end + 14], greeting[end + 15]]));
        let high = u32::from(u16::from_le_bytes([greeting[end + 19], greeting[end + 20]]));
        high << 16 | low
    }

    async fn hello(&mut self, capabilities: u32, user: &str, database: &str) {
        let capabilities = if database.is_empty() { capabilities } else { capabilities | CONNECT_WITH_DB };
        let mut body = BytesMut::new();
        body.put_u32_le(capabilities);
        body.put_u32_le(1 << 24);
        body.put_bytes(45, 1);
        body.put_bytes(0, 23);
        body.put_slice(user.as_bytes());
        body.put_slice(b"\0\x01x");
        if !database.is_empty() {
            body.put_slice(database.as_bytes());
            body.put_u8(0);
        }
        body.put_slice(b"caching_sha2_password\0");
        self.has_eof = capabilities & DEPRECATE_EOF == 0;
        self.send(&body).await;
    }

    async fn send(&mut self, body: &[u8]) {
        let mut packet = BytesMut::new();
        packet.put_slice(&u32::try_from(body.len()).unwrap().to_le_bytes()[..3]);
        packet.put_u8(self.number);
        packet.put_slice(body);
        self.number = self.number.wrapping_add(1);
        self.stream.write_all(&packet).await.unwrap();
    }

    /// A command, with which the numbers begin again.
    async fn command(&mut self, command: u8, body: &[u8]) {
        self.number = 0;
        self.send(&[&[command], body].concat()).await;
    }

    /// The next message; `None` when the server has ended the connection.
    async fn next(&mut self) -> Option<Vec<u8>> {
        let message = async {
            let mut message = Vec::new();
            loop {
                let mut head = [0; 4];
                self.stream.read_exact(&mut head).await.ok()?;
                assert_eq!(head[3], self.number, "packets have their numbers");
                self.number = self.number.wrapping_add(1);
                let length = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
                let mut part = vec![0; length];
                self.stream.read_exact(&mut part).await.ok()?;
                message.extend(part);
                if length < 0xff_ffff {
                    return Some(message);
                }
            }
        };
        timeout(PATIENCE, message).await.expect("an answer")
    }

    /// The next answer to a command, for people, and whether another one follows.
    async fn result(&mut self, binary: bool) -> (String, bool) {
        let first = self.next().await.expect("an answer");
        let more = |status: &[u8]| status[0] & 8 != 0;
        match first[0] {
            0 => (format!("OK[{}]", flags(first[1], &first[3..5])), more(&first[3..5])),
            0xff => (error(&first), false),
            0xfe => (format!("EOF[{}]", end(&first).0), false),
            count => {
                let mut columns = Vec::new();
                for _ in 0..count {
                    columns.push(column(&self.next().await.unwrap()));
                }
                if self.has_eof {
                    assert_eq!(self.next().await.unwrap()[0], 0xfe);
                }
                let (rows, last) = self.rows(binary.then_some(&columns[..])).await;
                (format!("T[{}] {rows}", columns.join("|")), last & 8 != 0)
            }
        }
    }

    /// Rows up to their end.
    async fn rows(&mut self, binary: Option<&[String]>) -> (String, u8) {
        let mut shown = Vec::new();
        loop {
            let row = self.next().await.unwrap();
            match row[0] {
                0xff => {
                    shown.push(error(&row));
                    return (shown.join(" "), 0);
                }
                0xfe if row.len() < 9 => {
                    let (flags, last) = end(&row);
                    shown.push(format!("EOF[{flags}]"));
                    return (shown.join(" "), last);
                }
                _ => match binary {
                    None => shown.push(format!("D[{}]", values(&row).join("|"))),
                    Some(_) => shown.push(format!("B{row:02x?}")),
                },
            }
        }
    }

    /// What a text is answered with, for people.
    async fn query(&mut self, sql: &str) -> String {
        self.command(3, sql.as_bytes()).await;
        let mut all = Vec::new();
        loop {
            let (shown, more) = self.result(false).await;
            all.push(shown);
            if !more {
                return all.join("; ");
            }
        }
    }

    /// The number of a prepared statement, its columns and its parameters.
    async fn prepare(&mut self, sql: &str) -> Result<(u32, u16, u16), String> {
        self.command(0x16, sql.as_bytes()).await;
        let first = self.next().await.unwrap();
        if first[0] == 0xff {
            return Err(error(&first));
        }
        let id = u32::from_le_bytes(first[1..5].try_into().unwrap());
        let short = |at: usize| u16::from_le_bytes([first[at], first[at + 1]]);
        let (columns, parameters) = (short(5), short(7));
        for count in [parameters, columns] {
            for _ in 0..count {
                column(&self.next().await.unwrap());
            }
            if count > 0 && self.has_eof {
                assert_eq!(self.next().await.unwrap()[0], 0xfe);
            }
        }
        Ok((id, columns, parameters))
    }

    /// Runs a prepared statement: whether with a cursor, and what follows of nulls, types and values.
    async fn execute(&mut self, id: u32, cursor: u8, values: &[u8]) {
        let body = [&id.to_le_bytes()[..], &[cursor, 1, 0, 0, 0], values].concat();
        self.command(0x17, &body).await;
    }
}

/// Rows, and the words of the state of the session.
fn flags(rows: u8, status: &[u8]) -> String {
    let mut words = vec![rows.to_string()];
    for (bit, word) in [(1, "trans"), (2, "auto"), (8, "more"), (64, "cursor"), (128, "last")] {
        if status[0] & bit != 0 {
            words.push(word.to_owned());
        }
    }
    words.join(" ")
}

fn end(packet: &[u8]) -> (String, u8) {
    // An OK packet has rows and a number before the state, an EOF packet has warnings.
    let status = &packet[3..5];
    (flags(0, status)[1..].trim().to_owned(), status[0])
}

fn error(packet: &[u8]) -> String {
    let number = u16::from_le_bytes([packet[1], packet[2]]);
    assert_eq!(packet[3], b'#');
    format!("E[{number} {}]", String::from_utf8_lossy(&packet[4..]))
}

/// Texts with their lengths before them.
fn values(mut rest: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    while let Some((length, after)) = rest.split_first() {
        if *length == 0xfb {
            found.push("NULL".to_owned());
            rest = after;
            continue;
        }
        let (value, after) = after.split_at(usize::from(*length));
        found.push(String::from_utf8_lossy(value).into_owned());
        rest = after;
    }
    found
}

/// Name and type of a column.
fn column(packet: &[u8]) -> String {
    let name_at = 7;
    let length = usize::from(packet[name_at]);
    let name = String::from_utf8_lossy(&packet[name_at + 1..name_at + 1 + length]).into_owned();
    let fixed = name_at + 2 * (1 + length);
    assert_eq!(packet[fixed], 0x0c, "{packet:?}");
    format!("{name} {}", packet[fixed + 7])
}
