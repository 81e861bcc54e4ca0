//! The scenarios as data: which statements a server knows, what they answer, and which freedoms of the protocol it
//! takes. The expectations are those of arrow-go's `flight_integration/scenario.go`.

use arrow::array::{ArrayRef, Int32Array, UInt32Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use bowshot_api::TableFilter;
use bowshot_flight::{AppMetadata, Locations, Profile, UnnamedAction};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// One scenario.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scenario {
    /// Freedoms that the front end takes.
    pub(crate) profile: Profile,
    /// The one user and its password; nobody has to say who they are without.
    pub(crate) user: Option<(&'static str, &'static str)>,
    /// What each statement answers.
    pub(crate) statements: HashMap<&'static str, Reply>,
    /// The options that every session begins with are none, and any name but this one can be set.
    pub(crate) bad_option: &'static str,
    /// What a request for tables must ask for; anything goes without.
    pub(crate) tables: Option<TableFilter>,
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
            // What the last two need is answered by the front end itself: it has none of it yet.
            "flight_sql" | "flight_sql:extension" | "flight_sql:ingestion" => flight_sql(),
            _ => return None,
        })
    }

    fn answering(statement: &'static str, reply: Reply) -> Self {
        Self { statements: HashMap::from([(statement, reply)]), ..Self::default() }
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
    let query = || Reply { schema: described(), ..Reply::default() };
    let update = |rows| Reply { updated: Some(rows), partitions: vec![], ..Reply::default() };
    let statements = HashMap::from([
        ("SELECT STATEMENT", query()),
        ("SELECT PREPARED STATEMENT", Reply { parameters: described(), ..query() }),
        ("UPDATE STATEMENT", update(10_000)),
        ("UPDATE PREPARED STATEMENT", update(20_000)),
    ]);
    let tables = TableFilter {
        catalog: Some("catalog".to_owned()),
        schema_pattern: Some("db_schema_filter_pattern".to_owned()),
        table_pattern: Some("table_filter_pattern".to_owned()),
        kinds: None,
        include_schema: true,
    };
    Scenario { statements, tables: Some(tables), ..Scenario::default() }
}

/// One column with everything that can be told about a column.
fn described() -> SchemaRef {
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
    let field = Field::new("id", DataType::Int64, true).with_metadata(HashMap::from(metadata));
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
