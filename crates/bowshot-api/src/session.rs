//! The [`Session`] trait: statements, results, options, prepared statements, transactions, metadata.

use crate::{
    BatchStream, ByteStream, Error, Ingest, Input, Layout, OptionValue, PrimaryKey, Principal, QueryId,
    Result, SavepointId, SessionId, StatementId, TableEntry, TableFilter, TableName, TensorExchange,
    TransactionEnd, TransactionId,
};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use std::sync::Arc;
use std::time::SystemTime;

/// The statement to run.
#[derive(Debug, Clone)]
pub enum Statement {
    /// SQL text in the session's dialect; exactly one statement.
    Sql(String),
    Substrait(SubstraitPlan),
    /// A statement that [`Session::prepare`] returned, with the parameters bound last.
    Prepared(StatementId),
}

/// A plan as [Substrait](https://substrait.io) writes it down.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SubstraitPlan {
    /// The serialised message `substrait.Plan`.
    pub plan: Vec<u8>,
    /// The Substrait version that the client states.
    pub version: String,
}

/// How many partitions the result should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoints {
    /// Exactly this many at most; fewer when the plan has fewer partitions. Ordered results always have one.
    Exactly(usize),
    /// As many as the plan runs in parallel, one when the rows have an order.
    Auto,
}

/// When and how often the batches of a result are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// Each partition is read once, while the query runs; a slow reader slows the query.
    Stream,
    /// The query runs to its end without readers; partitions can be read repeatedly until the result expires. Batches
    /// that exceed the buffer are spilled to disk.
    Spool,
}

/// A statement with everything that decides how it runs. `None` fields take the session's options.
#[derive(Debug, Clone)]
pub struct Request {
    pub statement: Statement,
    /// Number of partitions.
    pub endpoints: Option<Endpoints>,
    /// Streaming or spooled.
    pub delivery: Option<Delivery>,
    /// The transaction of the statement. `None`: the session's current transaction, else one of its own.
    pub transaction: Option<TransactionId>,
    /// Whether the client can read partitions from other cluster nodes, at [`Answer::locations`].
    pub elsewhere: bool,
    /// Whether a statement without rows returns one row, [`STATUS_RESULT`], in dialect `mysql`.
    pub status_row: bool,
    /// Whether the caller reads [`Answer::batches`].
    pub at_once: bool,
}

/// The column, with the text `0`, that a successful statement without rows returns to Flight SQL clients of MySQL's
/// dialect.
pub const STATUS_RESULT: &str = "StatusResult";

impl Request {
    /// SQL text with the session's own options.
    pub fn sql(text: impl Into<String>) -> Self {
        Self::of(Statement::Sql(text.into()))
    }

    /// A prepared statement with the session's own options.
    pub fn prepared(id: StatementId) -> Self {
        Self::of(Statement::Prepared(id))
    }

    /// A statement with the session's own options.
    pub fn of(statement: Statement) -> Self {
        Self {
            statement,
            endpoints: None,
            delivery: None,
            transaction: None,
            elsewhere: false,
            status_row: false,
            at_once: false,
        }
    }

    /// The same within a transaction.
    #[must_use]
    pub fn within(self, transaction: Option<TransactionId>) -> Self {
        Self { transaction, ..self }
    }
}

/// Schemas of a statement, from its plan.
#[derive(Debug, Clone)]
pub struct Description {
    /// Schema of the result in the session's layout; no fields for a statement without rows.
    pub schema: SchemaRef,
    /// One nullable field for each parameter, in order; the type is inferred from the plan, else `Utf8`.
    pub parameters: SchemaRef,
    /// Whether the statement acts instead of returning rows.
    pub is_update: bool,
    /// Whether the statement does nothing but read.
    pub reads_only: bool,
}

/// A prepared statement: stable id and description.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Valid within the session until it is closed.
    pub id: StatementId,
    /// Its schemas.
    pub description: Description,
}

