//! A simulated session: knows the statements of its scenario, and has options and prepared statements.

use crate::scenario::{PREPARED, Reply, Transaction, WITHIN};
use crate::server::Stage;
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use bowshot_api::{
    Answer, BatchStream, Description, Error, Ingest, OptionValue, Prepared, PrimaryKey, Principal, Request,
    Result, SavepointId, Session, SessionId, Statement, StatementId, SubstraitPlan, TableEntry, TableFilter,
    TableName, TransactionEnd, TransactionId,
};
use futures::StreamExt;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

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

    fn reply(&self, statement: &Statement, transaction: Option<TransactionId>) -> Result<&Reply> {
        match statement {
            Statement::Sql(text) => self.known(&self.within(transaction, text)?),
            Statement::Substrait(plan) => self.known(&self.within(transaction, &text_of(plan)?)?),
            Statement::Prepared(id) => {
                let text = self.prepared.lock().get(id).cloned();
                self.known(&text.ok_or_else(|| Error::not_found("prepared statement not found"))?)
            }
        }
    }

    fn known(&self, text: &str) -> Result<&Reply> {
        let reply = self.stage.scenario.statements.get(text);
        reply.ok_or_else(|| Error::invalid(format!("the scenario has no statement `{text}`")))
    }

    /// What a statement is called in the scenario.
    fn within(&self, transaction: Option<TransactionId>, text: &str) -> Result<String> {
        match transaction {
            Some(id) => self.transaction(id).map(|_| format!("{WITHIN}{text}")),
            None => Ok(text.to_owned()),
        }
    }

    fn transaction(&self, id: TransactionId) -> Result<Transaction> {
        self.stage.scenario.transaction.filter(|known| known.id == id).ok_or_else(no_transaction)
    }

    fn keep(&self, text: String) -> Result<Prepared> {
        let description = describe(self.known(&text)?);
        let id = StatementId::random();
        self.prepared.lock().insert(id, text);
        Ok(Prepared { id, description })
    }
}

fn text_of(plan: &SubstraitPlan) -> Result<String> {
    match std::str::from_utf8(&plan.plan) {
        Ok(text) if plan.version == "version" => Ok(text.to_owned()),
        _ => Err(Error::invalid(format!("the scenario has no plan {plan:?}"))),
    }
}

fn no_transaction() -> Error {
    Error::not_found("transaction not found")
}

fn no_writing() -> Error {
    Error::unsupported("the scenario writes nothing")
}

fn describe(reply: &Reply) -> Description {
    Description {
        schema: Arc::clone(&reply.schema),
        parameters: Arc::clone(&reply.parameters),
        is_update: reply.updated.is_some(),
        reads_only: reply.updated.is_none(),
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
        self.reply(statement, None).map(describe)
    }

    async fn prepare(&self, sql: &str, transaction: Option<TransactionId>) -> Result<Prepared> {
        self.keep(self.within(transaction, sql)?)
    }

    async fn prepare_substrait(
        &self,
        plan: &SubstraitPlan,
        transaction: Option<TransactionId>,
    ) -> Result<Prepared> {
        self.keep(self.within(transaction, &format!("{PREPARED}{}", text_of(plan)?))?)
    }

    async fn bind(&self, id: StatementId, parameters: Vec<RecordBatch>) -> Result<()> {
        let wanted = &self.reply(&Statement::Prepared(id), None)?.parameters;
        match parameters.iter().find(|batch| batch.schema_ref() != wanted) {
            Some(batch) => {
                Err(Error::invalid(format!("parameters {:?} instead of {wanted:?}", batch.schema())))
            }
            None => Ok(()),
        }
    }

    async fn close_prepared(&self, id: StatementId) -> Result<()> {
        self.prepared.lock().remove(&id);
        Ok(())
    }

    async fn start(&self, request: &Request) -> Result<Answer> {
        Ok(self.stage.start(self.reply(&request.statement, request.transaction)?))
    }

    async fn update(&self, request: &Request) -> Result<Option<u64>> {
        Ok(self.reply(&request.statement, request.transaction)?.updated)
    }

    async fn ingest(&self, ingest: &Ingest, mut rows: BatchStream) -> Result<u64> {
        let Some(taken) = &self.stage.scenario.ingest else { return Err(no_writing()) };
        if *ingest != taken.ingest || rows.schema() != taken.schema {
            let schema = rows.schema();
            return Err(Error::invalid(format!("{ingest:?} of {schema:?} instead of {taken:?}")));
        }
        let mut count = 0;
        while let Some(batch) = rows.next().await {
            count += batch?.num_rows() as u64;
        }
        Ok(count)
    }

    async fn begin(&self) -> Result<TransactionId> {
        self.stage.scenario.transaction.map(|transaction| transaction.id).ok_or_else(no_writing)
    }

    async fn end(&self, transaction: TransactionId, _: TransactionEnd) -> Result<()> {
        self.transaction(transaction).map(|_| ())
    }

    async fn savepoint(&self, transaction: TransactionId, name: &str) -> Result<SavepointId> {
        let known = self.transaction(transaction)?;
        if name != known.savepoint_name {
            return Err(Error::invalid(format!("the scenario has no savepoint `{name}`")));
        }
        Ok(known.savepoint)
    }

    async fn end_savepoint(&self, savepoint: SavepointId, _: TransactionEnd) -> Result<()> {
        match self.stage.scenario.transaction {
            Some(known) if known.savepoint == savepoint => Ok(()),
            _ => Err(Error::not_found("savepoint not found")),
        }
    }

    async fn primary_key(&self, _: &TableName) -> Result<Option<PrimaryKey>> {
        Ok(None)
    }

    fn options(&self) -> Vec<(String, OptionValue)> {
        self.options.lock().iter().map(|(name, value)| (name.clone(), value.clone())).collect()
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
            Some(value) => self.options.lock().insert(name.to_owned(), value),
            None => self.options.lock().remove(name),
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
