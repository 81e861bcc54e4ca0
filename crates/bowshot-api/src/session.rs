//! A session as front ends see it: statements in, answers out, options, prepared statements, metadata.

use crate::{
    BatchStream, Error, Ingest, Input, Layout, OptionValue, Pieces, PrimaryKey, Principal, QueryId, Result,
    Room, SavepointId, SessionId, StatementId, TableEntry, TableFilter, TableName, TransactionEnd,
    TransactionId,
};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use std::sync::Arc;
use std::time::SystemTime;

/// What to run.
#[derive(Debug, Clone)]
pub enum Statement {
    /// SQL text in the session's dialect; exactly one statement.
    Sql(String),
    /// A Substrait plan.
    Substrait(SubstraitPlan),
    /// A statement that [`Session::prepare`] returned, with the parameters bound last.
    Prepared(StatementId),
}

/// A plan as [Substrait](https://substrait.io) writes it down.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SubstraitPlan {
    /// The serialised message `substrait.Plan`.
    pub plan: Vec<u8>,
    /// The release of Substrait that it was made for, as its client says.
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
    /// The query runs to its end whether or not anybody reads; partitions can be read until the result expires, as
    /// often as wanted. What does not fit the buffer goes to disk.
    Spool,
}

/// A statement with everything that decides how it runs. `None` fields take the session's options.
#[derive(Debug, Clone)]
pub struct Request {
    /// What to run.
    pub statement: Statement,
    /// Number of partitions.
    pub endpoints: Option<Endpoints>,
    /// Streaming or spooled.
    pub delivery: Option<Delivery>,
    /// Transaction that the statement belongs to. `None`: the one that the session began with SQL, if it did, else the
    /// statement is a transaction by itself.
    pub transaction: Option<TransactionId>,
    /// Whether other nodes of a cluster may hand out rows: the caller's client can go to [`Answer::locations`].
    pub elsewhere: bool,
    /// Whether a statement without rows answers one, [`STATUS_RESULT`], in dialects whose clients count on that (`mysql`).
    pub status_row: bool,
}

/// The column of the one row that says that a statement without rows went well, with the text `0`: what servers of MySQL's dialect
/// answer over Flight SQL.
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
        }
    }

    /// The same within a transaction.
    #[must_use]
    pub fn within(self, transaction: Option<TransactionId>) -> Self {
        Self { transaction, ..self }
    }
}

/// What planning a statement tells, without running it.
#[derive(Debug, Clone)]
pub struct Description {
    /// Schema of the result in the session's layout; no fields for a statement without rows.
    pub schema: SchemaRef,
    /// One nullable field for each parameter, in order; types inferred from the plan, `Utf8` where it does not tell.
    pub parameters: SchemaRef,
    /// Whether the statement acts instead of returning rows.
    pub is_update: bool,
}

/// A prepared statement: stable id and description.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Valid within the session until it is closed.
    pub id: StatementId,
    /// What planning told.
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
    /// Partitions that can be attached to, at least one.
    pub partitions: usize,
    /// Whether reading the partitions in order gives the order that the statement asked for.
    pub ordered: bool,
    /// Number of rows, where it is known exactly.
    pub rows: Option<u64>,
    /// Until when the result can be read again; `None` for results that are read once.
    pub expires: Option<SystemTime>,
    /// Where each partition is handed out, if nodes of a cluster do that; else none, and all of them are here.
    pub locations: Vec<Location>,
}

/// Where a partition is handed out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// URI of the front end of the node that has the rows; `None` for the server that answered.
    pub uri: Option<String>,
    /// What [`Server::redeem`](crate::Server::redeem) of any node takes for it.
    pub voucher: Arc<[u8]>,
}

/// What the last statement that changed rows did to them, for protocols that tell it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastWrite {
    /// Rows whose values are others than before; `None` where they are not counted apart from those that were found, which only
    /// dialect `mysql` does.
    pub changed: Option<u64>,
    /// The first number that the server gave to a row of the statement.
    pub generated: Option<i64>,
    /// What the last row has in the column that numbers itself.
    pub number: Option<i64>,
    /// What it says beside its result.
    pub notices: Vec<Notice>,
}

/// What a statement has left undone though its text asks for it, or has found done already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// An index was to be made.
    NoIndexes,
    /// A key of another table was declared.
    ForeignKeysNotEnforced,
    /// `IF EXISTS`: there is none, of what and of which name.
    Missing(&'static str, String),
    /// `IF NOT EXISTS`: there is one.
    Exists(&'static str, String),
}

impl Notice {
    /// For people.
    pub fn message(&self) -> String {
        match self {
            Self::NoIndexes => "the index has no effect: there are no indexes".to_owned(),
            Self::ForeignKeysNotEnforced => "foreign keys are kept and shown, but not enforced".to_owned(),
            Self::Missing(what, name) => format!("{what} `{name}` does not exist, skipping"),
            Self::Exists(what, name) => format!("{what} `{name}` already exists, skipping"),
        }
    }

    /// The next action.
    pub fn hint(&self) -> Option<&'static str> {
        matches!(self, Self::NoIndexes).then_some("scans skip what the statistics of a table rule out")
    }
}

/// The table that a column of a result comes from as it is there, by the number that `pg_class` has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnOrigin {
    /// Number of the table.
    pub table: u32,
    /// Place of the column in it, from one.
    pub place: u16,
}

/// One client's session: all mutable state of that client lives here and nowhere else.
#[async_trait]
pub trait Session: Send + Sync + std::fmt::Debug {
    /// The session's id.
    fn id(&self) -> SessionId;

