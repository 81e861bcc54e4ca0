//! The rows of one row group, of kept pieces and decoded ones. What is decoded to be kept goes into memory when the last
//! row was read, and not before the file is known to be unchanged.

use super::PIECE_ROWS;
use super::dynamic_filters::Learned;
use super::file::{ChunkId, FileColumns, Filling, Pieces};
use super::packed::Piece;
use super::row_group_selection::{Group, estimate};
use super::scan::Scan;
use crate::row_source::PlannedFile;
use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{and, filter};
use arrow::datatypes::Field;
use bowshot_object_store::Error;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::error::DataFusionError;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_datasource::morsel::Morsel;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::async_reader::{AsyncFileReader, ParquetRecordBatchStream};
use parquet::arrow::{ParquetRecordBatchStreamBuilder, ProjectionMask};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, RowGroupMetaData};
use std::ops::Range;
use std::sync::Arc;
use tokio::task::coop::consume_budget;

#[derive(Clone)]
pub(super) struct OpenFile {
    pub(super) scan: Arc<Scan>,
    pub(super) file: PartitionedFile,
    pub(super) planned: PlannedFile,
    pub(super) metadata: Arc<ParquetMetaData>,
}

/// Row groups of a file whose columns are kept, or will be.
pub(super) struct KeptRun {
    pub(super) open: OpenFile,
    pub(super) kept: Arc<FileColumns>,
    /// Places in the file of the columns that are read.
    pub(super) places: Vec<usize>,
    pub(super) groups: Vec<Group>,
    /// See [`super::row_group_selection::Choice`].
    pub(super) left: Option<BooleanBuffer>,
}

bowshot_api::debug_fields!(KeptRun { groups });

impl Morsel for KeptRun {
    fn into_stream(self: Box<Self>) -> BoxStream<'static, Result<RecordBatch>> {
        let groups = self.groups.clone();
        let run = *self;
        // One after the other: only what is being read takes room for what it will keep.
        stream::iter(groups).flat_map(move |group| group_rows(Reading::new(&run, group))).boxed()
    }
}

fn group_rows(reading: Reading) -> impl futures::Stream<Item = Result<RecordBatch>> + Send {
    let next = |mut reading: Reading| async move {
        let batches = reading.next().await?;
        Ok::<_, DataFusionError>(batches.map(|batches| (stream::iter(batches.into_iter().map(Ok)), reading)))
    };
    stream::try_unfold(reading, next).try_flatten()
}

type Decoder = ParquetRecordBatchStream<Box<dyn AsyncFileReader>>;

/// A row group that is being read.
struct Reading {
    open: OpenFile,
    number: usize,
    rows: usize,
    columns: Vec<Column>,
    /// Opened at the first piece.
    decoder: Option<Decoder>,
    piece: usize,
    learned: Learned,
    left: Option<BooleanBuffer>,
}

enum Values {
    Kept(Pieces, usize),
    Read(ArrayRef),
}

impl Values {
    fn all(&self) -> Result<ArrayRef> {
        match self {
            Self::Kept(pieces, number) => pieces.get(*number).ok_or_else(missing)?.all(),
            Self::Read(values) => Ok(Arc::clone(values)),
        }
    }

    fn filtered(&self, few: &BooleanArray) -> Result<ArrayRef> {
        match self {
            Self::Kept(pieces, number) => pieces.get(*number).ok_or_else(missing)?.filtered(few),
            Self::Read(values) => Ok(filter(values, few)?),
        }
    }
}

fn missing() -> DataFusionError {
    internal_datafusion_err!("a piece of a column is missing")
}

enum Column {
    Kept(Pieces),
    Decoded { place: usize, gathered: Option<Gathered> },
}

