//! The generated service trait: each method parses its request, calls the responsible file and wraps the answer.
//! `call_layer.rs` answers DoGet and DoExchange before, and passes the messages of DoPut separately (`messages.rs`).

use crate::caller::Caller;
use crate::connection::Connection;
use crate::messages::Unread;
use crate::status::{refuse, status};
use crate::{auth, poll, put, statement};
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest,
    PollInfo, PutResult, SchemaResult, Ticket,
};
use bowshot_api::Error;
use futures::StreamExt;
use futures::stream::BoxStream;
use std::sync::Arc;
use tonic::{Request, Response, Status, Streaming};

type Answer<T> = Result<Response<T>, Status>;
type Rows<T> = BoxStream<'static, Result<T, Status>>;

/// The service; caller and connection are request extensions.
#[derive(Debug)]
pub(crate) struct FlightSql;

#[tonic::async_trait]
impl FlightService for FlightSql {
    type HandshakeStream = auth::HandshakeStream;
    type ListFlightsStream = Rows<FlightInfo>;
    type DoGetStream = Rows<FlightData>;
    type DoPutStream = Rows<PutResult>;
    type DoExchangeStream = Rows<FlightData>;
    type DoActionStream = Rows<arrow_flight::Result>;
    type ListActionsStream = Rows<ActionType>;

    async fn handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Answer<Self::HandshakeStream> {
        let (metadata, mut extensions, messages) = request.into_parts();
        let connection: Arc<Connection> = extensions.remove().ok_or_else(passed_by)?;
        auth::handshake(&connection, &metadata.into_headers(), messages).await
    }

    async fn list_flights(&self, request: Request<Criteria>) -> Answer<Self::ListFlightsStream> {
        let (caller, criteria) = split(request)?;
        let flights = statement::list(&caller, &criteria.expression).await.map_err(refuse)?;
        Ok(rows(flights))
    }

    async fn get_flight_info(&self, request: Request<FlightDescriptor>) -> Answer<FlightInfo> {
        let (caller, descriptor) = split(request)?;
        let info = statement::flight_info(&caller, descriptor.clone()).await.map_err(refuse)?;
        Ok(Response::new(caller.profile().fit(info, &descriptor)))
    }

    async fn poll_flight_info(&self, request: Request<FlightDescriptor>) -> Answer<PollInfo> {
        let (caller, descriptor) = split(request)?;
        let info = poll::poll(&caller, descriptor).await.map_err(|(error, query)| status(&error, query))?;
        Ok(Response::new(info))
    }

    async fn get_schema(&self, request: Request<FlightDescriptor>) -> Answer<SchemaResult> {
        let (caller, descriptor) = split(request)?;
        let schema = statement::schema(&caller, &descriptor).await.map_err(refuse)?;
        Ok(Response::new(SchemaResult { schema: bowshot_ipc::schema_bytes(&schema) }))
    }

    async fn do_get(&self, _request: Request<Ticket>) -> Answer<Self::DoGetStream> {
        Err(passed_by())
    }

    async fn do_put(&self, request: Request<Streaming<FlightData>>) -> Answer<Self::DoPutStream> {
        let unread = request.extensions().get::<Unread>().and_then(Unread::take).ok_or_else(passed_by)?;
        let (caller, _) = split(request)?;
        let app_metadata = put::put(&caller, unread).await.map_err(refuse)?;
        Ok(rows(vec![PutResult { app_metadata }]))
    }

    async fn do_exchange(&self, _request: Request<Streaming<FlightData>>) -> Answer<Self::DoExchangeStream> {
        Err(passed_by())
    }

    async fn do_action(&self, request: Request<Action>) -> Answer<Self::DoActionStream> {
        let (caller, action) = split(request)?;
        let body = caller.profile().run(&caller, &action).await.map_err(refuse)?;
        Ok(rows(body.into_iter().map(|body| arrow_flight::Result { body }).collect()))
    }

    async fn list_actions(&self, request: Request<Empty>) -> Answer<Self::ListActionsStream> {
        let (caller, _) = split(request)?;
        Ok(rows(caller.profile().actions()))
    }
}

fn split<T>(request: Request<T>) -> Result<(Arc<Caller>, T), Status> {
    let (_, mut extensions, message) = request.into_parts();
    Ok((extensions.remove().ok_or_else(passed_by)?, message))
}

/// A request that bypassed the call layer.
fn passed_by() -> Status {
    refuse(Error::internal("a request bypassed the call layer"))
}

fn rows<T: Send + 'static>(rows: Vec<T>) -> Response<Rows<T>> {
    Response::new(futures::stream::iter(rows.into_iter().map(Ok)).boxed())
}
