//! Filters, order and schemas of the metadata commands, over a session with a fixed catalog.

use super::{answer, schema_of, table_schema};
use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Field, Int32Type, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use arrow_flight::sql::{
    Command, CommandGetCatalogs, CommandGetCrossReference, CommandGetDbSchemas, CommandGetExportedKeys,
    CommandGetImportedKeys, CommandGetPrimaryKeys, CommandGetSqlInfo, CommandGetTableTypes, CommandGetTables,
    CommandGetXdbcTypeInfo, CommandStatementQuery,
};
use async_trait::async_trait;
use bowshot_api::{
    About, Answer, BatchStream, Description, Error, Ingest, Languages, Limits, OptionValue, Prepared,
    PrimaryKey, Principal, Request, Result, SavepointId, Session, SessionId, Statement, StatementId,
    TableEntry, TableFilter, TableKind, TableName, TransactionEnd, TransactionId, like,
};
use std::sync::Arc;

/// A session whose only content is its catalog; it refuses everything that runs.
#[derive(Debug)]
struct FixedCatalog {
    id: SessionId,
    principal: Principal,
    tables: Vec<TableEntry>,
}

fn session() -> FixedCatalog {
    let schema: SchemaRef = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("price", DataType::Decimal128(15, 2), true),
        Field::new("note", DataType::Utf8, true),
    ]));
    let table = |schema_name: &str, name: &str, kind, schema: Option<&SchemaRef>| TableEntry {
        catalog: "bowshot".to_owned(),
        schema_name: schema_name.to_owned(),
        name: name.to_owned(),
        kind,
        schema: schema.cloned(),
        remarks: schema.is_none().then(|| "`x.csv` cannot be read".to_owned()),
    };
    FixedCatalog {
        id: SessionId::random(),
        principal: Principal::anonymous(),
        tables: vec![
            table("system", "queries", TableKind::System, Some(&schema)),
            table("main", "orders", TableKind::Table, Some(&schema)),
            table("main", "broken", TableKind::Table, None),
            table("main", "order_view", TableKind::View, Some(&schema)),
        ],
    }
}

#[async_trait]
impl Session for FixedCatalog {
    fn id(&self) -> SessionId {
        self.id
    }
    fn principal(&self) -> &Principal {
        &self.principal
    }
    async fn describe(&self, _: &Statement) -> Result<Description> {
        Err(Error::unsupported("a catalog only"))
    }
    async fn prepare(&self, _: &str, _: Option<TransactionId>) -> Result<Prepared> {
        Err(Error::unsupported("a catalog only"))
    }
    async fn bind(&self, _: StatementId, _: Vec<RecordBatch>) -> Result<()> {
        Err(Error::unsupported("a catalog only"))
    }
    async fn close_prepared(&self, _: StatementId) -> Result<()> {
        Err(Error::unsupported("a catalog only"))
    }
    async fn start(&self, _: &Request) -> Result<Answer> {
        Err(Error::unsupported("a catalog only"))
    }
    async fn update(&self, _: &Request) -> Result<Option<u64>> {
        Err(Error::unsupported("a catalog only"))
    }
    async fn ingest(&self, _: &Ingest, _: BatchStream) -> Result<u64> {
        Err(Error::unsupported("a catalog only"))
    }
    async fn begin(&self) -> Result<TransactionId> {
        Err(Error::unsupported("a catalog only"))
    }
    async fn end(&self, _: TransactionId, _: TransactionEnd) -> Result<()> {
        Err(Error::unsupported("a catalog only"))
    }
    async fn savepoint(&self, _: TransactionId, _: &str) -> Result<SavepointId> {
        Err(Error::unsupported("a catalog only"))
    }
    async fn end_savepoint(&self, _: SavepointId, _: TransactionEnd) -> Result<()> {
        Err(Error::unsupported("a catalog only"))
    }
    async fn primary_key(&self, table: &TableName) -> Result<Option<PrimaryKey>> {
        match table.name.as_str() {
            "orders" => Ok(Some(PrimaryKey {
                table: ["bowshot", "main", "orders"].map(str::to_owned),
                name: Some("orders_key".to_owned()),
                columns: vec!["year".to_owned(), "id".to_owned()],
            })),
            "broken" => Ok(None),
            _ => Err(Error::not_found("table not found")),
        }
    }
    fn options(&self) -> Vec<(String, OptionValue)> {
        Vec::new()
    }
    async fn set_option(&self, _: &str, _: Option<OptionValue>) -> Result<()> {
        Err(Error::unsupported("a catalog only"))
    }
    async fn catalogs(&self) -> Result<Vec<String>> {
        Ok(vec!["bowshot".to_owned()])
    }
    async fn schemas(&self, catalog: Option<&str>, pattern: Option<&str>) -> Result<Vec<(String, String)>> {
        Ok(["system", "main"]
            .into_iter()
            .filter(|_| catalog.is_none_or(|catalog| catalog == "bowshot"))
            .filter(|name| pattern.is_none_or(|pattern| like(name, pattern)))
            .map(|name| ("bowshot".to_owned(), name.to_owned()))
            .collect())
    }
    async fn tables(&self, filter: &TableFilter) -> Result<Vec<TableEntry>> {
        let fits = |value: &str, pattern: &Option<String>| pattern.as_deref().is_none_or(|p| like(value, p));
        Ok(self
            .tables
            .iter()
            .filter(|table| filter.catalog.as_ref().is_none_or(|catalog| *catalog == table.catalog))
            .filter(|table| fits(&table.schema_name, &filter.schema_pattern))
            .filter(|table| fits(&table.name, &filter.table_pattern))
            .filter(|table| filter.kinds.as_ref().is_none_or(|kinds| kinds.contains(&table.kind)))
            .cloned()
            .collect())
    }
    async fn close(&self) {}
}

