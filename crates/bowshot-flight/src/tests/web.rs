//! Calls of gRPC-Web: their answers are those of gRPC, in one body.

use super::*;
use crate::{Profile, Web, WebConnection};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bowshot_api::{Error, Principal};
use futures::StreamExt;
use http::header::{ACCEPT, CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use std::net::{IpAddr, Ipv4Addr};

const BINARY: &str = "application/grpc-web+proto";
const TEXT: &str = "application/grpc-web-text+proto";

/// An answer: messages, and the status behind them or in the headers.
#[derive(Debug)]
struct Reply {
    http: u16,
    messages: Vec<Bytes>,
    code: Option<Code>,
    message: String,
    session: Option<String>,
    content_type: String,
}

struct Browser {
    door: Arc<Door>,
    connection: WebConnection,
    content_type: &'static str,
    session: Option<String>,
}

impl Browser {
    fn open(content_type: &'static str) -> Self {
        let door = Door::open(Limits::default(), false);
        let web = Web::new(Arc::clone(&door) as _, Profile::default());
        let connection = web.connection(IpAddr::V4(Ipv4Addr::LOCALHOST));
        Self { door, connection, content_type, session: None }
    }

    fn principal() -> Principal {
        Principal::anonymous()
    }

    async fn call(&self, method: &str, message: &impl Message) -> Reply {
        self.call_as(Ok(Self::principal()), method, message).await
    }

    async fn call_as(
        &self,
        caller: bowshot_api::Result<Principal>,
        method: &str,
        message: &impl Message,
    ) -> Reply {
        let message = message.encode_to_vec();
        let mut body = vec![0];
        body.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
        body.extend(message);
        if self.content_type == TEXT {
            body = BASE64_STANDARD.encode(body).into_bytes();
        }
        let mut request = http::Request::post(format!("/arrow.flight.protocol.FlightService/{method}"))
            .header(CONTENT_TYPE, self.content_type)
            .header(ACCEPT, self.content_type);
        if let Some(session) = &self.session {
            request = request.header("x-bowshot-session", session);
        }
        let request =
            request.body(Full::new(Bytes::from(body)).map_err(|never| -> std::io::Error { match never {} }));
        read(self.connection.call(caller, request.unwrap()).await).await
    }

    async fn info(&self, sql: &str) -> Reply {
        self.call("GetFlightInfo", &FlightDescriptor::new_cmd(sql.to_owned())).await
    }
}

/// Decodes text of which each piece was encoded by itself.
fn unpacked(text: &[u8]) -> Vec<u8> {
    text.chunks(4).flat_map(|four| BASE64_STANDARD.decode(four).unwrap()).collect()
}

async fn read(response: http::Response<tonic::body::Body>) -> Reply {
    let (head, body) = response.into_parts();
    let collected = body.collect().await.unwrap();
    assert!(collected.trailers().is_none(), "gRPC-Web has its trailers in the body");
    let content_type = head.headers[CONTENT_TYPE].to_str().unwrap().to_owned();
    let mut bytes = collected.to_bytes();
    if content_type == TEXT {
        bytes = unpacked(&bytes).into();
    }
    let header = |name: &str| head.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let mut reply = Reply {
        http: head.status.as_u16(),
        messages: Vec::new(),
        code: header("grpc-status").map(|code| Code::from_bytes(code.as_bytes())),
        message: header("grpc-message").unwrap_or_default(),
        session: header("x-bowshot-session"),
        content_type,
    };
    assert!(header("set-cookie").is_none());
    while reply.http == 200 && !bytes.is_empty() {
        let prefix = bytes.split_to(5);
        let length = u32::from_be_bytes(prefix[1..].try_into().unwrap());
        let frame = bytes.split_to(usize::try_from(length).unwrap());
        match prefix[0] {
            0 => reply.messages.push(frame),
            0x80 => {
                assert!(bytes.is_empty(), "the trailers are not the last frame");
                let text = std::str::from_utf8(&frame).unwrap();
                for line in text.split("\r\n").filter(|line| !line.is_empty()) {
                    match line.split_once(':').unwrap() {
                        ("grpc-status", code) => reply.code = Some(Code::from_bytes(code.trim().as_bytes())),
                        ("grpc-message", message) => reply.message = message.to_owned(),
                        _ => {}
                    }
                }
            }
            flag => panic!("a frame with the flag {flag}"),
        }
    }
    reply
}

fn rows_of(reply: &Reply) -> usize {
    let mut decoder = Decoder::new();
    let decoded = reply.messages.iter().map(|message| {
        let data = FlightData::decode(message.clone()).unwrap();
        decoder.decode(&data.data_header, data.data_body).unwrap()
    });
    decoded.map(|decoded| if let Decoded::Batch(batch) = decoded { batch.num_rows() } else { 0 }).sum()
}

#[tokio::test]
async fn a_result_in_both_forms() {
    for form in [BINARY, TEXT] {
        let browser = Browser::open(form);
        let answer = browser.info("rows 100000").await;
        assert_eq!((answer.http, answer.code, answer.content_type.as_str()), (200, Some(Code::Ok), form));
        let info = FlightInfo::decode(answer.messages[0].clone()).unwrap();
        let answer = browser.call("DoGet", &Ticket { ticket: ticket_of(&info) }).await;
        assert_eq!((answer.code, rows_of(&answer)), (Some(Code::Ok), 100_000));
    }
}

#[tokio::test]
async fn errors_are_statuses_in_the_body_or_the_headers() {
    let browser = Browser::open(BINARY);
    // One that has been read already.
    let info = FlightInfo::decode(browser.info("rows 1").await.messages[0].clone()).unwrap();
    let read = Ticket { ticket: ticket_of(&info) };
    assert_eq!(browser.call("DoGet", &read).await.code, Some(Code::Ok));
    let answer = browser.call("DoGet", &read).await;
    assert_eq!((answer.http, answer.messages.len(), answer.code), (200, 0, Some(Code::NotFound)));
    // One that fails behind its first rows.
    let answer = browser.call("DoGet", &Ticket { ticket: "break".into() }).await;
    assert_eq!((answer.http, answer.code), (200, Some(Code::Internal)));
    assert!(!answer.messages.is_empty(), "the schema had gone out");
    let refused = Error::new(bowshot_api::ErrorKind::Unauthenticated, "who are you?");
    let command = FlightDescriptor::new_cmd("rows 1");
    let answer = browser.call_as(Err(refused), "GetFlightInfo", &command).await;
    assert_eq!((answer.code, answer.message.as_str()), (Some(Code::Unauthenticated), "who%20are%20you%3F"));
}

#[tokio::test]
async fn streams_to_the_server_are_refused() {
    let browser = Browser::open(BINARY);
    for method in ["Handshake", "DoPut", "DoExchange"] {
        let answer = browser.call(method, &FlightData::default()).await;
        assert_eq!(answer.code, Some(Code::Unimplemented), "{method}");
        assert!(answer.message.contains("gRPC-Web"), "{}", answer.message);
    }
    let answer = browser.call("Nonsense", &FlightData::default()).await;
    assert_eq!(answer.code, Some(Code::Unimplemented));
    assert_eq!(browser.door.effects(), []);
}

#[tokio::test]
async fn what_is_no_grpc_web_is_refused() {
    for form in
        ["application/grpc", "application/grpc+proto", "application/json", "application/grpc-web+json"]
    {
        let browser = Browser::open(form);
        for version in [http::Version::HTTP_11, http::Version::HTTP_2] {
            let request = http::Request::post("/arrow.flight.protocol.FlightService/GetFlightInfo")
                .version(version)
                .header(CONTENT_TYPE, form)
                .body(
                    http_body_util::Empty::<Bytes>::new()
                        .map_err(|never| -> std::io::Error { match never {} }),
                );
            let response = browser.connection.call(Ok(Browser::principal()), request.unwrap()).await;
            assert_eq!(response.status(), 415, "{form} {version:?}");
        }
    }
}

#[tokio::test]
async fn sessions_are_named_by_a_header_and_end_with_their_connection() {
    let mut browser = Browser::open(BINARY);
    let session = browser.info("rows 1").await.session.expect("a new session is named");
    assert_eq!(browser.info("rows 1").await.session, None);
    let counts = browser.door.counts.subscribe();
    assert_eq!(counts.borrow().sessions, 1);
    browser.connection.end().await;
    assert_eq!(counts.borrow().sessions, 0);
    browser.session = Some(session.clone());
    let answer = browser.info("rows 1").await;
    assert_eq!(answer.code, Some(Code::NotFound));
    assert!(answer.message.contains("x-bowshot-session"), "{}", answer.message);

    // One that was named stays.
    let mut browser = Browser::open(BINARY);
    browser.session = browser.info("rows 1").await.session;
    assert_eq!(browser.info("rows 1").await.code, Some(Code::Ok));
    browser.connection.end().await;
    assert_eq!(browser.door.counts.borrow().sessions, 1);
}

#[tokio::test]
async fn broken_requests_are_the_clients_fault() {
    for (form, body) in [
        (BINARY, &b"\0\0\0\0\x05ab"[..]),
        (BINARY, b""),
        (BINARY, b"\0\xff\xff\xff\xff"),
        (TEXT, b"AAAA"),
        (TEXT, b"!!!!"),
        (TEXT, b"AAA"),
    ] {
        let browser = Browser::open(form);
        for method in ["GetFlightInfo", "DoGet"] {
            let request = http::Request::post(format!("/arrow.flight.protocol.FlightService/{method}"))
                .header(CONTENT_TYPE, form)
                .header(ACCEPT, form)
                .body(
                    Full::new(Bytes::from_static(body)).map_err(|never| -> std::io::Error { match never {} }),
                );
            let answer =
                read(browser.connection.call(Ok(Browser::principal()), request.unwrap()).await).await;
            let code = answer.code.expect("a status");
            assert!(!matches!(code, Code::Ok | Code::Internal), "{method} {body:?}: {code:?}");
        }
    }
}

#[tokio::test]
async fn who_goes_away_stops_the_result() {
    let browser = Browser::open(BINARY);
    let message = Ticket { ticket: "wait".into() }.encode_to_vec();
    let mut body = vec![0];
    body.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    body.extend(message);
    let request = http::Request::post("/arrow.flight.protocol.FlightService/DoGet")
        .header(CONTENT_TYPE, BINARY)
        .body(Full::new(Bytes::from(body)).map_err(|never| -> std::io::Error { match never {} }))
        .unwrap();
    let response = browser.connection.call(Ok(Browser::principal()), request).await;
    let mut pieces = response.into_body().into_data_stream();
    assert!(pieces.next().await.is_some(), "the schema comes at once");
    assert_eq!(browser.door.counts.borrow().streams, 1);
    drop(pieces);
    assert_eq!(browser.door.counts.borrow().streams, 0);
}
