//! `LOAD DATA LOCAL INFILE`: the client sends a file of its own, whose records become rows of a table ("COM_QUERY Response",
//! LOCAL INFILE Request). All of them are one change: one that does not fit leaves the table as it was.

mod parse;
mod records;

pub(crate) use self::parse::Load;

use self::records::{Fields, Records};
use crate::connection::{Connection, cancelled};
use crate::status::{Failure, Result, Trouble};
use crate::wire::Wire;
use arrow::array::{ArrayRef, StringBuilder, new_empty_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use bowshot_api::{BatchStream, Error, ErrorKind, IfExists, IfMissing, Ingest, Statement};
use bytes::BufMut;
use futures::{SinkExt, channel::mpsc};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

/// Rows and bytes of one batch.
const BATCH_ROWS: usize = 16_384;
const BATCH_BYTES: usize = 4 << 20;
/// Batches that wait for the session.
const AHEAD: usize = 1;
/// Begins the packet that asks for a file.
const LOCAL_FILE: u8 = 0xfb;

type Batches = mpsc::Sender<bowshot_api::Result<RecordBatch>>;

impl Connection {
    /// Asks the client for a file and takes its rows in.
    pub(crate) async fn load(&mut self, load: &Load) -> Result<()> {
        if !self.sends_files() {
            return Err(Failure::new(3948, "42000", "loading local data is disabled in the client")
                .with_hint("connect with local_infile, or whatever your client calls it")
                .into());
        }
        let session = Arc::clone(&self.session);
        let told = self.attend(session.describe(&Statement::Sql(load.query()))).await?;
        let fields = told.schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let longest = self.server.limits().max_message_bytes;
        let mut intake = Intake::new(schema, load, longest)?;
        self.wire.put(|out| {
            out.put_u8(LOCAL_FILE);
            out.put_slice(load.file.as_bytes());
        });
        self.wire.flush().await?;
        let taken = self.take_in(load, &mut intake).await;
        if matches!(taken, Err(Trouble::Failed(_))) && !intake.ended {
            // The client hears of it when it has sent the rest.
            while self.wire.data().await?.is_some_and(|rest| !rest.is_empty()) {}
        }
        self.ok(taken?);
        Ok(())
    }

    async fn take_in(&mut self, load: &Load, intake: &mut Intake) -> Result<u64> {
        let session = Arc::clone(&self.session);
        let (batches, arriving) = mpsc::channel(AHEAD);
        // Goes after the session's work is stopped: rows that are cut off must not look like all of them.
        let open = batches.clone();
        let rows = BatchStream::new(Arc::clone(&intake.schema), Box::pin(arriving)).exclusive();
        let ingest = ingest(load);
        let cancel = self.cancel.clone();
        let mut taken = pin!(session.ingest(&ingest, rows));
        {
            let mut fed = pin!(intake.feed(&mut self.wire, batches));
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(cancelled().into()),
                fed = &mut fed => fed?,
                // Before the last row it can only have failed.
                early = &mut taken => return Ok(early?),
            }
        }
        drop(open);
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(cancelled().into()),
            taken = &mut taken => Ok(taken?),
            () = self.wire.gone() => Err(Trouble::Gone),
        }
    }
}

fn ingest(load: &Load) -> Ingest {
    let mut path = load.table.iter().rev().cloned();
    Ingest {
        table: path.next().unwrap_or_default(),
        schema_name: path.next(),
        catalog: path.next(),
        temporary: false,
        if_missing: IfMissing::Fail,
        if_exists: IfExists::Append,
        transaction: None,
        options: BTreeMap::new(),
    }
}

/// What has come and is no batch yet.
struct Intake {
    schema: SchemaRef,
    records: Records,
    columns: Vec<StringBuilder>,
    skipped: u64,
    /// Records so far.
    count: u64,
    rows: usize,
    bytes: usize,
    /// The client has sent all.
    ended: bool,
}

impl Intake {
    fn new(schema: SchemaRef, load: &Load, longest: usize) -> Result<Self, Failure> {
        if let Some(field) = schema
            .fields()
            .iter()
            .find(|field| cast(&new_empty_array(&DataType::Utf8), field.data_type()).is_err())
        {
            return Err(Failure::unsupported(format!(
                "LOAD DATA cannot make column `{}` of texts",
                field.name()
            ))
            .with_hint("load into a table with a column of texts, and convert with INSERT … SELECT"));
        }
        let records = Records::new(load.format.clone(), longest);
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

    /// Takes the file off the connection, to its end. Should anything go wrong, the session is told, so that it keeps nothing.
    async fn feed(&mut self, wire: &mut Wire, mut batches: Batches) -> Result<()> {
        let fed = self.receive(wire, &mut batches).await;
        if fed.is_err() {
            let error = Error::new(ErrorKind::Cancelled, "the file did not come to its end");
            _ = batches.send(Err(error)).await;
        }
        fed
    }

    async fn receive(&mut self, wire: &mut Wire, batches: &mut Batches) -> Result<()> {
        while !self.ended {
            let packet = wire.data().await?.ok_or(Trouble::Gone)?;
            self.ended = packet.is_empty();
            self.records.add(packet.as_bytes())?;
            while let Some(fields) = self.records.next(self.ended) {
                self.push(fields)?;
                if self.rows >= BATCH_ROWS || self.bytes >= BATCH_BYTES {
                    // A session that takes no more has failed, and says so itself.
                    _ = batches.send(Ok(self.batch()?)).await;
                }
            }
        }
        if self.rows > 0 {
            _ = batches.send(Ok(self.batch()?)).await;
        }
        Ok(())
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