impl Reading {
    fn new(run: &KeptRun, group: Group) -> Self {
        let KeptRun { open, kept, places, .. } = run;
        let column = |(place, field): (&usize, &Arc<Field>)| {
            let id = ChunkId::new(group.number, *place);
            let found = if group.passing { kept.find(id) } else { kept.use_chunk(id) };
            if let Some(pieces) = found {
                open.scan.found.add(1);
                return Column::Kept(pieces);
            }
            let size = estimate(field.data_type(), *place, open.metadata.row_group(group.number));
            let filling = if group.passing { None } else { kept.fill(id, size) };
            Column::Decoded { place: *place, gathered: filling.map(Gathered::new) }
        };
        let columns = places.iter().zip(open.scan.read_schema.fields()).map(column).collect();
        let count = |group: &RowGroupMetaData| usize::try_from(group.num_rows()).unwrap_or(0);
        let rows = count(open.metadata.row_group(group.number));
        let first = || open.metadata.row_groups().iter().take(group.number).map(count).sum::<usize>();
        let left = run.left.as_ref().map(|left| left.slice(first(), rows));
        let (open, learned) = (open.clone(), Learned::new(&open.scan.learned, &open.scan.read_schema));
        Self { open, number: group.number, rows, columns, decoder: None, piece: 0, learned, left }
    }

    async fn next(&mut self) -> Result<Option<Vec<RecordBatch>>> {
        // Kept pieces never wait for anything, and a join may need no row of many of them.
        consume_budget().await;
        let start = self.piece * PIECE_ROWS;
        if start >= self.rows {
            return Ok(None);
        }
        let rows = PIECE_ROWS.min(self.rows - start);
        let decoded = self.decode(rows).await?;
        let mut columns = Vec::with_capacity(self.columns.len());
        for column in &mut self.columns {
            columns.push(match column {
                Column::Kept(pieces) => Values::Kept(Arc::clone(pieces), self.piece),
                Column::Decoded { place, gathered } => {
                    let found = decoded.iter().find(|(at, _)| at == place);
                    Values::Read(gather(gathered, found.map(|(_, values)| values).ok_or_else(missing)?))
                }
            });
        }
        self.piece += 1;
        if start + rows == self.rows {
            self.keep()?;
        }
        let batch = self.batch(&columns, start..start + rows)?;
        Ok(Some(self.open.scan.project(&batch, &self.open.file)?))
    }

    /// The rows of a piece that may be needed. Columns that no condition asks for are unpacked for those rows alone.
    fn batch(&mut self, columns: &[Values], rows: Range<usize>) -> Result<RecordBatch> {
        let schema = Arc::clone(&self.open.scan.read_schema);
        let mut unpacked = vec![None; columns.len()];
        for place in self.learned.places() {
            if let (Some(values), Some(column)) = (unpacked.get_mut(*place), columns.get(*place)) {
                *values = Some(column.all()?);
            }
        }
        let few = self.learned.passing(&unpacked, rows.len());
        let few = self.left_of(few, rows)?;
        let columns = columns.iter().zip(unpacked).map(|(column, unpacked)| match (&few, unpacked) {
            (Some(few), Some(values)) => Ok(filter(&values, few)?),
            (Some(few), None) => column.filtered(few),
            (None, Some(values)) => Ok(values),
            (None, None) => column.all(),
        });
        Ok(RecordBatch::try_new(schema, columns.collect::<Result<_>>()?)?)
    }

    /// Those of the rows that may be needed that are left; `None` where all may, and all are.
    fn left_of(&self, few: Option<BooleanArray>, rows: Range<usize>) -> Result<Option<BooleanArray>> {
        let left = self.left.as_ref().map(|left| BooleanArray::new(left.slice(rows.start, rows.len()), None));
        Ok(match (few, left) {
            (Some(few), Some(left)) => Some(and(&few, &left)?),
            (None, left) => left.filter(|left| left.false_count() > 0),
            (few, None) => few,
        })
    }

