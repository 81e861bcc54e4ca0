//! DoPut: binding parameters and running updates.
//!
//! What needs no data is answered at the first message and the rest of the stream is left unread: some clients wait
//! for the answer before they end their stream, others never send a schema.

use crate::caller::Caller;
use crate::parameters::plain_columns;
use crate::statement::prepared_session;
use crate::status::{framing, refuse};
use crate::ticket::{PreparedHandle, any, command, no_transaction};
use arrow::record_batch::RecordBatch;
use arrow_flight::flight_descriptor::DescriptorType;
use arrow_flight::sql::{
    Command, CommandPreparedStatementQuery, CommandPreparedStatementUpdate, CommandStatementUpdate,
    DoPutPreparedStatementResult, DoPutUpdateResult,
};
use arrow_flight::{FlightData, FlightDescriptor};
use bowshot_api::{Error, ErrorKind, Request, Result, Statement};
use bowshot_ipc::{Decoded, Decoder};
use bytes::Bytes;
use prost::Message;
use tonic::{Status, Streaming};

/// Answers DoPut; the bytes are the metadata of its one result.
pub(crate) async fn put(
    caller: &Caller,
    mut messages: Streaming<FlightData>,
) -> std::result::Result<Bytes, Status> {
    let first = messages.message().await.map_err(framing)?.ok_or_else(|| {
        refuse(Error::invalid("the stream is empty").with_hint("send a first message with a descriptor"))
    })?;
    match wanted(first.flight_descriptor.as_ref()).map_err(refuse)? {
        Command::CommandStatementUpdate(update) => run_update(caller, update).await.map_err(refuse),
        Command::CommandPreparedStatementQuery(query) => bind(caller, &query, first, messages).await,
        Command::CommandPreparedStatementUpdate(update) => {
            run_prepared(caller, &update, first, messages).await
        }
        other => Err(refuse(misplaced(&other))),
    }
}

fn wanted(descriptor: Option<&FlightDescriptor>) -> Result<Command> {
    let descriptor = descriptor.ok_or_else(|| {
        Error::invalid("the first message has no descriptor").with_hint("send a Flight SQL command in it")
    })?;
    if descriptor.r#type == DescriptorType::Path as i32 || !descriptor.path.is_empty() {
        return Err(no_ingest());
    }
    let any = any(&descriptor.cmd).ok_or_else(|| {
        Error::invalid("the descriptor is no Flight SQL command")
            .with_hint("wrap the command in google.protobuf.Any; send SQL text as `CommandStatementUpdate`")
    })?;
    command(any)
}

fn no_ingest() -> Error {
    Error::unsupported("bulk ingest is not supported: it arrives with durable tables")
        .with_hint("put the data into a file that the server serves")
}

fn misplaced(command: &Command) -> Error {
    let name = command.type_url().rsplit('.').next().unwrap_or_default();
    match command {
        Command::CommandStatementIngest(_) => no_ingest(),
        Command::CommandStatementSubstraitPlan(_) => Error::unsupported("substrait plans are not supported")
            .with_hint("send the statement as SQL text"),
        _ => Error::invalid(format!("`{name}` is not a command for DoPut"))
            .with_hint("send queries with GetFlightInfo, and updates as `CommandStatementUpdate`"),
    }
}

async fn run_update(caller: &Caller, update: CommandStatementUpdate) -> Result<Bytes> {
    no_transaction(update.transaction_id.as_ref())?;
    let session = caller.session().await?;
    let count = session.update(&Request::sql(update.query)).await?;
    Ok(update_result(count))
}

async fn bind(
    caller: &Caller,
    query: &CommandPreparedStatementQuery,
    first: FlightData,
    messages: Streaming<FlightData>,
) -> std::result::Result<Bytes, Status> {
    let handle = PreparedHandle::decode(&query.prepared_statement_handle).map_err(refuse)?;
    let session = prepared_session(caller, handle).map_err(refuse)?;
    let parameters = receive(caller, first, messages).await?;
    bind_rows(session.as_ref(), handle, parameters.batches).await.map_err(refuse)?;
    let result = DoPutPreparedStatementResult {
        prepared_statement_handle: Some(query.prepared_statement_handle.clone()),
    };
    Ok(result.encode_to_vec().into())
}

