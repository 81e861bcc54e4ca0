//! DoPut: runs updates and binds parameters; `ingest.rs` has rows for tables, `models.rs` model files. What needs no
//! data is answered at the first message and the rest is not read: some clients wait for the answer before they end
//! their stream, others never send a schema.

use crate::caller::Caller;
use crate::handles::{PreparedHandle, TransactionHandle, scope};
use crate::ingest;
use crate::messages::Messages;
use crate::models;
use crate::parameters::plain_columns;
use crate::statement::is_path;
use crate::ticket::{any, command, substrait};
use crate::upload::Upload;
use arrow::record_batch::RecordBatch;
use arrow_flight::FlightDescriptor;
use arrow_flight::sql::{
    Command, CommandPreparedStatementQuery, CommandPreparedStatementUpdate, DoPutPreparedStatementResult,
    DoPutUpdateResult,
};
use bowshot_api::{Error, ErrorKind, Limits, Request, Result, Session, Statement};
use bowshot_ipc::{Decoded, Decoder};
use bytes::Bytes;
use prost::Message;

/// Answers DoPut; returns the metadata of its result.
pub(crate) async fn put(caller: &Caller, messages: Messages) -> Result<Bytes> {
    let (descriptor, upload) = Upload::begin(messages, caller.server().limits()).await?;
    if let Some(model) = models::model(&descriptor.path) {
        return models::make(caller, model, upload).await;
    }
    if is_path(&descriptor) {
        return ingest::store(caller, &descriptor.path, upload).await;
    }
    match wanted(&descriptor)? {
        Command::CommandStatementUpdate(update) => {
            run_update(caller, Statement::Sql(update.query), update.transaction_id.as_ref()).await
        }
        Command::CommandStatementSubstraitPlan(update) => {
            let statement = Statement::Substrait(substrait(update.plan)?);
            run_update(caller, statement, update.transaction_id.as_ref()).await
        }
        Command::CommandPreparedStatementQuery(query) => bind(caller, &query, upload).await,
        Command::CommandPreparedStatementUpdate(update) => run_prepared(caller, &update, upload).await,
        Command::CommandStatementIngest(command) => ingest::ingest(caller, command, upload).await,
        other => Err(misplaced(&other)),
    }
}

pub(crate) fn wanted(descriptor: &FlightDescriptor) -> Result<Command> {
    let any = any(&descriptor.cmd).ok_or_else(|| {
        Error::invalid("the descriptor is not a Flight SQL command")
            .with_hint("wrap the command in google.protobuf.Any; send SQL text as `CommandStatementUpdate`")
    })?;
    command(any)
}

pub(crate) fn misplaced(command: &Command) -> Error {
    let name = command.type_url().rsplit('.').next().unwrap_or_default();
    Error::invalid(format!("`{name}` is not a command for DoPut"))
        .with_hint("send queries with GetFlightInfo, and updates as `CommandStatementUpdate`")
}

async fn run_update(caller: &Caller, statement: Statement, transaction: Option<&Bytes>) -> Result<Bytes> {
    let handle = TransactionHandle::from_command(transaction)?;
    let (session, transaction) = scope(caller, handle).await?;
    let request = Request::of(statement).within(transaction);
    Ok(update_result(session.update(&request).await?))
}

async fn bind(caller: &Caller, query: &CommandPreparedStatementQuery, upload: Upload) -> Result<Bytes> {
    let handle = PreparedHandle::decode(&query.prepared_statement_handle)?;
    let session = handle.session(caller)?;
    let parameters = receive(caller.server().limits(), upload).await?;
    bind_rows(session.as_ref(), handle, parameters.batches).await?;
    let result = DoPutPreparedStatementResult {
        prepared_statement_handle: Some(query.prepared_statement_handle.clone()),
    };
    Ok(result.encode_to_vec().into())
}

async fn run_prepared(
    caller: &Caller,
    update: &CommandPreparedStatementUpdate,
    upload: Upload,
) -> Result<Bytes> {
    let handle = PreparedHandle::decode(&update.prepared_statement_handle)?;
    let session = handle.session(caller)?;
    let parameters = receive(caller.server().limits(), upload).await?;
    if parameters.rows > 0 && parameters.columns > 0 {
        bind_rows(session.as_ref(), handle, parameters.batches).await?;
    } else if parameters.columns > 0 {
        // Columns without rows: the statement is to run no times.
        return Ok(update_result(Some(0)));
    }
    Ok(update_result(session.update(&Request::prepared(handle.statement)).await?))
}

async fn bind_rows(session: &dyn Session, handle: PreparedHandle, batches: Vec<RecordBatch>) -> Result<()> {
    let description = session.describe(&Statement::Prepared(handle.statement)).await?;
    let batches: Result<Vec<RecordBatch>> =
        batches.into_iter().map(|batch| plain_columns(batch, &description.parameters)).collect();
    session.bind(handle.statement, batches?).await
}

/// The metadata with the number of affected rows.
pub(crate) fn update_result(count: Option<u64>) -> Bytes {
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
async fn receive(limits: &Limits, mut upload: Upload) -> Result<Parameters> {
    let mut decoder = Decoder::new();
    let mut parameters = Parameters::default();
    while let Some(data) = upload.message().await? {
        parameters.bytes = parameters.bytes.saturating_add(data.data_header.len() + data.data_body.len());
        match decoder.decode(&data.data_header, data.data_body)? {
            Decoded::Schema(schema) => parameters.columns = schema.fields().len(),
            Decoded::Batch(batch) => {
                parameters.rows = parameters.rows.saturating_add(batch.num_rows());
                // Decompressed bytes count too.
                parameters.bytes = parameters.bytes.saturating_add(batch.get_array_memory_size());
                if batch.num_rows() > 0 {
                    parameters.batches.push(batch);
                }
            }
            Decoded::Dictionary | Decoded::Empty => {}
        }
        check(&parameters, limits)?;
    }
    Ok(parameters)
}

fn check(parameters: &Parameters, limits: &Limits) -> Result<()> {
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
