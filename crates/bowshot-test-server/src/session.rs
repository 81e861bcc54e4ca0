//! The sessions of the server: its statements, prepared ones, settings and tables.

use crate::server::{Counted, Query, TestServer, instants, number, numbers, table, texts};
use crate::types;
use arrow::array::RecordBatchOptions;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use bowshot_api::{
    Answer, BatchStream, COMPATIBILITY_PARAMETERS, Delivery, Description, Error, ErrorKind, IfMissing,
    Ingest, Layout, OptionValue, Position, Prepared, PrimaryKey, Principal, QueryId, Reason, Request, Result,
    SESSION_OPTIONS, SavepointId, Session, SessionId, Statement, StatementId, TableEntry, TableFilter,
    TableKind, TableName, TransactionEnd, TransactionId,
};
use futures::StreamExt;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// What clients of PostgreSQL set; it is shown as it was set.
const OF_POSTGRES: [&str; 8] = [
    "dialect",
    "catalog",
    "application_name",
    "client_encoding",
    "DateStyle",
    "TimeZone",
    "extra_float_digits",
    "search_path",
];

/// What statements begin with that return no rows.
const UPDATES: [&str; 7] = ["insert", "update", "create", "set", "RESET", "begin", "commit"];

/// Text, parameters and transaction of a prepared statement.
type PreparedStatement = (String, Vec<RecordBatch>, Option<TransactionId>);

#[derive(Debug)]
pub(crate) struct TestSession {
    pub(crate) id: SessionId,
    pub(crate) principal: Principal,
    pub(crate) server: Arc<TestServer>,
    pub(crate) prepared: Mutex<HashMap<StatementId, PreparedStatement>>,
    /// Whether a transaction is open that a statement has begun, and one that the front end has.
    pub(crate) is_open: Mutex<bool>,
    pub(crate) is_implicit: Mutex<bool>,
    /// Those with a handle, and their savepoints.
    pub(crate) transactions: Mutex<HashMap<TransactionId, Vec<SavepointId>>>,
    pub(crate) settings: Mutex<HashMap<String, String>>,
}

impl TestSession {
    fn statement(&self, statement: &Statement) -> Result<PreparedStatement> {
        match statement {
            Statement::Prepared(id) => {
                let prepared = self.prepared.lock();
                prepared.get(id).cloned().ok_or_else(|| Error::not_found("prepared statement not found"))
            }
            Statement::Sql(sql) => Ok((sql.clone(), Vec::new(), None)),
            Statement::Substrait(_) => Err(Error::unsupported("no plans")),
        }
    }

    /// A statement that is to run, which needs its transaction.
    fn run(&self, request: &Request) -> Result<(String, Vec<RecordBatch>)> {
        let (sql, bound, transaction) = self.statement(&request.statement)?;
        let transaction = transaction.or(request.transaction);
        self.check(transaction)?;
        let rows: usize = bound.iter().map(RecordBatch::num_rows).sum();
        let sql = if sql == "?" { format!("rows {rows}") } else { sql };
        self.server.runs.lock().push((sql.clone(), transaction));
        Ok((sql, bound))
    }

    fn check(&self, transaction: Option<TransactionId>) -> Result<()> {
        match transaction {
            Some(id) if !self.transactions.lock().contains_key(&id) => Err(no_transaction()),
            _ => Ok(()),
        }
    }

