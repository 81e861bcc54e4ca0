//! One state of a table, and the states that changes make of it.

use super::provider::TableRows;
use super::segment::{ColumnFacts, Segment, fitted};
use super::store::TableStore;
use super::{Definition, Error};
use arrow::array::{BooleanArray, BooleanBufferBuilder, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use std::sync::Arc;
use uuid::Uuid;

/// One state of a table. Immutable; changes make a new one that shares the unchanged segments.
#[derive(Debug, Clone)]
pub struct Table {
    id: Uuid,
    definition: Arc<Definition>,
    schema: SchemaRef,
    segments: Vec<Arc<Segment>>,
    totals: Totals,
}

/// Sums over the segments.
#[derive(Debug, Clone)]
pub(super) struct Totals {
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) columns: Vec<ColumnFacts>,
}

impl Table {
    /// A table without rows, with a new random id.
    pub fn new(definition: Definition) -> Self {
        Self::with_id(Uuid::new_v4(), definition)
    }

    fn with_id(id: Uuid, definition: Definition) -> Self {
        let schema = definition.schema();
        let totals = Totals::zero(&schema);
        Self { id, definition: Arc::new(definition), schema, segments: Vec::new(), totals }
    }

    /// Tells the table from all others, also from earlier ones of the same name. Stays through all changes.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Columns and constraints.
    pub fn definition(&self) -> &Arc<Definition> {
        &self.definition
    }

