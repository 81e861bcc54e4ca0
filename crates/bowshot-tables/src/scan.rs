//! Scans the rows of a table that are in memory: which rows go to which partition, and the batches of a partition. Columns
//! go out as they are stored, except that small segments are put together into one batch; a segment is cut only when it is
//! larger than the share of a partition, and then without a copy.

use super::Table;
use super::segment::{ColumnFacts, MemoryRows, Segment, fitted};
use super::table::address;
use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ColumnStatistics, Result, Statistics, internal_err, project_schema};
use datafusion::datasource::source::DataSource;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::SchedulingType;
use datafusion::physical_plan::projection::{all_alias_free_columns, new_projections_for_columns};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayFormatType, Partitioning};
use datafusion::prelude::SessionConfig;
use futures::stream;
use std::fmt;
use std::mem;
use std::sync::Arc;

/// Rows up to which small segments are read as one batch, which copies them.
const TOGETHER_ROWS: usize = 8 << 10;

/// What a scan of a table reads. Keeps the segments, and so their memory is counted, until the plan is dropped.
#[derive(Debug, Clone)]
pub(super) struct TableSource {
    partitions: Arc<[Vec<Piece>]>,
    /// Sums over the table, if all of its rows are read.
    totals: Option<Totals>,
    /// The columns that there are: those of the table, and perhaps the address.
    schema: SchemaRef,
    /// Number of the table's columns, so the place of the address.
    stored: usize,
    /// Places in `schema` of the columns that are read.
    projection: Vec<usize>,
    projected_schema: SchemaRef,
    /// Rows that each partition gives at most.
    fetch: Option<usize>,
}

#[derive(Debug, Clone)]
struct Totals {
    rows: u64,
    columns: Vec<ColumnFacts>,
}

/// Successive rows of a segment in memory.
#[derive(Debug, Clone)]
struct Piece {
    segment: Arc<Segment>,
    position: usize,
    offset: usize,
    rows: usize,
}

impl TableSource {
    /// All columns of the table's first `limit` rows. `schema` is the table's, perhaps with the address at the end.
    pub(super) fn new(
        table: &Table,
        schema: &SchemaRef,
        limit: Option<usize>,
        config: &SessionConfig,
    ) -> Result<Self> {
        let stored = table.schema().fields().len();
        let totals = Totals::of(table, stored);
        let all = usize::try_from(totals.rows).unwrap_or(usize::MAX);
        let rows = limit.map_or(all, |limit| limit.min(all));
        let partitions = layout(table, rows, config);
        Ok(Self {
            partitions: partitions.into(),
            totals: (rows == all).then_some(totals),
            schema: Arc::clone(schema),
            stored,
            projection: (0..schema.fields().len()).collect(),
            projected_schema: Arc::clone(schema),
            fetch: None,
        })
    }

    /// Only these columns, by their places among all.
    pub(super) fn with_projection(&self, projection: Vec<usize>) -> Result<Self> {
        let projected_schema = project_schema(&self.schema, Some(&projection))?;
        Ok(Self { projection, projected_schema, ..self.clone() })
    }

    fn read(&self, piece: &Piece) -> Result<RecordBatch> {
        let stored = piece.segment.memory().map(|rows| rows.batch().columns()).unwrap_or_default();
        let columns = self.projection.iter().map(|place| match stored.get(*place) {
            _ if *place == self.stored => Ok(piece.addresses()),
            Some(column) if piece.rows == column.len() => Ok(Arc::clone(column)),
            Some(column) => Ok(column.slice(piece.offset, piece.rows)),
            None => internal_err!("{:?} lacks column {place} of its table", piece.segment),
        });
        Ok(fitted(&self.projected_schema, columns.collect::<Result<_>>()?, piece.rows)?)
    }

    fn read_together(&self, pieces: &[Piece]) -> Result<RecordBatch> {
        if let [piece] = pieces {
            return self.read(piece);
        }
        let batches: Vec<RecordBatch> = pieces.iter().map(|piece| self.read(piece)).collect::<Result<_>>()?;
        Ok(concat_batches(&self.projected_schema, &batches)?)
    }