    fn description(sql: &str, bound: &[RecordBatch]) -> Result<Description> {
        let verb = sql.trim_start_matches('(').split(' ').next().unwrap_or_default();
        let parameters = if verb == "echo" { number(sql) } else { 0 };
        let parameters = (1..=parameters).map(|index| Field::new(format!("${index}"), DataType::Utf8, true));
        let number = (verb == "?").then(|| Field::new("$1", DataType::Int64, true));
        let parameters: SchemaRef = Arc::new(Schema::new(parameters.chain(number).collect::<Vec<_>>()));
        let schema = match (verb, bound) {
            ("wrong", _) => {
                let error = Error::new(ErrorKind::Syntax, "syntax error: unexpected `x`");
                return Err(error.with_position(Position { line: 1, column: 4 }));
            }
            (verb, _) if UPDATES.contains(&verb) => Arc::new(Schema::empty()),
            ("types", _) => types::batch().schema(),
            ("wide", _) => texts(),
            ("echo", [rows, ..]) => rows.schema(),
            ("echo", []) => Arc::clone(&parameters),
            ("SELECT", _) if sql.contains("missing") => {
                return Err(Error::not_found("table `missing` not found"));
            }
            ("SELECT", _) => table(),
            ("instant", _) => instants(),
            _ => numbers(),
        };
        let is_update = UPDATES.contains(&verb);
        Ok(Description { schema, parameters, is_update, reads_only: !is_update })
    }

    fn note(&self, effect: impl Into<String>) {
        self.server.effects.lock().push(effect.into());
    }

    /// What a statement does that returns no rows.
    fn act(&self, sql: String) -> Result<()> {
        let words: Vec<&str> = sql.split(' ').collect();
        match words.first().map(|first| first.to_lowercase()).as_deref() {
            Some("begin") => {
                *self.is_open.lock() = true;
                *self.is_implicit.lock() = false;
            }
            Some("commit" | "rollback") if !sql.contains("to") => *self.is_open.lock() = false,
            Some("use") if sql != "USE `main`" => return Err(Error::not_found("schema not found")),
            Some("set") if words.len() == 3 => {
                self.settings.lock().insert(words[1].to_owned(), words[2].to_owned());
            }
            _ => {}
        }
        self.note(sql);
        Ok(())
    }
}

fn no_transaction() -> Error {
    Error::not_found("transaction not found").with_hint("begin a new transaction")
}

#[async_trait]
impl Session for TestSession {
    fn id(&self) -> SessionId {
        self.id
    }

    fn principal(&self) -> &Principal {
        &self.principal
    }

    fn statements(&self, sql: &str) -> Vec<String> {
        sql.split(';').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
    }

    async fn describe(&self, statement: &Statement) -> Result<Description> {
        let (sql, bound, _) = self.statement(statement)?;
        Self::description(&sql, &bound)
    }

    async fn prepare(&self, sql: &str, transaction: Option<TransactionId>) -> Result<Prepared> {
        self.check(transaction)?;
        let description = Self::description(sql, &[])?;
        let id = StatementId::random();
        self.prepared.lock().insert(id, (sql.to_owned(), Vec::new(), transaction));
        self.server.counts.send_modify(|counts| counts.prepared += 1);
        Ok(Prepared { id, description })
    }

    async fn bind(&self, id: StatementId, parameters: Vec<RecordBatch>) -> Result<()> {
        let mut prepared = self.prepared.lock();
        let prepared = prepared.get_mut(&id).ok_or_else(|| Error::not_found("statement not found"))?;
        let is_number = |batch: &RecordBatch| batch.column(0).data_type() == &DataType::Int64;
        assert!(prepared.0 != "?" || parameters.iter().all(is_number));
        prepared.1 = parameters;
        Ok(())
    }

    async fn close_prepared(&self, id: StatementId) -> Result<()> {
        if self.prepared.lock().remove(&id).is_some() {
            self.server.counts.send_modify(|counts| counts.prepared -= 1);
        }
        Ok(())
    }

