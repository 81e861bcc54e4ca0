//! COPY … FROM STDIN: the rows of the client become batches of the types of the table's columns, and the session takes them in
//! while more of them come.

use super::lines::{Fields, Lines, Record};
use super::parse::Table;
use super::tuples::Tuples;
use super::{Form, Options};
use crate::backend;
use crate::connection::{Connection, cancelled};
use crate::message::Message;
use crate::read::Column;
use crate::rows::PgType;
use crate::status::{Failure, Result, Trouble};
use crate::wire::Wire;
use arrow::array::ArrayRef;
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use bowshot_api::{BatchStream, Error, ErrorKind, IfExists, IfMissing, Ingest, Statement};
use futures::{SinkExt, channel::mpsc};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

/// Rows and bytes of one batch.
const BATCH_ROWS: usize = 16_384;
const BATCH_BYTES: usize = 4 << 20;
/// Batches that wait for the session.
const AHEAD: usize = 1;

type Batches = mpsc::Sender<bowshot_api::Result<RecordBatch>>;

impl Connection {
    pub(super) async fn copy_in(&mut self, table: &Table, options: &Options) -> Result<()> {
        let session = Arc::clone(&self.session);
        let told = self.attend(session.describe(&Statement::Sql(table.query()))).await?;
        let fields = told.schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
        backend::copy_response(self.wire.out(), b'G', options.format(), schema.fields().len());
        self.wire.flush().await?;
        let (batches, arriving) = mpsc::channel(AHEAD);
        // Goes after the session's work is stopped: rows that are cut off must not look like all of them.
        let open = batches.clone();
        let longest = self.server.limits().max_message_bytes;
        let rows = BatchStream::new(Arc::clone(&schema), Box::pin(arriving)).exclusive();
        let mut intake = Intake::new(schema, options.clone(), longest);
        let ingest = ingest(table);
        let cancel = self.cancel.clone();
        let mut taken = pin!(session.ingest(&ingest, rows));
        let mut early = None;
        let fed = {
            let mut fed = pin!(intake.feed(&mut self.wire, batches));
            tokio::select! {
                biased;
                () = cancel.cancelled() => Err(cancelled().into()),
                fed = &mut fed => fed,
                taken = &mut taken => {
                    early = Some(taken);
                    Ok(())
                }
            }
        };
        let count = match (fed, early) {
            (Err(trouble), _) => return Err(trouble),
            // Before the last row it can only have failed; the rest of the rows is left out as it comes.
            (Ok(()), Some(early)) => early?,
            (Ok(()), None) => {
                drop(open);
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => return Err(cancelled().into()),
                    taken = &mut taken => taken?,
                    () = self.wire.gone() => return Err(Trouble::Gone),
                }
            }
        };
        backend::complete(self.wire.out(), &format!("COPY {count}"));
        Ok(())
    }
}

fn ingest(table: &Table) -> Ingest {
    let mut path = table.path.iter().rev().cloned();
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
pub(super) struct Intake {
    schema: SchemaRef,
    options: Options,
    source: Source,
    columns: Vec<Column>,
    rows: usize,
    bytes: usize,
    /// Records so far, the head too.
    records: u64,
    ended: bool,
}

enum Source {
    Lines(Lines),
    Tuples(Tuples),
}

impl Source {
    fn add(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Lines(lines) => lines.add(bytes),
            Self::Tuples(tuples) => tuples.add(bytes),
        }
    }

    fn next(&mut self, options: &Options, last: bool) -> Result<Record, Failure> {
        match self {
            Self::Lines(lines) => lines.next(options, last),
            Self::Tuples(tuples) => tuples.next(last),
        }
    }
}

fn columns(schema: &Schema) -> Vec<Column> {
    let fields = schema.fields().iter();
    fields.map(|field| Column::new(PgType::of(field), Some(field.data_type().clone()))).collect()
}

