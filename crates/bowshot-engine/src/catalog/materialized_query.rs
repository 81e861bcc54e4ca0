//! The query of a materialized view: its plan, what it means, and which versions of tables its rows show.

use super::Visible;
use super::defaults::without_defaults;
use crate::error::classify;
use crate::plan;
use async_trait::async_trait;
use bowshot_api::Result;
use bowshot_system_catalog::system::ViewMeanings;
use bowshot_tables::{Materialized, SourceVersion, Table, View};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::config::ConfigOptions;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result as PlanResult;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{LogicalPlan, TableScan};
use std::sync::Arc;
use uuid::Uuid;

/// The plan of a view's query, with the names that were the defaults where it was made.
///
/// # Errors
/// From planning.
pub(crate) async fn query(view: &Materialized, visible: &Visible) -> Result<LogicalPlan> {
    let view = View {
        id: Uuid::nil(),
        sql: view.sql.clone(),
        dialect: view.dialect.clone(),
        default_catalog: view.default_catalog.clone(),
        default_schema: view.default_schema.clone(),
        columns: Vec::new(),
        comment: None,
    };
    visible.without_own().query_plan(&view).await.map_err(classify)
}

/// What the rows of a view's query are in a session of these options, as a digest: the plan, in which views and functions are what
/// they are now, the tables that its names stand for, and the dialect, on which functions depend.
pub(crate) fn meaning(query: &LogicalPlan, options: &ConfigOptions) -> String {
    let tables = tables(query).unwrap_or_default();
    let tables: Vec<String> = tables.iter().map(|table| table.id().to_string()).collect();
    let dialect = plan::dialect(options).name();
    Materialized::digest(&format!("{}\n{}\n{}", dialect.as_str(), tables.join(" "), query.display_indent()))
}

/// A new view, with what its query means: it is planned as each refresh plans it.
pub(crate) async fn with_meaning(
    view: Materialized,
    visible: &Visible,
    options: &ConfigOptions,
) -> Materialized {
    if view.sources.is_empty() {
        return view;
    }
    let planned = Box::pin(query(&view, visible)).await.ok();
    Materialized { meaning: planned.map(|planned| meaning(&planned, options)), ..view }
}

/// Whether the query of a view means what it meant at the last refresh, in the dialect of the session or in that of the view. One that
/// cannot be planned any more does not.
pub(crate) async fn is_meant(view: &Materialized, visible: &Visible) -> bool {
    if has_meaning(view, visible).await {
        return true;
    }
    let mut state = visible.context.state();
    let options = state.config_mut().options_mut();
    match plan::parser_dialect(&view.dialect) {
        Some(dialect) if dialect != options.sql_parser.dialect => options.sql_parser.dialect = dialect,
        _ => return false,
    }
    let mut visible = visible.clone();
    visible.context = SessionContext::new_with_state(state);
    has_meaning(view, &visible).await
}

async fn has_meaning(view: &Materialized, visible: &Visible) -> bool {
    let planned = Box::pin(query(view, visible)).await;
    planned.is_ok_and(|query| view.meaning.as_ref() == Some(&meaning(&query, &visible.options())))
}

#[async_trait]
impl ViewMeanings for Visible {
    async fn is_meant(&self, view: &Materialized) -> bool {
        // A view that reads what is told of views would ask for itself.
        self.depth > 0 || is_meant(view, self).await
    }
}

/// The table of which a scan reads all rows and columns. `None` for parts that policies leave, and for tables of others.
pub(crate) fn own_table(scan: &TableScan) -> Option<Arc<Table>> {
    let provider = source_as_provider(&scan.source).ok()?;
    let is_whole = scan.filters.is_empty() && scan.fetch.is_none();
    Table::of_provider(without_defaults(provider.as_ref())).filter(|_| is_whole).map(Arc::clone)
}

/// The tables of the scans of a plan, in its order; `None` where it reads anything else.
pub(crate) fn tables(plan: &LogicalPlan) -> Option<Vec<Arc<Table>>> {
    let mut found = Some(Vec::new());
    let walked: PlanResult<TreeNodeRecursion> = plan.apply_with_subqueries(|node| {
        let table = match node {
            LogicalPlan::TableScan(scan) => own_table(scan),
            LogicalPlan::Extension(_) | LogicalPlan::RecursiveQuery(_) => None,
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        found = found.take().zip(table).map(|(mut found, table)| {
            found.push(table);
            found
        });
        Ok(if found.is_some() { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    walked.ok().and(found)
}

/// The versions that rows of this plan show; none where they cannot all be told, as of tables in memory, and of tables that
/// the transaction has changed.
pub(crate) fn versions(plan: &LogicalPlan) -> Vec<SourceVersion> {
    let tables = tables(plan).unwrap_or_default();
    if !tables.iter().all(|table| table.is_committed()) {
        return Vec::new();
    }
    versions_of(&tables, Table::version)
}

/// The same where the rows are committed with those of the tables: what the transaction has changed has the version of its commit.
pub(crate) fn versions_at_commit(plan: &LogicalPlan) -> Vec<SourceVersion> {
    versions_of(&tables(plan).unwrap_or_default(), |table| {
        if table.is_committed() { table.version() } else { SourceVersion::COMMITTING }
    })
}

fn versions_of(tables: &[Arc<Table>], version: impl Fn(&Table) -> u64) -> Vec<SourceVersion> {
    let mut versions: Vec<SourceVersion> = Vec::new();
    for table in tables {
        if versions.iter().all(|there| there.table != table.id()) {
            versions.push(SourceVersion { table: table.id(), version: version(table) });
        }
    }
    versions
}
