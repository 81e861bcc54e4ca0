//! A session below the door: knows the statements of its scenario, keeps options and prepared statements.

use crate::scenario::Reply;
use crate::server::Stage;
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use bowshot_api::{
    Answer, BatchStream, Description, Error, Ingest, OptionValue, Prepared, PrimaryKey, Principal, Request,
    Result, SavepointId, Session, SessionId, Statement, StatementId, TableEntry, TableFilter, TableName,
    TransactionEnd, TransactionId,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A session of a canned server.
#[derive(Debug)]
pub(crate) struct CannedSession {
    id: SessionId,
    principal: Principal,
    stage: Arc<Stage>,
    options: Mutex<BTreeMap<String, OptionValue>>,
    prepared: Mutex<HashMap<StatementId, String>>,
}

impl CannedSession {
    pub(crate) fn new(principal: Principal, stage: Arc<Stage>) -> Self {
        Self {
            id: SessionId::random(),
            principal,
            stage,
            options: Mutex::default(),
            prepared: Mutex::default(),
        }
    }

    fn reply(&self, statement: &Statement) -> Result<&Reply> {
        let text = match statement {
            Statement::Sql(text) => text.clone(),
            Statement::Prepared(id) => lock(&self.prepared)
                .get(id)
                .cloned()
                .ok_or_else(|| Error::not_found("prepared statement not found"))?,
        };
        let reply = self.stage.scenario.statements.get(text.as_str());
        reply.ok_or_else(|| Error::invalid(format!("the scenario has no statement `{text}`")))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn no_writing() -> Error {
    Error::unsupported("the scenario writes nothing")
}

fn describe(reply: &Reply) -> Description {
    Description {
        schema: Arc::clone(&reply.schema),
        parameters: Arc::clone(&reply.parameters),
        is_update: reply.updated.is_some(),
    }
}

#[async_trait]
impl Session for CannedSession {
    fn id(&self) -> SessionId {
        self.id
    }

    fn principal(&self) -> &Principal {
        &self.principal
    }

    async fn describe(&self, statement: &Statement) -> Result<Description> {
        self.reply(statement).map(describe)
    }

    async fn prepare(&self, sql: &str, _: Option<TransactionId>) -> Result<Prepared> {
        let description = describe(self.reply(&Statement::Sql(sql.to_owned()))?);
        let id = StatementId::random();
        lock(&self.prepared).insert(id, sql.to_owned());
        Ok(Prepared { id, description })
    }

    async fn bind(&self, id: StatementId, parameters: Vec<RecordBatch>) -> Result<()> {
        let wanted = &self.reply(&Statement::Prepared(id))?.parameters;
        match parameters.iter().find(|batch| batch.schema_ref() != wanted) {
            Some(batch) => {
                Err(Error::invalid(format!("parameters {:?} instead of {wanted:?}", batch.schema())))
            }
            None => Ok(()),
        }
    }

    async fn close_prepared(&self, id: StatementId) -> Result<()> {
        lock(&self.prepared).remove(&id);
        Ok(())
    }

    async fn start(&self, request: &Request) -> Result<Answer> {
        Ok(self.stage.start(self.reply(&request.statement)?))
    }

    async fn update(&self, request: &Request) -> Result<Option<u64>> {
        Ok(self.reply(&request.statement)?.updated)
    }

    async fn ingest(&self, _: &Ingest, _: BatchStream) -> Result<u64> {
        Err(no_writing())
    }

    async fn begin(&self) -> Result<TransactionId> {
        Err(no_writing())
    }

    async fn end(&self, _: TransactionId, _: TransactionEnd) -> Result<()> {
        Err(no_writing())
    }

    async fn savepoint(&self, _: TransactionId, _: &str) -> Result<SavepointId> {
        Err(no_writing())
    }

    async fn end_savepoint(&self, _: SavepointId, _: TransactionEnd) -> Result<()> {
        Err(no_writing())
    }

    async fn primary_key(&self, _: &TableName) -> Result<Option<PrimaryKey>> {
        Ok(None)
    }

    fn options(&self) -> Vec<(String, OptionValue)> {
        lock(&self.options).iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    async fn set_option(&self, name: &str, value: Option<OptionValue>) -> Result<()> {
        let bad = self.stage.scenario.bad_option;
        if name == bad {
            return Err(Error::not_found(format!("option `{name}` not found")));
        }
        match value {
            Some(OptionValue::String(text)) if text == bad => {
                return Err(Error::invalid(format!("`{text}` is no value of option `{name}`")));
            }
            Some(value) => lock(&self.options).insert(name.to_owned(), value),
            None => lock(&self.options).remove(name),
        };
        Ok(())
    }

    async fn catalogs(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    async fn schemas(&self, catalog: Option<&str>, pattern: Option<&str>) -> Result<Vec<(String, String)>> {
        match (&self.stage.scenario.tables, catalog, pattern) {
            (Some(wanted), catalog, pattern)
                if catalog != wanted.catalog.as_deref() || pattern != wanted.schema_pattern.as_deref() =>
            {
                Err(Error::invalid(format!("schemas {catalog:?} {pattern:?} instead of {wanted:?}")))
            }
            _ => Ok(Vec::new()),
        }
    }

    async fn tables(&self, filter: &TableFilter) -> Result<Vec<TableEntry>> {
        let Some(wanted) = &self.stage.scenario.tables else { return Ok(Vec::new()) };
        let same = filter.catalog == wanted.catalog
            && filter.schema_pattern == wanted.schema_pattern
            && filter.table_pattern == wanted.table_pattern
            && filter.include_schema == wanted.include_schema
            && filter.kinds.as_ref().is_some_and(|kinds| kinds.len() == 2);
        if same {
            Ok(Vec::new())
        } else {
            Err(Error::invalid(format!("tables {filter:?} instead of {wanted:?}")))
        }
    }

    async fn close(&self) {
        self.stage.close(self.id);
    }
}
