//! The kinds of cases. Most are one call; some first get something real from the server, a ticket or a handle, and then
//! damage it.

use super::call::{Answer, Call, Ending};
use super::judge::Level;
use super::message;
use super::mutate;
use super::random::Random;
use super::run::Client;
use super::sql;
use arrow_flight::sql::{
    ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult, CommandPreparedStatementQuery,
    ProstMessageExt,
};
use arrow_flight::{Action, FlightData, FlightDescriptor, FlightInfo, Result as ActionResult};
use bytes::Bytes;
use http::Method;
use prost::Message;

/// All methods of the service.
const METHODS: &[&str] = bowshot_api::words! {
    Handshake ListFlights GetFlightInfo PollFlightInfo GetSchema DoGet DoPut DoExchange DoAction ListActions
};

/// Methods whose request is a descriptor.
const DESCRIBED: [&str; 3] = ["GetFlightInfo", "PollFlightInfo", "GetSchema"];

/// Runs the case with this number; its choices depend on nothing but the seed and the number.
pub async fn run(client: &mut Client, random: &mut Random) {
    match random.below(100) {
        0..20 => statement(client, random).await,
        20..26 => sql_ticket(client, random).await,
        26..36 => command(client, random).await,
        36..46 => damaged(client, random).await,
        46..55 => tickets(client, random).await,
        55..64 => prepared(client, random).await,
        64..72 => action(client, random).await,
        72..81 => headers(client, random).await,
        81..84 => framing(client, random).await,
        84..87 => put(client, random).await,
        87..97 => exchange(client, random).await,
        97 => super::raw::garbage(client, random).await,
        _ => leaving(client, random).await,
    }
}

/// SQL text in a command; a good answer is read.
async fn statement(client: &mut Client, random: &mut Random) {
    let text = sql::text(random);
    let described = if random.one_in(4) { text } else { message::statement_bytes(&text) };
    let method = *random.pick(&DESCRIBED);
    let call = Call::flight(method, &[message::descriptor(described)]);
    let answer = client.call("statement", Level::Grpc, call).await;
    if method == "GetFlightInfo"
        && let Some(info) = answer.message()
        && let Ok(info) = FlightInfo::decode(info)
    {
        for endpoint in info.endpoint.into_iter().filter_map(|endpoint| endpoint.ticket) {
            client.call("statement", Level::Grpc, Call::flight("DoGet", &[endpoint.encode_to_vec()])).await;
        }
    }
}

/// SQL text as ticket.
async fn sql_ticket(client: &mut Client, random: &mut Random) {
    let text = sql::text(random);
    client.call("SQL ticket", Level::Grpc, Call::flight("DoGet", &[message::ticket(text)])).await;
}

/// Metadata and other commands with strange names in them, whole or damaged.
async fn command(client: &mut Client, random: &mut Random) {
    let mut command = message::command(random);
    if random.one_in(3) {
        command = mutate::bytes(random, &command);
    }
    let method = *random.pick(&DESCRIBED);
    let call = Call::flight(method, &[message::descriptor(command)]);
    let answer = client.call("command", Level::Grpc, call).await;
    if method == "GetFlightInfo"
        && let Some(info) = answer.message()
        && let Ok(info) = FlightInfo::decode(info)
        && let Some(ticket) = info.endpoint.into_iter().find_map(|endpoint| endpoint.ticket)
    {
        client.call("command", Level::Grpc, Call::flight("DoGet", &[ticket.encode_to_vec()])).await;
    }
}

/// Any method with a damaged protobuf message.
async fn damaged(client: &mut Client, random: &mut Random) {
    let valid = match random.below(5) {
        0 => message::ticket(sql::seed(random).as_bytes().to_vec()),
        1 => message::action(random).encode_to_vec(),
        2 => FlightDescriptor::new_path(vec!["a".to_owned(), "b".to_owned()]).encode_to_vec(),
        3 => message::parameters(random).first().map(Message::encode_to_vec).unwrap_or_default(),
        _ => message::descriptor(message::command(random)),
    };
    let payload = mutate::bytes(random, &valid);
    let method = *random.pick(METHODS);
    client.call("damaged message", Level::Grpc, Call::flight(method, &[payload])).await;
}