    /// Sums over what the partitions give, and whether they are exact: of part of a segment only the rows are known.
    fn totals_of(&self, partitions: &[Vec<Piece>]) -> (Totals, bool) {
        let mut totals = Totals::zero(self.stored);
        let mut exact = true;
        for piece in partitions.iter().flat_map(|pieces| fetched(pieces, self.fetch)) {
            exact &= piece.rows == piece.segment.rows();
            totals.rows += piece.rows as u64;
            let facts = piece.segment.memory().map(MemoryRows::columns).unwrap_or_default();
            for (total, facts) in totals.columns.iter_mut().zip(facts) {
                total.add(piece.share(*facts));
            }
        }
        (totals, exact)
    }

    fn statistics(&self, totals: &Totals, exact: bool) -> Arc<Statistics> {
        let precise = |value: u64| {
            if exact { Precision::Exact(value as usize) } else { Precision::Inexact(value as usize) }
        };
        // The column without facts is the address.
        let address = ColumnFacts { bytes: totals.rows * size_of::<u64>() as u64, nulls: 0 };
        let facts =
            || self.projection.iter().map(|place| totals.columns.get(*place).copied().unwrap_or(address));
        let column = |facts: ColumnFacts| ColumnStatistics {
            null_count: precise(facts.nulls),
            byte_size: precise(facts.bytes),
            ..ColumnStatistics::new_unknown()
        };
        Arc::new(Statistics {
            num_rows: Precision::Exact(totals.rows as usize),
            total_byte_size: precise(facts().map(|facts| facts.bytes).sum()),
            column_statistics: facts().map(column).collect(),
        })
    }

    fn fmt_sizes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let segments: usize = self.partitions.iter().map(Vec::len).sum();
        write!(f, "table, partitions={}, segments={segments}", self.partitions.len())?;
        match self.fetch {
            Some(fetch) => write!(f, ", fetch={fetch}"),
            None => Ok(()),
        }
    }
}

impl DataSource for TableSource {
    fn open(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let Some(pieces) = self.partitions.get(partition) else {
            return internal_err!("the scan has no partition {partition}");
        };
        let pieces: Vec<Piece> = fetched(pieces, self.fetch).collect();
        // Addresses are made when the batch is asked for, and then only for as many rows as go on together.
        let addressed = self.projection.contains(&self.stored);
        let step = if addressed { context.session_config().batch_size().max(1) } else { usize::MAX };
        let source = self.clone();
        let cut = pieces.into_iter().flat_map(move |piece| piece.cut(step));
        let groups = together(cut, context.session_config().batch_size().min(TOGETHER_ROWS));
        let batches = groups.into_iter().map(move |pieces| source.read_together(&pieces));
        let schema = Arc::clone(&self.projected_schema);
        let stream = RecordBatchStreamAdapter::new(schema, stream::iter(batches));
        Ok(Box::pin(cooperative(stream)))
    }

    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_sizes(f)?;
        if matches!(format, DisplayFormatType::TreeRender) { writeln!(f) } else { Ok(()) }
    }

    fn output_partitioning(&self) -> Partitioning {
        Partitioning::UnknownPartitioning(self.partitions.len())
    }

    fn eq_properties(&self) -> EquivalenceProperties {
        EquivalenceProperties::new(Arc::clone(&self.projected_schema))
    }

    fn scheduling_type(&self) -> SchedulingType {
        SchedulingType::Cooperative
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        if let (None, Some(totals), None) = (partition, &self.totals, self.fetch) {
            return Ok(self.statistics(totals, true));
        }
        let partitions = match partition {
            Some(partition) => self.partitions.get(partition..=partition).unwrap_or_default(),
            None => &self.partitions[..],
        };
        let (totals, exact) = self.totals_of(partitions);
        Ok(self.statistics(&totals, exact))
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn DataSource>> {
        Some(Arc::new(Self { fetch: limit, ..self.clone() }))
    }

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }

    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn DataSource>>> {
        let columns: Vec<_> = projection.iter().cloned().collect();
        if !all_alias_free_columns(&columns) {
            return Ok(None);
        }
        let projection = new_projections_for_columns(&columns, &self.projection);
        Ok(Some(Arc::new(self.with_projection(projection)?)))
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }
}