async fn run(command: Command) -> RecordBatch {
    let about = About {
        name: "Bowshot".into(),
        version: "1".into(),
        arrow_version: "59".into(),
        languages: Languages::default(),
    };
    let (schema, batches) = answer(&session(), &about, &Limits::default(), &command).await.unwrap();
    assert_eq!(schema_of(&command), Some(SchemaRef::clone(&schema)));
    let [batch] = <[RecordBatch; 1]>::try_from(batches).unwrap();
    assert_eq!(batch.schema(), schema);
    batch
}

fn column(batch: &RecordBatch, index: usize) -> Vec<String> {
    batch.column(index).as_string::<i32>().iter().map(|value| value.unwrap().to_owned()).collect()
}

async fn tables(command: CommandGetTables) -> Vec<String> {
    column(&run(Command::CommandGetTables(command)).await, 2)
}

#[tokio::test]
async fn tables_are_sorted_and_filtered() {
    let all = CommandGetTables::default();
    assert_eq!(tables(all.clone()).await, ["broken", "order_view", "orders", "queries"]);
    let types = |types: &[&str]| CommandGetTables {
        table_types: types.iter().map(|name| (*name).to_owned()).collect(),
        ..CommandGetTables::default()
    };
    assert_eq!(tables(types(&["base table"])).await, ["broken", "orders"]);
    assert_eq!(tables(types(&["View", "TABLE"])).await, ["broken", "order_view", "orders"]);
    assert_eq!(tables(types(&["LOCAL TEMPORARY"])).await, Vec::<String>::new());
    let pattern = |text: &str| CommandGetTables {
        table_name_filter_pattern: Some(text.to_owned()),
        ..CommandGetTables::default()
    };
    assert_eq!(tables(pattern("order%")).await, ["order_view", "orders"]);
    assert_eq!(tables(pattern("order_")).await, ["orders"]);
    let catalog =
        |name: &str| CommandGetTables { catalog: Some(name.to_owned()), ..CommandGetTables::default() };
    assert_eq!(tables(catalog("")).await, Vec::<String>::new());
    assert_eq!(tables(catalog("bowshot")).await.len(), 4);
}

#[tokio::test]
async fn schemas_and_catalogs() {
    let schemas = |catalog: Option<&str>, pattern: Option<&str>| {
        Command::CommandGetDbSchemas(CommandGetDbSchemas {
            catalog: catalog.map(str::to_owned),
            db_schema_filter_pattern: pattern.map(str::to_owned),
        })
    };
    assert_eq!(column(&run(schemas(None, None)).await, 1), ["main", "system"]);
    assert_eq!(column(&run(schemas(Some("bowshot"), Some("m%"))).await, 1), ["main"]);
    assert_eq!(run(schemas(Some(""), None)).await.num_rows(), 0);
    let catalogs = run(Command::CommandGetCatalogs(CommandGetCatalogs {})).await;
    assert_eq!(column(&catalogs, 0), ["bowshot"]);
    let types = run(Command::CommandGetTableTypes(CommandGetTableTypes {})).await;
    assert_eq!(column(&types, 0), ["SYSTEM TABLE", "TABLE", "VIEW"]);
}

