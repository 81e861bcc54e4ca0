//! One client's session: options, prepared statements, its view of the engine. Implements the API's session.

mod last_write;
mod prepared_statements;
mod settings;
mod transaction_settings;

use crate::options::Options;
use crate::prepared::PreparedStatements;
use crate::query::{self, Expected};
use crate::running_statements::RunningStatement;
use crate::server::Shared;
use crate::sql_prepared::NamedStatements;
use crate::transactions::Transactions;
use crate::{
    decoded_size_limit, exchange, parquet_upload, request_task, settings_view, task, tensor_exchange, write,
};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use bowshot_api::{
    Answer, BatchStream, ByteStream, ColumnOrigin, Description, Error, ErrorKind, Ingest, Input, LastWrite,
    OptionValue, Prepared, PrimaryKey, Principal, Request, Result, SavepointId, Session, SessionId,
    Statement, StatementId, TRACES, TableEntry, TableFilter, TableName, TensorExchange, TransactionEnd,
    TransactionId,
};
use bowshot_engine::{Dialect, DialectName, EngineSession, redact_secrets};
use bowshot_policy::snapshot::Pinned;
use bowshot_query_task::{run_planning, with_planning_permit};
use futures::StreamExt;
use parking_lot::Mutex;
use std::borrow::Cow;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::Notify;
use tracing::{Instrument, Span, info_span};
use transaction_settings::SettingChanges;

/// A session. Each statement runs as one task on the query runtime: switching costs more than small statements.
#[derive(Debug)]
pub(crate) struct ClientSession {
    me: Weak<Self>,
    id: SessionId,
    number: AtomicI32,
    principal: Principal,
    /// Expiry of the latest credentials; `None` for never.
    expires: Mutex<Option<SystemTime>>,
    engine: EngineSession,
    /// A change makes other ones: each statement holds those that it began with.
    options: Mutex<Arc<Options>>,
    setting_changes: Mutex<SettingChanges>,
    prepared: PreparedStatements,
    named: NamedStatements,
    /// Rows changed by the last statement; −1 for other statements.
    changed_rows: AtomicI64,
    /// The effect of the last statement that changed rows.
    last_write: Mutex<LastWrite>,
    /// The last generated number; 0 without one.
    generated: AtomicI64,
    transactions: Transactions,
    used: Mutex<Instant>,
    closed: AtomicBool,
    /// Wakes those who wait for the end.
    ended: Notify,
    server: Arc<Shared>,
}

impl ClientSession {
    pub(crate) fn new(principal: Principal, engine: EngineSession, server: Arc<Shared>) -> Arc<Self> {
        let options = Options::new(&server.defaults);
        let number = AtomicI32::new(server.sessions.next_number());
        Arc::new_cyclic(|me| {
            engine.attach(settings::asked(me));
            Self {
                me: Weak::clone(me),
                id: SessionId::random(),
                number,
                expires: Mutex::new(principal.expires),
                principal,
                engine,
                options: Mutex::new(Arc::new(options)),
                setting_changes: Mutex::default(),
                prepared: PreparedStatements::default(),
                named: NamedStatements::default(),
                changed_rows: AtomicI64::new(-1),
                last_write: Mutex::default(),
                generated: AtomicI64::new(0),
                transactions: Transactions::default(),
                used: Mutex::new(Instant::now()),
                closed: AtomicBool::new(false),
                ended: Notify::new(),
                server,
            }
        })
    }

    /// Runs work on the query runtime; dropping the future stops it.
    async fn run<T, F>(&self, work: impl FnOnce(Arc<Self>) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        task::run(self.server.engine.runtime(), work(self.me()?)).await
    }

    fn me(&self) -> Result<Arc<Self>> {
        self.me.upgrade().ok_or_else(|| Error::internal("the session was dropped"))
    }

    fn text(&self, statement: &Statement) -> Arc<str> {
        match statement {
            Statement::Sql(sql) => Arc::from(sql.as_str()),
            Statement::Prepared(id) => {
                self.prepared.get(*id).map_or_else(|_| Arc::from(""), |found| found.sql)
            }
            Statement::Substrait(_) => Arc::from("a Substrait plan"),
        }
    }

