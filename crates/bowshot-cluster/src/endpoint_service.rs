//! Requests of other nodes about endpoints of this node: states, errors and rows, as Flight over the internal port.

use crate::endpoint_sink::principal;
use arrow_flight::encode::{DictionaryHandling, FlightDataEncoderBuilder};
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_server::{FlightService, FlightServiceServer};
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest,
    HandshakeResponse, PollInfo, PutResult, SchemaResult, Ticket,
};
use bowshot_api::{Error, Result};
use bowshot_engine::WeakEngine;
use bowshot_engine::distribution::{from_text, to_text};
use bowshot_engine::endpoints::{EndpointId, EndpointState, LocalEndpoint};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tonic::{Request, Response, Status, Streaming};
use uuid::Uuid;

/// How often to check whether an endpoint is open: the plan that opens it may still arrive.
const POLL_INTERVAL: Duration = Duration::from_millis(3);
/// Approximate bytes of a message of rows.
const MESSAGE_BYTES: usize = 2 << 20;

/// Requests about an endpoint.
pub(crate) const OPENED: &str = "opened";
pub(crate) const READY: &str = "ready";
pub(crate) const STATE: &str = "state";
pub(crate) const FAIL: &str = "fail";

#[derive(Debug)]
pub(crate) struct EndpointService(pub(crate) WeakEngine);

type Answer<T> = std::result::Result<Response<T>, Status>;
type Rows<T> = BoxStream<'static, std::result::Result<T, Status>>;

impl EndpointService {
    pub(crate) fn into_server(self) -> FlightServiceServer<Self> {
        FlightServiceServer::new(self)
    }

    fn found(&self, id: EndpointId) -> Result<Option<Arc<dyn LocalEndpoint>>> {
        local(&self.0, id)
    }

    /// Answers a request about an endpoint.
    async fn asked(&self, what: &str, body: &Value) -> Result<Value> {
        let id = id_of(body)?;
        match what {
            OPENED => opened(&self.0, id).await.map(|_| Value::Null),
            READY => opened(&self.0, id).await?.ready().await.map(|()| Value::Null),
            STATE => Ok(state_to_json(self.found(id)?.ok_or_else(gone)?.state())),
            FAIL => {
                if let Some(endpoint) = self.found(id)? {
                    endpoint.fail(from_text(body["error"].as_str().unwrap_or_default()));
                }
                Ok(Value::Null)
            }
            _ => Err(Error::unsupported("unsupported request between nodes")),
        }
    }

    fn rows(&self, ticket: &[u8]) -> Result<bowshot_api::BatchStream> {
        let asked: Value = serde_json::from_slice(ticket).map_err(unreadable)?;
        let principal = principal(&asked["principal"]).map_err(unreadable)?;
        self.found(id_of(&asked)?)?.ok_or_else(gone)?.attach(&principal)
    }
}

/// An endpoint of this node.
pub(crate) fn local(engine: &WeakEngine, id: EndpointId) -> Result<Option<Arc<dyn LocalEndpoint>>> {
    let stopping = || Error::new(bowshot_api::ErrorKind::Unavailable, "the node is shutting down");
    let engine = engine.upgrade().ok_or_else(stopping)?;
    Ok(engine.endpoints().and_then(|store| store.find(id)))
}