/// A query that has been started.
#[derive(Debug, Clone)]
pub struct Answer {
    /// For attaching, cancelling, renewing and asking for progress.
    pub query: QueryId,
    /// Schema of every partition, in `layout`.
    pub schema: SchemaRef,
    /// Types and compression on the wire.
    pub layout: Layout,
    /// Number of partitions, at least one.
    pub partitions: usize,
    /// Whether reading the partitions in order gives the order that the statement asked for.
    pub ordered: bool,
    /// Number of rows, if known exactly.
    pub rows: Option<u64>,
    /// When a spooled result expires; `None` for results that are read once.
    pub expires: Option<SystemTime>,
    /// The location of each partition; empty if all are on this server.
    pub locations: Vec<Location>,
    /// All rows of a small result, for callers that asked for them: the statement has ended, and has no partition to attach to.
    pub batches: Option<Vec<RecordBatch>>,
}

/// The location of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// URI of the front end of the node that has the rows; `None` for the server that answered.
    pub uri: Option<String>,
    /// The signed ticket for [`Server::redeem`](crate::Server::redeem) of any node.
    pub voucher: Arc<[u8]>,
}

/// The effect of the last statement that changed rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastWrite {
    /// Rows with changed values; `None` if not counted. Only dialect `mysql` counts them.
    pub changed: Option<u64>,
    /// The first generated number of the statement.
    pub generated: Option<i64>,
    /// The last row's value in the auto-increment column.
    pub number: Option<i64>,
    pub notices: Vec<Notice>,
}

/// A notice of a statement: an ignored clause, or an effect that was there already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// CREATE INDEX has no effect.
    NoIndexes,
    /// A foreign key was declared.
    ForeignKeysNotEnforced,
    /// `IF EXISTS` of a missing object: kind and name.
    Missing(&'static str, String),
    /// `IF NOT EXISTS` of an existing object: kind and name.
    Exists(&'static str, String),
}

impl Notice {
    pub fn message(&self) -> String {
        match self {
            Self::NoIndexes => "the index has no effect: there are no indexes".to_owned(),
            Self::ForeignKeysNotEnforced => "foreign keys are stored and shown, but not enforced".to_owned(),
            Self::Missing(what, name) => format!("{what} `{name}` does not exist, skipping"),
            Self::Exists(what, name) => format!("{what} `{name}` already exists, skipping"),
        }
    }

    /// The next action.
    pub fn hint(&self) -> Option<&'static str> {
        matches!(self, Self::NoIndexes).then_some("scans skip what the statistics of a table rule out")
    }
}

/// The table column that a result column comes from, by its number in `pg_class`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnOrigin {
    pub table: u32,
    /// Position of the column, from 1.
    pub place: u16,
}

/// The session of one client, which has all of its mutable state.
#[async_trait]
pub trait Session: Send + Sync + std::fmt::Debug {
    /// The session's id.
    fn id(&self) -> SessionId;

    /// The owner of the session.
    fn principal(&self) -> &Principal;

    /// Splits a script into statements in the session's dialect, without empty ones.
    fn statements(&self, sql: &str) -> Vec<String> {
        vec![sql.to_owned()]
    }

    /// Plans a statement and returns its schemas. Nothing runs.
    ///
    /// # Errors
    /// `Syntax`, `Invalid` and `NotFound` for statements that cannot be planned, `Denied` and `Unsupported` for those
    /// that may not run.
    async fn describe(&self, statement: &Statement) -> Result<Description>;

    /// Plans a statement and stores it under an id. If prepared within a transaction, it is bound and run there;
    /// after that ends, within the session's only open transaction, if there is exactly one.
    ///
    /// # Errors
    /// As [`Session::describe`], and `LimitReached` with too many open statements.
    async fn prepare(&self, sql: &str, transaction: Option<TransactionId>) -> Result<Prepared>;

    /// As [`Session::prepare`], for a Substrait plan.
    ///
    /// # Errors
    /// `Unsupported`, and as [`Session::prepare`].
    async fn prepare_substrait(&self, _: &SubstraitPlan, _: Option<TransactionId>) -> Result<Prepared> {
        Err(SubstraitPlan::unsupported())
    }

