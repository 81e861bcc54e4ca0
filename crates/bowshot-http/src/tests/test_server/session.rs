//! The sessions of the server: its statements, prepared ones, settings and tables.

use super::{Counted, TestServer, answer, number, numbers, table, texts};
use arrow::array::RecordBatchOptions;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use bowshot_api::{
    Answer, BatchStream, Delivery, Description, Error, ErrorKind, IfMissing, Ingest, OptionValue, Position,
    Prepared, PrimaryKey, Principal, QueryId, Request, Result, SavepointId, Session, SessionId, Statement,
    StatementId, TableEntry, TableFilter, TableKind, TableName, TransactionEnd, TransactionId,
};
use futures::StreamExt;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

#[derive(Debug)]
pub(super) struct TestSession {
    pub(super) id: SessionId,
    pub(super) principal: Principal,
    pub(super) server: Arc<TestServer>,
    pub(super) prepared: Mutex<HashMap<StatementId, (String, Vec<RecordBatch>)>>,
    pub(super) open: Mutex<bool>,
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

    pub(super) fn description(sql: &str, bound: &[RecordBatch]) -> Result<Description> {
        let verb = sql.split(' ').next().unwrap_or_default();
        let parameters = if verb == "echo" { number(sql) } else { 0 };
        let parameters = (1..=parameters).map(|index| Field::new(format!("${index}"), DataType::Utf8, true));
        let parameters: SchemaRef = Arc::new(Schema::new(parameters.collect::<Vec<_>>()));
        let schema = match (verb, bound) {
            ("wrong", _) => {
                let error = Error::new(ErrorKind::Syntax, "syntax error: unexpected `x`");
                return Err(error.with_position(Position { line: 1, column: 4 }));
            }
            ("insert" | "begin" | "commit", _) => Arc::new(Schema::empty()),
            ("echo", [rows, ..]) => rows.schema(),
            ("echo", []) => Arc::clone(&parameters),
            ("types", _) => super::super::types::batch().schema(),
            ("wide", _) => texts(),
            ("SELECT", _) if sql.contains("missing") => {
                return Err(Error::not_found("table `missing` not found"));
            }
            ("SELECT", _) => table(),
            _ => numbers(),
        };
        let is_update = matches!(verb, "insert" | "begin" | "commit");
        Ok(Description { schema, parameters, is_update, reads_only: !is_update })
    }

    fn act(&self, sql: &str) {
        match sql {
            "begin" => *self.open.lock().unwrap() = true,
            "commit" => *self.open.lock().unwrap() = false,
            "insert" => {}
            _ => return,
        }
        self.server.note(sql);
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

    fn statements(&self, sql: &str) -> Vec<String> {
        sql.split(';').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
    }

    async fn describe(&self, statement: &Statement) -> Result<Description> {
        let (sql, bound) = self.statement(statement)?;
        Self::description(&sql, &bound)
    }

    async fn prepare(&self, sql: &str, _: Option<TransactionId>) -> Result<Prepared> {
        let description = Self::description(sql, &[])?;
        let id = StatementId::random();
        self.prepared.lock().unwrap().insert(id, (sql.to_owned(), Vec::new()));
        self.server.counts.send_modify(|counts| counts.prepared += 1);
        Ok(Prepared { id, description })
    }

    async fn bind(&self, id: StatementId, parameters: Vec<RecordBatch>) -> Result<()> {
        if let Some(prepared) = self.prepared.lock().unwrap().get_mut(&id) {
            prepared.1 = parameters;
        }
        Ok(())
    }

    async fn close_prepared(&self, id: StatementId) -> Result<()> {
        if self.prepared.lock().unwrap().remove(&id).is_some() {
            self.server.counts.send_modify(|counts| counts.prepared -= 1);
        }
        Ok(())
    }

    async fn start(&self, request: &Request) -> Result<Answer> {
        let (sql, bound) = self.statement(&request.statement)?;
        let kinds = ErrorKind::ALL.iter();
        if let Some(kind) = kinds.copied().find(|kind| sql == format!("fail {kind:?}")) {
            return Err(Error::new(kind, "the secret inside"));
        }
        if sql == "hang" {
            let _counted = Counted::new(Arc::clone(&self.server), |counts| &mut counts.hanging);
            futures::future::pending::<()>().await;
        }
        self.act(&sql);
        let answer = answer(QueryId::random(), Self::description(&sql, &bound)?.schema);
        let is_kept = request.delivery == Some(Delivery::Spool);
        self.server.queries.lock().unwrap().insert(answer.query, (sql, bound, is_kept));
        Ok(answer)
    }

    async fn update(&self, request: &Request) -> Result<Option<u64>> {
        let (sql, _) = self.statement(&request.statement)?;
        self.act(&sql);
        Ok(Some(3))
    }

    async fn ingest(&self, ingest: &Ingest, mut rows: BatchStream) -> Result<u64> {
        if ingest.table == "missing" && ingest.if_missing == IfMissing::Fail {
            return Err(Error::not_found("table `missing` not found"));
        }
        let mut count = 0;
        let mut taken = Vec::new();
        if rows.schema().fields().is_empty() {
            taken.push(RecordBatch::try_new_with_options(
                rows.schema(),
                Vec::new(),
                &RecordBatchOptions::new().with_row_count(Some(0)),
            ));
        }
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            count += batch.num_rows() as u64;
            taken.push(Ok(batch));
        }
        self.server.written.lock().unwrap().extend(taken.into_iter().map(|batch| batch.unwrap()));
        let (missing, exists) = (ingest.if_missing, ingest.if_exists);
        let path = [ingest.catalog.as_deref(), ingest.schema_name.as_deref(), Some(ingest.table.as_str())];
        let path: Vec<&str> = path.into_iter().flatten().collect();
        self.server.note(format!("wrote {count} into {} {missing:?} {exists:?}", path.join("/")));
        Ok(count)
    }

    async fn begin(&self) -> Result<TransactionId> {
        Ok(TransactionId::random())
    }

    async fn end(&self, _: TransactionId, _: TransactionEnd) -> Result<()> {
        Ok(())
    }

    async fn begin_implicit(&self) -> Result<()> {
        Ok(())
    }

    async fn end_implicit(&self, end: TransactionEnd) -> Result<()> {
        self.server.note(format!("({end:?})"));
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

    async fn primary_key(&self, table: &TableName) -> Result<Option<PrimaryKey>> {
        let path = [table.catalog.clone().unwrap(), table.schema_name.clone().unwrap(), table.name.clone()];
        Ok(Some(PrimaryKey { table: path, name: None, columns: vec!["n".to_owned()] }))
    }

    fn options(&self) -> Vec<(String, OptionValue)> {
        let text = |text: &str| OptionValue::String(text.to_owned());
        vec![("catalog".to_owned(), text("bowshot")), ("schema".to_owned(), text("main"))]
    }

    async fn set_option(&self, name: &str, value: Option<OptionValue>) -> Result<()> {
        match name {
            "application_name" | "dialect" | "time_zone" => {
                self.server.note(format!("{name} = {value:?}"));
                Ok(())
            }
            _ => Err(Error::not_found("no such option")),
        }
    }

    async fn catalogs(&self) -> Result<Vec<String>> {
        Ok(vec!["bowshot".to_owned()])
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
        if self.server.sessions.lock().unwrap().remove(&self.id).is_some() {
            let prepared = self.prepared.lock().unwrap().drain().count();
            self.server.counts.send_modify(|counts| {
                counts.sessions -= 1;
                counts.prepared -= prepared;
            });
        }
    }
}