#[tokio::test]
async fn primary_keys_have_a_row_for_each_column() {
    let keys = |catalog: Option<&str>, table: &str| {
        Command::CommandGetPrimaryKeys(CommandGetPrimaryKeys {
            catalog: catalog.map(str::to_owned),
            db_schema: None,
            table: table.to_owned(),
        })
    };
    let found = run(keys(Some("bowshot"), "orders")).await;
    assert_eq!(column(&found, 0), ["bowshot", "bowshot"]);
    assert_eq!(column(&found, 1), ["main", "main"]);
    assert_eq!(column(&found, 2), ["orders", "orders"]);
    assert_eq!(column(&found, 3), ["year", "id"]);
    assert_eq!(found.column(4).as_primitive::<Int32Type>().values(), &[1, 2]);
    assert_eq!(column(&found, 5), ["orders_key", "orders_key"]);
    for command in [keys(None, "broken"), keys(None, "nothing"), keys(Some(""), "orders")] {
        assert_eq!(run(command).await.num_rows(), 0);
    }
}

#[tokio::test]
async fn keys_are_empty_and_other_commands_answer() {
    for command in [
        Command::CommandGetPrimaryKeys(CommandGetPrimaryKeys::default()),
        Command::CommandGetExportedKeys(CommandGetExportedKeys::default()),
        Command::CommandGetImportedKeys(CommandGetImportedKeys::default()),
        Command::CommandGetCrossReference(CommandGetCrossReference::default()),
    ] {
        assert_eq!(run(command).await.num_rows(), 0);
    }
    assert!(run(Command::CommandGetXdbcTypeInfo(CommandGetXdbcTypeInfo::default())).await.num_rows() > 15);
    assert_eq!(run(Command::CommandGetSqlInfo(CommandGetSqlInfo { info: vec![0] })).await.num_rows(), 1);
    assert_eq!(schema_of(&Command::CommandStatementQuery(CommandStatementQuery::default())), None);
}

#[tokio::test]
async fn included_schemas_are_ipc_messages() {
    let command = CommandGetTables { include_schema: true, ..CommandGetTables::default() };
    let batch = run(Command::CommandGetTables(command)).await;
    let schemas = batch.column(4).as_binary::<i32>();
    for row in 0..batch.num_rows() {
        let schema = arrow_ipc::convert::try_schema_from_ipc_buffer(schemas.value(row)).unwrap();
        assert_eq!(schema.fields().len(), if row == 0 { 0 } else { 3 });
    }
    assert_eq!(schemas.null_count(), 0);
}

#[test]
fn columns_carry_what_drivers_show() {
    let session = session();
    let entry = session.tables.iter().find(|table| table.name == "orders").unwrap();
    let schema = table_schema::described(entry);
    let get = |column: &str, key: &str| {
        schema.field_with_name(column).unwrap().metadata().get(&format!("ARROW:FLIGHT:SQL:{key}")).cloned()
    };
    for (column, key, expected) in [
        ("id", "CATALOG_NAME", Some("bowshot")),
        ("id", "DB_SCHEMA_NAME", Some("main")),
        ("id", "SCHEMA_NAME", Some("main")),
        ("id", "TABLE_NAME", Some("orders")),
        ("id", "TYPE_NAME", Some("BIGINT")),
        ("id", "PRECISION", Some("19")),
        ("price", "TYPE_NAME", Some("DECIMAL")),
        ("price", "PRECISION", Some("15")),
        ("price", "SCALE", Some("2")),
        ("price", "IS_CASE_SENSITIVE", Some("0")),
        ("note", "TYPE_NAME", Some("VARCHAR")),
        ("note", "SCALE", None),
        ("note", "IS_CASE_SENSITIVE", Some("1")),
        ("note", "IS_READ_ONLY", Some("1")),
        ("note", "IS_SEARCHABLE", Some("1")),
        ("note", "IS_AUTO_INCREMENT", Some("0")),
        ("note", "REMARKS", None),
    ] {
        assert_eq!(get(column, key).as_deref(), expected, "{column} {key}");
    }
    let broken = table_schema::described(&session.tables[2]);
    assert_eq!(broken.metadata().get("ARROW:FLIGHT:SQL:REMARKS").unwrap(), "`x.csv` cannot be read");
}