    /// The Arrow schema of the columns, made once.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.totals.rows
    }

    /// Bytes of memory that the rows keep. What segments share is counted in each.
    pub fn bytes(&self) -> u64 {
        self.totals.bytes
    }

    /// Number of segments.
    pub fn segment_count(&self) -> usize {
        self.segments.len()
    }

    /// The rows, in the order of their addresses.
    pub fn segments(&self) -> impl Iterator<Item = &RecordBatch> {
        self.segments.iter().map(|segment| segment.batch())
    }

    /// The rows and then those of `segments`, whose columns must have the types of the table's columns; a scan of
    /// other ones fails. Empty segments are left out.
    pub fn append(&self, segments: Vec<Arc<Segment>>) -> Self {
        let mut appended = self.clone();
        for segment in segments.into_iter().filter(|segment| segment.rows() > 0) {
            appended.totals.add(&segment);
            appended.segments.push(segment);
        }
        appended
    }

    /// The table without its rows.
    pub fn truncate(&self) -> Self {
        self.with_segments(Vec::new())
    }

    /// Takes out the rows at the addresses that the address column of [`Self::addressed_provider`] gave, in any order
    /// and however often each. Gives the new state and the number of rows that went. Copies what is left of the
    /// segments that lose rows. Fails for an address that this state does not have, and at the limit of memory.
    pub fn delete(&self, store: &Arc<TableStore>, addresses: &[u64]) -> Result<(Self, u64), Error> {
        let mut kept = self.kept_rows(addresses)?;
        let mut segments = Vec::with_capacity(self.segments.len());
        for (segment, kept) in self.segments.iter().zip(&mut kept) {
            let Some(kept) = kept else {
                segments.push(Arc::clone(segment));
                continue;
            };
            let kept = BooleanArray::new(kept.finish(), None);
            if kept.true_count() > 0 {
                segments.push(store.rewritten(&filter_record_batch(segment.batch(), &kept)?)?);
            }
        }
        let left = self.with_segments(segments);
        let gone = self.rows() - left.rows();
        Ok((left, gone))
    }

    /// For each segment that loses rows, which of them stay.
    fn kept_rows(&self, addresses: &[u64]) -> Result<Vec<Option<BooleanBufferBuilder>>, Error> {
        let mut kept: Vec<Option<BooleanBufferBuilder>> = Vec::new();
        kept.resize_with(self.segments.len(), || None);
        for address in addresses {
            let (position, row) = split(*address);
            let segment =
                usize::try_from(position).ok().and_then(|at| self.segments.get(at).zip(kept.get_mut(at)));
            let Some((segment, kept)) = segment.filter(|(segment, _)| row < segment.rows() as u64) else {
                return Err(Error::NoRow { segment: position, row });
            };
            let kept = kept.get_or_insert_with(|| {
                let mut all = BooleanBufferBuilder::new(segment.rows());
                all.append_n(segment.rows(), true);
                all
            });
            kept.set_bit(row as usize, false);
        }
        Ok(kept)
    }

    /// The table with another definition, and with its rows rewritten: `rewrite` gets a segment in the old schema and
    /// gives the same number of rows in the new one. The id stays. A segment that comes back as it was is shared.
    /// Fails when rows do not fit the new schema, at the limit of memory, and with what `rewrite` fails.
    pub fn redefine(
        &self,
        store: &Arc<TableStore>,
        definition: Definition,
        mut rewrite: impl FnMut(&RecordBatch) -> Result<RecordBatch, Error>,
    ) -> Result<Self, Error> {
        let redefined = Self::with_id(self.id, definition);
        let mut segments = Vec::with_capacity(self.segments.len());
        for segment in &self.segments {
            let rows = fitted(&self.schema, segment.batch().columns().to_vec(), segment.rows())?;
            let rows = rewrite(&rows)?;
            if rows.num_rows() != segment.rows() {
                return Err(Error::Rewritten { before: segment.rows(), after: rows.num_rows() });
            }
            let rows = fitted(&redefined.schema, rows.columns().to_vec(), rows.num_rows())?;
            segments.push(if same_columns(&rows, segment.batch()) {
                Arc::clone(segment)
            } else {
                store.taken_over(rows)?
            });
        }
        Ok(redefined.with_segments(segments))
    }

    /// The rows as a table for DataFusion.
    pub fn provider(self: &Arc<Self>) -> Arc<dyn TableProvider> {
        Arc::new(TableRows::new(Arc::clone(self)))
    }

    /// The same rows with one more, last, non-null UInt64 column of this name: the address of the row, which
    /// [`Self::delete`] of this very state takes. It is made while scanning, if the query uses it.
    pub fn addressed_provider(self: &Arc<Self>, column: &str) -> Arc<dyn TableProvider> {
        Arc::new(TableRows::addressed(Arc::clone(self), column))
    }

    /// The same table with other rows.
    pub(super) fn with_segments(&self, segments: Vec<Arc<Segment>>) -> Self {
        let mut totals = Totals::zero(&self.schema);
        segments.iter().for_each(|segment| totals.add(segment));
        Self {
            id: self.id,
            definition: Arc::clone(&self.definition),
            schema: Arc::clone(&self.schema),
            segments,
            totals,
        }
    }

    pub(super) fn shared_segments(&self) -> &[Arc<Segment>] {
        &self.segments
    }

    pub(super) fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Whether both are the very same state: table, definition and rows.
    pub(super) fn same(&self, other: &Self) -> bool {
        let segments = || self.segments.iter().zip(&other.segments);
        self.id == other.id
            && Arc::ptr_eq(&self.definition, &other.definition)
            && self.segments.len() == other.segments.len()
            && segments().all(|(one, other)| one.id() == other.id())
    }
}

impl Totals {
    fn zero(schema: &SchemaRef) -> Self {
        Self { rows: 0, bytes: 0, columns: vec![ColumnFacts::default(); schema.fields().len()] }
    }

    fn add(&mut self, segment: &Segment) {
        self.rows += segment.rows() as u64;
        self.bytes += segment.bytes();
        for (total, facts) in self.columns.iter_mut().zip(segment.columns()) {
            total.add(*facts);
        }
    }
}

/// The address of a row: position of the segment in the table, row in the segment.
pub(super) fn address(position: usize, row: usize) -> u64 {
    ((position as u64) << 32) | row as u64
}

fn split(address: u64) -> (u64, u64) {
    (address >> 32, address & u64::from(u32::MAX))
}

fn same_columns(one: &RecordBatch, other: &RecordBatch) -> bool {
    let columns = || one.columns().iter().zip(other.columns());
    one.schema() == other.schema()
        && one.num_columns() == other.num_columns()
        && columns().all(|(one, other)| Arc::ptr_eq(one, other))
}
