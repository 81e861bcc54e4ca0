//! The arrow-flight crate's encoder behind tonic's codec, for comparison, serving Arrow IPC files from memory. `stock_flight NAME=PATH…`; the
//! ticket is the name.

#![expect(clippy::print_stdout, reason = "the address is the program's output")]

use anyhow::{Context, Result};
use arrow::datatypes::SchemaRef;
use arrow::ipc::reader::FileReader;
use arrow::record_batch::RecordBatch;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::flight_service_server::{FlightService, FlightServiceServer};
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest,
    HandshakeResponse, PollInfo, PutResult, Result as ActionResult, SchemaResult, Ticket,
};
use futures::StreamExt;
use futures::stream::BoxStream;
use std::collections::HashMap;
use std::fs::File;
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming, async_trait};

struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

struct Stock {
    tables: HashMap<String, Table>,
}

type Answer<T> = Result<Response<T>, Status>;
type Items<T> = BoxStream<'static, Result<T, Status>>;

fn refused<T>() -> Answer<T> {
    Err(Status::unimplemented("this peer only answers DoGet"))
}

#[async_trait]
impl FlightService for Stock {
    type HandshakeStream = Items<HandshakeResponse>;
    type ListFlightsStream = Items<FlightInfo>;
    type DoGetStream = Items<FlightData>;
    type DoPutStream = Items<PutResult>;
    type DoActionStream = Items<ActionResult>;
    type ListActionsStream = Items<ActionType>;
    type DoExchangeStream = Items<FlightData>;

    async fn do_get(&self, request: Request<Ticket>) -> Answer<Self::DoGetStream> {
        let name = String::from_utf8_lossy(&request.get_ref().ticket).into_owned();
        let table = self.tables.get(&name).ok_or_else(|| Status::not_found(format!("no table `{name}`")))?;
        let batches = futures::stream::iter(table.batches.clone().into_iter().map(Ok));
        let encoded =
            FlightDataEncoderBuilder::new().with_schema(SchemaRef::clone(&table.schema)).build(batches);
        Ok(Response::new(Box::pin(encoded.map(|data| data.map_err(Status::from)))))
    }

    async fn handshake(&self, _: Request<Streaming<HandshakeRequest>>) -> Answer<Self::HandshakeStream> {
        refused()
    }

    async fn list_flights(&self, _: Request<Criteria>) -> Answer<Self::ListFlightsStream> {
        refused()
    }

    async fn get_flight_info(&self, _: Request<FlightDescriptor>) -> Answer<FlightInfo> {
        refused()
    }

    async fn poll_flight_info(&self, _: Request<FlightDescriptor>) -> Answer<PollInfo> {
        refused()
    }

    async fn get_schema(&self, _: Request<FlightDescriptor>) -> Answer<SchemaResult> {
        refused()
    }

    async fn do_put(&self, _: Request<Streaming<FlightData>>) -> Answer<Self::DoPutStream> {
        refused()
    }

    async fn do_exchange(&self, _: Request<Streaming<FlightData>>) -> Answer<Self::DoExchangeStream> {
        refused()
    }

    async fn do_action(&self, _: Request<Action>) -> Answer<Self::DoActionStream> {
        refused()
    }

    async fn list_actions(&self, _: Request<Empty>) -> Answer<Self::ListActionsStream> {
        refused()
    }
}

fn load(argument: &str) -> Result<(String, Table)> {
    let (name, path) = argument.split_once('=').context("arguments are NAME=PATH")?;
    let file = File::open(path).with_context(|| format!("cannot open `{path}`"))?;
    let reader = FileReader::try_new_buffered(file, None)?;
    let schema = reader.schema();
    let batches = reader.collect::<Result<Vec<_>, _>>()?;
    Ok((name.to_owned(), Table { schema, batches }))
}

#[tokio::main]
async fn main() -> Result<()> {
    let tables =
        std::env::args().skip(1).map(|argument| load(&argument)).collect::<Result<HashMap<_, _>>>()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("grpc+tcp://{}", listener.local_addr()?);
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let service = FlightServiceServer::new(Stock { tables });
    Ok(Server::builder().add_service(service).serve_with_incoming(incoming).await?)
}
