//! Rows that are read several times: in the query's memory, and in files once that does not hold them.

use bowshot_api::allocations;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::execution::spill_file::SpillFile;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::SpillManager;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream::{self, StreamExt, TryStreamExt};
use std::collections::HashSet;
use std::sync::Arc;

/// Batches for each partition below which they are cut, so that every partition has rows.
const FEW_BATCHES: usize = 4;
/// The part of the query's memory that rows may take before they go to files: they stay until the query ends, and what reads
/// them, such as a join, needs memory too.
const PART_OF_MEMORY: usize = 8;

/// Rows while they are computed.
pub struct Materializing {
    rows: MaterializedRows,
    /// Bytes that may be in memory.
    limit: usize,
    /// Addresses of the memory that is counted: batches are often parts of larger ones.
    counted: HashSet<usize>,
    /// One for each partition, once there are any.
    writers: Vec<Writer>,
    written: usize,
}

/// Writes a batch to a file, or gives the finished one for none.
type Writer = Box<dyn FnMut(Option<&RecordBatch>) -> Result<Option<Arc<dyn SpillFile>>> + Send>;

impl Materializing {
    /// None yet, which are read in so many partitions.
    pub fn new(
        schema: SchemaRef,
        partitions: usize,
        context: &TaskContext,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Self {
        let pool = context.memory_pool();
        let limit = match pool.memory_limit() {
            MemoryLimit::Finite(bytes) => bytes / PART_OF_MEMORY,
            _ => usize::MAX,
        };
        let memory = MemoryConsumer::new("MaterializedRows").with_can_spill(true).register(pool);
        let spill =
            SpillManager::new(context.runtime_env(), SpillMetrics::new(metrics, 0), Arc::clone(&schema))
                .with_compression_type(context.session_config().spill_compression());
        let (batches, files) = (Vec::new(), Vec::new());
        let rows = MaterializedRows { schema, partitions, batches, memory, spill, files };
        Self { rows, limit, counted: HashSet::new(), writers: Vec::new(), written: 0 }
    }

    /// Adds rows.
    ///
    /// # Errors
    /// Where neither memory nor files hold the rows.
    pub fn add(&mut self, batch: RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        if !self.writers.is_empty() {
            return self.write(&batch);
        }
        let new =
            allocations(batch.columns()).into_iter().filter(|(address, _)| self.counted.insert(*address));
        let bytes: usize = new.map(|(_, bytes)| usize::try_from(bytes).unwrap_or(usize::MAX)).sum();
        let memory = &self.rows.memory;
        let grown = memory.try_grow(bytes);
        if grown.is_ok() && memory.size() <= self.limit {
            self.rows.batches.push(batch);
            return Ok(());
        }
        match (self.open_files(), grown) {
            (Ok(()), _) => self.empty_memory()?,
            // There may be no files, but there is memory.
            (Err(_), Ok(())) => {
                self.limit = usize::MAX;
                self.rows.batches.push(batch);
                return Ok(());
            }
            (Err(_), Err(full)) => return Err(full),
        }
        self.write(&batch)
    }

    /// Moves all rows to files, and those that come later.
    ///
    /// # Errors
    /// Where files do not hold the rows.
    pub fn spill(&mut self) -> Result<()> {
        if self.writers.is_empty() {
            self.open_files()?;
            self.empty_memory()?;
        }
        Ok(())
    }

    fn empty_memory(&mut self) -> Result<()> {
        for kept in std::mem::take(&mut self.rows.batches) {
            self.write(&kept)?;
        }
        self.counted = HashSet::new();
        self.rows.memory.free();
        Ok(())
    }

    fn open_files(&mut self) -> Result<()> {
        let open = |_| -> Result<Writer> {
            let mut file = self.rows.spill.create_in_progress_file("rows of a part of the query")?;
            Ok(Box::new(move |batch: Option<&RecordBatch>| match batch {
                Some(batch) => file.append_batch(batch).map(|_| None),
                None => file.finish(),
            }))
        };
        self.writers = (0..self.rows.partitions).map(open).collect::<Result<_>>()?;
        Ok(())
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let at = self.written % self.rows.partitions.max(1);
        self.written += 1;
        self.writers.get_mut(at).map_or(Ok(None), |writer| writer(Some(batch))).map(drop)
    }

    /// Ends the rows.
    ///
    /// # Errors
    /// Where the last rows cannot be written.
    pub fn finish(mut self) -> Result<MaterializedRows> {
        for (partition, writer) in self.writers.iter_mut().enumerate() {
            self.rows.files.extend(writer(None)?.map(|file| (partition, file)));
        }
        Ok(self.rows)
    }
}

/// All rows, and what they take of the query's memory.
pub struct MaterializedRows {
    schema: SchemaRef,
    partitions: usize,
    batches: Vec<RecordBatch>,
    memory: MemoryReservation,
    spill: SpillManager,
    /// At most one for each partition.
    files: Vec<(usize, Arc<dyn SpillFile>)>,
}

impl MaterializedRows {
    /// The rows of one partition, as often as they are wanted.
    pub fn read(self: Arc<Self>, partition: usize) -> SendableRecordBatchStream {
        let files = self.files.iter().filter(|(of, _)| *of == partition).map(|(_, file)| Arc::clone(file));
        let files: Vec<_> = files.collect();
        let (schema, spill) = (Arc::clone(&self.schema), self.spill.clone());
        let written =
            stream::iter(files).map(move |file| spill.read_spill_as_stream(file, None)).try_flatten();
        let in_memory = (0..self.batches.len()).filter_map(move |at| self.part(at, partition));
        let in_memory = stream::iter(in_memory.map(Ok::<_, DataFusionError>));
        Box::pin(RecordBatchStreamAdapter::new(schema, written.chain(in_memory)))
    }