    pub(crate) fn without_secrets<'a>(&self, sql: &'a str) -> Cow<'a, str> {
        let name = DialectName::parse(&self.options.lock().dialect).unwrap_or(DialectName::Ansi);
        redact_secrets(sql, Dialect::new(name))
    }

    pub(crate) fn key(&self) -> SessionId {
        self.id
    }

    pub(crate) fn owner(&self) -> &Principal {
        &self.principal
    }

    bowshot_api::getters!(
        pub(crate) engine: &EngineSession,
        pub(crate) server: &Arc<Shared>,
        pub(crate) prepared: &PreparedStatements,
        pub(crate) transactions: &Transactions,
        pub(crate) named: &NamedStatements
    );

    /// The snapshot of a transaction, else that of the session's current transaction.
    pub(crate) async fn pin(&self, transaction: Option<TransactionId>) -> Result<Pinned> {
        Ok(self.transactions.scope(transaction).await?.pin(&self.engine, self.isolation()))
    }

    pub(crate) fn transaction_of(&self, statement: &Statement) -> Result<Option<TransactionId>> {
        match statement {
            Statement::Sql(_) | Statement::Substrait(_) => Ok(None),
            Statement::Prepared(id) => {
                let made_in = self.prepared.get(*id)?.transaction;
                Ok(made_in.map(|transaction| self.transactions.successor(transaction)))
            }
        }
    }

    pub(crate) fn prepared_statements(&self) -> usize {
        self.prepared.count()
    }

    pub(crate) fn current_options(&self) -> Arc<Options> {
        Arc::clone(&self.options.lock())
    }

    pub(crate) fn touch(&self) {
        *self.used.lock() = Instant::now();
    }

    pub(crate) fn idle(&self) -> Duration {
        self.used.lock().elapsed()
    }

    /// Extends the session's expiry to that of newer credentials.
    pub(crate) fn prolong(&self, principal: &Principal) {
        if let (Some(held), Some(newer)) = (&self.principal.bearer, &principal.bearer) {
            held.take_over(newer);
        }
        let mut expires = self.expires.lock();
        *expires = match (*expires, principal.expires) {
            (Some(until), Some(newer)) => Some(until.max(newer)),
            _ => None,
        };
    }

    pub(crate) fn has_expired(&self, now: SystemTime) -> bool {
        let expires = self.expires.lock();
        expires.is_some_and(|expires| expires <= now)
    }

    pub(crate) fn end(&self) {
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        self.prepared.clear();
        self.named.clear();
        self.transactions.clear();
        self.principal.bearer.iter().for_each(|held| held.forget());
        let statements = self.server.live.by_session(self.id).into_iter();
        let pending = statements.filter(|statement| statement.result().is_none());
        pending.for_each(|statement| statement.cancel());
        self.server.results.session_closed(self.id);
        self.engine.release_locks();
        self.server.sessions.remove(self.id);
        self.ended.notify_waiters();
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        self.touch();
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::not_found(format!("session {} not found: it was closed", self.id))
                .with_hint("connect again"));
        }
        Ok(())
    }

    pub(crate) fn number(&self) -> i32 {
        self.number.load(Ordering::Relaxed)
    }

    pub(crate) fn note_changed(&self, rows: i64) {
        self.changed_rows.store(rows, Ordering::Relaxed);
    }

    async fn run_update(&self, request: &Request, live: &Arc<RunningStatement>) -> Result<Option<u64>> {
        self.clear_last_write();
        let query = query::start(self, request, (Expected::Effect, live)).await?.result()?;
        let mut rows = self.server.read(&query, 0)?;
        let nothing = query.answer().rows.filter(|rows| *rows == 0);
        let mut affected = None;
        while let Some(batch) = rows.next().await {
            affected = Some(affected.unwrap_or(0) + write::affected_rows(&batch?));
        }
        Ok(affected.or(nothing))
    }
}

impl Drop for ClientSession {
    fn drop(&mut self) {
        self.principal.bearer.iter().for_each(|held| held.forget());
    }
}

#[async_trait]
impl Session for ClientSession {
    fn id(&self) -> SessionId {
        self.id
    }

    fn principal(&self) -> &Principal {
        &self.principal
    }