impl Intake {
    pub(super) fn new(schema: SchemaRef, options: Options, longest: usize) -> Self {
        let source = match options.form {
            Form::Binary => Source::Tuples(Tuples::new(longest)),
            Form::Text | Form::Csv => Source::Lines(Lines::new(longest)),
        };
        let columns = columns(&schema);
        Self { schema, options, source, columns, rows: 0, bytes: 0, records: 0, ended: false }
    }

    /// Takes rows off the connection until the client says that these were all. Should anything go wrong, the session is
    /// told, so that it keeps none of them.
    async fn feed(&mut self, wire: &mut Wire, mut batches: Batches) -> Result<()> {
        let fed = self.receive(wire, &mut batches).await;
        if fed.is_err() {
            let error = Error::new(ErrorKind::Cancelled, "the rows of COPY did not come to their end");
            _ = batches.send(Err(error)).await;
        }
        fed
    }

    async fn receive(&mut self, wire: &mut Wire, batches: &mut Batches) -> Result<()> {
        loop {
            let last = match wire.message().await? {
                Some(Message::CopyData(bytes)) => {
                    self.add(&bytes)?;
                    false
                }
                Some(Message::CopyDone) => true,
                Some(Message::CopyFail(why)) => {
                    return Err(Failure::new("57014", format!("COPY from stdin failed: {why}")).into());
                }
                Some(Message::Flush | Message::Sync) => continue,
                Some(_) => return Err(Failure::protocol("unexpected message during COPY from stdin").fatal()),
                None => return Err(Trouble::Gone),
            };
            while self.take(last)? {
                if self.rows >= BATCH_ROWS || self.bytes >= BATCH_BYTES {
                    // A session that takes no more has failed, and says so itself.
                    _ = batches.send(Ok(self.batch()?)).await;
                }
            }
            if last {
                if self.rows > 0 {
                    _ = batches.send(Ok(self.batch()?)).await;
                }
                return Ok(());
            }
        }
    }

    /// Takes bytes that have come.
    pub(super) fn add(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.source.add(bytes)
    }

    /// Takes one record, if one is whole.
    pub(super) fn take(&mut self, last: bool) -> Result<bool, Failure> {
        let record = self.source.next(&self.options, last).map_err(|failure| self.at(failure))?;
        match record {
            Record::Cut => return Ok(false),
            Record::End => self.ended = true,
            // What follows the end does not count, as in PostgreSQL.
            Record::Fields(_) if self.ended => {}
            Record::Fields(fields) => {
                self.records += 1;
                if !(self.records == 1 && self.options.header) {
                    self.push(&fields).map_err(|failure| self.at(failure))?;
                }
            }
        }
        Ok(true)
    }

    fn push(&mut self, fields: &Fields) -> Result<(), Failure> {
        // A line without anything is a row without columns.
        let is_nothing = self.columns.is_empty() && fields.len() <= 1;
        if fields.len() != self.columns.len() && !is_nothing {
            let (found, wanted) = (fields.len(), self.columns.len());
            let what = if found < wanted {
                "missing data for a column"
            } else {
                "extra data after last expected column"
            };
            return Err(Failure::new("22P04", what));
        }
        for (column, field) in self.columns.iter_mut().zip(fields) {
            self.bytes += field.as_ref().map_or(0, Vec::len) + 16;
            column.push(field.as_deref(), self.options.format())?;
        }
        self.rows += 1;
        Ok(())
    }

    /// Says where something went wrong.
    fn at(&self, failure: Failure) -> Failure {
        Failure { message: format!("{} (COPY, line {})", failure.message, self.records), ..failure }
    }

    /// The rows so far as a batch.
    pub(super) fn batch(&mut self) -> Result<RecordBatch, Failure> {
        let filled = std::mem::replace(&mut self.columns, columns(&self.schema));
        (self.rows, self.bytes) = (0, 0);
        let arrays: Vec<ArrayRef> = filled.into_iter().map(Column::finish).collect::<Result<_, _>>()?;
        RecordBatch::try_new(Arc::clone(&self.schema), arrays)
            .map_err(|error| Failure::new("XX000", format!("the rows of COPY make no batch: {error}")))
    }
}
