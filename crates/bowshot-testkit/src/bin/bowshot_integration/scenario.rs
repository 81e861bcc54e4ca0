//! The scenarios as data: which statements a server knows, what they answer, and which freedoms of the protocol it
//! takes. The expectations are those of arrow-go's `flight_integration/scenario.go`.

use arrow::array::{ArrayRef, Int32Array, UInt32Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use bowshot_api::{IfExists, IfMissing, Ingest, Languages, Limits, SavepointId, TableFilter, TransactionId};
use bowshot_flight::{AppMetadata, Ids, Locations, Profile, UnnamedAction};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone, Default)]
pub(crate) struct Scenario {
    /// Freedoms that the front end takes.
    pub(crate) profile: Profile,
    /// The one user and its password; nobody has to say who they are without.
    pub(crate) user: Option<(&'static str, &'static str)>,
    /// The forms in which statements come.
    pub(crate) languages: Languages,
    /// What GetSqlInfo tells of them.
    pub(crate) limits: Limits,
    /// What each statement answers, by its text or the text of its plan; [`PREPARED`] and [`WITHIN`] come before those that
    /// were prepared and that belong to a transaction, where the answer differs.
    pub(crate) statements: HashMap<String, Reply>,
    /// The names of the only transaction and of its only savepoint.
    pub(crate) transaction: Option<Transaction>,
    pub(crate) ingest: Option<Taken>,
    /// The options that every session begins with are none, and any name but this one can be set.
    pub(crate) bad_option: &'static str,
    /// What a request for tables must ask for; anything goes without.
    pub(crate) tables: Option<TableFilter>,
}

/// Before the text of a plan that was prepared.
pub(crate) const PREPARED: &str = "prepared: ";
/// Before the text of a statement in a transaction.
pub(crate) const WITHIN: &str = "in a transaction: ";

#[derive(Debug, Clone, Copy)]
pub(crate) struct Transaction {
    pub(crate) id: TransactionId,
    pub(crate) savepoint: SavepointId,
    pub(crate) savepoint_name: &'static str,
}

/// The ingest that is taken, and the columns that its rows must have.
#[derive(Debug, Clone)]
pub(crate) struct Taken {
    pub(crate) ingest: Ingest,
    pub(crate) schema: SchemaRef,
}

/// What a statement answers.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) schema: SchemaRef,
    pub(crate) parameters: SchemaRef,
    /// Batches of each partition.
    pub(crate) partitions: Vec<Vec<RecordBatch>>,
    pub(crate) ordered: bool,
    /// How long the result can be read again; `None` for one that is read once.
    pub(crate) lives: Option<Duration>,
    /// Affected rows of an update.
    pub(crate) updated: Option<u64>,
    /// How far the query is when it is first asked; the second time it is done.
    pub(crate) first_progress: f64,
}

impl Default for Reply {
    fn default() -> Self {
        Self {
            schema: Arc::new(Schema::empty()),
            parameters: Arc::new(Schema::empty()),
            partitions: vec![vec![]],
            ordered: false,
            lives: None,
            updated: None,
            first_progress: 1.0,
        }
    }
}

impl Scenario {
    /// The scenario of a name, if this server plays it.
    pub(crate) fn find(name: &str) -> Option<Self> {
        Some(match name {
            "auth:basic_proto" => Self {
                user: Some(("arrow", "flight")),
                profile: Profile { unnamed_action: UnnamedAction::CallerName, ..Profile::default() },
                ..Self::default()
            },
            "middleware" => Self {
                profile: Profile {
                    echoed_headers: vec![http::HeaderName::from_static("x-middleware")],
                    ..Profile::default()
                },
                ..Self::answering("success", Reply::default())
            },
            "ordered" => Self::answering("ordered", ordered()),
            "expiration_time:do_get" => Self::answering("expiration_time", read_once()),
            "expiration_time:list_actions" => Self {
                profile: Profile {
                    actions: Some(vec!["CancelFlightInfo".to_owned(), "RenewFlightEndpoint".to_owned()]),
                    ..Profile::default()
                },
                ..Self::default()
            },
            "expiration_time:cancel_flight_info" | "expiration_time:renew_flight_endpoint" => {
                Self::answering("expiration_time", expiring())
            }
            "location:reuse_connection" => Self {
                profile: Profile { locations: Locations::ReuseConnection, ..Profile::default() },
                ..Self::answering("reuse", Reply::default())
            },
            "session_options" => Self { bad_option: "lol_invalid", ..Self::default() },
            "poll_flight_info" => {
                let reply =
                    Reply { first_progress: 0.1, lives: Some(Duration::from_secs(10)), ..read_once() };
                Self::answering("heavy query", reply)
            }
            "app_metadata_flight_info_endpoint" => Self {
                profile: Profile { app_metadata: AppMetadata::Command, ..Profile::default() },
                ..Self::answering("foobar", read_once())
            },
            "flight_sql" => flight_sql(),
            "flight_sql:extension" => extension(),
            "flight_sql:ingestion" => ingestion(),
            _ => return None,
        })
    }

    fn answering(statement: &'static str, reply: Reply) -> Self {
        Self { statements: HashMap::from([(statement.to_owned(), reply)]), ..Self::default() }
    }
}

fn ordered() -> Reply {
    let schema = number(DataType::Int32);
    let partition = |scale: i32| {
        let values: ArrayRef = Arc::new(Int32Array::from(vec![scale, 2 * scale, 3 * scale]));
        batches(&schema, [values])
    };
    Reply { partitions: [1, 10, 100].map(partition).into(), schema, ordered: true, ..Reply::default() }
}

