//! DoExchange: a statement over rows of the client. The rows are read like an upload, the result is sent like DoGet,
//! on the same call. Path `score` applies a model to the rows.

use crate::caller::Caller;
use crate::handles::{TransactionHandle, scope};
use crate::messages::Messages;
use crate::statement::is_path;
use crate::status::refuse;
use crate::stream::{Source, attach, respond};
use crate::tensor_exchange;
use crate::ticket::{QueryTicket, TicketPayload};
use crate::upload::{Rows, Upload};
use arrow_flight::FlightDescriptor;
use arrow_flight::sql::Command;
use bowshot_api::{BatchStream, Error, Input, Request, Result, Statement};
use bowshot_ipc::FlightBody;
use bytes::Bytes;
use http::Response;
use serde_json::{Map, Value};
use std::num::NonZeroUsize;
use tonic::Status;

/// Default name of the client's rows in the statement.
const INPUT: &str = "input";
/// Most rows that an operator may be asked to gather.
const MOST_BATCH_ROWS: u64 = 1 << 20;

pub(crate) async fn exchange(
    caller: &Caller,
    messages: Messages,
) -> std::result::Result<Response<FlightBody>, Status> {
    let (descriptor, upload) = Upload::begin(messages, caller.server().limits()).await.map_err(refuse)?;
    let tensors = tensor_exchange::parse(&descriptor).map_err(refuse)?;
    let command = if tensors.is_some() { None } else { Some(Exchange::read(&descriptor).map_err(refuse)?) };
    // One message may grow by its compression, but not without bounds.
    let max_bytes = caller.server().limits().max_message_bytes.saturating_mul(2);
    let rows = upload.batches(max_bytes).await.map_err(refuse)?;
    let transaction = command.as_ref().and_then(|command| command.transaction);
    let (session, transaction) = scope(caller, transaction).await.map_err(refuse)?;
    let command = match (tensors, command) {
        (_, Some(command)) => command,
        (Some(tensors), None) => {
            return respond(Source::new(session.join(tensors, rows).await.map_err(refuse)?), caller);
        }
        (None, None) => {
            return Err(refuse(Error::internal("an exchange has neither a statement nor tensors")));
        }
    };
    let (statement, input) = (command.statement.clone(), command.input(rows));
    let request = Request::of(statement).within(transaction);
    let answer = session.exchange(&request, input).await.map_err(refuse)?;
    let (query, compression) = (answer.query, answer.layout.compression);
    let source =
        attach(caller, QueryTicket { query, partition: 0, compression, voucher: Bytes::new() }).await?;
    respond(source, caller)
}

#[derive(Debug)]
struct Exchange {
    statement: Statement,
    transaction: Option<TransactionHandle>,
    name: String,
    ordered: bool,
    batch_rows: Option<NonZeroUsize>,
}

impl Exchange {
    fn read(descriptor: &FlightDescriptor) -> Result<Self> {
        if is_path(descriptor) {
            return scoring(&descriptor.path).map(Self::from_text);
        }
        if let Some(options) = json(&descriptor.cmd)? {
            return Self::from_json(options);
        }
        let (statement, transaction) = match TicketPayload::decode(&descriptor.cmd)? {
            TicketPayload::Statement(statement, transaction) => (statement, transaction),
            TicketPayload::Command(Command::CommandStatementUpdate(update)) => {
                let transaction = TransactionHandle::from_command(update.transaction_id.as_ref())?;
                (Statement::Sql(update.query), transaction)
            }
            TicketPayload::Prepared(_) | TicketPayload::Query(_) | TicketPayload::Command(_) => {
                return Err(Error::invalid("the command is not SQL text").with_hint(
                    "send SQL text, `CommandStatementQuery`, `CommandStatementUpdate` or a JSON object with `sql`",
                ));
            }
        };
        Ok(Self { statement, transaction, ..Self::from_text(String::new()) })
    }

    /// A statement under the usual options.
    fn from_text(sql: String) -> Self {
        let (statement, name) = (Statement::Sql(sql), INPUT.to_owned());
        Self { statement, transaction: None, name, ordered: true, batch_rows: None }
    }

    /// Parses `{"sql": "…", "input": "…", "ordered": true, "batch_rows": 100}`. Unknown options are errors: a
    /// misspelled one must not be ignored.
    fn from_json(options: Map<String, Value>) -> Result<Self> {
        let mut exchange = Self::from_text(String::new());
        let mut sql = None;
        for (name, value) in options {
            match (name.as_str(), value) {
                ("sql", Value::String(text)) => sql = Some(text),
                ("input", Value::String(table)) if !table.is_empty() => exchange.name = table,
                ("ordered", Value::Bool(ordered)) => exchange.ordered = ordered,
                ("batch_rows", Value::Number(rows)) => {
                    let rows = rows.as_u64().filter(|rows| (1..=MOST_BATCH_ROWS).contains(rows));
                    let rows = rows.and_then(|rows| usize::try_from(rows).ok()).and_then(NonZeroUsize::new);
                    exchange.batch_rows = Some(rows.ok_or_else(|| {
                        Error::invalid(format!("`batch_rows` is not between 1 and {MOST_BATCH_ROWS}"))
                    })?);
                }
                _ => {
                    return Err(Error::invalid(format!("invalid option `{name}` of an exchange"))
                        .with_hint("the options are `sql`, `input`, `ordered` and `batch_rows`"));
                }
            }
        }
        let sql = sql
            .filter(|sql| !sql.trim().is_empty())
            .ok_or_else(|| Error::invalid("the command has no statement").with_hint("set `sql`"))?;
        Ok(Self { statement: Statement::Sql(sql), ..exchange })
    }

