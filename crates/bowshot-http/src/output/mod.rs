//! Rows in the forms that clients take, a piece at a time: what is in memory of a result is the batch in hand and one piece of
//! its form.

mod arrow;
mod cells;
mod compressed;
mod csv;
mod json;
mod parquet;

use self::arrow::{File, Stream};
use self::compressed::Compressed;
use self::csv::Csv;
pub(crate) use self::json::columns;
use self::json::{Json, Lines};
use self::parquet::Parquet;
use crate::form::{Form, Wish};
use ::arrow::datatypes::SchemaRef;
use ::arrow::error::ArrowError;
use ::arrow::record_batch::RecordBatch;
use bowshot_api::{Answer, Error, Layout, Limits, Result, batch_bytes};
use bytes::Bytes;
use serde_json::Value;
use std::sync::Arc;

/// Bytes of one piece of a form of text, but for its last row.
const PIECE_BYTES: usize = 64 << 10;

/// Makes a form of rows.
pub(crate) trait Encoder: Send {
    /// Takes the next batch, when [`Encoder::more`] has no more pieces.
    fn take(&mut self, batch: RecordBatch);

    /// The next piece; `None` when it wants another batch.
    fn more(&mut self) -> Result<Option<Bytes>>;

    /// What comes after the last batch.
    fn end(&mut self) -> Result<Bytes>;

    /// The end of a result that has failed, if the form can tell that. Otherwise the connection has to break.
    fn failed(&mut self, error: &Value) -> Option<Bytes>;

    /// Whether a piece takes so long that it must not be made where sockets are served.
    fn is_heavy(&self) -> bool {
        false
    }
}

/// What makes the form of a result.
///
/// # Errors
/// `Unsupported` for a column that the form has no place for.
pub(crate) fn encoder(wish: Wish, answer: &Answer, limits: &Limits) -> Result<Box<dyn Encoder>> {
    let encoder: Box<dyn Encoder> = match wish.form {
        Form::Json => Box::new(Json::new(answer)?),
        Form::Lines => Box::new(Lines::new(answer)?),
        Form::Csv => Box::new(Csv::new(answer)?),
        Form::ArrowStream => Box::new(Stream::new(answer, limits.message_bytes)?),
        Form::ArrowFile => Box::new(File::new(answer, limits.message_bytes)?),
        Form::Parquet => Box::new(Parquet::new(answer)?),
    };
    Ok(match wish.coding {
        Some(coding) => Box::new(Compressed::new(encoder, coding)?),
        None => encoder,
    })
}

/// A batch that is taken apart from its front, and the layout in which its parts come.
#[derive(Debug)]
struct InHand {
    layout: Layout,
    schema: SchemaRef,
    batch: Option<RecordBatch>,
    row: usize,
    /// Bytes of one row, on the average.
    row_bytes: usize,
}

impl InHand {
    /// Batches as they are.
    fn new(answer: &Answer) -> Self {
        let (layout, schema) = (answer.layout, Arc::clone(&answer.schema));
        Self { layout, schema, batch: None, row: 0, row_bytes: 1 }
    }

    /// Batches without dictionaries, which are for forms that have none, or in which they must not change.
    fn plain(answer: &Answer) -> Self {
        let layout = Layout { dictionaries: false, ..answer.layout };
        Self { layout, schema: layout.schema(&answer.schema), ..Self::new(answer) }
    }

    fn take(&mut self, batch: RecordBatch) {
        self.row_bytes = (batch_bytes(&batch) / batch.num_rows().max(1)).max(1);
        (self.batch, self.row) = (Some(batch), 0);
    }

    /// The next rows, as many as have about `bytes` bytes.
    fn slice(&mut self, bytes: usize) -> Result<Option<RecordBatch>> {
        let Some(batch) = &self.batch else { return Ok(None) };
        let left = batch.num_rows().saturating_sub(self.row);
        if left == 0 {
            self.batch = None;
            return Ok(None);
        }
        let rows = (bytes / self.row_bytes).clamp(1, left);
        let slice = batch.slice(self.row, rows);
        self.row += rows;
        self.layout.apply(slice, &self.schema).map(Some)
    }
}

/// An error of Arrow about columns that a form cannot hold.
fn refused(form: &str, error: ArrowError) -> Error {
    Error::unsupported(format!("the result has no form as {form}: {error}"))
        .with_hint("cast the columns in the query, or ask for application/vnd.apache.arrow.stream")
        .with_source(error)
}

/// An error of Arrow about rows whose columns were found fit.
fn unencoded(error: ArrowError) -> Error {
    Error::internal("rows cannot be encoded").with_source(error)
}