async fn run_prepared(
    caller: &Caller,
    update: &CommandPreparedStatementUpdate,
    first: FlightData,
    messages: Streaming<FlightData>,
) -> std::result::Result<Bytes, Status> {
    let handle = PreparedHandle::decode(&update.prepared_statement_handle).map_err(refuse)?;
    let session = prepared_session(caller, handle).map_err(refuse)?;
    let parameters = receive(caller, first, messages).await?;
    if parameters.rows > 0 && parameters.columns > 0 {
        bind_rows(session.as_ref(), handle, parameters.batches).await.map_err(refuse)?;
    } else if parameters.columns > 0 {
        // Columns without rows: the statement is to run no times.
        return Ok(update_result(Some(0)));
    }
    let count = session.update(&Request::prepared(handle.statement)).await.map_err(refuse)?;
    Ok(update_result(count))
}

async fn bind_rows(
    session: &dyn bowshot_api::Session,
    handle: PreparedHandle,
    batches: Vec<RecordBatch>,
) -> Result<()> {
    let description = session.describe(&Statement::Prepared(handle.statement)).await?;
    let batches: Result<Vec<RecordBatch>> =
        batches.into_iter().map(|batch| plain_columns(batch, &description.parameters)).collect();
    session.bind(handle.statement, batches?).await
}

fn update_result(count: Option<u64>) -> Bytes {
    let record_count = count.and_then(|count| i64::try_from(count).ok()).unwrap_or(-1);
    DoPutUpdateResult { record_count }.encode_to_vec().into()
}

/// The parameters that a stream brought.
#[derive(Default)]
struct Parameters {
    batches: Vec<RecordBatch>,
    columns: usize,
    rows: usize,
    bytes: usize,
}

/// Reads the whole stream, within the limits on rows and bytes.
async fn receive(
    caller: &Caller,
    first: FlightData,
    mut messages: Streaming<FlightData>,
) -> std::result::Result<Parameters, Status> {
    let limits = caller.server().limits();
    let mut decoder = Decoder::new();
    let mut parameters = Parameters::default();
    let mut next = Some(first);
    while let Some(data) = next {
        parameters.bytes = parameters.bytes.saturating_add(data.data_header.len() + data.data_body.len());
        let decoded =
            decoder.decode(&data.data_header, data.data_body).map_err(|error| refuse(error.into()))?;
        match decoded {
            Decoded::Schema(schema) => parameters.columns = schema.fields().len(),
            Decoded::Batch(batch) => {
                parameters.rows = parameters.rows.saturating_add(batch.num_rows());
                // What a compressed body has grown to counts too.
                parameters.bytes = parameters.bytes.saturating_add(batch.get_array_memory_size());
                if batch.num_rows() > 0 {
                    parameters.batches.push(batch);
                }
            }
            Decoded::Dictionary | Decoded::Empty => {}
        }
        check(&parameters, limits).map_err(refuse)?;
        next = messages.message().await.map_err(framing)?;
    }
    Ok(parameters)
}

fn check(parameters: &Parameters, limits: &bowshot_api::Limits) -> Result<()> {
    let (rows, bytes) = (limits.max_parameter_rows, limits.max_message_bytes.saturating_mul(2));
    if parameters.rows > rows {
        return Err(Error::new(
            ErrorKind::LimitReached,
            format!("too many parameter rows: {}, the limit is {rows}", parameters.rows),
        )
        .with_hint("bind fewer rows at once, or raise `limits.max_parameter_rows`"));
    }
    if parameters.bytes > bytes {
        return Err(Error::new(
            ErrorKind::LimitReached,
            format!("the parameters take more than {bytes} bytes"),
        )
        .with_hint("bind fewer rows at once, or raise `limits.max_message_bytes`"));
    }
    Ok(())
}
