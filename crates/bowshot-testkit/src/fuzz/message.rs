//! Valid Flight and Flight SQL messages, as bytes: the raw material of the mutations.

use super::random::Random;
use super::sql;
use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use arrow::record_batch::RecordBatch;
use arrow_flight::sql::{
    ActionBeginSavepointRequest, ActionBeginTransactionRequest, ActionCancelQueryRequest,
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest, ActionEndTransactionRequest,
    CommandGetCatalogs, CommandGetCrossReference, CommandGetDbSchemas, CommandGetExportedKeys,
    CommandGetImportedKeys, CommandGetPrimaryKeys, CommandGetSqlInfo, CommandGetTableTypes, CommandGetTables,
    CommandGetXdbcTypeInfo, CommandPreparedStatementQuery, CommandPreparedStatementUpdate,
    CommandStatementIngest, CommandStatementQuery, CommandStatementSubstraitPlan, CommandStatementUpdate,
    ProstMessageExt, SubstraitPlan, TicketStatementQuery,
};
use arrow_flight::utils::batches_to_flight_data;
use arrow_flight::{
    Action, CancelFlightInfoRequest, FlightData, FlightDescriptor, FlightEndpoint, FlightInfo,
};
use arrow_flight::{RenewFlightEndpointRequest, Ticket};
use bytes::Bytes;
use prost::Message;
use std::collections::HashMap;
use std::sync::Arc;