/// A real ticket: damaged, read twice, renewed, cancelled.
async fn tickets(client: &mut Client, random: &mut Random) {
    let command = message::statement_bytes(b"SELECT id, value FROM numbers WHERE id < 5");
    let asked = client
        .call("ticket", Level::Grpc, Call::flight("GetFlightInfo", &[message::descriptor(command)]))
        .await;
    let Some(info) = asked.message().and_then(|info| FlightInfo::decode(info).ok()) else { return };
    let Some(ticket) = info.endpoint.first().and_then(|endpoint| endpoint.ticket.clone()) else { return };
    let broken = message::ticket(mutate::bytes(random, &ticket.ticket));
    client.call("ticket", Level::Grpc, Call::flight("DoGet", &[broken])).await;
    let mut damaged = info.clone();
    if random.one_in(2) {
        for endpoint in &mut damaged.endpoint {
            if let Some(ticket) = &mut endpoint.ticket {
                ticket.ticket = mutate::bytes(random, &ticket.ticket).into();
            }
        }
    }
    let cancel = arrow_flight::CancelFlightInfoRequest::new(damaged).encode_to_vec();
    let whole = Call::flight("DoGet", &[ticket.encode_to_vec()]);
    match random.below(3) {
        0 => {
            client.call("ticket", Level::Grpc, whole.clone()).await;
            client.call("ticket", Level::Grpc, whole).await;
        }
        1 => {
            let action = Action::new("CancelFlightInfo", cancel).encode_to_vec();
            client.call("ticket", Level::Grpc, Call::flight("DoAction", &[action])).await;
            client.call("ticket", Level::Grpc, whole).await;
        }
        // Nobody reads it: it must expire.
        _ => {}
    }
}

/// A prepared statement: good or bad text, damaged parameters, damaged handles, use after close.
async fn prepared(client: &mut Client, random: &mut Random) {
    let query = String::from_utf8_lossy(&sql::text(random)).into_owned();
    let query = if random.one_in(2) { "SELECT $1 + id FROM numbers WHERE id = $2".to_owned() } else { query };
    let create =
        ActionCreatePreparedStatementRequest { query, transaction_id: None }.as_any().encode_to_vec();
    let create = Action::new("CreatePreparedStatement", create).encode_to_vec();
    let made = client.call("prepared", Level::Grpc, Call::flight("DoAction", &[create])).await;
    let Some(handle) = made.message().and_then(prepared_handle) else { return };
    let used = if random.one_in(5) { mutate::bytes(random, &handle).into() } else { handle.clone() };
    let command = CommandPreparedStatementQuery { prepared_statement_handle: used }.as_any().encode_to_vec();
    let bind = bound(random, &command);
    client.call("prepared", Level::Grpc, Call::flight("DoPut", &bind)).await;
    let run = Call::flight("GetFlightInfo", &[message::descriptor(command)]);
    let answer = client.call("prepared", Level::Grpc, run.clone()).await;
    if let Some(info) = answer.message().and_then(|info| FlightInfo::decode(info).ok())
        && let Some(ticket) = info.endpoint.into_iter().find_map(|endpoint| endpoint.ticket)
    {
        client.call("prepared", Level::Grpc, Call::flight("DoGet", &[ticket.encode_to_vec()])).await;
    }
    let close = arrow_flight::sql::ActionClosePreparedStatementRequest { prepared_statement_handle: handle };
    let close = Action::new("ClosePreparedStatement", close.as_any().encode_to_vec()).encode_to_vec();
    client.call("prepared", Level::Grpc, Call::flight("DoAction", &[close])).await;
    if random.one_in(4) {
        client.call("prepared", Level::Grpc, run).await;
    }
}

fn prepared_handle(message: Bytes) -> Option<Bytes> {
    let result = ActionResult::decode(message).ok()?;
    let any = arrow_flight::sql::Any::decode(result.body).ok()?;
    let made: ActionCreatePreparedStatementResult = any.unpack().ok()??;
    Some(made.prepared_statement_handle)
}