    async fn start(&self, request: &Request) -> Result<Answer> {
        let (sql, bound) = self.run(request)?;
        let mut kinds = ErrorKind::ALL.iter().copied();
        if let Some(kind) = kinds.find(|kind| sql == format!("fail {kind:?}")) {
            return Err(Error::new(kind, "the secret inside"));
        }
        match sql.as_str() {
            "panic" => panic!("a panic in a statement"),
            "hang" => futures::future::pending().await,
            "bad" => return Err(Error::internal("the secret inside")),
            "fail" => return Err(Error::invalid("divide by zero").with_reason(Reason::DivisionByZero)),
            "missing" => {
                return Err(Error::not_found("table `t` not found").with_reason(Reason::UndefinedTable));
            }
            "double" => {
                return Err(Error::invalid("duplicate key").with_reason(Reason::UniqueViolation));
            }
            "slow" => return Err(Error::new(ErrorKind::Timeout, "too slow")),
            _ => {}
        }
        let Description { schema, is_update, .. } = Self::description(&sql, &bound)?;
        if is_update {
            self.act(sql.clone())?;
        }
        let is_kept = request.delivery == Some(Delivery::Spool);
        let answer = Answer {
            query: QueryId::random(),
            schema,
            layout: Layout::default(),
            partitions: 1,
            ordered: true,
            rows: None,
            expires: is_kept.then(|| SystemTime::now() + Duration::from_secs(60)),
            locations: Vec::new(),
            batches: None,
        };
        let query = Query { sql, bound, answer: answer.clone(), is_read: false, is_cancelled: false };
        self.server.queries.lock().insert(answer.query, query);
        Ok(answer)
    }

    async fn update(&self, request: &Request) -> Result<Option<u64>> {
        let (sql, _) = self.run(request)?;
        self.act(sql)?;
        Ok(Some(3))
    }

    async fn ingest(&self, ingest: &Ingest, mut rows: BatchStream) -> Result<u64> {
        if ingest.table == "missing" && ingest.if_missing == IfMissing::Fail {
            return Err(Error::not_found("table `missing` not found"));
        }
        self.check(ingest.transaction)?;
        let _counted = Counted::new(Arc::clone(&self.server), |counts| &mut counts.streams);
        let mut taken = Vec::new();
        if rows.schema().fields().is_empty() {
            let options = RecordBatchOptions::new().with_row_count(Some(0));
            taken.push(RecordBatch::try_new_with_options(rows.schema(), Vec::new(), &options).unwrap());
        }
        while let Some(batch) = rows.next().await {
            taken.push(batch?);
            if ingest.table == "refusing" {
                return Err(
                    Error::invalid("column `a` must not be null").with_reason(Reason::NotNullViolation)
                );
            }
            if ingest.table == "stuck" {
                return futures::future::pending().await;
            }
        }
        assert!(taken.iter().all(|batch| batch.schema() == rows.schema()));
        let count: usize = taken.iter().map(RecordBatch::num_rows).sum();
        self.server.written.lock().extend(taken);
        let (missing, exists) = (ingest.if_missing, ingest.if_exists);
        let path = [ingest.catalog.as_deref(), ingest.schema_name.as_deref(), Some(ingest.table.as_str())];
        let path = path.into_iter().flatten().collect::<Vec<_>>().join("/");
        let kind = if ingest.temporary { "temporary " } else { "" };
        let within = ingest.transaction.map(|id| format!(" in {id}")).unwrap_or_default();
        self.note(format!("wrote {count} into {kind}{path} {missing:?} {exists:?}{within}"));
        Ok(count as u64)
    }

    async fn begin(&self) -> Result<TransactionId> {
        let id = TransactionId::random();
        self.transactions.lock().insert(id, Vec::new());
        Ok(id)
    }

    async fn end(&self, transaction: TransactionId, end: TransactionEnd) -> Result<()> {
        self.transactions.lock().remove(&transaction).ok_or_else(no_transaction)?;
        self.note(format!("ended {end:?}"));
        Ok(())
    }

    async fn begin_implicit(&self) -> Result<()> {
        if !self.in_transaction() && !std::mem::replace(&mut *self.is_implicit.lock(), true) {
            self.note("(begin)");
        }
        Ok(())
    }

