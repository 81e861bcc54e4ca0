//! Converts Flight data to record batches, and metadata rows to values.

use super::{Client, Error, Result, Table};
use arrow::array::{Array, BinaryArray, StringArray};
use arrow::record_batch::RecordBatch;
use arrow_flight::{FlightData, Ticket};
use bowshot_ipc::{Decoded, Decoder};
use futures::Stream;
use futures::stream;
use tonic::Streaming;

/// Opens one endpoint and sends the request at once, so that several run concurrently.
pub(super) async fn open(
    client: Client,
    ticket: Option<Ticket>,
) -> Result<impl Stream<Item = Result<RecordBatch>> + Send + 'static + Unpin> {
    let ticket = ticket.ok_or(Error::Protocol("an endpoint has no ticket"))?;
    let response = client.flight.clone().do_get(client.request(ticket)).await?;
    let reader = Reader { messages: client.accept(response), decoder: Decoder::new() };
    Ok(Box::pin(stream::try_unfold(reader, |mut reader| async move {
        Ok(reader.next().await?.map(|batch| (batch, reader)))
    })))
}

struct Reader {
    messages: Streaming<FlightData>,
    decoder: Decoder,
}

impl Reader {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        while let Some(message) = self.messages.message().await? {
            let decoded =
                self.decoder.decode(&message.data_header, message.data_body).map_err(Error::Decode)?;
            if let Decoded::Batch(batch) = decoded {
                return Ok(Some(batch));
            }
        }
        // Without its status a stream broke off, and what has come is a part of the result.
        match self.messages.trailers().await? {
            Some(_) => Ok(None),
            None => Err(Error::Protocol("a stream broke off")),
        }
    }
}

/// Rows of `CommandGetTables`.
pub(super) fn tables(batch: &RecordBatch, tables: &mut Vec<Table>) -> Result<()> {
    let catalogs = texts(batch, "catalog_name")?;
    let schemas = texts(batch, "db_schema_name")?;
    let names = texts(batch, "table_name")?;
    let kinds = texts(batch, "table_type")?;
    let columns = batch
        .column_by_name("table_schema")
        .map(|column| column.as_any().downcast_ref::<BinaryArray>().ok_or(WRONG_COLUMNS))
        .transpose()?;
    for row in 0..batch.num_rows() {
        let columns = columns.map(|columns| bowshot_ipc::read_schema_bytes(columns.value(row)));
        tables.push(Table {
            catalog: text(catalogs, row),
            schema_name: text(schemas, row),
            name: text(names, row),
            kind: text(kinds, row),
            columns: columns.transpose().map_err(Error::Decode)?,
        });
    }
    Ok(())
}

const WRONG_COLUMNS: Error = Error::Protocol("the list of tables has other columns than Flight SQL says");

fn texts<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a StringArray> {
    batch.column_by_name(name).and_then(|column| column.as_any().downcast_ref()).ok_or(WRONG_COLUMNS)
}

fn text(array: &StringArray, row: usize) -> String {
    if array.is_null(row) { String::new() } else { array.value(row).to_owned() }
}