    bowshot_api::delegate! { engine: fn statements(&self, sql: &str) -> Vec<String>; }

    async fn describe(&self, statement: &Statement) -> Result<Description> {
        self.check_open()?;
        if let Statement::Prepared(id) = statement
            && let Some(lookup) = self.current_lookup(*id)
        {
            return self.describe_authorized(&lookup);
        }
        let (text, start, statement) = (self.text(statement), self.start_of(statement), statement.clone());
        request_task::run_from(&self.me()?, (&text, start), |me, _| async move {
            with_planning_permit(me.describe_statement(&statement)).instrument(planning()).await
        })
        .await
    }

    async fn prepare(&self, sql: &str, transaction: Option<TransactionId>) -> Result<Prepared> {
        self.check_open()?;
        if let Some(prepared) = self.prepare_known(sql, transaction) {
            return prepared;
        }
        let text = sql.to_owned();
        let start = self.start_of_text(sql);
        request_task::run_from(&self.me()?, (sql, start), |me, _| async move {
            with_planning_permit(me.prepared_from(&text, transaction)).instrument(planning()).await
        })
        .await
    }

    async fn bind(&self, id: StatementId, parameters: Vec<RecordBatch>) -> Result<()> {
        self.check_open()?;
        let limit = self.server.context.limits.max_parameter_rows;
        let rows: usize = parameters.iter().map(RecordBatch::num_rows).sum();
        if rows > limit {
            let message = format!("{rows} rows of parameters were bound, more than the limit of {limit}");
            return Err(Error::new(ErrorKind::LimitReached, message).with_hint("bind fewer rows at a time"));
        }
        parameters.iter().try_for_each(decoded_size_limit::check)?;
        if Self::is_small_row(&parameters)
            && let Some(lookup) = self.current_lookup(id)
        {
            return self.bind_authorized(id, &lookup, parameters);
        }
        let (text, start) = (self.text(&Statement::Prepared(id)), self.start_of_binding(id, &parameters));
        request_task::run_from(&self.me()?, (&text, start), |me, _| async move {
            with_planning_permit(me.bind_parameters(id, parameters)).await
        })
        .await
    }

    async fn close_prepared(&self, id: StatementId) -> Result<()> {
        self.prepared.remove(id);
        Ok(())
    }

    async fn start(&self, request: &Request) -> Result<Answer> {
        let start = self.start_of(&request.statement);
        let (text, request) = (self.text(&request.statement), request.clone());
        request_task::run_from(&self.me()?, (&text, start), |me, live| async move {
            Ok(query::start(&me, &request, (Expected::Anything, &live)).await?.answer())
        })
        .await
    }

    async fn update(&self, request: &Request) -> Result<Option<u64>> {
        let (text, request) = (self.text(&request.statement), request.clone());
        request_task::run(&self.me()?, &text, |me, live| async move { me.run_update(&request, &live).await })
            .await
    }

    fn origins(&self, id: StatementId) -> Vec<Option<ColumnOrigin>> {
        let plan = self.prepared.get(id).ok().and_then(|prepared| prepared.fresh_plan().cloned());
        plan.map(|plan| self.engine.origins(&plan)).unwrap_or_default()
    }

    fn last_write(&self) -> LastWrite {
        self.last_write.lock().clone()
    }

    async fn ingest(&self, ingest: &Ingest, rows: BatchStream) -> Result<u64> {
        let (wanted, text) = (ingest.clone(), write::log_text(ingest));
        request_task::run(&self.me()?, &text, |me, live| async move {
            write::ingest(&me, &wanted, rows, &live).await
        })
        .await
    }

    async fn ingest_parquet(&self, ingest: &Ingest, pieces: ByteStream) -> Result<u64> {
        let (wanted, text) = (ingest.clone(), write::log_text(ingest));
        request_task::run(&self.me()?, &text, |me, live| async move {
            write::check_ingest(&me, &wanted).await?;
            let rows = parquet_upload::parquet(pieces, &me.server().context.accounts).await?;
            write::ingest(&me, &wanted, rows, &live).await
        })
        .await
    }

