//! Runs one file on both sides and compares what came out, record by record.

use super::corpus::{TestFile, sql};
use super::local::Local;
use super::wire::Wire;
use datafusion::error::DataFusionError;
use datafusion_sqllogictest::{
    DFColumnType, DFOutput, DFSqlLogicTestError, df_value_validator, value_normalizer,
};
use parking_lot::Mutex;
use sqllogictest::{
    AsyncDB, DBOutput, MakeConnection, QueryExpect, Record, Runner, SortMode, strict_column_validator,
};
use std::sync::Arc;
use std::time::Duration;

/// Longest time that one record may take on the wire before it counts as different.
const RECORD_TIMEOUT: Duration = Duration::from_secs(180);

/// Marks parts of the expected text that change from run to run.
const IGNORED: &str = "<slt:ignore>";

/// How often a record with such parts runs until both sides give what the corpus expects. Some of these texts depend on
/// which partition comes first, such as how many thousand rows one of four that share 1 MB spills, in plain DataFusion
/// too.
const VOLATILE_RUNS: usize = 3;

/// Why a statement failed, as text.
#[derive(Debug, Clone)]
pub struct Failure(pub String);

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl From<DataFusionError> for Failure {
    fn from(error: DataFusionError) -> Self {
        Self(format!("DataFusion error: {}", error.strip_backtrace()))
    }
}

impl From<DFSqlLogicTestError> for Failure {
    fn from(error: DFSqlLogicTestError) -> Self {
        Self(error.to_string())
    }
}

/// What one statement gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Rows, in the sort mode of the record.
    Rows {
        types: String,
        rows: Vec<Vec<String>>,
    },
    /// It ran and returned nothing.
    Done,
    Failed(String),
}

/// Where a side leaves the outcome of its last statement; the runner keeps only its verdict.
#[derive(Clone, Default)]
pub struct Observed(Arc<Mutex<Option<Outcome>>>);

impl Observed {
    pub fn put(&self, outcome: &Result<DFOutput, Failure>) {
        let outcome = match outcome {
            Ok(DBOutput::Rows { types, rows }) => {
                let types = types.iter().map(sqllogictest::ColumnType::to_char).collect();
                Outcome::Rows { types, rows: rows.clone() }
            }
            Ok(_) => Outcome::Done,
            Err(failure) => Outcome::Failed(failure.0.clone()),
        };
        *self.0.lock() = Some(outcome);
    }

    fn take(&self) -> Option<Outcome> {
        self.0.lock().take()
    }
}

/// One record that came out differently.
#[derive(Debug)]
pub struct Difference {
    /// Place in the corpus.
    pub location: String,
    pub sql: String,
    /// What plain DataFusion gave.
    pub local: Outcome,
    /// What the server gave.
    pub wire: Outcome,
}

/// Counts of one file.
#[derive(Debug, Default)]
pub struct FileResult {
    pub name: String,
    /// Records that ran.
    pub records: usize,
    /// Records with the same outcome on both sides.
    pub identical: usize,
    /// Of those, records that failed on both sides.
    pub failed_on_both: usize,
    /// Records whose outcome in process is what the corpus expects.
    pub local_as_expected: usize,
    /// Records whose outcome on the wire is what the corpus expects, error texts included.
    pub wire_as_expected: usize,
    /// The others.
    pub differences: Vec<Difference>,
}

/// Runs a file in a fresh session on each side.
pub async fn run(file: &TestFile, address: &str) -> FileResult {
    let (local_seen, wire_seen) = (Observed::default(), Observed::default());
    let mut local = runner(|| async { Ok(Local::new(local_seen.clone())) });
    let mut wire = runner(|| Wire::connect(address.to_owned(), wire_seen.clone()));
    let mut result = FileResult { name: file.name.clone(), ..FileResult::default() };
    let mut sort_mode = None;
    for record in &file.records {
        if let Record::Halt { .. } = record {
            break;
        }
        if let Record::Control(sqllogictest::Control::SortMode(mode)) = record {
            sort_mode = Some(*mode);
        }
        let runs = if is_volatile(record) { VOLATILE_RUNS } else { 1 };
        let mut sides = None;
        for _ in 0..runs {
            let local_expected = local.run_async(record.clone()).await.is_ok();
            let on_wire = tokio::time::timeout(RECORD_TIMEOUT, wire.run_async(record.clone())).await;
            let wire_expected = on_wire.as_ref().is_ok_and(Result::is_ok);
            sides = Sides::of(local_seen.take(), local_expected, wire_seen.take(), wire_expected);
            if local_expected && wire_expected {
                break;
            }
        }
        if let Some(sides) = sides {
            result.count(record, sort_mode, sides);
        }
    }
    local.shutdown_async().await;
    wire.shutdown_async().await;
    result
}