    /// The next values of the columns that are read from the file, by their place in there.
    async fn decode(&mut self, rows: usize) -> Result<Vec<(usize, ArrayRef)>> {
        let mut places: Vec<usize> = self
            .columns
            .iter()
            .filter_map(|column| match column {
                Column::Decoded { place, .. } => Some(*place),
                Column::Kept(_) => None,
            })
            .collect();
        if places.is_empty() {
            return Ok(Vec::new());
        }
        // The reader gives columns in the order of the file.
        places.sort_unstable();
        let decoder = match &mut self.decoder {
            Some(decoder) => decoder,
            None => self.decoder.insert(open_decoder(&self.open, self.number, &places)?),
        };
        let batch = decoder.try_next().await?;
        let right = batch.filter(|batch| batch.num_rows() == rows && batch.num_columns() == places.len());
        let batch = right.ok_or_else(|| {
            Error::corrupt(self.open.planned.data.path(), "a row group has other rows than its footer says")
        })?;
        let (_, mut columns, _) = batch.into_parts();
        // Decoders leave texts in buffers of up to twice their size.
        columns.iter_mut().for_each(|column| column.shrink_to_fit());
        Ok(places.into_iter().zip(columns).collect())
    }

    fn keep(&mut self) -> Result<()> {
        let gathered = self.columns.iter_mut().filter_map(|column| match column {
            Column::Decoded { gathered, .. } => gathered.take(),
            Column::Kept(_) => None,
        });
        let gathered: Vec<Gathered> = gathered.collect();
        if !gathered.is_empty() {
            self.open.planned.data.check_pages()?;
        }
        for Gathered { filling, pieces, bytes } in gathered {
            self.open.scan.kept.add(usize::from(filling.finish(pieces, bytes)));
        }
        Ok(())
    }
}

/// Pieces of a column that will be kept when all are there.
struct Gathered {
    filling: Filling,
    pieces: Vec<Piece>,
    bytes: u64,
}

impl Gathered {
    fn new(filling: Filling) -> Self {
        Self { filling, pieces: Vec::new(), bytes: 0 }
    }

    /// Adds a piece. False if there is no room to keep it.
    fn add(&mut self, values: &ArrayRef) -> bool {
        let piece = Piece::new(values);
        self.bytes += piece.bytes(self.pieces.last());
        self.pieces.push(piece);
        self.filling.fits(self.bytes)
    }
}

/// Adds a piece, or gives up keeping the column for want of room. Gives the piece for the batch.
fn gather(gathered: &mut Option<Gathered>, values: &ArrayRef) -> ArrayRef {
    gathered.take_if(|all| !all.add(values));
    Arc::clone(values)
}

fn open_decoder(open: &OpenFile, group: usize, places: &[usize]) -> Result<Decoder> {
    let OpenFile { scan, file, metadata, .. } = open;
    let mut options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Skip);
    if let Some(schema) = &file.arrow_schema {
        options = options.with_schema(Arc::clone(schema));
    }
    let metadata = ArrowReaderMetadata::try_new(Arc::clone(metadata), options)?;
    // Each reader registers a score of metrics, and there is one for each row group.
    let uncounted = ExecutionPlanMetricsSet::new();
    let reader = scan.factory.create_reader(scan.partition, file.clone(), None, &uncounted)?;
    let reader: Box<dyn AsyncFileReader> = reader;
    let leaves = metadata.parquet_schema();
    let chunks = metadata.metadata().row_group(group).columns().iter().enumerate();
    let read = chunks.filter(|(leaf, _)| places.contains(&leaves.get_column_root_idx(*leaf)));
    let bytes = read.map(|(_, chunk)| usize::try_from(chunk.compressed_size()).unwrap_or(0));
    scan.read.add(bytes.fold(0, usize::saturating_add));
    let mask = ProjectionMask::roots(metadata.parquet_schema(), places.iter().copied());
    let builder = ParquetRecordBatchStreamBuilder::new_with_metadata(reader, metadata);
    let builder = builder.with_row_groups(vec![group]).with_projection(mask);
    Ok(builder.with_batch_size(PIECE_ROWS).build()?)
}