/// Parameter messages: whole, or damaged in the IPC header, the body, the framing or the order.
fn bound(random: &mut Random, command: &[u8]) -> Vec<Vec<u8>> {
    let mut messages = message::parameters(random);
    if let Some(first) = messages.first_mut() {
        first.flight_descriptor = Some(FlightDescriptor::new_cmd(command.to_vec()));
    }
    let at = random.below(messages.len());
    if let Some(message) = messages.get_mut(at) {
        match random.below(6) {
            0 => message.data_header = mutate::bytes(random, &message.data_header).into(),
            1 => message.data_body = mutate::bytes(random, &message.data_body).into(),
            2 => message.data_body = Bytes::new(),
            3 => message.data_header = Bytes::new(),
            _ => {}
        }
    }
    if random.one_in(8) {
        messages.reverse();
    }
    if random.one_in(8) {
        messages.pop();
    }
    let mut payloads: Vec<Vec<u8>> = messages.iter().map(FlightData::encode_to_vec).collect();
    if random.one_in(8)
        && let Some(last) = payloads.last_mut()
    {
        *last = mutate::bytes(random, last);
    }
    payloads
}

/// Actions, whole and damaged.
async fn action(client: &mut Client, random: &mut Random) {
    let mut action = message::action(random);
    match random.below(5) {
        0 => action.body = mutate::bytes(random, &action.body).into(),
        1 => action.body = Bytes::new(),
        2 => action.r#type = "x".repeat(random.below(100_000)),
        _ => {}
    }
    client.call("action", Level::Grpc, Call::flight("DoAction", &[action.encode_to_vec()])).await;
}

/// Good calls with strange headers.
async fn headers(client: &mut Client, random: &mut Random) {
    let long = "x".repeat(*random.pick(&[100, 4_000, 7_000]));
    let id = format!("{:032x}", u128::from(random.bits()) << 64 | u128::from(random.bits()));
    let (name, value): (&str, Vec<u8>) = match random.below(16) {
        0 => ("cookie", format!("arrow_flight_session_id={id}").into_bytes()),
        1 => ("cookie", b"arrow_flight_session_id".to_vec()),
        2 => ("cookie", format!("$Version=\"1\"; arrow_flight_session_id=\"{id}\"").into_bytes()),
        3 => ("cookie", format!("a=b; ;; =; arrow_flight_session_id={long}").into_bytes()),
        4 => ("authorization", b"Bearer None".to_vec()),
        5 => ("authorization", format!("Bearer {id}").into_bytes()),
        6 => ("authorization", b"Basic !!!".to_vec()),
        7 => ("authorization", b"Basic Og".to_vec()),
        8 => ("authorization", format!("Basic {long}").into_bytes()),
        9 => ("authorization", b"\xff\xfe".to_vec()),
        10 => (
            "grpc-timeout",
            (*random.pick(&[&b"1n"[..], b"0S", b"-1S", b"99999999H", b"9999999999S", b"abc", b"", b"1u"]))
                .to_vec(),
        ),
        11 => ("grpc-encoding", (*random.pick(&[&b"gzip"[..], b"identity", b"nothing"])).to_vec()),
        12 => ("catalog", mutate::bytes(random, b"bowshot").into_iter().filter(|byte| *byte > 31).collect()),
        13 => ("schema", long.into_bytes()),
        14 => ("x-strange-bin", b"****".to_vec()),
        _ => ("user-agent", random.bytes(40).into_iter().map(|byte| byte | 0x80).collect()),
    };
    let call = match random.below(3) {
        0 => Call::flight("DoGet", &[message::ticket("SELECT id FROM numbers")]),
        1 => Call::flight("GetFlightInfo", &[message::descriptor(message::command(random))]),
        _ => Call::flight("Handshake", &[b"\x08\x01".to_vec()]),
    };
    client.call("headers", Level::Grpc, call.with_header(name, value)).await;
}

