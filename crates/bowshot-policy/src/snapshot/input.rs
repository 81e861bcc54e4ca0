//! The rows that a client sends along with a statement: a table of that statement alone, read while they come. A plan that scans it
//! once keeps nothing; for more than one scan the rows are kept, counted as memory of the query. Rows are read from the socket
//! only when a scan wants them, so that a client that sends faster waits.

use bowshot_api::{BatchStream, Error, ErrorKind, Input, Result};
use bowshot_kernels::nan::rows_with_one_nan;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::config::{ConfigNonZeroUsize, ConfigOptions};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use futures::StreamExt;
use parking_lot::Mutex;
use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker, ready};

/// Names of columns that begin so are those of statements that change tables.
const RESERVED: &str = "__bowshot";
/// Notes on fields that mean something to the engine, and that no client can make.
const NOTES: &str = "bowshot:";

/// The input stream of one statement as a table.
#[derive(Debug)]
pub struct StreamedTable {
    name: String,
    schema: SchemaRef,
    ordered: bool,
    batch_rows: Option<NonZeroUsize>,
    scans: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// `None` when they have ended.
    rows: Option<BatchStream>,
    /// Why there are no more: what each scan is told, whichever asks first.
    failed: Option<Error>,
    /// Batches that came.
    batches: usize,
    /// Rows of them all, and of the last one.
    count: u64,
    last: u64,
    kept: Option<Kept>,
    waiting: Arc<Waiting>,
}

/// What has come, for scans that are behind.
#[derive(Debug)]
struct Kept {
    batches: Vec<RecordBatch>,
    memory: MemoryReservation,
}

impl StreamedTable {
    /// A table of rows that will come.
    ///
    /// # Errors
    /// `Invalid` for columns that no statement could tell from one another.
    pub fn new(input: Input) -> Result<Arc<Self>> {
        let Input { name, ordered, batch_rows, rows } = input;
        let schema = Arc::new(columns(&name, &rows.schema())?);
        let state = Mutex::new(State {
            rows: Some(rows),
            failed: None,
            batches: 0,
            count: 0,
            last: 0,
            kept: None,
            waiting: Arc::default(),
        });
        Ok(Arc::new(Self { name, schema, ordered, batch_rows, scans: AtomicUsize::new(0), state }))
    }

    /// What the statement calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// What the client has chosen of how its statement runs.
    pub fn choose(&self, options: &mut ConfigOptions) {
        if self.ordered {
            options.execution.target_partitions = 1;
        }
        if let Some(Ok(rows)) = self.batch_rows.map(|rows| ConfigNonZeroUsize::try_new(rows.get())) {
            options.execution.batch_size = rows;
        }
    }