    /// What a partition has of a batch in memory.
    fn part(&self, at: usize, partition: usize) -> Option<RecordBatch> {
        let batch = self.batches.get(at)?;
        if self.partitions == 1 {
            return Some(batch.clone());
        }
        if self.batches.len() >= FEW_BATCHES * self.partitions {
            return (at % self.partitions == partition).then(|| batch.clone());
        }
        let place = |part: usize| batch.num_rows() * part / self.partitions;
        let (start, end) = (place(partition), place(partition + 1));
        (start < end).then(|| batch.slice(start, end - start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{AsArray, Int64Array};
    use datafusion::arrow::datatypes::Int64Type;
    use datafusion::execution::memory_pool::GreedyMemoryPool;
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;

    fn batch(values: std::ops::Range<i64>) -> RecordBatch {
        RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from_iter_values(values)) as _)]).unwrap()
    }

    fn context(memory: usize) -> TaskContext {
        let pool = Arc::new(GreedyMemoryPool::new(memory));
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap();
        TaskContext::default().with_runtime(runtime)
    }

    /// All rows, as two readers of all partitions have them.
    async fn rows_of(kept: Materializing, partitions: usize) -> Vec<i64> {
        let kept = Arc::new(kept.finish().unwrap());
        let mut all = [Vec::new(), Vec::new()];
        for rows in &mut all {
            for partition in 0..partitions {
                let read: Vec<_> = Arc::clone(&kept).read(partition).try_collect().await.unwrap();
                for batch in read {
                    rows.extend(batch.column(0).as_primitive::<Int64Type>().values().iter().copied());
                }
            }
            rows.sort_unstable();
        }
        let [one, other] = all;
        assert_eq!(one, other);
        one
    }

    #[tokio::test]
    async fn every_row_is_in_one_partition() {
        for (batches, partitions) in [(0, 2), (1, 3), (7, 2), (100, 3), (5, 1)] {
            let context = context(1 << 20);
            let metrics = ExecutionPlanMetricsSet::new();
            let mut kept = Materializing::new(batch(0..1).schema(), partitions, &context, &metrics);
            for at in 0..batches {
                kept.add(batch(at * 10..at * 10 + 10)).unwrap();
            }
            assert_eq!(rows_of(kept, partitions).await, (0..batches * 10).collect::<Vec<_>>());
        }
    }

    #[tokio::test]
    async fn what_memory_does_not_hold_goes_to_files() {
        let context = context(6 << 20);
        let metrics = ExecutionPlanMetricsSet::new();
        let mut kept = Materializing::new(batch(0..1).schema(), 2, &context, &metrics);
        for at in 0..200 {
            kept.add(batch(at * 10_000..at * 10_000 + 10_000)).unwrap();
        }
        assert_eq!(kept.writers.len(), 2);
        assert_eq!(kept.rows.memory.size(), 0);
        assert_eq!(rows_of(kept, 2).await, (0..2_000_000).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn parts_of_one_batch_count_once() {
        let context = context(PART_OF_MEMORY * (4 << 20));
        let metrics = ExecutionPlanMetricsSet::new();
        let mut kept = Materializing::new(batch(0..1).schema(), 2, &context, &metrics);
        let whole = batch(0..400_000);
        for at in 0..10 {
            kept.add(whole.slice(at * 40_000, 40_000)).unwrap();
        }
        assert!(kept.rows.files.is_empty());
        assert_eq!(rows_of(kept, 2).await.len(), 400_000);
    }
}
