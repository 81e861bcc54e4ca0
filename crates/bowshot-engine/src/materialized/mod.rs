//! Materialized views in queries: the versions of tables that they show (`sources`), and which queries read them in the place of
//! their tables (`block`, `rewrite`). A view is never read where its rows may be others than those of its query.
//! `write/refresh/` brings them up to date.

pub(crate) mod block;
pub(crate) mod rewrite;
pub(crate) mod sources;

use crate::catalog::Visible;
use crate::error::classify;
use bowshot_api::Result;
use bowshot_tables::{Materialized, View};
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
