//! How statements are planned that ask about the server and the session, or steer the session.

use crate::authorize::{self, Action, AuthorizedPlan};
use crate::catalog::column_origins;
use crate::error::classify;
use crate::plan;
use crate::plan::steps::Steps;
use crate::session::EngineSession;
use crate::utility::{UtilityContext, check_tables, describe, pragma, prepare, show, summarize};
use crate::write::recognise::nothing;
use crate::write::returning::Detail;
use crate::write::{data_modifying_with, functions};
use bowshot_api::{ColumnOrigin, Error, Notice, Result};
use bowshot_policy::snapshot::Pinned;
use bowshot_sql::rewrite::Source;
use bowshot_sql::{CacheStatement, CursorStatement, SessionStatement, Statement, Utility};
use bowshot_system_catalog::client::Client;
use bowshot_tables::EntryName;
use bowshot_types::result_metadata::analysed_schema;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::format::ExplainFormat;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{ExplainOption, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::parser::{ExplainStatement, Statement as Parsed};
use datafusion::sql::sqlparser::ast;
use std::sync::Arc;

impl EngineSession {
    /// EXPLAIN of a statement that changes rows: the plan of the query that gives them. Who may not run it does not see it either.
    /// EXPLAIN ANALYZE runs it.
    pub(super) async fn explain_change(
        &self,
        statement: &Parsed,
        pinned: &Pinned,
        source: Source<'_>,
    ) -> Result<Option<AuthorizedPlan>> {
        let Parsed::Explain(ExplainStatement { options, statement }) = statement else { return Ok(None) };
        let Parsed::Statement(change) = statement.as_ref() else { return Ok(None) };
        if !changes_rows(change) {
            return Ok(None);
        }
        let change = self.plan_statement(statement.as_ref().clone(), pinned, source).await?;
        if !Steps::of(change.planned().plan()).is_empty() {
            return Err(Error::unsupported("EXPLAIN does not take a statement whose WITH changes rows")
                .with_hint("explain its parts one by one"));
        }
        if options.analyze {
            let is_here = matches!(change.action(), Action::Write(change) if change.is_of_tables());
            if !is_here || options.format.as_ref().is_some_and(|format| *format != ExplainFormat::Indent) {
                return Err(Error::unsupported("EXPLAIN ANALYZE is not supported for this change")
                    .with_hint("it supports changes of tables of this server, in FORMAT TEXT"));
            }
            let detail = if options.verbose { Detail::Verbose } else { Detail::Plain };
            return change.measured(detail).map(Some);
        }
        let format = options.format.clone().unwrap_or_else(|| self.options().explain.format.clone());
        let option = ExplainOption { verbose: options.verbose, format, ..ExplainOption::default() };
        let rows = LogicalPlanBuilder::from(change.planned().plan().clone());
        let explained = rows.explain_option_format(option).and_then(LogicalPlanBuilder::build);
        let planned = plan::planned(explained.map_err(classify)?)?;
        authorize::enforce(planned, None, self.authorizer(pinned), self.scratch).await.map(Some)
    }

    /// Tells the session's client, of whose settings and named statements it is asked.
    pub fn attach(&self, client: Arc<dyn Client>) {
        self.client().attach(client);
    }

    /// For each column of a query the table that it comes from as it is there.
    pub fn origins(&self, plan: &AuthorizedPlan) -> Vec<Option<ColumnOrigin>> {
        match plan.action() {
            Action::Query => column_origins::origins(plan.planned().form(), &self.names(plan.pinned())),
            _ => Vec::new(),
        }
    }

    /// Plans a statement that asks about the server and the session, or steers the session.
    ///
    /// # Errors
    /// `NotFound` for names in it, and as [`EngineSession::plan`].
    pub(super) async fn plan_utility(
        &self,
        utility: Utility,
        pinned: &Pinned,
        source: Source<'_>,
    ) -> Result<AuthorizedPlan> {
        let (names, visible) = (self.names(pinned), self.visible(pinned));
        let asked = UtilityContext { names: &names, visible: &visible, client: self.client() };
        let rows = match utility {
            Utility::Session(statement) => return self.acting(statement, pinned).await,
            Utility::Cursor(statement) => return self.plan_cursor(statement, pinned).await,
            Utility::Use(name) => {
                let (catalog, schema) = asked.schema(&name)?;
                return self.acting(SessionStatement::Use { catalog, schema }, pinned).await;
            }
            Utility::Analyze(table) => {
                asked.table(&table)?;
                return self.acting(SessionStatement::Nothing, pinned).await;
            }
            Utility::CreateIndex(table) => {
                asked.table(&table)?;
                return self.acting(SessionStatement::Notice(Notice::NoIndexes), pinned).await;
            }
            Utility::Execute { name, values } => {
                let statement = prepare::execute(&name, values, &asked)?;
                return self.plan_statement(statement, pinned, self.untold()).await;
            }
            Utility::Summarize { table, query } => {
                table.map_or(Ok(()), |table| asked.table(&table).map(drop))?;
                return self.plan_summary(*query, pinned, source).await;
            }
            Utility::DescribeQuery(query) => {
                let described = self.plan_parsed(*query, pinned, source).await?;
                let schema = self.schema_of(&described)?;
                describe::query(&schema, visible.flavour())?
            }
            Utility::DescribeTable { table, column } => {
                describe::named_table(&table, column.as_deref(), &asked)?
            }
            Utility::Show(show) => show::rows(show, &asked)?,
            Utility::Pragma(pragma) => pragma::rows(&pragma, &asked)?,
            Utility::CheckTables(tables) => check_tables(&tables, &asked)?,
        };
        let planned = plan::plan(&self.state(pinned), rows).await?;
        authorize::enforce(planned, None, self.authorizer(pinned), false).await
    }

    async fn acting(&self, statement: SessionStatement, pinned: &Pinned) -> Result<AuthorizedPlan> {
        self.authorized(nothing(), Action::Session(statement), pinned).await
    }

    /// SUMMARIZE: the query is planned for its columns first.
    async fn plan_summary(
        &self,
        query: Statement,
        pinned: &Pinned,
        source: Source<'_>,
    ) -> Result<AuthorizedPlan> {
        let summarized = self.plan_parsed(query.clone(), pinned, source).await?;
        let schema = self.schema_of(&summarized)?;
        let Statement::Sql(query) = query else {
            return Err(Error::invalid("SUMMARIZE takes a table or a query"));
        };
        let query = Parsed::Statement(plan::known(&self.options(), query, source)?);
        self.plan_statement(summarize::query(query, &schema)?, pinned, self.untold()).await
    }

    /// A statement about cursors. Whoever declares one needs the rights that its query needs.
    async fn plan_cursor(&self, statement: CursorStatement, pinned: &Pinned) -> Result<AuthorizedPlan> {
        if let CursorStatement::Declare { sql, .. } = &statement {
            let query = Box::pin(self.plan(sql, pinned)).await?;
            return query.declared(statement);
        }
        self.authorized(nothing(), Action::Cursor(statement), pinned).await
    }

    /// Of a statement that is made here, and stands in no text.
    fn untold(&self) -> Source<'static> {
        Source { text: "", dialect: plan::dialect(&self.options()).name() }
    }

    /// The columns of a query, as it is planned.
    fn schema_of(&self, plan: &AuthorizedPlan) -> Result<SchemaRef> {
        match plan.action() {
            Action::Query => Ok(analysed_schema(&self.state(plan.pinned()), plan.planned().plan())),
            _ => Err(Error::invalid("only a query has columns to describe")),
        }
    }

    /// Runs a statement about the caches. To be called on the query runtime.
    ///
    /// # Errors
    /// `NotFound` for an unknown id, `Unsupported` without a cache, and from planning the query of a warm-up.
    pub async fn control_cache(&self, statement: &CacheStatement, pinned: &Pinned) -> Result<()> {
        self.reuse().check(statement)?;
        let query = match statement {
            CacheStatement::Warm(sql) => Some(Box::pin(self.optimised(sql, pinned)).await?),
            _ => None,
        };
        self.reuse().control(statement, query).await
    }

    /// The optimised plan of a query, with what it was planned with.
    async fn optimised(&self, sql: &str, pinned: &Pinned) -> Result<(LogicalPlan, SessionState)> {
        let plan = self.plan(sql, pinned).await?;
        if !matches!(plan.action(), Action::Query) {
            return Err(Error::invalid("only queries can be prepared for"));
        }
        let state = self.state(pinned);
        let optimised = state.optimize(plan.planned().plan()).map_err(classify)?;
        Ok((optimised, state))
    }

    /// Throws the session's own tables away.
    ///
    /// # Errors
    /// `Conflict` when another statement of the session changes them meanwhile.
    pub async fn drop_temporary(&self) -> Result<()> {
        let base = self.pin();
        let (catalog, schema) =
            (bowshot_api::catalog_names::TEMPORARY_CATALOG, bowshot_api::catalog_names::DEFAULT_SCHEMA);
        let mut changed = functions::without_temporary(&base)?;
        for name in base.own().names(catalog, schema) {
            let name = EntryName::new(catalog, schema, name);
            changed = changed.changed(catalog, |snapshot| snapshot.without_entry(&name))?;
        }
        self.commit(&base, &changed).await
    }
}

/// Whether a statement changes rows, or makes a table of some.
fn changes_rows(statement: &ast::Statement) -> bool {
    match statement {
        ast::Statement::Insert(_)
        | ast::Statement::Update(_)
        | ast::Statement::Delete(_)
        | ast::Statement::Merge(_) => true,
        ast::Statement::CreateTable(create) => create.query.is_some(),
        ast::Statement::CreateView(create) => create.materialized,
        // Behind WITH, or in it.
        ast::Statement::Query(query) => {
            data_modifying_with::are_in(query)
                || matches!(
                    query.body.as_ref(),
                    ast::SetExpr::Insert(_)
                        | ast::SetExpr::Update(_)
                        | ast::SetExpr::Delete(_)
                        | ast::SetExpr::Merge(_)
                )
        }
        _ => false,
    }
}