struct Sides {
    local: Outcome,
    local_expected: bool,
    wire: Outcome,
    wire_expected: bool,
}

impl Sides {
    /// `None` when the record ran nothing in process.
    fn of(
        local: Option<Outcome>,
        local_expected: bool,
        wire: Option<Outcome>,
        wire_expected: bool,
    ) -> Option<Self> {
        let missing = || Outcome::Failed("no answer: connection failed or time ran out".to_owned());
        Some(Self { local: local?, local_expected, wire: wire.unwrap_or_else(missing), wire_expected })
    }
}

fn runner<D, M>(connect: M) -> Runner<D, M>
where
    D: AsyncDB<ColumnType = DFColumnType>,
    M: MakeConnection<Conn = D>,
{
    let mut runner = Runner::new(connect);
    runner.add_label("DataFusion");
    runner.with_column_validator(strict_column_validator);
    runner.with_normalizer(value_normalizer);
    runner.with_validator(df_value_validator);
    runner
}

impl FileResult {
    fn count(&mut self, record: &Record<DFColumnType>, default_sort: Option<SortMode>, sides: Sides) {
        self.records += 1;
        self.local_as_expected += usize::from(sides.local_expected);
        self.wire_as_expected += usize::from(sides.wire_expected);
        let sort = sort_mode(record).or(default_sort);
        let (local, wire) = (sorted(sides.local, sort), sorted(sides.wire, sort));
        let volatile = is_volatile(record) && sides.local_expected && sides.wire_expected;
        if volatile || same(record, &local, &wire) {
            self.identical += 1;
            self.failed_on_both += usize::from(matches!(local, Outcome::Failed(_)));
            return;
        }
        let (location, sql) = (location(record), sql(record).unwrap_or_default().to_owned());
        self.differences.push(Difference { location, sql, local, wire });
    }
}

/// A `statement` asks for success or failure only; a `query` for rows and types too. Errors are compared by being
/// errors: their words are the server's own.
fn same(record: &Record<DFColumnType>, local: &Outcome, wire: &Outcome) -> bool {
    match (local, wire) {
        (Outcome::Failed(_), Outcome::Failed(_)) => true,
        (Outcome::Failed(_), _) | (_, Outcome::Failed(_)) => false,
        _ if matches!(record, Record::Statement { .. }) => true,
        (local, wire) => local == wire,
    }
}

/// Whether the corpus itself says that parts of the text change from run to run.
fn is_volatile(record: &Record<DFColumnType>) -> bool {
    match record {
        Record::Query { expected: QueryExpect::Results { results, .. }, .. } => {
            results.iter().any(|line| line.contains(IGNORED))
        }
        _ => false,
    }
}

fn sort_mode(record: &Record<DFColumnType>) -> Option<SortMode> {
    match record {
        Record::Query { expected: QueryExpect::Results { sort_mode, .. }, .. } => *sort_mode,
        _ => None,
    }
}

fn sorted(outcome: Outcome, mode: Option<SortMode>) -> Outcome {
    let Outcome::Rows { types, mut rows } = outcome else { return outcome };
    match mode {
        None | Some(SortMode::NoSort) => {}
        Some(SortMode::RowSort) => rows.sort_unstable(),
        Some(SortMode::ValueSort) => {
            rows = rows.into_iter().flatten().map(|value| vec![value]).collect();
            rows.sort_unstable();
        }
    }
    Outcome::Rows { types, rows }
}

fn location(record: &Record<DFColumnType>) -> String {
    match record {
        Record::Statement { loc, .. } | Record::Query { loc, .. } | Record::Let { loc, .. } => {
            let file = loc.file();
            let name = file.rsplit_once("test_files/").map_or(file, |(_, name)| name);
            format!("{name}:{}", loc.line())
        }
        _ => String::new(),
    }
}