/// A session option, as `SetSessionOptions` has it (Flight.proto; not among the crate's messages).
#[derive(Clone, PartialEq, Message)]
struct OptionValue {
    #[prost(string, optional, tag = "1")]
    text: Option<String>,
    #[prost(bool, optional, tag = "2")]
    truth: Option<bool>,
    #[prost(sfixed64, optional, tag = "3")]
    whole: Option<i64>,
    #[prost(double, optional, tag = "4")]
    real: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
struct SetSessionOptions {
    #[prost(map = "string, message", tag = "1")]
    options: HashMap<String, OptionValue>,
}

/// Texts for names, patterns and filters.
fn name(random: &mut Random) -> String {
    match random.below(12) {
        0 => String::new(),
        1 => "%".repeat(1 + random.below(2000)),
        2 => "_%".repeat(1 + random.below(200)),
        3 => "\\".repeat(1 + random.below(9)),
        4 => "a".repeat(random.below(100_000)),
        5 => "x'; DROP TABLE numbers; --".to_owned(),
        6 => "größe\u{0}\u{202e}\u{1f3f9}".to_owned(),
        7 => "bowshot".to_owned(),
        8 => "main".to_owned(),
        9 => "num%".to_owned(),
        10 => "../../etc/passwd".to_owned(),
        _ => "numbers".to_owned(),
    }
}

fn maybe(random: &mut Random) -> Option<String> {
    if random.one_in(2) { None } else { Some(name(random)) }
}

fn handle(random: &mut Random) -> Bytes {
    let length = *random.pick(&[0, 1, 15, 16, 17, 32, 1000]);
    random.bytes(length).into()
}

/// A command wrapped in `Any`, with arbitrary names in it.
pub fn command(random: &mut Random) -> Vec<u8> {
    let any = match random.below(20) {
        0 => CommandGetCatalogs {}.as_any(),
        1 => CommandGetDbSchemas { catalog: maybe(random), db_schema_filter_pattern: maybe(random) }.as_any(),
        2..5 => CommandGetTables {
            catalog: maybe(random),
            db_schema_filter_pattern: maybe(random),
            table_name_filter_pattern: maybe(random),
            table_types: (0..random.below(4)).map(|_| name(random)).collect(),
            include_schema: random.one_in(2),
        }
        .as_any(),
        5 => CommandGetTableTypes {}.as_any(),
        6 => CommandGetPrimaryKeys { catalog: maybe(random), db_schema: maybe(random), table: name(random) }
            .as_any(),
        7 => CommandGetExportedKeys { catalog: maybe(random), db_schema: maybe(random), table: name(random) }
            .as_any(),
        8 => CommandGetImportedKeys { catalog: maybe(random), db_schema: maybe(random), table: name(random) }
            .as_any(),
        9 => CommandGetCrossReference {
            pk_catalog: maybe(random),
            pk_db_schema: maybe(random),
            pk_table: name(random),
            fk_catalog: maybe(random),
            fk_db_schema: maybe(random),
            fk_table: name(random),
        }
        .as_any(),
        10 => {
            CommandGetSqlInfo { info: (0..random.below(50)).map(|_| random.bits() as u32 % 1000).collect() }
                .as_any()
        }
        11 => CommandGetXdbcTypeInfo { data_type: random.one_in(2).then(|| random.bits() as i32) }.as_any(),
        12 => CommandPreparedStatementQuery { prepared_statement_handle: handle(random) }.as_any(),
        13 => CommandPreparedStatementUpdate { prepared_statement_handle: handle(random) }.as_any(),
        14 => CommandStatementUpdate { query: sql::seed(random).to_owned(), transaction_id: None }.as_any(),
        15 => ingest(random).as_any(),
        16 => CommandStatementSubstraitPlan {
            plan: Some(SubstraitPlan { plan: handle(random), version: name(random) }),
            transaction_id: None,
        }
        .as_any(),
        17 => TicketStatementQuery { statement_handle: handle(random) }.as_any(),
        18 => arrow_flight::sql::Any { type_url: name(random), value: handle(random) },
        _ => {
            let query = sql::seed(random);
            statement(random, query)
        }
    };
    any.encode_to_vec()
}

fn ingest(random: &mut Random) -> CommandStatementIngest {
    CommandStatementIngest {
        table_definition_options: None,
        table: name(random),
        schema: maybe(random),
        catalog: maybe(random),
        temporary: random.one_in(2),
        transaction_id: random.one_in(2).then(|| handle(random)),
        options: HashMap::from([(name(random), name(random))]),
    }
}

fn statement(random: &mut Random, query: &str) -> arrow_flight::sql::Any {
    let transaction_id = random.one_in(10).then(|| handle(random));
    CommandStatementQuery { query: query.to_owned(), transaction_id }.as_any()
}

/// `CommandStatementQuery` around text that need not be UTF-8: the protobuf is written by hand.
pub fn statement_bytes(text: &[u8]) -> Vec<u8> {
    let mut value = vec![0x0a];
    prost::encoding::encode_varint(text.len() as u64, &mut value);
    value.extend_from_slice(text);
    let type_url = "type.googleapis.com/arrow.flight.protocol.sql.CommandStatementQuery".to_owned();
    arrow_flight::sql::Any { type_url, value: value.into() }.encode_to_vec()
}

/// A descriptor around a command.
pub fn descriptor(command: Vec<u8>) -> Vec<u8> {
    FlightDescriptor::new_cmd(command).encode_to_vec()
}

/// A ticket around bytes.
pub fn ticket(bytes: impl Into<Bytes>) -> Vec<u8> {
    Ticket::new(bytes).encode_to_vec()
}

/// An action with a body that fits its type.
pub fn action(random: &mut Random) -> Action {
    let query = sql::seed(random).to_owned();
    let info =
        FlightInfo::new().with_endpoint(FlightEndpoint::new().with_ticket(Ticket::new(handle(random))));
    let any = |message: arrow_flight::sql::Any| Bytes::from(message.encode_to_vec());
    let (name, body) = match random.below(16) {
        0..4 => (
            "CreatePreparedStatement",
            any(ActionCreatePreparedStatementRequest { query, transaction_id: None }.as_any()),
        ),
        4 => (
            "ClosePreparedStatement",
            any(ActionClosePreparedStatementRequest { prepared_statement_handle: handle(random) }.as_any()),
        ),
        5 => ("BeginTransaction", any(ActionBeginTransactionRequest {}.as_any())),
        6 => {
            let transaction_id = handle(random);
            (
                "EndTransaction",
                any(ActionEndTransactionRequest { transaction_id, action: random.below(4) as i32 }.as_any()),
            )
        }
        7 => {
            let request = ActionBeginSavepointRequest { transaction_id: handle(random), name: name(random) };
            ("BeginSavepoint", any(request.as_any()))
        }
        8 => ("CancelQuery", any(ActionCancelQueryRequest { info: info.encode_to_vec().into() }.as_any())),
        9 => ("CancelFlightInfo", CancelFlightInfoRequest::new(info).encode_to_vec().into()),
        10 => {
            let endpoint = FlightEndpoint::new().with_ticket(Ticket::new(handle(random)));
            ("RenewFlightEndpoint", RenewFlightEndpointRequest::new(endpoint).encode_to_vec().into())
        }
        11..13 => ("SetSessionOptions", options(random).into()),
        13 => ("GetSessionOptions", Bytes::new()),
        14 => ("CloseSession", Bytes::new()),
        _ => ("NoSuchAction", handle(random)),
    };
    Action::new(name, body)
}

fn options(random: &mut Random) -> Vec<u8> {
    let names = ["catalog", "schema", "endpoints", "views", "compression", "time_zone", "dialect", "nothing"];
    let options = (0..random.below(4))
        .map(|_| {
            let value = match random.below(5) {
                0 => OptionValue { text: Some(name(random)), ..OptionValue::default() },
                1 => OptionValue { truth: Some(true), ..OptionValue::default() },
                2 => OptionValue { whole: Some(random.bits() as i64), ..OptionValue::default() },
                3 => OptionValue { real: Some(f64::from_bits(random.bits())), ..OptionValue::default() },
                _ => OptionValue::default(),
            };
            ((*random.pick(&names)).to_owned(), value)
        })
        .collect();
    SetSessionOptions { options }.encode_to_vec()
}

/// Parameter batches as `DoPut` sends them, without descriptor.
pub fn parameters(random: &mut Random) -> Vec<FlightData> {
    let rows = random.below(50) as i64;
    let columns: Vec<(&str, ArrayRef)> = match random.below(4) {
        0 => vec![("$1", Arc::new((0..rows).collect::<Int64Array>()) as ArrayRef)],
        1 => vec![
            ("$1", Arc::new((0..rows).map(|row| row as f64).collect::<Float64Array>()) as ArrayRef),
            (
                "$2",
                Arc::new((0..rows).map(|row| Some(format!("w{row}"))).collect::<StringArray>()) as ArrayRef,
            ),
        ],
        _ => vec![
            ("$1", Arc::new((0..rows).collect::<Int64Array>()) as ArrayRef),
            ("$2", Arc::new((0..rows).collect::<Int64Array>()) as ArrayRef),
        ],
    };
    let Ok(batch) = RecordBatch::try_from_iter(columns) else { return Vec::new() };
    let schema = batch.schema();
    batches_to_flight_data(&schema, vec![batch]).unwrap_or_default()
}
