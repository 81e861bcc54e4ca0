//! What a format reader is asked for and what it gives: batches in the file's own shape, fitted to the table by name.

use crate::column_casts::cast_to;
use crate::schema::Places;
use crate::shared_files::SharedFiles;
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use bowshot_object_store::Error;
use bowshot_object_store::file_name::Compression;
use std::collections::HashSet;
use std::iter;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

const MAX_VALUES: usize = 4 << 20;
/// Rows of a batch, however many columns there are.
const LEAST_ROWS: usize = 16;

/// Rows of a batch: there is room for that many values of each column at once, however few there are.
pub(crate) fn rows_of(wanted: usize, columns: usize) -> usize {
    wanted.min((MAX_VALUES / columns.max(1)).max(LEAST_ROWS))
}

#[derive(Debug, Clone)]
pub struct Request {
    /// The wanted columns of the table, without partition columns.
    pub schema: SchemaRef,
    pub batch_size: usize,
    pub range: Option<Range<u64>>,
    pub compression: Compression,
    /// Told of each file whose memory the batches share.
    pub shared: SharedFiles,
}

impl Request {
    /// Where the wanted columns are in a file of these columns, in the file's order.
    pub fn positions_in(&self, columns: &Schema) -> Vec<usize> {
        let wanted: HashSet<&str> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        let fields = columns.fields().iter().enumerate();
        fields.filter(|(_, field)| wanted.contains(field.name().as_str())).map(|(index, _)| index).collect()
    }

    /// Brings a batch to the wanted columns: by name, nulls for what the file lacks, casts where the table's type is wider.
    pub fn fit(&self, batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        let places = Places::of(batch.schema_ref());
        let columns = self.schema.fields().iter().enumerate().map(|(place, field)| {
            match places.find(field.name(), place).map(|found| batch.column(found)) {
                None => Ok(new_null_array(field.data_type(), batch.num_rows())),
                Some(column) => cast_to(column, field.data_type()),
            }
        });
        let columns = columns.collect::<Result<Vec<ArrayRef>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
    }
}

/// The batches of one file. A reader that panics on the file's bytes has the effect of one that gives an error.
pub struct Batches(Box<dyn Iterator<Item = Result<RecordBatch, Error>> + Send>);

impl Batches {
    pub fn new(batches: impl Iterator<Item = Result<RecordBatch, Error>> + Send + 'static) -> Self {
        Self(Box::new(batches))
    }

    /// What `next` gives until it has no more, or fails.
    pub(crate) fn until_end(
        mut next: impl FnMut() -> Result<Option<RecordBatch>, Error> + Send + 'static,
    ) -> Self {
        let mut done = false;
        Self::new(iter::from_fn(move || {
            if done {
                return None;
            }
            let batch = next();
            done = !matches!(batch, Ok(Some(_)));
            batch.transpose()
        }))
    }

    pub fn empty() -> Self {
        Self::new(iter::empty())
    }

    /// The next batch; `path` is named if the reader panics.
    pub fn next_of(&mut self, path: &Path) -> Option<Result<RecordBatch, Error>> {
        catch_unwind(AssertUnwindSafe(|| self.0.next())).unwrap_or_else(|_| {
            self.0 = Box::new(iter::empty());
            Some(Err(Error::corrupt(path, "its rows cannot be decoded")))
        })
    }
}

bowshot_api::debug_fields!(Batches {});