    /// Binds the parameters of a prepared statement: every row of every batch is one execution, all together give one
    /// result. The result schema may change with the bound types.
    ///
    /// # Errors
    /// `NotFound` for an unknown id; `Invalid` when number or types of the columns do not fit.
    async fn bind(&self, id: StatementId, parameters: Vec<RecordBatch>) -> Result<()>;

    /// Drops a prepared statement; unknown ids are ignored.
    async fn close_prepared(&self, id: StatementId) -> Result<()>;

    /// Starts a statement and returns when its result can be read. Changes have taken effect then.
    ///
    /// # Errors
    /// As [`Session::describe`]; `LimitReached` and `Timeout` from admission; `Unavailable` while draining.
    async fn start(&self, request: &Request) -> Result<Answer>;

    /// Runs a statement for its effect and returns the number of affected rows, if that is known.
    ///
    /// # Errors
    /// As [`Session::start`].
    async fn update(&self, request: &Request) -> Result<Option<u64>>;

    /// The origin of each column of a prepared statement; empty if unknown.
    fn origins(&self, _: StatementId) -> Vec<Option<ColumnOrigin>> {
        Vec::new()
    }

    /// The effect of the last statement that changes rows.
    fn last_write(&self) -> LastWrite {
        LastWrite::default()
    }

    /// Writes rows into a table: all of them, or none when the stream or a row fails. Returns how many.
    ///
    /// Columns are found by name; types are cast where no value is lost. The rows are taken in while they arrive.
    ///
    /// # Errors
    /// `NotFound` and `AlreadyExists` as the ingest asks for; `Invalid` for columns and values that do not fit, naming
    /// them; `Conflict` when another writer was first; `LimitReached` when the tables take too much memory.
    async fn ingest(&self, ingest: &Ingest, rows: BatchStream) -> Result<u64>;

    /// As [`Session::ingest`], for a Parquet file, which is stored on disk until it is complete, within
    /// [`Limits::result_spill_bytes`](crate::Limits::result_spill_bytes). Write access is checked before.
    ///
    /// # Errors
    /// As there; `Invalid` for what is no Parquet file, or a damaged one.
    async fn ingest_parquet(&self, _: &Ingest, _: ByteStream) -> Result<u64> {
        Err(Error::unsupported("this server reads no Parquet files of clients")
            .with_hint("send an Arrow stream"))
    }

    /// Starts a statement over rows that its client sends while it runs. A query returns at once and yields rows as
    /// others arrive; other statements return when they have read all rows and taken effect. The result has one
    /// partition, which is read once.
    ///
    /// # Errors
    /// As [`Session::start`]; `Invalid` for a statement that does not read the rows; `Conflict` when another writer was first,
    /// since rows that have come do not come again.
    async fn exchange(&self, _: &Request, _: Input) -> Result<Answer> {
        Err(Error::unsupported("statements over a stream are not supported")
            .with_hint("write the rows into a table first"))
    }

    /// Joins a tensor exchange: each input row is the contribution to a round, each batch of the returned stream the
    /// reduction of all contributions. Dropping the stream leaves the exchange.
    ///
    /// # Errors
    /// `Invalid` for other options or columns than those of the exchange; `LimitReached` when it is full; `Denied` without the
    /// role that it is for. The stream has an error for a contribution that is none, and when a round comes to nothing.
    async fn join(&self, _: TensorExchange, _: BatchStream) -> Result<BatchStream> {
        Err(Error::unsupported("this server does not support tensor exchange"))
    }

    /// Begins a transaction: its statements see the tables as they are at the first of them, and their own changes.
    ///
    /// # Errors
    /// `LimitReached` with too many open transactions.
    async fn begin(&self) -> Result<TransactionId>;

