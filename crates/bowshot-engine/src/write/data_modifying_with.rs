//! INSERT, UPDATE, DELETE and MERGE as queries of the WITH that begins a statement (PostgreSQL manual, 7.8.4). They run in the order
//! in which they are written. All of them, and what stands behind them, read the tables as they were before; they see of one
//! another what RETURNING gives.

use crate::catalog::Visible;
use crate::catalog::names::{Names, ident};
use crate::error::classify;
use crate::plan;
use crate::plan::steps::Steps;
use crate::write::Write;
use crate::write::recognise::{self, Recognised};
use crate::write::returning::Returning;
use bowshot_api::catalog_names::{CHANGE_SCHEMA, RETURNED};
use bowshot_api::{Error, Result};
use bowshot_optimizer::materialized_cte;
use bowshot_sql::rewrite::Source;
use bowshot_tables::EntryName;
use datafusion::datasource::empty::EmptyTable;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{Cte, Query, SetExpr, Statement, With};
use futures::FutureExt;
use futures::future::BoxFuture;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A query of WITH that runs before what stands behind it.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// What stands for its rows.
    pub(crate) table: String,
    pub(crate) write: Arc<Write>,
    pub(crate) returning: Option<Arc<Returning>>,
}

/// Whether the WITH of a statement changes rows.
pub(crate) fn are_in(query: &Query) -> bool {
    query.with.iter().flat_map(|with| &with.cte_tables).any(changes_rows)
}

fn changes_rows(table: &Cte) -> bool {
    let body = table.query.body.as_ref();
    matches!(body, SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_))
}

/// Plans such a statement.
pub(super) fn recognise<'a>(
    query: &'a Query,
    visible: &'a Visible,
    names: &'a Names,
    source: Source<'a>,
) -> BoxFuture<'a, Result<Recognised>> {
    async move {
        let mut main = query.clone();
        let Some(mut with) = main.with.take() else {
            return Err(Error::internal("a statement has no WITH, whose queries were to be planned"));
        };
        let tables = std::mem::take(&mut with.cte_tables);
        let changed = BTreeSet::new();
        let (visible, steps, plans) = (visible.clone(), Vec::new(), Vec::new());
        let mut planner = Planner { visible, names, source, with, changed, steps, plans };
        for table in tables {
            if changes_rows(&table) {
                Box::pin(planner.add_change(table)).await?;
            } else {
                Box::pin(planner.add_query(table)).await?;
            }
        }
        let (write, last, returning) = Box::pin(planner.planned(main)).await?;
        let plan = Steps::plan(planner.plans, last);
        Ok(Recognised::InSteps(planner.steps, write, plan, returning))
    }
    .boxed()
}

struct Planner<'a> {
    /// With what the steps return.
    visible: Visible,
    names: &'a Names,
    source: Source<'a>,
    /// What the next query may read by its name.
    with: With,
    changed: BTreeSet<EntryName>,
    steps: Vec<Step>,
    /// One of each step.
    plans: Vec<LogicalPlan>,
}

impl Planner<'_> {
    async fn add_change(&mut self, table: Cte) -> Result<()> {
        let (write, plan, returning) = Box::pin(self.planned(table.query.as_ref().clone())).await?;
        self.add_step(table, write, plan, returning)
    }

    /// A query is a part of each plan that reads it, unless it would give each of them other rows.
    async fn add_query(&mut self, table: Cte) -> Result<()> {
        let name = ident(&table.alias.name).replace('"', "\"\"");
        let mut rows = *bowshot_sql::read_query(&format!("SELECT * FROM \"{name}\""))?;
        rows.with = Some(With { cte_tables: vec![table.clone()], ..self.with.clone() });
        let (write, plan, returning) = Box::pin(self.planned(rows)).await?;
        if materialized_cte::differs(&plan).map_err(classify)? {
            return self.add_step(table, write, plan, returning);
        }
        self.with.cte_tables.push(table);
        Ok(())
    }

    /// From now on the name of the query means the rows that it has returned; without RETURNING, nothing.
    fn add_step(
        &mut self,
        mut table: Cte,
        write: Box<Write>,
        plan: LogicalPlan,
        returning: Option<Returning>,
    ) -> Result<()> {
        let name = format!("{RETURNED}{}", self.steps.len());
        if let Some(returning) = &returning {
            let rows = EmptyTable::new(returning.table_schema(&self.visible.state()));
            self.visible = self.visible.with_returned(&name, Arc::new(rows));
            table.query = bowshot_sql::read_query(&format!("SELECT * FROM \"{CHANGE_SCHEMA}\".\"{name}\""))?;
            self.with.cte_tables.push(table);
        }
        self.steps.push(Step { table: name, write: write.into(), returning: returning.map(Arc::new) });
        self.plans.push(plan);
        Ok(())
    }

    /// The plan of one part of the statement, behind the queries so far.
    async fn planned(&mut self, mut query: Query) -> Result<(Box<Write>, LogicalPlan, Option<Returning>)> {
        let mut with = self.with.clone();
        if let Some(own) = query.with.take() {
            with.recursive |= own.recursive;
            with.cte_tables.extend(own.cte_tables);
        }
        query.with = (!with.cte_tables.is_empty()).then_some(with);
        let statement = Parsed::Statement(Box::new(Statement::Query(Box::new(query))));
        let recognised = recognise::recognise(&statement, &self.visible, self.names, self.source).await?;
        let (write, plan, returning) = match recognised {
            Some(Recognised::Write(write, plan)) => (write, plan, None),
            Some(Recognised::Returning(write, plan, returning)) => (write, plan, Some(returning)),
            Some(Recognised::InSteps(..)) => {
                return Err(Error::internal("a part of a statement was to have parts"));
            }
            None => {
                let plan = plan::logical(&self.visible.state(), statement).await.map_err(classify)?;
                let returning = Returning::query(plan.clone());
                return Ok((Box::new(Write::Query), plan, Some(returning)));
            }
        };
        self.check_target(&write)?;
        Ok((write, plan, returning))
    }

    /// What finds the rows that are changed or taken out finds them where they were before: rows can be added to a table that has
    /// changed, and nothing else.
    fn check_target(&mut self, write: &Write) -> Result<()> {
        if matches!(write, Write::DatabaseInsert(_) | Write::DatabaseRewrite(_)) {
            return Err(Error::unsupported(
                "a table of another database is not changed together with others",
            )
            .with_hint("send the changes one by one"));
        }
        let Some(target) = write.target() else { return Ok(()) };
        let is_first = self.changed.insert(target.clone());
        if is_first || matches!(write, Write::Insert(_)) {
            return Ok(());
        }
        Err(Error::unsupported(format!("the statement changes table `{target}` twice"))
            .with_hint("send the changes one by one in a transaction"))
    }
}