    /// Whose session it is.
    fn principal(&self) -> &Principal;

    /// The statements of a text, in their order, as the session's dialect takes them apart; empty ones are left out.
    fn statements(&self, sql: &str) -> Vec<String> {
        vec![sql.to_owned()]
    }

    /// Plans a statement and tells its schemas. Nothing runs.
    ///
    /// # Errors
    /// `Syntax`, `Invalid` and `NotFound` for statements that cannot be planned, `Denied` and `Unsupported` for those
    /// that may not run.
    async fn describe(&self, statement: &Statement) -> Result<Description>;

    /// Plans a statement and keeps it under an id. Made within a transaction, it is described, bound and run within it; after
    /// its end, within the only open one of the session, if there is exactly one.
    ///
    /// # Errors
    /// As [`Session::describe`], and `LimitReached` with too many open statements.
    async fn prepare(&self, sql: &str, transaction: Option<TransactionId>) -> Result<Prepared>;

    /// As [`Session::prepare`], of a Substrait plan. Refused by servers that take SQL only.
    ///
    /// # Errors
    /// `Unsupported`, and as [`Session::prepare`].
    async fn prepare_substrait(&self, _: &SubstraitPlan, _: Option<TransactionId>) -> Result<Prepared> {
        Err(SubstraitPlan::unsupported())
    }

    /// Sets the parameters of a prepared statement: every row of every batch is one execution, all of them together
    /// one result. The description's result schema may change with the types bound.
    ///
    /// # Errors
    /// `NotFound` for an unknown id; `Invalid` when number or types of the columns do not fit.
    async fn bind(&self, id: StatementId, parameters: Vec<RecordBatch>) -> Result<()>;

    /// Forgets a prepared statement; unknown ids are fine.
    async fn close_prepared(&self, id: StatementId) -> Result<()>;

    /// Starts a statement and returns when its result can be read. Statements with effects have taken effect then.
    ///
    /// # Errors
    /// As [`Session::describe`]; `LimitReached` and `Timeout` from admission; `Unavailable` while draining.
    async fn start(&self, request: &Request) -> Result<Answer>;

    /// Runs a statement for its effect and returns the number of affected rows, if that is known.
    ///
    /// # Errors
    /// As [`Session::start`].
    async fn update(&self, request: &Request) -> Result<Option<u64>>;

    /// For each column of a prepared statement the table that it comes from; none at all where that is not known.
    fn origins(&self, _: StatementId) -> Vec<Option<ColumnOrigin>> {
        Vec::new()
    }

    /// What the last statement that changes something, or was to, did.
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

    /// As [`Session::ingest`], of the rows of a Parquet file. Its end, which says what is in it, comes last: the file is kept on disk
    /// until it is whole, within [`Limits::result_spill_bytes`](crate::Limits::result_spill_bytes). Who may not write to the table
    /// is told so before that.
    ///
    /// # Errors
    /// As there; `Invalid` for what is no Parquet file, or a damaged one.
    async fn ingest_parquet(&self, _: &Ingest, _: Pieces) -> Result<u64> {
        Err(Error::unsupported("this server reads no Parquet files of clients")
            .with_hint("send an Arrow stream"))
    }

    /// Starts a statement over rows that its client sends while it runs. A query is answered at once, and gives rows while
    /// others come in; a statement with effects is answered when it has read all and taken effect. The result has one
    /// partition, which is read once.
    ///
    /// # Errors
    /// As [`Session::start`]; `Invalid` for a statement that does not read the rows; `Conflict` when another writer was first,
    /// since rows that have come do not come again.
    async fn exchange(&self, _: &Request, _: Input) -> Result<Answer> {
        Err(Error::unsupported("statements over a stream are not supported")
            .with_hint("write the rows into a table first"))
    }

    /// Takes a place in a room, in which workers exchange tensors: each row that comes is the contribution to a round, and each
    /// batch of the stream that is given what the server has made of the contributions of all. Dropping it leaves the room.
    ///
    /// # Errors
    /// `Invalid` for other options or columns than those of the room; `LimitReached` when it is full; `Denied` without the
    /// role that it is for. The stream has an error for a contribution that is none, and when a round comes to nothing.
    async fn join(&self, _: Room, _: BatchStream) -> Result<BatchStream> {
        Err(Error::unsupported("this server has no rooms"))
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

    /// Begins a transaction around the statements that follow, up to [`Session::end_implicit`], unless one is open. A `BEGIN`
    /// among them takes it over.
    ///
    /// # Errors
    /// As [`Session::begin`].
    async fn begin_implicit(&self) -> Result<()> {
        Err(Error::unsupported("this server has no implicit transactions"))
    }

    /// Ends the transaction of [`Session::begin_implicit`], if it is still open and no `BEGIN` has taken it over.
    ///
    /// # Errors
    /// `Conflict` when another writer committed first: run its statements again.
    async fn end_implicit(&self, _end: TransactionEnd) -> Result<()> {
        Ok(())
    }

    /// Whether a transaction is open that was begun with SQL, so that the next statement runs within it.
    fn in_transaction(&self) -> bool {
        false
    }

    /// Marks a point of a transaction to which it can return.
    ///
    /// # Errors
    /// `NotFound` for unknown and ended transactions.
    async fn savepoint(&self, transaction: TransactionId, name: &str) -> Result<SavepointId>;

    /// Forgets a savepoint, or returns to it; those made after it go too.
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
}

impl SubstraitPlan {
    /// What servers answer that take SQL only.
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