/// Groups successive pieces of at most so many rows together: whoever reads pays for each batch.
fn together(pieces: impl Iterator<Item = Piece>, rows: usize) -> Vec<Vec<Piece>> {
    let mut groups: Vec<Vec<Piece>> = Vec::new();
    let mut room = 0;
    for piece in pieces {
        match groups.last_mut() {
            Some(group) if piece.rows <= room => {
                room -= piece.rows;
                group.push(piece);
            }
            _ => {
                room = rows.saturating_sub(piece.rows);
                groups.push(vec![piece]);
            }
        }
    }
    groups
}

impl Totals {
    fn zero(columns: usize) -> Self {
        Self { rows: 0, columns: vec![ColumnFacts::default(); columns] }
    }

    fn of(table: &Table, columns: usize) -> Self {
        let mut totals = Self::zero(columns);
        for rows in table.shared_segments().iter().filter_map(|segment| segment.memory()) {
            totals.rows += rows.rows() as u64;
            for (total, facts) in totals.columns.iter_mut().zip(rows.columns()) {
                total.add(*facts);
            }
        }
        totals
    }
}

impl Piece {
    /// The same rows in pieces of at most `step` rows.
    fn cut(self, step: usize) -> impl Iterator<Item = Self> {
        let rows = self.rows;
        (0..rows).step_by(step).map(move |start| Self {
            segment: Arc::clone(&self.segment),
            position: self.position,
            offset: self.offset + start,
            rows: step.min(rows - start),
        })
    }

    fn addresses(&self) -> ArrayRef {
        let first = address(self.position, self.offset);
        Arc::new(UInt64Array::from_iter_values(first..first + self.rows as u64))
    }

    /// What of the segment's facts falls to these rows, if all rows are alike.
    fn share(&self, facts: ColumnFacts) -> ColumnFacts {
        let share = |value: u64| match self.segment.rows() {
            0 => 0,
            all => (u128::from(value) * self.rows as u128 / all as u128) as u64,
        };
        ColumnFacts { bytes: share(facts.bytes), nulls: share(facts.nulls) }
    }
}

fn fetched(pieces: &[Piece], fetch: Option<usize>) -> impl Iterator<Item = Piece> {
    let mut left = fetch.unwrap_or(usize::MAX);
    pieces.iter().map_while(move |piece| {
        let rows = piece.rows.min(left);
        left -= rows;
        (rows > 0).then(|| Piece { rows, ..piece.clone() })
    })
}

/// Distributes the first `rows` rows in order and evenly over partitions of at least a batch each; there is always one.
fn layout(table: &Table, rows: usize, config: &SessionConfig) -> Vec<Vec<Piece>> {
    let batch = config.batch_size().max(1);
    let partitions = rows.div_ceil(batch).clamp(1, config.target_partitions().max(1));
    let share = rows.div_ceil(partitions);
    let (mut layout, mut partition) = (Vec::new(), Vec::new());
    let (mut room, mut left) = (share, rows);
    let segments = table.shared_segments().iter().enumerate();
    for (position, segment) in segments.filter(|(_, segment)| segment.memory().is_some()) {
        let end = segment.rows().min(left);
        let mut offset = 0;
        while offset < end {
            if room == 0 {
                layout.push(mem::take(&mut partition));
                room = share;
            }
            // Cuts fall between batches, so that no batch is smaller than it need be.
            let rows = room.next_multiple_of(batch).min(end - offset);
            partition.push(Piece { segment: Arc::clone(segment), position, offset, rows });
            offset += rows;
            room = room.saturating_sub(rows);
        }
        left -= end;
    }
    layout.push(partition);
    layout
}
