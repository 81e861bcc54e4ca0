//! The sessions of the server: its statements, prepared ones, settings and tables.

use crate::server::{Counted, TestServer, instants, number, numbers, table};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use bowshot_api::{
    Answer, BatchStream, COMPATIBILITY_PARAMETERS, Description, Error, ErrorKind, Ingest, Layout,
    OptionValue, Position, Prepared, PrimaryKey, Principal, QueryId, Reason, Request, Result,
    SESSION_OPTIONS, SavepointId, Session, SessionId, Statement, StatementId, TableEntry, TableFilter,
    TableName, TransactionEnd, TransactionId,
};
use futures::StreamExt;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

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

#[derive(Debug)]
pub(crate) struct TestSession {
    pub(crate) id: SessionId,
    pub(crate) principal: Principal,
    pub(crate) server: Arc<TestServer>,
    pub(crate) prepared: Mutex<HashMap<StatementId, (String, Vec<RecordBatch>)>>,
    pub(crate) open: Mutex<bool>,
    pub(crate) settings: Mutex<HashMap<String, String>>,
}

impl TestSession {
    fn statement(&self, statement: &Statement) -> Result<(String, Vec<RecordBatch>)> {
        match statement {
            Statement::Prepared(id) => {
                let prepared = self.prepared.lock().unwrap();
                prepared.get(id).cloned().ok_or_else(|| Error::not_found("prepared statement not found"))
            }
            Statement::Sql(sql) => Ok((sql.clone(), Vec::new())),
            Statement::Substrait(_) => Err(Error::unsupported("no plans")),
        }
    }

    fn description(sql: &str, bound: &[RecordBatch]) -> Result<Description> {
        let verb = sql.trim_start_matches('(').split(' ').next().unwrap_or_default();
        let parameters = if verb == "echo" { number(sql) } else { 0 };
        let parameters = (1..=parameters).map(|index| Field::new(format!("${index}"), DataType::Utf8, true));
        let parameters: SchemaRef = Arc::new(Schema::new(parameters.collect::<Vec<_>>()));
        let schema = match (verb, bound) {
            ("wrong", _) => {
                let error = Error::new(ErrorKind::Syntax, "syntax error: unexpected `x`");
                return Err(error.with_position(Position { line: 1, column: 4 }));
            }
            ("insert" | "create" | "set" | "RESET", _) => Arc::new(Schema::empty()),
            ("large", _) => Arc::new(Schema::new(vec![Field::new("t", DataType::Utf8, false)])),
            ("echo", [rows, ..]) => rows.schema(),
            ("echo", []) => Arc::clone(&parameters),
            ("SELECT", _) => table(),
            ("instant", _) => instants(),
            _ => numbers(),
        };
        let is_update = matches!(verb, "insert" | "create" | "set" | "RESET");
        Ok(Description { schema, parameters, is_update, reads_only: !is_update })
    }

    fn note(&self, effect: impl Into<String>) {
        self.server.effects.lock().unwrap().push(effect.into());
    }
}

#[async_trait]
impl Session for TestSession {
    fn id(&self) -> SessionId {
        self.id
    }

    fn principal(&self) -> &Principal {
        &self.principal
    }

    async fn describe(&self, statement: &Statement) -> Result<Description> {
        let (sql, bound) = self.statement(statement)?;
        Self::description(&sql, &bound)
    }

    async fn prepare(&self, sql: &str, _: Option<TransactionId>) -> Result<Prepared> {
        let description = Self::description(sql, &[])?;
        let id = StatementId::random();
        self.prepared.lock().unwrap().insert(id, (sql.to_owned(), Vec::new()));
        Ok(Prepared { id, description })
    }

    async fn bind(&self, id: StatementId, parameters: Vec<RecordBatch>) -> Result<()> {
        if let Some(prepared) = self.prepared.lock().unwrap().get_mut(&id) {
            prepared.1 = parameters;
        }
        Ok(())
    }

    async fn close_prepared(&self, id: StatementId) -> Result<()> {
        self.prepared.lock().unwrap().remove(&id);
        Ok(())
    }

    async fn start(&self, request: &Request) -> Result<Answer> {
        let (sql, bound) = self.statement(&request.statement)?;
        match sql.as_str() {
            "panic" => panic!("a panic in a statement"),
            "hang" => {
                let _counted = Counted::new(Arc::clone(&self.server), |counts| &mut counts.hanging);
                futures::future::pending().await
            }
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
        let answer = Answer {
            query: QueryId::random(),
            schema: Self::description(&sql, &bound)?.schema,
            layout: Layout::default(),
            partitions: 1,
            ordered: true,
            rows: None,
            expires: None,
            locations: Vec::new(),
        };
        self.server.queries.lock().unwrap().insert(answer.query, (sql, bound));
        Ok(answer)
    }

    async fn update(&self, request: &Request) -> Result<Option<u64>> {
        let (sql, _) = self.statement(&request.statement)?;
        let words: Vec<&str> = sql.split(' ').collect();
        match words.first().map(|first| first.to_lowercase()).as_deref() {
            Some("begin") => *self.open.lock().unwrap() = true,
            Some("commit" | "rollback") if !sql.contains("to") => *self.open.lock().unwrap() = false,
            Some("use") if sql != "USE `main`" => return Err(Error::not_found("schema not found")),
            Some("set") if words.len() == 3 => {
                self.settings.lock().unwrap().insert(words[1].to_owned(), words[2].to_owned());
            }
            _ => {}
        }
        self.note(sql);
        Ok(Some(3))
    }

    async fn ingest(&self, ingest: &Ingest, mut rows: BatchStream) -> Result<u64> {
        let mut count = 0;
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            if ingest.table == "refusing" {
                return Err(
                    Error::invalid("column `a` must not be null").with_reason(Reason::NotNullViolation)
                );
            }
            count += batch.num_rows() as u64;
            self.server.written.lock().unwrap().push(batch);
        }
        self.note(format!("wrote {count} into {}", ingest.table));
        Ok(count)
    }

    async fn begin(&self) -> Result<TransactionId> {
        Ok(TransactionId::random())
    }

    async fn end(&self, _: TransactionId, _: TransactionEnd) -> Result<()> {
        Ok(())
    }

    async fn begin_implicit(&self) -> Result<()> {
        self.note("(begin)");
        Ok(())
    }

    async fn end_implicit(&self, end: TransactionEnd) -> Result<()> {
        if !self.in_transaction() {
            self.note(format!("({end:?})"));
        }
        Ok(())
    }

    fn in_transaction(&self) -> bool {
        *self.open.lock().unwrap()
    }

    async fn savepoint(&self, _: TransactionId, _: &str) -> Result<SavepointId> {
        Ok(SavepointId::random())
    }

    async fn end_savepoint(&self, _: SavepointId, _: TransactionEnd) -> Result<()> {
        Ok(())
    }

    async fn primary_key(&self, _: &TableName) -> Result<Option<PrimaryKey>> {
        Ok(None)
    }

    fn options(&self) -> Vec<(String, OptionValue)> {
        Vec::new()
    }

    fn setting(&self, name: &str) -> Option<String> {
        self.settings.lock().unwrap().get(name).cloned()
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
                self.settings.lock().unwrap().insert(name.to_owned(), text.clone());
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

    async fn tables(&self, _: &TableFilter) -> Result<Vec<TableEntry>> {
        Ok(Vec::new())
    }

    async fn close(&self) {
        self.server.counts.send_modify(|counts| counts.sessions -= 1);
    }
}