    async fn end_implicit(&self, end: TransactionEnd) -> Result<()> {
        *self.is_implicit.lock() = false;
        if !self.in_transaction() {
            self.note(format!("({end:?})"));
        }
        Ok(())
    }

    fn in_transaction(&self) -> bool {
        *self.is_open.lock()
    }

    async fn savepoint(&self, transaction: TransactionId, name: &str) -> Result<SavepointId> {
        let id = SavepointId::random();
        let mut transactions = self.transactions.lock();
        transactions.get_mut(&transaction).ok_or_else(no_transaction)?.push(id);
        self.note(format!("saved {name}"));
        Ok(id)
    }

    async fn end_savepoint(&self, savepoint: SavepointId, end: TransactionEnd) -> Result<()> {
        let transactions = self.transactions.lock();
        if !transactions.values().flatten().any(|known| *known == savepoint) {
            return Err(Error::not_found("savepoint not found"));
        }
        self.note(format!("ended savepoint {end:?}"));
        Ok(())
    }

    async fn primary_key(&self, table: &TableName) -> Result<Option<PrimaryKey>> {
        let path = [table.catalog.clone().unwrap(), table.schema_name.clone().unwrap(), table.name.clone()];
        Ok(Some(PrimaryKey { table: path, name: None, columns: vec!["n".to_owned()] }))
    }

    fn options(&self) -> Vec<(String, OptionValue)> {
        let text = |text: &str| OptionValue::String(text.to_owned());
        vec![("catalog".to_owned(), text("bowshot")), ("schema".to_owned(), text("main"))]
    }

    fn setting(&self, name: &str) -> Option<String> {
        self.settings.lock().get(name).cloned()
    }

    async fn set_option(&self, name: &str, value: Option<OptionValue>) -> Result<()> {
        let of_postgres = OF_POSTGRES.contains(&name);
        let known = COMPATIBILITY_PARAMETERS.iter().find(|known| known.name == name && !of_postgres);
        let is_option = of_postgres || SESSION_OPTIONS.iter().any(|known| known.name == name);
        if known.is_none() && !is_option {
            return Err(Error::not_found("no such option"));
        }
        if let Some(OptionValue::String(text)) = &value {
            if known.is_some_and(|known| known.accept(text).is_none()) {
                return Err(Error::invalid("no value for the option"));
            }
            if of_postgres {
                self.settings.lock().insert(name.to_owned(), text.clone());
            }
        }
        self.note(format!("{name} = {value:?}"));
        Ok(())
    }

    async fn catalogs(&self) -> Result<Vec<String>> {
        Ok(vec!["bowshot".to_owned(), "other".to_owned()])
    }

    async fn schemas(&self, _: Option<&str>, _: Option<&str>) -> Result<Vec<(String, String)>> {
        Ok(Vec::new())
    }

    async fn tables(&self, filter: &TableFilter) -> Result<Vec<TableEntry>> {
        let is_meant = |pattern: &Option<String>, name: &str| {
            pattern.as_ref().is_none_or(|pattern| bowshot_api::like(name, pattern))
        };
        let fits = filter.catalog.as_ref().is_none_or(|catalog| catalog == "bowshot")
            && is_meant(&filter.schema_pattern, "main")
            && is_meant(&filter.table_pattern, "t");
        let entry = TableEntry {
            catalog: "bowshot".to_owned(),
            schema_name: "main".to_owned(),
            name: "t".to_owned(),
            kind: TableKind::Table,
            schema: filter.include_schema.then(table),
            remarks: None,
        };
        Ok(if fits { vec![entry] } else { Vec::new() })
    }

    async fn close(&self) {
        if self.server.sessions.lock().remove(&self.id).is_some() {
            let prepared = self.prepared.lock().drain().count();
            self.server.counts.send_modify(|counts| {
                counts.sessions -= 1;
                counts.prepared -= prepared;
            });
        }
    }
}
