//! Endpoints of results, on this node and on others: where they are, what they do, and their rows.

use crate::channels::Channels;
use crate::endpoint_service::{FAIL, OPENED, READY, STATE, gone, local, opened, question, state_from_json};
use crate::endpoint_sink::described;
use crate::membership::{Cluster, Member, State};
use crate::node_url::node_url;
use crate::signed_tickets::SignedTicket;
use arrow_flight::decode::{DecodedPayload, FlightDataDecoder};
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::{Action, Ticket};
use async_trait::async_trait;
use bowshot_api::{BatchStream, Error, ErrorKind, Location, Principal, Result};
use bowshot_engine::WeakEngine;
use bowshot_engine::distribution::{from_text, to_text};
use bowshot_engine::endpoints::{EndpointId, EndpointState, Handout, LocalEndpoint, ResultEndpoints};
use datafusion_distributed::grpc::BoxCloneSyncChannel;
use futures::future::{join_all, select_all, try_join_all};
use futures::{StreamExt, TryStreamExt};
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::timeout;
use tonic::Status;
use uuid::Uuid;

/// How long a node may take to report the state of an endpoint.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Largest accepted message of rows: one row may be large.
const LARGEST_MESSAGE: usize = 2 << 30;

/// Access to endpoints of any node.
#[derive(Clone)]
pub(crate) struct Reach {
    pub(crate) cluster: Cluster,
    pub(crate) channels: Arc<Channels>,
    pub(crate) engine: WeakEngine,
}

bowshot_api::debug_fields!(Reach {});

impl Reach {
    async fn client(&self, address: &str) -> Result<FlightServiceClient<BoxCloneSyncChannel>> {
        let lost = |error: datafusion::error::DataFusionError| lost().with_source(error);
        let channel = self.channels.channel(&node_url(address).map_err(lost)?).await.map_err(lost)?;
        Ok(FlightServiceClient::new(channel).max_decoding_message_size(LARGEST_MESSAGE))
    }

