//! `LOAD DATA LOCAL INFILE`: the client sends a file, whose records become rows of a table, all or none ("COM_QUERY
//! Response", LOCAL INFILE Request).

mod records;

use self::records::{Fields, Format, Records};
use crate::connection::Connection;
use crate::packet_framing::Wire;
use crate::status::{ConnectionError, Failure, Result};
use arrow::array::{ArrayRef, StringBuilder, new_empty_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::record_batch::RecordBatch;
use bowshot_api::Statement;
use bowshot_rowwire::ingest::{BatchSender, RowReader, append, is_full, nullable};
use bowshot_sql::mysql::LoadStatement;
use bytes::BufMut;
use futures::SinkExt;
use std::sync::Arc;

/// The first byte of a request for a file.
const LOCAL_FILE: u8 = 0xfb;

impl Connection {
    /// Requests a file of the client and stores its rows.
    pub(crate) async fn load(&mut self, load: &LoadStatement) -> Result<()> {
        if !self.sends_files() {
            return Err(Failure::new(3948, "42000", "loading local data is disabled in the client")
                .with_hint("connect with local_infile, or whatever your client calls it")
                .into());
        }
        let session = Arc::clone(&self.session);
        let description = self.wait_for(session.describe(&Statement::Sql(load.query()))).await?;
        let schema = nullable(&description.schema);
        let longest = self.server.limits().max_message_bytes;
        let mut rows = RowParser::new(Arc::clone(&schema), load, longest)?;
        self.wire.put(|out| {
            out.put_u8(LOCAL_FILE);
            out.put_slice(load.file.as_bytes());
        });
        self.wire.flush().await?;
        let target = (session.as_ref(), load.table.as_slice());
        let stored = append(target, (&mut self.wire, &mut rows), schema, &self.cancel).await;
        if matches!(stored, Err(ConnectionError::Statement(_))) && !rows.ended {
            // The client gets the error after it has sent the rest.
            while self.wire.data().await?.is_some_and(|rest| !rest.is_empty()) {}
        }
        self.ok(stored?);
        Ok(())
    }
}

/// Parses rows and collects them into a batch.
struct RowParser {
    schema: SchemaRef,
    records: Records,
    columns: Vec<StringBuilder>,
    skipped: u64,
    /// Records so far.
    count: u64,
    rows: usize,
    bytes: usize,
    /// Whether the client has sent the whole file.
    ended: bool,
}

impl RowReader for RowParser {
    type Client = Wire;
    type Error = Failure;

    async fn read(&mut self, wire: &mut Wire, batches: &mut BatchSender) -> Result<()> {
        while !self.ended {
            let packet = wire.data().await?.ok_or(ConnectionError::Closed)?;
            self.ended = packet.is_empty();
            self.records.add(packet.as_bytes())?;
            while let Some(fields) = self.records.next(self.ended) {
                self.push(fields)?;
                if is_full(self.rows, self.bytes) {
                    // If the session takes no more, it has failed and reports why.
                    _ = batches.send(Ok(self.batch()?)).await;
                }
            }
        }
        if self.rows > 0 {
            _ = batches.send(Ok(self.batch()?)).await;
        }
        Ok(())
    }
}

impl RowParser {
    fn new(schema: SchemaRef, load: &LoadStatement, longest: usize) -> Result<Self, Failure> {
        let format = Format::new(load)?;
        if let Some(field) = schema
            .fields()
            .iter()
            .find(|field| cast(&new_empty_array(&DataType::Utf8), field.data_type()).is_err())
        {
            return Err(Failure::unsupported(format!(
                "LOAD DATA cannot convert text to the type of column `{}`",
                field.name()
            ))
            .with_hint("load into a table with a column of texts, and convert with INSERT … SELECT"));
        }
        let records = Records::new(format, longest);
        let columns = schema.fields().iter().map(|_| StringBuilder::new()).collect();
        Ok(Self {
            schema,
            records,
            columns,
            skipped: load.skipped,
            count: 0,
            rows: 0,
            bytes: 0,
            ended: false,
        })
    }

    fn push(&mut self, fields: Fields) -> Result<(), Failure> {
        self.count += 1;
        let row = self.count;
        if row <= self.skipped {
            return Ok(());
        }
        if fields.len() < self.columns.len() {
            return Err(Failure::new(
                1261,
                "01000",
                format!("row {row} doesn't contain data for all columns"),
            ));
        }
        if fields.len() > self.columns.len() {
            let message =
                format!("row {row} was truncated; it contained more data than there were input columns");
            return Err(Failure::new(1262, "01000", message));
        }
        for (column, field) in self.columns.iter_mut().zip(fields) {
            self.bytes += field.as_ref().map_or(0, Vec::len) + 16;
            let text = field.map(String::from_utf8).transpose();
            let text = text.map_err(|_| Failure::new(1300, "HY000", format!("row {row} is not UTF-8")))?;
            column.append_option(text);
        }
        self.rows += 1;
        Ok(())
    }

    /// The rows so far as a batch.
    fn batch(&mut self) -> Result<RecordBatch, Failure> {
        let last = self.count;
        let first = last.saturating_sub(self.rows as u64) + 1;
        (self.rows, self.bytes) = (0, 0);
        let mut arrays = Vec::with_capacity(self.columns.len());
        for (column, field) in self.columns.iter_mut().zip(self.schema.fields()) {
            let texts: ArrayRef = Arc::new(column.finish());
            arrays.push(cast(&texts, field.data_type()).map_err(|error| {
                Failure::new(
                    1366,
                    "HY000",
                    format!("column `{}`, rows {first} to {last}: {error}", field.name()),
                )
            })?);
        }
        RecordBatch::try_new(Arc::clone(&self.schema), arrays).map_err(|error| {
            Failure::new(1105, "HY000", format!("the rows of the file make no batch: {error}"))
        })
    }
}

fn cast(texts: &ArrayRef, to: &DataType) -> std::result::Result<ArrayRef, arrow::error::ArrowError> {
    cast_with_options(texts, to, &CastOptions { safe: false, ..CastOptions::default() })
}