/// Broken gRPC framing, methods and paths.
async fn framing(client: &mut Client, random: &mut Random) {
    let mut call = Call::flight(METHODS[random.below(METHODS.len())], &[message::ticket("SELECT 1")]);
    let mut level = Level::Grpc;
    match random.below(9) {
        0 => call.body = call.body.slice(..random.below(call.body.len())),
        1 => call.body = [&[1][..], &call.body[1..]].concat().into(),
        2 => call.body = [&[0, 0xff, 0xff, 0xff, 0xff][..], &call.body[5..]].concat().into(),
        3 => call.body = Bytes::new(),
        4 => call.body = mutate::bytes(random, &call.body).into(),
        5 => call.body = call.body.repeat(1 + random.below(5)).into(),
        6 => {
            call.path =
                (*random.pick(&["/", "/x/y", "/arrow.flight.protocol.FlightService/Nothing"])).to_owned();
        }
        7 => {
            call.method = random.pick(&[Method::GET, Method::PUT, Method::OPTIONS, Method::DELETE]).clone();
            level = Level::Http;
        }
        _ => {
            call = call.with_header(
                "content-type",
                *random.pick(&["text/html", "application/json", "application/grpc+json"]),
            );
            level = Level::Http;
        }
    }
    client.call("framing", level, call).await;
}

/// Writing, which the server refuses, and streams that make no sense.
async fn put(client: &mut Client, random: &mut Random) {
    let command = message::command(random);
    let payloads = bound(random, &command);
    let method = *random.pick(&["DoPut", "DoExchange", "Handshake"]);
    client.call("put", Level::Grpc, Call::flight(method, &payloads)).await;
}

/// Statements over rows that come with them, which may be cut off, of another schema, or nothing at all.
pub async fn exchange(client: &mut Client, random: &mut Random) {
    let sql = *random.pick(&[
        "SELECT * FROM input",
        "SELECT \"$1\" + 1 FROM input WHERE \"$1\" > 10",
        "SELECT count(*), sum(\"$1\") FROM input",
        "SELECT n.* FROM input JOIN numbers n ON n.id = \"$1\"",
        "SELECT \"$1\" FROM input ORDER BY 1 LIMIT 3",
        "SELECT a.\"$1\" FROM input a JOIN input b ON a.\"$1\" = b.\"$1\"",
        "SELECT CAST(\"$2\" AS DATE) FROM input",
        "{\"sql\": \"SELECT * FROM rows\", \"input\": \"rows\", \"ordered\": false, \"batch_rows\": 3}",
    ]);
    let sql = if random.one_in(8) { mutate::bytes(random, sql.as_bytes()) } else { sql.as_bytes().to_vec() };
    let call = Call::flight("DoExchange", &bound(random, &sql));
    if !random.one_in(4) {
        client.call("exchange", Level::Grpc, call).await;
        return;
    }
    let ending = *random.pick(&[Ending::HalfOpen, Ending::Reset, Ending::Cut]);
    let answer = client.call("exchange", Level::Grpc, call.ending(ending)).await;
    if ending == Ending::Cut || matches!(answer.answer, Answer::Lost(_)) {
        client.forget_connection();
    }
}

/// Clients that go away in the middle.
async fn leaving(client: &mut Client, random: &mut Random) {
    let ending = *random.pick(&[Ending::HalfOpen, Ending::Reset, Ending::Cut]);
    let call = match random.below(4) {
        0 => Call::flight("DoGet", &[message::ticket("SELECT * FROM generate_series(1, 50000000)")]),
        1 => {
            let command = message::command(random);
            Call::flight("DoPut", &bound(random, &command))
        }
        2 => Call::flight("Handshake", &[b"\x08\x01".to_vec()]),
        _ => Call::flight(
            "DoGet",
            &[message::ticket("SELECT a.id FROM numbers a, numbers b, words c ORDER BY 1")],
        ),
    };
    let answer = client.call("leaving", Level::Grpc, call.ending(ending)).await;
    if ending == Ending::Cut || matches!(answer.answer, Answer::Lost(_)) {
        client.forget_connection();
    }
}
