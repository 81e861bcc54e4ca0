//! COPY … FROM STDIN: the rows of the client become batches with the types of the table's columns.

use super::binary_format::Tuples;
use super::text_format::{Fields, Lines, Record};
use super::value_format;
use crate::backend_messages;
use crate::connection::Connection;
use crate::decode::Column;
use crate::encode::PgType;
use crate::frontend_messages::Message;
use crate::message_framing::Wire;
use crate::status::{ConnectionError, Failure, Result};
use arrow::array::ArrayRef;
use arrow::array::timezone::Tz;
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use bowshot_api::Statement;
use bowshot_rowwire::ingest::{BatchSender, RowReader, append, is_full, nullable};
use bowshot_sql::postgres::{CopyForm, CopyOptions, CopyTable};
use futures::SinkExt;
use std::sync::Arc;

impl Connection {
    pub(super) async fn copy_in(&mut self, table: &CopyTable, options: &CopyOptions) -> Result<()> {
        let session = Arc::clone(&self.session);
        let description = self.wait_for(session.describe(&Statement::Sql(table.query()))).await?;
        let schema = nullable(&description.schema);
        backend_messages::copy_response(self.wire.out(), b'G', value_format(options), schema.fields().len());
        self.wire.flush().await?;
        let longest = self.server.limits().max_message_bytes;
        let zone = self.parameters.zone(session.as_ref());
        let mut rows = RowParser::new(Arc::clone(&schema), options.clone(), (longest, zone));
        let target = (session.as_ref(), table.path.as_slice());
        let count = append(target, (&mut self.wire, &mut rows), schema, &self.cancel).await?;
        backend_messages::complete(self.wire.out(), &format!("COPY {count}"));
        Ok(())
    }
}

/// Parses rows and collects them into a batch.
pub(super) struct RowParser {
    schema: SchemaRef,
    options: CopyOptions,
    zone: Option<Tz>,
    source: Source,
    columns: Vec<Column>,
    rows: usize,
    bytes: usize,
    /// Records so far, with the header.
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

    fn next(&mut self, options: &CopyOptions, last: bool) -> Result<Record, Failure> {
        match self {
            Self::Lines(lines) => lines.next(options, last),
            Self::Tuples(tuples) => tuples.next(last),
        }
    }
}

fn columns(schema: &Schema, zone: Option<Tz>) -> Vec<Column> {
    let new = |field: &FieldRef| Column::new(PgType::from_field(field), Some(field.data_type().clone()));
    schema.fields().iter().map(|field| new(field).in_zone(zone)).collect()
}

impl RowReader for RowParser {
    type Client = Wire;
    type Error = Failure;

    async fn read(&mut self, wire: &mut Wire, batches: &mut BatchSender) -> Result<()> {
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
                None => return Err(ConnectionError::Closed),
            };
            while self.take(last)? {
                if is_full(self.rows, self.bytes) {
                    // If the session takes no more, it has failed and reports why.
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
}

impl RowParser {
    pub(super) fn new(schema: SchemaRef, options: CopyOptions, (longest, zone): (usize, Option<Tz>)) -> Self {
        let source = match options.form {
            CopyForm::Binary => Source::Tuples(Tuples::new(longest)),
            CopyForm::Text | CopyForm::Csv => Source::Lines(Lines::new(longest)),
        };
        let columns = columns(&schema, zone);
        Self { schema, options, zone, source, columns, rows: 0, bytes: 0, records: 0, ended: false }
    }

    /// Adds received bytes.
    pub(super) fn add(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.source.add(bytes)
    }

    /// Parses one record, if it is complete.
    pub(super) fn take(&mut self, last: bool) -> Result<bool, Failure> {
        let record = self.source.next(&self.options, last).map_err(|failure| self.at(failure))?;
        match record {
            Record::Cut => return Ok(false),
            Record::End => self.ended = true,
            // What follows the end marker is ignored, as in PostgreSQL.
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
        // An empty line is a row without columns.
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
            column.push(field.as_deref(), value_format(&self.options))?;
        }
        self.rows += 1;
        Ok(())
    }

    /// Adds the line to an error.
    fn at(&self, failure: Failure) -> Failure {
        Failure { message: format!("{} (COPY, line {})", failure.message, self.records), ..failure }
    }

    /// The rows so far as a batch.
    pub(super) fn batch(&mut self) -> Result<RecordBatch, Failure> {
        let filled = std::mem::replace(&mut self.columns, columns(&self.schema, self.zone));
        (self.rows, self.bytes) = (0, 0);
        let arrays: Vec<ArrayRef> = filled.into_iter().map(Column::finish).collect::<Result<_, _>>()?;
        RecordBatch::try_new(Arc::clone(&self.schema), arrays)
            .map_err(|error| Failure::new("XX000", format!("the rows of COPY make no batch: {error}")))
    }
}
