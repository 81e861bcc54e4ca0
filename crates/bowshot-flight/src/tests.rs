//! The front end over real sockets, in front of a small server in memory.

mod actions;
mod lifecycle;
#[cfg(target_os = "linux")]
mod same_host;
mod statements;
mod tls;
mod transactions;
mod writing;

use crate::Choices;
use crate::proto::ActionCreatePreparedStatementResult;
use arrow::array::{ArrayRef, Int64Array};
use arrow::record_batch::RecordBatch;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::{ActionCreatePreparedStatementRequest, Any, ProstMessageExt};
use arrow_flight::{Action, FlightData, FlightDescriptor, FlightInfo, Ticket};
use bowshot_api::Limits;
use bowshot_ipc::{Decoded, Decoder, EncodeOptions, Encoder};
use bowshot_test_server::{Counts, PATIENCE};
use bytes::Bytes;
use prost::Message;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Response, Status};

/// A running front end.
struct Port(bowshot_test_server::Port);

impl Deref for Port {
    type Target = bowshot_test_server::Port;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Port {
    async fn open() -> Self {
        Self::open_with(Limits::default(), false).await
    }

    async fn open_with(limits: Limits, users_only: bool) -> Self {
        Self::open_as(limits, users_only, Choices::default()).await
    }

    async fn open_as(limits: Limits, users_only: bool, choices: Choices) -> Self {
        let serve = |listener, server, until| crate::serve_with(listener, server, choices, until);
        Self(bowshot_test_server::Port::open(limits, users_only, serve).await)
    }

    async fn client(&self) -> Client {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address)).unwrap();
        Client { rpc: FlightServiceClient::new(endpoint.connect().await.unwrap()), headers: Vec::new() }
    }

    async fn with_client(self) -> (Self, Client) {
        let client = self.client().await;
        (self, client)
    }

    /// Waits until the server holds what `wanted` says.
    async fn until(&self, wanted: impl FnMut(&Counts) -> bool) {
        self.server.until(wanted).await;
    }
}

/// One connection, with headers for each call.
struct Client {
    rpc: FlightServiceClient<Channel>,
    headers: Vec<(&'static str, String)>,
}

impl Client {
    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        for (name, value) in &self.headers {
            request.metadata_mut().insert(*name, value.parse().unwrap());
        }
        request
    }

    async fn info(&mut self, command: impl Into<Bytes>) -> Result<Response<FlightInfo>, Status> {
        let request = self.request(FlightDescriptor::new_cmd(command));
        self.rpc.get_flight_info(request).await
    }

    async fn get(&mut self, ticket: impl Into<Bytes>) -> Result<Vec<RecordBatch>, Status> {
        let request = self.request(Ticket { ticket: ticket.into() });
        let mut stream = self.rpc.do_get(request).await?.into_inner();
        let mut decoder = Decoder::new();
        let mut batches = Vec::new();
        while let Some(data) = stream.message().await? {
            match decoder.decode(&data.data_header, data.data_body).unwrap() {
                Decoded::Batch(batch) => batches.push(batch),
                Decoded::Schema(_) | Decoded::Dictionary | Decoded::Empty => {}
            }
        }
        assert!(decoder.schema().is_some(), "a stream without schema");
        Ok(batches)
    }

    async fn action(&mut self, name: &str, body: Vec<u8>) -> Result<Option<Bytes>, Status> {
        let request = self.request(Action { r#type: name.to_owned(), body: body.into() });
        let mut results = self.rpc.do_action(request).await?.into_inner();
        Ok(results.message().await?.map(|result| result.body))
    }

    async fn put(&mut self, messages: Vec<FlightData>) -> Result<Bytes, Status> {
        let request = self.request(futures::stream::iter(messages));
        let mut results = self.rpc.do_put(request).await?.into_inner();
        Ok(results.message().await?.expect("a put result").app_metadata)
    }
}

fn any(message: &impl ProstMessageExt) -> Vec<u8> {
    message.as_any().encode_to_vec()
}

fn rows(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

fn ticket_of(info: &FlightInfo) -> Bytes {
    info.endpoint[0].ticket.clone().unwrap().ticket
}

/// The session cookie that an answer sets.
fn cookie_of<T>(response: &Response<T>) -> Option<String> {
    response.metadata().get("set-cookie").map(|value| value.to_str().unwrap().to_owned())
}

fn code_of<T: std::fmt::Debug>(result: Result<T, Status>) -> Code {
    result.unwrap_err().code()
}

async fn prepare(
    client: &mut Client,
    query: &str,
    transaction_id: Option<Bytes>,
) -> ActionCreatePreparedStatementResult {
    let request = ActionCreatePreparedStatementRequest { query: query.to_owned(), transaction_id };
    let body = client.action("CreatePreparedStatement", any(&request)).await.unwrap().unwrap();
    let wrapped = Any::decode(body).unwrap();
    assert!(wrapped.type_url.ends_with(".ActionCreatePreparedStatementResult"));
    ActionCreatePreparedStatementResult::decode(wrapped.value).unwrap()
}

fn command(command: Vec<u8>) -> FlightDescriptor {
    FlightDescriptor::new_cmd(command)
}

/// The messages that send batches under a descriptor.
fn upload(descriptor: FlightDescriptor, batches: &[RecordBatch]) -> Vec<FlightData> {
    let mut encoder = Encoder::new(batches[0].schema(), EncodeOptions::default()).unwrap();
    let mut messages = vec![encoder.schema_message().unwrap()];
    for batch in batches {
        messages.extend(encoder.encode(batch).unwrap());
    }
    let mut data: Vec<FlightData> = messages
        .into_iter()
        .map(|message| FlightData {
            data_header: message.header,
            data_body: message.body.concat().into(),
            ..FlightData::default()
        })
        .collect();
    data[0].flight_descriptor = Some(descriptor);
    data
}

pub(crate) fn framed(message: Vec<u8>) -> Vec<u8> {
    [vec![0], u32::try_from(message.len()).unwrap().to_be_bytes().to_vec(), message].concat()
}

fn numbers(values: Vec<i64>) -> RecordBatch {
    RecordBatch::try_from_iter([("p", Arc::new(Int64Array::from(values)) as ArrayRef)]).unwrap()
}