    /// Another scan reads it, or one of them is gone.
    pub fn counts_scan(&self, is_there: bool) {
        if is_there {
            self.scans.fetch_add(1, Ordering::Relaxed);
        } else {
            self.scans.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The batch of a number, for whoever has read those before it. How many scans there are is asked at the first batch: all
    /// of them are part of the plan then.
    pub fn poll_batch(
        &self,
        number: usize,
        pool: &Arc<dyn MemoryPool>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<RecordBatch>>> {
        let mut state = self.state.lock();
        if state.batches == 0 && state.kept.is_none() && self.scans.load(Ordering::Relaxed) > 1 {
            let memory = MemoryConsumer::new("rows of the client").register(pool);
            state.kept = Some(Kept { batches: Vec::new(), memory });
        }
        if number < state.batches {
            let kept = state.kept.as_ref().and_then(|kept| kept.batches.get(number).cloned());
            return Poll::Ready(Some(kept.ok_or_else(|| self.read_already())));
        }
        if let Some(failed) = &state.failed {
            return Poll::Ready(Some(Err(failed.duplicate())));
        }
        let next = ready!(state.poll_next(context));
        Poll::Ready(next.map(|batch| match batch.and_then(|batch| state.takes(batch)) {
            Ok(batch) => Ok(batch),
            Err(error) => {
                let error = self.after(error, state.count);
                (state.rows, state.failed) = (None, Some(error.duplicate()));
                Err(error)
            }
        }))
    }

    /// An error of the rows themselves, with how many had come.
    fn after(&self, error: Error, rows: u64) -> Error {
        let message = format!("{}, after row {rows} of `{}`", error.message(), self.name);
        error.with_message(message)
    }

    /// An error of the statement, with the rows that were at work if that is known: those that came last, unless all have come
    /// or several scans read them.
    pub fn located(&self, error: Error) -> Error {
        let state = self.state.lock();
        let known = self.ordered && state.rows.is_some() && state.kept.is_none() && state.last > 0;
        if !known || error.kind() != ErrorKind::Invalid {
            return error;
        }
        let (first, last) = (state.count - state.last + 1, state.count);
        let rows = if first == last { format!("row {first}") } else { format!("rows {first} to {last}") };
        let message = format!("{}, at {rows} of `{}`", error.message(), self.name);
        error.with_message(message)
    }

    fn read_already(&self) -> Error {
        Error::unsupported(format!("the plan reads `{}` again after it has gone", self.name))
            .with_hint("write the rows into a temporary table first, and read that")
    }
}

impl State {
    /// The next batch from the client. Everybody who waits is woken when it has come.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        let Some(rows) = &mut self.rows else { return Poll::Ready(None) };
        self.waiting.add(context.waker());
        let waker = Waker::from(Arc::clone(&self.waiting));
        let next = ready!(rows.poll_next_unpin(&mut Context::from_waker(&waker)));
        self.waiting.wake_all();
        if next.is_none() {
            self.rows = None;
        }
        Poll::Ready(next)
    }

    fn takes(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let batch = rows_with_one_nan(batch)
            .map_err(|error| Error::internal("a batch cannot be rebuilt").with_source(error))?;
        if let Some(kept) = &mut self.kept {
            kept.memory.try_grow(batch.get_array_memory_size()).map_err(out_of_memory)?;
            kept.batches.push(batch.clone());
        }
        self.batches += 1;
        self.last = batch.num_rows() as u64;
        self.count += self.last;
        Ok(batch)
    }
}

fn out_of_memory(error: DataFusionError) -> Error {
    Error::new(ErrorKind::LimitReached, "the rows of the client exceed the memory of the query")
        .with_hint("read fewer rows, or raise `limits.query_memory_bytes` in the configuration")
        .with_source(error)
}

/// The scans that wait for the next batch. A stream knows its last waker only.
#[derive(Debug, Default)]
struct Waiting(Mutex<Vec<Waker>>);

impl Waiting {
    fn add(&self, waker: &Waker) {
        let mut waiting = self.0.lock();
        if !waiting.iter().any(|other| other.will_wake(waker)) {
            waiting.push(waker.clone());
        }
    }

    fn wake_all(&self) {
        let waiting = std::mem::take(&mut *self.0.lock());
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }
}

/// The columns of the table. What a client says of its fields stays, but for what only the engine may say.
fn columns(table: &str, sent: &Schema) -> Result<Schema> {
    let mut names = HashSet::new();
    let mut fields = Vec::with_capacity(sent.fields().len());
    for field in sent.fields() {
        let name = field.name();
        if !names.insert(name.as_str()) {
            return Err(Error::invalid(format!("`{table}` has two columns `{name}`"))
                .with_hint("give each column a name of its own"));
        }
        if name.starts_with(RESERVED) {
            return Err(Error::invalid(format!("the column name `{name}` of `{table}` is reserved"))
                .with_hint("rename the column"));
        }
        let notes = field.metadata().iter().filter(|(key, _)| !key.starts_with(NOTES));
        let notes = notes.map(|(key, value)| (key.clone(), value.clone())).collect();
        fields.push(Field::clone(field).with_metadata(notes));
    }
    if fields.is_empty() {
        return Err(Error::invalid(format!("`{table}` has no columns"))
            .with_hint("send the schema of the rows with at least one column"));
    }
    Ok(Schema::new(fields))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::Int64Array;
    use datafusion::arrow::datatypes::DataType;
    use datafusion::execution::memory_pool::{GreedyMemoryPool, UnboundedMemoryPool};

    fn batch(values: &[i64]) -> RecordBatch {
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
        RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from(values.to_vec()))]).unwrap()
    }

    fn table(batches: Vec<Result<RecordBatch>>) -> Arc<StreamedTable> {
        let rows = BatchStream::new(batch(&[]).schema(), futures::stream::iter(batches).boxed());
        StreamedTable::new(Input { name: "input".to_owned(), ordered: true, batch_rows: None, rows }).unwrap()
    }

    fn read(table: &StreamedTable, number: usize, pool: &Arc<dyn MemoryPool>) -> Option<Result<usize>> {
        let mut context = Context::from_waker(Waker::noop());
        match table.poll_batch(number, pool, &mut context) {
            Poll::Ready(batch) => batch.map(|batch| batch.map(|batch| batch.num_rows())),
            Poll::Pending => panic!("nothing here waits"),
        }
    }

    #[test]
    fn one_scan_reads_what_comes_once() {
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let table = table(vec![Ok(batch(&[1, 2])), Ok(batch(&[3]))]);
        table.counts_scan(true);
        assert_eq!(read(&table, 0, &pool).unwrap().unwrap(), 2);
        let located = table.located(Error::invalid("no number"));
        assert_eq!(located.message(), "no number, at rows 1 to 2 of `input`");
        assert_eq!(read(&table, 1, &pool).unwrap().unwrap(), 1);
        assert_eq!(table.located(Error::invalid("x")).message(), "x, at row 3 of `input`");
        assert_eq!(read(&table, 0, &pool).unwrap().unwrap_err().kind(), ErrorKind::Unsupported);
        assert!(read(&table, 2, &pool).is_none());
        assert_eq!(table.located(Error::invalid("x")).message(), "x", "all rows have come");
    }

    #[test]
    fn several_scans_share_what_has_come_within_the_memory_of_the_query() {
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let shared = table(vec![Ok(batch(&[1, 2])), Ok(batch(&[3]))]);
        shared.counts_scan(true);
        shared.counts_scan(true);
        for number in [0, 0, 1, 1, 0] {
            assert!(read(&shared, number, &pool).unwrap().is_ok());
        }
        assert!(read(&shared, 2, &pool).is_none() && read(&shared, 2, &pool).is_none());
        let small: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(10));
        let large = table(vec![Ok(batch(&[0; 100]))]);
        large.counts_scan(true);
        large.counts_scan(true);
        let error = read(&large, 0, &small).unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitReached);
        assert!(error.message().ends_with(", after row 0 of `input`"), "{error}");
        let other = read(&large, 0, &small).unwrap().unwrap_err();
        assert_eq!((other.kind(), other.message()), (error.kind(), error.message()), "no scan says less");
    }

    #[test]
    fn an_error_of_the_rows_says_how_many_came_and_stays() {
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let table = table(vec![Ok(batch(&[1, 2])), Err(Error::invalid("broken"))]);
        assert!(read(&table, 0, &pool).unwrap().is_ok());
        assert_eq!(read(&table, 1, &pool).unwrap().unwrap_err().message(), "broken, after row 2 of `input`");
        assert_eq!(read(&table, 1, &pool).unwrap().unwrap_err().message(), "broken, after row 2 of `input`");
    }

    #[test]
    fn columns_that_nobody_could_name_are_refused() {
        let field = |name: &str| Field::new(name, DataType::Int64, true);
        for (fields, expected) in [
            (vec![field("a"), field("a")], "`input` has two columns `a`"),
            (vec![field("__bowshot_row")], "the column name `__bowshot_row` of `input` is reserved"),
            (vec![], "`input` has no columns"),
        ] {
            assert_eq!(columns("input", &Schema::new(fields)).unwrap_err().message(), expected);
        }
        let noted = field("a").with_metadata(
            [("bowshot:type", "json"), ("mine", "kept")].map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        );
        let columns = columns("input", &Schema::new(vec![noted])).unwrap();
        assert_eq!(columns.field(0).metadata().keys().collect::<Vec<_>>(), ["mine"]);
    }
}
