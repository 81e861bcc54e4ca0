//! Materialized views in queries: the versions of tables that they show (`sources`), and which queries read them in the place of
//! their tables (`block`, `rewrite`). A view is never read where its rows may be others than those of its query.
//! `write/refresh/` brings them up to date.

pub(crate) mod block;
pub(crate) mod rewrite;
pub(crate) mod sources;

use crate::catalog::Visible;
use crate::error::classify;
use crate::plan;
use bowshot_api::Result;
use bowshot_tables::{Materialized, View};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::LogicalPlan;
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
    visible.without_own().view_plan(&view).await.map_err(classify)
}

/// What the rows of a view's query are in a session of these options, as a digest: the plan, in which views and functions are what
/// they are now, the tables that its names stand for, and the dialect, on which functions depend.
pub(crate) fn meaning(query: &LogicalPlan, options: &ConfigOptions) -> String {
    let tables = sources::tables(query).unwrap_or_default();
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
    let planned = query(&view, visible).await.ok();
    Materialized { meaning: planned.map(|planned| meaning(&planned, options)), ..view }
}