    /// Sends a request about an endpoint to another node.
    async fn ask(&self, address: &str, what: &str, body: &Value) -> Result<Value> {
        let body = body.to_string().into_bytes().into();
        let mut client = self.client(address).await?;
        let mut answers =
            client.do_action(Action { r#type: what.to_owned(), body }).await.map_err(told)?.into_inner();
        let answer = answers.message().await.map_err(told)?.ok_or_else(lost)?;
        serde_json::from_slice(&answer.body).map_err(|error| lost().with_source(error))
    }

    /// The rows that a ticket is for.
    ///
    /// # Errors
    /// The error of the endpoint; `NotFound` when it was read, `Unavailable` when its node is lost.
    pub(crate) async fn rows(&self, ticket: SignedTicket, principal: &Principal) -> Result<BatchStream> {
        if ticket.node == self.cluster.myself().id {
            return local(&self.engine, ticket.id)?.ok_or_else(gone)?.attach(principal);
        }
        let members = self.cluster.members();
        let node = members.iter().find(|member| member.id == ticket.node);
        let node = node.filter(|member| member.state != State::Dead).ok_or_else(lost)?;
        let mut ticket = question(ticket.id);
        if let Some(ticket) = ticket.as_object_mut() {
            ticket.insert("principal".to_owned(), described(principal));
        }
        let ticket = Ticket { ticket: ticket.to_string().into_bytes().into() };
        let mut client = self.client(&node.address).await?;
        let messages = client.do_get(ticket).await.map_err(told)?.into_inner();
        let mut payloads = FlightDataDecoder::new(messages.map_err(FlightError::from));
        let schema = loop {
            match payloads.next().await {
                Some(Ok(decoded)) => {
                    if let DecodedPayload::Schema(schema) = decoded.payload {
                        break schema;
                    }
                }
                Some(Err(error)) => return Err(broken(error)),
                None => return Err(lost()),
            }
        };
        let rows = payloads.map_err(broken).try_filter_map(|decoded| async move {
            Ok(match decoded.payload {
                DecodedPayload::RecordBatch(batch) => Some(batch),
                DecodedPayload::Schema(_) | DecodedPayload::None => None,
            })
        });
        Ok(BatchStream::new(schema, rows.boxed()))
    }
}

/// An error of another node, or of the connection to it.
fn told(status: Status) -> Error {
    match status.code() {
        // The status of a failed endpoint.
        tonic::Code::Aborted => from_text(status.message()),
        _ => lost().with_source(status),
    }
}

fn broken(error: FlightError) -> Error {
    match error {
        FlightError::Tonic(status) => told(*status),
        error => lost().with_source(error),
    }
}

fn lost() -> Error {
    Error::new(ErrorKind::Unavailable, "a node of the cluster with rows of this statement was lost")
        .with_hint("run the statement again; it runs on the other nodes then")
}

/// The endpoints of one run of a plan of this node.
#[derive(Debug)]
pub(crate) struct PlacedEndpoints {
    reach: Reach,
    run: Uuid,
    handout: Handout,
    /// The nodes of the endpoints.
    nodes: Vec<Member>,
    myself: Uuid,
}

impl PlacedEndpoints {
    /// As many as `nodes`, in their order.
    pub(crate) fn new(reach: Reach, run: Uuid, handout: Handout, nodes: Vec<Member>) -> Self {
        let myself = reach.cluster.myself().id;
        Self { reach, run, handout, nodes, myself }
    }

    fn each(&self) -> impl Iterator<Item = (EndpointId, &Member)> {
        let run = self.run;
        (0..).zip(&self.nodes).map(move |(index, node)| (EndpointId { run, index }, node))
    }

    fn local(&self, id: EndpointId) -> Result<Option<Arc<dyn LocalEndpoint>>> {
        local(&self.reach.engine, id)
    }

    async fn opened(&self, id: EndpointId, node: &Member) -> Result<()> {
        match node.id == self.myself {
            true => opened(&self.reach.engine, id).await.map(drop),
            false => self.reach.ask(&node.address, OPENED, &question(id)).await.map(drop),
        }
    }

    async fn first(&self, id: EndpointId, node: &Member) -> Result<()> {
        match node.id == self.myself {
            true => self.local(id)?.ok_or_else(gone)?.ready().await,
            false => self.reach.ask(&node.address, READY, &question(id)).await.map(drop),
        }
    }

    async fn state(&self, id: EndpointId, node: &Member) -> Result<EndpointState> {
        match node.id == self.myself {
            true => Ok(self.local(id)?.ok_or_else(gone)?.state()),
            false => {
                let answer = self.reach.ask(&node.address, STATE, &question(id)).await?;
                Ok(state_from_json(&answer))
            }
        }
    }

    async fn end(&self, id: EndpointId, node: &Member, error: &Error) {
        if node.id == self.myself {
            if let Ok(Some(endpoint)) = self.local(id) {
                endpoint.fail(error.duplicate());
            }
            return;
        }
        let mut body = question(id);
        if let Some(body) = body.as_object_mut() {
            body.insert("error".to_owned(), Value::String(to_text(error)));
        }
        // A node that does not answer ends the endpoint itself.
        let _ = timeout(ANSWER_TIMEOUT, self.reach.ask(&node.address, FAIL, &body)).await;
    }
}

#[async_trait]
impl ResultEndpoints for PlacedEndpoints {
    fn locations(&self) -> Vec<Location> {
        let (cluster, now) = (&self.reach.cluster, SystemTime::now());
        let whose = (self.handout.query, &self.handout.principal);
        self.each()
            .map(|(id, node)| Location {
                uri: (node.id != self.myself).then(|| node.public.clone()),
                voucher: SignedTicket::new(id, node.id, now).signed(cluster, whose).into(),
            })
            .collect()
    }

    async fn ready(&self) -> Result<()> {
        try_join_all(self.each().map(|(id, node)| self.opened(id, node))).await?;
        select_all(self.each().map(|(id, node)| Box::pin(self.first(id, node)))).await.0
    }

    async fn states(&self) -> Result<Vec<EndpointState>> {
        try_join_all(self.each().map(|(id, node)| self.state(id, node))).await
    }

    async fn fail(&self, error: &Error) {
        join_all(self.each().map(|(id, node)| self.end(id, node, error))).await;
    }
}