    /// Ends a transaction. After an error of a commit the transaction is rolled back.
    ///
    /// # Errors
    /// `NotFound` for unknown and ended transactions; `Conflict` when another writer committed first: run it again.
    async fn end(&self, transaction: TransactionId, end: TransactionEnd) -> Result<()>;

    /// Begins a transaction for the statements up to [`Session::end_implicit`], unless one is open. A `BEGIN` among
    /// them makes it explicit.
    ///
    /// # Errors
    /// As [`Session::begin`].
    async fn begin_implicit(&self) -> Result<()> {
        Err(Error::unsupported("this server has no implicit transactions"))
    }

    /// Ends the transaction of [`Session::begin_implicit`], if it is still open and implicit.
    ///
    /// # Errors
    /// `Conflict` when another writer committed first: run its statements again.
    async fn end_implicit(&self, _end: TransactionEnd) -> Result<()> {
        Ok(())
    }

    /// Whether a transaction begun with SQL is open.
    fn in_transaction(&self) -> bool {
        false
    }

    /// Gives back the row locks that the transaction begun with SQL has taken since its last savepoint. For front ends in which it can
    /// only be rolled back after an error, to a savepoint or whole.
    async fn release_after_error(&self) {}

    /// Creates a savepoint.
    ///
    /// # Errors
    /// `NotFound` for unknown and ended transactions.
    async fn savepoint(&self, transaction: TransactionId, name: &str) -> Result<SavepointId>;

    /// Releases a savepoint, or rolls back to it; later savepoints end too.
    ///
    /// # Errors
    /// `NotFound` for unknown savepoints.
    async fn end_savepoint(&self, savepoint: SavepointId, end: TransactionEnd) -> Result<()>;

    /// Columns of the primary key of a table in their order, with the name of the constraint; `None` without a key.
    ///
    /// # Errors
    /// `NotFound` when there is no such table.
    async fn primary_key(&self, table: &TableName) -> Result<Option<PrimaryKey>>;

    /// The values of all options in force.
    fn options(&self) -> Vec<(String, OptionValue)>;

    /// The value in force of one option; `None` for an unknown name.
    fn option(&self, name: &str) -> Option<OptionValue> {
        self.options().into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The value in force of an option or a compatibility parameter, as `SHOW name` tells it; `None` for an unknown name.
    fn setting(&self, _: &str) -> Option<String> {
        None
    }

    /// Sets an option, or resets it to its default with `None`.
    ///
    /// # Errors
    /// `NotFound` for a name that clients cannot set, `Invalid` for a value that does not fit.
    async fn set_option(&self, name: &str, value: Option<OptionValue>) -> Result<()>;

    /// Names of catalogs, sorted.
    async fn catalogs(&self) -> Result<Vec<String>>;

    /// Pairs of catalog and schema name, sorted, that fit the exact catalog and the schema pattern.
    async fn schemas(&self, catalog: Option<&str>, pattern: Option<&str>) -> Result<Vec<(String, String)>>;

    /// Tables, sorted by catalog, schema, name and kind.
    async fn tables(&self, filter: &TableFilter) -> Result<Vec<TableEntry>>;

    /// Ends the session: its queries stop, its prepared statements go. Later calls answer `NotFound`.
    async fn close(&self);

    /// Takes the number that its connection has told the client for that by which others name the session.
    fn set_number(&self, _: i32) {}

    /// Waits until somebody has closed the session, whose connection is of no use then.
    async fn until_closed(&self) {
        std::future::pending().await
    }
}

impl SubstraitPlan {
    /// The error of servers that accept SQL only.
    pub fn unsupported() -> Error {
        Error::unsupported("Substrait plans are not supported").with_hint("send the statement as SQL text")
    }
}

impl Statement {
    /// The text, for front ends that only have text.
    ///
    /// # Errors
    /// `Invalid` when it is not UTF-8.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self::Sql(text.to_owned())),
            Err(_) => Err(Error::invalid("the statement is not UTF-8 text")
                .with_hint("send SQL text, or a Flight SQL command wrapped in google.protobuf.Any")),
        }
    }
}
