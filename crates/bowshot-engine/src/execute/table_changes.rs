//! Changes of a table of this server as a stream, commit by commit: the rows that one state has more than the one before
//! ([`row_balance`]). Waiting for the next commit holds nothing of the table.

use crate::execute::row_balance::{self, BALANCE};
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_formats::table_version::AsOf;
use bowshot_query_task::run_blocking;
use bowshot_tables::durable::Version;
use bowshot_tables::{Definition, Entry, EntryName, Table, TableStore};
use bowshot_types::storage_type;
use datafusion::arrow::array::{
    Array, ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray, UInt64Array,
};
use datafusion::arrow::compute::take_arrays;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::cast::as_int64_array;
use datafusion::common::{Column, TableReference, internal_datafusion_err};
use datafusion::datasource::provider_as_source;
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::physical_plan::execute_stream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::{StreamExt, stream};
use std::collections::VecDeque;
use std::iter::repeat_n;
use std::sync::Arc;
use std::time::Duration;

/// How often whoever follows a table looks for commits.
const PAUSE: Duration = Duration::from_millis(100);
/// Rows of a batch of rows that came or went several times.
const BATCH_ROWS: usize = 8192;
/// What [`Version::operation`] is of a commit that moved rows alone.
const MOVES: &str = "OPTIMIZE";

/// Says whether rows of a state with this definition may be shown.
pub(crate) type MayRead = dyn Fn(&Definition) -> Result<()> + Send + Sync;

/// The changes of one table, commit by commit.
pub(crate) struct OwnChanges {
    pub(crate) name: EntryName,
    /// The table as it is now, without its rows.
    pub(crate) table: Arc<Table>,
    pub(crate) store: Arc<TableStore>,
    pub(crate) session: SessionState,
    /// The first version.
    pub(crate) from: u64,
    /// The version before which they end; `None` for changes that are followed.
    pub(crate) end: Option<u64>,
    pub(crate) may_read: Box<MayRead>,
    /// The columns of the table, and those of changes.
    pub(crate) schema: SchemaRef,
}

bowshot_api::debug_fields!(OwnChanges { name, from, end });

/// The partition that a scan reads.
#[derive(Debug)]
struct Commits(Arc<OwnChanges>);

/// How far a reader is.
struct Walk {
    changes: Arc<OwnChanges>,
    /// The first version that was not looked for.
    next: u64,
    waiting: VecDeque<Version>,
    /// The state that the last commit has left, while there are more.
    last: Option<Arc<Table>>,
    rows: Option<CommitRows>,
}

/// The changes of one commit.
struct CommitRows {
    commit: Version,
    rows: SendableRecordBatchStream,
    batch: Option<Counted>,
}

/// Rows, and how often each came or, below zero, went.
struct Counted {
    columns: Vec<ArrayRef>,
    counts: Int64Array,
    /// The row that is next, and how often it was given.
    row: usize,
    given: u64,
}

/// Two states of a table, by the rows that differ.
struct Step {
    after: Arc<Table>,
    came: Table,
    went: Table,
}

impl OwnChanges {
    /// As a table for DataFusion.
    ///
    /// # Errors
    /// When DataFusion does not take the columns.
    pub(crate) fn provider(self) -> DataFusionResult<Arc<dyn TableProvider>> {
        let (schema, is_endless) = (SchemaRef::clone(&self.schema), self.end.is_none());
        let table = StreamingTable::try_new(schema, vec![Arc::new(Commits(Arc::new(self)))])?;
        Ok(Arc::new(table.with_infinite_table(is_endless)))
    }

    /// The version before which changes can be read now.
    fn known_end(&self) -> Result<u64> {
        if let Some(end) = self.end {
            return Ok(end);
        }
        match self.store.snapshot().entry(&self.name) {
            Some(Entry::Table(table)) if table.id() == self.table.id() => Ok(table.version() + 1),
            _ => {
                let message =
                    format!("`{}` was dropped or renamed while its changes were followed", self.name);
                Err(Error::new(ErrorKind::Conflict, message)
                    .with_hint("query its changes under its current name"))
            }
        }
    }

    /// What a commit did. Blocks.
    fn step(&self, version: u64, last: Option<Arc<Table>>) -> Result<Step> {
        let at = |table: &Table, version| self.store.table_as_of(table, AsOf::Version(version)).map(Arc::new);
        let last = match last.filter(|last| last.version() + 1 == version) {
            None if version > 0 => Some(at(&self.table, version - 1)?),
            last => last,
        };
        let after = at(last.as_deref().unwrap_or(&self.table), version)?;
        let before = last.unwrap_or_else(|| Arc::new(after.without_rows()));
        self.check(&before)?;
        self.check(&after)?;
        let (came, went) = (after.beyond(&before), before.beyond(&after));
        Ok(Step { after, came, went })
    }

