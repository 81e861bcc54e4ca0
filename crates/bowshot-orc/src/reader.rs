//! The batches of a file, one stripe after the other.

use crate::column::Column;
use crate::error::corrupt;
use crate::footer::OrcFile;
use crate::messages::StripeInformation;
use crate::stripe::Stripe;
use crate::{Error, Source};
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a batch, as they are packed: wide rows come in smaller batches.
const BATCH_BYTES: u64 = 16 << 20;

/// Rows of a batch, however wide they are.
const LEAST_ROWS: u64 = 16;

/// What is wanted of a file.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Places of columns, in the file's order. Without any, the first one comes, so that rows can be counted.
    pub columns: Vec<usize>,
    /// Rows of a batch at most.
    pub batch_rows: usize,
    /// A part of the file: the stripes that begin in it.
    pub range: Option<Range<u64>>,
}

/// The batches of a file; it ends after an error.
pub struct Batches {
    file: Arc<OrcFile>,
    source: Arc<dyn Source>,
    columns: Vec<usize>,
    schema: SchemaRef,
    batch_rows: usize,
    stripes: std::vec::IntoIter<StripeInformation>,
    open: Option<OpenStripe>,
}

struct OpenStripe {
    columns: Vec<Column>,
    rows_left: u64,
    batch_rows: u64,
}

impl Batches {
    /// # Errors
    ///
    /// If a wanted column is not there.
    pub fn new(file: &Arc<OrcFile>, source: Arc<dyn Source>, wanted: Wanted) -> Result<Self, Error> {
        let mut columns = wanted.columns;
        if columns.is_empty() && !file.nodes.is_empty() {
            columns.push(0);
        }
        let schema = Arc::new(file.columns().project(&columns)?);
        let begins = |stripe: &&StripeInformation| {
            let range = wanted.range.as_ref();
            stripe.number_of_rows > 0 && range.is_none_or(|range| range.contains(&stripe.offset))
        };
        let stripes: Vec<_> = file.stripes.iter().filter(begins).cloned().collect();
        let (file, stripes) = (Arc::clone(file), stripes.into_iter());
        Ok(Self { file, source, columns, schema, batch_rows: wanted.batch_rows.max(1), stripes, open: None })
    }

    fn batch(&mut self) -> Result<Option<RecordBatch>, Error> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => match self.stripes.next() {
                Some(stripe) if !self.columns.is_empty() => self.open_stripe(&stripe)?,
                _ => return Ok(None),
            },
        };
        let rows = open.rows_left.min(open.batch_rows);
        open.rows_left -= rows;
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        let mut arrays = Vec::with_capacity(open.columns.len());
        for column in &mut open.columns {
            arrays.push(column.read(rows)?);
        }
        if open.rows_left > 0 {
            self.open = Some(open);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(Some(RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?))
    }

    fn open_stripe(&self, stripe: &StripeInformation) -> Result<OpenStripe, Error> {
        let opened = Stripe::open(&self.file, &self.source, stripe)?;
        let column = |at: &usize| {
            let node = self.file.nodes.get(*at).ok_or_else(|| corrupt("a column is not there"))?;
            Column::open(&opened, node)
        };
        let columns = self.columns.iter().map(column).collect::<Result<_, _>>()?;
        let row_bytes = stripe.data_length.div_ceil(stripe.number_of_rows.max(1)).max(1);
        let batch_rows = (self.batch_rows as u64).min((BATCH_BYTES / row_bytes).max(LEAST_ROWS));
        Ok(OpenStripe { columns, rows_left: stripe.number_of_rows, batch_rows })
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.batch();
        if batch.is_err() {
            self.open = None;
            self.stripes = Vec::new().into_iter();
        }
        batch.transpose()
    }
}