    fn input(self, rows: BatchStream) -> Input {
        Input { name: self.name, ordered: self.ordered, batch_rows: self.batch_rows, rows }
    }
}

/// The statement for `["score", model]`.
fn scoring(path: &[String]) -> Result<String> {
    let (model, function, column) = match path {
        [service, model] if service == "score" => (model, "predict", "prediction"),
        [service, model, what] if service == "score" && what == "probabilities" => {
            (model, "predict_proba", "probabilities")
        }
        _ => {
            return Err(Error::unsupported("the path does not exist").with_hint(
                "send SQL text as the command, which reads the rows as the table `input`; or the path `score`, model[, `probabilities`]",
            ));
        }
    };
    // In some dialects it would keep the next quotation mark from ending the text.
    if model.contains('\\') {
        return Err(Error::not_found(format!("model `{model}` not found")));
    }
    let model = model.replace('\'', "''");
    Ok(format!("SELECT {function}.{column} FROM {function}('{model}', TABLE {INPUT})"))
}

/// The command as a JSON object, if it is one. No statement begins and ends with braces.
fn json(command: &[u8]) -> Result<Option<Map<String, Value>>> {
    if command.trim_ascii_start().first() != Some(&b'{') {
        return Ok(None);
    }
    match serde_json::from_slice(command) {
        Ok(Value::Object(options)) => Ok(Some(options)),
        Ok(_) | Err(_) => Err(Error::invalid("invalid JSON object in the command")
            .with_hint("send SQL text, or an object such as `{\"sql\": \"SELECT * FROM input\"}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_flight::sql::{
        CommandGetTables, CommandStatementQuery, CommandStatementUpdate, ProstMessageExt,
    };
    use prost::Message;

    fn read(command: impl Into<bytes::Bytes>) -> String {
        told(&FlightDescriptor::new_cmd(command))
    }

    fn told(descriptor: &FlightDescriptor) -> String {
        match Exchange::read(descriptor) {
            Ok(Exchange { statement: Statement::Sql(sql), name, ordered, batch_rows, transaction }) => {
                format!("{sql} | {name} {ordered} {batch_rows:?} {}", transaction.is_some())
            }
            Ok(other) => format!("{other:?}"),
            Err(error) => error.message().to_owned(),
        }
    }

    #[test]
    fn commands_in_every_form() {
        let query = CommandStatementQuery { query: "SELECT 1".to_owned(), transaction_id: None };
        let update = CommandStatementUpdate {
            query: "DELETE".to_owned(),
            transaction_id: Some(bytes::Bytes::from_static(&[7; 32])),
        };
        for (command, expected) in [
            (b"SELECT 1".to_vec(), "SELECT 1 | input true None false"),
            (query.as_any().encode_to_vec(), "SELECT 1 | input true None false"),
            (update.as_any().encode_to_vec(), "DELETE | input true None true"),
            (CommandGetTables::default().as_any().encode_to_vec(), "the command is not SQL text"),
            (br#" {"sql": "SELECT 2", "input": "x"}"#.to_vec(), "SELECT 2 | x true None false"),
            (br#"{"sql": "S", "ordered": false, "batch_rows": 5}"#.to_vec(), "S | input false Some(5) false"),
            (b"{}".to_vec(), "the command has no statement"),
            (br#"{"sql": " "}"#.to_vec(), "the command has no statement"),
            (br#"{"sql": 1}"#.to_vec(), "invalid option `sql` of an exchange"),
            (br#"{"input": ""}"#.to_vec(), "invalid option `input` of an exchange"),
            (br#"{"batch_rows": 0}"#.to_vec(), "`batch_rows` is not between 1 and 1048576"),
            (br#"{"batch_rows": -1}"#.to_vec(), "`batch_rows` is not between 1 and 1048576"),
            (b"{fn now()}".to_vec(), "invalid JSON object in the command"),
            (b"".to_vec(), "the command is empty"),
        ] {
            assert_eq!(read(command), expected);
        }
        for (path, expected) in [
            (
                vec!["score", "s.it's"],
                "SELECT predict.prediction FROM predict('s.it''s', TABLE input) | input true None false",
            ),
            (
                vec!["score", "m", "probabilities"],
                "SELECT predict_proba.probabilities FROM predict_proba('m', TABLE input) | input true None false",
            ),
            (vec!["score", "m\\"], "model `m\\` not found"),
            (vec!["score"], "the path does not exist"),
            (vec!["score", "m", "x"], "the path does not exist"),
            (vec!["t"], "the path does not exist"),
        ] {
            let path = path.into_iter().map(str::to_owned).collect();
            assert_eq!(told(&FlightDescriptor::new_path(path)), expected);
        }
    }
}