/// Three batches in one endpoint that does not expire: all endpoints of a result of Bowshot have one expiration.
fn read_once() -> Reply {
    let schema = number(DataType::UInt32);
    Reply { partitions: vec![batches(&schema, [0, 1, 2].map(index))], schema, ..Reply::default() }
}

/// Three endpoints that expire.
fn expiring() -> Reply {
    let schema = number(DataType::UInt32);
    let partitions = [0, 1, 2].map(|value| batches(&schema, [index(value)])).into();
    Reply { partitions, schema, lives: Some(Duration::from_secs(5)), ..Reply::default() }
}

fn flight_sql() -> Scenario {
    let statements = known("", &described(), [10_000, 20_000]);
    let tables = TableFilter {
        catalog: Some("catalog".to_owned()),
        schema_pattern: Some("db_schema_filter_pattern".to_owned()),
        table_pattern: Some("table_filter_pattern".to_owned()),
        kinds: None,
        include_schema: true,
    };
    Scenario { statements, tables: Some(tables), ..Scenario::default() }
}

/// The four statements, whose texts begin with a prefix; updates change so many rows at once and when they are prepared.
fn known(prefix: &str, schema: &SchemaRef, updated: [u64; 2]) -> HashMap<String, Reply> {
    let query = || Reply { schema: Arc::clone(schema), ..Reply::default() };
    let update = |rows| Reply { updated: Some(rows), partitions: vec![], ..Reply::default() };
    let replies = [
        ("SELECT STATEMENT", query()),
        ("SELECT PREPARED STATEMENT", Reply { parameters: described(), ..query() }),
        ("UPDATE STATEMENT", update(updated[0])),
        ("UPDATE PREPARED STATEMENT", update(updated[1])),
    ];
    replies.map(|(text, reply)| (format!("{prefix}{text}"), reply)).into()
}

/// A server of plans that has no SQL and knows one transaction. The plan is query and update in one.
fn extension() -> Scenario {
    let mut statements = HashMap::new();
    for (within, schema, updated) in
        [("", described(), [10_000, 20_000]), (WITHIN, described_within(), [15_000, 25_000])]
    {
        statements.extend(known(within, &schema, updated));
        let plan = Reply { schema, updated: Some(updated[0]), ..Reply::default() };
        let prepared = Reply { updated: Some(updated[1]), parameters: described(), ..plan.clone() };
        statements.insert(format!("{within}plan"), plan);
        statements.insert(format!("{within}{PREPARED}plan"), prepared);
    }
    let versions = ["min_version", "max_version"].map(str::to_owned);
    Scenario {
        statements,
        profile: Profile { ids: Ids::Bare, ..Profile::default() },
        languages: Languages { sql: false, substrait: Some(versions) },
        limits: Limits {
            session_timeout: Duration::from_millis(42),
            transaction_timeout: Duration::from_millis(7),
            ..Limits::default()
        },
        transaction: named("transaction_id").zip(named("savepoint_id")).and_then(
            |(transaction, savepoint)| {
                Some(Transaction {
                    id: TransactionId::from_slice(&transaction)?,
                    savepoint: SavepointId::from_slice(&savepoint)?,
                    savepoint_name: "savepoint_name",
                })
            },
        ),
        ..Scenario::default()
    }
}

fn ingestion() -> Scenario {
    let ingest = Ingest {
        catalog: Some("test_catalog".to_owned()),
        schema_name: Some("test_schema".to_owned()),
        table: "test_table".to_owned(),
        temporary: true,
        if_missing: IfMissing::Create,
        if_exists: IfExists::Replace,
        transaction: named("123").and_then(|id| TransactionId::from_slice(&id)),
        options: [("key1", "val1"), ("key2", "val2")].map(|(key, value)| (key.into(), value.into())).into(),
    };
    let schema = Arc::new(Schema::new(vec![Field::new("test_field", DataType::Int64, true)]));
    Scenario {
        profile: Profile { ids: Ids::Bare, ..Profile::default() },
        ingest: Some(Taken { ingest, schema }),
        ..Scenario::default()
    }
}

/// A short name as an id has it; `None` if it is too long for one.
fn named(name: &str) -> Option<[u8; 16]> {
    let mut id = [0; 16];
    id.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
    Some(id)
}

/// One column with everything that can be told about a column.
fn described() -> SchemaRef {
    column("id", DataType::Int64)
}

/// The same in a transaction.
fn described_within() -> SchemaRef {
    column("pkey", DataType::Int32)
}

fn column(name: &str, data_type: DataType) -> SchemaRef {
    let told = [
        ("TABLE_NAME", "test"),
        ("IS_AUTO_INCREMENT", "1"),
        ("IS_CASE_SENSITIVE", "0"),
        ("TYPE_NAME", "type_test"),
        ("SCHEMA_NAME", "schema_test"),
        ("IS_SEARCHABLE", "1"),
        ("CATALOG_NAME", "catalog_test"),
        ("PRECISION", "100"),
        ("REMARKS", "test column"),
    ];
    let metadata = told.map(|(key, value)| (format!("ARROW:FLIGHT:SQL:{key}"), value.to_owned()));
    let field = Field::new(name, data_type, true).with_metadata(HashMap::from(metadata));
    Arc::new(Schema::new(vec![field]))
}

fn number(data_type: DataType) -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("number", data_type, false)]))
}

fn index(value: u32) -> ArrayRef {
    Arc::new(UInt32Array::from(vec![value]))
}

fn batches<const N: usize>(schema: &SchemaRef, columns: [ArrayRef; N]) -> Vec<RecordBatch> {
    // A column that does not fit its schema gives no batch, and the client misses it.
    columns
        .into_iter()
        .filter_map(|column| RecordBatch::try_new(Arc::clone(schema), vec![column]).ok())
        .collect()
}