    fn check(&self, state: &Table) -> Result<()> {
        (self.may_read)(state.definition().as_ref())?;
        if state.schema() == self.table.schema() {
            return Ok(());
        }
        let message = format!("`{}` had different columns in version {}", self.name, state.version());
        Err(Error::unsupported(message)
            .with_hint("query versions with the current columns, or the rows of one version"))
    }

    /// The rows of a commit, each with [`BALANCE`] as its last column; `None` where there are none.
    fn plan(&self, came: Table, went: Table) -> DataFusionResult<Option<LogicalPlan>> {
        let name = &self.name;
        let name = TableReference::full(name.catalog.as_str(), name.schema.as_str(), name.name.as_str());
        let (came_rows, went_rows) = (came.rows(), went.rows());
        let scan = |table: Table| {
            let (definition, provider) = (Arc::clone(table.definition()), Arc::new(table).provider());
            let rows = storage_type::as_declared(provider, &definition, name.clone())?;
            LogicalPlanBuilder::scan(name.clone(), provider_as_source(rows), None)?.build()
        };
        Ok(Some(match (came_rows, went_rows) {
            (0, 0) => return Ok(None),
            (_, 0) => row_balance::counted(scan(came)?, 1, BALANCE)?,
            (0, _) => row_balance::counted(scan(went)?, -1, BALANCE)?,
            _ => {
                let rows = row_balance::balanced(scan(came)?, scan(went)?)?;
                let balance = Expr::Column(Column::from_name(BALANCE));
                LogicalPlanBuilder::from(rows).filter(balance.not_eq(lit(0_i64)))?.build()?
            }
        }))
    }
}

impl PartitionStream for Commits {
    fn schema(&self) -> &SchemaRef {
        &self.0.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let changes = Arc::clone(&self.0);
        let next = changes.from;
        let walk = Walk { changes, next, waiting: VecDeque::new(), last: None, rows: None };
        let batches = stream::try_unfold(walk, |mut walk| async move {
            let batch = walk.next_batch().await?;
            Ok(batch.map(|batch| (batch, walk)))
        });
        Box::pin(RecordBatchStreamAdapter::new(SchemaRef::clone(&self.0.schema), batches))
    }
}

impl Walk {
    async fn next_batch(&mut self) -> DataFusionResult<Option<RecordBatch>> {
        loop {
            if let Some(rows) = &mut self.rows {
                match rows.next_batch(&self.changes.schema).await? {
                    Some(batch) => return Ok(Some(batch)),
                    None => self.rows = None,
                }
            }
            if let Some(commit) = self.waiting.pop_front() {
                self.rows = Box::pin(self.start(commit)).await?;
            } else if !self.look().await? {
                return Ok(None);
            }
        }
    }

    /// Looks for more commits, and waits for them where they are followed; `false` at the end.
    async fn look(&mut self) -> DataFusionResult<bool> {
        let changes = Arc::clone(&self.changes);
        let end = loop {
            let end = changes.known_end().map_err(external)?;
            if self.next < end {
                break end;
            }
            if changes.end.is_some() {
                return Ok(false);
            }
            self.last = None;
            tokio::time::sleep(PAUSE).await;
        };
        let next = self.next;
        let found = run_blocking(|| changes.store.history_of(changes.table.id(), next));
        let found = found.map_err(|error| external(error.into()))?;
        let oldest = found.first().map_or(end, |commit| commit.version);
        if oldest != next {
            return Err(external(missing_version(&changes.name, next, oldest)));
        }
        self.waiting = found.into_iter().take_while(|commit| commit.version < end).collect();
        self.next = end;
        Ok(true)
    }

    /// Starts to read the changes of a commit, if it has any.
    async fn start(&mut self, commit: Version) -> DataFusionResult<Option<CommitRows>> {
        if commit.operation == MOVES {
            return Ok(None);
        }
        let (changes, last) = (Arc::clone(&self.changes), self.last.take());
        let step = run_blocking(|| changes.step(commit.version, last));
        let Step { after, came, went } = step.map_err(external)?;
        self.last = Some(after);
        let Some(plan) = changes.plan(came, went)? else { return Ok(None) };
        let physical = changes.session.create_physical_plan(&plan).await?;
        // Not in the context of the statement: what is followed goes out in batches of any size, and files are not read so.
        let rows = execute_stream(physical, Arc::new(TaskContext::from(&changes.session)))?;
        Ok(Some(CommitRows { commit, rows, batch: None }))
    }
}