/// Waits until a plan opens an endpoint of this node.
pub(crate) async fn opened(engine: &WeakEngine, id: EndpointId) -> Result<Arc<dyn LocalEndpoint>> {
    loop {
        if let Some(endpoint) = local(engine, id)? {
            return Ok(endpoint);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

pub(crate) fn gone() -> Error {
    Error::not_found("the result is not found: it was read, has expired or was cancelled long ago")
        .with_hint("run the query again")
}

fn unreadable(error: impl std::fmt::Display) -> Error {
    Error::internal(format!("invalid request of a node: {error}"))
}

/// The body of a request about an endpoint.
pub(crate) fn question(id: EndpointId) -> Value {
    json!({"run": id.run.to_string(), "index": id.index})
}

fn id_of(body: &Value) -> Result<EndpointId> {
    let run = body["run"].as_str().and_then(|run| Uuid::parse_str(run).ok());
    let index = body["index"].as_u64().and_then(|index| u32::try_from(index).ok());
    match (run, index) {
        (Some(run), Some(index)) => Ok(EndpointId { run, index }),
        _ => Err(unreadable("missing endpoint")),
    }
}

fn state_to_json(state: EndpointState) -> Value {
    let EndpointState { rows, bytes, claimed, is_read, rows_ready, idle, waits } = state;
    let idle_ms = u64::try_from(idle.as_millis()).unwrap_or(u64::MAX);
    json!({
        "rows": rows, "bytes": bytes, "claimed": claimed, "is_read": is_read, "rows_ready": rows_ready,
        "idle_ms": idle_ms, "waits": waits,
    })
}

/// The state of an endpoint of another node.
pub(crate) fn state_from_json(value: &Value) -> EndpointState {
    let (number, truth) = (
        |name: &str| value[name].as_u64().unwrap_or_default(),
        |name: &str| value[name].as_bool().unwrap_or_default(),
    );
    EndpointState {
        rows: number("rows"),
        bytes: number("bytes"),
        claimed: truth("claimed"),
        is_read: truth("is_read"),
        rows_ready: truth("rows_ready"),
        idle: Duration::from_millis(number("idle_ms")),
        waits: truth("waits"),
    }
}

fn status(error: &Error) -> Status {
    Status::aborted(to_text(error))
}

fn not_here<T>() -> Answer<T> {
    Err(Status::unimplemented("unsupported request between nodes"))
}

#[tonic::async_trait]
impl FlightService for EndpointService {
    type HandshakeStream = Rows<HandshakeResponse>;
    type ListFlightsStream = Rows<FlightInfo>;
    type DoGetStream = Rows<FlightData>;
    type DoPutStream = Rows<PutResult>;
    type DoExchangeStream = Rows<FlightData>;
    type DoActionStream = Rows<arrow_flight::Result>;
    type ListActionsStream = Rows<ActionType>;

    async fn do_get(&self, request: Request<Ticket>) -> Answer<Self::DoGetStream> {
        let rows = self.rows(&request.into_inner().ticket).map_err(|error| status(&error))?;
        let schema = rows.schema();
        let rows = rows.map_err(|error| FlightError::Tonic(Box::new(status(&error))));
        let messages = FlightDataEncoderBuilder::new()
            .with_schema(schema)
            .with_dictionary_handling(DictionaryHandling::Resend)
            .with_max_flight_data_size(MESSAGE_BYTES)
            .build(rows)
            .map_err(Status::from);
        Ok(Response::new(messages.boxed()))
    }

    async fn do_action(&self, request: Request<Action>) -> Answer<Self::DoActionStream> {
        let Action { r#type, body } = request.into_inner();
        let answer = match serde_json::from_slice(&body).map_err(unreadable) {
            Ok(body) => self.asked(&r#type, &body).await,
            Err(error) => Err(error),
        };
        let body = answer.map_err(|error| status(&error))?.to_string().into_bytes().into();
        Ok(Response::new(futures::stream::iter([Ok(arrow_flight::Result { body })]).boxed()))
    }

    async fn handshake(&self, _: Request<Streaming<HandshakeRequest>>) -> Answer<Self::HandshakeStream> {
        not_here()
    }

    async fn list_flights(&self, _: Request<Criteria>) -> Answer<Self::ListFlightsStream> {
        not_here()
    }

    async fn get_flight_info(&self, _: Request<FlightDescriptor>) -> Answer<FlightInfo> {
        not_here()
    }

    async fn poll_flight_info(&self, _: Request<FlightDescriptor>) -> Answer<PollInfo> {
        not_here()
    }

    async fn get_schema(&self, _: Request<FlightDescriptor>) -> Answer<SchemaResult> {
        not_here()
    }

    async fn do_put(&self, _: Request<Streaming<FlightData>>) -> Answer<Self::DoPutStream> {
        not_here()
    }

    async fn do_exchange(&self, _: Request<Streaming<FlightData>>) -> Answer<Self::DoExchangeStream> {
        not_here()
    }

    async fn list_actions(&self, _: Request<Empty>) -> Answer<Self::ListActionsStream> {
        not_here()
    }
}
