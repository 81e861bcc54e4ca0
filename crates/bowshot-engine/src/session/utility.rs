//! The road of the statements of this room, once they are recognised.

use crate::authorize::{self, Action, AuthorizedPlan};
use crate::catalog::origins;
use crate::error::classify;
use crate::introspect::{Asked, Expanded, begins_here, describe, recognise, summarize};
use crate::plan::steps::Steps;
use crate::plan::{self, text_limits};
use crate::session::EngineSession;
use crate::statement::forms;
use crate::statement::session::CursorStatement;
use crate::write::data_modifying_with;
use crate::write::recognise::nothing;
use crate::write::returning::Detail;
use bowshot_api::{ColumnOrigin, Error, Result};
use bowshot_policy::snapshot::Pinned;
use bowshot_sql::CacheStatement;
use bowshot_sql::rewrite::Source;
use bowshot_storage::tables::EntryName;
use bowshot_system_catalog::client::Client;
use bowshot_types::result_metadata::analysed_schema;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::format::ExplainFormat;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{ExplainOption, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::parser::{ExplainStatement, Statement as Parsed};
use datafusion::sql::sqlparser::ast;
use futures::FutureExt;
use futures::future::BoxFuture;
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
                return Err(Error::unsupported("EXPLAIN ANALYZE cannot tell of this change what it took")
                    .with_hint("it takes changes of tables of this server, and FORMAT TEXT"));
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
            Action::Query => origins::origins(plan.planned().plan(), &self.names(plan.pinned())),
            _ => Vec::new(),
        }
    }

    /// What stands in the place of a statement of this room; `None` for any other.
    ///
    /// # Errors
    /// As [`recognise`].
    pub(crate) fn expanded(&self, sql: &str, pinned: &Pinned) -> Result<Option<Expanded>> {
        if !begins_here(sql) {
            return Ok(None);
        }
        let (names, visible) = (self.names(pinned), self.visible(pinned));
        let options = visible.options();
        let dialect = plan::dialect(&options);
        // Parts of the text are parsed here, as the condition of SHOW is.
        text_limits::check(sql, &dialect)?;
        let asked = Asked {
            dialect: &dialect,
            recursion: options.sql_parser.recursion_limit.get(),
            names: &names,
            visible: &visible,
            client: self.client(),
        };
        recognise(sql, &asked)
    }

    /// Plans what stands in the place of a statement.
    ///
    /// # Errors
    /// As [`EngineSession::plan`].
    pub(crate) fn plan_expanded<'a>(
        &'a self,
        expanded: Expanded,
        pinned: &'a Pinned,
    ) -> BoxFuture<'a, Result<AuthorizedPlan>> {
        async move {
            let statement = match expanded {
                Expanded::Act(statement) => {
                    let action = Some(Action::Session(statement));
                    return authorize::enforce(
                        plan::planned(nothing())?,
                        action,
                        self.authorizer(pinned),
                        false,
                    )
                    .await;
                }
                Expanded::Cursor(statement) => return self.plan_cursor(statement, pinned).await,
                Expanded::Instead(sql) => return self.plan(&sql, pinned).await,
                Expanded::Execute(statement) => {
                    return self.plan_statement(*statement, pinned, self.untold()).await;
                }
                Expanded::Rows(statement) => *statement,
                Expanded::Describe(sql) => {
                    let described = self.plan(&sql, pinned).await?;
                    let schema = self.schema_of(&described)?;
                    describe::query(&schema, self.visible(pinned).flavour())?
                }
                Expanded::Summarize(sql) => {
                    let summarised = self.plan(&sql, pinned).await?;
                    let schema = self.schema_of(&summarised)?;
                    let options = self.options();
                    let spelled = forms::known(&sql, &plan::dialect(&options))?;
                    let inner = match plan::parse(&options, &spelled)? {
                        plan::Parsed::Sql(inner) => inner,
                        plan::Parsed::Copy(_) => {
                            return Err(Error::invalid("SUMMARIZE takes a table or a query"));
                        }
                    };
                    return self
                        .plan_statement(summarize::query(inner, &schema)?, pinned, self.untold())
                        .await;
                }
            };
            let planned = plan::plan(&self.state(pinned), statement).await?;
            authorize::enforce(planned, None, self.authorizer(pinned), false).await
        }
        .boxed()
    }

    /// A statement about cursors. Whoever declares one needs the rights that its query needs.
    async fn plan_cursor(&self, statement: CursorStatement, pinned: &Pinned) -> Result<AuthorizedPlan> {
        if let CursorStatement::Declare { sql, .. } = &statement {
            let query = Box::pin(self.plan(sql, pinned)).await?;
            return query.declared(statement);
        }
        let action = Some(Action::Cursor(statement));
        authorize::enforce(plan::planned(nothing())?, action, self.authorizer(pinned), false).await
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
        let mut changed = base.clone();
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
