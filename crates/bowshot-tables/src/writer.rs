//! Takes a stream of rows into segments of a table, in bounded memory where the table is durable.

use super::deep_copy::taken_over;
use super::segment::Segment;
use super::{Error, Table, TableStore};
use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::thread::available_parallelism;
use tokio::task::{JoinHandle, spawn_blocking};

/// Rows below which batches are united before they become a segment in memory: a scan pays for each.
const SMALL_ROWS: usize = 8 << 10;
const FILE_ROWS: usize = 1 << 20;
const FILE_BYTES: usize = 128 << 20;
/// Bytes of few rows that are a segment all the same: the memory of tables is counted by segments.
const SMALL_BYTES: usize = 16 << 20;
const MAX_RUNNING: usize = 4;

/// See the module. Whatever it has made goes with it, unless [`SegmentWriter::finish`] hands it out.
#[derive(Debug)]
pub struct SegmentWriter {
    store: Arc<TableStore>,
    table: Arc<Table>,
    collected: Vec<RecordBatch>,
    collected_rows: usize,
    collected_bytes: usize,
    running: VecDeque<JoinHandle<Result<Option<Arc<Segment>>, Error>>>,
    segments: Vec<Arc<Segment>>,
    rows: u64,
    /// Whether nobody else has the memory of the rows.
    exclusive: bool,
}

impl SegmentWriter {
    pub fn new(store: &Arc<TableStore>, table: &Arc<Table>) -> Self {
        Self {
            store: Arc::clone(store),
            table: Arc::clone(table),
            collected: Vec::new(),
            collected_rows: 0,
            collected_bytes: 0,
            running: VecDeque::new(),
            segments: Vec::new(),
            rows: 0,
            exclusive: false,
        }
    }

    /// For rows whose memory nobody else has: they may stay where they are.
    #[must_use]
    pub fn taking_over(self) -> Self {
        Self { exclusive: true, ..self }
    }

    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Takes rows with the columns of the table. Fails at the limit of memory, and when the disk does.
    pub async fn write(&mut self, rows: RecordBatch) -> Result<(), Error> {
        if rows.num_rows() == 0 {
            return Ok(());
        }
        self.rows += rows.num_rows() as u64;
        let durable = self.table.definition().is_durable();
        if !durable && rows.num_rows() >= SMALL_ROWS {
            self.segments.push(self.segment(&rows)?);
            return Ok(());
        }
        self.collected_rows += rows.num_rows();
        self.collected_bytes += rows.get_array_memory_size();
        self.collected.push(rows);
        if !durable {
            let enough = self.collected_rows >= SMALL_ROWS || self.collected_bytes >= SMALL_BYTES;
            return if enough { self.unite() } else { Ok(()) };
        }
        if self.collected_rows >= FILE_ROWS || self.collected_bytes >= FILE_BYTES {
            self.start_file();
            let limit = available_parallelism().map_or(1, Into::into).min(MAX_RUNNING);
            while self.running.len() > limit {
                self.wait_for_one().await?;
            }
        }
        Ok(())
    }

    pub async fn finish(mut self) -> Result<Vec<Arc<Segment>>, Error> {
        if self.table.definition().is_durable() {
            if self.collected_rows > 0 {
                self.start_file();
            }
            while !self.running.is_empty() {
                self.wait_for_one().await?;
            }
        } else {
            self.unite()?;
        }
        Ok(self.segments)
    }

    fn unite(&mut self) -> Result<(), Error> {
        let united = match self.take_collected().as_slice() {
            [] => return Ok(()),
            [one] => one.clone(),
            many => concat_batches(&self.table.schema(), many)?,
        };
        self.segments.push(self.store.segment(&united)?);
        Ok(())
    }

    fn segment(&self, rows: &RecordBatch) -> Result<Arc<Segment>, Error> {
        match self.exclusive.then(|| taken_over(rows)).flatten() {
            Some(rows) => self.store.in_memory_segment(rows),
            None => self.store.segment(rows),
        }
    }

    fn take_collected(&mut self) -> Vec<RecordBatch> {
        (self.collected_rows, self.collected_bytes) = (0, 0);
        mem::take(&mut self.collected)
    }

    /// Few rows become a segment in memory there.
    fn start_file(&mut self) {
        let rows = self.take_collected();
        let (store, table) = (Arc::clone(&self.store), Arc::clone(&self.table));
        self.running.push_back(spawn_blocking(move || store.copied(&table, rows)));
    }

    async fn wait_for_one(&mut self) -> Result<(), Error> {
        let Some(first) = self.running.pop_front() else { return Ok(()) };
        let written =
            first.await.map_err(|error| Error::Invalid(format!("writing rows broke down: {error}")))?;
        self.segments.extend(written?);
        Ok(())
    }
}
