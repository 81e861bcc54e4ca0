//! The side under test: one Flight connection, so one session, per file. GetFlightInfo with a `CommandStatementQuery`,
//! then DoGet of every endpoint.

use super::driven;
use super::pair::{Failure, Observed};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::{CommandStatementQuery, ProstMessageExt};
use arrow_flight::{FlightDescriptor, FlightInfo};
use datafusion_sqllogictest::{DFOutput, convert_batches, convert_schema_to_types};
use futures::TryStreamExt;
use prost::Message;
use sqllogictest::DBOutput;
use std::sync::Arc;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

/// Largest message that the client takes.
const MESSAGE_BYTES: usize = 64 << 20;

/// One connection to the server.
pub struct Wire {
    client: FlightServiceClient<Channel>,
    observed: Observed,
}

impl Wire {
    /// Connects to `http://HOST:PORT`; outcomes go to `observed`.
    pub async fn connect(address: String, observed: Observed) -> Result<Self, Failure> {
        let endpoint = Endpoint::from_shared(address).map_err(|error| Failure(error.to_string()))?;
        let channel = endpoint.connect().await.map_err(|error| Failure(error.to_string()))?;
        let client = FlightServiceClient::new(channel).max_decoding_message_size(MESSAGE_BYTES);
        Ok(Self { client, observed })
    }

    async fn query(&mut self, sql: &str) -> Result<DFOutput, Failure> {
        let command = CommandStatementQuery { query: sql.to_owned(), transaction_id: None };
        let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
        let info = self.client.get_flight_info(descriptor).await.map_err(failed)?.into_inner();
        let announced: SchemaRef =
            Arc::new(info.clone().try_decode_schema().map_err(|error| Failure(error.to_string()))?);
        let batches = self.read(info, &announced).await?;
        let types = convert_schema_to_types(announced.fields());
        let rows = convert_batches(&announced, batches, false)?;
        if rows.is_empty() && types.is_empty() {
            return Ok(DBOutput::StatementComplete(0));
        }
        Ok(DBOutput::Rows { types, rows })
    }

    async fn read(&mut self, info: FlightInfo, announced: &SchemaRef) -> Result<Vec<RecordBatch>, Failure> {
        let mut batches = Vec::new();
        for endpoint in info.endpoint {
            let ticket = endpoint.ticket.ok_or_else(|| Failure("an endpoint has no ticket".to_owned()))?;
            let messages = self.client.do_get(ticket).await.map_err(failed)?.into_inner();
            let mut stream =
                FlightRecordBatchStream::new_from_flight_data(messages.map_err(FlightError::from));
            while let Some(batch) = stream.try_next().await.map_err(broken)? {
                batches.push(batch);
            }
            let sent = stream.schema().ok_or_else(|| Failure("a stream came without schema".to_owned()))?;
            if sent != announced {
                return Err(Failure(format!("announced schema {announced:?} but sent {sent:?}")));
            }
        }
        Ok(batches)
    }
}

fn failed(status: Status) -> Failure {
    Failure(format!("{:?}: {}", status.code(), status.message()))
}

fn broken(error: FlightError) -> Failure {
    match error {
        FlightError::Tonic(status) => failed(*status),
        other => Failure(other.to_string()),
    }
}

driven!(Wire);
