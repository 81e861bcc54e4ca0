//! Text → authorized plan. The text is parsed once, and each kind of statement is planned in its own way.

use crate::authorize::{self, Action, AuthorizedPlan, Change};
use crate::catalog::{self, public};
use crate::plan;
use crate::session::EngineSession;
use crate::write::ddl::Ddl;
use crate::write::models::sent;
use crate::write::recognise::{Recognised, nothing, recognise};
use crate::write::{Write, copy, functions, maintenance, models, pipes, refresh, secrets};
use bowshot_api::Result;
use bowshot_policy::snapshot::Pinned;
use bowshot_query_task::run_blocking_if;
use bowshot_sql::rewrite::Source;
use bowshot_sql::{
    AccessStatement, CopyStatement, LockClause, MaintenanceStatement, SessionStatement, Statement, is_small,
};
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement as Planned;
use datafusion::sql::sqlparser::ast;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::sync::Arc;

impl EngineSession {
    /// Parses, plans and authorises one statement on the tables of one moment. CPU work: to be called on the query runtime.
    ///
    /// # Errors
    /// `Syntax`, `Invalid`, `NotFound` from planning; `Denied` and `Unsupported` from enforcement.
    pub fn plan<'a>(&'a self, sql: &'a str, pinned: &'a Pinned) -> BoxFuture<'a, Result<AuthorizedPlan>> {
        async move {
            let noting = self.shared.decider().map(|_| pinned.noting());
            let pinned = noting.as_ref().unwrap_or(pinned);
            self.settle_search_path(pinned)?;
            let planned = run_blocking_if(!is_small(sql), self.plan_text(sql, pinned)).await;
            planned.map_err(|error| secrets::untold(error, sql, plan::dialect(&self.options())))
        }
        .boxed()
    }

    async fn plan_text(&self, sql: &str, pinned: &Pinned) -> Result<AuthorizedPlan> {
        let options = self.options();
        if self.scratch {
            let planned = plan::plan(&self.state(pinned), plan::parse_plain(&options, sql)?).await?;
            return authorize::enforce(planned, None, self.authorizer(pinned), true).await;
        }
        let is_reusable = pinned.input().is_none() && is_small(sql);
        if is_reusable && let Some(plan) = self.plan_of_text(sql, pinned).await? {
            return Ok(plan);
        }
        self.leave_connection().await;
        let source = Source { text: sql, dialect: plan::dialect(&options).name() };
        let mut statement = plan::parse(&options, sql)?;
        let row_lock = LockClause::from_statement(&statement);
        let is_asked_again = matches!(statement, Statement::Sql(_) | Statement::Explain(_))
            && self.asks_again()
            && pinned.input().is_none();
        // What EXECUTE and SHOW mean depends on more than the settings of the engine.
        let is_query = matches!(&statement, Statement::Sql(statement) if matches!(**statement, ast::Statement::Query(_)));
        let literals = if is_reusable { self.take_literals(&mut statement) } else { None };
        let plan = match literals {
            Some(literals) => self.plan_by_template((statement, literals), pinned, source).await?,
            None => self.plan_parsed(statement, pinned, source).await?,
        };
        let plan = plan.with_row_lock(row_lock);
        let plan = if is_asked_again { plan.with_text(sql) } else { plan };
        if is_reusable && is_query {
            self.keep_plan(sql, options, &plan);
        }
        Ok(plan)
    }

    /// Plans and authorises a statement that is parsed.
    ///
    /// # Errors
    /// As [`EngineSession::plan`].
    pub(super) fn plan_parsed<'a>(
        &'a self,
        statement: Statement,
        pinned: &'a Pinned,
        source: Source<'a>,
    ) -> BoxFuture<'a, Result<AuthorizedPlan>> {
        async move {
            let (options, names) = (self.options(), self.names(pinned));
            match statement {
                Statement::Sql(statement) => {
                    let statement = Planned::Statement(plan::known(&options, statement, source)?);
                    self.plan_statement(statement, pinned, source).await
                }
                Statement::Explain(explain) => {
                    self.plan_statement(plan::explained(&options, explain, source)?, pinned, source).await
                }
                Statement::Transaction(statement) => {
                    self.authorized(nothing(), Action::Transaction(statement), pinned).await
                }
                Statement::Copy(copy) => self.plan_copy(copy, pinned, source).await,
                Statement::Access(statement) => Box::pin(self.plan_access(*statement, pinned)).await,
                Statement::Secret(statement) => {
                    self.defined(secrets::change(statement, &names)?, pinned).await
                }
                Statement::Model(statement) => self.defined(models::change(statement, &names)?, pinned).await,
                Statement::Function(statement) => {
                    let visible = self.visible(pinned);
                    self.defined(functions::change(statement, (&visible, &names), source).await?, pinned)
                        .await
                }
                Statement::Database(statement) => {
                    self.authorized(nothing(), Action::Database(statement), pinned).await
                }
                Statement::Cache(statement) => {
                    self.authorized(nothing(), Action::Cache(statement), pinned).await
                }
                Statement::Maintenance(statement) => Box::pin(self.plan_maintenance(statement, pinned)).await,
                Statement::Pipe(statement) => {
                    let write = Box::pin(pipes::change(statement, &names)).await?;
                    self.authorized(nothing(), Action::Write(Change::new(write)), pinned).await
                }
                Statement::Utility(statement) => {
                    Box::pin(self.plan_utility(statement, pinned, source)).await.map(AuthorizedPlan::once)
                }
            }
        }
        .boxed()
    }

    /// Plans and authorises a statement that the planner knows.
    ///
    /// # Errors
    /// As [`EngineSession::plan`].
    pub(crate) fn plan_statement<'a>(
        &'a self,
        mut statement: datafusion::sql::parser::Statement,
        pinned: &'a Pinned,
        source: Source<'a>,
    ) -> BoxFuture<'a, Result<AuthorizedPlan>> {
        async move {
            if let Some(explained) = Box::pin(self.explain_change(&statement, pinned, source)).await? {
                return Ok(explained);
            }
            let (visible, names) = (self.visible(pinned), self.names(pinned));
            public::resolve(&mut statement, &names.schemas());
            names.types().resolve(&mut statement);
            Box::pin(catalog::functions::expand(&mut statement, (&visible, &names))).await?;
            catalog::search_path::resolve(&mut statement, &names, &visible);
            catalog::group_keys::add(&mut statement, &names, &visible);
            let recognised = Box::pin(recognise(&statement, &visible, &names, source)).await?;
            let (planned, action) = match recognised {
                None => {
                    let state = self.state(pinned);
                    let planned = plan::plan(&state, statement).await?;
                    self.spare.keep(state, &self.context);
                    (planned, None)
                }
                Some(Recognised::Write(write, rows)) => {
                    (plan::planned(rows)?, Some(Action::Write(Change::new(write))))
                }
                Some(Recognised::Returning(write, rows, returning)) => {
                    let change = Change { returning: Some(Arc::new(returning)), ..Change::new(write) };
                    (plan::planned(rows)?, Some(Action::Write(change)))
                }
                Some(Recognised::InSteps(steps, write, rows, returning)) => {
                    let (before, returning) = (steps.into(), returning.map(Arc::new));
                    let change = Change { returning, before, ..Change::new(write) };
                    (plan::planned(rows)?, Some(Action::Write(change)))
                }
            };
            authorize::enforce(planned, action, self.authorizer(pinned), self.scratch).await
        }
        .boxed()
    }

    async fn plan_access(&self, statement: AccessStatement, pinned: &Pinned) -> Result<AuthorizedPlan> {
        let (visible, names) = (self.visible(pinned), self.names(pinned));
        let change = Box::pin(crate::write::access::resolve(statement, (&visible, &names))).await?;
        let returning = crate::write::access::told(&change)?.map(Arc::new);
        let change = Change { returning, ..Change::new(Write::Ddl(Ddl::Access(change))) };
        self.authorized(nothing(), Action::Write(change), pinned).await
    }

    async fn plan_maintenance(
        &self,
        statement: MaintenanceStatement,
        pinned: &Pinned,
    ) -> Result<AuthorizedPlan> {
        let names = self.names(pinned);
        match statement {
            MaintenanceStatement::VacuumAll => {
                self.authorized(nothing(), Action::Session(SessionStatement::Nothing), pinned).await
            }
            MaintenanceStatement::Optimize(table) => {
                let write = maintenance::optimize(&table, &names)?;
                self.authorized(nothing(), Action::Write(Change::new(write)), pinned).await
            }
            MaintenanceStatement::Vacuum { table, retain } => {
                let write = maintenance::vacuum(&table, retain, &names)?;
                self.authorized(nothing(), Action::Write(Change::new(write)), pinned).await
            }
            MaintenanceStatement::Layout(statement) => {
                let write = maintenance::layout(statement, &names)?;
                self.authorized(nothing(), Action::Write(Change::new(write)), pinned).await
            }
            MaintenanceStatement::SetRefresh { view, mode } => {
                let visible = self.visible(pinned);
                let set = maintenance::set_refresh(&view, mode, (&visible, &names));
                self.defined(Box::pin(set).await?, pinned).await
            }
            MaintenanceStatement::ExplainRefresh(view) => {
                let (visible, name) = (self.visible(pinned), names.resolve(&view)?);
                let shown = Box::pin(refresh::explain(name, &visible, &names)).await?;
                self.authorized(shown, Action::Query, pinned).await
            }
            MaintenanceStatement::Refresh(view) => {
                let visible = self.visible(pinned);
                let (write, rows) = Box::pin(maintenance::refresh(&view, &visible, &names)).await?;
                self.authorized(rows, Action::Write(Change::new(write)), pinned).await
            }
        }
    }

    fn plan_copy<'a>(
        &'a self,
        mut copy: CopyStatement,
        pinned: &'a Pinned,
        source: Source<'a>,
    ) -> BoxFuture<'a, Result<AuthorizedPlan>> {
        async move {
            plan::copy_known(&self.options(), &mut copy, source)?;
            let (visible, names) = (self.visible(pinned), self.names(pinned));
            let (write, rows) = copy::recognise(copy, &visible, &names).await?;
            self.authorized(rows, Action::Write(Change::new(write)), pinned).await
        }
        .boxed()
    }

    /// A change of the catalog, with the rows that the client sends along for it.
    async fn defined(&self, ddl: Ddl, pinned: &Pinned) -> Result<AuthorizedPlan> {
        let rows = sent(&ddl, pinned)?.unwrap_or_else(nothing);
        self.authorized(rows, Action::Write(Change::new(Write::Ddl(ddl))), pinned).await
    }

    /// The plan of what acts on these rows.
    pub(super) async fn authorized(
        &self,
        rows: LogicalPlan,
        action: Action,
        pinned: &Pinned,
    ) -> Result<AuthorizedPlan> {
        authorize::enforce(plan::planned(rows)?, Some(action), self.authorizer(pinned), self.scratch).await
    }
}