    async fn exchange(&self, request: &Request, input: Input) -> Result<Answer> {
        let (text, request) = (self.text(&request.statement), request.clone());
        request_task::run(&self.me()?, &text, |me, live| async move {
            exchange::start(&me, &request, input, &live).await
        })
        .await
    }

    async fn join(&self, exchange: TensorExchange, rows: BatchStream) -> Result<BatchStream> {
        tensor_exchange::join(self, exchange, rows)
    }

    fn in_transaction(&self) -> bool {
        self.transactions.is_begun()
    }

    async fn release_after_error(&self) {
        self.transactions.release_after_error().await;
    }

    async fn begin(&self) -> Result<TransactionId> {
        query::check_accepting(self)?;
        self.transactions.begin(false)
    }

    async fn begin_implicit(&self) -> Result<()> {
        query::check_accepting(self)?;
        self.transactions.begin_implicit()
    }

    async fn end_implicit(&self, end: TransactionEnd) -> Result<()> {
        self.run(move |me| async move {
            let ended = me.transactions.end_implicit(end, &me.engine).await;
            me.end_settings(if ended.is_ok() { end } else { TransactionEnd::Rollback });
            ended
        })
        .await
    }

    async fn end(&self, transaction: TransactionId, end: TransactionEnd) -> Result<()> {
        self.check_open()?;
        self.run(|me| async move {
            let ended = me.transactions.end(transaction, end, &me.engine).await;
            me.end_settings(if ended.is_ok() { end } else { TransactionEnd::Rollback });
            ended
        })
        .await
    }

    async fn savepoint(&self, transaction: TransactionId, name: &str) -> Result<SavepointId> {
        self.check_open()?;
        self.transactions.savepoint(transaction, name).await
    }

    async fn end_savepoint(&self, savepoint: SavepointId, end: TransactionEnd) -> Result<()> {
        self.check_open()?;
        self.transactions.end_savepoint(savepoint, end).await
    }

    async fn primary_key(&self, table: &TableName) -> Result<Option<PrimaryKey>> {
        self.check_open()?;
        let pinned = self.pin(None).await?;
        self.engine.check_listing(&pinned).await?;
        self.engine.primary_key(table, &pinned)
    }

    fn options(&self) -> Vec<(String, OptionValue)> {
        self.options.lock().list()
    }

    fn option(&self, name: &str) -> Option<OptionValue> {
        self.options.lock().value(name)
    }

    fn setting(&self, name: &str) -> Option<String> {
        let settings = settings_view::settings(&self.current_options(), &self.principal.name);
        settings.into_iter().find(|setting| setting.name == name).map(|setting| setting.value)
    }

    async fn set_option(&self, name: &str, value: Option<OptionValue>) -> Result<()> {
        self.check_open()?;
        self.set(name, value)
    }

    async fn catalogs(&self) -> Result<Vec<String>> {
        self.check_open()?;
        let pinned = self.pin(None).await?;
        self.engine.check_listing(&pinned).await?;
        Ok(self.engine.catalogs(&pinned))
    }

    async fn schemas(&self, catalog: Option<&str>, pattern: Option<&str>) -> Result<Vec<(String, String)>> {
        self.check_open()?;
        let pinned = self.pin(None).await?;
        self.engine.check_listing(&pinned).await?;
        Ok(self.engine.schemas(catalog, pattern, &pinned))
    }

    async fn tables(&self, filter: &TableFilter) -> Result<Vec<TableEntry>> {
        self.check_open()?;
        let (engine, filter, layout) = (self.engine.clone(), filter.clone(), self.layout());
        request_task::run(&self.me()?, "a list of tables", |me, _| async move {
            let pinned = me.pin(None).await?;
            engine.check_listing(&pinned).await?;
            Box::pin(run_planning(engine.tables(&filter, layout, &pinned))).await
        })
        .await
    }

    async fn close(&self) {
        self.end();
    }

    fn set_number(&self, number: i32) {
        self.number.store(number, Ordering::Relaxed);
    }

    async fn until_closed(&self) {
        loop {
            // Made before the look, so that no end is missed.
            let ended = self.ended.notified();
            if self.closed.load(Ordering::Acquire) {
                return;
            }
            ended.await;
        }
    }
}

fn planning() -> Span {
    info_span!(target: TRACES, "plan")
}