impl CommitRows {
    async fn next_batch(&mut self, schema: &SchemaRef) -> DataFusionResult<Option<RecordBatch>> {
        loop {
            if let Some((mut columns, kinds)) = self.batch.as_mut().map(Counted::take).transpose()?.flatten()
            {
                let (rows, commit) = (kinds.len(), &self.commit);
                let version = Int64Array::from_value(commit.version.cast_signed(), rows);
                let time = TimestampMicrosecondArray::from_value(commit.committed.timestamp_micros(), rows);
                columns.push(Arc::new(kinds));
                columns.push(Arc::new(version));
                columns.push(Arc::new(time.with_timezone("UTC")));
                return Ok(Some(RecordBatch::try_new(SchemaRef::clone(schema), columns)?));
            }
            match self.rows.next().await {
                Some(rows) => self.batch = Some(Counted::new(&rows?)?),
                None => return Ok(None),
            }
        }
    }
}

impl Counted {
    fn new(rows: &RecordBatch) -> DataFusionResult<Self> {
        let lacking = || internal_datafusion_err!("changes are not counted");
        let (counts, columns) = rows.columns().split_last().ok_or_else(lacking)?;
        let counts = as_int64_array(counts)?.clone();
        Ok(Self { columns: columns.to_vec(), counts, row: 0, given: 0 })
    }

    /// The next rows, each as often as it came or went, and what was done to each; `None` after the last ones.
    fn take(&mut self) -> DataFusionResult<Option<(Vec<ArrayRef>, StringArray)>> {
        let counts = &self.counts;
        let first = counts.values().first().copied().filter(|first| self.row == 0 && first.abs() == 1);
        if let Some(first) = first.filter(|first| counts.values().iter().all(|count| count == first)) {
            self.row = counts.len();
            let kinds = StringArray::from_iter_values(repeat_n(kind(first), self.row));
            return Ok(Some((self.columns.clone(), kinds)));
        }
        let mut places = Vec::new();
        while places.len() < BATCH_ROWS && self.row < counts.len() {
            let left = counts.value(self.row).unsigned_abs() - self.given;
            let taken = left.min((BATCH_ROWS - places.len()) as u64);
            places.extend(repeat_n(self.row, taken as usize));
            (self.row, self.given) =
                if taken == left { (self.row + 1, 0) } else { (self.row, self.given + taken) };
        }
        if places.is_empty() {
            return Ok(None);
        }
        let kinds = StringArray::from_iter_values(places.iter().map(|place| kind(counts.value(*place))));
        let places: UInt64Array = places.into_iter().map(|place| place as u64).collect();
        Ok(Some((take_arrays(&self.columns, &places, None)?, kinds)))
    }
}

fn kind(count: i64) -> &'static str {
    if count > 0 { "insert" } else { "delete" }
}

/// The error for changes of a version that are not known any more.
pub(crate) fn missing_version(name: &EntryName, version: u64, oldest: u64) -> Error {
    let next = oldest.saturating_add(1);
    Error::not_found(format!(
        "the changes of version {version} of `{name}` have been removed: the oldest version is {oldest}"
    ))
    .with_hint(format!("read its rows `FOR VERSION AS OF {oldest}`, and the changes from version {next} on"))
}

fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_given_as_often_as_they_came_or_went() {
        let given = |counts: &[i64]| {
            let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from_iter_values(0..counts.len() as i64))];
            let counts = Int64Array::from(counts.to_vec());
            let (mut counted, mut all) = (Counted { columns, counts, row: 0, given: 0 }, Vec::new());
            while let Some((columns, kinds)) = counted.take().unwrap() {
                assert!(kinds.len() <= BATCH_ROWS);
                let rows = as_int64_array(&columns[0]).unwrap().values().to_vec();
                all.extend(rows.into_iter().zip(kinds.iter().map(|kind| kind == Some("insert"))));
            }
            all
        };
        assert_eq!(given(&[]), []);
        assert_eq!(given(&[-1, -1]), [(0, false), (1, false)]);
        assert_eq!(given(&[2, -1, 1]), [(0, true), (0, true), (1, false), (2, true)]);
        let many = given(&[20_000, -3]);
        assert_eq!((many.len(), many[19_999], many[20_000]), (20_003, (0, true), (1, false)));
    }
}
